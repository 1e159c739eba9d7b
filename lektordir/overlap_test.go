package lektordir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// If each file is synced separately, entries of several feeds are written concurrently. The test
// writes more entries than the limit of concurrent ones.
func TestWriteBeside(t *testing.T) {
	d, _ := newDir(t)
	d.fs.SlowSync = true
	w := writerWith(t, d, commit.Options{})
	var wg sync.WaitGroup
	for f := range 4 {
		wg.Go(func() {
			id := fmt.Sprint(feedID, f)
			tx, err := w.Begin(FeedHash(id))
			if err != nil {
				t.Error(err)
				return
			}
			if err := tx.PutFeed(&Feed{ID: id, Name: "Example"}); err != nil {
				t.Error(err)
			}
			for i := range 2 * dirfs.AtOnce {
				v := sample(fmt.Sprint("urn:", i), strings.Repeat("text", i))
				v.Entry.Author, v.Entry.Type = fmt.Sprint("author ", i%3), "text/html"
				if _, err := tx.add(ctx, v); err != nil {
					t.Error(err)
				}
			}
			if err := end(tx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	refs := list(t, d, ListOptions{})
	if len(refs) != 8*dirfs.AtOnce {
		t.Fatal(len(refs), "entries")
	}
	for _, r := range refs {
		e, err := d.ReadEntry(r, AllFields)
		if err != nil {
			t.Error(err)
			continue
		}
		var i int
		if _, err := fmt.Sscanf(e.ID, "urn:%d", &i); err != nil || string(e.Content) != strings.Repeat("text", i) ||
			e.Author != fmt.Sprint("author ", i%3) || e.Type != "text/html" || e.Title != "Title of "+e.ID {
			t.Errorf("%+v", e)
		}
	}
}

// If an entry cannot be written, none of the transaction is delivered or left behind, also if another one is added
// after it.
func TestWriteBesideFails(t *testing.T) {
	for _, again := range []bool{true, false} {
		d, _ := newDir(t)
		d.fs.SlowSync = true
		w := writerWith(t, d, commit.Options{})
		tx, err := w.Begin(feedHash)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.add(ctx, by("urn:1", "Ann")); err != nil {
			t.Fatal(err)
		}
		// An entry with the same file twice cannot be written.
		bad := sample("urn:x", "x").Version
		bad.Files = func(yield func(string, []byte) bool) {
			for range 2 {
				if !yield("title", nil) {
					return
				}
			}
		}
		if _, err := tx.Add(ctx, bad); !isExist(err) {
			t.Errorf("%v, want %v", err, os.ErrExist)
		}
		if again {
			if _, err := tx.add(ctx, sample("urn:2", "two")); err != nil {
				t.Error(err)
			}
		}
		if err := end(tx); !isExist(err) || !strings.Contains(err.Error(), "tmp/"+feedHash) {
			t.Errorf("%v, want %v", err, os.ErrExist)
		}
		if got := append(tree(t, d, "tmp/"+feedHash), tree(t, d, "new/"+feedHash)...); len(got) > 0 {
			t.Errorf("left: %v", got)
		}
		if j, err := journal.Read(d.journalPath(feedHash)); err != nil || lines(j) != 0 {
			t.Errorf("%+v %v", j, err)
		}
		// An error of one transaction does not affect the next.
		if refs := deliver(t, d, sample("urn:1", "one"), sample("urn:2", "two")); len(refs) != 2 {
			t.Error(refs)
		}
	}
}

func isExist(err error) bool { return errors.Is(err, os.ErrExist) }
