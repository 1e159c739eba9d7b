package index_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// world is a lektor-dir, and two ways to ask it: by an index, and without.
type world struct {
	*testing.T
	dir   *testdir.Dir
	cache string
	clock func() time.Time
	said  bytes.Buffer
	brief bool
	// shared is index.Options.Shared.
	shared bool
	// indexed counts the answers that were the index's, unless it is nil.
	indexed *int
}

// counting is an index that counts how often it answers.
type counting struct {
	*index.Index
	n *int
}

func (c counting) Look(ctx context.Context) (entrystore.View, error) {
	v, err := c.Index.Look(ctx)
	if v != nil && c.n != nil {
		*c.n++
	}
	return v, err
}

func newWorld(t *testing.T) *world {
	return &world{T: t, dir: testdir.New(t), cache: filepath.Join(t.TempDir(), "cache"), clock: time.Now}
}

// open opens the lektor-dir as a command does, whose moment is now.
func (w *world) open() (*entrystore.Store, *index.Index) {
	if w.T != nil {
		w.Helper()
	}
	d, err := lektordir.Open(w.dir.Path, nil)
	if err != nil {
		w.Fatal(err)
	}
	streams := cmdline.NewStreams("test", nil, &bytes.Buffer{}, &w.said)
	s := entrystore.New(d, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), streams)
	x := index.New(d, index.Options{Cache: w.cache, Host: "here", Clock: w.clock, Budget: time.Hour, Least: 1, Brief: w.brief, Shared: w.shared, Warn: streams.Report.Warn})
	return s, x
}

// ask returns the paths and titles of the entries that a query selects, with or without the index.
func (w *world) ask(with bool, words string, sel entrystore.Selection) []string {
	if w.T != nil {
		w.Helper()
	}
	s, x := w.open()
	if with {
		s.Index = counting{x, w.indexed}
	}
	q, err := entrystore.ParseQuery(w.dir.Path, []string{words})
	if err != nil {
		w.Fatal(err)
	}
	sel.Query = q
	found, err := s.Select(context.Background(), sel)
	if err != nil {
		w.Fatal(err)
	}
	lines := make([]string, len(found))
	for i, r := range found {
		e := r.Get(lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldPubDate | lektordir.FieldType | lektordir.FieldCategories | lektordir.FieldInReplyTo |
			lektordir.FieldDuration | lektordir.FieldEpisode | lektordir.FieldSeason | lektordir.FieldElements)
		lines[i] = fmt.Sprintf("%s %q %q %s %s %q %q %d %d %s %q", r.Ref.Path(), e.Title, e.Author, r.Date(), e.Type, e.Categories, e.InReplyTo, e.Season, e.Episode, e.Duration, e.Elements)
	}
	if sel.Newest == 0 {
		slices.Sort(lines)
	}
	return lines
}

// same fails the test if the index and the directory disagree.
func (w *world) same(words string, sel entrystore.Selection) []string {
	w.Helper()
	want, got := w.ask(false, words, sel), w.ask(true, words, sel)
	if !slices.Equal(got, want) {
		w.Fatalf("%q %+v:\nindex:\n%s\ndirectory:\n%s\n%s", words, sel, strings.Join(got, "\n"), strings.Join(want, "\n"), w.said.String())
	}
	return want
}

// overview fails the test if index and directory disagree about the number of entries of a feed,
// the newest entry, or dates.
func (w *world) overview() {
	w.Helper()
	ctx := context.Background()
	s, x := w.open()
	refs, err := s.List(ctx, lektordir.ListOptions{SkipTrashed: true})
	if err != nil {
		w.Fatal(err)
	}
	counts, dates := map[string]entrystore.Tally{}, map[[2]string]time.Time{}
	for _, r := range refs {
		c := counts[r.Feed]
		c.Add(r)
		counts[r.Feed] = c
		dates[[2]string{r.Feed, r.Unique}] = s.Record(r).Date()
	}
	q := &query.Query{}
	newest, err := s.Select(ctx, entrystore.Selection{Query: q, Newest: 5})
	if err != nil {
		w.Fatal(err)
	}
	slices.Reverse(newest)
	s.Index = x
	counted, err := s.Counted(ctx)
	if err != nil {
		w.Fatal(err)
	}
	if counted == nil {
		return // it has to be read
	}
	if !maps.Equal(counted, counts) {
		w.Fatalf("index:\n%v\ndirectory:\n%v", counted, counts)
	}
	newestIndexed, err := s.Select(ctx, entrystore.Selection{Query: q, Newest: 5})
	if err != nil {
		w.Fatal(err)
	}
	slices.Reverse(newestIndexed)
	paths := func(list []*entrystore.Record) (paths []string) {
		for _, r := range list {
			paths = append(paths, r.Ref.Path())
		}
		return paths
	}
	if got, want := paths(newestIndexed), paths(newest); !slices.Equal(got, want) {
		w.Fatalf("index:\n%v\ndirectory:\n%v", got, want)
	}
	if _, err := s.Dates(ctx, func(feed, unique string, when time.Time) {
		if want, listed := dates[[2]string{feed, unique}]; listed && !want.Equal(when) {
			w.Errorf("%s/%s: index %s, directory %s", feed, unique, when, want)
		}
	}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) build() {
	w.Helper()
	_, x := w.open()
	if err := x.Build(context.Background(), nil); err != nil {
		w.Fatal(err)
	}
}

func TestAnswers(t *testing.T) {
	w := newWorld(t)
	if _, err := w.dir.Feed("http://a.example/", "Alpha Ärger"); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		place := []string{"new", "cur"}[i%2]
		name := testdir.Unique(1700000000+int64(i), i%250+1)
		if place == "cur" {
			name += ";2," + []string{"", "S", "FS", "ST"}[i/2%4]
		}
		files := []string{
			fmt.Sprintf("title=Title %d", i), "content=<p>text " + strings.Repeat("number ", i%3) + fmt.Sprint(i) + " of the <b>Größe</b> 日本語の本 machine learning</p>", "type=text/html",
			"pubdate=" + time.Unix(1600000000+int64(i*7919%300)*86400*30, 0).UTC().Format(time.RFC3339), "extras=category\tc" + fmt.Sprint(i%5) + "\nin-reply-to\turn:x:" + fmt.Sprint(i) + "\n" +
				[]string{"", "season\t2\nelement\tpodcast:transcript\t\turl=http://x.example/\n", "duration\t1800\nepisode\t7\nelement\tpsc:chapters\n"}[i%3],
		}
		if i%41 == 3 {
			files = append(files, "title") // malformed
		}
		if _, err := w.dir.Entry("http://a.example/", place, name, files...); err != nil {
			t.Fatal(err)
		}
	}
	w.build()
	for _, words := range []string{
		"", "text", "number", "umber", "GRÖSSE", "groß", "日本", "日本語の", "本語", "\"number 7\"", "\"number number 8\"", "\"machine learn\"", "\"ine learning\"", "7 or 13", "not:number",
		"title:7", "alpha", "ärger", "since:2021", "before:2022 number", "on:2021-03", "is:unread 1", "flag:F", "is:flagged 2", "is:trashed", "category:c3", "text:title", "/n.m/i 9", "e", "s r",
		"has:category", "delivered:2023-11-14T22:15:00Z", "type:html", "is:withdrawn", "id:x", "\"of the\"", "\"the größe\"",
		"season:2", "episode:>6", "duration:<31m", "duration:>30m", "has:transcript", "has:chapters", "number not:has:chapters",
	} {
		for _, sel := range []entrystore.Selection{{All: true}, {All: true, Newest: 7}, {Newest: 5, Want: lektordir.FieldPubDate}} {
			w.same(words, sel)
		}
	}
	w.overview()
}
