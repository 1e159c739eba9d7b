package publish

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// published is what a test of a sentence looks at: all documents of a feed, the
// subscription document first, then from old to new.
type published struct {
	t     *testing.T
	w     *world
	pages []*page
}

// current is the subscription document, others the rest.
func (p *published) current() *page  { return p.pages[0] }
func (p *published) others() []*page { return p.pages[1:] }

// load reads the documents there are.
func (p *published) load(kind string) {
	p.t.Helper()
	cur, _ := p.w.document("index." + p.w.options.Format)
	p.pages = []*page{cur}
	files, err := filepath.Glob(filepath.Join(p.w.www, kind+"-*"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range files {
		d, _ := p.w.document(filepath.Base(f))
		p.pages = append(p.pages, d)
	}
}

func (p *published) publish() {
	p.t.Helper()
	if err := Publish(context.Background(), p.w.options, p.w.Streams("")); err != nil {
		p.t.Fatal(err)
	}
}

// rule is what sentences that bind a publisher say, those of RFC 5005 first, and what
// must hold by it.
type rule struct {
	texts []string
	paged bool // it is about paged feeds
	holds func(p *published)
}

// rules of RFC 5005 and of draft-nottingham-atompub-feed-history-06 which have a MUST
// or a SHOULD for publishers.
var rules = []rule{
	{paged: true, holds: pagesAreLinked, texts: []string{
		`Paged feed documents MUST have at least one of these link relations present, and should contain as many as practical and applicable.`,
		`Paged feed documents MUST have at least one of these link relations present, and SHOULD contain as many as practical and applicable.`,
	}},
	{holds: archivesStay, texts: []string{
		`The set of entries contained in an archive document published at a particular URI SHOULD NOT change over time.`,
		`Likewise, the URI for a particular archive document SHOULD NOT change over time.`,
		`The set of entries contained in an archive document published at a particular URI MUST NOT change over time.`,
		`Likewise, the URI for a particular archive document MUST NOT change over time, so that clients can recognise it and associate it with the entries contained therein.`,
	}},
	{holds: archivesAreLinked, texts: []string{
		`Subscription documents and archive documents MUST have a "prev-archive" link relation, unless there are no preceding archives available.`,
		`Archive documents SHOULD also have a "next-archive" link relation, unless there are no following archives available.`,
		`Archive documents SHOULD indicate their associated subscription documents using the "current" link relation.`,
		`Subscription documents and archive documents MUST have a "prev-archive" link relation, unless there are no archives available.`,
		`Archive documents SHOULD have "next-archive" and "current" link relations.`,
	}},
	{holds: archivesAreMarked, texts: []string{
		`Archive documents SHOULD also contain an fh:archive element in their head sections to indicate that they are archives.`,
		`Archive document SHOULD also contain an fh:archive element in their head sections, to indicate that they themselves are archives.`,
	}},
	{holds: duplicatesAreUnambiguous, texts: []string{
		`Publishers SHOULD construct their feed documents in such a way as to make duplicate removal unambiguous (see Section 4.2).`,
	}},
}

func pagesAreLinked(p *published) {
	all := p.pages
	if len(all) < 3 {
		p.t.Fatalf("%d pages", len(all))
	}
	for i, d := range all {
		want := map[string]string{"first": all[0].url, "last": all[len(all)-1].url, "previous": "", "next": ""}
		if i > 0 {
			want["previous"] = all[i-1].url
		}
		if i < len(all)-1 {
			want["next"] = all[i+1].url
		}
		for rel, url := range want {
			if got := d.link(p.t, rel); got != url {
				p.t.Errorf("%s: %s is %q, not %q", d.url, rel, got, url)
			}
		}
	}
	// One page alone is a paged feed, too.
	p.w.options.PerPage = 1000
	p.publish()
	p.load("page")
	if d := p.current(); len(p.pages) != 1 || d.link(p.t, "first") != d.url || d.link(p.t, "last") != d.url || len(d.links["next"])+len(d.links["previous"]) > 0 {
		p.t.Errorf("one page: %v", d.links)
	}
}

func archivesStay(p *published) {
	before := p.others()
	for range 5 {
		p.w.someday()
		p.w.options.Title += "!"
		p.publish()
		p.load("archive")
		for i, d := range before {
			if p.others()[i].url != d.url || !slices.Equal(p.others()[i].entries, d.entries) {
				p.t.Fatalf("%s has %v, and had %v at %s", p.others()[i].url, p.others()[i].entries, d.entries, d.url)
			}
		}
		before = p.others()
	}
	p.w.options.Self = p.w.server.URL + "/moved." + p.w.options.Format
	if err := Publish(context.Background(), p.w.options, p.w.Streams("")); err == nil {
		p.t.Error("the archives are published under other URLs, or with another current document")
	}
}

func archivesAreLinked(p *published) {
	if len(p.others()) < 3 {
		p.t.Fatalf("%d archives", len(p.others()))
	}
	prev := ""
	for i, d := range p.others() {
		next := ""
		if i+1 < len(p.others()) {
			next = p.others()[i+1].url
		}
		if d.link(p.t, "prev-archive") != prev || d.link(p.t, "next-archive") != next || d.link(p.t, "current") != p.current().url {
			p.t.Errorf("%s: %v", d.url, d.links)
		}
		prev = d.url
	}
	if p.current().link(p.t, "prev-archive") != prev {
		p.t.Errorf("%s: %v", p.current().url, p.current().links)
	}
	// Without archives there is none.
	p.w.www = p.t.TempDir()
	p.w.options.Archive, p.w.options.PerPage = p.w.www, 1000
	p.publish()
	p.load("archive")
	if len(p.pages) != 1 || len(p.current().links["prev-archive"]) > 0 {
		p.t.Errorf("no archives: %v", p.current().links)
	}
}

func archivesAreMarked(p *published) {
	for _, d := range p.others() {
		if d.marks["archive"] != 1 {
			p.t.Errorf("%s: %v", d.url, d.marks)
		}
	}
	if p.current().marks["archive"] != 0 {
		p.t.Error("the subscription document is marked as an archive")
	}
}

// An entry has one id, for ever and nobody else's, and of its versions the one that
// counts is the one that was updated last.
func duplicatesAreUnambiguous(p *published) {
	for range 6 {
		p.w.someday()
		p.publish()
		p.load("archive")
		best := map[string]pageEntry{}
		for _, d := range append(p.others(), p.current()) {
			in := map[string]bool{}
			for _, e := range d.entries {
				if in[e.id] {
					p.t.Fatalf("%s is in %s twice", e.id, d.url)
				}
				in[e.id] = true
				old, ok := best[e.id]
				if ok && old.title != e.title && old.updated.Equal(e.updated) {
					p.t.Fatalf("%s is %q and %q at the same time", e.id, old.title, e.title)
				}
				if !ok || e.updated.After(old.updated) {
					best[e.id] = e
				}
			}
		}
		for _, s := range p.w.entries {
			if s.at != "" && best[s.id].title != s.title {
				p.t.Fatalf("the latest version of %s is %q, not %q", s.id, best[s.id].title, s.title)
			}
		}
	}
}

func TestRFC5005(t *testing.T) {
	for _, r := range rules {
		for _, format := range []string{"atom", "rss"} {
			t.Run(format+": "+strings.Join(r.texts, " "), func(t *testing.T) {
				w := newWorld(t, 7, format)
				w.options.PerPage = 3
				kind := "archive"
				if r.paged {
					kind, w.options.Archive, w.options.Paged = "page", "", w.www
				}
				for range 14 {
					w.add()
				}
				p := &published{t: t, w: w}
				p.publish()
				p.load(kind)
				r.holds(p)
			})
		}
	}
}

// Sentences for readers, which lektor-fetch(1) keeps, and one that defines the words.
var forReaders = []string{
	`The key words "MUST", "MUST NOT"`,
	`any entry not actually in the feed document SHOULD NOT be`,
	`Therefore, clients SHOULD NOT present paged feeds as coherent`,
	`If duplicate entries are found, clients SHOULD consider only the most`,
	`the entry sourced from the most recently updated feed document SHOULD replace`,
	`Clients SHOULD warn users when they are not able to reconstruct`,
}

// specification returns a text as one line, without the headers and footers of its pages.
func specification(t *testing.T, name string) string {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "specs", name))
	if err != nil {
		t.Skip(err)
	}
	text := regexp.MustCompile(`(?m)^(Nottingham .*\[Page \d+\]|RFC 5005 .*|Internet-Draft .*)$|\f`).ReplaceAllString(string(data), "")
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "prev- archive", "prev-archive")
}

// No sentence of the texts is forgotten or invented, where they lie beside the
// project.
func TestRFC5005IsWhole(t *testing.T) {
	keyword := regexp.MustCompile(`\b(MUST|SHOULD)\b`)
	all := ""
	for _, name := range []string{"rfc5005.txt", "feed-history-draft-06.txt"} {
		text := specification(t, name)
		all += text
		for _, r := range rules {
			for _, sentence := range r.texts {
				text = strings.ReplaceAll(text, sentence, "")
			}
		}
		for _, sentence := range strings.SplitAfter(text, ". ") {
			if keyword.MatchString(sentence) && !slices.ContainsFunc(forReaders, func(s string) bool { return strings.Contains(sentence, s) }) {
				t.Errorf("%s: nobody keeps %q", name, sentence)
			}
		}
	}
	for _, r := range rules {
		for _, sentence := range r.texts {
			if !strings.Contains(all, sentence) {
				t.Errorf("no text says %q", sentence)
			}
		}
	}
}
