package lektordir

import (
	"context"
	"testing"
	"time"
)

// A version is newer than those before it even where a clock was set back, or
// another fetcher's is behind.
func TestVersionByClockBehind(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d, err := Create(t.TempDir()+"/d", &Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	const id = "http://example.com/"
	feed := FeedHash(id)
	w, err := d.NewWriter(WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	deliver := func(title, lineage string) Ref {
		t.Helper()
		tx, err := w.Begin(feed)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Close()
		if err := tx.PutFeed(&Feed{ID: id, Name: "Example"}); err != nil {
			t.Fatal(err)
		}
		ref, err := tx.Add(context.Background(), Version{
			Entry: Entry{ID: "1", Title: title}, Identity: DigestOf("1"), Content: DigestOf(title), Lineage: lineage,
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		tx.Commit(func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return ref
	}
	first := deliver("first", "")
	now = now.Add(-time.Hour)
	second := deliver("second", first.Identity())
	if !second.Delivered().After(first.Delivered()) {
		t.Errorf("the second version's name %s is not after the first one's, %s", second.Unique, first.Unique)
	}
	refs, err := d.List(context.Background(), ListOptions{})
	if err != nil || len(refs) != 1 || refs[0].Unique != second.Unique {
		t.Errorf("listed are %v, %v", refs, err)
	}
	// The clock is right for entries that have nothing before them.
	if other := deliver("other", ""); other.Delivered().After(now.Add(time.Second)) {
		t.Errorf("%s is in the future", other.Unique)
	}
}

// What a killed fetcher noted and did not rename is in new/ before a
// transaction compares with the journal, though no recovery ran since.
func TestJournalAfterKill(t *testing.T) {
	d, err := Create(t.TempDir()+"/d", nil)
	if err != nil {
		t.Fatal(err)
	}
	const id = "http://example.com/"
	feed := FeedHash(id)
	w, err := d.NewWriter(WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tx, err := w.Begin(feed)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.PutFeed(&Feed{ID: id, Name: "Example"}); err != nil {
		t.Fatal(err)
	}
	ref, err := tx.Add(context.Background(), Version{Entry: Entry{ID: "1", Title: "t"}, Identity: DigestOf("1")})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	tx.Commit(func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	tx.Close()
	if err := renameNoReplace(d.Abs(ref), d.Join("tmp", feed, ref.Unique)); err != nil {
		t.Fatal(err)
	}
	if tx, err = w.Begin(feed); err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if _, err := tx.Journal(); err != nil {
		t.Fatal(err)
	}
	if refs, err := d.List(context.Background(), ListOptions{}); err != nil || len(refs) != 1 {
		t.Errorf("listed are %v, %v", refs, err)
	}
}
