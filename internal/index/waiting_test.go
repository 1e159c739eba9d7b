package index

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/lektordir"
)

// TestWaiting: queries work off what has come little by little, however rarely they are
// asked, and find all of it at any time.
func TestWaiting(t *testing.T) {
	ctx := context.Background()
	made := dir.New(t)
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Feed("http://a.example/", "A"); err != nil {
		t.Fatal(err)
	}
	const pending = 10
	x := New(d, Options{Cache: filepath.Join(t.TempDir(), "cache"), Pending: pending, Budget: time.Hour, Warn: t.Errorf})
	if err := x.Build(ctx, nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	deliver := func(more int) {
		for range more {
			path, err := made.Entry("http://a.example/", "new", dir.Unique(1700000000+int64(n), n+1), "title=T", fmt.Sprintf("content=all of one%dx", n))
			if err == nil {
				// It is whole, and need not be read again.
				err = os.Chtimes(path, time.Unix(1700000000, 0), time.Unix(1700000000, 0))
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	// look asks for a word, and gives how many entries have it and how many wait then.
	look := func(word string) (found, waits int) {
		v, err := x.Look(ctx)
		if err != nil || v == nil {
			t.Fatal(v, err)
		}
		q, err := query.Parse(word)
		if err != nil {
			t.Fatal(err)
		}
		w := entries.Wanted{Query: q, Matcher: q.Bind(time.Now()), Now: time.Now(), Folders: func(string) []string { return nil }}
		if err := v.Find(ctx, w, func(entries.Hit) bool { found++; return true }); err != nil {
			t.Fatal(err)
		}
		v.Close()
		s, err := x.open()
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		return found, int(s.backlog().entries)
	}
	whole := func() {
		t.Helper()
		if _, err := x.Check(ctx, nil, func(problem string) { t.Error(problem) }); err != nil {
			t.Fatal(err)
		}
	}
	// Whoever brings what has come leaves it, up to a limit.
	most := 0
	for range 36 {
		deliver(pending / 2)
		found, waits := look("all")
		if found != n {
			t.Fatalf("%d of %d are found", found, n)
		}
		most = max(most, waits)
	}
	if limit := waitFactor * pending; most > limit || most < limit/2 {
		t.Errorf("%d wait", most)
	}
	whole()
	// Those that come after work it off, a little each.
	_, before := look("one3x")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		found, waits := look(fmt.Sprintf("one%dx", n-1))
		if found != 1 {
			t.Fatalf("%d are found", found)
		}
		// Whoever finds the directory changed a moment ago looks at it once more, and
		// works off less.
		if waits == before && waits <= pending {
			break
		}
		if before-waits > leastStep {
			t.Fatalf("%d were worked off at once", before-waits)
		}
		before = waits
	}
	if before > pending || before == 0 {
		t.Errorf("%d wait in the end", before)
	}
	whole()
	// What goes does not wait.
	deliver(3)
	look("all")
	refs, err := d.List(ctx, lektordir.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(refs[len(refs)-1]); err != nil {
		t.Fatal(err)
	}
	n--
	if found, _ := look("all"); found != n {
		t.Errorf("%d of %d are found", found, n)
	}
	whole()
	x.Work(ctx)
	if found, waits := look("all"); found != n || waits != 0 {
		t.Errorf("%d of %d are found, %d wait", found, n, waits)
	}
	whole()
}
