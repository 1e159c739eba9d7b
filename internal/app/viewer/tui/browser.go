package tui

import (
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// browser moves between the three panes. It does not use the disk.
type browser struct {
	*part.Env
	layout
	tree  tree
	list  list
	page  page.Page
	marks *work.Queue // pending changes; entries are shown as they will be after these
	// advance moves the cursor to the next entry after marking one.
	advance bool
}

// choose moves the cursor to a node and lists its entries.
func (b *browser) choose(of id) part.Effects {
	b.tree.choose(of)
	return b.list.choose(of)
}

// chosen returns the entry that a key works on: the open entry, or the one under the cursor of
// the list, depending on the focus.
func (b *browser) chosen() (lektordir.Ref, bool) {
	switch b.focus {
	case keys.PagePane:
		return b.marks.Now(b.page.Ref), b.page.Open()
	case keys.ListPane:
		return b.list.current()
	}
	return lektordir.Ref{}, false
}

// chosenNode returns the node under the cursor of the tree, or in the other panes the listed one.
func (b *browser) chosenNode() id {
	if b.focus == keys.FeedsPane {
		return b.tree.current()
	}
	return b.list.spec.of
}

// chosenFeed returns the hash of the feed that a key works on, "" if there is none: the feed under the
// cursor, or the one of the chosen entry or list.
func (b *browser) chosenFeed() string {
	if ref, ok := b.chosen(); ok {
		return ref.Feed
	}
	if of := b.chosenNode(); of.kind == feedNode {
		return of.name
	}
	return ""
}

// chosenFolder returns the folder that a key works on: the one under the cursor, or one with the
// feed under the cursor. ok is false if there is none.
func (b *browser) chosenFolder() (folder id, ok bool) {
	of := b.chosenNode()
	switch {
	case of.kind == folderNode:
		return of, true
	case of.kind == feedNode && of.in != "":
		return id{kind: folderNode, name: of.in}, true
	case b.tree.snapshot == nil:
		return id{}, false
	}
	if f := b.tree.snapshot.feeds[b.chosenFeed()]; f != nil && len(f.Folders) > 0 {
		path := entrystore.FolderPath(f.Folders[0])
		return id{kind: folderNode, name: path[len(path)-1].Key}, true
	}
	return id{}, false
}

// fetchFolder fetches the feeds of the chosen folder.
func (b *browser) fetchFolder(part.Given) part.Effects {
	folder, ok := b.chosenFolder()
	if !ok {
		return b.Say("choose a folder first")
	}
	feeds := b.tree.unpaused(folder)
	if feeds == nil {
		return b.Say("all feeds of the folder are paused")
	}
	return part.Effects{part.Fetch{Feeds: feeds}}
}

// move moves the cursor by n lines, or scrolls the text if the focus is on it.
func (b *browser) move(n int) part.Effects {
	switch b.focus {
	case keys.FeedsPane:
		return b.toNode(b.tree.at + n)
	case keys.ListPane:
		b.list.goTo(b.list.at + n)
	default:
		b.page.Scroll(n)
	}
	return nil
}

// to moves to line n, from 0.
func (b *browser) to(n int) part.Effects {
	switch b.focus {
	case keys.FeedsPane:
		return b.toNode(n)
	case keys.ListPane:
		b.list.goTo(n)
	default:
		b.page.Y = 0
		b.page.Scroll(n)
	}
	return nil
}

// toNode moves the cursor of the tree to a line, and lists the entries of its node.
func (b *browser) toNode(at int) part.Effects {
	at = max(0, min(at, len(b.tree.nodes)-1))
	if at == b.tree.at || b.tree.snapshot == nil {
		return nil
	}
	return b.choose(b.tree.nodes[at].id)
}

// open opens the line of the cursor: a node's list, or an entry. If the focus is on the text, it
// scrolls down a page.
func (b *browser) open(part.Given) part.Effects {
	switch b.focus {
	case keys.FeedsPane:
		if b.tree.snapshot == nil {
			return nil
		}
		b.focus = keys.ListPane
		if of := b.tree.nodes[b.tree.at].id; of != b.list.spec.of {
			return b.choose(of)
		}
		return nil
	case keys.ListPane:
		return b.read()
	}
	return b.move(b.fullPage())
}

// read opens the entry under the cursor of the list, and marks it as read.
func (b *browser) read() part.Effects {
	ref, ok := b.list.current()
	switch {
	case b.list.outdated():
		return b.list.incomplete()
	case !ok:
		return nil
	}
	b.focus = keys.PagePane
	b.list.goTo(b.list.at)
	b.show()
	if read := b.list.mark(b.page.Ref, "S", ""); ref.Unread() {
		return read
	}
	return nil
}

// show opens the entry under the cursor of the list.
func (b *browser) show() { b.page.Show(b.list.items[b.list.at].Ref()) }

// follow opens the entry under the cursor if another entry is shown beside the list.
// The new entry is not marked as read.
func (b *browser) follow() {
	b.page.Scroll(0) // the pane may have changed its height
	ref, ok := b.list.current()
	if ok && b.focus == keys.ListPane && b.page.Open() && b.page.Key != keyOf(ref) && b.textWidth() > 0 {
		b.show()
	}
}

// searching reports whether a search in the open entry is on, and the focus is on the entry.
func (b *browser) searching() bool { return b.focus == keys.PagePane && b.page.Searching() }

// back ends a search in the entry, else leaves the entry, else the search, else the list.
func (b *browser) back(part.Given) part.Effects {
	switch {
	case b.searching():
		b.page.EndSearch()
	case b.focus == keys.PagePane:
		b.focus = keys.ListPane
	case b.list.spec.query != "":
		b.list.spec.query = ""
		return part.Effects{part.List{}}
	case b.focus == keys.ListPane:
		b.focus = keys.FeedsPane
	}
	return nil
}

// nextPane moves the focus n panes to the right.
func (b *browser) nextPane(n int) part.Effects {
	panes := []keys.Pane{keys.FeedsPane, keys.ListPane}
	if b.page.Open() {
		panes = append(panes, keys.PagePane)
	}
	at := slices.Index(panes, b.focus)
	b.focus = panes[cells.Wrap(at+n, len(panes))]
	return nil
}

// toggleZoom shows the pane with the focus alone, or all panes.
func (b *browser) toggleZoom(part.Given) part.Effects {
	b.zoom = !b.zoom
	return nil
}

// bottom moves to the last line, or with a count to the line of that number.
func (b *browser) bottom(g part.Given) part.Effects {
	if g.Count > 0 {
		return b.to(g.Count - 1)
	}
	return b.to(1 << 30)
}

// fold closes or opens the folder of the cursor, or the folder of the feed under it.
func (b *browser) fold(part.Given) part.Effects {
	if b.tree.snapshot == nil || b.focus != keys.FeedsPane {
		return nil
	}
	of, ok := b.tree.fold()
	if !ok {
		return nil
	}
	return b.choose(of)
}

// forward scrolls the text, and at its end opens the next unread entry.
func (b *browser) forward(g part.Given) part.Effects {
	switch b.focus {
	case keys.FeedsPane:
		return b.open(g)
	case keys.ListPane:
		if ref, ok := b.list.current(); ok && ref.Unread() || b.list.outdated() {
			return b.read()
		}
		b.focus = keys.PagePane // so that nextUnread opens the entry
	default:
		if !b.page.AtEnd() {
			return b.move(b.fullPage())
		}
	}
	return b.nextUnread(1)
}

// nextUnread moves to the next unread entry (by 1) or the previous one (by -1): first in the
// list, which it wraps around, then in the next feed that has unread entries. If the focus is
// on an open entry, it opens the one found.
func (b *browser) nextUnread(by int) part.Effects {
	l := &b.list
	switch {
	case l.outdated():
		return l.incomplete()
	case !l.complete && len(l.items) == 0:
		l.seek = by // continue when the items come
		return nil
	}
	if at, ok := l.next(by); ok {
		l.goTo(at)
		return b.arrive()
	}
	if of, ok := b.tree.nextFeed(by); ok {
		e := b.choose(of)
		l.seek = by
		return e
	}
	if b.focus == keys.PagePane && !b.page.Open() {
		b.focus = keys.ListPane
	}
	return b.Say("there is no unread entry")
}

// arrive opens the entry under the cursor if the focus is on the text, else it moves the focus
// to the list.
func (b *browser) arrive() part.Effects {
	if b.focus == keys.PagePane {
		return b.read()
	}
	b.focus = keys.ListPane
	return nil
}

// nextMatch moves to the next match (by 1) or the previous one (by -1) if a search in the entry is on, and to an
// unread entry otherwise.
func (b *browser) nextMatch(by int) part.Effects {
	if _, ok := b.page.Match(); b.searching() && ok {
		return b.page.NextMatch(by)
	}
	return b.nextUnread(by)
}

// random moves to an unread entry of the list, or of the next feed if the list has no other.
func (b *browser) random(part.Given) part.Effects {
	if b.list.chance() {
		return b.arrive()
	}
	return b.nextUnread(1)
}

// nextFeed lists the next feed with unread entries (by 1), or the previous one (by -1).
func (b *browser) nextFeed(by int) part.Effects {
	if of, ok := b.tree.nextFeed(by); ok {
		return b.choose(of)
	}
	return nil
}

// nextEntry moves n entries down the list. If the focus is on an open entry, it opens the new
// one.
func (b *browser) nextEntry(n int) part.Effects {
	at := b.list.at + n
	if at < 0 || at >= len(b.list.items) {
		return b.Say("there are no more entries in this direction")
	}
	b.list.goTo(at)
	return b.arrive()
}

// mark sets and clears flags of the chosen entry.
func (b *browser) mark(g part.Given, set, unset string) part.Effects {
	e := b.list.mark(g.Ref, set, unset)
	if b.focus == keys.ListPane && b.advance {
		b.list.goTo(b.list.at + 1)
	}
	return e
}

// toggle clears a flag of the chosen entry if it has it, and sets it otherwise.
func (b *browser) toggle(g part.Given, flag byte) part.Effects {
	if g.Ref.HasFlag(flag) && (flag != 'S' || !g.Ref.Unread()) {
		return b.mark(g, "", string(flag))
	}
	return b.mark(g, string(flag), "")
}

// setFlags sets and clears the flags in the word of the action, or asks for them.
func (b *browser) setFlags(g part.Given) part.Effects {
	if len(g.Words) == 0 {
		return b.askFor(g, "flags, as +Fa-S: ")
	}
	set, unset, err := parseFlags(g.Words[0])
	if err != nil {
		return b.Fail(err)
	}
	return b.mark(g, set, unset)
}

// askFor asks for the word of an action.
func (b *browser) askFor(g part.Given, label string) part.Effects {
	return part.Effects{part.Ask{Label: label, Then: func(text string) part.Effects {
		return part.Effects{part.Do{Call: keys.Call{Action: g.Action, Words: []string{text}}}}
	}}}
}

// trash marks the chosen entry as trashed, and closes it.
func (b *browser) trash(g part.Given) part.Effects {
	if b.focus == keys.PagePane {
		b.focus = keys.ListPane
		b.page.Close()
	}
	return part.Effects{part.Change{Refs: []lektordir.Ref{g.Ref}, Set: "T", Then: func([]lektordir.Ref) part.Effects {
		return b.Say("trashed; %s undoes it", b.KeyOf("undo"))
	}}}
}

// search asks for a query, and lists the entries that it selects while the user types. If an
// entry has the focus, it asks for a text and searches the entry.
func (b *browser) search(g part.Given) part.Effects {
	switch {
	case len(g.Words) > 0:
		return b.list.search(g.Words[0])
	case b.focus == keys.PagePane && b.page.Entry != nil:
		return part.Effects{part.Ask{Label: "/", Then: b.page.Search}}
	}
	query, focus := b.list.spec.query, b.focus
	b.focus = keys.ListPane
	return part.Effects{part.Ask{Label: "/", Text: query, Then: b.list.search,
		Typing: func(text string) part.Effects {
			b.list.cursorToTop = true
			return b.list.search(text)
		},
		Cancel: func() part.Effects {
			b.focus = focus
			return b.list.search(query)
		}}}
}

// listNode shows the entries of a node.
func (b *browser) listNode(of id) part.Effects {
	e := b.choose(of)
	b.focus = keys.ListPane
	return e
}

// sortBy sorts the list, or the feeds of a folder, in the order that the word of the action names. Without
// a word it shows a menu of orders. With the word "-", the orders of the menu are reversed.
func (b *browser) sortBy(g part.Given) part.Effects {
	word := strings.Join(g.Words, "")
	if o, ok := parseOrder(word, entryOrders); ok {
		return b.list.sort(o)
	} else if o, ok := parseOrder(word, feedOrders); ok {
		return b.tree.sort(o)
	} else if word != "" && word != "-" {
		return b.Say("there is no order %s; lists have %s, and the feeds %s", word, strings.Join(entryOrders, ", "),
			strings.Join(feedOrders, ", "))
	} else if b.focus == keys.FeedsPane {
		return b.tree.sortMenu(word == "-")
	}
	return b.list.sortMenu(word == "-")
}

// wheel moves the focus to the pane under the mouse, and its cursor by n lines. Text is
// scrolled without the focus.
func (b *browser) wheel(p paneAt, n int) part.Effects {
	if p.kind == keys.PagePane {
		b.page.Scroll(n)
		return nil
	}
	b.focus = p.kind
	return b.move(n)
}

// click moves the cursor to a row of a pane. A click on the line of the cursor opens it.
func (b *browser) click(p paneAt, row int) part.Effects {
	focused := b.focus == p.kind
	b.focus = p.kind
	switch p.kind {
	case keys.FeedsPane:
		if line := b.tree.y + row; line != b.tree.at || !focused {
			return b.toNode(line)
		}
		return b.open(part.Given{})
	case keys.ListPane:
		line := b.list.y + row
		switch {
		case line >= len(b.list.items):
		case line == b.list.at && focused:
			return b.open(part.Given{})
		default:
			b.list.goTo(line)
		}
	}
	return nil
}

// shown chooses the first node when the first snapshot is shown, and lists the entries again if they may have changed.
func (b *browser) shown(e shown) part.Effects {
	b.page.Rename(b.tree.ref(b.page.Ref))
	switch {
	case e.first:
		return b.choose(id{kind: allNode})
	case e.changed:
		return part.Effects{part.List{Again: true}}
	case b.list.job.Idle(): // else a change may be in the list that is being made
		b.marks.Listed(e.scan)
	}
	return nil
}

// provisional shows the entries of an overview. Entries among which the user has moved the cursor stay.
func (b *browser) provisional(o *Overview) {
	if b.focus != keys.FeedsPane || b.list.spec.of.kind != allNode || b.list.spec.query != "" {
		return
	}
	b.list.job.Abandon()
	b.list.takeProvisional(o.items())
	for i := range o.Newest {
		b.list.rows[keyOf(o.Newest[i].Ref)] = &o.Newest[i].Row
	}
}
