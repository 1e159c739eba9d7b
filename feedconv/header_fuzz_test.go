package feedconv

import (
	"net/url"
	"testing"
)

// FuzzHeader: whatever the HTTP header says of a document, it is read as a
// feed whose promises hold, and links are absolute.
func FuzzHeader(f *testing.F) {
	const document = `<rss version="2.0"><channel><title>caf` + "\xe9" + `</title><link>/page</link><item><title>one</title><link>../one?a=b</link></item></channel></rss>`
	f.Add("text/xml; charset=utf-8", "http://a.example/dir/", "de_CH", []byte(document))
	f.Add(`application/rss+xml;charset="iso-8859-1"`, "dir/x", "en, fr", []byte(document))
	f.Add("charset=utf-16", "//b.example", "\x00\u202e", []byte(document))
	f.Add("text/xml; charset=utf-7; charset=\xff", "http://[::1", "", []byte(document))
	f.Add("text/html;;;=", "javascript:x", "i-klingon", []byte("{\"items\":[{\"id\":1,\"url\":\"x\"}]}"))
	f.Add("a/b; charset=gb2312", "http://a.example/%zz", "x", []byte("\xfe\xff\x00<\x00r\x00s\x00s"))
	f.Fuzz(func(t *testing.T, contentType, contentLocation, language string, b []byte) {
		opts := Options{URL: "http://example.com/dir/feed", ContentType: contentType, ContentLocation: contentLocation, ContentLanguage: language, MaxEntries: 20, MaxBytes: 1 << 20}
		feed, err := ParseBytes(b, opts)
		if err != nil {
			return
		}
		invariants(t, feed, opts)
		again, err := ParseBytes(b, opts)
		if err != nil || len(again.Entries) != len(feed.Entries) || again.Title != feed.Title || again.Language != feed.Language {
			t.Errorf("read again, it is %+v, %v", again, err)
		}
		if u, err := url.Parse(feed.Link); err == nil && feed.Link != "" && !u.IsAbs() {
			t.Errorf("the link %q under %q", feed.Link, contentLocation)
		}
	})
}
