package lektordir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// watcher lists a lektor-dir before and after each rename.
type watcher struct {
	t    *testing.T
	d    *Dir
	seen []string // the different lists of all versions, in order
}

func (w *watcher) rename(from, to string) error {
	w.look()
	defer w.look()
	return dirfs.RenameNoReplace(from, to)
}

func (w *watcher) look() {
	w.t.Helper()
	all := paths(list(w.t, w.d, ListOptions{AllVersions: true}))
	shown := paths(list(w.t, w.d, ListOptions{}))
	if len(shown) != 1 || shown[0] != all[len(all)-1] {
		w.t.Errorf("List = %q, want the last of %q", shown, all)
	}
	if s := strings.Join(all, " "); len(w.seen) == 0 || w.seen[len(w.seen)-1] != s {
		w.seen = append(w.seen, s)
	}
}

// During a replacement, the entry is always listed: first the old version exists, then both, then
// the new one.
func TestReplacedInSight(t *testing.T) {
	d, _ := newDir(t)
	a, tx, b := replacement(t, d, writer(t, d))
	w := &watcher{t: t, d: d}
	d.fs.Rename = w.rename
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	if want := []string{a.Path(), a.Path() + " " + b.Path(), b.Path()}; !slices.Equal(w.seen, want) {
		t.Errorf("seen: %q", w.seen)
	}
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Errorf("left in tmp: %v", got)
	}
}

// If a viewer takes or deletes the old version after the new one has arrived, the new one is
// withdrawn. If a viewer takes both, both stay.
func TestReplacedUnderAViewer(t *testing.T) {
	for _, test := range []struct {
		viewer    func(d *Dir, a, b Ref) error
		delivered int
		want      string // place and content of the entries afterwards
	}{
		{func(d *Dir, a, b Ref) error { _, err := d.SetFlags(a, "S", ""); return err }, 0, "cur A"},
		{func(d *Dir, a, b Ref) error { return d.Remove(a) }, 0, ""},
		{func(d *Dir, a, b Ref) error {
			_, err := d.SetFlags(a, "S", "")
			_, berr := d.SetFlags(b, "S", "")
			return errors.Join(err, berr)
		}, 1, "cur A cur B"},
		{func(d *Dir, a, b Ref) error { _, err := d.SetFlags(b, "S", ""); return err }, 1, "cur B"},
		{func(d *Dir, a, b Ref) error { return d.Remove(b) }, 1, ""},
		{func(d *Dir, a, b Ref) error { return errors.Join(d.Remove(a), d.Remove(b)) }, 1, ""},
	} {
		d, _ := newDir(t)
		w := writer(t, d)
		a, tx, b := replacement(t, d, w)
		d.fs.Rename = func(from, to string) error {
			err := dirfs.RenameNoReplace(from, to)
			if to == d.abs(b) {
				d.fs.Rename = dirfs.RenameNoReplace
				if err := test.viewer(d, a, b); err != nil {
					t.Error(err)
				}
			}
			return err
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		if got := tx.refs(); len(got) != test.delivered {
			t.Errorf("%s: delivered: %q", test.want, paths(got))
		}
		if err := w.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list(t, d, ListOptions{AllVersions: true}) {
			got = append(got, r.Place.String()+" "+read(t, d.abs(r)+"/content"))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
		if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
			t.Errorf("%s: left in tmp: %v", test.want, got)
		}
	}
}

// Viewers that list while a fetcher replaces entries always see every entry.
func TestReplacedBesideReaders(t *testing.T) {
	d, err := Create(t.TempDir()+"/d", nil)
	if err != nil {
		t.Fatal(err)
	}
	const entries, rounds = 20, 8
	done := make(chan struct{})
	var reading sync.WaitGroup
	deliver := func(round int) {
		w := writer(t, d)
		tx, err := w.Begin(feedHash)
		if err != nil {
			t.Error(err)
			return
		}
		var items []Item
		for i := range entries {
			id := fmt.Sprint("urn:", i)
			items = append(items, Item{GUID: id, Entry: Entry{ID: id, Title: id, Content: fmt.Append(nil, round)}})
		}
		if _, err := tx.stageAll(t.Context(), document(UpdateNew, items...)); err != nil {
			t.Error(err)
		}
		if err := end(tx); err != nil {
			t.Error(err)
		}
	}
	deliver(0)
	for range 2 {
		reading.Go(func() {
			for more := true; more && !t.Failed(); {
				select {
				case <-done:
					more = false
				default:
				}
				if refs, err := d.List(t.Context(), ListOptions{}); err != nil || len(refs) != entries {
					t.Errorf("%d entries of %d are listed, %v", len(refs), entries, err)
				}
			}
		})
	}
	for round := range rounds {
		deliver(round + 1)
	}
	close(done)
	reading.Wait()
	if refs := list(t, d, ListOptions{AllVersions: true}); len(refs) != entries {
		t.Errorf("%d versions", len(refs))
	}
}

// Recovery finishes a replacement that was interrupted at any step, even if a viewer took or
// deleted a version since.
func TestReplacementInterrupted(t *testing.T) {
	type paths struct{ oldNew, newTmp, newNew, aside, note string }
	note := func(text string) func(*testing.T, *Dir, paths) {
		return func(t *testing.T, _ *Dir, p paths) {
			if err := os.WriteFile(p.note, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	rename := func(from, to func(paths) string) func(*testing.T, *Dir, paths) {
		return func(t *testing.T, _ *Dir, p paths) {
			if err := os.Rename(from(p), to(p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	named := func(t *testing.T, _ *Dir, p paths) { note(filepath.Base(p.oldNew)+"\n")(t, nil, p) }
	arrived := rename(func(p paths) string { return p.newTmp }, func(p paths) string { return p.newNew })
	put := rename(func(p paths) string { return p.oldNew }, func(p paths) string { return p.aside })
	forgotten := func(t *testing.T, _ *Dir, p paths) {
		if err := os.Remove(p.note); err != nil {
			t.Fatal(err)
		}
	}
	half := func(t *testing.T, _ *Dir, p paths) {
		if err := os.Remove(p.aside + "/title"); err != nil {
			t.Fatal(err)
		}
	}
	type steps []func(*testing.T, *Dir, paths)
	for name, state := range map[string]steps{
		"journal":                    {},
		"recorded":                   {named},
		"recorded, and a power cut":  {note("")},
		"new arrived":                {named, arrived},
		"new arrived, a power cut":   {note(""), arrived},
		"old aside":                  {named, arrived, put},
		"record removed":             {named, arrived, put, forgotten},
		"old half removed":           {named, arrived, put, forgotten, half},
		"an older program":           {put},
		"an older program, arrived":  {put, arrived},
		"an older program, recorded": {put, named}, // and the present one continued
		"recorded, put aside":        {named, put},
	} {
		for _, viewer := range []string{"", "takes old", "takes new", "takes both", "deletes old", "deletes new", "deletes both"} {
			t.Run(name+", "+viewer, func(t *testing.T) {
				d, _ := newDir(t)
				w := writer(t, d)
				a, tx, b := replacement(t, d, w)
				if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
					t.Fatal(err)
				}
				tmp := func(name string) string { return d.Join("tmp", feedHash, name) }
				for _, step := range state {
					step(t, d, paths{d.abs(a), tmp(b.Unique), d.abs(b), tmp(a.Unique + dirfs.GoneReplaced), tmp(b.Unique + commit.Replacing)})
				}
				die(tx)
				// The viewer takes or deletes the versions that it finds in new/.
				want := map[string]bool{b.Path(): true}
				took := map[Ref]bool{}
				for r, which := range map[Ref]string{a: "old", b: "new"} {
					verb, what, _ := strings.Cut(viewer, " ")
					if what != which && what != "both" {
						continue
					}
					var err error
					if verb == "takes" {
						_, err = d.SetFlags(r, "S", "")
					} else {
						err = d.Remove(r)
					}
					if took[r] = err == nil; took[r] {
						delete(want, b.Path()) // gone, or withdrawn
					} else if !errors.Is(err, fs.ErrNotExist) {
						t.Fatal(err)
					}
				}
				for r := range took {
					if strings.HasPrefix(viewer, "takes") && took[r] {
						r.Place, r.Info = Cur, "2,S"
						want[r.Path()] = true
					}
				}
				for round := range 2 {
					if err := w.Recover(ctx); err != nil {
						t.Fatal(err)
					}
					got := map[string]bool{}
					for _, r := range list(t, d, ListOptions{AllVersions: true}) {
						got[r.Path()] = true
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("round %d: %v, want %v", round, got, want)
					}
					if left := tree(t, d, "tmp"); len(left) != 1 {
						t.Errorf("round %d: left in tmp: %v", round, left)
					}
				}
			})
		}
	}
}

// The next delivery to a feed first finishes an interrupted replacement, and then replaces the
// new version.
func TestReplacementBeforeTheNext(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	a, tx, b := replacement(t, d, w)
	if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
		t.Fatal(err)
	}
	write(t, d.Join("tmp", feedHash, b.Unique+commit.Replacing), a.Unique+"\n")
	if err := os.Rename(d.Join("tmp", feedHash, b.Unique), d.abs(b)); err != nil {
		t.Fatal(err)
	}
	die(tx)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	v := sample("1", "C")
	v.Replaces, v.Lineage = b.Unique, b.Identity()
	c, err := tx.add(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{AllVersions: true}); len(got) != 1 || got[0] != c {
		t.Errorf("%v", paths(got))
	}
}

// If the journal does not have the new version, recovery replaces nothing.
func TestReplacementWithoutJournal(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	a, tx, b := replacement(t, d, w)
	write(t, d.Join("tmp", feedHash, b.Unique+commit.Replacing), a.Unique+"\n")
	die(tx)
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{AllVersions: true}); len(got) != 1 || got[0] != a {
		t.Errorf("%v", paths(got))
	}
	if left := tree(t, d, "tmp"); len(left) != 1 {
		t.Errorf("left in tmp: %v", left)
	}
}
