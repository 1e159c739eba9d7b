// Package tree is the pane of folders and feeds, and the scans of the lektor-dir that it shows.
package tree

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// Disk is what the tree needs of the lektor-dir. Its methods may take long.
type Disk interface {
	// Now returns the feeds and their entries, see [catalog.Catalog.Part].
	Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error)
	// Await returns after something has changed, or may have, or when ctx ends.
	Await(ctx context.Context)
	// Overview returns the newest entries and the counts, without listing the lektor-dir, or nil
	// if that would take long.
	Overview(ctx context.Context, newest int) (*Overview, error)
	// Saved returns the saved queries.
	Saved(ctx context.Context) ([]Saved, error)
	// TakeDates takes the dates that the index has, so that the entries of the overview keep their places in the
	// first list.
	TakeDates(ctx context.Context)
}

// Saved is a saved query. Err is not nil if the query is invalid.
type Saved struct {
	Name, Text string
	Err        error
}

// Overview holds the data that can be shown before all entries are listed.
type Overview struct {
	Counts map[string]entrystore.Tally // by hash of the feed
	Newest []Listed                    // unread entries, newest first
}

// Listed is an entry in an overview.
type Listed struct {
	Ref   lektordir.Ref
	Date  time.Time
	Title string
}

// Tree is the first pane: folders and feeds.
type Tree struct {
	*part.Env
	Disk     Disk
	Marks    part.Pending // changes that are not made; entries count as they will be after these
	Settings Settings
	Snapshot *Snapshot     // nil until it is read
	Closed   map[ID]bool   // closed folders
	Nodes    []Node        // nodes that no closed folder hides
	of       ID            // the node whose entries are listed
	At, Y    int           // the cursor, and the first line of the pane
	Retry    time.Duration // before a scan that failed is repeated
	Scans    part.Job[ScanRequest]
	Await    func() tea.Msg // awaitChanges
}

// show shows a snapshot.
func (t *Tree) show(s *Snapshot) {
	sorted := *s
	t.Snapshot = &sorted
	t.Snapshot.Nodes = t.Settings.sortFeeds(s)
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
		if hide || t.Closed[n.ID] {
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
	of = t.Current()
	if of.Kind == FeedNode && of.In != "" {
		of = ID{Kind: FolderNode, Name: of.In}
	}
	if of.Kind != FolderNode {
		return of, false
	}
	t.Closed[of] = !t.Closed[of]
	return of, true
}

// reveal opens a folder, or the folders that hide a feed.
func (t *Tree) reveal(of ID) {
	path := of.In
	if of.Kind == FolderNode {
		path = of.Name
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		delete(t.Closed, ID{Kind: FolderNode, Name: strings.Join(parts[:i+1], "/")})
	}
	t.arrange()
}

// NextFeed returns the next feed with unread entries (by 1), or the previous one (by -1), and reveals it. ok is false
// if no other feed has unread entries.
func (t *Tree) NextFeed(by int) (of ID, ok bool) {
	if t.Snapshot == nil {
		return of, false
	}
	nodes := t.Snapshot.Nodes
	at := slices.IndexFunc(nodes, func(n Node) bool { return n.ID == t.of })
	for i := 1; i < len(nodes); i++ {
		n := nodes[cells.Wrap(at+i*by, len(nodes))]
		if n.Kind == FeedNode && t.hasUnread(n.Name) {
			t.reveal(n.ID)
			return n.ID, true
		}
	}
	return of, false
}

// hasUnread reports whether a feed will have unread entries after all pending changes. It
// returns true if the entries are not counted yet.
func (t *Tree) hasUnread(hash string) bool {
	f := t.Snapshot.Feeds[hash]
	switch {
	case f == nil:
		return false
	case t.Snapshot.Uncounted:
		return true
	case t.Snapshot.Partial || !t.Marks.Touches(hash):
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

// changed reports whether the list may differ from that of an earlier snapshot, or may have entries of feeds
// that the user has changed: a change that failed, or was undone, shows its entries again.
func (t *Tree) changed(earlier *Snapshot, touched map[string]bool) bool {
	s, of := t.Snapshot, t.of
	same := func(a, b Saved) bool { return a.Name == b.Name && a.Text == b.Text }
	if touched[""] || of.Kind == SavedNode && !slices.EqualFunc(s.saved, earlier.saved, same) {
		return true
	}
	has := func(hash string) bool {
		was, is := earlier.Feeds[hash], s.Feeds[hash]
		return was != nil && of.holds(was) || is != nil && of.holds(is)
	}
	for hash := range touched {
		if has(hash) {
			return true
		}
	}
	for _, is := range s.Names.Since(earlier.Names) {
		if has(is.Hash) {
			return true
		}
	}
	return false
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

// allUnread returns the number of all unread entries.
func (t *Tree) allUnread() int {
	if t.Snapshot == nil {
		return 0
	}
	return t.Snapshot.All.Unread
}

// Unpaused returns the hashes of the feeds of a folder that are not paused.
func (t *Tree) Unpaused(folder ID) (hashes []string) {
	for hash, feed := range t.Snapshot.Feeds {
		if folder.holds(feed) && !feed.Paused {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

// Folders returns the paths of all folders of feeds.
func (t *Tree) Folders() (names []string) {
	for _, f := range cmp.Or(t.Snapshot, &Snapshot{}).Feeds {
		names = append(names, f.Folders...)
	}
	return names
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
	n := &part.Lines{Title: title, Hint: t.Trf("%s lists the entries, other keys close the menu", t.KeyOf("open"))}
	for _, node := range found {
		n.Text = append(n.Text, strings.Repeat("  ", node.Depth)+cells.Plain(node.label(t.Printer)))
	}
	n.Choose = part.OnOpen(func(at int) part.Effects {
		t.reveal(found[at].ID)
		return list(found[at].ID)
	})
	return part.Effects{part.Menu{Lines: n}}
}

// Remember remembers a setting of the folder beside the listed node, or of the node itself.
func (t *Tree) Remember(setting string, of ID, value string) part.Remember {
	return part.Remember{Name: nodeSetting(setting, of), Value: value}
}

// Sort sorts the feeds of the folder of the cursor, and of the folders in it.
func (t *Tree) Sort(o Order) part.Effects {
	set := t.Remember("feeds", container(t.of), o.String())
	t.Settings.Set(set.Name, set.Value)
	t.show(t.Snapshot)
	return part.Effects{set, part.Say{Text: SortedBy(t.Printer, o)}}
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
	set, said := t.Remember("hide", in, "yes"), t.Say("%s: what has nothing unread is hidden", name)
	if t.Settings.of("hide", in) == "yes" {
		set, said = t.Remember("hide", in, "no"), t.Say("%s: what has nothing unread is shown", name)
	}
	t.Settings.Set(set.Name, set.Value)
	t.arrange()
	return append(said, set)
}
