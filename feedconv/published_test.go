package feedconv

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// namesIn returns the elements of a document as "namespace name".
func namesIn(t *testing.T, document []byte) (names []string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(document))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if e, ok := token.(xml.StartElement); ok {
			names = append(names, e.Name.Space+" "+e.Name.Local)
		}
	}
}

// TestMarkupKeepsItsNamespaces: other readers see MathML, SVG and content of XML types in their
// namespaces, however they were written in the document that was read.
func TestMarkupKeepsItsNamespaces(t *testing.T) {
	const mathML, svg, xhtml, rdf = "http://www.w3.org/1998/Math/MathML", "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	for _, c := range []struct{ name, content, stored string }{
		{"MathML", `<content type="xhtml"><div xmlns="` + xhtml + `"><p>a <math xmlns="` + mathML + `"><mi>x</mi></math> b</p><i>c</i></div></content>`, `<p>a <math><mi>x</mi></math> b</p><i>c</i>`},
		{"prefixes", `<content type="xhtml"><h:div xmlns:h="` + xhtml + `" xmlns:m="` + mathML + `"><m:math><m:mi>x</m:mi></m:math><h:i>c</h:i></h:div></content>`, `<math><mi>x</mi></math><i>c</i>`},
		{"SVG", `<content type="xhtml"><div xmlns="` + xhtml + `"><svg xmlns="` + svg + `"><linearGradient/><g/></svg><i>c</i></div></content>`, `<svg><linearGradient></linearGradient><g></g></svg><i>c</i>`},
		{"an SVG document", `<content type="image/svg+xml"><s:svg xmlns:s="` + svg + `" xmlns:x="http://www.w3.org/1999/xlink"><s:use x:href="#a" x:title="t"/></s:svg></content>`,
			`<svg xmlns="` + svg + `"><use xmlns:x="http://www.w3.org/1999/xlink" x:href="#a" x:title="t"></use></svg>`},
		{"RDF", `<content type="application/rdf+xml"><r:RDF xmlns:r="` + rdf + `"><r:Description r:about="a"><t xmlns="urn:t">x</t><r:li/></r:Description></r:RDF></content>`,
			`<RDF xmlns="` + rdf + `"><Description xmlns:r="` + rdf + `" r:about="a"><t xmlns="urn:t">x</t><li></li></Description></RDF>`},
		{"no namespace", `<content type="application/xml"><a xmlns=""><b/></a></content>`, `<a xmlns=""><b></b></a>`},
		{"that of the document", `<content type="application/xml"><a>x</a></content>`, `<a>x</a>`},
	} {
		in := `<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><id>1</id><link href="http://e/1"/><title>e</title>` + c.content + `</entry></feed>`
		f := mustParse(t, in, Options{})
		if got := f.Entries[0].Content; got != c.stored {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.stored)
		}
		document, back := roundTrip(t, f, Atom10)
		inside := func(names []string) []string {
			return slices.DeleteFunc(names, func(s string) bool {
				return strings.HasPrefix(s, "http://www.w3.org/2005/Atom ") && !strings.HasSuffix(s, " a")
			})
		}
		if got, want := inside(namesIn(t, document)), inside(namesIn(t, []byte(in))); !slices.Equal(got, want) {
			t.Errorf("%s: got %q\nwant %q in\n%s", c.name, got, want, document)
		}
		if back.Entries[0].Content != c.stored || back.Entries[0].Type != f.Entries[0].Type {
			t.Errorf("%s: read back as %s %s", c.name, back.Entries[0].Type, back.Entries[0].Content)
		}
	}
	f := mustParse(t, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:r="`+rdf+`"><title>t</title><entry><id>1</id><title>e</title><content type="text/xml"><a xmlns="urn:a" xmlns:b="urn:b"><b:c/></a><b:d xmlns:b="urn:e"/><r:li/></content></entry></feed>`, Options{})
	if got, want := f.Entries[0].Content, `<a xmlns="urn:a"><c xmlns="urn:b"></c></a><d xmlns="urn:e"></d><li xmlns="`+rdf+`"></li>`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestUndeclaredPrefixes: markup with a prefix that nothing declares, or with an attribute twice, as
// href and xlink:href become one, is not written as XML.
func TestUndeclaredPrefixes(t *testing.T) {
	for _, content := range []string{`<x:y/>`, `<p x:y="z"/>`, `<p xmlns:x="urn:x"/><x:y/>`, `<svg><use href="a" href="a"/></svg>`, `<math xmlns="a" xmlns="b"/>`, `<svg xmlns="http://www.w3.org/2000/svg" xmlns="a"/>`} {
		for _, kind := range []string{"application/xhtml+xml", "application/xml"} {
			document, _ := roundTrip(t, &Feed{Title: "t", Entries: []Entry{{ID: "1", Content: content, Type: kind}}}, Atom10)
			if !strings.Contains(string(document), `>&lt;`+content[1:5]) {
				t.Errorf("%s as %s:\n%s", content, kind, document)
			}
		}
	}
}

// TestHTMLInSVG: HTML in SVG in HTML is written as HTML, whose readers know its namespace.
func TestHTMLInSVG(t *testing.T) {
	document, _ := roundTrip(t, &Feed{Title: "t", Entries: []Entry{{ID: "1", Content: "<svg><foreignObject><p>a</p></foreignObject></svg>", Type: "application/xhtml+xml"}}}, Atom10)
	if !strings.Contains(string(document), `<content type="html">&lt;svg>&lt;foreignObject>&lt;p>a`) {
		t.Errorf("got\n%s", document)
	}
}

// TestNamespacesAreBounded: long namespaces of many elements do not multiply the document.
func TestNamespacesAreBounded(t *testing.T) {
	in := `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:n="urn:` + strings.Repeat("n", 1000) + `"><title>t</title><entry><id>1</id><content type="text/xml"><r>` +
		strings.Repeat(`<n:a n:b=""/>`, 20_000) + `</r></content></entry></feed>`
	f := mustParse(t, in, Options{})
	if got := len(f.Entries[0].Content); got > 6*len(in)+1<<20 || len(f.Warnings) == 0 {
		t.Errorf("%d bytes of %d, %v", got, len(in), f.Warnings)
	}
}

// TestUntitledEntry: a title that Atom requires has no type if it is empty.
func TestUntitledEntry(t *testing.T) {
	document, _ := roundTrip(t, &Feed{Title: "t", Entries: []Entry{{ID: "1", Content: "a", Source: &Source{ID: "urn:s"}}}}, Atom10)
	if strings.Count(string(document), "<title/>") != 2 {
		t.Errorf("got\n%s", document)
	}
}

// TestSourceHasNoAlternate: readers take each alternate link below an entry for that of the entry.
func TestSourceHasNoAlternate(t *testing.T) {
	document, _ := roundTrip(t, &Feed{Title: "t", Entries: []Entry{{ID: "1", Link: "http://e/1", Source: &Source{Title: "s", URL: "http://s/feed", Link: "http://s/"}}}}, Atom10)
	if s := string(document); strings.Count(s, `rel="alternate"`) != 1 || !strings.Contains(s, `<link rel="self" href="http://s/feed"/>`) {
		t.Errorf("got\n%s", s)
	}
}

// TestRSSForOtherReaders: an item has names in dc:creator, at most one author, an address, and
// nothing that a reader without namespaces takes for its author or link.
func TestRSSForOtherReaders(t *testing.T) {
	ann := Person{"Ann", "ann@example.org", "http://ann.example/"}
	links := []Link{{Rel: "via", URL: "http://v.example/"}, {Rel: "related", URL: "http://r.example/"}, {Rel: "license", URL: "http://l.example/"}}
	for _, c := range []struct {
		authors    []Person
		want, back string
	}{
		{[]Person{ann}, "author=ann@example.org (Ann) creator=Ann", "Ann <ann@example.org>"},
		{[]Person{{Name: "Bob"}, ann}, "creator=Bob creator=Ann", "Bob, Ann"},
		{[]Person{ann, {Name: "Bob", Email: "bob@example.org"}}, "author=ann@example.org (Ann) creator=Ann creator=Bob", "Ann <ann@example.org>, Bob"},
		{[]Person{{Email: "ann@example.org"}, {Name: "Bob"}}, "author=ann@example.org creator=ann@example.org creator=Bob", "<ann@example.org>, Bob"},
		{[]Person{{URL: "http://ann.example/"}}, "creator=http://ann.example/", "http://ann.example/"},
		{[]Person{{Name: "Bob", URL: "http://bob.example/"}}, "creator=Bob", "Bob"},
	} {
		f := &Feed{Title: "t", Authors: []Person{ann}, Entries: []Entry{{ID: "1", Link: "http://e/1", Title: "e", Authors: c.authors, Contributors: []Person{ann}, Links: links}}}
		document, back := roundTrip(t, f, RSS20)
		var doc struct {
			Channel struct {
				Editor string `xml:"managingEditor"`
				Item   struct {
					Links []string `xml:"link"`
					Rest  []struct {
						XMLName xml.Name
						Text    string `xml:",chardata"`
					} `xml:",any"`
				} `xml:"item"`
			} `xml:"channel"`
		}
		if err := xml.Unmarshal(document, &doc); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range doc.Channel.Item.Rest {
			if e.XMLName.Local == "author" || e.XMLName.Local == "creator" {
				got = append(got, e.XMLName.Local+"="+e.Text)
			}
		}
		if got := strings.Join(got, " "); got != c.want || doc.Channel.Editor != "ann@example.org (Ann)" {
			t.Errorf("%v: got %s, %s; want %s", c.authors, got, doc.Channel.Editor, c.want)
		}
		if strings.Join(doc.Channel.Item.Links, " ") != "http://e/1" {
			t.Errorf("links %q in\n%s", doc.Channel.Item.Links, document)
		}
		var read []string
		for _, p := range back.Entries[0].Authors {
			read = append(read, p.String())
		}
		if got := strings.Join(read, ", "); got != c.back {
			t.Errorf("%v: read back as %s, want %s", c.authors, got, c.back)
		}
	}
}
