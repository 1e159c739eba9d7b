package publish

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/lektordir"
)

// The fields of entries survive the way from a document through the lektor-dir into a published
// document, in each format.
func TestPublishKeepsWhatExtrasHold(t *testing.T) {
	for seed := range uint64(12) {
		f := newFixture(t)
		in := randomFeed(rand.New(rand.NewPCG(seed, 7)))
		var document bytes.Buffer
		if err := feedconv.EncodeAtom(&document, in); err != nil {
			t.Fatal(err)
		}
		read, err := feedconv.ParseBytes(document.Bytes(), feedconv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		deliverFeed(t, f, read)
		for _, format := range []string{"atom", "rss", "json"} {
			out, err := feedconv.ParseBytes([]byte(f.publish(format, nil)), feedconv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f.Out.Reset()
			if len(out.Entries) != len(in.Entries) {
				t.Fatalf("seed %d, %s: %d entries of %d", seed, format, len(out.Entries), len(in.Entries))
			}
			for _, want := range in.Entries {
				i := slices.IndexFunc(out.Entries, func(e feedconv.Entry) bool { return e.GUID == want.ID })
				if i < 0 {
					t.Fatalf("seed %d, %s: no entry %s", seed, format, want.ID)
				}
				if g, w := kept(&out.Entries[i], format), kept(&want, format); !reflect.DeepEqual(g, w) {
					t.Errorf("seed %d, %s:\n got %+v\nwant %+v", seed, format, g, w)
				}
			}
		}
	}
}

// deliverFeed puts the entries of a document into the lektor-dir.
func deliverFeed(t *testing.T, f *fixture, feed *feedconv.Feed) {
	t.Helper()
	d, err := lektordir.Open(f.Common().Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := feedfiles.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const id = "http://roundtrip.example/"
	txn, err := w.Begin(lektordir.FeedHash(id))
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Close()
	if err := txn.PutFeed((&lektordir.Feed{ID: id, Name: "Round trip"}).Files()); err != nil {
		t.Fatal(err)
	}
	if _, err := feedstage.On(d, txn).Stage(t.Context(), feedstage.Document(feed, lektordir.UpdateNew, nil)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	txn.Commit(func(err error) { done <- err })
	w.Flush()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// kept is what a format has a place for: RSS has the names of persons, the address of the first
// author, and no links. The URL of a source's page is lost in Atom, in which the feed was read.
func kept(e *feedconv.Entry, format string) map[string]any {
	links, persons, contributors := e.Links, slices.Clone(e.Authors), slices.Clone(e.Contributors)
	if format == "rss" {
		links = nil
		for i := range persons {
			if persons[i].URL = ""; i > 0 {
				persons[i].Email = ""
			}
		}
		for i := range contributors {
			contributors[i].URL = ""
		}
	}
	enclosures := slices.Clone(e.Enclosures)
	source := feedconv.Source{}
	authors := ""
	switch {
	case e.Source == nil:
	case format == "rss":
		source = feedconv.Source{Title: e.Source.Title, URL: e.Source.URL}
	default:
		source, authors = *e.Source, inParts(e.Source.Authors)
		source.Authors, source.Updated, source.Link = nil, source.Updated.UTC(), ""
	}
	terms := slices.Clone(e.Terms)
	if format == "rss" {
		for i := range terms {
			terms[i].Label, terms[i].Term = "", ""
		}
		terms = slices.DeleteFunc(terms, func(c feedconv.Category) bool { return c.Scheme == "" })
	}
	return map[string]any{
		"authors": inParts(persons), "contributors": inParts(contributors), "categories": fmt.Sprintf("%q", e.Categories),
		"enclosures": fmt.Sprintf("%v", enclosures), "comments": e.Comments, "image": e.Image, "language": e.Language, "duration": e.Duration,
		"episode": e.Episode, "season": e.Season, "source": fmt.Sprintf("%+v", source), "source authors": authors, "terms": fmt.Sprintf("%q", terms), "link": e.Link, "title": e.Title, "published": e.PubDate.UTC(), "links": fmt.Sprintf("%q", links), "replies": fmt.Sprintf("%q", e.InReplyTo), "rights": e.Rights,
		"extensions": fmt.Sprintf("%q", e.Extensions), "attributes": fmt.Sprintf("%q", e.Attributes),
	}
}

func inParts(list []feedconv.Person) (s string) {
	for _, p := range list {
		s += fmt.Sprintf("%q %q %q;", p.Name, p.Email, p.URL)
	}
	return s
}

// randomFeed makes a feed whose entries have some of all that extras hold.
func randomFeed(r *rand.Rand) *feedconv.Feed {
	some := func(list ...string) string {
		return cmp.Or(list[r.IntN(len(list))], "")
	}
	person := func(i int) feedconv.Person {
		name := some("Ann", "Bob Roe", "José", "Tom & Jerry", "Doe, Jane", `O'Neill "Nell"`)
		p := feedconv.Person{Name: fmt.Sprint(name, " ", i)}
		if r.IntN(2) == 0 {
			p.Email = fmt.Sprintf("p%d@example.com", i)
		}
		if r.IntN(2) == 0 {
			p.URL = fmt.Sprintf("http://example.com/~%d?a&b", i)
		}
		return p
	}
	f := &feedconv.Feed{ID: "urn:roundtrip", Title: "Round trip", Updated: time.Unix(1_700_000_000, 0)}
	for i := range 1 + r.IntN(4) {
		at := time.Unix(1_600_000_000+int64(i)*1000, 0).UTC()
		e := feedconv.Entry{
			ID: fmt.Sprintf("urn:roundtrip:%d", i), Title: fmt.Sprintf("Entry %d's \"title\" & more", i), Link: fmt.Sprintf("http://example.com/%d?a&b", i),
			Content: "<p>Text</p>", Type: "text/html", PubDate: at, Updated: at,
			Comments: some("", "http://example.com/c?a&b"), Image: some("", "http://example.com/i.png"), Language: some("", "de-AT"),
			Duration: time.Duration(r.IntN(3)) * time.Minute, Episode: r.IntN(3), Season: r.IntN(2),
			Source: &feedconv.Source{ID: "urn:s", Title: some("Elsewhere", "R&D's"), URL: "http://s.example/feed", Link: "http://s.example/"},
		}
		e.Source.Updated = time.Unix(1_500_000_000, 0).UTC()
		if r.IntN(2) == 0 {
			e.Source.Description, e.Source.Copyright = some("", `About "R&D" <b>`), some("", "© Eve & co")
			e.Source.Image = some("", "http://s.example/logo.png?a&b")
			e.Source.Authors = []feedconv.Person{{Name: "Eve"}, {Name: "Jim Roe", Email: "jim@s.example", URL: "http://s.example/~jim"}}[:1+r.IntN(2)]
		}
		for n := range r.IntN(3) {
			e.Links = append(e.Links, feedconv.Link{Rel: some("related", "via", "license"), URL: fmt.Sprintf("http://l.example/%d?a&b", n), Type: some("", "text/html"), Title: some("", "R&D's")})
		}
		for n := range r.IntN(3) {
			e.InReplyTo = append(e.InReplyTo, feedconv.ReplyTo{Ref: fmt.Sprintf("urn:roundtrip:%d?a&b", n), URL: some("", "http://example.com/p?a&b"), Type: some("", "text/html"), Source: some("", "http://s.example/feed")})
		}
		e.Rights = some("", `© Ann, "all" rights & more`)
		for n := range 1 + r.IntN(3) {
			e.Authors = append(e.Authors, person(n))
		}
		for n := range r.IntN(3) {
			e.Contributors = append(e.Contributors, person(10+n))
		}
		for n := range r.IntN(3) {
			e.Categories = append(e.Categories, fmt.Sprintf("%s %d", some("R&D", "it's", `"x"`), n))
			name := e.Categories[n]
			if c := (feedconv.Category{Name: name, Scheme: some("", "http://c.example/?a&b"), Label: some("", "A <label>")}); c.Scheme+c.Label != "" {
				e.Terms = append(e.Terms, c)
			}
			e.Enclosures = append(e.Enclosures, feedconv.Enclosure{URL: fmt.Sprintf("http://example.com/%d.mp3?a&b", n), Type: "audio/mpeg", Length: int64(1 + n)})
		}
		const podcast = "https://podcastindex.org/namespace/1.0"
		if r.IntN(2) == 0 {
			e.Attributes = []feedconv.Attribute{{Namespace: podcast, Name: "status", Value: "live"},
				{Namespace: podcast, Name: "start", Value: "2026-05-01T18:00:00Z"}}
		}
		attribute := func(name, value string) feedconv.Attribute { return feedconv.Attribute{Name: name, Value: value} }
		for n := range r.IntN(3) {
			e.Extensions = append(e.Extensions,
				feedconv.Extension{Namespace: podcast, Name: "person", Text: "Ann = 1", Attributes: []feedconv.Attribute{attribute("role", "host & <guest>"), attribute("empty", "")}},
				feedconv.Extension{Namespace: podcast, Name: "alternateEnclosure",
					Attributes: []feedconv.Attribute{attribute("type", "audio/opus"), attribute("bitrate", fmt.Sprint(n))},
					Children: []feedconv.Extension{{Namespace: podcast, Name: "source", Attributes: []feedconv.Attribute{attribute("uri", "http://a.example/1=2?a&b")}},
						{Namespace: podcast, Name: "source"},
						{Namespace: podcast, Name: "integrity", Attributes: []feedconv.Attribute{attribute("type", "sri"), attribute("value", "sha384-E=")}}}},
				feedconv.Extension{Namespace: "http://podlove.org/simple-chapters", Name: "chapters",
					Children: []feedconv.Extension{{Namespace: "http://podlove.org/simple-chapters", Name: "chapter", Attributes: []feedconv.Attribute{attribute("start", "0:10")}}}},
				feedconv.Extension{Namespace: "http://www.itunes.com/dtds/podcast-1.0.dtd", Name: "explicit", Text: "true"})
		}
		f.Entries = append(f.Entries, e)
	}
	return f
}

// A file author that the user changed counts, and not what was known of the persons.
func TestPublishAuthorByHand(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "id=http://a.example/1", "author=Ann, Bob", "+person=author\tAnn\t\thttp://ann.example/", "+person=author\tBob\tbob@example.com\t")
	f.Add("new", "1773500001.1.h", "id=http://a.example/2", "author=Ann, Bob <bob@example.com>", "+person=author\tAnn\t\thttp://ann.example/", "+person=author\tBob\tbob@example.com\t")
	f.Add("new", "1773500002.1.h", "id=http://a.example/3", "author=Ann", "+person=author\tAnn\t\tjavascript:alert(1)")
	feed, err := feedconv.ParseBytes([]byte(f.publish("atom", nil)), feedconv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"Ann" "" "";`, `"Ann" "" "http://ann.example/";"Bob" "bob@example.com" "";`, `"Ann, Bob" "" "";`} {
		if got := inParts(feed.Entries[i].Authors); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}
