package index_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestFeedAway renames src/$feed away and back while a query brings the index up to date,
// at each moment at which that looks at the clock: when it is back, the entries that moved
// meanwhile are listed by its complete document again.
func TestFeedAway(t *testing.T) {
	for at := 1; ; at++ {
		w := filled(t, 24)
		all, err := filepath.Glob(filepath.Join(w.dir.Path, "*", "*", "[0-9]*"))
		w.must(err)
		for _, path := range all { // older than any write: young entries are read again
			w.must(os.Chtimes(path, time.Unix(1700000000, 0), time.Unix(1700000000, 0)))
		}
		hash := testdir.Hash("http://a.example/")
		src := filepath.Join(w.dir.Path, "src", hash)
		w.must(os.MkdirAll(filepath.Join(src, "etc/history"), 0o777))
		w.must(os.WriteFile(filepath.Join(src, "etc/history/complete"), []byte("0000000000000003\n0000000000000005\n"), 0o666))
		later := func() time.Time { return time.Now().Add(time.Hour) }
		w.clock = later
		// A file that was written in this step of the file system's clock has no stamp yet.
		for written := time.Now(); time.Since(written) < 150*time.Millisecond; {
			w.build()
		}
		list, err := filepath.Glob(filepath.Join(w.dir.Path, "new", hash, "[0-9]*"))
		w.must(err)
		for _, path := range list {
			w.must(os.Rename(path, filepath.Join(w.dir.Path, "cur", hash, filepath.Base(path)+";2,S")))
		}
		asked := 0
		w.clock = func() time.Time {
			if asked++; asked == at {
				w.must(os.Rename(src, src+".away"))
			}
			return later()
		}
		w.ask(true, "", entrystore.Selection{All: true})
		if asked < at {
			return
		}
		w.clock = later
		w.must(os.Rename(src+".away", src))
		w.same("", entrystore.Selection{All: true})
		w.whole()
		if t.Failed() {
			t.Fatalf("away from look %d on", at)
		}
	}
}
