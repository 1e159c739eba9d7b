package feedstage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/lektordir"
)

// read reads the only entry.
func (wo *world) read() *lektordir.Entry {
	wo.t.Helper()
	refs, err := wo.d.List(wo.t.Context(), lektordir.ListOptions{})
	if err != nil || len(refs) == 0 {
		wo.t.Fatal(refs, err)
	}
	e, err := wo.d.ReadEntry(refs[0], lektordir.AllFields)
	if err != nil {
		wo.t.Fatal(err)
	}
	return e
}

// An enclosure that appears, goes or has another URL is a change. Its query, its length and the other
// properties replace an entry that is unread, which does not count as updated.
func TestChangesOfProperties(t *testing.T) {
	base := changed(entry("a", "A"), encl("https://r.example/a.mp3?x=1"), func(e *feedconv.Entry) {
		e.Authors, e.Categories, e.Comments = []feedconv.Person{{Name: "Ann"}}, []string{"x", "y"}, "http://c.example/1"
	})
	rest := numbered(3, prefix("rest"))
	for name, c := range map[string]struct {
		change func(*feedconv.Entry)
		counts bool // as a changed entry
		taken  bool // if it is unread
	}{
		"nothing":           {func(*feedconv.Entry) {}, false, false},
		"enclosure goes":    {encl(), true, true},
		"another enclosure": {encl("https://r.example/b.mp3"), true, true},
		"one more":          {encl("https://r.example/a.mp3", "https://r.example/b.mp3"), true, true},
		"its query":         {encl("https://r.example/a.mp3?x=2"), false, true},
		"its query goes":    {encl("https://r.example/a.mp3"), false, true},
		"its scheme":        {encl("http://r.example/a.mp3?x=1"), false, false},
		"its length": {func(e *feedconv.Entry) {
			e.Enclosures = []feedconv.Enclosure{{URL: e.Enclosures[0].URL, Type: "audio/mpeg", Length: 2}}
		}, false, true},
		"author":                    {func(e *feedconv.Entry) { e.Authors = []feedconv.Person{{Name: "Bob"}} }, false, true},
		"author goes":               {func(e *feedconv.Entry) { e.Authors = nil }, false, true},
		"category":                  {func(e *feedconv.Entry) { e.Categories = []string{"x", "z"} }, false, true},
		"order of categories":       {func(e *feedconv.Entry) { e.Categories = []string{"y", "x"} }, false, false},
		"comments":                  {func(e *feedconv.Entry) { e.Comments = "http://c.example/2" }, false, true},
		"scheme of comments":        {func(e *feedconv.Entry) { e.Comments = "https://c.example/1" }, false, false},
		"summary":                   {func(e *feedconv.Entry) { e.Summary = "short" }, false, true},
		"date":                      {func(e *feedconv.Entry) { e.PubDate = e.PubDate.Add(time.Hour) }, false, true},
		"date goes":                 {undated, false, true},
		"updated":                   {func(e *feedconv.Entry) { e.Updated = e.PubDate.Add(time.Hour) }, false, true},
		"markup":                    {func(e *feedconv.Entry) { e.Content = "<p>A</p>" }, false, false},
		"the source's date":         {func(e *feedconv.Entry) { e.Source = &feedconv.Source{Title: "S", Updated: e.PubDate} }, false, false},
		"a date, and text":          {func(e *feedconv.Entry) { e.Content, e.PubDate = "B", e.PubDate.Add(time.Hour) }, true, true},
		"an author, scheme of link": {func(e *feedconv.Entry) { e.Authors, e.Link = nil, "https://example.com/a" }, false, true},
	} {
		for _, policy := range []lektordir.Policy{lektordir.UpdateNew, lektordir.UpdateAlways, lektordir.UpdateNever} {
			for _, place := range []string{"new", "cur", "gone"} {
				if place == "gone" && policy != lektordir.UpdateAlways {
					continue
				}
				wo := newWorld(t, policy)
				doc := append([]feedconv.Entry{base}, rest...)
				wo.fetch(doc...)
				switch place {
				case "cur":
					wo.readAll()
				case "gone":
					wo.removeAll()
				}
				before := wo.names()
				doc[0] = changed(base, c.change)
				res := wo.fetch(doc...)
				counted := c.counts && (policy == lektordir.UpdateAlways || policy == lektordir.UpdateNew && place == "new")
				replaced := c.taken && place == "new" && policy != lektordir.UpdateNever
				if (len(res.Updated) == 1) != counted || len(res.New) > 0 {
					t.Errorf("%s, %s, %s: %+v", name, policy, place, res)
				}
				if got := !slices.Equal(wo.names(), before); got != (replaced || counted) {
					t.Errorf("%s, %s, %s: replaced %t: %q, %q", name, policy, place, got, before, wo.names())
				}
				// The next fetches find no difference.
				before = wo.names()
				for range 2 {
					if res := wo.fetch(doc...); len(res.Updated)+len(res.New) > 0 || !slices.Equal(wo.names(), before) {
						t.Errorf("%s, %s, %s: fetched again: %+v", name, policy, place, res)
					}
				}
			}
		}
	}
}

// A replacement for other properties keeps what did not change: the content, also that of the
// entry's page, and all that the document has.
func TestReplacedProperties(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	base := changed(entry("a", "<p>A</p>"), func(e *feedconv.Entry) { e.Categories, e.Comments = []string{"x"}, "http://c.example/1" })
	article := lektordir.FullText{URL: "http://example.com/a", Type: "text/html"}
	fetch := func(doc ...feedconv.Entry) stage.Result {
		return wo.transact(func(tx *stage.Stager) (stage.Result, error) {
			f := &feedconv.Feed{Format: feedconv.RSS20, Entries: doc}
			wanted, err := tx.Wanted(Document(f, wo.p, nil))
			if err != nil {
				t.Fatal(err)
			}
			return tx.Stage(t.Context(), Document(f, wo.p, func(i int, e *lektordir.Entry) {
				if slices.ContainsFunc(wanted, func(w stage.Wanted) bool { return w.Index == i }) {
					e.FeedContent, e.FullText = e.Content, article
					e.Content = []byte("<p>the whole article</p>")
				}
			}))
		})
	}
	old := fetch(base).New[0]
	fetch(changed(base, func(e *feedconv.Entry) { e.Categories = []string{"x", "new"} }))
	e := wo.read()
	if !slices.Equal(e.Categories, []string{"x", "new"}) || e.Comments != base.Comments || string(e.Content) != "<p>the whole article</p>" ||
		string(e.FeedContent) != base.Content || e.FullText.URL != article.URL || e.ID != "a" || e.Title != "a" || e.Replaces != old || !e.PubDate.Equal(base.PubDate) {
		t.Errorf("%+v", e)
	}
	if problems := wo.check(); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
}

// check returns the problems of the lektor-dir.
func (wo *world) check() (problems []string) {
	wo.t.Helper()
	found, err := wo.d.Check(wo.t.Context(), false)
	if err != nil {
		wo.t.Fatal(err)
	}
	for _, p := range found {
		problems = append(problems, fmt.Sprint(p))
	}
	return problems
}

// Dates that move in most entries, or at each fetch, are dates of the build: no unread entry is
// replaced. So are values that change at each fetch: they replace an entry five times. Neither makes the
// journal grow by more.
func TestFiftyFetches(t *testing.T) {
	const n = 10
	for name, c := range map[string]struct {
		change  func(fetch, i int, e *feedconv.Entry)
		renames int // of the 50 fetches
	}{
		"nothing":        {func(int, int, *feedconv.Entry) {}, 0},
		"all dates move": {func(f, _ int, e *feedconv.Entry) { e.PubDate = e.PubDate.Add(time.Duration(f) * time.Hour) }, 0},
		"all move once":  {func(f, _ int, e *feedconv.Entry) { e.PubDate = e.PubDate.Add(time.Duration(f/25) * time.Hour) }, 0},
		"most move": {func(f, i int, e *feedconv.Entry) {
			e.PubDate = e.PubDate.Add(time.Duration(f*min(i/4, 1)) * time.Hour)
		}, 0},
		"all are dates of the update": {func(f, _ int, e *feedconv.Entry) { e.Updated = e.PubDate.Add(time.Duration(f) * time.Hour) }, 0},
		"one moves at each fetch": {func(f, i int, e *feedconv.Entry) {
			e.PubDate = e.PubDate.Add(time.Duration(f*(1-min(i, 1))) * time.Hour)
		}, 1},
		"one is corrected, and back": {func(f, i int, e *feedconv.Entry) {
			e.PubDate = e.PubDate.Add(time.Duration(f/25%2*(1-min(i, 1))) * time.Hour)
		}, 2},
		"all move, one gets an author": {func(f, i int, e *feedconv.Entry) {
			e.PubDate = e.PubDate.Add(time.Duration(f) * time.Hour)
			if i == 0 && f >= 20 {
				e.Authors = []feedconv.Person{{Name: "Ann"}}
			}
		}, 1},
		"tokens in all enclosures":        {func(f, i int, e *feedconv.Entry) { encl(fmt.Sprintf("https://r.example/%d.mp3?token=%d", i, f))(e) }, 5 * n},
		"categories in any order":         {func(f, _ int, e *feedconv.Entry) { e.Categories = [][]string{{"a", "b"}, {"b", "a"}}[f%2] }, 0},
		"authors alternate":               {func(f, _ int, e *feedconv.Entry) { e.Authors = []feedconv.Person{{Name: fmt.Sprint(f % 2)}} }, 5 * n},
		"author changes twice, and stays": {func(f, i int, e *feedconv.Entry) { e.Authors = []feedconv.Person{{Name: fmt.Sprint(min(f, 2))}} }, 2 * n},
	} {
		wo := newWorld(t, lektordir.UpdateNew)
		renames := 0
		var last []string
		var doc []feedconv.Entry
		for f := range 51 {
			doc = numbered(n, prefix("g"))
			for i := range doc {
				c.change(f, i, &doc[i])
			}
			size := 0
			if f > 0 {
				size = wo.journal()
			}
			res := wo.fetch(doc...)
			names := wo.names()
			if f > 0 {
				if len(res.New)+len(res.Updated) > 0 || len(names) != n {
					t.Fatalf("%s: fetch %d: %+v", name, f, res)
				}
				for _, unique := range names {
					if !slices.Contains(last, unique) {
						renames++
					}
				}
				if slices.Equal(names, last) && wo.journal() != size {
					t.Errorf("%s: fetch %d: the journal grew", name, f)
				}
			}
			last = names
		}
		if renames != c.renames {
			t.Errorf("%s: %d renames, want %d", name, renames, c.renames)
		}
	}
}

// If the record of properties is lost, torn or old, nothing is replaced that does not differ.
func TestPropertiesLost(t *testing.T) {
	for _, damage := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.WriteFile(path, nil, 0o666) },
		func(path string) error { return os.WriteFile(path, []byte("\x00\x00 junk\n1234 x\n"), 0o666) },
		func(path string) error { return os.Truncate(path, 20) },
	} {
		wo := newWorld(t, lektordir.UpdateNew)
		doc := numbered(3, prefix("g"))
		wo.fetch(doc...)
		before := wo.names()
		path := filepath.Join(filepath.Dir(seen(wo)), "properties")
		for range 3 {
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			wo.fetch(doc...)
			if !slices.Equal(wo.names(), before) {
				t.Errorf("replaced: %q", wo.names())
			}
		}
		// A difference is found by reading the entry.
		if err := damage(path); err != nil {
			t.Fatal(err)
		}
		doc[0].Categories = []string{"new"}
		wo.fetch(doc...)
		if slices.Equal(wo.names(), before) {
			t.Error("a difference was not found")
		}
	}
}
