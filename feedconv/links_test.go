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
			t.Errorf("%s: got %s %q, want %s %q", name, got, e.Rights, want, "© me")
		}
	}
}

// A category is named by what is for people; scheme, term and label are kept, once for a
// name, in all formats that have them.
func TestCategoryTerms(t *testing.T) {
	const atomTerms = `<%[1]scategory term="go" scheme="http://s.example/?a&amp;b"/><%[1]scategory term="go" scheme="other"/><%[1]scategory term="rd" label="R&amp;D"/><%[1]scategory term="plain" label="plain"/>`
	for name, test := range map[string]struct {
		e    Entry
		want string
	}{
		"atom": {atomItem(t, `<id>1</id><category term="http://t.example/#post" label="Post" scheme="s"/>`+fmt.Sprintf(atomTerms, "")),
			`["Post" "go" "rd" "plain"] [{"Post" "s" "" "http://t.example/#post"} {"go" "http://s.example/?a&b" "" ""} {"rd" "" "R&D" ""}]`},
		"atom in rss": {rssItem(t, `<guid>1</guid>`+fmt.Sprintf(atomTerms, "atom:")),
			`["go" "rd" "plain"] [{"go" "http://s.example/?a&b" "" ""} {"rd" "" "R&D" ""}]`},
		"rss": {rssItem(t, `<guid>1</guid><category domain="Newspapers/Regional">R&amp;amp;D</category><category>x</category>`),
			`["R&D" "x"] [{"R&D" "Newspapers/Regional" "" ""}]`},
		"json": {jsonItem(t, `"id": "1", "tags": ["a", "b"], "_categories": [{"name": "b", "scheme": "s", "label": "B"}, {"name": "no tag", "scheme": "s"}, {"name": "a"}]`),
			`["a" "b"] [{"b" "s" "B" ""}]`},
	} {
		if got := fmt.Sprintf("%q %q", test.e.Categories, test.e.Terms); got != test.want {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
	}
}

// The fields of the source of an entry are kept, its texts by their types.
func TestSourceFields(t *testing.T) {
	e := atomItem(t, `<id>1</id><title type="html">of the entry</title><source><title>S</title><subtitle type="html">&lt;b>sub&lt;/b> &amp;amp; title</subtitle><rights>a &lt;b> c</rights>`+
		`<icon>i.png</icon><logo>l.png</logo><author><name>Ann</name><email>a@e.example</email></author><author><name>Bob</name></author></source>`)
	s := e.Source
	if got := fmt.Sprintf("%q %q %q %q", s.Description, s.Copyright, s.Image, s.Authors); got != `"sub & title" "a <b> c" "http://example.com/dir/l.png" ["Ann <a@e.example>" "Bob"]` {
		t.Error(got)
	}
	if e := atomItem(t, `<id>1</id><source><icon>i.png</icon></source>`); e.Source == nil || e.Source.Image != "http://example.com/dir/i.png" {
		t.Errorf("got %+v; want e.Source != nil and e.Source.Image == \"http://example.com/dir/i.png\"", e.Source)
	}
	if e := atomItem(t, `<id>1</id><source><logo>javascript:x</logo><rights/></source>`); e.Source != nil {
		t.Errorf("got %+v, want %+v", e.Source, nil)
	}
}

func TestGenerator(t *testing.T) {
	for _, c := range []struct{ element, want string }{
		{`<generator uri="/g" version="1.2">Example &amp;amp; Co</generator>`, `{"Example &amp; Co" "http://example.com/g" "1.2"} Example &amp; Co 1.2 (http://example.com/g)`},
		{`<generator uri="javascript:x" version="1">G</generator>`, `{"G" "" "1"} G 1`},
		{`<generator uri="http://g.example/"/>`, `{"" "http://g.example/" ""} http://g.example/`},
		{`<generator/>`, `{"" "" ""} `},
	} {
		g := atomChannel(t, `<title>t</title>`+c.element).Generator
		if got := fmt.Sprintf("{%q %q %q} %s", g.Name, g.URL, g.Version, g); got != c.want {
			t.Errorf("%s: %s, want %s", c.element, got, c.want)
		}
	}
	if g := rssChannel(t, `<generator>https://g.example/?v=1</generator>`).Generator; g != (Generator{Name: "https://g.example/?v=1"}) {
		t.Errorf("got %+v, want %+v", g, (Generator{Name: "https://g.example/?v=1"}))
	}
}

// An entry that has only links is about the first that can be read; one that has only
// rights says nothing.
func TestEntriesOfLinksAlone(t *testing.T) {
	const document = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>t</title>%s</channel></rss>`
	for item, want := range map[string]string{
		`<atom:link rel="license" href="http://l.example/"/><atom:link rel="via" href="http://v.example/"/>`: "http://v.example/",
		`<atom:link rel="related" href="http://r.example/"/><dc:rights>me</dc:rights>`:                       "http://r.example/",
		`<atom:link rel="license" href="http://l.example/"/>`:                                                "none",
		`<atom:link rel="via" href="javascript:x"/>`:                                                         "none",
		`<dc:rights>me</dc:rights>`:                                                                          "none",
		`<title>x</title><atom:link rel="via" href="http://v.example/"/>`:                                    "",
	} {
		f := mustParse(t, fmt.Sprintf(document, "<item>"+item+"</item>"), Options{})
		got := "none"
		if len(f.Entries) > 0 {
			if got = f.Entries[0].Link; got != "" && f.Entries[0].ID != got {
				t.Errorf("%s: the id is %q", item, f.Entries[0].ID)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", item, got, want)
		}
	}
}
