package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// treeDisk is what the tree needs of the lektor-dir. Its methods may take long.
type treeDisk interface {
	// Now returns the feeds and their entries, see [catalog.Catalog.Part].
	Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error)
	// Await returns after something has changed, or may have, or when ctx ends.
	Await(ctx context.Context)
	// Overview returns the newest entries and the counts, without listing the lektor-dir, or nil
	// if that would take long.
	Overview(ctx context.Context, newest int) (*Overview, error)
	// Saved returns the saved queries.
	Saved(ctx context.Context) ([]Saved, error)
	// Learn reads the dates of entries, however long this takes, so that later calls of Dates
	// return them at once. It may also update the index, and calls progress repeatedly.
	Learn(ctx context.Context, entries []catalog.Entry, progress func(what string, done, total int)) error
}

// tree is the first pane: folders and feeds.
type tree struct {
	*part.Env
	disk     treeDisk
	marks    *work.Queue // changes that are not made; entries count as they will be after these
	settings settings
	snapshot *snapshot     // nil until it is read
	closed   map[id]bool   // closed folders
	nodes    []node        // nodes that no closed folder hides
	of       id            // the node whose entries are listed
	at, y    int           // the cursor, and the first line of the pane
	retry    time.Duration // before a scan that failed is repeated
	scans    part.Job[scanRequest]
	await    func() tea.Msg // awaitChanges
}

// show shows a snapshot.
func (t *tree) show(s *snapshot) {
	sorted := *s
	t.snapshot = &sorted
	t.snapshot.nodes = t.settings.sortFeeds(s)
	t.arrange()
}

// arrange sets the nodes from the snapshot. The cursor stays on the node of the list.
func (t *tree) arrange() {
	hides := t.settings.hidden(t.snapshot, t.of)
	t.nodes = t.nodes[:0]
	hidden := -1 // nodes deeper than this are hidden; -1 hides none
	for _, n := range t.snapshot.nodes {
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
	if at := t.find(t.of); at >= 0 {
		t.at = at
	}
	t.at = min(t.at, len(t.nodes)-1)
}

func (t *tree) find(of id) int {
	return slices.IndexFunc(t.nodes, func(n node) bool { return n.id == of })
}

// choose moves the cursor to a node.
func (t *tree) choose(of id) {
	t.of = of
	t.arrange()
}

// current returns the node of the cursor, or the listed one if there are no lines.
func (t *tree) current() id {
	if t.at < len(t.nodes) {
		return t.nodes[t.at].id
	}
	return t.of
}

// ref returns the name of an entry now, as another program may have changed its flags.
func (t *tree) ref(r lektordir.Ref) lektordir.Ref {
	if f := t.snapshot.feeds[r.Feed]; f != nil {
		if e, ok := f.names.Find(r.Unique); ok {
			return e.Ref()
		}
	}
	return r
}

// fold closes or opens the folder of the cursor, or the folder of the feed under it. It returns the folder; ok is
// false if there is none.
func (t *tree) fold() (of id, ok bool) {
	of = t.current()
	if of.kind == feedNode && of.in != "" {
		of = id{kind: folderNode, name: of.in}
	}
	if of.kind != folderNode {
		return of, false
	}
	t.closed[of] = !t.closed[of]
	return of, true
}

// reveal opens a folder, or the folders that hide a feed.
func (t *tree) reveal(of id) {
	path := of.in
	if of.kind == folderNode {
		path = of.name
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		delete(t.closed, id{kind: folderNode, name: strings.Join(parts[:i+1], "/")})
	}
	t.arrange()
}

// nextFeed returns the next feed with unread entries (by 1), or the previous one (by -1), and reveals it. ok is false
// if no other feed has unread entries.
func (t *tree) nextFeed(by int) (of id, ok bool) {
	if t.snapshot == nil {
		return of, false
	}
	nodes := t.snapshot.nodes
	at := slices.IndexFunc(nodes, func(n node) bool { return n.id == t.of })
	for i := 1; i < len(nodes); i++ {
		n := nodes[cells.Wrap(at+i*by, len(nodes))]
		if n.kind == feedNode && t.hasUnread(n.name) {
			t.reveal(n.id)
			return n.id, true
		}
	}
	return of, false
}

// hasUnread reports whether a feed will have unread entries after all pending changes. It
// returns true if the entries are not counted yet.
func (t *tree) hasUnread(hash string) bool {
	f := t.snapshot.feeds[hash]
	switch {
	case f == nil:
		return false
	case t.snapshot.uncounted:
		return true
	case t.snapshot.partial || !t.marks.Touches(hash):
		return f.Unread > 0
	}
	for e := range f.names.All() {
		if t.marks.Unread(e) && !t.marks.Now(e.Ref()).Trashed() {
			return true
		}
	}
	return false
}

// unread returns the unread entries of the listed node.
func (t *tree) unread() (refs []lektordir.Ref) {
	for _, e := range t.snapshot.entries(t.of, nil) {
		if t.marks.Unread(e) {
			if ref := t.marks.Now(e.Ref()); !ref.Trashed() {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// changed reports whether the list may differ from that of an earlier snapshot, or may have entries of feeds
// that the user has changed: a change that failed, or was undone, shows its entries again.
func (t *tree) changed(earlier *snapshot, touched map[string]bool) bool {
	s, of := t.snapshot, t.of
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

// name returns the name of a node in the user's language, "" if there is no such node.
func (t *tree) name(of id) string {
	if t.snapshot != nil {
		if at := slices.IndexFunc(t.snapshot.nodes, func(n node) bool { return n.id == of }); at >= 0 {
			return t.snapshot.nodes[at].label(t.Printer)
		}
	}
	return ""
}

// allUnread returns the number of all unread entries.
func (t *tree) allUnread() int {
	if t.snapshot == nil {
		return 0
	}
	return t.snapshot.all.Unread
}

// unpaused returns the hashes of the feeds of a folder that are not paused.
func (t *tree) unpaused(folder id) (hashes []string) {
	for hash, feed := range t.snapshot.feeds {
		if folder.holds(feed) && !feed.Paused {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

// folders returns the paths of all folders of feeds.
func (t *tree) folders() (names []string) {
	for _, f := range cmp.Or(t.snapshot, &snapshot{}).feeds {
		names = append(names, f.Folders...)
	}
	return names
}

// menu returns a menu of the nodes of a kind, from which open calls list.
func (t *tree) menu(title string, kind nodeKind, list func(of id) part.Effects) part.Effects {
	var found []node
	if s := t.snapshot; s != nil {
		found = slices.DeleteFunc(slices.Clone(s.nodes), func(n node) bool { return n.kind != kind })
	}
	if len(found) == 0 {
		return t.Say("%s: there are none", t.Tr(title))
	}
	n := &part.Lines{Title: title, Hint: t.Trf("%s lists the entries, other keys close the menu", t.KeyOf("open"))}
	for _, node := range found {
		n.Text = append(n.Text, strings.Repeat("  ", node.depth)+cells.Plain(node.label(t.Printer)))
	}
	n.Choose = part.OnOpen(func(at int) part.Effects {
		t.reveal(found[at].id)
		return list(found[at].id)
	})
	return part.Effects{part.Menu{Lines: n}}
}

// remember remembers a setting of the folder beside the listed node, or of the node itself.
func (t *tree) remember(setting string, of id, value string) part.Remember {
	return part.Remember{Name: nodeSetting(setting, of), Value: value}
}

// sort sorts the feeds of the folder of the cursor, and of the folders in it.
func (t *tree) sort(o order) part.Effects {
	set := t.remember("feeds", container(t.of), o.String())
	t.settings.Set(set.Name, set.Value)
	t.show(t.snapshot)
	return part.Effects{set, part.Say{Text: sortedBy(t.Printer, o)}}
}

// sortMenu shows a menu of the orders of feeds.
func (t *tree) sortMenu(reversed bool) part.Effects {
	now, _ := parseOrder(cmp.Or(t.settings.of("feeds", container(t.of)), "name"), feedOrders)
	return orderMenu(t.Printer, t.Tr("sort the feeds by"), feedOrders, now, reversed, t.sort)
}

// hideRead hides the feeds and folders in a folder that have nothing unread, or shows them.
func (t *tree) hideRead(part.Given) part.Effects {
	in := container(t.of)
	name := t.Tr("all feeds")
	if in.kind == folderNode {
		name = t.name(in)
	}
	set, said := t.remember("hide", in, "yes"), t.Say("%s: what has nothing unread is hidden", name)
	if t.settings.of("hide", in) == "yes" {
		set, said = t.remember("hide", in, "no"), t.Say("%s: what has nothing unread is shown", name)
	}
	t.settings.Set(set.Name, set.Value)
	t.arrange()
	return append(said, set)
}
