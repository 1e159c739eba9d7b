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

// change is something that the user wants the disk to do: flags to set and clear, and also a reading of what the
// changes before it have made.
type change struct {
	refs       []lektordir.Ref // as they were on the screen when the key was pressed
	keys       map[key]bool    // keys of the entries in refs; nil if refs is
	feeds      map[string]bool // hashes of the feeds of refs; nil if refs is
	set, unset string          // flags
	do         func() result
	then       func(m *model, r result) tea.Cmd // called after the change, unless it failed or then is nil
	marked     atomic.Int64                     // number of entries that the disk has done
	ended      chan struct{}                    // closed when the disk has made it, or failed
	msg        tea.Msg                          // at the end
	made       bool                             // and the screen knows
	// id of the first scan that began after the disk made the change; 0 before
	scan int
}

// result is what the disk has done.
type result struct {
	message    string          // for the last line
	moved      []lektordir.Ref // the entries with their new names
	everything bool            // feeds that moved does not name may have changed
	err        error
}

// changeMsg is the end of a change.
type changeMsg struct {
	change *change
	result
}

// flags adds a change that sets and clears flags of entries. It fails if flags are invalid.
func (q *marks) flags(refs []lektordir.Ref, set, unset string) (*change, error) {
	if _, err := (lektordir.Ref{}).WithFlags(set, unset); err != nil {
		return nil, err
	}
	c := &change{refs: refs, keys: make(map[key]bool, len(refs)), feeds: map[string]bool{}, set: set, unset: unset}
	for _, r := range refs {
		c.keys[keyOf(r)] = true
		c.feeds[r.Feed] = true
	}
	ctx, d := q.world.ctx, q.world.disk
	c.do = func() (r result) {
		r.moved, r.err = d.Mark(ctx, refs, set, unset, func() { c.marked.Add(1) })
		return r
	}
	q.add(c)
	return c, nil
}

// trashes reports whether a change trashes its entries.
func (c *change) trashes() bool { return strings.Contains(c.set, "T") }

// undo adds the change that takes back the last command, after subscriptions that were begun.
func (q *marks) undo(begun []*task) {
	ctx, d := q.world.ctx, q.world.disk
	q.add(&change{do: func() (r result) {
		for _, t := range begun {
			<-t.ended
		}
		r.message, r.moved, r.err = d.Undo(ctx)
		r.everything = len(r.moved) == 0
		return r
	}})
}

// save adds the change that saves a query under a name.
func (q *marks) save(name, query string) {
	w := q.world
	q.add(&change{do: func() result {
		if err := w.disk.Save(w.ctx, name, query); err != nil {
			return result{err: err}
		}
		return result{message: w.Trf("saved as %s", name), everything: true}
	}})
}

// remember adds the change that remembers a setting of the screen.
func (q *marks) remember(name, value string) {
	ctx, d := q.world.ctx, q.world.disk
	q.add(&change{do: func() result { return result{err: d.Remember(ctx, name, value)} }})
}

// await waits for the end of the change, and returns its message.
func (c *change) await() tea.Msg {
	<-c.ended
	return c.msg
}

// changed returns the hashes of the feeds that a change changed, "" if they are unknown.
func (msg *changeMsg) changed() map[string]bool {
	feeds := maps.Clone(msg.change.feeds)
	if feeds == nil {
		feeds = map[string]bool{}
	}
	for _, r := range msg.moved {
		feeds[r.Feed] = true
	}
	if msg.everything {
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
	run := guarded(func() tea.Msg { return changeMsg{c, c.do()} })
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
	if !slices.ContainsFunc(q.changes, (*change).trashes) {
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
