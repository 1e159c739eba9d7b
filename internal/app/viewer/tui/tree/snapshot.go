package tree

import (
	"cmp"
	"maps"
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

// Snapshot is the lektor-dir at one time. It is immutable but for its counts and its nodes, which the pane makes.
type Snapshot struct {
	Scan  int               // id of the scan that made it
	Names *catalog.Snapshot // the entries
	Feeds map[string]*Feed  // by hash
	saved []entrystore.Saved
	Nodes []Node
	All   entrystore.Tally
	// Partial is true if some feeds are not read yet, and Uncounted if the number of entries is unknown.
	Partial, Uncounted bool
}

// Feed is a feed in the first pane, with its entries and their counts.
type Feed struct {
	Hash    string
	Title   string
	Site    string   // distinguishes the feed from others of the same title; "" if there are none
	Folders []string // paths of names with '/' between them
	In      []string // their folded paths; only "" if there are none
	Paused  bool
	// Subscribed is true if a fetcher fetches the feed.
	Subscribed bool
	Place      string // folded title, to sort by, see natural
	entrystore.Tally

	id    string
	names *catalog.Feed
	above map[string]string // names of the folders that have it, also of those above, by their folded paths
}

// newFeed returns a feed as it is in a catalogue.
func newFeed(f *catalog.Feed) *Feed {
	next := &Feed{Hash: f.Hash, Title: f.Hash, names: f,
		Tally: entrystore.Tally{All: f.Shown, Unread: f.Unread, Flagged: f.Flagged}}
	if a := f.About; a != nil && a.Err == nil {
		next.Title, next.Folders, next.id = a.Title(), a.Folders, a.ID
		next.Paused, next.Subscribed = a.Paused, a.Subscribed
	}
	next.Place, next.above = natural(query.Fold(cells.Plain(next.Title))), entrystore.FoldersAbove(next.Folders)
	for _, name := range next.Folders {
		if path := entrystore.FolderPath(name); len(path) > 0 && !slices.Contains(next.In, path[len(path)-1].Key) {
			next.In = append(next.In, path[len(path)-1].Key)
		}
	}
	if next.In == nil {
		next.In = []string{""}
	}
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
	s.Uncounted, s.All = false, entrystore.Tally{}
	for _, n := range counts {
		s.All.Plus(n)
	}
	for hash, f := range s.Feeds {
		f.Tally = counts[hash]
	}
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
	Title   string // in the pane, in the user's language
	Paused  bool
	Closed  bool   // set in the pane: a folder is closed
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

// Holds reports whether a node may hold entries of a feed.
func (of ID) Holds(f *Feed) bool {
	switch of.Kind {
	case FeedNode:
		return f.Hash == of.Name
	case FolderNode:
		return f.above[of.Name] != ""
	}
	return true
}

// NewSnapshot returns the snapshot of a catalogue and of the saved queries.
func NewSnapshot(names *catalog.Snapshot, saved []entrystore.Saved) *Snapshot {
	s := &Snapshot{Names: names, saved: saved, Feeds: make(map[string]*Feed, len(names.Feeds)),
		Partial: names.Missing > 0, Uncounted: names.Missing > 0}
	for _, f := range names.Feeds {
		if f.About == nil || f.About.Err == nil || f.Shown > 0 { // ls and check report malformed feeds
			s.Feeds[f.Hash] = newFeed(f)
			s.All.Plus(s.Feeds[f.Hash].Tally)
		}
	}
	s.setSites()
	return s
}

// setSites sets Site of feeds with equal titles.
func (s *Snapshot) setSites() {
	titles := map[string]int{}
	for _, f := range s.Feeds {
		titles[f.Place]++
	}
	for _, f := range s.Feeds {
		if titles[f.Place] > 1 {
			public := feedurl.Public(f.id)
			_, rest, _ := strings.Cut(public, "://")
			f.Site = cmp.Or(rest, public)
		}
	}
}

// arrange makes the nodes: all, flagged, saved queries, folders with their feeds, and feeds
// without a folder.
func (s *Snapshot) arrange(settings *Settings) {
	folders, in := map[string]*Node{}, map[string][]Node{}
	for _, f := range s.Feeds {
		for path, name := range f.above {
			if folders[path] == nil {
				folders[path] = &Node{ID: ID{Kind: FolderNode, Name: path}, Title: name,
					Depth: strings.Count(path, "/")}
			}
			folders[path].Title = min(folders[path].Title, name)
			folders[path].Unread += f.Unread
		}
		for _, path := range f.In {
			n := Node{ID: ID{Kind: FeedNode, Name: f.Hash, In: path}, Title: f.Title, Site: f.Site, Paused: f.Paused,
				Unread: f.Unread}
			if path != "" {
				n.Depth = strings.Count(path, "/") + 1
			}
			in[path] = append(in[path], n)
		}
	}
	for _, nodes := range in {
		settings.sortFeeds(nodes, s.Feeds)
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
		n := folders[path]
		n.Title = n.Title[strings.LastIndexByte(n.Title, '/')+1:]
		s.Nodes = append(append(s.Nodes, *n), in[path]...)
	}
	s.Nodes = append(s.Nodes, in[""]...)
}

// Entries returns the entries of a node. If only is not nil, it returns those of the feeds in
// only.
func (s *Snapshot) Entries(of ID, only map[string]bool) []catalog.Entry {
	var all []catalog.Entry
	for hash, f := range s.Feeds {
		if only != nil && !only[hash] || !of.Holds(f) {
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
