package index_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/entrystore"
)

// TestMovedWhileRead takes an entry back from cur/ to new/ at each moment at which a query
// that brings the index up to date looks at the clock: it is listed.
func TestMovedWhileRead(t *testing.T) {
	for at := 1; ; at++ {
		w := filled(t, 24)
		w.build()
		list, err := filepath.Glob(filepath.Join(w.dir.Path, "cur", "*", "[0-9]*S"))
		w.must(err)
		w.must(os.Rename(list[1], list[1][:len(list[1])-1]+"FS"))
		feed, name := filepath.Split(list[0])
		back := filepath.Join(w.dir.Path, "new", filepath.Base(feed), name[:len(name)-len(";2,S")])
		asked := 0
		w.clock = func() time.Time {
			if asked++; asked == at {
				w.must(os.Rename(list[0], back))
			}
			return time.Now()
		}
		if n := len(w.ask(true, "", entrystore.Selection{All: true})); n != 24 {
			t.Fatalf("moved at look %d: %d entries", at, n)
		}
		if asked < at {
			return
		}
		w.clock = time.Now
		w.same("", entrystore.Selection{All: true})
		w.whole()
	}
}
