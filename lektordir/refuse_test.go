package lektordir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// A Ref that does not name an entry is refused, and no file is changed.
func TestBadRefs(t *testing.T) {
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Deliver(t.Context(), clock, lektordir.UpdateNew, lektordir.Entry{ID: "a", Title: "A"}, lektordir.Entry{ID: "b", Title: "B"})
	if err != nil || len(res.New) != 2 {
		t.Fatal(res, err)
	}
	hash, unique := res.New[0].Feed, res.New[0].Unique
	for _, r := range []lektordir.Ref{
		{},
		{Place: lektordir.Cur},
		{Feed: hash},
		{Unique: unique},
		{Feed: hash, Unique: ".."},
		{Feed: "..", Unique: "src"},
		{Feed: "..", Unique: unique},
		{Feed: ".", Unique: unique},
		{Feed: "../new/" + hash, Unique: unique},
		{Feed: hash, Unique: "1.a/../" + unique},
		{Feed: hash, Unique: unique, Place: lektordir.Cur, Info: "2,/../../../new"},
		{Feed: hash, Unique: "."},
		{Feed: hash, Unique: unique + ";2,S"},
	} {
		_, readErr := d.ReadEntry(r, lektordir.Obligatory)
		_, flagErr := d.SetFlags(r, "S", "")
		for what, err := range map[string]error{"ReadEntry": readErr, "SetFlags": flagErr, "Remove": d.Remove(r)} {
			if bad := (*lektordir.MalformedError)(nil); !errors.As(err, &bad) || !bad.NoEntry {
				t.Errorf("%s of %+v: %v", what, r, err)
			}
		}
		if f := d.FeedOf(r); f == nil || r.Feed != hash && f.ID != "" {
			t.Errorf("the feed of %+v is %+v", r, f)
		}
	}
	refs, err := d.List(t.Context(), lektordir.ListOptions{})
	if err != nil || len(refs) != 2 {
		t.Errorf("%v, %v", refs, err)
	}
	if _, err := d.ReadFeed(hash); err != nil {
		t.Error(err)
	}
}

// Deliver refuses a feed without an id, and writes nothing.
func TestDeliverNoFeed(t *testing.T) {
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*lektordir.Feed{nil, {}, {Name: "x"}} {
		if _, err := d.Deliver(context.Background(), f, lektordir.UpdateNew, lektordir.Entry{ID: "a", Title: "A"}); err == nil || !strings.Contains(err.Error(), "feed") {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if hashes, err := d.FeedHashes(); err != nil || len(hashes) > 0 {
		t.Error(hashes, err)
	}
}

// An empty path is an error; it does not mean the working directory.
func TestEmptyPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for what, open := range map[string]func(string, *lektordir.Options) (*lektordir.Dir, error){"Create": lektordir.Create, "Open": lektordir.Open} {
		if _, err := open("", nil); err == nil || err.Error() != "the path of the lektor-dir is empty" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names, err := os.ReadDir("."); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
}

// Deliver removes temporary files that a killed delivery left in the feed's directory.
func TestDeliverSweeps(t *testing.T) {
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
	if err != nil {
		t.Fatal(err)
	}
	src := d.Join("src", lektordir.FeedHash(clock.ID))
	if err := os.MkdirAll(filepath.Join(src, "etc"), 0o777); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-3 * time.Hour)
	for name, age := range map[string]time.Time{
		".name1234567890123456": old, ".id1234567890123456": old, "etc/.link1234567890123456": old,
		".mine": old, ".author1234567890123456": time.Now(),
	} {
		path := filepath.Join(src, name)
		if err := errors.Join(os.WriteFile(path, []byte("half"), 0o666), os.Chtimes(path, age, age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Deliver(t.Context(), clock, lektordir.UpdateNew, lektordir.Entry{ID: "a", Title: "A"}); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, dir := range []string{src, filepath.Join(src, "etc")} {
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if n.Name()[0] == '.' {
				left = append(left, n.Name())
			}
		}
	}
	if want := []string{".author1234567890123456", ".mine"}; !slices.Equal(left, want) {
		t.Error(left)
	}
}

// If several entries of a call have the same ID, Deliver delivers the one with the greatest date, and among
// equal ones the last.
func TestDeliverSameID(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	for want, entries := range map[string][]lektordir.Entry{
		"last":    {{ID: "a", Title: "first"}, {ID: "a", Title: "last"}},
		"newest":  {{ID: "a", Title: "newest", PubDate: day(2)}, {ID: "a", Title: "old", PubDate: day(1)}},
		"updated": {{ID: "a", Title: "updated", PubDate: day(1), Updated: day(3)}, {ID: "a", Title: "published later", PubDate: day(2)}},
	} {
		d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Deliver(t.Context(), clock, lektordir.UpdateNew, entries...)
		if err != nil || len(res.New) != 1 || res.Repeated != 1 {
			t.Fatalf("%s: %+v, %v", want, res, err)
		}
		if e, err := d.ReadEntry(res.New[0], lektordir.FieldTitle); err != nil || e.Title != want {
			t.Errorf("%+v, %v, want the title %q", e, err, want)
		}
	}
}
