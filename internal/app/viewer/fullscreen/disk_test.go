package fullscreen

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
	"github.com/lektordir/lektor/lektordir"
)

// adapter returns the disk of the full-screen reader, with a separate index.
func (f *fixture) adapter(least int) *disk {
	f.T.Helper()
	o := Options{Common: f.Common()}
	o.Index = index.Options{Cache: filepath.Join(f.T.TempDir(), "cache"), Host: "here", Least: least, Budget: time.Hour}
	v, err := o.Open(nil, cmdline.PrinterOptions{}, f.Streams(""))
	if err != nil {
		f.T.Fatal(err)
	}
	l := newDisk(o, v)
	f.T.Cleanup(l.names.Close)
	return l
}

// TestIndexed: the counts, dates and searches of the index agree with the directory after each change. The first call
// of Learn builds the index.
func TestIndexed(t *testing.T) {
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
	if counts, err := l.Counts(ctx); counts != nil || err != nil {
		t.Fatalf("%v %v without an index", counts, err)
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
		for i, e := range refs {
			values[i] = e.Ref()
		}
		if !whole {
			t.Error("dates are missing after Learn")
		}
		// Learn reads few missing dates without the index.
		if err := l.index.Build(ctx, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		var count entrystore.Tally
		s := l.store()
		for i, r := range values {
			count.Add(r)
			if read := s.Record(r).Date(); !read.Equal(dates[i].Time()) {
				t.Errorf("%s: %s, read %s", r.Path(), dates[i].Time(), read)
			}
		}
		counts, err := l.Counts(ctx)
		if err != nil || counts[values[0].Feed] != count {
			t.Fatalf("%v %v, not %v; messages %q", counts, err, count, messages)
		}
		search := func(l *disk, text string) (paths []string) {
			found, err := l.Search(ctx, text, func(bool) []catalog.Entry { return refs })
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range found {
				paths = append(paths, e.Ref().Path())
			}
			return paths
		}
		for _, text := range []string{"number3", "title:7", "is:read", "nothing", "flag:F or 11"} {
			q, err := l.parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok, err := l.store().Indexed(ctx, entrystore.Selection{Query: q, All: true}); !ok || err != nil {
				t.Errorf("%s: the index does not answer: %v", text, err)
			}
			if find, match := search(l, text), search(f.adapter(1000), text); !slices.Equal(find, match) {
				t.Errorf("%s: %q, not %q", text, find, match)
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

func tuiHash(t *testing.T, l *disk) string {
	t.Helper()
	s, err := l.Now(t.Context(), catalog.Part{})
	if err != nil || len(s.Feeds) != 1 {
		t.Fatal(s.Feeds, err)
	}
	return s.Feeds[0].Hash
}

// listAll returns all entries in one list.
func listAll(ctx context.Context, l *disk) (entries []catalog.Entry, err error) {
	s, err := l.Now(ctx, catalog.Part{})
	for _, f := range s.Feeds {
		entries = slices.AppendSeq(entries, f.All())
	}
	return entries, err
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
	for _, l := range []*disk{few, none} {
		refs, err := listAll(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		var messages bytes.Buffer
		if err := l.Learn(t.Context(), refs, func(what string, done, total int) { fmt.Fprintf(&messages, "%s %d/%d\n", what, done, total) }); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(messages.String(), "reading dates 5/5\n") || l.index.Exists() {
			t.Errorf("%s", &messages)
		}
		l.mu.Lock()
		got := l.dates[refs[0].ID()].Time()
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
			if err := l.index.Build(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		refs, err := listAll(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		headers := map[string]string{}
		for _, e := range refs {
			ref := e.Ref()
			p, err := l.Page(t.Context(), ref, 80, false)
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
