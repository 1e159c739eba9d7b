package feedconv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/internal/text/markup"
)

const (
	sse     = "http://www.microsoft.com/schemas/rss/sse"
	podcast = "https://podcastindex.org/namespace/1.0"
)

// Simple Sharing and podcasts: what stands in the document is there, in its
// order, however its namespaces are written.
func TestExtensions(t *testing.T) {
	const in = `<rss version="2.0" xmlns:s="HTTP://www.Microsoft.com/schemas/rss/sse/" xmlns:podcast="https://podcastindex.org/namespace/1.0" xmlns:gd="http://schemas.google.com/g/2005">
<channel gd:kind="x"><title>t</title>
<s:sharing since="Tue, 1 Nov 2004 09:43:33 GMT" version="0.91"><s:related link="all.xml" href="all.xml" type="complete"/></s:sharing>
<item gd:etag="&quot;1&#10;2&quot;"><title>1</title><podcast:person role="host"> Ann &amp; <![CDATA[<Bob>]]> </podcast:person>
<s:sync id="0a79" version="2"><s:history when="w" by="b"/>
 <s:conflicts><item><title>old</title><description>a</description></item></s:conflicts></s:sync>
<podcast:person>Cy</podcast:person>
<x:mixed xmlns:x="urn:x" xml:lang="en">one <x:b>two</x:b> <x:i/>three</x:mixed><dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">D</dc:creator></item>
<item><title>2</title></item></channel></rss>`
	f := mustParse(t, in, goldenOptions)
	if len(f.Warnings) > 0 || len(f.Entries) != 2 || f.Entries[0].Title != "1" {
		t.Fatalf("got %+v; want len(f.Warnings) == 0 and len(f.Entries) == 2 and f.Entries[0].Title == \"1\"", f)
	}
	wantFeed := []Extension{{Namespace: sse, Name: "sharing", Attributes: []Attribute{{"", "since", "Tue, 1 Nov 2004 09:43:33 GMT"}, {"", "version", "0.91"}},
		Children: []Extension{{Namespace: sse, Name: "related", Attributes: []Attribute{{"", "link", "all.xml"}, {"", "href", "http://example.com/dir/all.xml"}, {"", "type", "complete"}}}}}}
	if !reflect.DeepEqual(f.Extensions, wantFeed) || !reflect.DeepEqual(f.Attributes, []Attribute{{"http://schemas.google.com/g/2005", "kind", "x"}}) {
		t.Errorf("feed: %+v %+v", f.Attributes, f.Extensions)
	}
	want := []Extension{
		{Namespace: podcast, Name: "person", Attributes: []Attribute{{"", "role", "host"}}, Text: "Ann & <Bob>"},
		{Namespace: sse, Name: "sync", Attributes: []Attribute{{"", "id", "0a79"}, {"", "version", "2"}}, Children: []Extension{
			{Namespace: sse, Name: "history", Attributes: []Attribute{{"", "when", "w"}, {"", "by", "b"}}},
			{Namespace: sse, Name: "conflicts", Children: []Extension{{Name: "item", Children: []Extension{{Name: "title", Text: "old"}, {Name: "description", Text: "a"}}}}},
		}},
		{Namespace: podcast, Name: "person", Text: "Cy"},
		{Namespace: "urn:x", Name: "mixed", Attributes: []Attribute{{"http://www.w3.org/XML/1998/namespace", "lang", "en"}}, Children: []Extension{
			{Text: "one "}, {Namespace: "urn:x", Name: "b", Text: "two"}, {Text: " "}, {Namespace: "urn:x", Name: "i"}, {Text: "three"}}},
	}
	if !reflect.DeepEqual(f.Entries[0].Extensions, want) {
		t.Errorf("entry: %+v", f.Entries[0].Extensions)
	}
	if !reflect.DeepEqual(f.Entries[0].Attributes, []Attribute{{"http://schemas.google.com/g/2005", "etag", "\"1\n2\""}}) || f.Entries[1].Extensions != nil {
		t.Errorf("attributes: %+v", f.Entries[0].Attributes)
	}
	for _, format := range encodings {
		document, back := roundTrip(t, f, format)
		if !reflect.DeepEqual(back.Extensions, f.Extensions) || !reflect.DeepEqual(back.Attributes, f.Attributes) ||
			!reflect.DeepEqual(back.Entries[0].Extensions, want) || !reflect.DeepEqual(back.Entries[0].Attributes, f.Entries[0].Attributes) {
			t.Errorf("%s:\n%s\n%+v", format, document, back.Entries[0].Extensions)
		}
	}
}

// An extension that passes a limit is left out whole, with a warning.
func TestExtensionLimits(t *testing.T) {
	for name, test := range map[string]struct{ in, limit string }{
		"count": {strings.Repeat("<x:a/>", tidy.MaxExtensions) + "<x:late/>", fmt.Sprint(tidy.MaxExtensions)},
		"bytes": {"<x:a/><x:late><x:b>" + strings.Repeat("x", 1<<20) + "</x:b></x:late>", fmt.Sprint(1 << 20)},
		"depth": {"<x:a/><x:late>" + strings.Repeat("<x:b>", tidy.MaxExtensionDepth) + strings.Repeat("</x:b>", tidy.MaxExtensionDepth) + "</x:late>", fmt.Sprint(tidy.MaxExtensionDepth)},
	} {
		t.Run(name, func(t *testing.T) {
			f := mustParse(t, `<rss xmlns:x="urn:x"><channel><title>t</title><item><title>1</title>`+test.in+`<guid>g</guid></item><item><guid>2</guid><x:a/></item></channel></rss>`, Options{})
			if len(f.Entries) != 2 || f.Entries[0].ID != "g" || len(f.Entries[1].Extensions) != 1 || len(f.Entries[0].Extensions) == 0 {
				t.Fatalf("%d entries", len(f.Entries))
			}
			for _, e := range f.Entries[0].Extensions {
				if e.Name != "a" {
					t.Errorf("%s was kept", e.Name)
				}
			}
			if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, test.limit) {
				t.Errorf("warnings %v", f.Warnings)
			}
		})
	}
}

// Extensions that a program made are written so that they are read as they
// were, or refused.
func TestEncodeMadeExtensions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 / bombScale {
		f := &Feed{Title: "t", Link: "http://e/", Extensions: madeExtensions(r, 0), Entries: []Entry{{ID: "1", Title: "x", Extensions: madeExtensions(r, 0)}}}
		if r.IntN(2) == 0 {
			f.Entries[0].Attributes = []Attribute{{"urn:a", "a", "\n<&>\"'\t]]>"}}
		}
		for _, format := range encodings {
			document, back := roundTrip(t, f, format)
			if format != JSONFeed {
				checkWellFormed(t, document)
			}
			if got, want := fmt.Sprintf("%+v", []any{back.Extensions, back.Entries[0].Extensions, back.Entries[0].Attributes}),
				fmt.Sprintf("%+v", []any{f.Extensions, f.Entries[0].Extensions, f.Entries[0].Attributes}); got != want {
				t.Fatalf("%s:\n got %s\nwant %s\n%s", format, got, want, document)
			}
		}
	}
	for name, f := range map[string]*Feed{
		"name":                        {Extensions: []Extension{{Namespace: "urn:x", Name: "a b"}}},
		"attribute":                   {Extensions: []Extension{{Namespace: "urn:x", Name: "a", Attributes: []Attribute{{"", "1", ""}}}}},
		"no namespace":                {Extensions: []Extension{{Name: "title", Text: "evil"}}},
		"no namespace, in an entry":   {Entries: []Entry{{Extensions: []Extension{{Name: "title", Text: "evil"}}}}},
		"an attribute without a name": {Attributes: []Attribute{{"", "x", ""}}},
	} {
		var b bytes.Buffer
		if err := errors.Join(EncodeAtom(&b, f), EncodeRSS(&b, f)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// A field says it; an extension of the same name does not override it.
	for _, x := range []Extension{
		{Namespace: "http://purl.org/dc/elements/1.1/", Name: "creator", Text: "evil"},
		{Namespace: "http://www.w3.org/2005/Atom", Name: "title", Text: "evil"},
		{Namespace: "http://search.yahoo.com/mrss/", Name: "content", Attributes: []Attribute{{"", "url", "http://evil/"}}},
	} {
		f := &Feed{Title: "t", Entries: []Entry{{ID: "1", Extensions: []Extension{x}}}}
		for _, format := range []Format{Atom10, RSS20} {
			if document, back := roundTrip(t, f, format); bytes.Contains(document, []byte("evil")) || back.Entries[0].Authors != nil {
				t.Errorf("got %s; want !bytes.Contains(document, []byte(\"evil\")) and back.Entries[0].Authors == nil", document)
			}
		}
	}
}

func madeExtensions(r *rand.Rand, depth int) []Extension {
	spaces := []string{"urn:x", sse, podcast, "http://www.itunes.com/dtds/podcast-1.0.dtd", "urn:\"<&>'", "http://purl.org/rss/1.0/modules/slash/"}
	var list []Extension
	for range r.IntN(5) {
		e := Extension{Namespace: spaces[r.IntN(len(spaces))], Name: []string{"a", "B-2", "_c.d"}[r.IntN(3)]}
		if depth > 0 && r.IntN(4) == 0 {
			e.Namespace = ""
		}
		for i := range r.IntN(3) {
			a := Attribute{Name: fmt.Sprint("a", i), Value: randomText(r, markup.TypePlain)}
			if r.IntN(3) == 0 {
				a.Namespace = spaces[r.IntN(len(spaces))]
			}
			e.Attributes = append(e.Attributes, a)
		}
		if depth < 4 {
			e.Children = madeExtensions(r, depth+1)
		}
		if len(e.Children) == 0 {
			e.Text = strings.TrimSpace(randomText(r, markup.TypePlain))
		} else if r.IntN(3) == 0 {
			e.Children = append([]Extension{{Text: "text "}}, e.Children...)
		}
		list = append(list, e)
	}
	return list
}

// Every extension of real documents survives.
func TestExtensionsOfRealDocuments(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedFeeds, "*"))
	files = append(files, goldenDocuments(t)...)
	found := 0
	for _, name := range files {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseBytes(document, goldenOptions)
		if err != nil {
			continue
		}
		format := RSS20
		if f.Format == Atom10 || f.Format == Atom03 {
			format = Atom10
		}
		_, back := roundTrip(t, f, format)
		if !reflect.DeepEqual(back.Extensions, f.Extensions) {
			t.Errorf("%s: %+v, was %+v", name, back.Extensions, f.Extensions)
		}
		for i := range f.Entries {
			found += len(f.Entries[i].Extensions)
			if !reflect.DeepEqual(back.Entries[i].Extensions, f.Entries[i].Extensions) {
				t.Errorf("%s, entry %d: %+v, was %+v", name, i, back.Entries[i].Extensions, f.Entries[i].Extensions)
			}
		}
	}
	if found == 0 {
		t.Error("no document has extensions")
	}
}
