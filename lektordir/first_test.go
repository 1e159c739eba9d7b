package lektordir

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// initial stages the first entries of a feed.
func initial(t *testing.T, d *Dir, vs ...version) (*fetcher, *delivery) {
	t.Helper()
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		if _, err := tx.add(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	return w, tx
}

// uniques returns the unique names of all entries, sorted.
func uniques(t *testing.T, d *Dir) (names []string) {
	t.Helper()
	for _, r := range list(t, d, ListOptions{AllVersions: true}) {
		names = append(names, r.Unique)
	}
	slices.Sort(names)
	return names
}

// staged returns the unique names of the staged entries, sorted.
func staged(tx *delivery) (names []string) {
	for _, r := range tx.staged {
		names = append(names, r.Unique)
	}
	slices.Sort(names)
	return names
}

// The first entries of a feed appear together, by one rename. Later entries are renamed one by
// one.
func TestFirstEntries(t *testing.T) {
	d, _ := newDir(t)
	var renamed []string
	d.fs.Rename = func(from, to string) error {
		if got := uniques(t, d); len(got) != 0 && len(renamed) == 0 {
			t.Errorf("visible before: %q", got)
		}
		renamed = append(renamed, strings.TrimPrefix(to, d.Path()+"/"))
		return dirfs.RenameNoReplace(from, to)
	}
	_, tx := initial(t, d, sample("1", "A"), sample("2", "B"))
	want := staged(tx)
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	if got := uniques(t, d); !slices.Equal(got, want) || len(tx.refs()) != 2 {
		t.Errorf("%q, want %q", got, want)
	}
	if len(renamed) != 1 || renamed[0] != "new/"+feedHash {
		t.Errorf("renamed %q", renamed)
	}
	next := deliver(t, d, sample("3", "C"))[0]
	if len(renamed) != 2 || renamed[1] != next.Path() {
		t.Errorf("renamed %q", renamed)
	}
	for _, sub := range []string{"tmp"} {
		if got := tree(t, d, sub); !slices.Equal(got, []string{feedHash}) {
			t.Errorf("left in tmp: %q", got)
		}
	}
	if ps, err := d.Check(ctx, false); err != nil || len(ps) > 0 {
		t.Error(ps, err)
	}
}

// If new/$feed was made meanwhile, or cannot be made by a rename, the entries are moved one
// by one; existing entries stay.
func TestFirstEntriesBesideOthers(t *testing.T) {
	for what, before := range map[string]func(t *testing.T, d *Dir){
		"another fetcher": func(t *testing.T, d *Dir) {
			shell(t, d, `mkdir -p new/$HASH/1.2.other && cd new/$HASH/1.2.other && ln -s ../../../src/$HASH feed && for f in title id content; do echo $f >$f; done`)
		},
		"an empty directory": func(t *testing.T, d *Dir) { shell(t, d, "mkdir new/$HASH") },
		"an overlay": func(_ *testing.T, d *Dir) {
			d.fs.Rename = func(from, to string) error {
				if strings.HasSuffix(from, dirfs.FirstEntries) {
					return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.EXDEV}
				}
				return dirfs.RenameNoReplace(from, to)
			}
		},
		// NFS, where the rename replaces an empty directory.
		"no flags of rename": func(t *testing.T, d *Dir) {
			shell(t, d, "mkdir new/$HASH")
			d.fs.Rename = dirfs.PlainRename
		},
	} {
		d, _ := newDir(t)
		_, tx := initial(t, d, sample("1", "A"), sample("2", "B"))
		want := staged(tx)
		before(t, d)
		want = append(uniques(t, d), want...)
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if got := uniques(t, d); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
			t.Errorf("%s: left in tmp: %q", what, got)
		}
	}
}

// Entries of another or a killed fetcher in tmp/$feed are not delivered with the first entries.
func TestFirstEntriesApart(t *testing.T) {
	d, _ := newDir(t)
	other := d.Join("tmp", feedHash, dirfs.FirstEntries, "1.2.other")
	write(t, other+"/title", "half")
	refs := deliver(t, d, sample("1", "A"))
	if got := uniques(t, d); !slices.Equal(got, []string{refs[0].Unique}) {
		t.Errorf("%q", got)
	}
	if got := read(t, other+"/title"); got != "half" {
		t.Errorf("the other fetcher's entry is %q, want it unchanged", got)
	}
}

// If a fetcher is killed before it renames the first entries, recovery delivers those that the
// journal names. Entries of other machines stay for a while. An entry whose rename fails stays
// until a later recovery.
func TestFirstEntriesRecovered(t *testing.T) {
	d, c := newDir(t)
	w, tx := initial(t, d, sample("1", "A"), sample("2", "B"), sample("3", "C"))
	want := []string{tx.staged[0].Unique, tx.staged[1].Unique}
	slices.Sort(want)
	if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged[:2]); err != nil {
		t.Fatal(err)
	}
	other := d.Join("tmp", feedHash, dirfs.FirstEntries, "1.2.other")
	write(t, other+"/title", "half")
	die(tx)
	// An entry that cannot be moved stays, however old it is.
	failing := true
	d.fs.Rename = func(from, to string) error {
		if failing && strings.Contains(from, want[1]) {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.EIO}
		}
		return dirfs.RenameNoReplace(from, to)
	}
	if err := w.Recover(ctx); !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	failing = false
	c.now = c.now.Add(365 * 24 * time.Hour)
	for range 2 {
		if err := w.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		if got := uniques(t, d); !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := tree(t, d, "tmp"); slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, want[0]) || strings.Contains(p, want[1]) }) {
		t.Errorf("left in tmp: %q", got)
	}
	// An old entry of another machine is removed. Files have the real time, so it is set.
	if err := os.Chtimes(other, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other+"/title", time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Errorf("left in tmp: %q", got)
	}
}

// The next delivery also delivers the entries of a killed one, without a recovery before it.
func TestFirstEntriesUnsettled(t *testing.T) {
	d, _ := newDir(t)
	_, tx := initial(t, d, sample("1", "A"))
	want := staged(tx)
	if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
		t.Fatal(err)
	}
	die(tx)
	res, err := d.Deliver(ctx, &Feed{ID: feedID, Name: "Example"}, UpdateNew, Entry{ID: "2", Title: "another"})
	if err != nil || len(res.New) != 1 {
		t.Fatal(res, err)
	}
	want = append(want, res.New[0].Unique)
	slices.Sort(want)
	if got := uniques(t, d); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Close removes the first entries if they are not committed.
func TestFirstEntriesDiscarded(t *testing.T) {
	d, _ := newDir(t)
	_, tx := initial(t, d, sample("1", "A"))
	tx.Close()
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Errorf("left in tmp: %q", got)
	}
	if len(deliver(t, d, sample("1", "A"))) != 1 {
		t.Error("not delivered")
	}
}
