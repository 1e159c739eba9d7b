// Package tree is the pane of folders and feeds, and the scans of the lektor-dir that it shows.
package tree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Disk is what the tree needs of the lektor-dir. Its methods may take long.
type Disk interface {
	// Now returns the feeds and their entries, see [catalog.Catalog.Part].
	Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error)
	// Await returns after something has changed, or may have, or when ctx ends.
	Await(ctx context.Context)
	// Counts returns the numbers of entries by the hash of the feed, without listing the lektor-dir, or nil if that
	// would take long.
	Counts(ctx context.Context) (map[string]entrystore.Tally, error)
	// Saved returns the saved queries.
	Saved(ctx context.Context) ([]entrystore.Saved, error)
}

// Tree is the first pane: folders and feeds.
type Tree struct {
	*part.Env
	Disk     Disk
	Marks    *work.Queue // changes that are not made; entries count as they will be after these
	Settings Settings
	Snapshot *Snapshot     // nil until it is read
	Closed   map[ID]bool   // closed folders
	Nodes    []Node        // nodes that no closed folder hides
	of       ID            // the node whose entries are listed
	At, Y    int           // the cursor, and the first line of the pane
	Retry    time.Duration // before a scan that failed is repeated
	Scans    part.Job[ScanRequest]
	failed   bool           // the last scan failed
	Await    func() tea.Msg // awaitChanges
}

// show shows a snapshot.
func (t *Tree) show(s *Snapshot) {
	s.arrange(&t.Settings)
	t.Snapshot = s
	t.arrange()
}

// arrange sets the nodes from the snapshot. The cursor stays on the node of the list.
func (t *Tree) arrange() {
	hides := t.Settings.hidden(t.Snapshot, t.of)
	t.Nodes = t.Nodes[:0]
	hidden := -1 // nodes deeper than this are hidden; -1 hides none
	for _, n := range t.Snapshot.Nodes {
		if hidden >= 0 && n.Depth > hidden {
			continue
		}
		hidden = -1
		hide := hides(n)
		n.Title, n.Closed = n.label(t.Printer), t.Closed[n.ID]
		if hide || n.Closed {
			hidden = n.Depth
		}
		if !hide {
			t.Nodes = append(t.Nodes, n)
		}
	}
	if at := t.find(t.of); at >= 0 {
		t.At = at
	}
	t.At = min(t.At, len(t.Nodes)-1)
}

func (t *Tree) find(of ID) int {
	return slices.IndexFunc(t.Nodes, func(n Node) bool { return n.ID == of })
}

// Choose moves the cursor to a node.
func (t *Tree) Choose(of ID) {
	t.of = of
	t.arrange()
}

// Current returns the node of the cursor, or the listed one if there are no lines.
func (t *Tree) Current() ID {
	if t.At < len(t.Nodes) {
		return t.Nodes[t.At].ID
	}
	return t.of
}

// Ref returns the name of an entry now, as another program may have changed its flags.
func (t *Tree) Ref(r lektordir.Ref) lektordir.Ref {
	if f := t.Snapshot.Feeds[r.Feed]; f != nil {
		if e, ok := f.names.Find(r.Unique); ok {
			return e.Ref()
		}
	}
	return r
}

// Fold closes or opens the folder of the cursor, or the folder of the feed under it. It returns the folder; ok is
// false if there is none.
func (t *Tree) Fold() (of ID, ok bool) {
	if of = container(t.Current()); of.Kind != FolderNode {
		return of, false
	}
	t.Closed[of] = !t.Closed[of]
	return of, true
}

// reveal opens a folder, or the folders that hide a feed.
func (t *Tree) reveal(of ID) {
	for ; of.Kind != AllNode; of = parent(of) {
		delete(t.Closed, of)
	}
	t.arrange()
}

// NextFeed returns the next feed with unread entries (by 1), or the previous one (by -1), and reveals it. ok is false
// if no other feed has unread entries.
func (t *Tree) NextFeed(by int) (of ID, ok bool) {
	if t.Snapshot == nil {
		return of, false
	}
	nodes, marked := t.Snapshot.Nodes, t.Marks.Feeds()
	at := slices.IndexFunc(nodes, func(n Node) bool { return n.ID == t.of })
	for i := 1; i < len(nodes); i++ {
		n := nodes[cells.Wrap(at+i*by, len(nodes))]
		if n.Kind == FeedNode && t.hasUnread(n.Name, marked) {
			t.reveal(n.ID)
			return n.ID, true
		}
	}
	return of, false
}

// hasUnread reports whether a feed will have unread entries after all pending changes; marked holds the feeds of
// these. It returns true if the entries are not counted yet.
func (t *Tree) hasUnread(hash string, marked map[string]bool) bool {
	f := t.Snapshot.Feeds[hash]
	switch {
	case f == nil:
		return false
	case t.Snapshot.Uncounted:
		return true
	case t.Snapshot.Partial || !marked[hash]:
		return f.Unread > 0
	}
	for e := range f.names.All() {
		if t.Marks.Unread(e) && !t.Marks.Now(e.Ref()).Trashed() {
			return true
		}
	}
	return false
}

// Unread returns the unread entries of the listed node.
func (t *Tree) Unread() (refs []lektordir.Ref) {
	for _, e := range t.Snapshot.Entries(t.of, nil) {
		if t.Marks.Unread(e) {
			if ref := t.Marks.Now(e.Ref()); !ref.Trashed() {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// Name returns the name of a node in the user's language, "" if there is no such node.
func (t *Tree) Name(of ID) string {
	if t.Snapshot != nil {
		if at := slices.IndexFunc(t.Snapshot.Nodes, func(n Node) bool { return n.ID == of }); at >= 0 {
			return t.Snapshot.Nodes[at].label(t.Printer)
		}
	}
	return ""
}

// Menu returns a menu of the nodes of a kind, from which open calls list.
func (t *Tree) Menu(title string, kind Kind, list func(of ID) part.Effects) part.Effects {
	var found []Node
	if s := t.Snapshot; s != nil {
		found = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.Kind != kind })
	}
	if len(found) == 0 {
		return t.Say("%s: there are none", t.Tr(title))
	}
	var lines []string
	for _, node := range found {
		lines = append(lines, strings.Repeat("  ", node.Depth)+cells.Plain(node.label(t.Printer)))
	}
	hint := t.Trf("%s lists the entries, other keys close the menu", t.KeyOf("open"))
	return part.Effects{part.Menu{Lines: part.Choice(title, hint, lines, func(at int) part.Effects {
		t.reveal(found[at].ID)
		return list(found[at].ID)
	})}}
}

// Remember sets a setting of a node, and remembers it.
func (t *Tree) Remember(setting string, of ID, value string) {
	t.Marks.Remember(nodeSetting(setting, of), value)
}

// Sort sorts the feeds of the folder of the cursor, and of the folders in it.
func (t *Tree) Sort(o Order) part.Effects {
	t.Remember("feeds", container(t.of), o.String())
	t.show(t.Snapshot)
	return part.Effects{part.Say{Text: SortedBy(t.Printer, o)}}
}

// SortMenu shows a menu of the orders of feeds.
func (t *Tree) SortMenu(reversed bool) part.Effects {
	now, _ := ParseOrder(cmp.Or(t.Settings.of("feeds", container(t.of)), "name"), FeedOrders)
	return OrderMenu(t.Printer, t.Tr("sort the feeds by"), FeedOrders, now, reversed, t.Sort)
}

// HideRead hides the feeds and folders in a folder that have nothing unread, or shows them.
func (t *Tree) HideRead(part.Given) part.Effects {
	in := container(t.of)
	name := t.Tr("all feeds")
	if in.Kind == FolderNode {
		name = t.Name(in)
	}
	value, said := "yes", t.Say("%s: what has nothing unread is hidden", name)
	if t.Settings.of("hide", in) == "yes" {
		value, said = "no", t.Say("%s: what has nothing unread is shown", name)
	}
	t.Remember("hide", in, value)
	t.arrange()
	return said
}

// Sign returns the character before the label of the node.
func (n Node) Sign() string {
	switch {
	case n.Kind == FolderNode && n.Closed:
		return "+"
	case n.Kind == FolderNode:
		return "-"
	case n.Kind == SavedNode:
		return "?"
	case n.Paused:
		return "="
	}
	return " "
}

// Text returns the title of the node with the number of its entries.
func (n Node) Text(width int) string {
	count := ""
	switch {
	case n.Err != "":
		count = "!"
	case n.Flagged > 0:
		count = fmt.Sprint(n.Flagged)
	case n.Unread > 0:
		count = fmt.Sprint(n.Unread)
	}
	free := width - len(count) - 1
	title := cells.Plain(n.Title)
	if n.Site != "" && free > 8 {
		site := cells.Plain(termsafe.Brief(n.Site))
		most := min(termsafe.Width(site), free/2)
		return cells.Fit(title, free-most-1) + " " + cells.Fit(cells.Ends(site, most), most) + " " + count
	}
	return cells.Fit(title, free) + " " + count
}
