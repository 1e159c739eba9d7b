package commit

import (
	"os"
	"testing"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
)

// What entries, recovery and viewers see of a delivery is tested in package lektordir.

// A group that all members have left lets go of its descriptors, and of the
// errors that they gather.
func TestAbandonedGroup(t *testing.T) {
	d := dirfs.New(t.TempDir(), dirfs.Options{})
	for _, name := range []string{"tmp", "new", "cur", "src"} {
		if err := os.Mkdir(d.Join(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w, err := NewWriter(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 3 {
		tx, err := w.Begin(entryname.FeedHash("urn:x"))
		if err != nil {
			t.Fatal(err)
		}
		err = tx.PutFeed(func(yield func(string, string) bool) { _ = yield("id", "urn:x") && yield("name", "X") })
		if err != nil {
			t.Fatal(err)
		}
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
	k := twinKey{"author", "Wren\n"}
	tw := twins{known: map[twinKey]twin{k: {old: true}}}
	if !tw.foundBefore(k.name, k.data) || tw.foundBefore(k.name, k.data) {
		t.Error("it is not told once")
	}
}
