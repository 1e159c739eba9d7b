package lektordir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// Where each file is synced by itself, entries of several feeds are written beside
// each other, more of them than are written at a time.
func TestWriteBeside(t *testing.T) {
	d, _ := newDir(t)
	d.opts.SlowSync = true
	w := writer(t, d)
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
			for i := range 2 * atOnce {
				v := sample(fmt.Sprint("urn:", i), strings.Repeat("text", i))
				v.Entry.Author, v.Entry.Type = fmt.Sprint("author ", i%3), "text/html"
				if _, err := tx.add(ctx, v); err != nil {
					t.Error(err)
				}
			}
			if err := commit(tx); err != nil {
				t.Error(err)
			}
			if tx.tmp != nil {
				t.Error("tmp is still open")
			}
		})
	}
	wg.Wait()
	refs := list(t, d, ListOptions{})
	if len(refs) != 8*atOnce {
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

// When an entry cannot be written beside, nothing of the transaction is delivered and
// nothing is left, whether that shows before the commit or in it.
func TestWriteBesideFails(t *testing.T) {
	for _, before := range []bool{true, false} {
		d, _ := newDir(t)
		d.opts.SlowSync = true
		w := writer(t, d)
		tx, err := w.Begin(feedHash)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.add(ctx, sample("urn:1", "one")); err != nil {
			t.Fatal(err)
		}
		_ = tx.besides()
		// The name of a file is taken.
		u := &unsynced{t: tx, dir: int(tx.tmp.Fd()), unique: tx.staged[0].Unique, later: []unwritten{{"title", []byte("x")}}}
		tx.beside.group.Go(u.finish)
		want := os.ErrExist
		if before {
			_ = tx.besides()
			if _, err := tx.add(ctx, sample("urn:2", "two")); !isExist(err) {
				t.Errorf("%v, not %v", err, want)
			}
		}
		if err := commit(tx); !isExist(err) || !strings.Contains(err.Error(), "tmp/"+feedHash) {
			t.Errorf("%v, not %v", err, want)
		}
		if got := append(tree(t, d, "tmp/"+feedHash), tree(t, d, "new/"+feedHash)...); len(got) > 0 {
			t.Errorf("left: %v", got)
		}
		if j, err := readJournal(d.journalPath(feedHash)); err != nil || j.Len() != 0 {
			t.Errorf("%+v %v", j, err)
		}
		if len(w.slots) != 0 {
			t.Error("somebody still writes")
		}
		// What went wrong is over with the transaction.
		if refs := deliver(t, d, sample("urn:1", "one"), sample("urn:2", "two")); len(refs) != 2 {
			t.Error(refs)
		}
	}
}

func isExist(err error) bool { return errors.Is(err, os.ErrExist) }

// A file that was there before and is shared is synced once more with the first entry
// that has it, as nobody knows who put it there.
func TestFoundBefore(t *testing.T) {
	d, _ := newDir(t)
	d.opts.SlowSync = true
	v := sample("urn:1", "one")
	v.Entry.Author = "Wren"
	deliver(t, d, v)
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.readJournal(); err != nil {
		t.Fatal(err)
	}
	v = sample("urn:2", "two")
	v.Entry.Author = "Wren"
	if _, err := tx.add(ctx, v); err != nil {
		t.Fatal(err)
	}
	k := twinKey{"author", "Wren\n"}
	if tw, ok := tx.twins.known[k]; !ok || tw.old {
		t.Errorf("%+v: it is not known, or not synced", tw)
	}
	tx.twins.known[k] = twin{old: true}
	if !tx.foundBefore(k.name, k.data) || tx.foundBefore(k.name, k.data) {
		t.Error("it is not told once")
	}
	delete(tx.twins.known, k)
	if err := commit(tx); err != nil {
		t.Fatal(err)
	}
}
