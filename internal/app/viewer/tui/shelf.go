package tui

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/workers"
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
	budget          *budget
	// lean tells that of the entries those alone are here that are unread, flagged, or were
	// read here: the others are listed when a list is to have them.
	lean bool
}

// budget is how much is in memory. It does not change.
type budget struct {
	most   int   // entries, of which all are on the shelf
	listed int   // in a list of a lean shelf that has read ones
	read   *kept // those that were read here
}

// mostHere is how many entries there may be, of which all are in memory, some 200 bytes
// each, and mostListed how many of more are in a list that has read ones, too, which take
// as much again: more than anybody goes through. Of what is unread there are few.
const mostHere, mostListed = 200_000, 50_000

// of gives of a feed's entries those that are here.
func (b *budget) of(refs []lektordir.Ref, lean bool) []lektordir.Ref {
	if !lean {
		return refs
	}
	var here []lektordir.Ref
	for _, ref := range refs {
		if ref.Unread() || ref.HasFlag('F') || b.read.has(keyOf(ref)) {
			here = append(here, ref)
		}
	}
	return here
}

// onShelf is a feed, with how many entries it has, and those that are here by time of
// delivery.
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
func newShelf(ctx context.Context, d Disk, feeds []Feed, b *budget) (*shelf, error) {
	s := &shelf{feeds: map[string]*onShelf{}, budget: b}
	var work workers.Group
	if feeds == nil {
		work.Go(func() (err error) {
			feeds, err = d.Feeds(ctx)
			return err
		})
	}
	work.Go(func() error {
		n := 0
		for refs, err := range d.List(ctx) {
			if err != nil {
				return err
			}
			for hash, of := range byFeed(refs) {
				s.put(hash, of)
			}
			if n += len(refs); n > b.most && !s.lean {
				s.lean = true
				for _, f := range s.feeds {
					f.refs = b.of(f.refs, true)
				}
			}
		}
		return nil
	})
	if err := work.Wait(); err != nil {
		return nil, err
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
			return newShelf(ctx, d, nil, s.budget) // a feed that is new has a name and folders
		}
	}
	t := &shelf{feeds: maps.Clone(s.feeds), saved: s.saved, budget: s.budget, lean: s.lean}
	for _, hash := range feeds {
		t.put(hash, nil)
	}
	for refs, err := range d.List(ctx, feeds...) {
		if err != nil {
			return nil, err
		}
		for hash, of := range byFeed(refs) {
			t.put(hash, of)
		}
	}
	t.arrange()
	return t, nil
}

// byFeed gives the entries of each feed in a list that is by feed.
func byFeed(refs []lektordir.Ref) iter.Seq2[string, []lektordir.Ref] {
	return func(yield func(string, []lektordir.Ref) bool) {
		for len(refs) > 0 {
			n := 1
			for n < len(refs) && refs[n].Feed == refs[0].Feed {
				n++
			}
			if !yield(refs[0].Feed, refs[:n:n]) {
				return
			}
			refs = refs[n:]
		}
	}
}

// put gives a feed its entries.
func (s *shelf) put(hash string, refs []lektordir.Ref) {
	var f *onShelf
	if old := s.feeds[hash]; old != nil {
		f = &onShelf{Feed: old.Feed, place: old.place}
	} else {
		f = newOnShelf(Feed{Hash: hash, Title: hash})
	}
	f.refs = s.budget.of(refs, s.lean)
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

// in gives p the entries of which a list may be, of some feeds alone where others is not
// nil. What is read is among them if the list is to have it, or if it is here.
func (s *shelf) in(ctx context.Context, d Disk, w wanted, others map[string]bool, p *picked) error {
	hashes := s.feedsOf(w.of)
	if others != nil {
		hashes = slices.DeleteFunc(hashes, func(hash string) bool { return !others[hash] })
	}
	if s.lean && w.of.kind != flaggedNode && (w.all || w.text() != "") {
		if len(hashes) == 0 {
			return nil
		}
		for refs, err := range d.List(ctx, hashes...) {
			if err != nil {
				return err
			}
			p.add(refs)
		}
		return nil
	}
	if w.of.kind != flaggedNode {
		n := 0
		for _, hash := range hashes {
			n += len(s.feeds[hash].refs)
		}
		p.refs = make([]lektordir.Ref, 0, n)
	}
	for _, hash := range hashes {
		refs := s.feeds[hash].refs
		if w.of.kind == flaggedNode {
			refs = slices.DeleteFunc(slices.Clone(refs), func(r lektordir.Ref) bool { return !r.HasFlag('F') })
		}
		p.add(refs)
	}
	return nil
}

// among gives p of entries that were found those that a node is of.
func (s *shelf) among(of id, found []lektordir.Ref, p *picked) {
	feeds := map[string]bool{}
	for _, hash := range s.feedsOf(of) {
		feeds[hash] = true
	}
	p.add(slices.DeleteFunc(found, func(r lektordir.Ref) bool {
		return !feeds[r.Feed] || of.kind == flaggedNode && !r.HasFlag('F')
	}))
}

// pick begins to pick the entries of a list.
func (s *shelf) pick(w wanted, keep *kept) *picked {
	p := &picked{oldest: w.oldest, unread: !w.lists(), keep: keep}
	if s.lean && w.lists() && w.of.kind != flaggedNode {
		p.most = s.budget.listed
	}
	return p
}

// picked are the entries of a list: of those that come the ones that it shows, and if they
// are too many, those that were delivered last, or first.
type picked struct {
	most   int // 0 for any number
	oldest bool
	unread bool // alone, and what is in keep
	keep   *kept

	refs  []lektordir.Ref
	total int       // how many there were
	bound time.Time // where some were left out: when the last that was not was delivered
}

func (p *picked) add(refs []lektordir.Ref) {
	for _, r := range refs {
		if !p.unread || r.Unread() || p.keep.has(keyOf(r)) {
			p.refs = append(p.refs, r)
			p.total++
		}
	}
	if p.most > 0 && len(p.refs) >= 2*p.most {
		p.cut()
	}
}

// of is how many there were, where some were left out; else 0.
func (p *picked) of() int {
	if p.bound.IsZero() {
		return 0
	}
	return p.total
}

// beyond tells whether an entry is to be left out by when it was delivered.
func (p *picked) beyond(r lektordir.Ref) bool {
	c := r.Delivered().Compare(p.bound)
	return !p.bound.IsZero() && (c > 0) == p.oldest && c != 0
}

// cut leaves out what is too much.
func (p *picked) cut() {
	if p.most == 0 || len(p.refs) <= p.most {
		return
	}
	slices.SortFunc(p.refs, func(a, b lektordir.Ref) int {
		c := cmp.Or(a.Delivered().Compare(b.Delivered()), cmp.Compare(a.Unique, b.Unique), cmp.Compare(a.Feed, b.Feed))
		if !p.oldest {
			c = -c
		}
		return c
	})
	p.bound = p.refs[p.most-1].Delivered()
	clear(p.refs[p.most:])
	p.refs = p.refs[:p.most]
}

// inFolder tells whether one of folders is that of a folded path, or below it.
func inFolder(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return slices.ContainsFunc(entries.FolderPath(f), func(above entries.Folder) bool { return above.Key == path })
	})
}
