package index

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// TestReadMeanwhile: what another process has brought into the file while it was still
// being written is looked at again by who finds it there.
func TestReadMeanwhile(t *testing.T) {
	ctx := context.Background()
	made := testdir.New(t)
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Feed("http://a.example/", "A"); err != nil {
		t.Fatal(err)
	}
	o := Options{Cache: filepath.Join(t.TempDir(), "cache"), Budget: time.Hour, Warn: t.Errorf}
	other := New(d, o)
	look := func(x *Index) (authors []string) {
		t.Helper()
		v, err := x.Look(ctx)
		if err != nil || v == nil {
			t.Fatal(v, err)
		}
		defer v.Close()
		q, err := query.Parse("")
		if err != nil {
			t.Fatal(err)
		}
		w := entrystore.Wanted{Selection: entrystore.Selection{Query: q, All: true, Hidden: true, Want: lektordir.FieldAuthor}, Matcher: q.Bind(time.Now()), Now: time.Now(), Folders: func(string) []string { return nil }}
		if err := v.Find(ctx, w, func(h entrystore.Hit) bool { authors = append(authors, h.Entry.Author); return true }); err != nil {
			t.Fatal(err)
		}
		return authors
	}
	if err := other.Build(ctx, nil); err != nil {
		t.Fatal(err)
	}
	path, err := made.Entry("http://a.example/", "new", testdir.Unique(1700000000, 1), "title=T", "content=text", "author")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	o.Clock = func() time.Time {
		// After the file was looked at, and before the directory is.
		if asked++; asked == 1 {
			if authors := look(other); len(authors) != 1 || authors[0] != "" {
				t.Errorf("got %q; want len(authors) == 1 and authors[0] == \"\"", authors)
			}
			if err := os.WriteFile(filepath.Join(path, "author"), []byte("Somebody\n"), 0o666); err != nil {
				t.Error(err)
			}
		}
		return time.Now()
	}
	if authors := look(New(d, o)); len(authors) != 1 || authors[0] != "Somebody" {
		t.Errorf("got %q; want len(authors) == 1 and authors[0] == \"Somebody\"", authors)
	}
}

// TestShared: on a file system of several machines, the times of a directory may be older than its
// names. There every query lists the directories, and only entries that it does not know are read.
func TestShared(t *testing.T) {
	ctx := context.Background()
	made := testdir.New(t)
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Entry("http://a.example/", "new", testdir.Unique(1700000000, 1), "title=T", "content=text"); err != nil {
		t.Fatal(err)
	}
	o := Options{Cache: filepath.Join(t.TempDir(), "cache"), Budget: time.Hour, Warn: t.Errorf}
	remembered := func() (n int) {
		x := New(d, o)
		if err := x.Build(ctx, nil); err != nil {
			t.Fatal(err)
		}
		s, err := x.open()
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.load()
		for _, f := range s.feeds {
			for _, one := range f.stamps {
				if one != "" {
					n++
				}
			}
		}
		return n
	}
	for end := time.Now().Add(time.Minute); remembered() != 3; {
		if time.Now().After(end) {
			t.Fatal("no stamps are remembered on a local file system")
		}
	}
	o.Shared = true
	if n := remembered(); n != 0 {
		t.Errorf("%d stamps are remembered on a file system of several machines", n)
	}
}
