package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/scene"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/lektordir"
)

// browser moves between the three panes. It does not use the disk.
type browser struct {
	*part.Env
	scene.Layout
	tree  tree.Tree
	list  list.List
	page  page.Page
	marks *work.Queue // pending changes; entries are shown as they will be after these
	// advance moves the cursor to the next entry after marking one.
	advance bool
}

// choose moves the cursor to a node and lists its entries.
func (b *browser) choose(of tree.ID) part.Effects {
	b.tree.Choose(of)
	return b.list.Choose(of)
}

// chosen returns the entry that a key works on: the open entry, or the one under the cursor of
// the list, depending on the focus.
func (b *browser) chosen() (lektordir.Ref, bool) {
	switch {
	case b.Focus == keys.PagePane && b.page.Open():
		return b.marks.Now(b.page.Ref), true
	case b.Focus == keys.ListPane:
		return b.list.Current()
	}
	return lektordir.Ref{}, false
}

// chosenNode returns the node under the cursor of the tree, or in the other panes the listed one.
func (b *browser) chosenNode() tree.ID {
	if b.Focus == keys.FeedsPane {
		return b.tree.Current()
	}
	return b.list.Spec.Of
}

// chosenFeed returns the hash of the feed that a key works on, "" if there is none: the feed under the
// cursor, or the one of the chosen entry or list.
func (b *browser) chosenFeed() string {
	if ref, ok := b.chosen(); ok {
		return ref.Feed
	}
	of := b.chosenNode()
	if of.Kind != tree.FeedNode {
		return ""
	}
	return of.Name
}

// fetchFolder fetches the feeds of the folder under the cursor, or of one with the feed under the cursor.
func (m *model) fetchFolder(part.Given) part.Effects {
	b := &m.browser
	of := b.chosenNode()
	if of.Kind != tree.FolderNode {
		if f := cmp.Or(b.tree.Snapshot, &tree.Snapshot{}).Feeds[b.chosenFeed()]; f != nil && of.In == "" {
			of.In = f.In[0]
		}
		of = tree.ID{Kind: tree.FolderNode, Name: of.In}
	}
	if of.Name == "" {
		return m.Say("choose a folder first")
	}
	var feeds []string
	for hash, f := range b.tree.Snapshot.Feeds {
		if of.Holds(f) && !f.Paused {
			feeds = append(feeds, hash)
		}
	}
	if feeds == nil {
		return m.Say("all feeds of the folder are paused")
	}
	return m.fetch(feeds)
}

// fetchFeed fetches the chosen feed.
func (m *model) fetchFeed(g part.Given) part.Effects { return m.fetch([]string{g.Feed}) }

// fetch fetches those feeds that have a subscription.
func (m *model) fetch(hashes []string) part.Effects {
	hashes = slices.DeleteFunc(hashes, func(hash string) bool {
		f := m.browser.tree.Snapshot.Feeds[hash]
		return f == nil || !f.Subscribed
	})
	if len(hashes) == 0 {
		return m.Say("you are subscribed to none of these feeds")
	}
	return m.work.Fetching.Begin(false, strings.Join(hashes, "\n")+"\n", "-")
}

// move moves the cursor by n lines, or scrolls the text if the focus is on it.
func (b *browser) move(n int) part.Effects {
	return b.to([...]int{b.tree.At, b.list.At, b.page.Y}[b.Focus] + n)
}

// halfPages moves by n halves of a page.
func (b *browser) halfPages(n int) part.Effects { return b.move(n * max(1, b.LinesOf(b.Focus)/2)) }

// pages moves by n pages.
func (b *browser) pages(n int) part.Effects { return b.move(n * max(1, b.LinesOf(b.Focus)-1)) }

// scroll scrolls the text by n lines.
func (b *browser) scroll(n int) part.Effects {
	b.page.Scroll(n)
	return nil
}

// toLine moves to line n, from 1.
func (b *browser) toLine(n int) part.Effects { return b.to(n - 1) }

// to moves to line n, from 0.
func (b *browser) to(n int) part.Effects {
	switch b.Focus {
	case keys.FeedsPane:
		if n = max(0, min(n, len(b.tree.Nodes)-1)); n != b.tree.At && b.tree.Snapshot != nil {
			return b.choose(b.tree.Nodes[n].ID)
		}
	case keys.ListPane:
		b.list.GoTo(n)
	default:
		b.page.Y = 0
		b.page.Scroll(n)
	}
	return nil
}

// open opens the line of the cursor: a node's list, or an entry. If the focus is on the text, it
// scrolls down a page.
func (b *browser) open(part.Given) part.Effects {
	switch b.Focus {
	case keys.FeedsPane:
		if b.tree.Snapshot == nil {
			return nil
		}
		if b.Focus = keys.ListPane; b.tree.Current() != b.list.Spec.Of {
			return b.choose(b.tree.Current())
		}
		return nil
	case keys.ListPane:
		return b.read()
	}
	return b.pages(1)
}

// read opens the entry under the cursor of the list, and marks it as read.
func (b *browser) read() part.Effects {
	ref, ok := b.list.Current()
	switch {
	case b.list.Outdated():
		return b.list.Incomplete()
	case !ok:
		return nil
	}
	b.Focus = keys.PagePane
	b.list.GoTo(b.list.At)
	b.show()
	if read := b.list.Mark(b.page.Ref, "S", ""); ref.Unread() {
		return read
	}
	return nil
}

// show opens the entry under the cursor of the list.
func (b *browser) show() { b.page.Show(b.list.Items[b.list.At].Ref()) }

// follow opens the entry under the cursor if another entry is shown beside the list.
// The new entry is not marked as read.
func (b *browser) follow() {
	b.page.Scroll(0) // the pane may have changed its height
	ref, ok := b.list.Current()
	if ok && b.Focus == keys.ListPane && b.page.Open() && b.page.Key != part.KeyOf(ref) && b.TextWidth() > 0 {
		b.show()
	}
}

// searching reports whether a search in the open entry is on, and the focus is on the entry.
func (b *browser) searching() bool { return b.Focus == keys.PagePane && b.page.Searching() }

// back ends a search in the entry, else leaves the entry, else the search, else the list.
func (b *browser) back(part.Given) part.Effects {
	switch {
	case b.searching():
		b.page.EndSearch()
	case b.Focus == keys.PagePane:
		b.Focus = keys.ListPane
	case b.list.Spec.Query != "":
		b.list.Spec.Query = ""
		return part.Effects{part.List{}}
	case b.Focus == keys.ListPane:
		b.Focus = keys.FeedsPane
	}
	return nil
}

// nextPane moves the focus n panes to the right.
func (b *browser) nextPane(n int) part.Effects {
	panes := 2
	if b.page.Open() {
		panes = 3
	}
	b.Focus = keys.Pane(cells.Wrap(int(b.Focus)+n, panes))
	return nil
}

// toggleZoom shows the pane with the focus alone, or all panes.
func (b *browser) toggleZoom(part.Given) part.Effects {
	b.Zoom = !b.Zoom
	return nil
}

// bottom moves to the last line, or with a count to the line of that number.
func (b *browser) bottom(g part.Given) part.Effects { return b.toLine(cmp.Or(g.Count, 1<<30)) }

// fold closes or opens the folder of the cursor, or the folder of the feed under it.
func (b *browser) fold(part.Given) part.Effects {
	if b.tree.Snapshot != nil && b.Focus == keys.FeedsPane {
		if of, ok := b.tree.Fold(); ok {
			return b.choose(of)
		}
	}
	return nil
}

// forward scrolls the text, and at its end opens the next unread entry.
func (b *browser) forward(g part.Given) part.Effects {
	switch b.Focus {
	case keys.FeedsPane:
		return b.open(g)
	case keys.ListPane:
		if ref, ok := b.list.Current(); ok && ref.Unread() || b.list.Outdated() {
			return b.read()
		}
		b.Focus = keys.PagePane // so that nextUnread opens the entry
	default:
		if !b.page.AtEnd() {
			return b.pages(1)
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
	case l.Outdated():
		return l.Incomplete()
	case !l.Complete && len(l.Items) == 0:
		l.Seek = by // continue when the items come
		return nil
	}
	if at, ok := l.Next(by); ok {
		l.GoTo(at)
		return b.arrive()
	}
	if of, ok := b.tree.NextFeed(by); ok {
		e := b.choose(of)
		l.Seek = by
		return e
	}
	if b.Focus == keys.PagePane && !b.page.Open() {
		b.Focus = keys.ListPane
	}
	l.GoTo(l.At) // it may be beyond the ends
	return b.Say("there is no unread entry")
}

// arrive opens the entry under the cursor if the focus is on the text, else it moves the focus
// to the list.
func (b *browser) arrive() part.Effects {
	if b.Focus == keys.PagePane {
		return b.read()
	}
	b.Focus = keys.ListPane
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
	if b.list.Chance() {
		return b.arrive()
	}
	return b.nextUnread(1)
}

// nextFeed lists the next feed with unread entries (by 1), or the previous one (by -1).
func (b *browser) nextFeed(by int) part.Effects {
	if of, ok := b.tree.NextFeed(by); ok {
		return b.choose(of)
	}
	return nil
}

// nextEntry moves n entries down the list. If the focus is on an open entry, it opens the new
// one.
func (b *browser) nextEntry(n int) part.Effects {
	at := b.list.At + n
	if at < 0 || at >= len(b.list.Items) {
		return b.Say("there are no more entries in this direction")
	}
	b.list.GoTo(at)
	return b.arrive()
}

// mark sets and clears flags of the chosen entry.
func (b *browser) mark(g part.Given, set, unset string) part.Effects {
	e := b.list.Mark(g.Ref, set, unset)
	if b.Focus == keys.ListPane && b.advance {
		b.list.GoTo(b.list.At + 1)
	}
	return e
}

// marking returns the action that sets and clears flags of the chosen entry.
func (b *browser) marking(set, unset string) does {
	return func(g part.Given) part.Effects { return b.mark(g, set, unset) }
}

// toggling returns the action that clears a flag of the chosen entry if it has it, and sets it otherwise.
func (b *browser) toggling(flag byte) does {
	return func(g part.Given) part.Effects {
		if g.Ref.HasFlag(flag) && (flag != 'S' || !g.Ref.Unread()) {
			return b.mark(g, "", string(flag))
		}
		return b.mark(g, string(flag), "")
	}
}

// setFlags sets and clears the flags in the word of the action, or asks for them.
func (b *browser) setFlags(g part.Given) part.Effects {
	if len(g.Words) == 0 {
		return g.Ask(part.Ask{Label: "flags, as +Fa-S: "})
	}
	set, unset, err := parseFlags(g.Words[0])
	if err != nil {
		return b.Fail(err)
	}
	return b.mark(g, set, unset)
}

// trash marks the chosen entry as trashed, and closes it.
func (b *browser) trash(g part.Given) part.Effects {
	if b.Focus == keys.PagePane {
		b.Focus = keys.ListPane
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
		return b.list.Search(g.Words[0])
	case b.Focus == keys.PagePane && b.page.Entry != nil:
		return part.Effects{part.Ask{Label: "/", Then: b.page.Search}}
	}
	query, focus := b.list.Spec.Query, b.Focus
	b.Focus = keys.ListPane
	return part.Effects{part.Ask{Label: "/", Text: query, Then: b.list.Search,
		Typing: func(text string) part.Effects {
			b.list.CursorToTop = true
			return b.list.Search(text)
		},
		Cancel: func() part.Effects {
			b.Focus = focus
			return b.list.Search(query)
		}}}
}

// listNode shows the entries of a node.
func (b *browser) listNode(of tree.ID) part.Effects {
	b.Focus = keys.ListPane
	return b.choose(of)
}

// sortBy sorts the list, or the feeds of a folder, in the order that the word of the action names. Without
// a word it shows a menu of orders. With the word "-", the orders of the menu are reversed.
func (b *browser) sortBy(g part.Given) part.Effects {
	word := strings.Join(g.Words, "")
	if o, ok := tree.ParseOrder(word, tree.EntryOrders); ok {
		return b.list.Sort(o)
	} else if o, ok := tree.ParseOrder(word, tree.FeedOrders); ok {
		return b.tree.Sort(o)
	} else if word != "" && word != "-" {
		return b.Say("there is no order %s; lists have %s, and the feeds %s", word,
			strings.Join(tree.EntryOrders, ", "),
			strings.Join(tree.FeedOrders, ", "))
	} else if b.Focus == keys.FeedsPane {
		return b.tree.SortMenu(word == "-")
	}
	return b.list.SortMenu(word == "-")
}

// click moves the cursor to a row of a pane. A click on the line of the cursor opens it.
func (b *browser) click(p scene.PaneAt, row int) part.Effects {
	focused := b.Focus == p.Kind
	b.Focus = p.Kind
	line, at := b.tree.Y+row, b.tree.At
	if p.Kind == keys.ListPane {
		line, at = b.list.Y+row, b.list.At
	}
	switch {
	case p.Kind == keys.PagePane, p.Kind == keys.ListPane && line >= len(b.list.Items):
		return nil
	case focused && line == at:
		return b.open(part.Given{})
	}
	return b.to(line)
}

// shown chooses the first node when the first snapshot is shown, and lists the entries again after others.
func (b *browser) shown(e tree.Shown) part.Effects {
	b.page.Ref = b.tree.Ref(b.page.Ref)
	if e.First {
		return b.choose(tree.ID{Kind: tree.AllNode})
	}
	return part.Effects{part.List{Again: true}}
}
