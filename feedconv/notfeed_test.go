package feedconv

import (
	"errors"
	"testing"
)

// A document that is no feed is named for what it is.
func TestNotFeedNames(t *testing.T) {
	for doc, want := range map[string]string{
		"%PDF-1.4\n%\xe2\xe3\xcf\xd3 1 0 obj":                   "a PDF document",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR":                   "a PNG image",
		"\xff\xd8\xff\xe0\x00\x10JFIF\x00":                      "a JPEG image",
		"just words":                                            "text without a feed",
		"<html><head><title>Hi &amp; bye</title></head></html>": `an HTML page titled "Hi & bye"`,
		"<opml version='2.0'><body/></opml>":                    "an OPML document",
		"<urlset xmlns='x'></urlset>":                           "a sitemap",
		`{"error":"no"}`:                                        "JSON, but no feed",
		" \n\t ":                                                "an empty document",
		"":                                                      "an empty document",
		"<CHANNEL HREF='x'><TITLE>CDF</TITLE><ITEM HREF='y'><ABSTRACT>z</ABSTRACT></ITEM></CHANNEL>": "a CDF channel, a format that is not supported",
	} {
		f, err := ParseBytes([]byte(doc), Options{})
		var not *NotFeedError
		if !errors.As(err, &not) {
			t.Errorf("%q: got %+v, %v; want errors.As(err, &not)", doc, f, err)
			continue
		}
		if want != "" && not.What != want {
			t.Errorf("%q is %q, want %q", doc, not.What, want)
		}
	}
}
