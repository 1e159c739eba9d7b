package opml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
)

func parse(t *testing.T, s string) *Document {
	t.Helper()
	d, err := Parse([]byte(s))
	if err != nil {
		t.Fatalf("Parse(%q): %v", s, err)
	}
	return d
}

func same(s string) string { return s }

func TestParseTolerates(t *testing.T) {
	one := []Feed{{URL: "http://a.example/f?x=1&copy=2", Title: "A & B"}}
	for name, doc := range map[string]string{
		"plain":               `<opml version="2.0"><head/><body><outline text="A &amp; B" xmlUrl="http://a.example/f?x=1&amp;copy=2"/></body></opml>`,
		"wrong case":          `<OPML><HEAD></HEAD><BODY><Outline TEXT="A &amp; B" XMLURL="http://a.example/f?x=1&amp;copy=2"/></BODY></OPML>`,
		"no head":             `<opml><body><outline text="A &amp; B" xmlurl="http://a.example/f?x=1&amp;copy=2"></outline></body></opml>`,
		"no body":             `<opml><outline text="A &amp; B" xmlUrl="http://a.example/f?x=1&amp;copy=2"/></opml>`,
		"outline alone":       `<outline text="A &amp; B" xmlUrl="http://a.example/f?x=1&amp;copy=2"/>`,
		"bare ampersand":      `<opml><body><outline text="A & B" xmlUrl="http://a.example/f?x=1&copy=2"/></body></opml>`,
		"unquoted":            `<opml><body><outline title='A &amp; B' xmlUrl=http://a.example/f?x=1&copy=2 /></body></opml>`,
		"HTML entity":         `<opml><body><outline text="A&nbsp;&#38; B" xmlUrl="http://a.example/f?x=1&#38;copy=2"/></body></opml>`,
		"truncated":           `<opml><head><title>x</title></head><body><outline text="A &amp; B" xmlUrl="http://a.example/f?x=1&amp;copy=2"`,
		"unclosed head":       `<opml><head><title>x</title><body><outline text="A &amp; B" xmlUrl="http://a.example/f?x=1&amp;copy=2"/></body></opml>`,
		"stray end":           `<opml></x></outline><body></b><outline text="A &amp; B" xmlUrl="http://a.example/f?x=1&amp;copy=2"/></body></opml>`,
		"doctype":             "\n<!DOCTYPE opml [ <!ENTITY x \"y\"> ]><opml><body><outline text=\"A &amp; B\" xmlUrl=\"http://a.example/f?x=1&amp;copy=2\"/></body></opml>",
		"BOM, folded text":    "\xef\xbb\xbf<opml><body><outline text=\"A\n  &amp; B\" xmlUrl=\" http://a.example/f?x=1&amp;copy=2 \"/></body></opml>",
		"control characters":  "<opml><body><outline text=\"A \x08&amp; B&#8;\" xmlUrl=\"http://a.example/f?x=1&amp;copy=2\"/></body></opml>",
		"url with a type":     `<opml><body><outline type="rss" text="A &amp; B" url="http://a.example/f?x=1&amp;copy=2"/></body></opml>`,
		"less-than in a text": `<opml><head><title>a < b</title></head><body><outline text="A &amp; B" xmlUrl="http://a.example/f?x=1&amp;copy=2"/></body></opml>`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, doc).Feeds(); !reflect.DeepEqual(got, one) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestCharsets(t *testing.T) {
	utf16 := func(s string) string {
		var b strings.Builder
		b.WriteString("\xff\xfe")
		for _, r := range s {
			b.WriteByte(byte(r))
			b.WriteByte(byte(r >> 8))
		}
		return b.String()
	}
	for name, doc := range map[string]string{
		"utf-8":        `<?xml version="1.0"?><opml><body><outline text="Příliš" xmlUrl="u"/></body></opml>`,
		"lying label":  `<?xml version="1.0" encoding="ISO-8859-1"?><opml><body><outline text="Příliš" xmlUrl="u"/></body></opml>`,
		"iso-8859-2":   "<?xml version=\"1.0\" encoding=\"ISO-8859-2\"?><opml><body><outline text=\"P\xf8\xedli\xb9\" xmlUrl=\"u\"/></body></opml>",
		"utf-16":       utf16(`<?xml version="1.0" encoding="UTF-16"?><opml><body><outline text="Příliš" xmlUrl="u"/></body></opml>`),
		"numeric refs": `<opml><body><outline text="P&#345;&#xed;li&scaron;" xmlUrl="u"/></body></opml>`,
	} {
		if got := parse(t, doc).Feeds(); len(got) != 1 || got[0].Title != "Příliš" {
			t.Errorf("got %s: %+v; want len(got) == 1 and got[0].Title == \"Příliš\"", name, got)
		}
	}
	if got := parse(t, "<opml><body><outline text=\"caf\xe9 \x93x\x94\" xmlUrl=\"u\"/></body></opml>").Feeds(); got[0].Title != "café “x”" {
		t.Errorf("undeclared windows-1252: %q", got[0].Title)
	}
}

func TestParseRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                      "no <opml>",
		"<html><body>x</body></html>":           "begins with <html>",
		"plain":                                 "no <opml>",
		strings.Repeat("<outline>", MaxDepth+9): "deeper",
		"<opml>" + strings.Repeat("<a/>", MaxElements+1): "more than",
	} {
		if _, err := Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", doc, err, want)
		}
	}
	if _, err := Parse(make([]byte, MaxBytes+1)); err == nil {
		t.Error("a document over the limit was read")
	}
}

func TestFoldersAreCategories(t *testing.T) {
	d := parse(t, `<opml><body>
		<outline text="Tech"><outline text="Go"><outline text="one" xmlUrl="http://one/"/></outline>
			<outline text="two" xmlUrl="http://two/"/></outline>
		<outline title="TV/Film"><outline text="one again" xmlUrl="http://one/"/></outline>
		<outline text="three" xmlUrl="http://three/"><outline text="four" xmlUrl="http://four/"/></outline>
		</body></opml>`)
	var got []string
	for _, f := range d.Feeds() {
		got = append(got, fmt.Sprint(f.URL, f.Title, f.Categories))
	}
	want := []string{`http://one/one[Tech/Go TV\/Film]`, "http://two/two[Tech]", "http://three/three[]", "http://four/four[]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestPathRoundTrip(t *testing.T) {
	check := func(names []string) bool {
		var want []string
		for _, n := range names {
			if n = fold(n); n != "" {
				want = append(want, n)
			}
		}
		got := SplitPath(JoinPath(names))
		return len(got) == 0 && len(want) == 0 || reflect.DeepEqual(got, want)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	if !check([]string{`a/b\`, `\/`, "c"}) {
		t.Error(SplitPath(JoinPath([]string{`a/b\`, `\/`, "c"})))
	}
}

const odd = `<?xml version="1.0" encoding="UTF-8"?>
<?xml-stylesheet href="x.xsl"?>
<opml version="1.1" xmlns:x="http://x.example/">
  <head>
    <title>Mine</title>
    <x:sync when="now">deep<x:er/> text</x:sync>
    <windowTop>61</windowTop>
  </head>
  <body>
    <!-- kept -->
    <outline text="a note"/>
    <outline text="F &amp; G" x:open="yes">
      <outline text="one" title="one" myAttr="1 &lt; 2&#10;" type="rss" xmlUrl="http://one/">
        <x:note>hi</x:note>
      </outline>
      <outline text="web" type="link" url="http://link/"/>
    </outline>
    <outline text="two" title="two" type="rss" xmlUrl="http://two/"/>
  </body>
  <x:tail/>
</opml>
`

func TestUnknownPartsRoundTrip(t *testing.T) {
	d := parse(t, odd)
	if got := string(d.Bytes()); got != odd {
		t.Errorf("written:\n%s", got)
	}
	if got := string(d.Update(d.Feeds(), same).Bytes()); got != odd {
		t.Errorf("after Update:\n%s", got)
	}
	d.Merge(parse(t, odd))
	if got := string(d.Bytes()); got != odd {
		t.Errorf("merged with itself:\n%s", got)
	}
	e := New("Mine")
	e.Merge(parse(t, odd))
	for _, part := range []string{"<x:sync when=\"now\">deep<x:er/> text</x:sync>", "myAttr=\"1 &lt; 2&#10;\"", "a note", "<x:tail/>", "x:open", "xmlns:x", "<!-- kept -->", "xml-stylesheet"} {
		if !strings.Contains(string(e.Bytes()), part) {
			t.Errorf("merged into an empty document, it lacks %s:\n%s", part, e.Bytes())
		}
	}
}

func TestUpdate(t *testing.T) {
	d := parse(t, odd)
	got := string(d.Update([]Feed{
		{URL: "http://one/", Title: "Uno", Categories: []string{"Other/Deep"}},
		{URL: "http://three/", Title: "three", HTMLURL: "http://three/page", Categories: []string{"F & G"}},
		{URL: "http://moved/", ID: "http://two/", Title: "two"},
	}, same).Bytes())
	want := `  <body>
    <!-- kept -->
    <outline text="a note"/>
    <outline text="F &amp; G" x:open="yes">
      <outline text="web" type="link" url="http://link/"/>
      <outline text="three" title="three" type="rss" xmlUrl="http://three/" htmlUrl="http://three/page"/>
    </outline>
    <outline text="two" title="two" type="rss" xmlUrl="http://moved/"/>
    <outline text="Other">
      <outline text="Deep">
        <outline text="Uno" title="Uno" myAttr="1 &lt; 2&#10;" type="rss" xmlUrl="http://one/">
          <x:note>hi</x:note>
        </outline>
      </outline>
    </outline>
  </body>
`
	if !strings.Contains(got, want) {
		t.Errorf("got:\n%s", got)
	}
	if got := string(New("T").Update([]Feed{{URL: "u"}}, same).Bytes()); !strings.Contains(got, `<outline text="u" title="u" type="rss" xmlUrl="u"/>`) {
		t.Errorf("new:\n%s", got)
	}
}

// gPodder writes the description of a podcast as text, and its name as title.
func TestGPodder(t *testing.T) {
	const list = `<opml version="2.0"><head><title>%s</title></head><body><outline title="My show" text="A long description" xmlUrl="http://a/" type="rss"/><outline text="Only text" xmlUrl="http://b/"/></body></opml>`
	for head, want := range map[string]string{"gPodder subscriptions": "My show", "Podcasts": "A long description"} {
		got := parse(t, fmt.Sprintf(list, head)).Feeds()
		if len(got) != 2 || got[0].Title != want || got[1].Title != "Only text" {
			t.Errorf("%s: %+v", head, got)
		}
	}
	// The feed's own name replaces the description, however the lists were merged.
	d := parse(t, fmt.Sprintf(list, "Podcasts")).Update([]Feed{{URL: "http://a/", Name: "My show"}}, same)
	if got := string(d.Bytes()); !strings.Contains(got, `<outline title="My show" text="My show" xmlUrl="http://a/" type="rss"/>`) {
		t.Error(got)
	}
}

// Pages are those of feeds whose own URL is missing.
func TestPages(t *testing.T) {
	d := parse(t, `<opml><body><outline text="F"><outline type="rss" htmlUrl=" http://a/ "/><outline type="Atom" htmlUrl="http://b/" text="B"/></outline>
		<outline type="rss" htmlUrl="http://a/"/><outline type="rss" htmlUrl="http://c/" xmlUrl="http://c/feed"/><outline type="link" htmlUrl="http://d/" url="http://d/"/><outline text="a folder" htmlUrl="http://e/"><outline text="x" xmlUrl="http://x/"/></outline></body></opml>`)
	if got := strings.Join(d.Pages(), " "); got != "http://a/ http://b/" {
		t.Error(got)
	}
}

func TestMerge(t *testing.T) {
	d := parse(t, odd)
	d.Merge(parse(t, `<opml foo="bar"><head><title>Other</title><extra>1</extra></head><body>
		<outline text="F &amp; G"><outline text="one" xmlUrl="http://one/" more="m"/><outline text="five" xmlUrl="http://five/"/></outline></body></opml>`))
	got := string(d.Bytes())
	for _, part := range []string{`foo="bar"`, "<title>Mine</title>", "<extra>1</extra>", `more="m"`, "five"} {
		if !strings.Contains(got, part) {
			t.Errorf("it lacks %s:\n%s", part, got)
		}
	}
	if n := strings.Count(got, `xmlUrl="http://one/"`); n != 1 {
		t.Errorf("one stands there %d times:\n%s", n, got)
	}
}

// TestSubs reads a real list and compares it with an independent count.
func TestSubs(t *testing.T) {
	data, err := os.ReadFile(filepath.FromSlash("../../../../shared/feeds/Subs.opml"))
	if err != nil {
		t.Skip("the sample documents are not here")
	}
	count := 0
	for dec := xml.NewDecoder(strings.NewReader(string(data))); ; {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "outline" {
			for _, a := range e.Attr {
				if a.Name.Local == "xmlUrl" {
					count++
				}
			}
		}
	}
	d := parse(t, string(data))
	if got := len(d.Feeds()); got != count || got == 0 {
		t.Errorf("%d feeds, want %d", got, count)
	}
	again := parse(t, string(d.Bytes()))
	if !reflect.DeepEqual(again.Feeds(), d.Feeds()) {
		t.Error("written and read again, it differs")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(odd))
	f.Add([]byte(`<OPML><outline text="a & b" xmlUrl=http://x/ <outline></x></OPML>`))
	f.Add([]byte("\xff\xfe<\x00o\x00"))
	f.Add([]byte("<opml><![CDATA[x]]><!-- -- --><?pi x?><!DOCTYPE x [<!ENTITY a 'b'>]>&amp;&nbsp;&#x0;"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data)
		if err != nil {
			return
		}
		out := d.Bytes()
		// The output is XML, and reads as the same list.
		for dec := xml.NewDecoder(strings.NewReader(string(out))); ; {
			if _, err := dec.RawToken(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %q", err, out)
			}
		}
		again, err := Parse(out)
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		if !reflect.DeepEqual(d.Feeds(), again.Feeds()) {
			t.Fatalf("%+v, then %+v", d.Feeds(), again.Feeds())
		}
		if twice := again.Bytes(); string(twice) != string(out) {
			t.Fatalf("written %q, then %q", out, twice)
		}
		d.Update(d.Feeds(), same)
	})
}

// TestOddCharacters: titles may contain characters that XML cannot represent.
func TestOddCharacters(t *testing.T) {
	odd := "a\x1b[31m<&>\"\x02\x00\xff\uFFFE\uFFFF\u0085\u202E]]>\r\U0001F600"
	d := New(odd).Update([]Feed{{URL: "http://a.example/", Title: odd, Categories: []string{JoinPath([]string{odd})}}}, same)
	out := d.Bytes()
	for dec := xml.NewDecoder(bytes.NewReader(out)); ; {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%q", err, out)
		}
	}
	again := parse(t, string(out))
	if got, want := again.Feeds()[0].Title, "a[31m<&>\"\uFFFD \u202E]]> \U0001F600"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !bytes.Equal(again.Bytes(), out) {
		t.Errorf("written again\n%q\nnot\n%q", again.Bytes(), out)
	}
}
