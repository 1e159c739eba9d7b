package index_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
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
	if w.same("kernel", entrystore.Selection{All: true}); n != 1 || journal() != 0 {
		t.Errorf("%d answers of the index, %d bytes in the journal", n, journal())
	}
	w.whole()
}

// TestBriefJournal: queries of processes that end soon, each of which has something to
// bring, leave a journal of a bounded size.
func TestBriefJournal(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds of processor time")
	}
	w := filled(t, 10)
	w.build()
	const most = 10 << 20
	var all, last int64 // bytes that were written to journals
	for n := 10; all < most*5/4; {
		for end := n + 30; n < end; n++ {
			var text strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&text, "%x ", uint32(n*1000+i)*2654435761)
			}
			_, err := w.dir.Entry("http://a.example/", "new", testdir.Unique(1700000000+int64(n), n+1), "title=T", "content="+text.String())
			w.must(err)
		}
		cmd := w.child()
		cmd.Env = append(cmd.Env, "LEKTOR_INDEX_DO=brief once")
		w.must(cmd.Run())
		var size int64
		if fi, err := os.Stat(w.file() + "-wal"); err == nil {
			size = fi.Size()
		}
		if size > most {
			t.Fatalf("the journal has %d bytes", size)
		}
		all += max(size-last, 0)
		last = size
	}
	w.whole()
}
