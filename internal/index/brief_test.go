package index_test

import (
	"os"
	"testing"

	"github.com/lektordir/lektor/internal/entries"
)

// TestBrief: a query of a process that ends soon leaves the journal of what it has
// brought to the next one, which finds all of it and puts it into its place.
func TestBrief(t *testing.T) {
	w := filled(t, 40)
	w.build()
	journal := func() int64 {
		fi, err := os.Stat(w.file() + "-wal")
		if os.IsNotExist(err) {
			return 0
		}
		w.must(err)
		return fi.Size()
	}
	w.more(40, 80)
	cmd := w.child()
	cmd.Env = append(cmd.Env, "LEKTOR_INDEX_DO=brief")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if journal() == 0 {
		t.Error("nothing is left in the journal")
	}
	n := 0
	w.indexed = &n
	if w.same("kernel", entries.Selection{All: true}); n != 1 || journal() != 0 {
		t.Errorf("%d answers of the index, %d bytes in the journal", n, journal())
	}
	w.whole()
}
