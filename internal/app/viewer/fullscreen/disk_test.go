package fullscreen

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
	"github.com/lektordir/lektor/lektordir"
)

// adapter returns the disk of the full-screen reader, with a separate index.
func (f *fixture) adapter(least int) *diskAdapter {
	f.T.Helper()
	o := Options{Common: f.Common()}
	o.Index = index.Options{Cache: filepath.Join(f.T.TempDir(), "cache"), Host: "here", Least: least, Budget: time.Hour}
	v, err := o.Open(nil, cmdline.PrinterOptions{}, f.Streams(""))
	if err != nil {
		f.T.Fatal(err)
	}
	return newDiskAdapter(o, v)
}

// TestOverview: an overview agrees with the directory after each change. The first call of Learn
// builds the index.
func TestOverview(t *testing.T) {
	f := newFixture(t)
	for i := range 60 {
		files := []string{fmt.Sprintf("title=Title %d \x1b[2J", i), fmt.Sprintf("content=number%d", i%7)}
		if i%3 > 0 {
			files = append(files, "pubdate="+viewdir.Now.Add(time.Duration(i*i%60-50)*time.Hour).UTC().Format(time.RFC3339))
		}
		if i%20 == 9 {
			files = append(files, "pubdate=soon")
		}
		name, place := fmt.Sprintf("%d.%d.h", 1773000000+i*977%60, i), "new"
		if i%4 == 1 {
			name, place = name+";2,"+[]string{"", "S", "FS", "T", "FT"}[i%5], "cur"
		}
		f.Add(place, name, files...)
	}
	ctx := t.Context()
	l := f.adapter(10)
	// A glance has entries and feeds, but no counts.
	if o, err := l.Glance(ctx, 5); err != nil || o.Counts != nil || len(o.Newest) != 5 || len(o.Feeds) != 1 {
		t.Fatalf("%v %v without an index", o, err)
	}
	compare := func() {
		t.Helper()
		refs, err := listAll(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		var messages []string
		if err := l.Learn(ctx, refs, func(what string, done, total int) { messages = append(messages, what) }); err != nil {
			t.Fatal(err)
		}
		dates, whole := l.Dates(ctx, refs)
		values := make([]lektordir.Ref, len(refs))
		for i, r := range refs {
			values[i] = *r
		}
		if !whole {
			t.Error("dates are missing after Learn")
		}
		// Learn reads few missing dates without the index.
		if err := l.index().Build(ctx, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		var count entrystore.Tally
		type dated struct {
			ref  lektordir.Ref
			date time.Time
		}
		var want []dated
		s := l.store()
		for i, p := range refs {
			r := *p
			count.Add(r)
			if read := s.Record(r).Date(); !read.Equal(dates[i]) {
				t.Errorf("%s: %s, read %s", r.Path(), dates[i], read)
			}
			if r.Unread() {
				want = append(want, dated{r, dates[i]})
			}
		}
		slices.SortFunc(want, func(a, b dated) int {
			if c := b.date.Compare(a.date); c != 0 {
				return c
			}
			return strings.Compare(b.ref.Unique, a.ref.Unique)
		})
		o, err := l.Overview(ctx, 8)
		if err != nil || o == nil {
			t.Fatalf("%v; messages %q", err, messages)
		}
		if got := o.Counts[refs[0].Feed]; got != count {
			t.Errorf("%v, not %v", got, count)
		}
		if len(o.Newest) != 8 {
			t.Fatalf("%d", len(o.Newest))
		}
		for i, e := range o.Newest {
			if e.Ref != want[i].ref || !e.Date.Equal(want[i].date) || !reflect.DeepEqual(e.Row, l.Rows(ctx, []lektordir.Ref{e.Ref})[0]) {
				t.Errorf("%d: %v, not %v", i, e, want[i])
			}
		}
		for _, text := range []string{"number3", "title:7", "is:read", "nothing", "flag:F or 11"} {
			q, err := l.Query(ctx, text)
			if err != nil {
				t.Fatal(err)
			}
			var match, find []string
			for i, yes := range q.Match(ctx, values) {
				if yes {
					match = append(match, refs[i].Path())
				}
			}
			found, ok := q.Find(ctx)
			for _, r := range found {
				find = append(find, r.Path())
			}
			slices.Sort(find)
			slices.Sort(match)
			if !ok || !slices.Equal(find, match) {
				t.Errorf("%s: %t %q, not %q", text, ok, find, match)
			}
		}
	}
	compare()
	// Another viewer marks entries, and a fetcher delivers one.
	newDir := filepath.Join(f.Path, "new", tuiHash(t, l))
	names, err := os.ReadDir(newDir)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range names[:20] {
		if err := os.Rename(filepath.Join(newDir, e.Name()), filepath.Join(f.Path, "cur", filepath.Base(newDir), e.Name()+[]string{";2,S", ";2,FS", ";2,ST"}[i%3])); err != nil {
			t.Fatal(err)
		}
	}
	f.Add("new", "1773100000.1.h", "title=the newest", "pubdate=2026-03-15T22:59:00Z")
	compare()
	if text := f.Err.String(); text != "" {
		t.Errorf("messages %q", text)
	}
}

// TestGlance: without an index, an overview lists the feeds that changed last, and others until
// it has enough entries. The entries are sorted as in a list. It reads only the entries of a feed
// that were delivered last.
func TestGlance(t *testing.T) {
	f := newFixture(t)
	l := f.adapter(1 << 30)
	feed := func(i int) string { return lektordir.FeedHash(fmt.Sprintf("http://g%02d.example/", i)) }
	add := func(i, when int, files ...string) string {
		name := fmt.Sprintf("%d.1.h", when)
		if _, err := f.Entry(fmt.Sprintf("http://g%02d.example/", i), "new", name, append([]string{"title=" + name, "content=text"}, files...)...); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const feeds = 3 * glanceFeeds
	for i := range feeds {
		if _, err := f.Feed(fmt.Sprintf("http://g%02d.example/", i), "Feed"); err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			// The feeds that changed last have the oldest dates, and the entry of a feed that was
			// delivered first has the newest date of the feed.
			add(i, 1700000000+i*10+k, "pubdate="+time.Unix(int64(1600000000-i*10-k), 0).UTC().Format(time.RFC3339))
		}
		when := time.Unix(int64(1700000000+i), 0)
		if err := os.Chtimes(filepath.Join(f.Path, "new", feed(i)), when, when); err != nil {
			t.Fatal(err)
		}
	}
	check := func(newest int, among ...int) {
		t.Helper()
		var want []string
		for _, i := range among {
			for k := range 3 {
				want = append(want, fmt.Sprintf("%d.1.h", 1700000000+i*10+k))
			}
		}
		o, err := l.Glance(t.Context(), newest)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range o.Newest {
			got = append(got, e.Ref.Unique)
			if e.Row.Title != e.Ref.Unique {
				t.Errorf("%+v", e)
			}
		}
		if want = want[:min(len(want), newest)]; !slices.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		if o.Counts != nil || len(o.Feeds) != feeds+1 {
			t.Errorf("%v, %d feeds", o.Counts, len(o.Feeds))
		}
	}
	var last, all []int
	for i := range feeds {
		if all = append(all, i); i >= feeds-glanceFeeds {
			last = append(last, i)
		}
	}
	check(5, last...)
	check(3*glanceFeeds, last...)
	check(3*glanceFeeds+1, all[feeds-glanceFeeds-1:]...)
	check(1000, all...)
	// A glance has no read entries.
	name := fmt.Sprintf("%d.1.h", 1700000000+last[0]*10)
	cur := filepath.Join(f.Path, "cur", feed(last[0]))
	if err := os.MkdirAll(cur, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(f.Path, "new", feed(last[0]), name), filepath.Join(cur, name+";2,S")); err != nil {
		t.Fatal(err)
	}
	if o, err := l.Glance(t.Context(), 1); err != nil || o.Newest[0].Ref.Unique != fmt.Sprintf("%d.1.h", 1700000000+last[0]*10+1) {
		t.Errorf("%+v %v", o, err)
	}
	for k := range 2 * glanceEach {
		add(0, 1750000000+k)
	}
	o, err := l.Glance(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(o.Newest); n != glanceEach+3*(feeds-1)-1 || o.Newest[0].Ref.Unique != fmt.Sprintf("%d.1.h", 1750000000+2*glanceEach-1) {
		t.Errorf("%d entries, %+v first", n, o.Newest[0])
	}
}

func tuiHash(t *testing.T, l *diskAdapter) string {
	t.Helper()
	feeds, err := l.Feeds(t.Context())
	if err != nil || len(feeds) != 1 {
		t.Fatal(feeds, err)
	}
	return feeds[0].Hash
}

// listAll returns all entries in one list.
func listAll(ctx context.Context, l *diskAdapter) (refs []*lektordir.Ref, err error) {
	lists, err := l.List(ctx)
	for _, hash := range slices.Sorted(maps.Keys(lists)) {
		for i := range lists[hash] {
			refs = append(refs, &lists[hash][i])
		}
	}
	return refs, err
}

// TestLearnWithoutIndex: Learn reads the dates from the entries if there are too few for an
// index, or if its directory cannot be made.
func TestLearnWithoutIndex(t *testing.T) {
	f := newFixture(t)
	for i := range 5 {
		f.Add("new", fmt.Sprintf("%d.1.h", 1773000000+i), fmt.Sprintf("pubdate=2020-01-0%dT00:00:00Z", 5-i))
	}
	few := f.adapter(10)
	none := f.adapter(1)
	if err := os.WriteFile(none.o.Index.Cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*diskAdapter{few, none} {
		refs, err := listAll(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		var messages bytes.Buffer
		if err := l.Learn(t.Context(), refs, func(what string, done, total int) { fmt.Fprintf(&messages, "%s %d/%d\n", what, done, total) }); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(messages.String(), "reading dates 5/5\n") || l.index().Exists() {
			t.Errorf("%s", &messages)
		}
		l.mu.Lock()
		got, _ := l.dates.get(*refs[0])
		l.mu.Unlock()
		if got.Day() != 5 {
			t.Errorf("%s", got)
		}
	}
}

// TestAlsoIn: the header of an entry names the other feeds that have its link, by the index and without.
func TestAlsoIn(t *testing.T) {
	for _, least := range []int{1, 1000} {
		f := newFixture(t)
		for i, id := range []string{"http://x.example/", "http://y.example/", "http://z.example/"} {
			if _, err := f.Feed(id, fmt.Sprintf("Other %d", i)); err != nil {
				t.Fatal(err)
			}
			link := []string{"http://p.example/1/", "https://www.p.example/1?utm_medium=x", "http://p.example/2"}[i]
			if _, err := f.Entry(id, "new", fmt.Sprintf("177300000%d.%d.h", i, i), "+link="+link); err != nil {
				t.Fatal(err)
			}
		}
		f.Add("new", "1773000009.9.h", "title=Here", "+link=http://p.example/1")
		l := f.adapter(least)
		if least == 1 {
			if err := l.index().Build(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		refs, err := listAll(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		headers := map[string]string{}
		for _, ref := range refs {
			p, err := l.Page(t.Context(), *ref, 80, false)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(p.Header, func(line string) bool { return strings.HasPrefix(line, "Also in: ") })
			if i >= 0 {
				headers[ref.Unique] = p.Header[i]
			}
		}
		if h := headers["1773000009.9.h"]; h != "Also in: Other 0, Other 1" {
			t.Errorf("index from %d: %q", least, headers)
		}
		if len(headers) != 3 || headers["1773000002.2.h"] != "" {
			t.Errorf("index from %d: %q", least, headers)
		}
	}
}
