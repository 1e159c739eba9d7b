package feedconv

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/lektordir/lektor/feedconv/internal/rawjson"
	"github.com/lektordir/lektor/internal/text/markup"
)

func TestParseReader(t *testing.T) {
	document := `<rss version="2.0"><channel><title>t</title><item><title>1</title></item></channel></rss>`
	f, err := Parse(iotest.OneByteReader(strings.NewReader(document)), Options{})
	if err != nil || len(f.Entries) != 1 || f.Title != "t" {
		t.Errorf("got %+v, %v", f, err)
	}
	broken := errors.New("broken")
	if _, err := Parse(iotest.ErrReader(broken), Options{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestParseDoesNotChangeItsInput(t *testing.T) {
	for _, name := range goldenDocuments(t) {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(document)
		ParseBytes(document, goldenOptions)
		if !bytes.Equal(document, before) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestLimits(t *testing.T) {
	var limit *LimitError
	document := []byte(`<rss version="2.0"><channel><title>t</title><item><guid>1</guid></item><item><guid>2</guid></item><item><guid>3</guid></item></channel></rss>`)
	for name, b := range map[string][]byte{"plain": document, "gzip": zipped(t, document), "json": []byte(`{"items": [` + strings.Repeat(" ", 100) + `]}`)} {
		if _, err := ParseBytes(b, Options{MaxBytes: 50}); !errors.As(err, &limit) || limit.Max != 50 {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Parse(io.MultiReader(bytes.NewReader(document), iotest.ErrReader(errors.New("read on"))), Options{MaxBytes: 50}); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
	for name, in := range map[string]string{
		"rss":         string(document),
		"atom":        `<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><id>1</id></entry><entry><id>2</id></entry><entry><id>3</id></entry></feed>`,
		"json":        `{"items": [{"id": 1}, {"id": 2}, {"id": 3}]}`,
		"rss in json": `{"rss": {"channel": {"item": [{"guid": 1}, {"guid": 2}, {"guid": 3}]}}}`,
	} {
		f := mustParse(t, in, Options{MaxEntries: 2})
		if len(f.Entries) != 2 || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, "2 entries") || f.Warnings[0].Limit != "MaxEntries" {
			t.Errorf("%s: %d entries, %v", name, len(f.Entries), f.Warnings)
		}
		if f := mustParse(t, in, Options{MaxEntries: 3}); len(f.Entries) != 3 || len(f.Warnings) != 0 {
			t.Errorf("%s: %d entries, %v", name, len(f.Entries), f.Warnings)
		}
	}
}

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestNotFeeds(t *testing.T) {
	for _, test := range []struct {
		in   string
		what string
		html bool
	}{
		{"", "empty", false}, {" \n\t", "empty", false}, {"\ufeff", "empty", false},
		{"<!DOCTYPE html><html><head><title>A &amp; B</title></head></html>", "HTML", true},
		{"<HTML><BODY>x</BODY></HTML>", "HTML", true},
		{"plain text", "", false},
		{"<opml version='1.0'><body/></opml>", "opml", false},
		{`{"error": 1}`, "JSON, but no feed", false}, {`{}`, "JSON, but no feed", false}, {`[]`, "JSON, but no feed", false},
		{`{"items": {}}`, "JSON, but no feed", false}, {`{"rss": 5}`, "JSON, but no feed", false},
		{`{not json`, "malformed JSON", false},
		{`{"items": [{"id": 1`, "cut off", false}, {"<rss version='2.0'><channel><title>t", "cut off", false},
		{"<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title>", "cut off", false}, {"<rss version='2.0'/>", "", false}, {"<rss></rss>", "", false}, {"<feed/>", "", false},
	} {
		f, err := ParseBytes([]byte(test.in), Options{})
		var notFeed *NotFeedError
		if !errors.As(err, &notFeed) || !strings.Contains(strings.ToLower(notFeed.What), strings.ToLower(test.what)) || notFeed.HTML != test.html {
			t.Errorf("%q: got %+v, %v", test.in, f, err)
		}
	}
}

// A real, empty feed is no error.
func TestEmptyFeeds(t *testing.T) {
	for _, in := range []string{
		`<rss version="2.0"><channel><title>t</title></channel></rss>`,
		`<rss version="2.0"><channel></channel></rss>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title></feed>`,
		`{"version": "https://jsonfeed.org/version/1", "items": []}`, `{"items": []}`, `{"version": "https://jsonfeed.org/version/1"}`,
		`{"rss": {"channel": {"title": "t"}}}`, `{"type": "OrderedCollection", "totalItems": 0}`,
	} {
		if f := mustParse(t, in, Options{}); len(f.Entries) != 0 || f.Truncated || len(f.Warnings) != 0 {
			t.Errorf("%s: got %+v; want len(f.Entries) == 0 and !f.Truncated and len(f.Warnings) == 0", in, f)
		}
	}
}

// allocated runs f and returns the number of bytes allocated: an upper bound of
// what the heap held at any time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Documents made to cost much: what they make the parser allocate is a small
// multiple of their size.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for seconds")
	}
	const size = 4 << 20 / bombScale
	fill := func(before, piece, after string) string {
		return before + strings.Repeat(piece, (size-len(before)-len(after))/len(piece)) + after
	}
	for name, in := range map[string]string{
		"nested arrays":            fill(`{"items": `, "[", ""),
		"nested arrays, closed":    fill(fill(`{"items": `, "[", "")[:size/2], "]", "}"),
		"nested objects":           fill(`{"items": [`, `{"a":`, ""),
		"nested channels":          fill(`{"rss": `, `{"channel":`, ""),
		"array of numbers":         fill(`{"items": [`, "0,", "0]}"),
		"items without fields":     fill(`{"items": [`, "{},", "{}]}"),
		"many fields":              fill(`{"items": [], "x": {`, `"a":0,`, `"b":0}}`),
		"many titles":              fill(`{"items": [{`, `"title":"a",`, `"b":0}]}`),
		"many tags":                fill(`{"items": [{"tags": [`, `"a",`, `""]}]}`),
		"many authors":             fill(`{"items": [{"authors": [`, `"a",`, `""]}]}`),
		"many attachments":         fill(`{"items": [{"attachments": [`, `{"url":"a"},`, `""]}]}`),
		"many hubs":                fill(`{"hubs": [`, `{"url":"a"},`, `""], "items": []}`),
		"many categories":          fill(`{"rss": {"channel": {"item": {"category": [`, `"a",`, `""]}}}}`),
		"one string":               fill(`{"items": [{"content_html": "`, "a", `"}]}`),
		"escapes":                  fill(`{"items": [{"content_html": "`, `\u0041`, `"}]}`),
		"backslashes":              fill(`{"items": [{"content_html": "`, `\`, ``),
		"quotes":                   fill(`{"items": [`, `"`, ``),
		"relative URLs":            fill(`{"items": [{"content_html": "`, `<a href=x>`, `"}]}`),
		"nested activities":        fill(`{"type": "Collection", "items": [`, `{"object":`, ``),
		"nested urls":              fill(`{"type": "Collection", "items": [{"url":`, `{"url":`, ``),
		"many urls":                fill(`{"type": "Collection", "items": [{"url":[`, `{"href":"a"},`, `{}]}]}`),
		"colons":                   fill(`{`, `"":`, ``),
		"braces":                   fill(`{`, `}{`, ``),
		"long key":                 fill(`{"`, `a`, `":0}`),
		"many categories in RSS":   fill(`<rss version="2.0"><channel><title>t</title><item>`, `<category>a</category>`, `</item></channel></rss>`),
		"many items in RSS":        fill(`<rss version="2.0"><channel><title>t</title>`, `<item/>`, `</channel></rss>`),
		"entries with nothing":     fill(`<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>`, `<entry/>`, `</feed>`),
		"text in one element":      fill(`<rss version="2.0"><channel><title>t</title><item><title>`, `a `, `</title></item></channel></rss>`),
		"escaped tags in a title":  fill(`<rss version="2.0"><channel><title>t</title><item><title>`, `&lt;a `, `</title></item></channel></rss>`),
		"pairs in a title":         fill(`<rss version="2.0"><channel><title>t</title><item><title>`, `&lt;a&gt;&lt;/a&gt;`, `</title></item></channel></rss>`),
		"images in a title":        fill(`<rss version="2.0"><channel><title>t</title><item><title>`, `&lt;img src=x alt=y&gt;`, `</title></item></channel></rss>`),
		"CDATA in a title":         fill(`<rss version="2.0"><channel><title>t</title><item><title>`, `&lt;![CDATA[`, `</title></item></channel></rss>`),
		"CDATA in content":         fill(`<rss version="2.0"><channel><title>t</title><item><description>`, `&lt;![CDATA[`, `</description></item></channel></rss>`),
		"bases":                    fill(`{"items": [{"content_html": "`, `<base href=x><a href=y>`, `"}]}`),
		"rssCloud items in items":  fill(`<rss version="2.0" xmlns:rssCloud="http://rsscloud.org/"><channel><title>t</title><item>`, `<rssCloud:item>`, ``),
		"media groups in groups":   fill(`<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>t</title><item>`, `<media:group>`, ``),
		"enclosures":               fill(`<rss version="2.0"><channel><title>t</title><item>`, `<enclosure url="a"/>`, `</item></channel></rss>`),
		"links":                    fill(`<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry>`, `<link href="a"/>`, `</entry></feed>`),
		"extensions":               fill(`<rss version="2.0" xmlns:x="urn:x"><channel><title>t</title><item>`, `<x:y/>`, `</item></channel></rss>`),
		"fragments of text":        fill(`<rss version="2.0" xmlns:x="urn:x"><channel><title>t</title><item><x:y>`, `<![CDATA[a]]>&amp;`, `</x:y></item></channel></rss>`),
		"fragments in description": fill(`<rss version="2.0"><channel><title>t</title><item><description>`, `<![CDATA[a]]>&amp;`, `</description></item></channel></rss>`),
	} {
		t.Run(name, func(t *testing.T) {
			b := []byte(in)
			used := allocated(func() { ParseBytes(b, goldenOptions) })
			t.Logf("%d times the size", used/size)
			if used > 100*bombScale*size { // the same bytes at every scale
				t.Errorf("%d MB were allocated for %d MB", used>>20, size>>20)
			}
		})
	}
}

// Raised limits take raised numbers, of entries with all that entries have.
func TestManyEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for seconds")
	}
	const n = 100_000 / bombScale
	for format, f := range map[Format]string{
		RSS20: `<rss version="2.0"><channel><title>t</title>` + manyEntries(n, `<item><title>%d</title><guid>%[1]d</guid><link>%[1]d</link>`+
			`<pubDate>1</pubDate><author>a</author><category>b</category><description>c</description><comments>d</comments></item>`) + `</channel></rss>`,
		Atom10:   `<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>` + manyEntries(n, `<entry><title>%d</title><id>%[1]d</id></entry>`) + `</feed>`,
		JSONFeed: `{"title": "t", "items": [` + manyEntries(n, `{"id": %d},`) + `null]}`,
	} {
		got := mustParse(t, f, Options{MaxEntries: n, MaxBytes: 2 * DefaultMaxBytes})
		if len(got.Entries) != n || got.Entries[n-1].ID != fmt.Sprint(n-1) || len(got.Warnings) != 0 {
			t.Errorf("%s: %d entries, %v", format, len(got.Entries), got.Warnings)
		}
	}
}

func manyEntries(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestConcurrentUse(t *testing.T) {
	big := []byte(`{"title": "t", "items": [` + manyEntries(10_000, `{"id": %d, "content_text": "`+strings.Repeat("x", 100)+`"},`) + `null]}`)
	small := []byte(`<rss version="2.0"><channel><title>t</title><item><title>1</title></item></channel></rss>`)
	var all sync.WaitGroup
	for range 4 {
		for _, b := range [][]byte{big, small} {
			all.Go(func() {
				if f, err := ParseBytes(b, Options{}); err != nil || f.Title != "t" {
					t.Errorf("got %v", err)
				}
			})
		}
	}
	all.Wait()
}

// A big document waits for another, a small one does not; and one that fails
// lets the next one in.
// invariants are what every feed promises, whatever the document was.
func invariants(t *testing.T, f *Feed, opts Options) {
	t.Helper()
	line := func(what, s string) {
		if s != markup.Clean(s) || strings.ToValidUTF8(s, "") != s || strings.ContainsAny(s, "\n") {
			t.Errorf("%s: got %q; want s == markup.Clean(s) and strings.ToValidUTF8(s, \"\") == s and !strings.ContainsAny(s, \"\\n\")", what, s)
		}
	}
	text := func(what, s string) {
		if s != markup.Clean(s) || strings.ToValidUTF8(s, "") != s {
			t.Errorf("%s: got %q; want s == markup.Clean(s) and strings.ToValidUTF8(s, \"\") == s", what, s)
		}
	}
	for what, s := range map[string]string{"id": f.ID, "title": f.Title, "link": f.Link, "language": f.Language, "image": f.Image, "generator": f.Generator.String(), "copyright": f.Copyright} {
		line("feed "+what, s)
	}
	text("feed description", f.Description)
	if len(f.Entries) > opts.maxEntries() {
		t.Errorf("%d entries", len(f.Entries))
	}
	for _, e := range f.Entries {
		for what, s := range map[string]string{"id": e.ID, "guid": e.GUID, "title": e.Title, "link": e.Link, "comments": e.Comments, "image": e.Image,
			"language": e.Language, "type": e.Type, "raw date": e.PubDateRaw} {
			line(what, s)
		}
		text("content", e.Content)
		text("summary", e.Summary)
		for _, p := range e.Authors {
			line("author", p.String())
		}
		for _, c := range e.Categories {
			line("category", c)
		}
		for _, enc := range e.Enclosures {
			line("enclosure", enc.URL+enc.Type)
		}
		switch {
		case e.ID == "":
			t.Error("no id")
		case e.Type == "":
			t.Error("no type")
		case e.PubDate.IsZero() != e.Updated.IsZero():
			t.Errorf("dates %v, %v", e.PubDate, e.Updated)
		case (e.Summary == "") != (e.SummaryType == ""):
			t.Errorf("summary %q of type %q", e.Summary, e.SummaryType)
		}
	}
}

func FuzzParse(f *testing.F) {
	documents, _ := filepath.Glob(filepath.Join("testdata", "golden", "*"))
	for _, name := range documents {
		if b, err := os.ReadFile(name); err == nil && filepath.Ext(name) != ".golden" {
			f.Add(b)
		}
	}
	f.Fuzz(fuzzParse)
}

func FuzzJSON(f *testing.F) {
	documents, _ := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	for _, name := range documents {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if start, _ := rawjson.Unwrap(b); start != nil {
			fuzzParse(t, b)
		}
	})
}

func fuzzParse(t *testing.T, b []byte) {
	opts := Options{URL: "http://example.com/dir/", MaxEntries: 50, MaxBytes: 1 << 20}
	feed, err := ParseBytes(b, opts)
	if err != nil {
		if strings.Contains(err.Error(), "could not be read") {
			t.Fatal(err)
		}
		return
	}
	invariants(t, feed, opts)
	for _, format := range encodings {
		var out bytes.Buffer
		if err := encodeAs(&out, feed, format); err != nil {
			t.Fatal(err)
		}
		again, err := ParseBytes(out.Bytes(), Options{MaxEntries: 50})
		if err != nil {
			t.Fatalf("%v in %s", err, out.Bytes())
		}
		if len(again.Entries) != len(feed.Entries) {
			t.Fatalf("%d entries of %d in %s", len(again.Entries), len(feed.Entries), out.Bytes())
		}
		for i := range again.Entries {
			if got, want := again.Entries[i].ID, feed.Entries[i].ID; got != want {
				t.Fatalf("id %q is read as %q", want, got)
			}
		}
	}
}

// A fuzz target without seeds tests nothing when it is run as a test.
func TestFuzzTargetsHaveSeeds(t *testing.T) {
	for _, dir := range []string{
		"testdata/fuzz/FuzzParse", "testdata/fuzz/FuzzPlainText", "testdata/fuzz/FuzzJSON",
		"internal/dates/testdata/fuzz/FuzzDate", "../internal/text/scan/testdata/fuzz/FuzzResolveHTML",
	} {
		seeds, err := os.ReadDir(filepath.FromSlash(dir))
		if err != nil || len(seeds) == 0 {
			t.Errorf("%s has no seeds (%v)", dir, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	html := strings.Repeat(`<p>The quick <b>brown</b> fox jumps over <a href="http://example.com/">the lazy dog</a>’s back.</p>`, 25)
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(html)
	var rss, atom, jsonFeed strings.Builder
	for i := range 20 {
		fmt.Fprintf(&rss, `<item><title>Entry %d</title><link>http://example.com/%[1]d</link><guid>http://example.com/%[1]d</guid>`+
			`<pubDate>Thu, 01 Jan 2004 19:48:21 GMT</pubDate><dc:creator>Ann</dc:creator><category>a</category><description>%s</description></item>`, i, escaped)
		fmt.Fprintf(&atom, `<entry><title>Entry %d</title><link href="http://example.com/%[1]d"/><id>tag:example.com,2004:%[1]d</id>`+
			`<updated>2004-01-01T19:48:21Z</updated><author><name>Ann</name></author><category term="a"/><content type="html">%s</content></entry>`, i, escaped)
		fmt.Fprintf(&jsonFeed, `{"id": "%d", "url": "http://example.com/%[1]d", "title": "Entry %[1]d", "date_published": "2004-01-01T19:48:21Z", "content_html": %q},`, i, html)
	}
	for name, document := range map[string]string{
		"rss":  `<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>t</title><link>http://example.com/</link>` + rss.String() + `</channel></rss>`,
		"atom": `<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><id>urn:x</id><updated>2004-01-01T19:48:21Z</updated>` + atom.String() + `</feed>`,
		"json": `{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [` + strings.TrimSuffix(jsonFeed.String(), ",") + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			raw := []byte(document)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if f, err := ParseBytes(raw, goldenOptions); err != nil || len(f.Entries) != 20 {
					b.Fatal(err)
				}
			}
		})
	}
}
