package tui

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/crew"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// shelf is what there was in the lektor-dir at a moment. It never changes: what is
// found later is another one, which shares with it what is the same.
type shelf struct {
	feeds map[string]*onShelf // by hash
	saved []Saved
	nodes []node
	all   entries.Tally
	// bare tells that the entries themselves are not known yet, but how many there are, or
	// not even that.
	bare, uncounted bool
}

// onShelf is a feed with its entries, by time of delivery, and how many they are.
type onShelf struct {
	Feed
	entries.Tally
	refs  []lektordir.Ref
	place string // of its title among others
}

// newOnShelf gives a feed without entries.
func newOnShelf(f Feed) *onShelf { return &onShelf{Feed: f, place: query.Fold(f.Title)} }

// bareShelf is what an overview tells.
func bareShelf(o *Overview) *shelf {
	s := &shelf{feeds: make(map[string]*onShelf, len(o.Feeds)), saved: o.Saved, bare: true, uncounted: o.Counts == nil}
	for _, f := range o.Feeds {
		s.feeds[f.Hash] = newOnShelf(f)
	}
	for hash, n := range o.Counts {
		if s.feeds[hash] == nil {
			s.feeds[hash] = newOnShelf(Feed{Hash: hash, Title: hash})
		}
		s.feeds[hash].Tally = n
	}
	s.arrange()
	return s
}

// nodeKind is what a line of the first pane stands for.
type nodeKind uint8

const (
	allNode nodeKind = iota
	flaggedNode
	savedNode
	folderNode
	feedNode
)

// node is a line of the first pane. It is made of comparable parts, id of those that
// stay when counts change.
type node struct {
	id
	title  string
	apart  string // shown behind the title
	depth  int
	counts bool // unread and any mean something
	unread int
	any    int
	bad    string // why a saved query is none
}

// id is what a node is of: a feed's hash, a folder's folded path, a query's name.
type id struct {
	kind nodeKind
	name string
	in   string // the folder that a feed is shown in
}

// newShelf reads everything, but feeds where these are given.
func newShelf(ctx context.Context, d Disk, feeds []Feed) (*shelf, error) {
	s := &shelf{feeds: map[string]*onShelf{}}
	var work crew.Crew
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
	for hash, refs := range lists {
		s.put(hash, refs)
	}
	for _, f := range feeds {
		named := newOnShelf(f)
		if of := s.feeds[f.Hash]; of != nil {
			named.Tally, named.refs = of.Tally, of.refs
		}
		s.feeds[f.Hash] = named
	}
	// A list of saved queries that cannot be read is not worth the rest.
	s.saved, _ = d.Saved(ctx)
	s.arrange()
	return s, nil
}

// with gives the shelf with other entries of some feeds.
func (s *shelf) with(ctx context.Context, d Disk, feeds []string) (*shelf, error) {
	for _, hash := range feeds {
		if s.feeds[hash] == nil {
			return newShelf(ctx, d, nil) // a feed that is new has a name and folders
		}
	}
	lists, err := d.List(ctx, feeds...)
	if err != nil {
		return nil, err
	}
	t := &shelf{feeds: maps.Clone(s.feeds), saved: s.saved}
	for _, hash := range feeds {
		t.put(hash, lists[hash])
	}
	t.arrange()
	return t, nil
}

// put gives a feed its entries.
func (s *shelf) put(hash string, refs []lektordir.Ref) {
	var f *onShelf
	if old := s.feeds[hash]; old != nil {
		f = &onShelf{Feed: old.Feed, place: old.place}
	} else {
		f = newOnShelf(Feed{Hash: hash, Title: hash})
	}
	f.refs = refs
	for _, r := range refs {
		f.Add(r)
	}
	s.feeds[hash] = f
}

// arrange makes the lines of the first pane: everything, what is flagged, saved
// queries, folders with what is in them, and the feeds that are in none.
func (s *shelf) arrange() {
	s.all = entries.Tally{}
	type folder struct {
		title string
		feeds map[*onShelf]bool // with those of the folders below
		own   map[*onShelf]bool
	}
	folders := map[string]*folder{}
	var loose []*onShelf
	for _, f := range s.feeds {
		s.all.Unread += f.Unread
		s.all.All += f.All
		s.all.Flagged += f.Flagged
		in := false
		for _, name := range f.Folders {
			var last *folder
			for _, above := range entries.FolderPath(name) {
				last = folders[above.Key]
				if last == nil {
					last = &folder{title: above.Last(), feeds: map[*onShelf]bool{}, own: map[*onShelf]bool{}}
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
		{id: id{kind: allNode}, title: "All", counts: true, unread: s.all.Unread, any: s.all.All},
		{id: id{kind: flaggedNode}, title: "Flagged", counts: true, any: s.all.Flagged},
	}
	for _, q := range s.saved {
		n := node{id: id{kind: savedNode, name: q.Name}, title: q.Name}
		if q.Err != nil {
			n.bad = q.Err.Error()
		}
		s.nodes = append(s.nodes, n)
	}
	paths := slices.SortedFunc(maps.Keys(folders), func(a, b string) int {
		// A folder stands before what is in it, and that before the next one.
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	for _, path := range paths {
		f := folders[path]
		n := node{id: id{kind: folderNode, name: path}, title: f.title, depth: strings.Count(path, "/"), counts: true}
		for feed := range f.feeds {
			n.unread += feed.Unread
			n.any += feed.All
		}
		s.nodes = append(s.nodes, n)
		s.addFeeds(slices.Collect(maps.Keys(f.own)), path, n.depth+1)
	}
	s.addFeeds(loose, "", 0)
}

// addFeeds adds lines of feeds, by title.
func (s *shelf) addFeeds(feeds []*onShelf, in string, depth int) {
	slices.SortFunc(feeds, func(a, b *onShelf) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.Hash, b.Hash))
	})
	for _, f := range feeds {
		s.nodes = append(s.nodes, node{
			id: id{kind: feedNode, name: f.Hash, in: in}, title: f.Title, apart: f.Apart, depth: depth, counts: true, unread: f.Unread, any: f.All,
		})
	}
}

// feedsOf gives the feeds that a node is of, in order.
func (s *shelf) feedsOf(of id) []string {
	switch of.kind {
	case feedNode:
		if s.feeds[of.name] == nil {
			return nil
		}
		return []string{of.name}
	case folderNode:
		var hashes []string
		for hash, f := range s.feeds {
			if inFolder(f.Folders, of.name) {
				hashes = append(hashes, hash)
			}
		}
		slices.Sort(hashes)
		return hashes
	}
	return slices.Sorted(maps.Keys(s.feeds))
}

// entries returns the entries that a list may have, if others is not nil only those of the
// feeds in it.
func (s *shelf) entries(of id, others map[string]bool) []lektordir.Ref {
	var all []lektordir.Ref
	for _, hash := range s.feedsOf(of) {
		if others != nil && !others[hash] {
			continue
		}
		for _, r := range s.feeds[hash].refs {
			if of.kind != flaggedNode || r.HasFlag('F') {
				all = append(all, r)
			}
		}
	}
	return all
}

// inFolder tells whether one of folders is that of a folded path, or below it.
func inFolder(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return slices.ContainsFunc(entries.FolderPath(f), func(above entries.Folder) bool { return above.Key == path })
	})
}
