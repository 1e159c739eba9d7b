package feedconv

import (
	"fmt"
	"testing"
)

// Links of other relations and rights are kept in all formats; those that have a field or
// are for programs are not among them.
func TestOtherLinksAndRights(t *testing.T) {
	const links = `link rel="related" href="a" title="A"/><%[1]slink rel="via" href="http://v.example/"/><%[1]slink rel="license" type="text/html" href="http://l.example/"/>` +
		`<%[1]slink rel="self" href="http://e/s"/><%[1]slink rel="edit" href="http://e/e"/><%[1]slink rel="enclosure" href="http://e/x"/><%[1]slink rel="via" href="javascript:x"/`
	in := func(prefix string) string { return fmt.Sprintf("<"+prefix+links+">", prefix) }
	for name, e := range map[string]Entry{
		"atom": atomItem(t, `<id>1</id>`+in("")+`<rights type="html">&amp;copy; &lt;b>me&lt;/b></rights>`),
		"rss":  rssItem(t, `<guid>1</guid>`+in("atom:")+`<dc:rights>&amp;copy; me</dc:rights>`),
		"json": jsonItem(t, `"id": "1", "_rights": "© me", "_links": [{"rel": "related", "url": "a", "title": "A"}, {"rel": "via", "url": "http://v.example/"},
			{"rel": "license", "url": "http://l.example/", "mime_type": "text/html"}, {"rel": "self", "url": "http://e/"}, {"rel": "via", "url": "javascript:x"}]`),
	} {
		want := `[{"related" "http://example.com/dir/a" "" "A"} {"via" "http://v.example/" "" ""} {"license" "http://l.example/" "text/html" ""}]`
		if got := fmt.Sprintf("%q", e.Links); got != want || e.Rights != "© me" {
			t.Errorf("%s: %s %q", name, got, e.Rights)
		}
	}
}
