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

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// The tests of package lektordir also test this package: recovery, and deliveries as viewers see
// them.

const feedID = "urn:x"

var feedHash = entryname.FeedHash(feedID)

// newWriter creates a lektor-dir and a writer. The returned function begins a transaction. Both are
// closed when the test ends.
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

// PutFeed writes the id before it makes the directories of the other files.
func TestIDFirst(t *testing.T) {
	d := dirfs.New(t.TempDir(), dirfs.Options{})
	for _, dir := range []string{"tmp", "new", "cur", "src/" + feedHash} {
		if err := os.MkdirAll(d.Join(dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(d.Join("src", feedHash, "etc"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if err := tx.PutFeed(maps.All(map[string]string{"id": feedID, "name": "X"})); err == nil {
		t.Fatal("PutFeed succeeds")
	}
	if data, err := os.ReadFile(d.Join("src", feedHash, "id")); string(data) != feedID+"\n" {
		t.Errorf("%q %v", data, err)
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

// end commits a transaction and waits for the result.
func end(tx *Txn) error {
	done := make(chan error, 1)
	tx.Commit(func(err error) { done <- err })
	tx.w.Flush()
	return <-done
}

// If all members have left a group, it is closed, so that its descriptors do not collect errors.
func TestAbandonedGroup(t *testing.T) {
	w, begin := newWriter(t, Options{})
	for range 3 {
		tx := begin()
		tx.Close()
		w.mu.Lock()
		if w.open != nil {
			t.Error("the group is still open")
		}
		w.mu.Unlock()
	}
}

// A file that is shared with a delivered entry is synced with the first new entry that has it,
// because the program that delivered it may not have synced it.
func TestMustSync(t *testing.T) {
	w, begin := newWriter(t, Options{})
	w.d.SlowSync = true
	tx := begin()
	add(t, tx, entry("1", "title", "one\n", "author", "Wren\n"))
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	tx.Close()
	tx = begin()
	for _, want := range []bool{true, false} {
		unique := add(t, tx, entry(fmt.Sprint(want), "title", "two\n"))
		if shared, old := tx.staging.hardlinks.share(unique, "author", "Wren\n"); !shared || old != want {
			t.Errorf("share returns %v, %v, want true, %v", shared, old, want)
		}
	}
	add(t, tx, entry("3", "title", "three\n", "author", "Wren\n"))
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
}

// After entries were synced in the background, even with an error, the staging directory is closed
// and the limiter is free.
func TestBackgroundEnds(t *testing.T) {
	for _, bad := range []bool{false, true} {
		w, begin := newWriter(t, Options{})
		w.d.SlowSync = true
		tx := begin()
		for i := range 2 * dirfs.AtOnce {
			add(t, tx, entry(fmt.Sprint(i), "title", "\n", "content", "text", "author", "Ann\n"))
		}
		if bad { // the name of a file is taken
			if _, err := tx.Add(t.Context(), entry("bad", "title", "\n", "title", "\n")); !errors.Is(err, os.ErrExist) {
				t.Error(err)
			}
		}
		if err := end(tx); bad != errors.Is(err, os.ErrExist) {
			t.Errorf("%v: %v", bad, err)
		}
		if !bad && tx.staging.tmp != nil {
			t.Error("tmp is still open after the commit")
		}
		tx.Close()
		if tx.staging.tmp != nil || tx.staging.hardlinks.prior != nil {
			t.Errorf("%v: a directory is still open", bad)
		}
		if n := len(w.limit); n != 0 {
			t.Errorf("%v: %d places of the writer are not free", bad, n)
		}
	}
}

// An entry in tmp/ that the journal names, and a record of a replacement, are unsettled. The journal
// is not compacted then.
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
		if got := interrupted(w.d, feedHash, j); got != wantUnsettled {
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

// The files of a feed and their directories are synced even if no entry is delivered. If that fails,
// so does the commit.
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
		t.Error("the sync was omitted")
	}
	if _, err := os.Stat(w.d.Join(JournalPath(feedHash))); err == nil {
		t.Error("there is a journal without a delivery")
	}
}

// If a sync fails, nothing is delivered.
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

// A journal of repeats is compacted when a transaction reads it, unless tmp/ has an entry, whose
// name the compacted journal might lose.
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
				t.Errorf("%s is lost", r.Unique)
			}
		}
	}
}

// If the function that yields the files of a version panics, the version is not delivered, and the
// writer and the feed can be used again.
func TestPanicOfFiles(t *testing.T) {
	for _, slow := range []bool{false, true} {
		w, begin := newWriter(t, Options{})
		w.d.SlowSync = slow
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
