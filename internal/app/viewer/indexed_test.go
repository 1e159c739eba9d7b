package viewer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/publish"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// some returns a lektor-dir with entries of several feeds. Some of them share their dates, ids or
// all files.
func some(t *testing.T, seed uint64) *fixture {
	t.Helper()
	f := newFixture(t)
	random := rand.New(rand.NewPCG(seed, 9))
	for n := range 4 {
		if _, err := f.Feed(fmt.Sprintf("http://%d.example/", n), []string{"Same", "same", "Other", "Last"}[n]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		place, name := "new", testdir.Unique(1700000000+int64(random.IntN(20)), i+1)
		if random.IntN(2) == 0 {
			place, name = "cur", name+[]string{"", ";2,S", ";2,FS"}[random.IntN(3)]
		}
		files := []string{"title=" + fmt.Sprint("Title ", random.IntN(9)), "content=<p>text é " + fmt.Sprint(i)}
		if random.IntN(3) > 0 {
			files = append(files, fmt.Sprintf("pubdate=2023-11-%02dT10:00:00Z", 1+random.IntN(9)))
		}
		if random.IntN(3) > 0 {
			files = append(files, fmt.Sprintf("id=urn:x:%d", random.IntN(25)))
		}
		if random.IntN(2) == 0 {
			files = append(files, "type=text/html")
		}
		if random.IntN(4) == 0 {
			files = append(files, "author=A. Writer <a@x.example>")
		}
		if random.IntN(4) == 0 {
			files = append(files, "extras=category\tc\nenclosure\thttp://x.example/a\taudio/mpeg\t7\nduration\t61\n")
		}
		if _, err := f.Entry(fmt.Sprintf("http://%d.example/", random.IntN(5)), place, name, files...); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// TestWithIndex: commands print and write the same with an index and without.
func TestWithIndex(t *testing.T) {
	ctx := context.Background()
	f := some(t, 3)
	cache := t.TempDir()
	run := func(indexed bool, what func(session.Common, *cmdline.Streams, string) error) map[string]string {
		t.Helper()
		c := f.Common()
		if indexed {
			c.Index = index.Options{Cache: cache}
			if err := Index(ctx, IndexOptions{Common: c}, f.Streams("")); err != nil {
				t.Fatal(err)
			}
		}
		to := t.TempDir()
		if err := what(c, f.Streams(""), to); err != nil {
			t.Fatal(err)
		}
		files, err := testdir.Files(to)
		if err != nil {
			t.Fatal(err)
		}
		if files == nil {
			files = map[string]string{}
		}
		files["printed"], files["said"] = f.Out.String(), f.Err.String()
		return files
	}
	published := func(o publish.Options) func(session.Common, *cmdline.Streams, string) error {
		return func(c session.Common, s *cmdline.Streams, to string) error {
			o := o
			o.Common, o.Self = c, "http://me.example/feed."+o.Format
			if o.PerPage > 0 {
				if o.Archive != "" {
					o.Archive = to
				} else {
					o.Paged = to
				}
			}
			return publish.Publish(ctx, o, s)
		}
	}
	for name, what := range map[string]func(session.Common, *cmdline.Streams, string) error{
		"stats": func(c session.Common, s *cmdline.Streams, _ string) error {
			return Stats(ctx, StatsOptions{Common: c}, s)
		},
		"digest": func(c session.Common, s *cmdline.Streams, _ string) error {
			return Digest(ctx, DigestOptions{Common: c, All: true, Lines: 3, Keep: true, Number: true}, s)
		},
		"atom":         published(publish.Options{Format: "atom", Complete: true}),
		"rss":          published(publish.Options{Format: "rss"}),
		"json":         published(publish.Options{Format: "json"}),
		"newest":       published(publish.Options{Format: "atom", Newest: 17}),
		"paged":        published(publish.Options{Format: "atom", PerPage: 7}),
		"paged, JSON":  published(publish.Options{Format: "json", PerPage: 7, Newest: 30}),
		"archive":      published(publish.Options{Format: "atom", Archive: "x", PerPage: 7}),
		"archive, RSS": published(publish.Options{Format: "rss", Archive: "x", PerPage: 11}),
		"one that asks": func(c session.Common, s *cmdline.Streams, _ string) error {
			return Digest(ctx, DigestOptions{Common: c, Query: []string{"is:flagged"}, Keep: true}, s)
		},
	} {
		want := run(false, what)
		if len(want["printed"]) < 200 && len(want) < 4 {
			t.Fatalf("%s: %q", name, want)
		}
		got := run(true, what)
		if maps.Equal(got, want) {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(want)) {
			if got[k] != want[k] {
				t.Errorf("%s: %s is\n%s\nnot\n%s", name, k, got[k], want[k])
			}
		}
	}
}

// TestDigestMarks: entries that digest prints are marked as read, so ls does not list them.
func TestDigestMarks(t *testing.T) {
	f := some(t, 8)
	c := f.Common()
	if err := Digest(context.Background(), DigestOptions{Common: c, Number: true}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	list, err := testdir.Entries(f.Path)
	if err != nil || len(list) != 60 {
		t.Fatal(len(list), err)
	}
	if err := List(context.Background(), ListOptions{Common: c, Print: cmdline.PrinterOptions{Format: "path"}}, f.Streams("")); err != nil || f.Out.Len() > 0 {
		t.Errorf("%v, still unread:\n%s", err, &f.Out)
	}
}
