package tui

import (
	"context"
	"maps"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/catalog"
)

// scanRequest is a request to read the feeds that may have changed.
type scanRequest struct {
	feeds   map[string]bool // hashes of feeds that the user has changed, "" for any; these do not wait
	recheck bool            // look at all feeds, also if no change of them was reported
}

type (
	// snapshotMsg is the end of a scan. The snapshot is nil if nothing could be read yet.
	snapshotMsg struct {
		snapshot *snapshot
		request  *scanRequest
		took     time.Duration
		err      error
	}
	// overviewMsg is what the index has, while most entries are not listed.
	overviewMsg struct {
		overview *Overview
		err      error
	}
	scanMsg    struct{} // the next scan may begin
	changedMsg struct{} // something may have changed
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

// anyFeed requests a scan of all feeds, of which the user may have changed any.
var anyFeed = map[string]bool{"": true}

// retry is the delay before a failed scan is tried again.
const retry = 5 * time.Second

// restBetween returns the delay between a scan and the next, after the scan and its list took so
// long. While a fetcher delivers, one scan would otherwise follow the other, and the kernel lets a
// program wait for a processor that has just used its share, so that a key would wait.
func restBetween(took time.Duration) time.Duration { return min(max(pause, 9*took), time.Second) }

// requestScan requests a scan, in which feeds that the user has changed do not wait.
func (m *model) requestScan(feeds map[string]bool) {
	if m.scan.next == nil {
		m.scan.next = &scanRequest{feeds: map[string]bool{}}
	}
	maps.Copy(m.scan.next.feeds, feeds)
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

// beginScan returns the command that makes a new snapshot, nil if no scan is requested or one
// is running.
func (m *model) beginScan() tea.Cmd {
	ctx, r, id := m.scan.begin(m.ctx)
	if r == nil {
		return nil
	}
	m.marks.ScanBegins(id)
	d, old := m.disk, m.browser.snapshot
	part := r.part(old, m.marks.Feeds())
	return func() tea.Msg {
		began := time.Now()
		var s *snapshot
		var work workers.Group
		if old != nil && old.partial {
			work.Go(func() error { return takeDates(ctx, d) })
		}
		work.Go(func() error {
			names, err := d.Now(ctx, part)
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
		return snapshotMsg{s, r, time.Since(began), err}
	}
}

// takeDates takes the dates that the index has, so that the entries of the overview keep their places in
// the first list.
func takeDates(ctx context.Context, d Disk) error {
	_ = d.Learn(ctx, nil, func(string, int, int) {})
	return nil
}

// takeSnapshot shows a snapshot, and requests the list again if it may have changed. After an
// error, what could be read is shown, and the scan is repeated after m.retry. The error is
// shown once, until a scan succeeds.
func (m *model) takeSnapshot(msg snapshotMsg) tea.Cmd {
	rest := restBetween(msg.took + m.listTook)
	switch {
	case msg.err != nil:
		if m.failure == (status{}) {
			m.fail(msg.err)
			m.failure = m.status
		}
		m.requestScan(msg.request.feeds)
		rest = m.retry
	case m.status == m.failure:
		m.status = status{}
		fallthrough
	default:
		m.failure = status{}
	}
	next := m.after(rest, scanMsg{})
	if msg.snapshot == nil {
		return next
	}
	b := &m.browser
	old, s := b.snapshot, msg.snapshot
	b.showSnapshot(s)
	switch {
	case old == nil:
		m.apply(b.choose(id{kind: allNode}))
	case old.partial || b.listHas(old, msg.request.feeds):
		m.listAgain()
	case m.lister.state == idle && m.lister.next == nil: // else a change may be in the list that is being made
		m.marks.Listed(s.scan)
	}
	switch {
	case s.partial && msg.err == nil:
		return m.overview
	case !s.partial && (old == nil || old.partial):
		return tea.Batch(next, m.awaitChanges)
	}
	return next
}

// overview reads the overview of the index.
func (m *model) overview() tea.Msg {
	o, err := m.disk.Overview(m.ctx, firstRows)
	return overviewMsg{o, err}
}

// takeOverview shows an overview, and allows the scan of all feeds to begin. Entries among which the user has
// moved the cursor stay.
func (m *model) takeOverview(msg overviewMsg) {
	m.scan.end()
	m.requestScan(nil)
	if msg.err != nil {
		m.fail(msg.err)
	}
	b, o := &m.browser, msg.overview
	if o == nil {
		return
	}
	b.showSnapshot(b.snapshot.counted(o.Counts))
	if b.focus != keys.FeedsPane || b.list.of.kind != allNode || b.list.query != "" {
		return
	}
	m.lister.abandon()
	b.takeProvisional(o.items())
	for i := range o.Newest {
		m.rows[keyOf(o.Newest[i].Ref)] = &o.Newest[i].Row
	}
}

// changeDebounce is how long changes are collected before they are read. A fetcher makes many
// changes at once; a message for each would delay the user's keys.
const changeDebounce = 20 * time.Millisecond

// changesOf waits for changes, and returns nil if ctx ends first.
func changesOf(ctx context.Context, d Disk) tea.Msg {
	d.Await(ctx)
	if ctx.Err() != nil {
		return nil
	}
	time.Sleep(changeDebounce)
	return changedMsg{}
}
