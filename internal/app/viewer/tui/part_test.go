package tui

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// waiting is a disk whose dates wait while held is set.
type waiting struct {
	*large
	held  atomic.Bool
	moved []lektordir.Ref // undo returns these
}

func (d *waiting) Dates(ctx context.Context, entries []catalog.Entry) ([]list.Date, bool) {
	if d.held.Load() && len(entries) > 0 {
		<-ctx.Done()
	}
	return d.large.Dates(ctx, entries)
}

func (d *waiting) Undo(context.Context) (string, []lektordir.Ref, error) {
	return "taken back", d.moved, nil
}

// A mark stays on the screen while its list waits for dates, also if a later scan of other feeds has
// ended meanwhile.
func TestMarkStays(t *testing.T) {
	d := &waiting{large: newLarge()}
	k := newDesk(t, d, 100, 30)
	k.until("all", func() bool { return k.browser.list.Complete && len(k.browser.list.Items) == largeFeeds*largeEach })
	k.apply(k.browser.choose(tree.ID{Kind: tree.FeedNode, Name: "f0001"}))
	k.update(nil)
	k.until("the feed", func() bool { return k.browser.list.Complete && len(k.browser.list.Items) == largeEach })
	k.browser.Focus = keys.ListPane
	d.held.Store(true)
	scans := k.browser.tree.Scans.ID
	k.press("m")
	flagged := func() bool { r, _ := k.browser.list.Current(); return r.HasFlag('F') }
	k.until("a list with the mark", func() bool {
		return k.browser.marks.Len() > 0 && k.browser.tree.Scans.ID > scans && k.browser.list.Job.Runs
	})
	scans = k.browser.tree.Scans.ID
	k.update(part.Then(k.browser.tree.Noticed))
	k.until("another scan", func() bool {
		if !flagged() {
			t.Fatal("the mark is gone from the screen")
		}
		return k.browser.tree.Scans.ID > scans && k.browser.tree.Snapshot.Scan > scans
	})
	if !flagged() {
		t.Error("the mark is gone from the screen after the scan")
	}
	d.held.Store(false)
	k.until("the list", func() bool { return k.browser.marks.Len() == 0 })
	if !flagged() {
		t.Error("the list has no mark")
	}
}

// The next scan sees what an undo changed, although all other feeds have changed before.
func TestUndoDoesNotWait(t *testing.T) {
	d := &waiting{large: newLarge()}
	k := newDesk(t, d, 100, 30)
	k.until("all", func() bool { return k.browser.list.Complete && len(k.browser.list.Items) == largeFeeds*largeEach })
	d.mu.Lock()
	r, err := d.byFeed["f0007"][3].WithFlags("F", "")
	d.byFeed["f0007"][3], d.moved = r, []lektordir.Ref{r}
	d.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	before := d.lists.Load()
	k.update(part.Then(k.browser.tree.Noticed))
	k.press("u")
	// A slow machine may begin the scan of the others before the undo.
	k.until("the undo", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return k.browser.tree.Snapshot.Feeds["f0007"].Flagged == 1 && len(d.first) > 0
	})
	if n := d.lists.Load() - before; n > 3 {
		t.Errorf("%d scans", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.first["f0007"] || len(d.first) != 1 {
		t.Errorf("%v do not wait", d.first)
	}
}

// A scan reads a part of many changed feeds, and all those with changes of the user. The others wait
// for the next scans.
func TestPart(t *testing.T) {
	d := newLarge()
	k := newCounted(t, d)
	k.idle()
	k.browser.marks.Flags(part.Change{Refs: []lektordir.Ref{d.byFeed["f0001"][0]}, Set: "F"})
	r := &tree.ScanRequest{Feeds: map[string]bool{"f0002": true}}
	part := r.Part(k.browser.tree.Snapshot, k.browser.marks.Feeds())
	if !part.First["f0001"] || !part.First["f0002"] || len(part.First) != 2 || part.Recheck {
		t.Errorf("%v do not wait", part.First)
	}
	if part.Enough(tree.ScanEntries-1) || !part.Enough(tree.ScanEntries) {
		t.Error("a scan does not end")
	}
	if part := (&tree.ScanRequest{Feeds: map[string]bool{"": true}}).Part(k.browser.tree.Snapshot, nil); part.Enough != nil || part.Recheck {
		t.Error("feeds wait, of which any may have changed")
	}
	k.key("R")
	k.idle()
	if !d.rechecked.Load() {
		t.Error("R does not look at all feeds")
	}
	for _, c := range []struct{ took, want time.Duration }{
		{0, 100 * time.Millisecond}, {time.Millisecond, 100 * time.Millisecond}, {50 * time.Millisecond, 450 * time.Millisecond}, {time.Minute, time.Second},
	} {
		if got := tree.RestBetween(c.took); got != c.want {
			t.Errorf("after %v the rest is %v, not %v", c.took, got, c.want)
		}
	}
}

// An entry that could not be trashed is listed again, although the scan after that sees no change.
func TestTrashFails(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	d.fail = errors.New("the disk is full")
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	k.press("l", "d")
	if n := len(k.browser.list.Items); n != 2 {
		t.Errorf("%d entries are listed", n)
	}
	k.await("the disk is full")
	k.until("the entry", func() bool { return k.settled() && len(k.browser.list.Items) == 3 })
}
