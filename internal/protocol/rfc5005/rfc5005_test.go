package rfc5005

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lektordir/lektor/feedconv"
)

const base = "http://example.org/index.atom"

func parse(t *testing.T, doc, url string) *feedconv.Feed {
	t.Helper()
	f, err := feedconv.ParseBytes([]byte(doc), feedconv.Options{URL: url})
	if err != nil {
		t.Fatalf("%v:\n%s", err, doc)
	}
	return f
}

// atom returns an Atom document with head in its feed element.
func atom(head string) string {
	return `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">
<title>T</title><id>urn:x</id><updated>2020-01-01T00:00:00Z</updated>` + head +
		`<entry><title>E</title><id>urn:e</id><updated>2020-01-01T00:00:00Z</updated><link rel="prev-archive" href="/entry"/></entry></feed>`
}

func link(rel, href string) string { return `<link rel="` + rel + `" href="` + href + `"/>` }

// rss returns an RSS 2.0 document with head in its channel.
func rss(head string) string {
	return `<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><channel><title>T</title>` +
		head + `<item><guid>1</guid><title>E</title></item></channel></rss>`
}

// TestKinds checks the kind and links of subscription documents.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		want      Document
	}{
		{"nothing", atom(""), Document{}},
		{"links of an entry are ignored", atom(link("self", base)), Document{Self: base}},
		{"complete", atom("<fh:complete/>"), Document{Kind: Complete}},
		{"complete, in RSS", rss("<fh:complete/>"), Document{Kind: Complete}},
		{"complete wins over every link", atom("<fh:complete/>" + link("prev-archive", "/1") + link("next", "/2") + link("current", "/3")), Document{Kind: Complete}},
		{"fh:complete in another namespace is ignored", strings.ReplaceAll(atom("<fh:complete/><fh:archive/>"), "purl.org", "other.example"), Document{}},
		{"archived", atom(link("prev-archive", "/1")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"archived, in RSS", rss(`<atom:link rel="prev-archive" href="/1"/>`), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"the name of a relation in full, and in another case", atom(link("http://www.iana.org/assignments/relation/Prev-Archive", "/1")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"xml:base", strings.Replace(atom(link("prev-archive", "1")), "<feed ", `<feed xml:base="http://b.example/x/" `, 1), Document{Kind: Archived, Prev: "http://b.example/x/1"}},
		{"without fragment", atom(link("prev-archive", "/1#top")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"archives and pages: archives", atom(link("prev-archive", "/1") + link("next", "/2")), Document{Kind: Archived, Prev: "http://example.org/1", Next: "http://example.org/2"}},
		{"the document that its own link names current", atom(link("prev-archive", "/1") + link("current", "/index.atom")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"a document that calls itself current, wherever it was found", atom(link("current", "http://far.example/f") + link("self", "http://far.example/f")), Document{}},
		{"an archive", atom("<fh:archive/>" + link("current", "/now") + link("prev-archive", "/1")), Document{Kind: Archive, Prev: "http://example.org/1", Current: "http://example.org/now"}},
		{"an archive by its current alone", atom(link("current", "/now")), Document{Kind: Archive, Current: "http://example.org/now"}},
		{"an archive without a subscription document", atom("<fh:archive/>"), Document{Kind: Archive}},
		{"a subscription document that marks itself by mistake", atom("<fh:archive/>" + link("current", base) + link("prev-archive", "/1")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"a page", atom(link("next", "/2")), Document{Kind: Paged, Next: "http://example.org/2"}},
		{"the last page", atom(link("previous", "/1") + link("first", "/1")), Document{Kind: Paged}},
		{"previous as draft -05 has it", atom(link("previous", "/1")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"previous beside prev-archive", atom(link("previous", "/0") + link("prev-archive", "/1")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"a file", atom(link("prev-archive", "file:///etc/passwd")), Document{Kind: Archived, Prev: "file:///etc/passwd"}},
		{"an empty link", atom(link("prev-archive", "")), Document{Kind: Archived, Prev: base}},
		{"a blank link", atom(link("prev-archive", "  ")), Document{Kind: Archived, Prev: base}},
		{"no URL in the link", atom(`<link rel="prev-archive"/>`), Document{Kind: Archived, Prev: base}},
		{"an empty link in RSS", rss(`<atom:link rel="prev-archive" href=""/>`), Document{Kind: Archived, Prev: base}},
		{"an empty link and another one", atom(link("prev-archive", "") + link("prev-archive", "/1")), Document{Kind: Archived, Prev: "http://example.org/1"}},
		{"an empty link to pages", atom(link("next", "")), Document{}},
		{"a self link to another origin", atom(link("self", "http://far.example/f")), Document{}},
		{"WordPress", rss("<generator>https://wordpress.org/?v=6.4</generator>"), Document{Next: base + "?paged=2", Guessed: true}},
		{"WordPress with links", rss(`<generator>https://wordpress.org/?v=6.4</generator><atom:link rel="next" href="/2"/>`), Document{Kind: Paged, Next: "http://example.org/2"}},
		{"JSON Feed", `{"version":"https://jsonfeed.org/version/1.1","title":"T","next_url":"http://example.org/2","items":[]}`, Document{Kind: Paged, Next: "http://example.org/2"}},
	} {
		c.want.URL = base
		if got := Subscribed(parse(t, c.doc, base), base, base); got != c.want {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}

// TestReached checks the kind and links of documents that prev-archive or next led to.
func TestReached(t *testing.T) {
	for _, c := range []struct {
		name, doc      string
		archive, page2 string
	}{
		{"complete is ignored", atom("<fh:complete/>" + link("prev-archive", "/1")), "http://example.org/1", ""},
		{"previous of a page", atom(link("previous", "/1")), "", ""},
		{"previous with current, as draft -05 has it", atom(link("previous", "/1") + link("current", "/now")), "http://example.org/1", ""},
		{"previous of page 2", atom(link("previous", "/1") + link("current", "/now") + link("next", "/3")), "", "http://example.org/3"},
	} {
		f := parse(t, c.doc, base)
		a, p := Reached(f, base), Page(f, base)
		if a.Kind != Archive || a.Prev != c.archive || p.Next != c.page2 || p.Prev != "" {
			t.Errorf("%s: got %+v, %+v; want a.Kind == Archive and a.Prev == c.archive and p.Next == c.page2 and p.Prev == \"\"", c.name, a, p)
		}
	}
}

// documents returns the examples of a specification, by their captions.
func documents(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.FromSlash("../../../../shared/specs"), file))
	if err != nil {
		if text, err = os.ReadFile(filepath.Join(filepath.FromSlash("../../../../../shared/specs"), file)); err != nil {
			t.Skip("no ../shared/specs")
		}
	}
	lines := strings.Split(string(text), "\n")
	found := map[string]string{}
	caption := ""
	for i := 0; i < len(lines); i++ {
		l := strings.TrimSpace(lines[i])
		if regexp.MustCompile(`^(Example: )?(Atom|RSS 2\.0)-formatted [A-Z]\w+ (Feed|Document)$`).MatchString(l) {
			caption = strings.TrimPrefix(l, "Example: ")
		}
		if strings.HasPrefix(l, "<?xml") {
			var doc []string
			for ; i < len(lines); i++ {
				doc = append(doc, strings.TrimPrefix(lines[i], "   "))
				if l := strings.TrimSpace(lines[i]); l == "</feed>" || l == "</rss>" {
					break
				}
			}
			found[caption] = strings.Join(doc, "\n") + "\n"
		}
	}
	return found
}

// TestSpecifications checks that the examples of RFC 5005 and of the drafts have the kinds that
// their captions name.
func TestSpecifications(t *testing.T) {
	// Draft -05 has the examples of -06 except the paged ones, with previous in place of
	// prev-archive.
	draft05 := map[string]string{}
	for caption, doc := range documents(t, "feed-history-draft-06.txt") {
		switch doc = strings.ReplaceAll(doc, `"prev-archive"`, `"previous"`); caption {
		case "RSS 2.0-formatted Complete Feed", "Atom-formatted Paged Feed", "RSS 2.0-formatted Paged Feed":
		default:
			draft05[caption] = doc
		}
	}
	for name, docs := range map[string]map[string]string{
		"RFC 5005": documents(t, "rfc5005.txt"), "draft -06": documents(t, "feed-history-draft-06.txt"), "draft -05": draft05,
	} {
		want := 8
		if name == "draft -05" {
			want = 5
		}
		if len(docs) != want {
			t.Errorf("%s: %d examples, not %d", name, len(docs), want)
		}
		for caption, doc := range docs {
			url, kind, prev, next := "http://example.org/index.atom", Plain, "", ""
			of := "http://example.org/2003/"
			archive := "2003/11/index.atom"
			ext := "atom"
			if strings.HasPrefix(caption, "RSS") {
				host := "http://liftoff.nasa.gov/"
				if name == "RFC 5005" {
					host = "http://liftoff.example.net/"
				}
				url, of, archive, ext = host+"index.rss", host+"2003/", "2003/05/index.rss", "rss"
			}
			switch rest := caption[strings.Index(caption, " "):]; {
			case strings.HasSuffix(rest, "Complete Feed"):
				kind = Complete
			case strings.HasSuffix(rest, "Paged Feed"):
				kind, next = Paged, strings.Replace(url, "liftoff", "liftof", 1)+"?page=2"
			case strings.HasSuffix(rest, "Subscription Document"):
				kind, prev = Archived, of+map[string]string{"atom": "11/index.atom", "rss": "05/index.rss"}[ext]
			case strings.HasSuffix(rest, "Archive Document"):
				kind, prev = Archive, of+map[string]string{"atom": "10/index.atom", "rss": "04/index.rss"}[ext]
				url = strings.TrimSuffix(url, "index."+ext) + archive
			}
			f := parse(t, doc, url)
			d := Subscribed(f, url, url)
			if d.Kind != kind || d.Prev != prev || d.Next != next || len(f.Entries) == 0 {
				t.Errorf("%s, %s: %+v, %d entries; want %s, %s, %s", name, caption, d, len(f.Entries), kind, prev, next)
			}
			if kind == Archive {
				if a := Reached(f, url); a.Prev != prev {
					t.Errorf("%s, %s: Reached returns the previous archive %q", name, caption, a.Prev)
				}
			}
		}
	}
}

// TestCheck checks the links that must not be followed.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"http://a.example/", "http://b.example/1", true},
		{"http://a.example/", "https://b.example/1", true},
		{"https://a.example/", "http://a.example/1", false},
		{"http://a.example/", "file:///etc/passwd", false},
		{"http://a.example/", "exec:rm", false},
		{"http://a.example/", "ftp://a.example/", false},
		{"http://a.example/", "http://me:pw@a.example/1", false},
		{"http://a.example/", "1", false},
		{"http://a.example/", "http:///x", false},
	} {
		err := Check(c.from, c.to)
		if (err == nil) != c.ok {
			t.Errorf("%s -> %s: %v", c.from, c.to, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("a password is shown: %v", err)
		}
	}
}

func FuzzSubscribed(f *testing.F) {
	for _, head := range []string{"<fh:complete/>", link("prev-archive", "/1"), link("previous", "\t/x y#"), link("current", "http://[/")} {
		f.Add(atom(head))
	}
	f.Fuzz(func(t *testing.T, doc string) {
		feed, err := feedconv.ParseBytes([]byte(doc), feedconv.Options{URL: base})
		if err != nil {
			return
		}
		for _, d := range []Document{Subscribed(feed, base), Reached(feed, base), Page(feed, base)} {
			for _, u := range []string{d.Prev, d.Next, d.Current, d.Self} {
				if Normal(u) != u || strings.ContainsAny(u, "\t\n\x00") {
					t.Errorf("%q is not normal: %q", u, Normal(u))
				}
			}
		}
	})
}
