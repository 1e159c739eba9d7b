package tui

import (
	"context"
	"maps"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/catalog"
)

// scanRequest is a request to read the feeds that may have changed.
type scanRequest struct {
	feeds   map[string]bool // hashes of feeds that the user has changed, "" for any; these do not wait
	recheck bool            // look at all feeds, also if no change of them was reported
}

// The effects of scans.
type (
	// shown reports that a snapshot is in the tree.
	shown struct {
		first   bool // there was none before
		changed bool // the list may have changed
		scan    int
	}
	// provisional has entries to show until all are listed.
	provisional struct{ *Overview }
	// trouble is the error of the last scan, nil if it succeeded.
	trouble struct{ err error }
)

// The first scan reads the feeds to which an entry was delivered last: about as many as it can in
// firstWithin, and those of firstEntries at least. A later scan reads about scanEntries.
const (
	firstWithin  = 50 * time.Millisecond
	firstEntries = 2000
	scanEntries  = 5000
)

// firstRows is the number of entries in an overview: enough to read and to page through until
// all entries are listed.
const firstRows = 200

// retry is the delay before a failed scan is tried again.
const retry = 5 * time.Second

// restBetween returns the delay between a scan and the next, after the scan and its list took so
// long. While a fetcher delivers, one scan would otherwise follow the other, and the kernel lets a
// program wait for a processor that has just used its share, so that a key would wait.
func restBetween(took time.Duration) time.Duration { return min(max(pause, 9*took), time.Second) }

// rescan requests a scan, in which feeds that the user has changed do not wait.
func (t *tree) rescan(feeds map[string]bool) {
	if t.scans.Next == nil {
		t.scans.Next = &scanRequest{feeds: map[string]bool{}}
	}
	maps.Copy(t.scans.Next.feeds, feeds)
}

// recheck requests a scan that looks at all feeds.
func (t *tree) recheck() {
	t.rescan(map[string]bool{"": true})
	t.scans.Next.recheck = true
}

// part returns which feeds the scan reads.
func (r *scanRequest) part(old *snapshot, changes map[string]bool) catalog.Part {
	switch {
	case old == nil:
		end := time.Now().Add(firstWithin)
		return catalog.Part{Enough: func(n int) bool { return n > firstEntries && time.Now().After(end) }}
	case old.partial || r.recheck || r.feeds[""]:
		return catalog.Part{Recheck: r.recheck}
	}
	first := maps.Clone(r.feeds)
	maps.Copy(first, changes)
	return catalog.Part{First: first, Enough: func(n int) bool { return n >= scanEntries }}
}

// begin returns the command that makes a new snapshot, nil if no scan is requested or one
// is running. listTook is how long it took to make the last list.
func (t *tree) begin(listTook time.Duration) tea.Cmd {
	ctx, r, id := t.scans.Begin(t.Ctx)
	if r == nil {
		return nil
	}
	t.marks.ScanBegins(id)
	d, old := t.disk, t.snapshot
	read := r.part(old, t.marks.Feeds())
	return func() tea.Msg {
		began := time.Now()
		var s *snapshot
		var work workers.Group
		if old != nil && old.partial {
			work.Go(func() error { return takeDates(ctx, d) })
		}
		work.Go(func() error {
			names, err := d.Now(ctx, read)
			if err == nil || names != nil && len(names.Feeds) > 0 {
				saved, _ := d.Saved(ctx) // an error of the saved queries must not hide the entries
				s = newSnapshot(old, names, saved)
			}
			return err
		})
		err := work.Wait()
		if s != nil && err == nil {
			s.scan = id
		}
		if old == nil && s != nil && !s.partial {
			_ = takeDates(ctx, d)
		}
		took := time.Since(began) + listTook
		return part.Then(func() part.Effects { return t.take(s, r, took, err) })
	}
}

// takeDates takes the dates that the index has, so that the entries of the overview keep their places in
// the first list.
func takeDates(ctx context.Context, d treeDisk) error {
	_ = d.Learn(ctx, nil, func(string, int, int) {})
	return nil
}

// take shows a snapshot. After an error, what could be read is shown, and the scan is repeated after t.retry.
func (t *tree) take(s *snapshot, r *scanRequest, took time.Duration, err error) part.Effects {
	rest := restBetween(took)
	if err != nil {
		t.rescan(r.feeds)
		rest = t.retry
	}
	e := part.Effects{trouble{err}}
	next := part.Run(t.After(rest, part.Then(func() part.Effects {
		t.scans.End()
		return nil
	})))
	if s == nil {
		return append(e, next)
	}
	old := t.snapshot
	t.show(s)
	e = append(e, shown{old == nil, old != nil && (old.partial || t.changed(old, r.feeds)), s.scan})
	switch {
	case s.partial && err == nil:
		return append(e, part.Run(t.overview))
	case !s.partial && (old == nil || old.partial):
		return append(e, next, part.Run(t.await))
	}
	return append(e, next)
}

// overview reads the overview of the index, and then allows the scan of all feeds to begin.
func (t *tree) overview() tea.Msg {
	o, err := t.disk.Overview(t.Ctx, firstRows)
	return part.Then(func() (e part.Effects) {
		t.scans.End()
		t.rescan(nil)
		if err != nil {
			e = t.Fail(err)
		}
		if o != nil {
			t.show(t.snapshot.counted(o.Counts))
			e = append(e, provisional{o})
		}
		return e
	})
}

// changeDebounce is how long changes are collected before they are read. A fetcher makes many
// changes at once; a message for each would delay the user's keys.
const changeDebounce = 20 * time.Millisecond

// awaitChanges waits for changes, and requests a scan. It returns nil if the reader ends first.
func (t *tree) awaitChanges() tea.Msg {
	t.disk.Await(t.Ctx)
	if t.Ctx.Err() != nil {
		return nil
	}
	time.Sleep(changeDebounce)
	return part.Then(t.noticed)
}

// noticed requests a scan after something has changed, and waits for the next change.
func (t *tree) noticed() part.Effects {
	t.rescan(nil)
	return part.Effects{part.Run(t.await)}
}
