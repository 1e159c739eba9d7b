package commit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/journal"
)

// Package lektordir tests entries, recovery, and deliveries as viewers see them.

const feedID = "urn:x"

var feedHash = entryname.FeedHash(feedID)

// newWriter makes a lektor-dir, and a writer that ends with the test, after the transactions
// that the test has left open.
func newWriter(t *testing.T, o Options) (*Writer, func() *Txn) {
	t.Helper()
	d := dirfs.New(t.TempDir(), dirfs.Options{})
	for _, name := range []string{"tmp", "new", "cur", "src"} {
		if err := os.Mkdir(d.Join(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w, err := NewWriter(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, func() *Txn {
		t.Helper()
		tx, err := w.Begin(feedHash)
		if err == nil {
			err = tx.PutFeed(maps.All(map[string]string{"id": feedID, "name": "X"}))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tx.Close)
		return tx
	}
}

// entry is a version of an entry, with its files in order.
func entry(id string, files ...string) Version {
	return Version{
		Identity: journal.DigestOf(id), Content: journal.DigestOf(files...),
		Files: func(yield func(string, []byte) bool) {
			for i := 0; i < len(files); i += 2 {
				if !yield(files[i], []byte(files[i+1])) {
					return
				}
			}
		},
	}
}

func add(t *testing.T, tx *Txn, v Version) string {
	t.Helper()
	unique, err := tx.Add(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return unique
}

// end commits and waits.
func end(tx *Txn) error {
	done := make(chan error, 1)
	tx.Commit(func(err error) { done <- err })
	tx.w.Flush()
	return <-done
}

// A group that all members have left lets go of its descriptors, and of the
// errors that they gather.
func TestAbandonedGroup(t *testing.T) {
	w, begin := newWriter(t, Options{})
	for range 3 {
		tx := begin()
		tx.Close()
		w.mu.Lock()
		if w.open != nil {
			t.Error("still open")
		}
		w.mu.Unlock()
	}
}

// A file that was there before and is shared is synced once more with the first entry
// that has it, as nobody knows who put it there.
func TestFoundBefore(t *testing.T) {
	_, begin := newWriter(t, Options{SlowSync: true})
	tx := begin()
	add(t, tx, entry("1", "title", "one\n", "author", "Wren\n"))
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	tx.Close()
	tx = begin()
	add(t, tx, entry("2", "title", "two\n", "author", "Wren\n"))
	tw := &tx.staging.twins
	k := twinKey{"author", "Wren\n"}
	if x, ok := tw.known[k]; !ok || x.old {
		t.Errorf("%+v: it is not known, or not synced", x)
	}
	tw.known[k] = twin{old: true}
	if !tw.foundBefore(k.name, k.data) || tw.foundBefore(k.name, k.data) {
		t.Error("it is not told once")
	}
	delete(tw.known, k)
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
}

// Entries that are written beside each other leave nothing behind when they are, or could
// not be: the place where they were staged is closed, and others may write.
func TestBesideIsOver(t *testing.T) {
	for _, bad := range []string{"", "staged", "waited for"} {
		w, begin := newWriter(t, Options{SlowSync: true})
		tx := begin()
		for i := range 2 * dirfs.AtOnce {
			add(t, tx, entry(fmt.Sprint(i), "title", "\n", "content", "text", "author", "Ann\n"))
		}
		if bad != "" {
			add(t, tx, entry("bad", "title", "\n", "title", "\n")) // the name of a file is taken
		}
		if bad == "waited for" {
			if err := tx.Wait(); !errors.Is(err, os.ErrExist) {
				t.Errorf("%s: %v", bad, err)
			}
			if _, err := tx.Add(t.Context(), entry("next", "title", "\n")); !errors.Is(err, os.ErrExist) {
				t.Errorf("%s: the next: %v", bad, err)
			}
		}
		if err := end(tx); bad == "" && err != nil || bad != "" && !errors.Is(err, os.ErrExist) {
			t.Errorf("%q: %v", bad, err)
		}
		if bad != "waited for" && tx.staging.tmp != nil {
			t.Errorf("%q: tmp is still open after the commit", bad)
		}
		tx.Close()
		if tx.staging.tmp != nil || tx.staging.twins.prior != nil {
			t.Errorf("%q: a directory is still open", bad)
		}
		if n := w.limit.Names(); n != 0 {
			t.Errorf("%q: somebody still writes", bad)
		}
	}
}

// A replacement that is recorded is not settled, and the journal is not to be compacted.
func TestUnsettled(t *testing.T) {
	w, begin := newWriter(t, Options{})
	tx := begin()
	old := add(t, tx, entry("1", "title", "A\n"))
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	tx.Close()
	look := func(when string, wantUnsettled, wantNothing bool) {
		t.Helper()
		j, err := journal.Read(w.d.Join(JournalPath(feedHash)))
		if err != nil {
			t.Fatal(err)
		}
		if got := unsettled(w.d, feedHash, j); got != wantUnsettled {
			t.Errorf("%s: unsettled is %v", when, got)
		}
		if got := nothingStaged(w.d, feedHash); got != wantNothing {
			t.Errorf("%s: nothingStaged is %v", when, got)
		}
	}
	look("delivered", false, true)
	for name, counts := range map[string]bool{
		old: true, dirfs.FirstEntries + "/" + old: true, "1.another.host" + Replacing: true,
		"1.another.host": false, old + dirfs.Gone: false,
	} {
		path := w.d.Join("tmp", feedHash, name)
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
		look(name, counts, false)
		if err := os.RemoveAll(w.d.Join("tmp", feedHash)); err != nil {
			t.Fatal(err)
		}
	}
}

// The files of a feed are synced with the directories that hold them, though no entry is
// delivered with them; an error of that does not pass unnoticed.
func TestFeedIsSynced(t *testing.T) {
	w, begin := newWriter(t, Options{})
	tx := begin()
	for _, p := range []string{"src/$/id", "src/$/name", "src/$", "src"} {
		if p = w.d.Join(strings.ReplaceAll(p, "$", feedHash)); !slices.Contains(tx.src, p) {
			t.Errorf("%s is not synced", p)
		}
	}
	tx.src = append(tx.src, w.d.Join("no such file"))
	if err := end(tx); err == nil {
		t.Error("the sync was left out")
	}
	if _, err := os.Stat(w.d.Join(JournalPath(feedHash))); err == nil {
		t.Error("a journal without a delivery")
	}
}

// A sync that fails delivers nothing, whatever was to be synced.
func TestFailedSync(t *testing.T) {
	w, begin := newWriter(t, Options{})
	tx := begin()
	add(t, tx, entry("1", "title", "A\n"))
	tx.src = append(tx.src, w.d.Join("no such file"))
	if err := end(tx); err == nil {
		t.Fatal("no error")
	}
	tx.Close()
	for _, place := range []string{"new/", "tmp/"} {
		if names, err := dirfs.Names(w.d.Join(place, feedHash)); len(names) > 0 || err != nil && !isNotExist(err) {
			t.Errorf("%s has %q, %v", place, names, err)
		}
	}
	if j, err := journal.Read(w.d.Join(JournalPath(feedHash))); err != nil || j.Size != 0 {
		t.Errorf("%+v, %v", j, err)
	}
}

// A journal of repeats is compacted when a transaction reads it, but not while something is
// staged, which could come back under a name that is forgotten then.
func TestCompaction(t *testing.T) {
	const lines, entries = 1000, 3
	for _, left := range []string{"", "1.another.host"} {
		w, begin := newWriter(t, Options{})
		path := w.d.Join(JournalPath(feedHash))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		var recs []journal.Record
		for i := range lines {
			id := journal.DigestOf(fmt.Sprint(i % entries))
			recs = append(recs, journal.Record{Identity: id, Content: id, Unique: entryname.Unique(time.Unix(int64(i), 0), 1, int64(i), id.String(), "host")})
		}
		if err := journal.Append(path, &journal.Journal{}, recs); err != nil {
			t.Fatal(err)
		}
		if left != "" {
			if err := os.MkdirAll(w.d.Join("tmp", feedHash, left), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		j, err := begin().Journal()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range j.All {
			n++
		}
		if want := map[bool]int{true: entries, false: lines}[left == ""]; n != want {
			t.Errorf("left in tmp/: %q: %d lines, want %d", left, n, want)
		}
		for _, r := range recs[lines-entries:] {
			if got, ok := j.Named(r.Unique); !ok || got != r {
				t.Errorf("%s is forgotten", r.Unique)
			}
		}
	}
}

// A version whose files cannot be had, because what makes them panics, is not delivered, and
// keeps neither the writer nor the feed.
func TestPanicOfFiles(t *testing.T) {
	for _, slow := range []bool{false, true} {
		w, begin := newWriter(t, Options{SlowSync: slow})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			tx := begin()
			defer tx.Close()
			add(t, tx, entry("1", "title", "A\n"))
			v := entry("2")
			v.Files = iter.Seq2[string, []byte](func(func(string, []byte) bool) { panic("a defect") })
			_, _ = tx.Add(context.Background(), v)
		}()
		tx := begin()
		want := add(t, tx, entry("1", "title", "A\n"))
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		tx.Close()
		if names, err := dirfs.Names(w.d.Join("new", feedHash)); err != nil || !slices.Equal(names, []string{want}) {
			t.Errorf("new/ has %q, %v", names, err)
		}
		if names, err := dirfs.Names(w.d.Join("tmp", feedHash)); len(names) > 0 || err != nil {
			t.Errorf("tmp/ has %q, %v", names, err)
		}
	}
}
