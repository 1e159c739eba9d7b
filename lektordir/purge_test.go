package lektordir

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// feedFiles lists all files of feeds.
func feedFiles(t *testing.T, d *Dir) []string {
	t.Helper()
	var all []string
	for _, place := range []string{"tmp", "new", "cur", "src"} {
		for _, p := range tree(t, d, place) {
			all = append(all, place+"/"+p)
		}
	}
	return all
}

func TestPurge(t *testing.T) {
	d, _ := newDir(t)
	refs := deliver(t, d, sample("a", "A"), sample("b", "B"))
	if _, err := d.SetFlags(refs[0], "S", ""); err != nil {
		t.Fatal(err)
	}
	write(t, d.Join("src", feedHash, "etc/view/alias"), "x\n")
	write(t, d.Join("new", feedHash, ".others"), "x")
	write(t, d.Join("tmp", feedHash, "1.x.elsewhere/title"), "x")
	w := writer(t, d)
	if err := w.Purge(t.Context(), feedHash); err != nil {
		t.Fatal(err)
	}
	if left := feedFiles(t, d); left != nil {
		t.Errorf("left: %q", left)
	}
	// Nothing remembers the feed, so its entries are delivered again.
	if got := deliver(t, d, sample("a", "A"), sample("b", "B")); len(got) != 2 {
		t.Errorf("delivered again: %v", got)
	}
	if err := w.Purge(t.Context(), FeedHash("urn:none")); err != nil {
		t.Error(err)
	}
}

// An interrupted purge is finished by the next recovery, repair, delivery or purge.
func TestPurgeInterrupted(t *testing.T) {
	finishers := map[string]func(d *Dir, w *fetcher) error{
		"recovery": func(_ *Dir, w *fetcher) error { return w.Recover(t.Context()) },
		"repair":   func(d *Dir, _ *fetcher) error { _, err := d.Check(t.Context(), true); return err },
		"delivery": func(_ *Dir, w *fetcher) error {
			tx, err := w.Begin(feedHash)
			if err == nil {
				tx.Close()
			}
			return err
		},
		"a purge": func(_ *Dir, w *fetcher) error { return w.Purge(t.Context(), feedHash) },
	}
	left := map[string]func(d *Dir, refs []Ref) error{
		"all":           func(*Dir, []Ref) error { return nil },
		"no journal":    func(d *Dir, _ []Ref) error { return os.Remove(d.journalPath(feedHash)) },
		"no new/":       func(d *Dir, _ []Ref) error { return os.RemoveAll(d.Join("new", feedHash)) },
		"half an entry": func(d *Dir, refs []Ref) error { return os.Remove(d.abs(refs[0]) + "/title") },
		"one renamed": func(d *Dir, refs []Ref) error {
			return os.Rename(d.abs(refs[0]), d.Join("tmp", feedHash, refs[0].Unique+dirfs.Gone))
		},
		"one renamed and back": func(d *Dir, refs []Ref) error {
			return os.Mkdir(d.Join("tmp", feedHash, refs[0].Unique+dirfs.Gone), 0o777)
		},
		"the record alone": func(d *Dir, _ []Ref) error {
			return errors.Join(os.RemoveAll(d.Join("new", feedHash)), os.RemoveAll(d.Join("src", feedHash)))
		},
	}
	for what, spoil := range left {
		for by, finish := range finishers {
			d, _ := newDir(t)
			refs := deliver(t, d, sample("a", "A"), sample("b", "B"))
			write(t, d.Join("tmp", feedHash, commit.Purging), "")
			if err := spoil(d, refs); err != nil {
				t.Fatal(err)
			}
			if err := finish(d, writer(t, d)); err != nil {
				t.Errorf("%s, %s: %v", what, by, err)
			}
			if files := feedFiles(t, d); files != nil {
				t.Errorf("%s, %s: left %q", what, by, files)
			}
			if got := deliver(t, d, sample("a", "A"), sample("b", "B")); len(got) != 2 {
				t.Errorf("%s, %s: delivered again: %v", what, by, got)
			}
		}
	}
}

// Purge waits some seconds for a fetcher that holds the feed's lock.
func TestPurgeBusy(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("a", "A"))
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	var waited time.Duration
	d.fs.Sleep = func(_ context.Context, p time.Duration) error { waited += p; return nil }
	if busy := (*commit.BusyError)(nil); !errors.As(w.Purge(t.Context(), feedHash), &busy) || waited < time.Second || waited > time.Minute {
		t.Errorf("it waited %v", waited)
	}
	d.fs.Sleep = func(context.Context, time.Duration) error { tx.Close(); return nil }
	if err := w.Purge(t.Context(), feedHash); err != nil {
		t.Error(err)
	}
	if left := feedFiles(t, d); left != nil {
		t.Errorf("left: %q", left)
	}
}

// Purge removes links, but nothing behind them.
func TestPurgeLinks(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("a", "A"))
	outside := t.TempDir()
	write(t, outside+"/1.x.h/title", "x\n")
	for _, place := range []string{"cur", "src"} {
		path := d.Join(place, feedHash)
		if err := errors.Join(os.RemoveAll(path), os.Symlink(outside, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer(t, d).Purge(t.Context(), feedHash); err != nil {
		t.Fatal(err)
	}
	if left := feedFiles(t, d); left != nil {
		t.Errorf("left: %q", left)
	}
	if read(t, outside+"/1.x.h/title") != "x\n" {
		t.Error("Purge removed the target of the link")
	}
}

func TestPurgeKeepsOtherFeeds(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("a", "A"))
	before := feedFiles(t, d)
	other := FeedHash("urn:other")
	write(t, d.Join("new", other, "1.x.h/title"), "x\n")
	if err := writer(t, d).Purge(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if after := feedFiles(t, d); !slices.Equal(before, after) {
		t.Errorf("%q, then %q", before, after)
	}
}
