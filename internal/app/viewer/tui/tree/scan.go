package tree

import (
	"maps"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
)

// ScanRequest is a request to read the feeds that may have changed.
type ScanRequest struct {
	Feeds   map[string]bool // hashes of feeds that the user has changed, "" for any; these do not wait
	recheck bool            // look at all feeds, also if no change of them was reported
}

// Shown is the effect of a scan that reports that a snapshot is in the tree. First is true if there was none before.
type Shown struct{ First bool }

// The first scan reads the feeds to which an entry was delivered last: about as many as it can in
// firstWithin, and those of firstEntries at least. The others are read after firstRest, so that nothing
// delays the list of the first, with its dates and titles. A later scan reads about ScanEntries.
const (
	firstWithin  = 20 * time.Millisecond
	firstEntries = 2000
	firstRest    = 100 * time.Millisecond
	ScanEntries  = 5000
)

// Retry is the delay before a failed scan is tried again.
const Retry = 5 * time.Second

// leastRest is the least delay between two scans, so that one scan sees many arrivals.
const leastRest = 100 * time.Millisecond

// RestBetween returns the delay between a scan and the next, after the scan and its list took so
// long. While a fetcher delivers, one scan would otherwise follow the other, and the kernel lets a
// program wait for a processor that has just used its share, so that a key would wait.
func RestBetween(took time.Duration) time.Duration { return min(max(leastRest, 9*took), time.Second) }

// Rescan requests a scan, in which feeds that the user has changed do not wait.
func (t *Tree) Rescan(feeds map[string]bool) {
	if t.Scans.Next == nil {
		t.Scans.Next = &ScanRequest{Feeds: map[string]bool{}}
	}
	maps.Copy(t.Scans.Next.Feeds, feeds)
}

// Recheck requests a scan that looks at all feeds.
func (t *Tree) Recheck() {
	t.Rescan(map[string]bool{"": true})
	t.Scans.Next.recheck = true
}

// Part returns which feeds the scan reads.
func (r *ScanRequest) Part(old *Snapshot, changes map[string]bool) catalog.Part {
	switch {
	case old == nil:
		end := time.Now().Add(firstWithin)
		return catalog.Part{Enough: func(n int) bool { return n > firstEntries && time.Now().After(end) }}
	case old.Partial || r.recheck || r.Feeds[""]:
		return catalog.Part{Recheck: r.recheck}
	}
	first := maps.Clone(r.Feeds)
	maps.Copy(first, changes)
	return catalog.Part{First: first, Enough: func(n int) bool { return n >= ScanEntries }}
}

// Begin returns the command that makes a new snapshot, nil if no scan is requested or one
// is running. listTook is how long it took to make the last list.
func (t *Tree) Begin(listTook time.Duration) tea.Cmd {
	ctx, r := t.Scans.Begin(t.Ctx)
	if r == nil {
		return nil
	}
	id := t.Scans.ID
	t.Marks.ScanBegins(id)
	d, old := t.Disk, t.Snapshot
	read := r.Part(old, t.Marks.Feeds())
	return func() tea.Msg {
		began := time.Now()
		if old != nil && old.Partial {
			counts, err := d.Counts(ctx)
			t.Send(part.Then(func() part.Effects { return t.count(counts, err) }))
		}
		var s *Snapshot
		names, err := d.Now(ctx, read)
		if err == nil || names != nil && len(names.Feeds) > 0 {
			saved, _ := d.Saved(ctx) // an error of the saved queries must not hide the entries
			s = NewSnapshot(names, saved)
		}
		if s != nil && err == nil {
			s.Scan = id
		}
		took := time.Since(began) + listTook
		return part.Then(func() part.Effects { return t.take(s, r, took, err) })
	}
}

// count shows the number of entries of each feed before all are listed. There are no counts without an index.
func (t *Tree) count(counts map[string]entrystore.Tally, err error) part.Effects {
	if counts != nil {
		t.Snapshot.count(counts)
		t.show(t.Snapshot)
	}
	return t.Result("", err)
}

// take shows a snapshot. After an error, what could be read is shown, and the scan is repeated after t.retry. The
// error is shown once until a scan succeeds.
func (t *Tree) take(s *Snapshot, r *ScanRequest, took time.Duration, err error) part.Effects {
	rest, e := RestBetween(took), part.Effects{}
	if err != nil && !t.failed {
		e = t.Fail(err)
	}
	t.failed = err != nil
	if s != nil {
		old := t.Snapshot
		t.show(s)
		e = append(e, Shown{old == nil})
		if s.Partial {
			t.Rescan(nil)
			rest = firstRest
		} else if old == nil || old.Partial {
			e = append(e, part.Run(t.Await))
		}
	}
	if err != nil {
		t.Rescan(r.Feeds)
		rest = t.Retry
	}
	return append(e, part.Run(t.After(rest, part.Then(func() part.Effects {
		t.Scans.End()
		return nil
	}))))
}

// changeDebounce is how long changes are collected before they are read. A fetcher makes many
// changes at once; a message for each would delay the user's keys.
const changeDebounce = 20 * time.Millisecond

// AwaitChanges waits for changes, and requests a scan. It returns nil if the reader ends first.
func (t *Tree) AwaitChanges() tea.Msg {
	t.Disk.Await(t.Ctx)
	if t.Ctx.Err() != nil {
		return nil
	}
	time.Sleep(changeDebounce)
	return part.Then(t.Noticed)
}

// Noticed requests a scan after something has changed, and waits for the next change.
func (t *Tree) Noticed() part.Effects {
	t.Rescan(nil)
	return part.Effects{part.Run(t.Await)}
}
