package tui

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/query"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// snapshot is the lektor-dir at one time. It is immutable; a later snapshot shares the feeds
// that have not changed.
type snapshot struct {
	scan  int                      // id of the scan that made it
	feeds map[string]*feedSnapshot // by hash
	saved []Saved
	nodes []node
	all   entrystore.Tally
	// countsOnly is true if the entries are not listed yet, and uncounted if their number is
	// unknown too.
	countsOnly, uncounted bool
}

// feedSnapshot is a feed with its entries, sorted by time of delivery, and their counts.
type feedSnapshot struct {
	Feed
	entrystore.Tally
	refs  []lektordir.Ref
	place string // folded title, to sort by, see natural
}

// newFeedSnapshot returns a feed without entries.
func newFeedSnapshot(f Feed) *feedSnapshot {
	return &feedSnapshot{Feed: f, place: natural(query.Fold(f.Title))}
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

// countsSnapshot returns the snapshot of an overview.
func countsSnapshot(o *Overview) *snapshot {
	s := &snapshot{feeds: make(map[string]*feedSnapshot, len(o.Feeds)), saved: o.Saved, countsOnly: true,
		uncounted: o.Counts == nil}
	for _, f := range o.Feeds {
		s.feeds[f.Hash] = newFeedSnapshot(f)
	}
	for hash, n := range o.Counts {
		if s.feeds[hash] == nil {
			s.feeds[hash] = newFeedSnapshot(Feed{Hash: hash, Title: hash})
		}
		s.feeds[hash].Tally = n
	}
	s.arrange()
	return s
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
	apart   string // shown after the title; distinguishes feeds with the same title
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

// newSnapshot reads the whole lektor-dir. If feeds is not nil, only the entries are read.
func newSnapshot(ctx context.Context, d Disk, feeds []Feed) (*snapshot, error) {
	s := &snapshot{feeds: map[string]*feedSnapshot{}}
	var work workers.Group
	if feeds == nil {
		work.Go(func() (err error) {
			feeds, err = d.Feeds(ctx)
			return err
		})
	}
	var lists map[string][]lektordir.Ref
	work.Go(func() (err error) {
		lists, err = d.List(ctx)
		return err
	})
	if err := work.Wait(); err != nil {
		return nil, err
	}
	for _, f := range feeds {
		s.feeds[f.Hash] = newFeedSnapshot(f)
	}
	for hash, refs := range lists {
		s.put(hash, refs)
	}
	// An error of the saved queries must not hide the entries.
	s.saved, _ = d.Saved(ctx)
	s.arrange()
	return s, nil
}

// with returns a copy of s with the entries of these feeds read again.
func (s *snapshot) with(ctx context.Context, d Disk, feeds []string) (*snapshot, error) {
	for _, hash := range feeds {
		if s.feeds[hash] == nil {
			return newSnapshot(ctx, d, nil) // the name and folders of a new feed have to be read
		}
	}
	lists, err := d.List(ctx, feeds...)
	if err != nil {
		return nil, err
	}
	t := &snapshot{feeds: maps.Clone(s.feeds), saved: s.saved}
	for _, hash := range feeds {
		t.put(hash, lists[hash])
	}
	t.arrange()
	return t, nil
}

// changedFeeds holds hashes of feeds that changed, "" for all. Each has the id of the last scan that
// began before the change, or atOnce.
type changedFeeds map[string]int

// atOnce is for a feed that the next scan must read, since the user has changed it.
const atOnce = -1

// changedSince returns feeds that changed after a scan began.
func changedSince(scan int, feeds map[string]bool) changedFeeds {
	c := make(changedFeeds, len(feeds))
	for hash := range feeds {
		c[hash] = scan
	}
	return c
}

func (c changedFeeds) all() bool {
	_, ok := c[""]
	return ok
}

// add adds feeds. A feed that changed before keeps its turn.
func (c changedFeeds) add(more changedFeeds) {
	for hash, since := range more {
		if old, ok := c[hash]; !ok || since < old {
			c[hash] = since
		}
	}
}

// scanEntries is about how many entries one scan reads of feeds that have changed, and leastEntries
// how many a feed counts at least, since it costs something to open.
const (
	scanEntries  = 5000
	leastEntries = 20
)

// part returns those of the changed feeds that the next scan reads, and those that wait for later
// ones. The rests between scans let keys through, which wait while the reader works. Feeds that changed
// first are read first. Feeds with a change of the user do not wait, since the screen shows the change
// until it is in a list.
func (s *snapshot) part(changed changedFeeds, touched func(feed string) bool) (part, later changedFeeds) {
	part, later = changedFeeds{}, changedFeeds{}
	hashes := slices.SortedFunc(maps.Keys(changed),
		func(a, b string) int { return cmp.Compare(changed[a], changed[b]) })
	n := 0
	for _, hash := range hashes {
		f := s.feeds[hash]
		switch {
		case f == nil || changed[hash] == atOnce || touched(hash):
			part[hash] = changed[hash]
		case n < scanEntries:
			part[hash] = changed[hash]
			n += max(f.All, leastEntries)
		default:
			later[hash] = changed[hash]
		}
	}
	return part, later
}

// put sets the entries of a feed.
func (s *snapshot) put(hash string, refs []lektordir.Ref) {
	var f *feedSnapshot
	if old := s.feeds[hash]; old != nil {
		f = &feedSnapshot{Feed: old.Feed, place: old.place}
	} else {
		f = newFeedSnapshot(Feed{Hash: hash, Title: hash})
	}
	f.refs = refs
	for _, r := range refs {
		f.Add(r)
	}
	s.feeds[hash] = f
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
		s.nodes = append(s.nodes, node{id: id{kind: feedNode, name: f.Hash, in: in}, title: f.Title, apart: f.Apart,
			paused: f.Paused, depth: depth, unread: f.Unread})
	}
}

// entries returns the entries of a node. If only is not nil, it returns those of the feeds in
// only.
func (s *snapshot) entries(of id, only map[*feedSnapshot]bool) []*lektordir.Ref {
	var all []*lektordir.Ref
	for _, f := range s.feeds {
		if only != nil && !only[f] || !of.holds(f) {
			continue
		}
		for i := range f.refs {
			if r := &f.refs[i]; of.kind != flaggedNode || r.HasFlag('F') {
				all = append(all, r)
			}
		}
	}
	return all
}

// inFolder reports whether one of the folders has this folded path, or is below it.
func inFolder(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return slices.ContainsFunc(entrystore.FolderPath(f),
			func(above entrystore.Folder) bool { return above.Key == path })
	})
}
