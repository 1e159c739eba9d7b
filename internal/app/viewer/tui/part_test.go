package tui

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// waiting is a disk whose dates wait while held is set.
type waiting struct {
	*large
	held  atomic.Bool
	moved []lektordir.Ref // undo returns these
}

func (d *waiting) Dates(ctx context.Context, refs []*lektordir.Ref) ([]time.Time, bool) {
	if d.held.Load() && len(refs) > 0 {
		<-ctx.Done()
	}
	return d.large.Dates(ctx, refs)
}

func (d *waiting) Undo(context.Context) (string, []lektordir.Ref, error) {
	return "taken back", d.moved, nil
}

// A mark stays on the screen while its list waits for dates, also if a later scan of other feeds has
// ended meanwhile.
func TestMarkStays(t *testing.T) {
	d := &waiting{large: newLarge()}
	k := newDesk(t, d, 100, 30)
	k.until("all", func() bool { return k.browser.list.complete && len(k.browser.list.items) == largeFeeds*largeEach })
	k.apply(k.browser.choose(id{kind: feedNode, name: "f0001"}))
	k.update(nil)
	k.until("the feed", func() bool { return k.browser.list.complete && len(k.browser.list.items) == largeEach })
	k.browser.focus = listPane
	d.held.Store(true)
	scans := k.scan.id
	k.press("m")
	flagged := func() bool { r, _ := k.browser.current(); return r.HasFlag('F') }
	k.until("a list with the mark", func() bool {
		return k.marks.Len() > 0 && k.scan.id > scans && k.lister.state == running
	})
	scans = k.scan.id
	k.update(changedMsg{map[string]bool{"f0400": true}})
	k.until("another scan", func() bool {
		if !flagged() {
			t.Fatal("the mark is gone from the screen")
		}
		return k.scan.id > scans && k.browser.snapshot.scan > scans
	})
	if !flagged() {
		t.Error("the mark is gone from the screen after the scan")
	}
	d.held.Store(false)
	k.until("the list", func() bool { return k.marks.Len() == 0 })
	if !flagged() {
		t.Error("the list has no mark")
	}
}

// The next scan sees what an undo changed, although all other feeds have changed before.
func TestUndoDoesNotWait(t *testing.T) {
	d := &waiting{large: newLarge()}
	k := newDesk(t, d, 100, 30)
	k.until("all", func() bool { return k.browser.list.complete && len(k.browser.list.items) == largeFeeds*largeEach })
	d.mu.Lock()
	r, err := d.byFeed["f0007"][3].WithFlags("F", "")
	d.byFeed["f0007"][3], d.moved = r, []lektordir.Ref{r}
	all := map[string]bool{}
	for hash := range d.byFeed {
		all[hash] = true
	}
	d.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	before := d.lists.Load()
	k.update(changedMsg{all})
	k.press("u")
	k.until("the undo", func() bool { return k.browser.snapshot.feeds["f0007"].Flagged == 1 })
	if n := d.lists.Load() - before; n > 3 {
		t.Errorf("%d scans", n)
	}
}

// Feeds that change all the time are read in turns.
func TestTurns(t *testing.T) {
	s := &snapshot{feeds: map[string]*feedSnapshot{}}
	for i := range 1000 {
		f := newFeedSnapshot(Feed{Hash: fmt.Sprint(i)})
		if i%2 > 0 { // the others have no entries yet
			f.All = 2 * scanEntries / 50
		}
		s.feeds[f.Hash] = f
	}
	waits, most, changed := map[string]int{}, 0, changedFeeds{}
	for scan := range 200 {
		fresh := changedFeeds{}
		for hash := range s.feeds {
			fresh[hash] = scan
		}
		changed.add(fresh)
		var part changedFeeds
		part, changed = s.part(changed, func(string) bool { return false })
		if len(part) == 0 || len(part) > scanEntries/leastEntries {
			t.Fatalf("a scan reads %d feeds", len(part))
		}
		for hash := range part {
			waits[hash] = 0
		}
		for hash := range changed {
			waits[hash]++
			most = max(most, waits[hash])
		}
	}
	total := 500*leastEntries + 500*2*scanEntries/50
	if fair := total/scanEntries + 1; most > fair {
		t.Errorf("a feed waits for %d scans, not %d", most, fair)
	}
}

// A scan reads a part of many changed feeds, and all those with changes of the user. The others wait
// for the next scans.
func TestPart(t *testing.T) {
	d := newLarge()
	k := newCounted(t, d)
	k.idle()
	marked := map[string]bool{}
	for i := range largeFeeds / 2 {
		r := d.byFeed[fmt.Sprintf("f%04d", i)][0]
		if _, err := k.marks.Flags([]lektordir.Ref{r}, "F", ""); err != nil {
			t.Fatal(err)
		}
		marked[r.Feed] = true
	}
	all := changedFeeds{}
	for hash := range d.byFeed {
		all[hash] = 7
	}
	all["f0499"], all["f0498"] = atOnce, 6
	seen := map[string]bool{}
	for left := all; len(left) > 0; {
		var part changedFeeds
		part, left = k.browser.snapshot.part(left, k.marks.Touches)
		others := 0
		for hash := range part {
			if seen[hash] {
				t.Errorf("%s is read twice", hash)
			}
			seen[hash] = true
			if !marked[hash] && hash != "f0499" {
				others++
			}
		}
		if !seen["f0499"] || !seen["f0498"] {
			t.Error("a feed that may not wait, or that changed before the others, waits")
		}
		if want := scanEntries / largeEach; others == 0 || others > want {
			t.Errorf("%d feeds, not %d", others, want)
		}
		for hash := range marked {
			if !seen[hash] {
				t.Errorf("%s has a mark, and waits", hash)
			}
		}
	}
	if len(seen) != largeFeeds {
		t.Errorf("%d feeds are read", len(seen))
	}
	for _, c := range []struct{ took, want time.Duration }{
		{0, pause}, {time.Millisecond, pause}, {50 * time.Millisecond, 450 * time.Millisecond}, {time.Minute, time.Second},
	} {
		if got := restBetween(c.took); got != c.want {
			t.Errorf("after %v the rest is %v, not %v", c.took, got, c.want)
		}
	}
}
