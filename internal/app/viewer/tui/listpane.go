package tui

import (
	"context"
	"maps"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// listDisk is what the list needs of the lektor-dir. Its methods may take long.
type listDisk interface {
	// Dates returns the dates of entries. If that would take long, or ctx ends first, the
	// missing dates are the times of delivery, and whole is false.
	Dates(ctx context.Context, entries []catalog.Entry) (dates []time.Time, whole bool)
	// Learn reads the dates of entries, however long this takes, so that later calls of Dates
	// return them at once. It may also update the index, and calls progress repeatedly.
	Learn(ctx context.Context, entries []catalog.Entry, progress func(what string, done, total int)) error
	// Rows returns the rows of entries, in the same order.
	Rows(ctx context.Context, refs []lektordir.Ref) []Row
	// SortTexts returns for each entry its title, or its author, in a form to sort by. It may take
	// long, and calls progress repeatedly.
	SortTexts(ctx context.Context, entries []catalog.Entry, by string, progress func(done, total int)) []string
	// Query parses a query.
	Query(ctx context.Context, text string) (Query, error)
}

// list is the second pane: entries.
type list struct {
	*part.Env
	listState
	disk  listDisk
	tree  *tree
	marks *work.Queue                 // changes that are not made; entries are shown as they will be after these
	pane  func() (lines int, at bool) // the lines of the pane, and whether the focus is on the list, or on an entry

	rows  map[key]*Row // nil while the row is being read
	job   part.Job[part.List]
	took  time.Duration // how long it took to make the last list
	dates learning
}

// learning is the state of the call of Learn.
type learning struct {
	runs     bool
	progress string // also of sorting
}

// listState is the state of a list of one node.
type listState struct {
	spec        listSpec
	items       []*item
	found       string      // query that found items; not yet that of the spec while a search begins
	sorted      *sortedList // the last list that was not a search; nil if its dates are out of date
	complete    bool        // items are the whole list
	at, y       int
	cursorToTop bool         // move the cursor to the top when the next items come
	seek        int          // when the list is complete, move to its first (1) or last (-1) unread entry; 0 does not
	readHere    map[key]bool // entries read in this list; they stay in it
	err         error        // why the list could not be made
}

// nextUnread is the effect that moves to the next unread entry.
type nextUnread struct{ by int }

// choose lists the entries of a node.
func (l *list) choose(of id) part.Effects {
	spec := l.spec
	spec.of, spec.query, spec.order = of, "", l.tree.settings.orderOf(of)
	l.listState = listState{spec: spec, readHere: map[key]bool{}, cursorToTop: spec.order != byDate}
	return part.Effects{part.List{}}
}

// request requests a list.
func (l *list) request(r part.List) {
	switch l.complete = false; {
	case !r.Again:
		l.job.Replace(r)
	// A list that is being made is not cancelled, because no list would be complete while entries keep arriving.
	case l.job.Next == nil:
		l.job.Next = &r
	}
}

// current returns the entry under the cursor; ok is false if there is none.
func (l *list) current() (ref lektordir.Ref, ok bool) {
	if l.at >= 0 && l.at < len(l.items) {
		return l.marks.Now(l.items[l.at].Ref()), true
	}
	return lektordir.Ref{}, false
}

// outdated reports whether the items are still those of the query before. Keys move among them, but
// do nothing to an entry that the user did not search for.
func (l *list) outdated() bool { return l.found != l.spec.query }

// goTo moves the cursor for a key of the user. The next items do not move the cursor to the top.
func (l *list) goTo(at int) { l.at, l.cursorToTop = max(0, min(at, len(l.items)-1)), false }

// next returns the index of the next unread entry (by 1) or of the previous one (by -1), around the end; ok is false
// if there is none.
func (l *list) next(by int) (at int, ok bool) {
	for i := 1; i <= len(l.items); i++ {
		at := cells.Wrap(l.at+i*by, len(l.items))
		if l.marks.Unread(l.items[at].Entry) {
			return at, true
		}
	}
	return 0, false
}

// chance moves to an unread entry at random; ok is false if there is no other than that of the cursor.
func (l *list) chance() (ok bool) {
	var unread []int
	for i, it := range l.items {
		if i != l.at && l.marks.Unread(it.Entry) {
			unread = append(unread, i)
		}
	}
	if len(unread) == 0 {
		return false
	}
	l.goTo(unread[l.tree.settings.random()%uint64(len(unread))])
	return true
}

// hide removes entries that are being trashed.
func (l *list) hide() {
	l.items = overlay(l.marks, l.items)
	l.at = max(0, min(l.at, len(l.items)-1))
}

// search lists the entries of the node that match a query.
func (l *list) search(query string) part.Effects {
	query = strings.TrimSpace(query)
	if query == l.spec.query {
		// The entries are listed already. The key after Enter must not find an empty list.
		return nil
	}
	l.spec.query = query
	return part.Effects{part.List{}}
}

// save saves the search. It asks for a name if the action has none.
func (l *list) save(g part.Given) part.Effects {
	save := func(name string) part.Effects {
		return part.Effects{part.SaveQuery{Name: strings.TrimSpace(name),
			Query: listSpec{of: l.spec.of, query: l.spec.query}.text()}}
	}
	switch {
	case l.spec.query == "":
		return l.Say("no search to save: search first")
	case len(g.Words) == 0:
		return part.Effects{part.Ask{Label: "save as: ", Then: save}}
	}
	return save(g.Words[0])
}

// toggleAll switches between all entries and unread ones only.
func (l *list) toggleAll(part.Given) part.Effects {
	l.spec.all = !l.spec.all
	l.reread()
	if l.spec.all {
		return append(l.Say("read and unread entries"), part.List{})
	}
	return append(l.Say("unread entries only"), part.List{})
}

// reread lets the list be made anew.
func (l *list) reread() { l.sorted, l.readHere = nil, map[key]bool{} }

// sort sorts the list, and later lists of its node.
func (l *list) sort(o order) part.Effects {
	if o.by == "random" {
		o.down = false
		l.tree.settings.seed = l.tree.settings.random() // shuffled anew each time
	}
	set := l.tree.remember("sort", l.spec.of, o.String())
	l.tree.settings.Set(set.Name, set.Value)
	l.spec.order = l.tree.settings.orderOf(l.spec.of)
	return part.Effects{set, part.Say{Text: sortedBy(l.Printer, o)}, part.List{}}
}

// mark sets and clears flags of an entry, which stays in the list.
func (l *list) mark(ref lektordir.Ref, set, unset string) part.Effects {
	l.readHere[keyOf(ref)] = true
	return part.Effects{part.Change{Refs: []lektordir.Ref{ref}, Set: set, Unset: unset}}
}

// unread returns the unread entries among the first n of the list, or the message that there are none.
func (l *list) unread(n int) (refs []lektordir.Ref, none part.Effects) {
	for _, it := range l.items[:n] {
		if l.marks.Unread(it.Entry) {
			refs = append(refs, l.marks.Now(it.Ref()))
		}
	}
	if len(refs) == 0 {
		none = l.Say("these entries are read already")
	}
	return refs, none
}

// markRead marks entries as read; they stay in the list.
func (l *list) markRead(refs []lektordir.Ref) part.Effects {
	for _, r := range refs {
		l.readHere[keyOf(r)] = true
	}
	return append(l.Say("marking %d entries as read", len(refs)), part.Change{Refs: refs, Set: "S",
		Then: func(moved []lektordir.Ref) part.Effects {
			return l.Say("%d entries marked as read; %s undoes it", len(moved), l.KeyOf("undo"))
		}})
}

// confirmRead marks entries of the listed node as read, if the user confirms.
func (l *list) confirmRead(refs []lektordir.Ref) part.Effects {
	return part.Effects{part.Confirm{Text: l.Trf("mark %d entries of %s as read?", len(refs), l.tree.name(l.spec.of)),
		Yes: func() part.Effects { return l.markRead(refs) }}}
}

// readAll marks the listed entries as read, those of several feeds if the user confirms.
func (l *list) readAll(part.Given) part.Effects {
	switch refs, none := l.unread(len(l.items)); {
	case none != nil:
		return none
	case l.spec.of.kind == allNode, l.spec.of.kind == folderNode:
		return l.confirmRead(refs)
	default:
		return l.markRead(refs)
	}
}

// readAbove marks the entries above the cursor as read.
func (l *list) readAbove(part.Given) part.Effects {
	if l.at == 0 {
		return l.Say("there are no entries above the cursor")
	}
	refs, none := l.unread(l.at)
	if none != nil {
		return none
	}
	return l.markRead(refs)
}

// readNode marks the entries of the node as read, if the user confirms.
func (l *list) readNode(part.Given) part.Effects {
	if l.spec.of.kind == savedNode { // only the list knows the entries
		if !l.complete {
			return l.incomplete()
		}
		refs, none := l.unread(len(l.items))
		if none != nil {
			return none
		}
		return l.confirmRead(refs)
	}
	if refs := l.tree.unread(); len(refs) > 0 {
		return l.confirmRead(refs)
	}
	return l.Say("these entries are read already")
}

// incomplete is the message about a key that works on the list, if it is pressed too early.
func (l *list) incomplete() part.Effects { return l.Say("the list is not complete yet") }

// pause is the least time between two messages about progress.
const pause = 100 * time.Millisecond

// begin returns the command that makes the requested list, nil if there is no request, a
// list is being made, or the entries are not listed yet.
func (l *list) begin() tea.Cmd {
	if l.tree.snapshot == nil {
		return nil
	}
	ctx, r, id := l.job.Begin(l.Ctx)
	if r == nil {
		return nil
	}
	w := listWork{listSpec: l.spec, disk: l.disk, snapshot: l.tree.snapshot, readHere: maps.Clone(l.readHere),
		old: l.sorted}
	var sent time.Time
	w.progress = func(done, total int) {
		if now := time.Now(); now.Sub(sent) > pause {
			sent = now
			l.report(l.Trf("sorting by %s: %d of %d", w.by, done, total))
		}
		if done == total {
			l.report("")
		}
	}
	return func() tea.Msg {
		began := time.Now()
		list, err := w.make(ctx, func(found []*item) {
			l.Send(part.Then(func() part.Effects { return l.takePart(id, r, found) }))
		})
		took := time.Since(began)
		return part.Then(func() part.Effects { return l.takeList(id, list, took, err) })
	}
}

// report shows the progress of work in the background.
func (l *list) report(progress string) {
	l.Send(part.Then(func() part.Effects {
		l.dates.progress = progress
		return nil
	}))
}

// takePart shows what a search has found so far.
func (l *list) takePart(id int, r *part.List, found []*item) part.Effects {
	// Old rows of the same list stay until the search has found at least as many.
	if l.job.Awaits(id) && (!r.Again || l.outdated() || len(found) >= len(l.items)) {
		l.takeProvisional(found)
	}
	return nil
}

// takeList shows a complete list or its error, and moves to an unread entry if seek is set.
func (l *list) takeList(id int, list *sortedList, took time.Duration, err error) part.Effects {
	awaited := l.job.Awaits(id)
	l.job.End()
	if !awaited {
		return nil
	}
	l.took = took
	switch {
	case list == nil:
	case l.job.Next == nil: // later scans saw no change of the list
		l.marks.Listed(l.tree.snapshot.scan)
	default:
		l.marks.Listed(list.snapshot.scan)
	}
	if list != nil && list.snapshot.partial {
		l.takeProvisional(list.items)
		return nil
	}
	by := l.seek
	l.err, l.complete, l.seek = err, true, 0
	if err != nil {
		l.take(nil)
		l.complete = l.job.Next == nil
		return nil
	}
	l.take(list.items)
	if list.text() == "" {
		l.sorted = list
	}
	var e part.Effects
	if by != 0 {
		l.at = -1
		if by < 0 {
			l.at = len(l.items)
		}
		e = part.Effects{nextUnread{by}}
	}
	l.complete = l.job.Next == nil
	if !list.dated {
		e = append(e, part.Run(l.learn(list.items)))
	}
	return e
}

// learn returns the command that reads the dates of entries, nil if they are being read.
func (l *list) learn(items []*item) tea.Cmd {
	if l.dates.runs {
		return nil
	}
	l.dates.runs = true
	return func() tea.Msg {
		entries := make([]catalog.Entry, len(items))
		for i, it := range items {
			entries[i] = it.Entry
		}
		var sent time.Time
		err := l.disk.Learn(l.Ctx, entries, func(what string, done, total int) {
			if now := time.Now(); now.Sub(sent) > pause {
				sent = now
				l.report(l.Trf("%s: %d of %d", l.Tr(what), done, total))
			}
		})
		return part.Then(func() part.Effects {
			l.dates = learning{}
			if err != nil {
				return l.Fail(err)
			}
			l.sorted = nil // its dates are stale
			// A running request has the stale list. Its dates would be missing again, and be learned again.
			l.job.Abandon()
			return part.Effects{part.List{Again: true}}
		})
	}
}

// take shows the items of a list. The cursor stays on its entry, and the entry on its line of
// the screen.
func (l *list) take(items []*item) {
	lines, at := l.pane()
	var on catalog.Entry
	stays := l.at >= 0 && l.at < len(l.items)
	if stays {
		on = l.items[l.at].Entry
	}
	stays = stays && !l.cursorToTop && (at || l.at > 0)
	if l.cursorToTop {
		l.at, l.y, l.cursorToTop = 0, 0, false
	}
	l.items, l.found = overlay(l.marks, items), l.spec.query
	l.at = max(0, min(l.at, len(l.items)-1))
	if !stays {
		return
	}
	if i := find(l.items, l.at, on); i >= 0 {
		// At the top new entries should become visible, so the entry may move down the screen.
		if l.y > 0 || i >= lines {
			l.y += i - l.at
		}
		l.at = i
	}
}

// takeProvisional shows items that may not be in the order of the list yet.
func (l *list) takeProvisional(items []*item) {
	top := l.cursorToTop && l.spec.order != byDate
	l.take(items)
	l.cursorToTop = top
}

// find returns the index of an entry in a list, or -1. It searches from near outwards, because
// an entry rarely moves far.
func find(items []*item, near int, entry catalog.Entry) int {
	near = max(0, min(near, len(items)-1))
	for up, down := near, near+1; up >= 0 || down < len(items); up, down = up-1, down+1 {
		if up >= 0 && up < len(items) && items[up].Same(entry) {
			return up
		}
		if down < len(items) && items[down].Same(entry) {
			return down
		}
	}
	return -1
}

// maxRows is the number of rows above which all are dropped.
const maxRows = 4000

// readRows returns the command that reads the missing rows of the lines on the screen and of
// one page before and after them, nil if none is missing.
func (l *list) readRows() tea.Cmd {
	lines, _ := l.pane()
	l.y = cells.Window(l.y, l.at, len(l.items), lines)
	var refs []lektordir.Ref
	var keys []key
	for i := max(0, l.y-lines); i < min(len(l.items), l.y+2*lines); i++ {
		k := l.items[i].ID()
		if _, ok := l.rows[k]; !ok {
			l.rows[k] = nil
			refs, keys = append(refs, l.items[i].Ref()), append(keys, k)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	return func() tea.Msg {
		rows := l.disk.Rows(l.Ctx, refs)
		return part.Then(func() part.Effects {
			if len(l.rows) > maxRows {
				clear(l.rows)
			}
			for i, key := range keys {
				l.rows[key] = &rows[i]
			}
			return nil
		})
	}
}

// title returns the title of an entry, "" if it is not read yet.
func (l *list) title(k key) string {
	if row := l.rows[k]; row != nil {
		return row.Title
	}
	return ""
}

// sortMenu shows a menu of the orders of entries.
func (l *list) sortMenu(reversed bool) part.Effects {
	return orderMenu(l.Printer, l.Tr("sort the list by"), entryOrders, l.spec.order, reversed, l.sort)
}
