package tui

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// change is a change of the lektor-dir that the user requested, or with a feedRun a reading of
// what changes before it have made.
type change struct {
	kind       changeKind
	refs       []lektordir.Ref // as they were on the screen when the key was pressed
	keys       map[key]bool    // keys of the entries in refs; nil if refs is
	feeds      map[string]bool // hashes of the feeds of refs; nil if refs is
	set, unset string          // flags
	name       string          // name of the query to save
	query      string
	fetcher    *feedRun
	adds       []*task                               // subscriptions that were begun before undo
	then       func(m *model, msg changeMsg) tea.Cmd // called after the change, unless it failed or then is nil
	marked     atomic.Int64                          // number of entries that the disk has done
	ended      chan struct{}                         // closed when the disk has made it, or failed
	msg        tea.Msg                               // at the end
	made       bool                                  // and the screen knows
	// id of the first scan that began after the disk made the change; 0 before
	scan int
}

type changeKind uint8

const (
	markChange changeKind = iota
	trashChange
	undoChange
	saveChange
	settingChange // name and query are the name and the value of a setting of the screen
	feedChange    // by lektor-fetch
)

// newChange returns a change that sets and clears flags of entries. It fails if flags are
// invalid.
func newChange(refs []lektordir.Ref, set, unset string) (*change, error) {
	if _, err := (lektordir.Ref{}).WithFlags(set, unset); err != nil {
		return nil, err
	}
	c := &change{refs: refs, keys: make(map[key]bool, len(refs)), feeds: map[string]bool{}, set: set, unset: unset}
	for _, r := range refs {
		c.keys[keyOf(r)] = true
		c.feeds[r.Feed] = true
	}
	if strings.Contains(set, "T") {
		c.kind = trashChange
	}
	return c, nil
}

// changeMsg is a change that the disk made, or failed to make.
type changeMsg struct {
	change  *change
	message string          // for the last line
	moved   []lektordir.Ref // the entries with their new names
	result  *fetcherResult  // of change.fetcher
	err     error
}

// await waits for the end of the change, and returns its message.
func (c *change) await() tea.Msg {
	<-c.ended
	return c.msg
}

// make makes the change on the disk.
func (c *change) make(w *world) changeMsg {
	ctx, d := w.ctx, w.disk
	msg := changeMsg{change: c}
	switch c.kind {
	case markChange:
		msg.moved, msg.err = d.Mark(ctx, c.refs, c.set, c.unset, func() { c.marked.Add(1) })
	case trashChange:
		if msg.err = d.Trash(ctx, c.refs); msg.err == nil {
			c.marked.Add(int64(len(c.refs)))
		}
	case undoChange:
		for _, t := range c.adds {
			<-t.ended
		}
		msg.message, msg.moved, msg.err = d.Undo(ctx)
	case feedChange:
		msg.result = w.fetcher(c.fetcher.in, c.fetcher.args)
		msg.err = msg.result.err
	case settingChange:
		msg.err = d.Remember(ctx, c.name, c.query)
	case saveChange:
		if msg.err = d.Save(ctx, c.name, c.query); msg.err == nil {
			msg.message = w.Trf("saved as %s", c.name)
		}
	}
	return msg
}

// changed returns the hashes of the feeds that a change c changed, "" if they are unknown.
func (msg *changeMsg) changed(c *change) map[string]bool {
	feeds := maps.Clone(c.feeds)
	if feeds == nil {
		feeds = map[string]bool{}
	}
	for _, r := range msg.moved {
		feeds[r.Feed] = true
	}
	if len(feeds) == 0 && (msg.message != "" || c.kind == feedChange || c.kind == undoChange) {
		feeds[""] = true
	}
	return feeds
}

// writer does work in the order in which it was added, in a goroutine that lives while there is some. So changes are
// made whether or not the loop of the screen runs.
type writer struct {
	mu      sync.Mutex
	waiting []func() // the first is being done
}

func (w *writer) add(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting = append(w.waiting, do); len(w.waiting) == 1 {
		go w.write(do)
	}
}

// write does the first of the waiting work, and then the others.
func (w *writer) write(do func()) {
	for do != nil {
		do()
		do = w.next()
	}
}

func (w *writer) next() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting = w.waiting[1:]; len(w.waiting) == 0 {
		return nil
	}
	return w.waiting[0]
}

// marks is the queue of changes. The writer makes them on the disk, in the order of the keys. The screen shows a
// change at once. It stays in the queue until a list is made from a scan that began after the change
// was on the disk.
type marks struct {
	world   *world
	writer  writer
	changes []*change
	last    *change   // the one that was added last; nil before
	fresh   []tea.Cmd // wait for the changes that were added since begin
}

// add adds a change to the queue.
func (q *marks) add(c *change) {
	c.ended, q.last = make(chan struct{}), c
	q.changes, q.fresh = append(q.changes, c), append(q.fresh, c.await)
	run := guarded(func() tea.Msg { return c.make(q.world) })
	q.writer.add(func() {
		defer close(c.ended)
		c.msg = run()
	})
}

// earlier returns a function that waits for the changes that were added so far.
func (q *marks) earlier() func() {
	last := q.last
	return func() {
		if last != nil {
			<-last.ended
		}
	}
}

// begin returns the command that brings the ends of the changes that were added since the last call.
func (q *marks) begin() tea.Cmd {
	cmds := q.fresh
	q.fresh = nil
	return tea.Batch(cmds...)
}

// made records that a change was made on the disk, or failed.
func (q *marks) made(c *change) {
	c.made = true
	q.drop(func(c *change) bool { return c.made && len(c.keys) == 0 })
}

// scanBegins records that a scan began, which sees all changes that were made before.
func (q *marks) scanBegins(id int) {
	for _, c := range q.changes {
		if c.made && c.scan == 0 {
			c.scan = id
		}
	}
}

// listed drops the changes that a list from the snapshot of this scan contains.
func (q *marks) listed(scan int) {
	q.drop(func(c *change) bool { return c.scan > 0 && c.scan <= scan })
}

func (q *marks) drop(f func(*change) bool) { q.changes = slices.DeleteFunc(q.changes, f) }

// now returns the name of an entry after all changes in the queue.
func (q *marks) now(r lektordir.Ref) lektordir.Ref {
	if len(q.changes) == 0 {
		return r
	}
	k := keyOf(r)
	for _, c := range q.changes {
		if c.keys[k] {
			if to, err := r.WithFlags(c.set, c.unset); err == nil {
				r = to
			}
		}
	}
	return r
}

// unread reports whether an entry is unread after all changes in the queue. It is cheaper than
// now.
func (q *marks) unread(e catalog.Entry) bool {
	unread := e.Unread()
	for _, c := range q.changes {
		if sets := strings.Contains(c.set, "S"); (sets || strings.Contains(c.unset, "S")) && unread == sets &&
			c.keys[e.ID()] {
			unread = !sets
		}
	}
	return unread
}

// overlay returns the rows of a list without entries that are being trashed.
func (q *marks) overlay(rows []*item) []*item {
	if !slices.ContainsFunc(q.changes, func(c *change) bool { return c.kind == trashChange }) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(it *item) bool {
		k := it.ID()
		return slices.ContainsFunc(q.changes, func(c *change) bool { return c.keys[k] }) && q.now(it.Ref()).Trashed()
	})
}

// touches reports whether the queue has a change of an entry of this feed.
func (q *marks) touches(feed string) bool {
	return slices.ContainsFunc(q.changes, func(c *change) bool { return c.feeds[feed] })
}

// feeds returns the hashes of the feeds of entries with changes in the queue.
func (q *marks) feeds() map[string]bool {
	feeds := map[string]bool{}
	for _, c := range q.changes {
		maps.Copy(feeds, c.feeds)
	}
	return feeds
}
