package feedconv

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mmcdole/gofeed/atom"
	"github.com/mmcdole/gofeed/rss"

	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
)

// tidied is a tidied document, also as gofeed reads it.
type tidied struct {
	*tidy.Document
	xml []byte
}

func readTidied(doc []byte, opts Options) (*tidied, error) {
	d, err := tidyXML(doc, opts)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(d.XML())
	return &tidied{d, text}, err
}

// checkTidied fails unless the document is what tidy promises: of bounded depth, with
// names that XML has, text without control characters, and with entries that gofeed finds,
// too. It returns the number of
// entries.
func checkTidied(t testing.TB, d *tidied) int {
	t.Helper()
	for _, n := range append([]*tidy.Node{d.Feed}, d.Entries...) {
		checkNode(t, n, 2)
	}
	entries := 0
	if d.Root == "feed" {
		f, err := (&atom.Parser{}).Parse(bytes.NewReader(d.xml))
		if err != nil {
			t.Fatalf("gofeed: %v\n%.2000q", err, d.xml)
		}
		entries = len(f.Entries)
	} else {
		f, err := (&rss.Parser{}).Parse(bytes.NewReader(d.xml))
		if err != nil {
			t.Fatalf("gofeed: %v\n%.2000q", err, d.xml)
		}
		entries = len(f.Items)
	}
	if entries != len(d.Entries) {
		t.Fatalf("gofeed finds %d entries, tidy %d", entries, len(d.Entries))
	}
	return len(d.Entries)
}

func checkNode(t testing.TB, n *tidy.Node, depth int) {
	t.Helper()
	if depth > tidy.MaxDepth {
		t.Fatalf("an element is more than %d deep", tidy.MaxDepth)
	}
	text := func(s string) {
		if !utf8.ValidString(s) || markup.Clean(s) != s {
			t.Fatalf("control characters in %q", s)
		}
	}
	text(n.Text)
	for _, a := range n.Attrs {
		if !validName(a.Name) {
			t.Fatalf("attribute %q", a.Name)
		}
		text(a.Value)
	}
	for _, c := range n.Children {
		if !validName(c.Name) && (!c.Foreign || c.Name != "") {
			t.Fatalf("element %q", c.Name)
		}
		checkNode(t, c, depth+1)
	}
}

func mustTidy(t testing.TB, doc string, opts Options) *tidied {
	t.Helper()
	d, err := readTidied([]byte(doc), opts)
	if err != nil {
		t.Fatalf("tidyXML: %v\n%.500q", err, doc)
	}
	checkTidied(t, d)
	return d
}

// The parts of documents that tests ask for.
type (
	testElement struct {
		Value    string
		Attrs    map[string]string
		Children map[string][]testElement
	}
	modules map[string]map[string][]testElement
	rssDoc  struct {
		Title, Link, Docs, Version string
		Image                      struct{ URL, Link string }
		Items                      []*testItem
		Extensions                 modules
	}
	testItem struct {
		Title, Description, Link, Comments, Content, PubDate, Author string
		GUID                                                         struct{ Value, IsPermalink string }
		Enclosures                                                   []struct{ URL, Type string }
		Categories                                                   []struct{ Value, Domain string }
		Custom                                                       map[string]string
		Extensions                                                   modules
	}
	atomDoc struct {
		ID, Icon string
		Links    []struct{ Href string }
		Authors  []struct{ Name, URI string }
		Entries  []*testEntry
	}
	testEntry struct {
		ID, Title, Summary, Rights string
		Content                    *struct{ Value, Type, Src string }
		Links                      []struct{ Href string }
		Authors                    []struct{ Name, URI string }
		Categories                 []struct{ Term string }
	}
)

func elementOf(n *tidy.Node) testElement {
	e := testElement{Value: n.Text, Attrs: map[string]string{}, Children: map[string][]testElement{}}
	for _, a := range n.Attrs {
		e.Attrs[a.Name] = a.Value
	}
	for _, c := range n.Children {
		e.Children[c.Name] = append(e.Children[c.Name], elementOf(c))
	}
	return e
}

func modulesOf(n *tidy.Node) modules {
	m := modules{}
	for _, c := range n.Children {
		if c.NS != vocab.None && !c.Foreign {
			prefix := c.NS.Prefix()
			if m[prefix] == nil {
				m[prefix] = map[string][]testElement{}
			}
			m[prefix][c.Name] = append(m[prefix][c.Name], elementOf(c))
		}
	}
	return m
}

func tidyRSS(t testing.TB, doc string, opts Options) (*rssDoc, *tidied) {
	t.Helper()
	d := mustTidy(t, doc, opts)
	text := func(n *tidy.Node, name string) string { return n.Child(name).Value() }
	f := &rssDoc{Title: text(d.Feed, "title"), Link: text(d.Feed, "link"), Docs: text(d.Feed, "docs"), Version: d.Version, Extensions: modulesOf(d.Feed)}
	f.Image.URL, f.Image.Link = text(d.Feed.Child("image"), "url"), text(d.Feed.Child("image"), "link")
	for _, n := range d.Entries {
		i := &testItem{
			Title: text(n, "title"), Description: text(n, "description"), Link: text(n, "link"), Comments: text(n, "comments"), PubDate: text(n, "pubdate"),
			Content: value1(modulesOf(n), "content", "encoded"), Author: text(n, "author"), Custom: map[string]string{}, Extensions: modulesOf(n),
		}
		i.GUID.Value, i.GUID.IsPermalink = text(n, "guid"), n.Child("guid").Attr("ispermalink")
		for _, e := range n.All(vocab.None, "enclosure") {
			i.Enclosures = append(i.Enclosures, struct{ URL, Type string }{e.Attr("url"), e.Attr("type")})
		}
		for _, c := range n.All(vocab.None, "category") {
			i.Categories = append(i.Categories, struct{ Value, Domain string }{c.Text, c.Attr("domain")})
		}
		for _, c := range n.Children {
			i.Custom[c.Name] = c.Text
		}
		f.Items = append(f.Items, i)
	}
	return f, d
}

func tidyAtom(t testing.TB, doc string, opts Options) (*atomDoc, *tidied) {
	t.Helper()
	d := mustTidy(t, doc, opts)
	links := func(n *tidy.Node) (list []struct{ Href string }) {
		for _, l := range n.All(vocab.None, "link") {
			list = append(list, struct{ Href string }{l.Attr("href")})
		}
		return list
	}
	authors := func(n *tidy.Node) (list []struct{ Name, URI string }) {
		for _, a := range n.All(vocab.None, "author") {
			list = append(list, struct{ Name, URI string }{a.Child("name").Value(), a.Child("uri").Value()})
		}
		return list
	}
	f := &atomDoc{ID: d.Feed.Child("id").Value(), Icon: d.Feed.Child("icon").Value(), Links: links(d.Feed), Authors: authors(d.Feed)}
	for _, n := range d.Entries {
		e := &testEntry{
			ID: n.Child("id").Value(), Title: n.Child("title").Value(), Summary: n.Child("summary").Value(), Rights: n.Child("rights").Value(),
			Links: links(n), Authors: authors(n),
		}
		if c := n.Child("content"); c != nil {
			e.Content = &struct{ Value, Type, Src string }{c.Text, c.Attr("type"), c.Attr("src")}
		}
		for _, c := range n.All(vocab.None, "category") {
			e.Categories = append(e.Categories, struct{ Term string }{c.Attr("term")})
		}
		f.Entries = append(f.Entries, e)
	}
	return f, d
}

func wantWarning(t testing.TB, d *tidied, part string) {
	t.Helper()
	for _, w := range d.Warnings {
		if strings.Contains(Warning(w).String(), part) {
			return
		}
	}
	t.Errorf("no warning says %q: %v", part, d.Warnings)
}

func wantClean(t testing.TB, d *tidied) {
	t.Helper()
	if len(d.Warnings) > 0 {
		t.Errorf("warnings for what needs no mending: %v", d.Warnings)
	}
}

func value1(x modules, prefix, name string) string {
	if l := x[prefix][name]; len(l) > 0 {
		return l[0].Value
	}
	return ""
}

// note returns an attribute of an entry: about, lang, or type-NAME, that of a child.
func note(d *tidied, entry int, name string) string {
	n := d.Entries[entry]
	if child, ok := strings.CutPrefix(name, "type-"); ok {
		return n.Child(child).Attr("type")
	}
	return n.AttrNS(vocab.RDF, name) + n.AttrNS(vocab.XML, name)
}

// kept returns the first extension of a name in an entry.
func kept(d *tidied, entry int, namespace, name string) Extension {
	for _, e := range extensions(d.Document, d.Entries[entry].Children) {
		if e.Namespace == namespace && e.Name == name {
			return e
		}
	}
	return Extension{}
}
