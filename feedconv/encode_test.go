package feedconv

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/text/markup"
)

var encodings = []Format{Atom10, RSS20, JSONFeed}

// encodeAs writes a feed in one of these.
func encodeAs(w io.Writer, f *Feed, format Format) error {
	switch format {
	case Atom10:
		return EncodeAtom(w, f)
	case RSS20:
		return EncodeRSS(w, f)
	}
	return EncodeJSON(w, f)
}

// roundTrip writes a feed and reads it back.
func roundTrip(t *testing.T, f *Feed, format Format) (document []byte, back *Feed) {
	t.Helper()
	var b bytes.Buffer
	if err := encodeAs(&b, f, format); err != nil {
		t.Fatal(err)
	}
	back, err := ParseBytes(b.Bytes(), Options{MaxEntries: len(f.Entries) + 1})
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.Bytes())
	}
	if len(back.Warnings) > 0 {
		t.Errorf("%v in\n%s", back.Warnings, b.Bytes())
	}
	return b.Bytes(), back
}

// canonical returns an entry as a format can represent it: fields that the format does not
// have are emptied. It is called with the original and with the entry that was read back.
func canonical(e Entry, format Format, feedUpdated time.Time) Entry {
	e.GUID, e.PubDateRaw = "", ""
	e.Enclosures = append([]Enclosure(nil), e.Enclosures...)
	for i := range e.Enclosures {
		if e.Enclosures[i].Type == "" && format != Atom10 {
			e.Enclosures[i].Type = typeUnknown
		}
		if e.Enclosures[i].Length == 0 {
			e.Enclosures[i].Length = -1
		}
	}
	if e.Image == "" {
		e.Image = "none"
	}
	if src := e.Source; src != nil {
		switch format {
		case Atom10: // which wants a date, and lets entries inherit the authors
			if len(e.Authors) == 0 {
				e.Authors = src.Authors
			}
			dated := *src
			dated.Updated, dated.Link = time.Time{}, ""
			e.Source = &dated
		case RSS20:
			if e.Source = nil; src.URL != "" {
				e.Source = &Source{Title: src.Title, URL: src.URL}
			}
		}
	}
	switch format {
	case Atom10:
		if e.Updated.IsZero() {
			e.PubDate, e.Updated = feedUpdated, feedUpdated
		}
		if e.Type == markup.TypeXHTML { // may be serialised anew
			e.Type, e.Content = markup.TypeHTML, PlainText(e.Content, markup.TypeHTML)
		}
		if e.SummaryType == markup.TypeXHTML {
			e.SummaryType, e.Summary = markup.TypeHTML, PlainText(e.Summary, markup.TypeHTML)
		}
		if e.SummaryType != "" && e.SummaryType != markup.TypePlain && e.SummaryType != markup.TypeHTML {
			e.SummaryType, e.Summary = markup.TypePlain, PlainText(e.Summary, e.SummaryType)
		}
		if e.Type == markup.TypeHTML {
			e.Content = PlainText(e.Content, markup.TypeHTML)
		}
	case RSS20:
		e.Content, e.Type = PlainText(markup.AsHTML(e.Content, e.Type), markup.TypeHTML), ""
		e.Summary, e.SummaryType = PlainText(markup.AsHTML(e.Summary, e.SummaryType), markup.TypeHTML), ""
		if e.Updated.Equal(e.PubDate) {
			e.Updated = e.Updated.Truncate(time.Second)
		}
		e.PubDate = e.PubDate.Truncate(time.Second)
	case JSONFeed:
		e.Type = map[bool]string{true: markup.TypeHTML, false: markup.TypePlain}[markup.IsMarkup(e.Type)]
		e.Summary, e.SummaryType = PlainText(e.Summary, e.SummaryType), ""
		if e.Link == "" && markup.IsWebURL(e.ID) {
			e.Link = e.ID
		}
	}
	e.Content, e.Summary = strings.TrimSpace(e.Content), strings.TrimSpace(e.Summary)
	if e.Content == "" {
		e.Type = ""
	}
	if e.Summary == e.Content {
		e.Summary, e.SummaryType = "", ""
	}
	return e
}

// asRead returns what a reader takes for an entry of a document: RSS says nowhere that
// names and categories are text, so markup in them is markup. It has the names of persons and the
// address of the first author; of links none.
func asRead(e Entry, format Format) Entry {
	if format != RSS20 {
		return e
	}
	read := func(list []Person, addresses int) []Person {
		var out []Person
		for i, p := range list {
			if p.Name = titleText(p.Name); p.Name+p.Email != "" {
				p.URL = ""
			}
			if i >= addresses && p.Name != "" {
				p.Email = ""
			}
			out = append(out, p)
		}
		return uniquePersons(out)
	}
	e.Links = nil
	e.Authors, e.Contributors = read(e.Authors, 1), read(e.Contributors, len(e.Contributors))
	var categories []string
	for _, c := range e.Categories {
		categories = append(categories, titleText(c))
	}
	e.Categories = uniqueStrings(categories)
	var terms []Category
	for _, c := range e.Terms { // RSS has their scheme
		terms = append(terms, Category{Name: titleText(c.Name), Scheme: c.Scheme})
	}
	e.Terms = uniqueTerms(terms)
	return e
}

// checkRoundTrip compares a feed with what is read back from it.
func checkRoundTrip(t *testing.T, f *Feed, format Format) {
	t.Helper()
	document, back := roundTrip(t, f, format)
	if format == JSONFeed {
		if !json.Valid(document) {
			t.Errorf("not valid: %s", document)
		}
	} else {
		checkWellFormed(t, document)
	}
	if back.Title != f.Title || back.Format != format {
		t.Errorf("%s: feed %q is read as %q, %s", format, f.Title, back.Title, back.Format)
	}
	if len(back.Entries) != len(f.Entries) {
		t.Fatalf("%s: %d entries of %d in\n%s", format, len(back.Entries), len(f.Entries), document)
	}
	var all survey
	for e := range f.entries {
		all.add(e)
	}
	for i := range f.Entries {
		updated := newest(f, &all)
		want, got := canonical(asRead(f.Entries[i], format), format, updated), canonical(back.Entries[i], format, updated)
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s, entry %d:\n got %#v\nwant %#v\n%s", format, i, got, want, document[:min(len(document), 6000)])
			return
		}
	}
}

// checkWellFormed reads a document as strictly as encoding/xml can.
func checkWellFormed(t *testing.T, document []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
	}
}

func TestEncodeGoldenDocuments(t *testing.T) {
	for _, name := range goldenDocuments(t) {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseBytes(document, goldenOptions)
		if err != nil {
			continue
		}
		for _, format := range encodings {
			t.Run(name+" as "+string(format), func(t *testing.T) { checkRoundTrip(t, f, format) })
		}
	}
}

// generated makes a feed of awkward strings.
func generated(r *rand.Rand) *Feed {
	f := &Feed{Title: randomLine(r, true), Link: "http://example.com/", Updated: randomTime(r)}
	for i := range r.IntN(6) {
		e := Entry{
			ID:      fmt.Sprintf("tag:example.com,%d:%d?a=%%41&b=]]>", r.Uint32(), i),
			Title:   randomLine(r, false),
			PubDate: randomTime(r),
		}
		e.Updated = e.PubDate
		if r.IntN(2) == 0 {
			e.Updated = e.PubDate.Add(time.Duration(r.Int64N(int64(1000 * time.Hour))))
		}
		if r.IntN(3) > 0 {
			e.Link = fmt.Sprintf("http://example.com/%d?x=1&amp=2&y=\"<'>", i)
		}
		e.Type = []string{markup.TypeHTML, markup.TypePlain, markup.TypeXHTML, "text/markdown"}[r.IntN(4)]
		e.Content = randomText(r, e.Type)
		if r.IntN(2) == 0 && e.Content != "" {
			e.SummaryType = []string{markup.TypeHTML, markup.TypePlain}[r.IntN(2)]
			e.Summary = randomText(r, e.SummaryType)
			if e.Summary == "" {
				e.SummaryType = ""
			}
		}
		for range r.IntN(3) {
			e.Categories = uniqueStrings(append(e.Categories, randomLine(r, false)))
			if n := len(e.Categories); n > 0 {
				name, scheme := e.Categories[n-1], []string{"", "http://example.com/s?a&b", "a scheme"}[r.IntN(3)]
				e.Terms = uniqueTerms(append(e.Terms, []Category{
					{Name: name, Scheme: scheme}, {Name: name, Scheme: scheme, Label: randomLine(r, false)}, {Name: name, Scheme: scheme, Term: "http://example.com/#term"},
				}[r.IntN(3)]))
			}
			e.Authors = uniquePersons(append(e.Authors, randomPerson(r)))
			e.Enclosures = uniqueEnclosures(append(e.Enclosures, Enclosure{
				URL: fmt.Sprintf("http://example.com/%d.mp3?a&b", r.IntN(9)), Type: []string{"audio/mpeg", ""}[r.IntN(2)],
				Length: r.Int64N(1e9) - 1,
			}))
		}
		for range r.IntN(3) {
			e.InReplyTo = uniqueReplies(append(e.InReplyTo, ReplyTo{Ref: fmt.Sprintf("urn:%d?a&\"b", r.IntN(3)), URL: []string{"", "http://example.com/p?a&b"}[r.IntN(2)]}))
		}
		if r.IntN(3) == 0 {
			e.Comments, e.Image = "http://example.com/c?a&b", "http://example.com/i.png?a&b"
			e.Contributors = uniquePersons(append(e.Contributors, randomPerson(r), randomPerson(r)))
			e.Duration, e.Episode, e.Season = time.Duration(r.IntN(1e5))*time.Second, r.IntN(9), r.IntN(3)
			e.Source = &Source{ID: "http://example.com/?a&b", Title: randomLine(r, true), URL: "http://example.com/f?a&b", Link: "http://example.com/"}
			if r.IntN(2) == 0 {
				e.Source.Description, e.Source.Copyright, e.Source.Image = randomLine(r, true), randomLine(r, true), "http://example.com/logo.png?a&b"
				e.Source.Authors = uniquePersons([]Person{randomPerson(r), randomPerson(r)})
			}
			if e.Language = "de-AT"; r.IntN(2) == 0 {
				e.Source.URL, e.Language = "", ""
			}
		}
		f.Entries = append(f.Entries, e)
	}
	return f
}

func randomTime(r *rand.Rand) time.Time {
	return time.Unix(r.Int64N(4e9), r.Int64N(2)*r.Int64N(1e9)).UTC()
}

var awkward = []string{"plain", "words", "]]>", "<![CDATA[", "&amp;", "&amp;amp;", "&", "&lt;b&gt;", "<b>", "</b>", "<script>x</script>",
	"a < b", "<br", "-->", "🍏", "é", "日本", "\u200d", "\u00a0", "\u2028", "\"", "'", "&#8;", "&nosuch;", "<String>", "\ufffd", "&quot;", "%", "\\", "\\u0000"}

func randomWords(r *rand.Rand) []string {
	words := make([]string, r.IntN(8))
	for i := range words {
		words[i] = awkward[r.IntN(len(awkward))]
	}
	return words
}

// randomLine returns a line that a title can be.
func randomLine(r *rand.Rand, needed bool) string {
	s := PlainText(strings.Join(randomWords(r), []string{" ", ""}[r.IntN(2)]), markup.TypePlain)
	if needed && s == "" {
		return "x"
	}
	return s
}

func randomText(r *rand.Rand, contentType string) string {
	s := strings.TrimSpace(strings.Join(randomWords(r), []string{" ", "\n", "\t", ""}[r.IntN(4)]))
	if contentType == markup.TypeXHTML {
		return "<p>" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s) + "<br/></p>"
	}
	if contentType == markup.TypeHTML && markup.Unwrap(s) != s {
		return "<p>" + s // not a CDATA section that was escaped twice
	}
	return s
}

func randomPerson(r *rand.Rand) Person {
	name := []string{"Ann", "Tom & Jerry", "Lawyer <Esq> &amp;", "Jos\u00e9 (Pepe) N.", "a, b"}[r.IntN(5)]
	return []Person{{Name: name}, {Name: "Ann", Email: "ann@example.com"}, {Email: "ann@example.com"}, {Name: name, URL: "http://example.com/ann?a&b"}}[r.IntN(4)]
}

// The same entries are read as were written, whatever is in them.
func TestEncodeGeneratedFeeds(t *testing.T) {
	for seed := range uint64(300) {
		f := generated(rand.New(rand.NewPCG(seed, 1)))
		for _, format := range encodings {
			if checkRoundTrip(t, f, format); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func TestEncodeFeedFields(t *testing.T) {
	f := &Feed{
		ID: "urn:x", Title: "a <b> & c", Description: "d & <e>", Link: "http://example.com/", Language: "en", Image: "http://example.com/i.png",
		Copyright: "© <me>", Generator: Generator{"g & h", "http://g.example/?a&b", "1 < 2"}, Authors: []Person{{Name: "Ann", Email: "ann@example.com"}}, Categories: []string{"a & b", "c"},
		Updated: time.Unix(1e9, 0).UTC(), PubDate: time.Unix(1e8, 0).UTC(),
		Links: []Link{{Rel: "self", URL: "http://example.com/feed?a&b", Type: "application/atom+xml", Title: "t & u"}, {Rel: "next", URL: "http://example.com/2"},
			{Rel: "prev-archive", URL: "http://example.com/3"}, {Rel: "hub", URL: "http://hub.example.com/"}},
		Clouds: []Cloud{{Domain: "rpc.example.com", Port: 5337, Path: "/pleaseNotify", Protocol: "http-post"}},
		TTL:    time.Hour, SkipHours: []int{0, 5}, SkipDays: []time.Weekday{time.Sunday}, Complete: true, Archive: true, Expired: true,
	}
	for format, drop := range map[Format]func(f *Feed){
		Atom10: func(f *Feed) {
			f.PubDate, f.Clouds, f.TTL, f.SkipHours, f.SkipDays, f.Expired = f.Updated, nil, 0, nil, nil, false
		},
		RSS20: func(f *Feed) { f.ID, f.Expired = "", false },
		JSONFeed: func(f *Feed) {
			*f = Feed{Title: f.Title, Description: f.Description, Link: f.Link, Language: f.Language, Image: f.Image, Authors: f.Authors,
				Links: []Link{{Rel: "self", URL: f.Links[0].URL, Type: "application/feed+json"}, f.Links[1], f.Links[3]}, Clouds: f.Clouds, Expired: true}
		},
	} {
		want := *f
		drop(&want)
		_, got := roundTrip(t, f, format)
		got.Entries = nil
		want.Format = format
		links := got.Links[:0]
		for _, l := range got.Links {
			if l.Rel != "alternate" {
				links = append(links, l)
			}
		}
		got.Links = links
		if g, w := dumpResult(got, nil), dumpResult(&want, nil); g != w {
			t.Errorf("%s: got\n%swant\n%s", format, g, w)
		}
	}
}

// Strings that another program put into a feed must not make a document
// that no parser takes.
func TestEncodeHostileStrings(t *testing.T) {
	bad := "a\x00b\x08\x1f\xff\xfe\ufffe\uffff\r\n]]>&\"'<"
	f := &Feed{Title: bad, Link: bad, Description: bad, Entries: []Entry{{
		ID: bad, Link: bad, Title: bad, Content: bad, Type: markup.TypeHTML, Summary: bad, SummaryType: markup.TypeXHTML,
		Authors: []Person{{bad, bad, bad}}, Categories: []string{bad}, Enclosures: []Enclosure{{URL: bad, Type: bad}},
	}, {ID: "1", Content: bad, Type: "image/png"}, {ID: "2", Content: "<a><b/></a>", Type: "image/svg+xml"},
		{ID: "3", Content: "</div><div>", Type: markup.TypeXHTML}, {ID: "4", Content: "<x:y>&nbsp;", Type: "application/xml"}}}
	for _, format := range encodings {
		var b bytes.Buffer
		if err := encodeAs(&b, f, format); err != nil {
			t.Fatal(err)
		}
		if format == JSONFeed {
			if !json.Valid(b.Bytes()) {
				t.Errorf("not valid: %s", b.Bytes())
			}
			continue
		}
		checkWellFormed(t, b.Bytes())
	}
}

var errFull = errors.New("full")

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestEncodeReportsWriteErrors(t *testing.T) {
	for _, format := range encodings {
		f := &Feed{Entries: []Entry{{ID: "1", Content: strings.Repeat("x", 1<<16)}}}
		if err := encodeAs(fullWriter{}, f, format); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v", format, err)
		}
	}
}

// RSS is escaped as XML is, once; as HTML before that only the text of elements
// that hold HTML, and titles that would be read as markup.
func TestEncodeRSSEscapesOnce(t *testing.T) {
	const text = `Tom & Jerry's "AT&T" <b> a < b ]]> &amp; &copy &nosuch;`
	f := &Feed{Title: text, Description: text, Copyright: text, Generator: Generator{Name: text}, Categories: []string{text}, Entries: []Entry{{
		ID: "1", Title: text, Content: text, Type: markup.TypePlain, Summary: "<i>" + text, SummaryType: markup.TypeHTML, Categories: []string{text},
		Authors:      []Person{{Name: text, Email: "a@example.com", URL: "http://example.com/?a&b"}, {Name: text}},
		Contributors: []Person{{Name: text}}, Source: &Source{Title: text, URL: "http://example.com/?a&b"},
	}}}
	var b bytes.Buffer
	if err := EncodeRSS(&b, f); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"&quot;", "&#34;", "&#39;", "&apos;", "&amp;quot;", "&amp;#"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("%s in\n%s", never, b.Bytes())
		}
	}
	const asHTML = `Tom &amp; Jerry's "AT&amp;T" &lt;b> a &lt; b ]]> &amp;amp; &amp;copy &amp;nosuch;`
	want := map[string]string{
		"title": asHTML, "source": asHTML, "copyright": text, "generator": text, "category": text, "contributor": text,
		"description": asHTML + "|<i>" + text, "encoded": asHTML, "creator": text, "author": "a@example.com (" + text + ")",
	}
	got := map[string]string{}
	d := xml.NewDecoder(&b)
	var name string
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name = token.Name.Local
		case xml.CharData:
			if s := string(token); strings.TrimSpace(s) != "" && !strings.HasSuffix(got[name], s) {
				got[name] = strings.TrimPrefix(got[name]+"|"+s, "|")
			}
		}
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: got %s\nwant %s", name, got[name], text)
		}
	}
}

// Each person keeps name, address and URL, except in RSS.
func TestEncodePersons(t *testing.T) {
	people := []Person{{"Ann", "ann@example.com", "http://example.com/ann"}, {Name: "Bob", URL: "http://example.com/bob"}, {Name: "Cy"},
		{Email: "d@example.com", URL: "http://example.com/d"}, {Name: "E, F", Email: "e@example.com"}, {URL: "http://example.com/g"}}
	f := &Feed{Title: "t", Entries: []Entry{{ID: "1", Title: "e", Authors: people, Contributors: people[:2], Comments: "http://example.com/c"}}}
	for _, format := range encodings {
		document, back := roundTrip(t, f, format)
		e := back.Entries[0]
		want := asRead(f.Entries[0], format)
		if !slices.Equal(e.Authors, want.Authors) || !slices.Equal(e.Contributors, want.Contributors) || e.Comments != "http://example.com/c" {
			t.Errorf("%s: %+v %+v %q in\n%s", format, e.Authors, e.Contributors, e.Comments, document)
		}
	}
}
