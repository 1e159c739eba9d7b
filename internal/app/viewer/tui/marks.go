package tui

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// moves are entries that are to be marked: where they are, and where they will be. They
// never change.
type moves struct {
	from  []lektordir.Ref
	to    map[key]lektordir.Ref
	feeds map[string]bool
	err   error // why none of them can be
}

// movesOf gives the moves that flags make of entries.
func movesOf(refs []lektordir.Ref, set, unset string) *moves {
	v := &moves{from: refs, to: make(map[key]lektordir.Ref, len(refs)), feeds: map[string]bool{}}
	for _, r := range refs {
		to, err := r.WithFlags(set, unset)
		if err != nil {
			return &moves{err: err}
		}
		v.to[keyOf(r)] = to
		v.feeds[r.Feed] = true
	}
	return v
}

// few is how many entries are marked on the screen by the goroutine of the screen; with
// more of them a key would be late, and another one does it.
const few = 8

// marking is moves that are being made. The screen has them as made until a scan that
// began after the disk made them has seen what became of them.
type marking struct {
	moves *moves // nil while they are being found out
	done  bool   // by the disk
}

// job is a change of the lektor-dir. They are made one after the other, in the order
// in which the keys were pressed.
type job struct {
	mark *marking
	do   doing
}

// doing does a job. What it says is for the last line; moved are the entries that were
// moved, where they are now.
type doing func(context.Context) (said string, moved []lektordir.Ref, err error)

type (
	// jobMsg is a job that was done.
	jobMsg struct {
		job   job
		said  string
		moved map[key]lektordir.Ref
		feeds map[string]bool // in which something changed
		err   error
	}
	// markedMsg is what became known of a marking of many, and what it makes of a list.
	markedMsg struct {
		mark      *marking
		moves     *moves
		of, items []*item
	}
)

// marked gives the moves that are being made and known.
func (m *model) marked() []*moves {
	var all []*moves
	for _, mark := range m.moving {
		if mark.moves != nil {
			all = append(all, mark.moves)
		}
	}
	return all
}

// willBe gives an entry as it will be when it is marked; ok is false for one that is not
// being marked.
func (m *model) willBe(k key) (to lektordir.Ref, ok bool) {
	for _, mark := range slices.Backward(m.moving) {
		if mark.moves != nil {
			if to, ok = mark.moves.to[k]; ok {
				return to, true
			}
		}
	}
	return to, false
}

// overlaid gives a list with entries as they will be. The one that there was stays.
func overlaid(items []*item, all []*moves) []*item {
	to := map[key]lektordir.Ref{}
	for _, what := range all {
		maps.Copy(to, what.to)
	}
	if len(to) == 0 {
		return items
	}
	made := make([]*item, 0, len(items))
	for _, it := range items {
		if r, ok := to[keyOf(it.ref)]; ok && r != it.ref {
			it = &item{r, it.date}
		}
		if !it.ref.Trashed() {
			made = append(made, it)
		}
	}
	return made
}

// overlay puts into the list on the screen what is being marked.
func (m *model) overlay(what *moves) {
	l := &m.list
	if len(what.to) > few {
		l.items = overlaid(l.items, []*moves{what})
		return
	}
	cloned := false
	for k, to := range what.to {
		i := find(l.items, l.at, k)
		if i < 0 {
			continue
		}
		if !cloned {
			l.items, cloned = slices.Clone(l.items), true // the others are those of a listing
		}
		if to.Trashed() {
			l.items = slices.Delete(l.items, i, i+1)
		} else {
			l.items[i] = &item{to, l.items[i].date}
		}
	}
}

// markSince puts into the list on the screen what was marked since it was begun to be made.
func (m *model) markSince(begun []*moves) {
	for _, mark := range m.moving {
		switch what := mark.moves; {
		case what == nil || slices.Contains(begun, what):
		case len(what.to) > few:
			m.list.again = true
		default:
			m.overlay(what)
		}
	}
}

// find gives where an entry is in a list, or -1. It looks around the place where it was:
// what came and went is mostly little.
func find(items []*item, near int, k key) int {
	is := func(i int) bool { return items[i].ref.Feed == k.feed && items[i].ref.Unique == k.unique }
	near = max(0, min(near, len(items)-1))
	for up, down := near, near+1; up >= 0 || down < len(items); up, down = up-1, down+1 {
		if up >= 0 && up < len(items) && is(up) {
			return up
		}
		if down < len(items) && is(down) {
			return down
		}
	}
	return -1
}

// kept are entries that were read here. The zero value has none. It may be used by several
// goroutines.
type kept struct {
	mu   sync.RWMutex
	keys map[key]bool
}

func (k *kept) add(keys ...key) {
	// In parts, as nobody else can look meanwhile.
	for part := range slices.Chunk(keys, 256) {
		k.mu.Lock()
		if k.keys == nil {
			k.keys = map[key]bool{}
		}
		for _, one := range part {
			k.keys[one] = true
		}
		k.mu.Unlock()
	}
}

func (k *kept) has(one key) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.keys[one]
}

// change marks entries: on the screen at once, on the disk when it is their turn.
func (m *model) change(refs []lektordir.Ref, set, unset string) tea.Cmd {
	d := m.disk
	return m.enqueue(movesOf(refs, set, unset), func(ctx context.Context) (string, []lektordir.Ref, error) {
		if strings.Contains(set, "T") {
			return "", refs, d.Trash(ctx, refs)
		}
		moved, err := d.Mark(ctx, refs, set, unset)
		return "", moved, err
	})
}

// enqueue puts a job behind those that wait.
func (m *model) enqueue(what *moves, do doing) tea.Cmd {
	if what.err != nil {
		m.fail(what.err)
		return nil
	}
	if to, ok := what.to[m.page.key]; ok {
		m.page.ref = to
	}
	m.overlay(what)
	m.list.at = max(0, min(m.list.at, len(m.list.items)-1))
	return m.queue(job{&marking{moves: what}, do})
}

func (m *model) queue(j job) tea.Cmd {
	if what := j.mark.moves; what == nil || len(what.to) > 0 {
		m.moving = append(m.moving, j.mark)
	}
	if m.marks = append(m.marks, j); len(m.marks) == 1 {
		return m.work()
	}
	return nil
}

// work does the first job.
func (m *model) work() tea.Cmd {
	ctx, j := m.ctx, m.marks[0]
	return func() tea.Msg {
		said, moved, err := j.do(ctx)
		msg := jobMsg{job: j, said: said, moved: make(map[key]lektordir.Ref, len(moved)), feeds: map[string]bool{}, err: err}
		for _, r := range moved {
			msg.moved[keyOf(r)] = r
			msg.feeds[r.Feed] = true
		}
		return msg
	}
}

func (m *model) haveJob(msg jobMsg) tea.Cmd {
	m.marks = m.marks[1:]
	mark := msg.job.mark
	mark.done = true
	if msg.said != "" {
		m.say("%s", msg.said)
	}
	if msg.err != nil {
		m.fail(msg.err)
	}
	maps.Copy(m.changed, msg.feeds)
	if mark.moves != nil {
		maps.Copy(m.changed, mark.moves.feeds)
	}
	if r, ok := msg.moved[m.page.key]; ok && !m.awaits(m.page.key) {
		m.page.ref = r
	}
	if msg.said != "" && len(msg.moved) == 0 {
		m.changed[""] = true // a query was saved
	}
	cmds := []tea.Cmd{m.scan()}
	if len(m.marks) > 0 {
		cmds = append(cmds, m.work())
	}
	return tea.Batch(cmds...)
}

// awaits tells whether another job waits for an entry, which knows better where it will be.
func (m *model) awaits(k key) bool {
	return slices.ContainsFunc(m.moving, func(mark *marking) bool {
		if mark.done || mark.moves == nil {
			return false
		}
		_, ok := mark.moves.to[k]
		return ok
	})
}

// readAll marks as read what is listed.
func (m *model) readAll() tea.Cmd {
	if m.list.busy {
		m.say("the list is not complete yet")
		return nil
	}
	items, keep, d := m.list.items, m.list.keep, m.disk
	found := sync.OnceValue(func() *moves {
		var refs []lektordir.Ref
		var keys []key
		for _, it := range items {
			if it.ref.Unread() {
				refs, keys = append(refs, it.ref), append(keys, keyOf(it.ref))
			}
		}
		keep.add(keys...)
		return movesOf(refs, "S", "")
	})
	do := func(ctx context.Context) (string, []lektordir.Ref, error) {
		moved, err := d.Mark(ctx, found().from, "S", "")
		return "", moved, err
	}
	if len(items) <= manyItems {
		what := found()
		if len(what.from) > 0 || what.err != nil {
			m.sayRead(what)
			return m.enqueue(what, do)
		}
		m.sayRead(what)
		return nil
	}
	m.say("marking as read…")
	mark := &marking{}
	return tea.Batch(m.queue(job{mark, do}), func() tea.Msg {
		what := found()
		return markedMsg{mark, what, items, overlaid(items, []*moves{what})}
	})
}

// manyItems is how many entries are gone through while a key waits.
const manyItems = 2000

// sayRead tells how many entries are marked as read.
func (m *model) sayRead(what *moves) {
	switch n := len(what.from); {
	case what.err != nil:
		m.fail(what.err)
	case n == 0:
		m.say("all of these are read")
	default:
		m.say("%s marked as read; %s takes it back", units.Count(n, "entry"), m.o.Keys.of("undo"))
	}
}

// haveMarked takes what became known of a marking.
func (m *model) haveMarked(msg markedMsg) tea.Cmd {
	m.sayRead(msg.moves)
	if msg.mark.done {
		maps.Copy(m.changed, msg.moves.feeds)
	}
	if msg.mark.moves = msg.moves; !slices.Contains(m.moving, msg.mark) {
		return m.scan() // the disk was faster
	}
	if to, ok := msg.moves.to[m.page.key]; ok {
		m.page.ref = to
	}
	if l := &m.list; len(l.items) == len(msg.of) && len(msg.of) > 0 && &l.items[0] == &msg.of[0] {
		l.items = msg.items
		return m.scan()
	}
	return tea.Batch(m.scan(), m.relist())
}

// hasUnread tells whether a feed has unread entries, as they will be.
func (m *model) hasUnread(hash string) bool {
	f := m.shelf.feeds[hash]
	if f == nil {
		return false
	}
	marked := func(mark *marking) bool { return mark.moves != nil && mark.moves.feeds[hash] }
	if m.shelf.uncounted {
		return true // it may
	}
	if m.shelf.bare || !slices.ContainsFunc(m.moving, marked) {
		return f.Unread > 0
	}
	return slices.ContainsFunc(f.refs, func(r lektordir.Ref) bool {
		if to, ok := m.willBe(keyOf(r)); ok {
			r = to
		}
		return r.Unread() && !r.Trashed()
	})
}
