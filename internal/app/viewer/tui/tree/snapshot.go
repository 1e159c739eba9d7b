package tree

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Snapshot is the lektor-dir at one time. It is immutable but for its counts.
type Snapshot struct {
	Scan  int                      // id of the scan that made it
	Names *catalog.Snapshot        // the entries
	Feeds map[string]*feedSnapshot // by hash
	saved []Saved
	Nodes []Node
	All   entrystore.Tally
	// partial is true if some feeds are not read yet, and uncounted if the number of entries is unknown.
	Partial, Uncounted bool
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
	Place string // folded title, to sort by, see natural
}

// newFeedSnapshot returns a feed as it is in a catalogue.
func newFeedSnapshot(f *catalog.Feed) *feedSnapshot {
	next := &feedSnapshot{names: f, Tally: entrystore.Tally{All: f.Shown, Unread: f.Unread, Flagged: f.Flagged}}
	next.Hash, next.Title = f.Hash, f.Hash
	if a := f.About; a != nil && a.Err == nil {
		next.Title, next.Folders, next.Paused = a.Title(), a.Folders, a.Paused
	}
	next.Place = natural(query.Fold(next.Title))
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

// count sets the numbers of entries of all feeds in a partial snapshot.
func (s *Snapshot) count(counts map[string]entrystore.Tally) {
	s.Uncounted = false
	for hash, f := range s.Feeds {
		f.Tally = counts[hash]
	}
	s.arrange()
	s.All = entrystore.Tally{}
	for _, n := range counts {
		s.All.Plus(n)
	}
	s.Nodes[0].Unread, s.Nodes[1].Flagged = s.All.Unread, s.All.Flagged
}

// Kind is the kind of a line of the first pane.
type Kind uint8

const (
	AllNode Kind = iota
	FlaggedNode
	SavedNode
	FolderNode
	FeedNode
)

// Node is a line of the first pane. It is comparable. Its id stays the same when counts change.
type Node struct {
	ID
	Title   string
	Paused  bool
	Site    string // shown after the title; distinguishes feeds with the same title
	Depth   int
	Unread  int
	Flagged int    // count of flaggedNode
	Err     string // error of a saved query
}

// label returns the title of the node in the user's language.
func (n Node) label(w *texts.Printer) string {
	if n.Kind == AllNode || n.Kind == FlaggedNode {
		return w.Tr(n.Title)
	}
	return termsafe.Brief(n.Title)
}

// ID identifies a node.
type ID struct {
	Kind Kind
	Name string // a feed's hash, a folder's folded path, a query's name
	In   string // the folder that a feed is shown in
}

// holds reports whether a node may hold entries of a feed.
func (of ID) holds(f *feedSnapshot) bool {
	switch of.Kind {
	case FeedNode:
		return f.Hash == of.Name
	case FolderNode:
		return inFolder(f.Folders, of.Name)
	}
	return true
}

// NewSnapshot returns the snapshot of a catalogue and of the saved queries.
func NewSnapshot(names *catalog.Snapshot, saved []Saved) *Snapshot {
	s := &Snapshot{Names: names, saved: saved, Feeds: make(map[string]*feedSnapshot, len(names.Feeds)),
		Partial: names.Missing > 0, Uncounted: names.Missing > 0}
	for _, f := range names.Feeds {
		if f.About == nil || f.About.Err == nil || f.Shown > 0 { // ls and check report malformed feeds
			s.Feeds[f.Hash] = newFeedSnapshot(f)
		}
	}
	s.setSites()
	s.arrange()
	return s
}

// setSites sets Site of feeds with equal titles: the host of the id, or the id without its scheme
// if the hosts are equal too.
func (s *Snapshot) setSites() {
	type named struct{ title, host string }
	titles, hosts, names := map[string]int{}, map[named]int{}, make(map[string]named, len(s.Feeds))
	id := func(f *feedSnapshot) string {
		if f.names.About == nil {
			return ""
		}
		return f.names.About.ID
	}
	for hash, f := range s.Feeds {
		n := named{title: query.Fold(cells.Plain(f.Title))}
		if u, err := url.Parse(id(f)); err == nil {
			n.host = u.Host
		}
		titles[n.title]++
		hosts[n]++
		names[hash] = n
	}
	for hash, f := range s.Feeds {
		switch n := names[hash]; {
		case titles[n.title] == 1:
		case n.host != "" && hosts[n] == 1:
			f.Site = n.host
		default:
			public := feedurl.Public(id(f))
			_, rest, _ := strings.Cut(public, "://")
			f.Site = cmp.Or(rest, public)
		}
	}
}

// arrange makes the nodes: all, flagged, saved queries, folders with their feeds, and feeds
// without a folder. It also adds up the counts.
func (s *Snapshot) arrange() {
	s.All = entrystore.Tally{}
	type folder struct {
		title string
		feeds map[*feedSnapshot]bool // including those of subfolders
		own   map[*feedSnapshot]bool
	}
	folders := map[string]*folder{}
	var loose []*feedSnapshot
	for _, f := range s.Feeds {
		s.All.Plus(f.Tally)
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
	s.Nodes = []Node{
		{ID: ID{Kind: AllNode}, Title: "All", Unread: s.All.Unread},
		{ID: ID{Kind: FlaggedNode}, Title: "Flagged", Flagged: s.All.Flagged},
	}
	for _, q := range s.saved {
		n := Node{ID: ID{Kind: SavedNode, Name: q.Name}, Title: q.Name}
		if q.Err != nil {
			n.Err = q.Err.Error()
		}
		s.Nodes = append(s.Nodes, n)
	}
	paths := slices.SortedFunc(maps.Keys(folders), func(a, b string) int {
		// A folder comes before its subfolders, and these come before the next folder.
		return slices.Compare(strings.Split(natural(a), "/"), strings.Split(natural(b), "/"))
	})
	for _, path := range paths {
		f := folders[path]
		n := Node{ID: ID{Kind: FolderNode, Name: path}, Title: f.title, Depth: strings.Count(path, "/")}
		for feed := range f.feeds {
			n.Unread += feed.Unread
		}
		s.Nodes = append(s.Nodes, n)
		s.addFeeds(slices.Collect(maps.Keys(f.own)), path, n.Depth+1)
	}
	s.addFeeds(loose, "", 0)
}

// addFeeds adds a node for each feed, sorted by title.
func (s *Snapshot) addFeeds(feeds []*feedSnapshot, in string, depth int) {
	slices.SortFunc(feeds, func(a, b *feedSnapshot) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Hash, b.Hash))
	})
	for _, f := range feeds {
		s.Nodes = append(s.Nodes, Node{ID: ID{Kind: FeedNode, Name: f.Hash, In: in}, Title: f.Title, Site: f.Site,
			Paused: f.Paused, Depth: depth, Unread: f.Unread})
	}
}

// Entries returns the entries of a node. If only is not nil, it returns those of the feeds in
// only.
func (s *Snapshot) Entries(of ID, only map[string]bool) []catalog.Entry {
	var all []catalog.Entry
	for hash, f := range s.Feeds {
		if only != nil && !only[hash] || !of.holds(f) {
			continue
		}
		for e := range f.names.All() {
			if of.Kind != FlaggedNode || e.Has(flagged) {
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
