package lektordir

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"testing"

	"github.com/lektordir/lektor/internal/dir/commit"
)

// deliverAll commits a transaction.
func deliverAll(t *testing.T, w *fetcher, txn *delivery) {
	t.Helper()
	done := make(chan error, 1)
	txn.Commit(func(err error) { done <- err })
	w.Flush()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	txn.Close()
}

// Wanted returns the entries that Stage would stage, under each policy, and stages nothing.
func TestWanted(t *testing.T) {
	for _, policy := range []Policy{UpdateNew, UpdateAlways, UpdateNever} {
		d, err := Create(t.TempDir()+"/d", nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := newFetcher(d, commit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := &Feed{ID: "urn:f", Name: "F"}
		item := func(id, text string) Item {
			return Item{GUID: id, Entry: Entry{ID: id, Title: id, Content: []byte(text)}}
		}
		put := func(items ...Item) (wanted, staged []string) {
			txn, err := w.Begin(FeedHash(f.ID))
			if err != nil {
				t.Fatal(err)
			}
			doc := document(policy, items...)
			list, err := txn.Wanted(doc)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				kind := "old "
				if x.New {
					kind = "new "
				}
				wanted = append(wanted, kind+items[x.Index].GUID)
			}
			if err := txn.PutFeed(f); err != nil {
				t.Fatal(err)
			}
			res, err := txn.stageAll(context.Background(), doc)
			if err != nil {
				t.Fatal(err)
			}
			deliverAll(t, w, txn)
			for _, r := range res.New {
				staged = append(staged, "new "+title(t, d, r))
			}
			for _, r := range res.Updated {
				staged = append(staged, "old "+title(t, d, r))
			}
			return wanted, staged
		}
		for i, items := range [][]Item{
			{item("b", "1"), item("a", "1")},
			{item("c", "1"), item("b", "1"), item("a", "1"), item("a", "1")},
			{item("b", "2"), item("a", "1")},
		} {
			if i == 2 {
				refs, _ := d.List(context.Background(), ListOptions{})
				for _, r := range refs {
					if title(t, d, r) == "a" {
						if _, err := d.SetFlags(r, "S", ""); err != nil {
							t.Fatal(err)
						}
					}
				}
				items = append(items, item("a2", "1"))
			}
			wanted, staged := put(items...)
			slices.Sort(wanted)
			slices.Sort(staged)
			if !slices.Equal(wanted, staged) {
				t.Errorf("%s, document %d: wanted %q, staged %q", policy, i, wanted, staged)
			}
			if again, _ := put(items...); len(again) > 0 {
				t.Errorf("%s, document %d: wanted again: %q", policy, i, again)
			}
		}
		w.Close()
	}
}

func title(t *testing.T, d *Dir, r Ref) string {
	t.Helper()
	e, err := d.ReadEntry(r, FieldTitle)
	if err != nil {
		t.Fatal(err)
	}
	return e.Title
}

// A revision replaces an entry that no viewer has taken. The entry is still known as delivered
// and unchanged.
func TestRevise(t *testing.T) {
	d, err := Create(t.TempDir()+"/d", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newFetcher(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx := context.Background()
	f := &Feed{ID: "urn:f", Name: "F"}
	entries := []Entry{
		{ID: "urn:1", Title: "one", Content: []byte("a\x00b"), Type: "image/png", Summary: "s", Link: "http://a.example/", Categories: []string{"x", "y"}},
		{ID: "urn:2", Title: "two", Content: []byte("own")}, {ID: "urn:3", Title: "three", Content: []byte("own")},
	}
	res, err := d.Deliver(ctx, f, UpdateNew, entries...)
	if err != nil {
		t.Fatal(err)
	}
	article := func(e Entry, replaces string) iter.Seq2[string, []byte] {
		e.FeedContent, e.FullText = e.Content, FullText{URL: "http://a.example/1", Type: e.Type}
		e.Content, e.Type, e.Replaces = []byte("<p>article"), "text/html", replaces
		return e.Files()
	}
	read, err := d.SetFlags(res.New[1], "S", "")
	if err != nil {
		t.Fatal(err)
	}
	txn, err := w.Begin(FeedHash(f.ID))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, true} {
		if _, ok, err := txn.Revise(ctx, res.New[i].Unique, article(entries[i], res.New[i].Unique)); err != nil || ok != want {
			t.Fatalf("%d: %v, %v", i, ok, err)
		}
	}
	if _, ok, err := txn.Revise(ctx, "1.x.y", article(entries[0], "")); ok || err != nil {
		t.Errorf("an entry that was never delivered: %v, %v", ok, err)
	}
	// A viewer that takes the old version before the commit keeps it.
	if _, err := d.SetFlags(res.New[2], "S", ""); err != nil {
		t.Fatal(err)
	}
	deliverAll(t, w, txn)

	for round := range 2 {
		refs, err := d.List(ctx, ListOptions{AllVersions: true})
		if err != nil || len(refs) != 3 {
			t.Fatalf("%v, %v", refs, err)
		}
		for _, r := range refs {
			e, err := d.ReadEntry(r, AllFields)
			if err != nil {
				t.Fatal(err)
			}
			if e.Title != "one" {
				if r.Place != Cur || e.FullText != (FullText{}) || e.FeedContent != nil || string(e.Content) != "own" {
					t.Errorf("an entry that was read: %s %+v", r.Path(), e)
				}
				continue
			}
			if r.Place != New || r.Unique == res.New[0].Unique || r.Identity() != res.New[0].Identity() || e.Replaces != res.New[0].Unique ||
				string(e.Content) != "<p>article" || string(e.FeedContent) != "a\x00b" || e.FullText != (FullText{"http://a.example/1", "image/png"}) ||
				e.Summary != "s" || len(e.Categories) != 2 || e.Type != "text/html" {
				t.Errorf("the revision: %s %+v", r.Path(), e)
			}
		}
		again, err := d.Deliver(ctx, f, UpdateNew, entries...)
		if err != nil || len(again.New)+len(again.Updated) > 0 || again.Unchanged != 3 {
			t.Errorf("round %d: put again: %+v, %v", round, again, err)
		}
		if err := w.Recover(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if problems, err := d.Check(ctx, false); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if _, err := os.Stat(d.abs(read) + "/feed-content"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
