package tui

import (
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// browser holds the three panes with their cursors. It does not use the disk: its methods
// change it, and return the effects that the model has to carry out.
type browser struct {
	snapshot *snapshot   // nil until it is read
	marks    *work.Queue // pending changes; entries are shown as they will be after these
	focus    keys.Pane
	zoom     bool
	tree     tree
	list     list
	page     reading
	shape    shape
	settings settings

	width, height int  // size of the screen in cells
	textMost      int  // maximum columns of the text of an entry
	single        bool // only the pane that has the focus is shown
}

// effects are what the model has to do after a change of the browser.
type effects struct {
	list bool   // make another list
	read bool   // mark the entry of the page as read
	say  string // for the last line
}

// tree is the first pane: folders and feeds.
type tree struct {
	closed map[id]bool // closed folders
	nodes  []node      // nodes that no closed folder hides
	at, y  int         // the cursor, and the first line of the pane
}

// list is the second pane: entries.
type list struct {
	listSpec
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

// reading is the third pane: the open entry.
type reading struct {
	ref      lektordir.Ref // its name, also after a change renames it
	key      key           // key of ref; 0 if no entry is open
	page     *Page         // nil until it is read
	lines    []string
	y        int
	width    int       // columns for which the text was requested; 0 to read it again
	feedText bool      // show the feed's text, not the article of the page
	pending  keys.Call // action to do when page is read
	find     finder
	err      error
}

// open reports whether an entry is open.
func (p *reading) open() bool { return p.key != 0 }

// rename takes the name of the open entry from a snapshot, as a download or another program may
// have changed its flags.
func (p *reading) rename(s *snapshot) {
	if f := s.feeds[p.ref.Feed]; p.open() && f != nil {
		if e, ok := f.names.Find(p.ref.Unique); ok {
			p.ref = e.Ref()
		}
	}
}

// show opens the entry under the cursor of the list.
func (b *browser) show() {
	ref := b.list.items[b.list.at].Ref()
	b.page = reading{ref: ref, key: keyOf(ref)}
}

// arrangeTree sets the nodes of the tree from the snapshot. The cursor stays on the node of the
// list.
func (b *browser) arrangeTree() {
	t, hides := &b.tree, b.settings.hidden(b.snapshot, b.list.of)
	t.nodes = t.nodes[:0]
	hidden := -1 // nodes deeper than this are hidden; -1 hides none
	for _, n := range b.snapshot.nodes {
		if hidden >= 0 && n.depth > hidden {
			continue
		}
		hidden = -1
		hide := hides(n)
		if hide || t.closed[n.id] {
			hidden = n.depth
		}
		if !hide {
			t.nodes = append(t.nodes, n)
		}
	}
	if at := t.find(b.list.of); at >= 0 {
		t.at = at
	}
	t.at = min(t.at, len(t.nodes)-1)
}

func (t *tree) find(of id) int {
	return slices.IndexFunc(t.nodes, func(n node) bool { return n.id == of })
}

// choose moves the cursor to a node and lists its entries.
func (b *browser) choose(of id) effects {
	spec := b.list.listSpec
	spec.of, spec.query, spec.order = of, "", b.settings.orderOf(of)
	b.list = list{listSpec: spec, readHere: map[key]bool{}, cursorToTop: spec.order != byDate}
	b.arrangeTree()
	return effects{list: true}
}

// current returns the entry under the cursor of the list; ok is false if there is none.
func (b *browser) current() (ref lektordir.Ref, ok bool) {
	if at := b.list.at; at >= 0 && at < len(b.list.items) {
		return b.marks.Now(b.list.items[at].Ref()), true
	}
	return lektordir.Ref{}, false
}

// chosen returns the entry that a key works on: the open entry, or the one under the cursor of
// the list, depending on the focus.
func (b *browser) chosen() (lektordir.Ref, bool) {
	switch b.focus {
	case keys.PagePane:
		return b.marks.Now(b.page.ref), b.page.open()
	case keys.ListPane:
		return b.current()
	}
	return lektordir.Ref{}, false
}

// move moves the cursor by n lines, or scrolls the text if the focus is on it.
func (b *browser) move(n int) effects {
	switch b.focus {
	case keys.FeedsPane:
		return b.toNode(b.tree.at + n)
	case keys.ListPane:
		b.list.goTo(b.list.at + n)
		return effects{}
	}
	return b.scroll(n)
}

// to moves to line n, from 0.
func (b *browser) to(n int) effects {
	switch b.focus {
	case keys.FeedsPane:
		return b.toNode(n)
	case keys.ListPane:
		b.list.goTo(n)
		return effects{}
	}
	b.page.y = 0
	return b.scroll(n)
}

// scroll moves the text by n lines, wherever the focus is.
func (b *browser) scroll(n int) effects {
	b.page.y = max(0, min(b.page.y+n, len(b.page.lines)-linesOf(b, keys.PagePane)))
	return effects{}
}

// toNode moves the cursor of the tree to a line, and lists the entries of its node.
func (b *browser) toNode(at int) effects {
	at = max(0, min(at, len(b.tree.nodes)-1))
	if at == b.tree.at || b.snapshot == nil {
		return effects{}
	}
	return b.choose(b.tree.nodes[at].id)
}

// incomplete is the effect of a key that works on the list, if it is pressed too early.
var incomplete = effects{say: "the list is not complete yet"}

// outdated reports whether the items are still those of the query before. Keys move among them, but
// do nothing to an entry that the user did not search for.
func (l *list) outdated() bool { return l.found != l.query }

// goTo moves the cursor for a key of the user. The next items do not move the cursor to the top.
func (l *list) goTo(at int) { l.at, l.cursorToTop = max(0, min(at, len(l.items)-1)), false }

// open opens the line of the cursor: a node's list, or an entry. If the focus is on the text, it
// scrolls down a page.
func (b *browser) open() effects {
	switch b.focus {
	case keys.FeedsPane:
		if b.snapshot == nil {
			return effects{}
		}
		b.focus = keys.ListPane
		if n := b.tree.nodes[b.tree.at]; n.id != b.list.of {
			return b.choose(n.id)
		}
		return effects{}
	case keys.ListPane:
		return b.read()
	}
	return b.move(b.fullPage())
}

// read opens the entry under the cursor of the list, and marks it as read.
func (b *browser) read() effects {
	ref, ok := b.current()
	switch {
	case b.list.outdated():
		return incomplete
	case !ok:
		return effects{}
	}
	b.focus = keys.PagePane
	b.list.goTo(b.list.at)
	b.show()
	b.list.readHere[b.page.key] = true
	return effects{read: ref.Unread()}
}

// follow opens the entry under the cursor if another entry is shown beside the list.
// The new entry is not marked as read.
func (b *browser) follow() {
	b.scroll(0) // the pane may have changed its height
	ref, ok := b.current()
	if ok && b.focus == keys.ListPane && b.page.open() && b.page.key != keyOf(ref) && b.textWidth() > 0 {
		b.show()
	}
}

// back ends a search in the entry, else leaves the entry, else the search, else the list.
func (b *browser) back() effects {
	switch {
	case searching(b):
		b.page.find = finder{}
	case b.focus == keys.PagePane:
		b.focus = keys.ListPane
	case b.list.query != "":
		b.list.query = ""
		return effects{list: true}
	case b.focus == keys.ListPane:
		b.focus = keys.FeedsPane
	}
	return effects{}
}

// pane moves the focus n panes to the right.
func (b *browser) pane(n int) effects {
	panes := []keys.Pane{keys.FeedsPane, keys.ListPane}
	if b.page.open() {
		panes = append(panes, keys.PagePane)
	}
	at := slices.Index(panes, b.focus)
	b.focus = panes[cells.Wrap(at+n, len(panes))]
	return effects{}
}

// toggleZoom shows the pane with the focus alone, or all panes.
func (b *browser) toggleZoom() effects {
	b.zoom = !b.zoom
	return effects{}
}

// fold closes or opens the folder of the cursor, or the folder of the feed under it.
func (b *browser) fold() effects {
	if b.snapshot == nil || b.focus != keys.FeedsPane {
		return effects{}
	}
	of := b.tree.nodes[b.tree.at].id
	if of.kind == feedNode && of.in != "" {
		of = id{kind: folderNode, name: of.in}
	}
	if of.kind != folderNode {
		return effects{}
	}
	b.tree.closed[of] = !b.tree.closed[of]
	b.tree.at = b.tree.find(of)
	b.arrangeTree()
	return b.choose(of)
}

// forward scrolls the text, and at its end opens the next unread entry.
func (b *browser) forward() effects {
	switch b.focus {
	case keys.FeedsPane:
		return b.open()
	case keys.ListPane:
		if ref, ok := b.current(); ok && ref.Unread() || b.list.outdated() {
			return b.read()
		}
		b.focus = keys.PagePane // so that nextUnread opens the entry
	default:
		if b.page.y+linesOf(b, keys.PagePane) < len(b.page.lines) {
			return b.move(b.fullPage())
		}
	}
	return b.nextUnread(1)
}

// nextUnread moves to the next unread entry (by 1) or the previous one (by -1): first in the
// list, which it wraps around, then in the next feed that has unread entries. If the focus is
// on an open entry, it opens the one found.
func (b *browser) nextUnread(by int) effects {
	l := &b.list
	switch {
	case l.outdated():
		return incomplete
	case !l.complete && len(l.items) == 0:
		l.seek = by // continue when the items come
		return effects{}
	}
	for i := 1; i <= len(l.items); i++ {
		at := cells.Wrap(l.at+i*by, len(l.items))
		if b.marks.Unread(l.items[at].Entry) {
			l.goTo(at)
			return b.arrive()
		}
	}
	if e := b.nextFeed(by); e.list {
		l.seek = by
		return e
	}
	if b.focus == keys.PagePane && !b.page.open() {
		b.focus = keys.ListPane
	}
	return effects{say: "there is no unread entry"}
}

// arrive opens the entry under the cursor if the focus is on the text, else it moves the focus
// to the list.
func (b *browser) arrive() effects {
	if b.focus == keys.PagePane {
		return b.read()
	}
	b.focus = keys.ListPane
	return effects{}
}

// nextFeed lists the next feed with unread entries (by 1), or the previous one (by -1). It
// returns no effects if no other feed has unread entries.
func (b *browser) nextFeed(by int) effects {
	if b.snapshot == nil {
		return effects{}
	}
	nodes := b.snapshot.nodes
	at := slices.IndexFunc(nodes, func(n node) bool { return n.id == b.list.of })
	for i := 1; i < len(nodes); i++ {
		n := nodes[cells.Wrap(at+i*by, len(nodes))]
		if n.kind == feedNode && b.hasUnread(n.name) {
			reveal(b, n.id)
			return b.choose(n.id)
		}
	}
	return effects{}
}

// hasUnread reports whether a feed will have unread entries after all pending changes. It
// returns true if the entries are not counted yet.
func (b *browser) hasUnread(hash string) bool {
	f := b.snapshot.feeds[hash]
	switch {
	case f == nil:
		return false
	case b.snapshot.uncounted:
		return true
	case b.snapshot.partial || !b.marks.Touches(hash):
		return f.Unread > 0
	}
	for e := range f.names.All() {
		if b.marks.Unread(e) && !b.marks.Now(e.Ref()).Trashed() {
			return true
		}
	}
	return false
}

// listHas reports whether the list may differ from that of an earlier snapshot, or may have entries of feeds
// that the user has changed: a change that failed, or was undone, shows its entries again.
func (b *browser) listHas(earlier *snapshot, touched map[string]bool) bool {
	s, of := b.snapshot, b.list.of
	if touched[""] || of.kind == savedNode && !slices.EqualFunc(s.saved, earlier.saved, Saved.equal) {
		return true
	}
	has := func(hash string) bool {
		was, is := earlier.feeds[hash], s.feeds[hash]
		return was != nil && of.holds(was) || is != nil && of.holds(is)
	}
	for hash := range touched {
		if has(hash) {
			return true
		}
	}
	for _, is := range s.names.Since(earlier.names) {
		if has(is.Hash) {
			return true
		}
	}
	return false
}

// nextEntry moves n entries down the list. If the focus is on an open entry, it opens the new
// one.
func (b *browser) nextEntry(n int) effects {
	at := b.list.at + n
	if at < 0 || at >= len(b.list.items) {
		return effects{say: "there are no more entries in this direction"}
	}
	b.list.goTo(at)
	return b.arrive()
}

// closePage closes the entry and moves the focus to the list, if the focus is on the entry.
func (b *browser) closePage() {
	if b.focus == keys.PagePane {
		b.focus, b.page = keys.ListPane, reading{}
	}
}

// hide removes entries that are being trashed from the list.
func (b *browser) hide() {
	b.list.items = overlay(b.marks, b.list.items)
	b.list.at = max(0, min(b.list.at, len(b.list.items)-1))
}

// search lists the entries of the node that match a query.
func (b *browser) search(query string) effects {
	query = strings.TrimSpace(query)
	if query == b.list.query {
		// The entries are listed already. The key after Enter must not find an empty list.
		return effects{}
	}
	b.list.query = query
	return effects{list: true}
}

// toggleAll switches between all entries and unread ones only.
func (b *browser) toggleAll() effects {
	l := &b.list
	l.all = !l.all
	l.sorted, l.readHere = nil, map[key]bool{}
	if l.all {
		return effects{list: true, say: "read and unread entries"}
	}
	return effects{list: true, say: "unread entries only"}
}

// reread marks the list and the text on the screen as stale, so that both are read again.
func (b *browser) reread() effects {
	b.list.sorted, b.list.readHere = nil, map[key]bool{}
	b.page.width = 0
	return effects{say: "reading everything again"}
}

// toggleFeedText switches between the feed's text and the article of the page. It reports
// whether the feed's text is shown now.
func (p *reading) toggleFeedText() (feedText bool) {
	p.feedText = !p.feedText
	p.width, p.y = 0, 0
	return p.feedText
}

// take shows the items of a list. The cursor stays on its entry, and the entry on its line of
// the screen.
func (b *browser) take(items []*item) {
	l := &b.list
	var on catalog.Entry
	stays := l.at >= 0 && l.at < len(l.items)
	if stays {
		on = l.items[l.at].Entry
	}
	stays = stays && !l.cursorToTop && (b.focus != keys.FeedsPane || l.at > 0)
	if l.cursorToTop {
		l.at, l.y, l.cursorToTop = 0, 0, false
	}
	l.items, l.found = overlay(b.marks, items), l.query
	l.at = max(0, min(l.at, len(l.items)-1))
	if !stays {
		return
	}
	if i := find(l.items, l.at, on); i >= 0 {
		// At the top new entries should become visible, so the entry may move down the screen.
		if l.y > 0 || i >= linesOf(b, keys.ListPane) {
			l.y += i - l.at
		}
		l.at = i
	}
}

// takeProvisional shows items that may not be in the order of the list yet.
func (b *browser) takeProvisional(items []*item) {
	top := b.list.cursorToTop && b.list.order != byDate
	b.take(items)
	b.list.cursorToTop = top
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

// listed shows a complete list or its error, and moves to an unread entry if seek is set.
func (b *browser) listed(list *sortedList, err error) effects {
	l := &b.list
	l.err, l.complete = err, true
	by := l.seek
	l.seek = 0
	if err != nil {
		b.take(nil)
		return effects{}
	}
	b.take(list.items)
	if list.text() == "" {
		l.sorted = list
	}
	if by == 0 {
		return effects{}
	}
	l.at = -1
	if by < 0 {
		l.at = len(l.items)
	}
	return b.nextUnread(by)
}

// takePage shows the text of the open entry, and returns the action that waited for it.
func (b *browser) takePage(page *Page, lines []string, err error) keys.Call {
	p := &b.page
	if p.err = err; err == nil {
		// Text that is wrapped again stays at the same relative position.
		if old := len(p.lines); old > 0 {
			p.y = p.y * len(lines) / old
		}
		p.page, p.lines = page, lines
		p.find.find(lines)
		b.scroll(0)
	}
	pending := p.pending
	p.pending = keys.Call{}
	return pending
}

// wheel moves the focus to the pane under the mouse, and its cursor by n lines. Text is
// scrolled without the focus.
func (b *browser) wheel(p paneAt, n int) effects {
	if p.kind == keys.PagePane {
		return b.scroll(n)
	}
	b.focus = p.kind
	return b.move(n)
}

// click moves the cursor to a row of a pane. A click on the line of the cursor opens it.
func (b *browser) click(p paneAt, row int) effects {
	focused := b.focus == p.kind
	b.focus = p.kind
	switch p.kind {
	case keys.FeedsPane:
		if line := b.tree.y + row; line != b.tree.at || !focused {
			return b.toNode(line)
		}
		return b.open()
	case keys.ListPane:
		line := b.list.y + row
		switch {
		case line >= len(b.list.items):
		case line == b.list.at && focused:
			return b.open()
		default:
			b.list.goTo(line)
		}
	}
	return effects{}
}
