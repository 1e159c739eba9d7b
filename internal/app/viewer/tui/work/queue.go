package work

import (
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// Change is something that the user wants the disk to do: flags to set and clear, and also a reading of what the
// changes before it have made.
type Change struct {
	part.Change

	run
	message string            // at the end: for the last line
	moved   []lektordir.Ref   // at the end: the entries with their new names
	keys    map[part.Key]bool // keys of the entries in Refs; nil if Refs is
	feeds   map[string]bool   // hashes of the feeds of Refs; nil if only moved can say which have changed
	made    bool              // it has ended, and the screen knows
	scan    int               // id of the first scan that began after the disk made the change; 0 before
}

// Trashes reports whether a change trashes its entries.
func (c *Change) Trashes() bool { return strings.Contains(c.Set, "T") }

// effects returns the effects of a change that the disk made, or failed to make.
func (c *Change) effects(env *Env) part.Effects {
	e := part.Effects{part.Say{Text: c.message}}
	switch {
	case c.err != nil:
		e = append(e, env.Fail(c.err)...)
	case c.Then != nil:
		e = append(e, c.Then(c.moved)...)
	}
	feeds := map[string]bool{} // that changed; "" stands for any
	maps.Copy(feeds, c.feeds)
	for _, r := range c.moved {
		feeds[r.Feed] = true
	}
	if c.feeds == nil && len(c.moved) == 0 {
		feeds[""] = true
	}
	if len(feeds) > 0 {
		e = append(e, part.Rescan{Feeds: feeds})
	}
	return e
}

// Queue is the queue of changes. They are made on the disk one after the other, in the order of the keys. The screen
// shows a change at once. It stays in the queue until a list is made from a scan that began after the change
// was on the disk.
type Queue struct {
	Env *Env

	changes []*Change
	awaited bool // the message of the first change that is not made will come
}

// Add adds a change that is not about flags, and that do makes. If it does not fail, then is called, unless it is nil.
// If do returns no entries that it has moved, any feed may have changed.
func (q *Queue) Add(do func() (message string, moved []lektordir.Ref, err error),
	then func([]lektordir.Ref) part.Effects) {
	q.add(&Change{Change: part.Change{Then: then}}, do)
}

func (q *Queue) add(c *Change, do func() (message string, moved []lektordir.Ref, err error)) {
	before := q.Earlier()
	c.begin(func() (err error) {
		before()
		c.message, c.moved, err = do()
		return err
	}, func() part.Effects { return q.take(c) })
	q.changes = append(q.changes, c)
}

// Flags adds a change that sets and clears flags of entries.
func (q *Queue) Flags(e part.Change) *Change {
	c := &Change{Change: e, keys: make(map[part.Key]bool, len(e.Refs)), feeds: map[string]bool{}}
	for _, r := range e.Refs {
		c.keys[part.KeyOf(r)] = true
		c.feeds[r.Feed] = true
	}
	c.total = len(e.Refs)
	q.add(c, func() (_ string, moved []lektordir.Ref, err error) {
		moved, err = q.Env.Disk.Mark(q.Env.Ctx, e.Refs, e.Set, e.Unset, func() { c.marked.Add(1) })
		return "", moved, err
	})
	return c
}

// Save adds the change that saves a query under a name.
func (q *Queue) Save(name, query string) {
	q.Add(func() (string, []lektordir.Ref, error) { return "", nil, q.Env.Disk.Save(q.Env.Ctx, name, query) },
		func([]lektordir.Ref) part.Effects { return q.Env.Say("saved as %s", name) })
}

// Remember sets a setting of the screen, and adds the change that remembers it.
func (q *Queue) Remember(name, value string) {
	q.Env.Screen.Set(name, value)
	q.add(&Change{feeds: map[string]bool{}}, func() (string, []lektordir.Ref, error) {
		return "", nil, q.Env.Disk.Remember(q.Env.Ctx, name, value)
	})
}

// Earlier returns a function that waits for the changes that were added so far.
func (q *Queue) Earlier() func() {
	if len(q.changes) == 0 {
		return func() {}
	}
	last := q.changes[len(q.changes)-1]
	return func() { <-last.ended }
}

// Begin returns the command that brings the end of the first change that is not made, nil if it is awaited already.
// So the ends come in the order of the changes.
func (q *Queue) Begin() tea.Cmd {
	i := slices.IndexFunc(q.changes, func(c *Change) bool { return !c.made })
	if i < 0 || q.awaited {
		return nil
	}
	q.awaited = true
	return q.changes[i].Await
}

// take returns the effects of a change that ended.
func (q *Queue) take(c *Change) part.Effects {
	c.made, q.awaited = true, false
	q.drop(func(c *Change) bool { return c.made && c.total == 0 })
	return c.effects(q.Env)
}

// ScanBegins records that a scan began, which sees all changes that were made before.
func (q *Queue) ScanBegins(id int) {
	for _, c := range q.changes {
		if c.made && c.scan == 0 {
			c.scan = id
		}
	}
}

// Listed drops the changes that a list from the snapshot of this scan contains.
func (q *Queue) Listed(scan int) {
	q.drop(func(c *Change) bool { return c.scan > 0 && c.scan <= scan })
}

func (q *Queue) drop(f func(*Change) bool) { q.changes = slices.DeleteFunc(q.changes, f) }

// Len returns the number of changes that the screen shows before the disk.
func (q *Queue) Len() int { return len(q.changes) }

// Now returns the name of an entry after all changes in the queue.
func (q *Queue) Now(r lektordir.Ref) lektordir.Ref {
	if len(q.changes) == 0 {
		return r
	}
	k := part.KeyOf(r)
	for _, c := range q.changes {
		if c.keys[k] {
			r, _ = r.WithFlags(c.Set, c.Unset)
		}
	}
	return r
}

// Unread reports whether an entry is unread after all changes in the queue. It is cheaper than
// Now.
func (q *Queue) Unread(e catalog.Entry) bool {
	unread := e.Unread()
	for _, c := range q.changes {
		if sets := strings.Contains(c.Set, "S"); (sets || strings.Contains(c.Unset, "S")) && unread == sets &&
			c.keys[e.ID()] {
			unread = !sets
		}
	}
	return unread
}

// Trashed reports whether an entry is trashed after all changes in the queue, also if it was not before.
func (q *Queue) Trashed(e catalog.Entry) bool {
	k := e.ID()
	return slices.ContainsFunc(q.changes, func(c *Change) bool { return c.keys[k] }) && q.Now(e.Ref()).Trashed()
}

// Trashing reports whether entries are being trashed.
func (q *Queue) Trashing() bool { return slices.ContainsFunc(q.changes, (*Change).Trashes) }

// Feeds returns the hashes of the feeds of entries with changes in the queue.
func (q *Queue) Feeds() map[string]bool {
	feeds := map[string]bool{}
	for _, c := range q.changes {
		maps.Copy(feeds, c.feeds)
	}
	return feeds
}
