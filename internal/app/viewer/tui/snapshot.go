package tui

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// snapshot is the lektor-dir at one time. It is immutable; a later snapshot shares the feeds
// that have not changed.
type snapshot struct {
	scan  int                      // id of the scan that made it
	names *catalog.Snapshot        // the entries
	feeds map[string]*feedSnapshot // by hash
	saved []Saved
	nodes []node
	all   entrystore.Tally
	// partial is true if some feeds are not read yet, and uncounted if the number of entries is unknown.
	partial, uncounted bool
}

// Feed is a feed in the first pane.
type Feed struct {
	Hash    string
	Title   string
	Site    string   // distinguishes the feed from others of the same title; "" if there are none
	Folders []string // paths of names with '/' between them
	Paused  bool
}

// feedSnapshot is a feed with its entries and their counts.
type feedSnapshot struct {
	Feed
	entrystore.Tally
	names *catalog.Feed
	place string // folded title, to sort by, see natural
}

// newFeedSnapshot returns a feed as it is in a catalogue. The one before may be nil.
func newFeedSnapshot(f *catalog.Feed, before *feedSnapshot) *feedSnapshot {
	next := &feedSnapshot{names: f, Tally: entrystore.Tally{All: f.Shown, Unread: f.Unread, Flagged: f.Flagged}}
	if before != nil && before.names.About == f.About {
		next.Feed, next.place = before.Feed, before.place
		return next
	}
	next.Hash, next.Title = f.Hash, f.Hash
	if a := f.About; a != nil && a.Err == nil {
		next.Title, next.Folders, next.Paused = a.Title(), a.Folders, a.Paused
	}
	next.place = natural(query.Fold(next.Title))
	return next
}

// natural returns a text to sort by in which numbers stand in the order of their values: before each
// stands a character for the number of its digits.
func natural(s string) string {
	const digits = "0123456789"
	var b strings.Builder
	for at := strings.IndexAny(s, digits); at >= 0; at = strings.IndexAny(s, digits) {
		rest := strings.TrimLeft(s[at:], digits)
		number := strings.TrimLeft(s[at:len(s)-len(rest)], "0")
		b.WriteString(s[:at] + string(rune('0'+len(number))) + number)
		s = rest
	}
	return b.String() + s
}

// counted returns a partial snapshot with the numbers of entries of all feeds.
func (s *snapshot) counted(counts map[string]entrystore.Tally) *snapshot {
	t := *s
	t.feeds, t.uncounted = make(map[string]*feedSnapshot, len(s.feeds)), false
	for hash, f := range s.feeds {
		counted := *f
		counted.Tally = counts[hash]
		t.feeds[hash] = &counted
	}
	t.arrange()
	t.all = entrystore.Tally{}
	for _, n := range counts {
		t.all.Plus(n)
	}
	t.nodes[0].unread, t.nodes[1].flagged = t.all.Unread, t.all.Flagged
	return &t
}

// nodeKind is the kind of a line of the first pane.
type nodeKind uint8

const (
	allNode nodeKind = iota
	flaggedNode
	savedNode
	folderNode
	feedNode
)

// node is a line of the first pane. It is comparable. Its id stays the same when counts change.
type node struct {
	id
	title   string
	paused  bool
	site    string // shown after the title; distinguishes feeds with the same title
	depth   int
	unread  int
	flagged int    // count of flaggedNode
	err     string // error of a saved query
}

// label returns the title of the node in the user's language.
func (n node) label(w *world) string {
	if n.kind == allNode || n.kind == flaggedNode {
		return w.Tr(n.title)
	}
	return termsafe.Brief(n.title)
}

// id identifies a node.
type id struct {
	kind nodeKind
	name string // a feed's hash, a folder's folded path, a query's name
	in   string // the folder that a feed is shown in
}

// holds reports whether a node may hold entries of a feed.
func (of id) holds(f *feedSnapshot) bool {
	switch of.kind {
	case feedNode:
		return f.Hash == of.name
	case folderNode:
		return inFolder(f.Folders, of.name)
	}
	return true
}

// newSnapshot returns the snapshot of a catalogue and of the saved queries. The one before may be nil.
func newSnapshot(before *snapshot, names *catalog.Snapshot, saved []Saved) *snapshot {
	if before != nil && before.names == names && slices.EqualFunc(before.saved, saved, Saved.equal) {
		same := *before
		return &same
	}
	s := &snapshot{names: names, saved: saved, feeds: make(map[string]*feedSnapshot, len(names.Feeds)),
		partial: names.Missing > 0, uncounted: names.Missing > 0}
	titles := before == nil || len(before.feeds) != len(names.Feeds)
	for _, f := range names.Feeds {
		if f.About != nil && f.About.Err != nil && f.Shown == 0 {
			continue // ls and check report malformed feeds
		}
		var was *feedSnapshot
		if before != nil {
			was = before.feeds[f.Hash]
		}
		if was == nil || was.names != f || before.partial {
			next := newFeedSnapshot(f, was)
			titles = titles || was == nil || was.names.About != f.About
			was = next
		}
		s.feeds[f.Hash] = was
	}
	if titles {
		s.setSites()
	}
	s.arrange()
	return s
}

func (q Saved) equal(o Saved) bool { return q.Name == o.Name && q.Text == o.Text }

// setSites sets Site of feeds with equal titles: the host of the id, or the id without its scheme
// if the hosts are equal too.
func (s *snapshot) setSites() {
	type named struct{ title, host string }
	titles, hosts, names := map[string]int{}, map[named]int{}, make(map[string]named, len(s.feeds))
	id := func(f *feedSnapshot) string {
		if f.names.About == nil {
			return ""
		}
		return f.names.About.ID
	}
	for hash, f := range s.feeds {
		n := named{title: query.Fold(cells.Plain(f.Title))}
		if u, err := url.Parse(id(f)); err == nil {
			n.host = u.Host
		}
		titles[n.title]++
		hosts[n]++
		names[hash] = n
	}
	for hash, f := range s.feeds {
		n, site := names[hash], ""
		switch {
		case titles[n.title] == 1:
		case n.host != "" && hosts[n] == 1:
			site = n.host
		default:
			public := feedurl.Public(id(f))
			_, rest, _ := strings.Cut(public, "://")
			site = cmp.Or(rest, public)
		}
		if site != f.Site {
			other := *f
			other.Site = site
			s.feeds[hash] = &other
		}
	}
}

// arrange makes the nodes: all, flagged, saved queries, folders with their feeds, and feeds
// without a folder. It also adds up the counts.
func (s *snapshot) arrange() {
	s.all = entrystore.Tally{}
	type folder struct {
		title string
		feeds map[*feedSnapshot]bool // including those of subfolders
		own   map[*feedSnapshot]bool
	}
	folders := map[string]*folder{}
	var loose []*feedSnapshot
	for _, f := range s.feeds {
		s.all.Plus(f.Tally)
		in := false
		for _, name := range f.Folders {
			var last *folder
			for _, above := range entrystore.FolderPath(name) {
				last = folders[above.Key]
				if last == nil {
					last = &folder{title: above.Last(), feeds: map[*feedSnapshot]bool{}, own: map[*feedSnapshot]bool{}}
					folders[above.Key] = last
				}
				last.title = min(last.title, above.Last())
				last.feeds[f] = true
			}
			if last != nil {
				in = true
				last.own[f] = true
			}
		}
		if !in {
			loose = append(loose, f)
		}
	}
	s.nodes = []node{
		{id: id{kind: allNode}, title: "All", unread: s.all.Unread},
		{id: id{kind: flaggedNode}, title: "Flagged", flagged: s.all.Flagged},
	}
	for _, q := range s.saved {
		n := node{id: id{kind: savedNode, name: q.Name}, title: q.Name}
		if q.Err != nil {
			n.err = q.Err.Error()
		}
		s.nodes = append(s.nodes, n)
	}
	paths := slices.SortedFunc(maps.Keys(folders), func(a, b string) int {
		// A folder comes before its subfolders, and these come before the next folder.
		return slices.Compare(strings.Split(natural(a), "/"), strings.Split(natural(b), "/"))
	})
	for _, path := range paths {
		f := folders[path]
		n := node{id: id{kind: folderNode, name: path}, title: f.title, depth: strings.Count(path, "/")}
		for feed := range f.feeds {
			n.unread += feed.Unread
		}
		s.nodes = append(s.nodes, n)
		s.addFeeds(slices.Collect(maps.Keys(f.own)), path, n.depth+1)
	}
	s.addFeeds(loose, "", 0)
}

// addFeeds adds a node for each feed, sorted by title.
func (s *snapshot) addFeeds(feeds []*feedSnapshot, in string, depth int) {
	slices.SortFunc(feeds, func(a, b *feedSnapshot) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.Hash, b.Hash))
	})
	for _, f := range feeds {
		s.nodes = append(s.nodes, node{id: id{kind: feedNode, name: f.Hash, in: in}, title: f.Title, site: f.Site,
			paused: f.Paused, depth: depth, unread: f.Unread})
	}
}

// entries returns the entries of a node. If only is not nil, it returns those of the feeds in
// only.
func (s *snapshot) entries(of id, only map[string]bool) []catalog.Entry {
	var all []catalog.Entry
	for hash, f := range s.feeds {
		if only != nil && !only[hash] || !of.holds(f) {
			continue
		}
		for e := range f.names.All() {
			if of.kind != flaggedNode || e.Has(flagged) {
				all = append(all, e)
			}
		}
	}
	return all
}

var flagged = catalog.FlagsOf("F")

// inFolder reports whether one of the folders has this folded path, or is below it.
func inFolder(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return slices.ContainsFunc(entrystore.FolderPath(f),
			func(above entrystore.Folder) bool { return above.Key == path })
	})
}
