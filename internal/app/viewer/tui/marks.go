package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/lektordir"
)

// change is a change of the lektor-dir that a key asked for.
type change struct {
	kind       changeKind
	refs       []lektordir.Ref // as the screen showed them when the key was pressed
	keys       map[key]bool    // of refs
	feeds      map[string]bool // of refs
	set, unset string          // flags
	name       string          // of the query to save
	query      string
	state      changeState
	scan       int // id of the first scan that began after the disk made the change; 0 before
}

type changeKind uint8

const (
	markChange changeKind = iota
	trashChange
	undoChange
	saveChange
)

// changeState says how far a change is.
type changeState uint8

const (
	queued changeState = iota
	making             // by the disk
	made
)

// newChange returns the change that sets and clears flags of entries.
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
	change *change
	said   string          // for the last line
	moved  []lektordir.Ref // where the entries are now
	err    error
}

// make makes the change on the disk.
func (c *change) make(ctx context.Context, d Disk) changeMsg {
	msg := changeMsg{change: c}
	switch c.kind {
	case markChange:
		msg.moved, msg.err = d.Mark(ctx, c.refs, c.set, c.unset)
	case trashChange:
		msg.err = d.Trash(ctx, c.refs)
	case undoChange:
		msg.said, msg.moved, msg.err = d.Undo(ctx)
	case saveChange:
		if msg.err = d.Save(ctx, c.name, c.query); msg.err == nil {
			msg.said = fmt.Sprintf("saved as %s", c.name)
		}
	}
	return msg
}

// changed returns the feeds in which something changed, "" if that is not known.
func (msg *changeMsg) changed() map[string]bool {
	feeds := maps.Clone(msg.change.feeds)
	if feeds == nil {
		feeds = map[string]bool{}
	}
	for _, r := range msg.moved {
		feeds[r.Feed] = true
	}
	if msg.said != "" && len(feeds) == 0 {
		feeds[""] = true
	}
	return feeds
}

// marks is the queue of changes. The disk makes them one after the other, in the order of
// the keys. The screen shows them at once, until a list has them that was made after the
// disk.
type marks struct{ changes []*change }

func (q *marks) add(c *change) { q.changes = append(q.changes, c) }

// begin returns the change that the disk makes next, nil if it is making one.
func (q *marks) begin() *change {
	for _, c := range q.changes {
		switch c.state {
		case making:
			return nil
		case queued:
			c.state = making
			return c
		}
	}
	return nil
}

// made records that the disk made a change, or failed to.
func (q *marks) made(c *change) {
	c.state = made
	q.drop(func(c *change) bool { return c.state == made && len(c.keys) == 0 })
}

// scanBegins records a scan, which sees all changes that the disk made before.
func (q *marks) scanBegins(id int) {
	for _, c := range q.changes {
		if c.state == made && c.scan == 0 {
			c.scan = id
		}
	}
}

// listed drops the changes that a list from the snapshot of a scan has.
func (q *marks) listed(scan int) {
	q.drop(func(c *change) bool { return c.scan > 0 && c.scan <= scan })
}

func (q *marks) drop(f func(*change) bool) { q.changes = slices.DeleteFunc(q.changes, f) }

// now returns an entry as it will be when all changes are made.
func (q *marks) now(r lektordir.Ref) lektordir.Ref {
	for _, c := range q.changes {
		if c.keys[keyOf(r)] {
			if to, err := r.WithFlags(c.set, c.unset); err == nil {
				r = to
			}
		}
	}
	return r
}

// unread reports whether an entry will be unread, without making a name for it.
func (q *marks) unread(r lektordir.Ref) bool {
	unread := r.Unread()
	for _, c := range q.changes {
		if sets := strings.Contains(c.set, "S"); (sets || strings.Contains(c.unset, "S")) && unread == sets && c.keys[keyOf(r)] {
			unread = !sets
		}
	}
	return unread
}

// overlay returns the rows of a list without those that are being trashed. The others are
// drawn as now returns them.
func (q *marks) overlay(rows []*item) []*item {
	if !slices.ContainsFunc(q.changes, func(c *change) bool { return c.kind == trashChange }) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(it *item) bool { return q.now(*it.ref).Trashed() })
}

// touches reports whether an entry of a feed is being changed.
func (q *marks) touches(feed string) bool {
	return slices.ContainsFunc(q.changes, func(c *change) bool { return c.feeds[feed] })
}
