package entries

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// Selection says which entries are wanted.
type Selection struct {
	// Query says it; what has the flag T is wanted only if the query asks about it.
	Query *query.Query
	All   bool // read ones too, whatever the query says
	// Hidden wants also what is trashed, and what feeds have withdrawn, whatever the
	// query says.
	Hidden bool
	// Strict lists the directory strictly, see [lektordir.ListOptions]: for callers that
	// forget, delete or unpublish what is not selected.
	Strict bool
	// Newest limits to so many of the newest; 0 does not.
	Newest int
	// Order puts those first, with Newest, of which so many are kept; nil stands for
	// what is newest. It sees the fields of Want.
	Order func(a, b *Record) int
	// Want is what is read of each, in parallel; what lacks it is left out.
	Want lektordir.Fields
}

// An Index answers selections without reading the whole directory. See package index.
type Index interface {
	// Look gives what it knows; nil where the directory has to be read. The error is the
	// context's.
	Look(ctx context.Context) (View, error)
	// Failed is told the error of a View, and Missed that the directory was read, and of
	// how many entries.
	Failed(error)
	Missed(entries int)
}

// View is an [Index] at one moment.
type View interface {
	// Find calls yield for all entries that may be wanted, and for others. Its error is
	// one for [Index.Failed], or the context's.
	Find(ctx context.Context, w Wanted, yield func(Hit) bool) error
	// Tallies counts what a list shows, by the hashes of the feeds.
	Tallies() (map[string]Tally, error)
	// Dates calls yield for entries that a list shows, the unread ones alone if so asked,
	// with what is known of their dates.
	Dates(ctx context.Context, unread bool, yield func(feed, unique string, pubdate time.Time)) error
	// Complaints are what [lektordir.Dir.List] would have complained of.
	Complaints() []error
	Close()
}

// Tally is how many entries of a feed a list shows: of those that are not trashed all,
// the unread and the flagged ones.
type Tally struct{ All, Unread, Flagged int }

// Add counts an entry that is not trashed.
func (t *Tally) Add(r lektordir.Ref) {
	t.All++
	if r.Unread() {
		t.Unread++
	}
	if r.HasFlag('F') {
		t.Flagged++
	}
}

// Plus adds others.
func (t *Tally) Plus(o Tally) {
	t.All += o.All
	t.Unread += o.Unread
	t.Flagged += o.Flagged
}

// Wanted is what a [View] is asked for.
type Wanted struct {
	Query   *query.Query
	Matcher *query.Matcher
	Now     time.Time
	// These are about all entries, whatever the query says.
	OnlyUnread, SkipTrashed, Withdrawn bool
	Folders                            func(feed string) []string // of a feed by its hash
	Want                               lektordir.Fields           // of each entry, besides what the query needs
	// Enough, unless it is nil, tells whether nothing is wanted of what is dated at a
	// time or before.
	Enough func(time.Time) bool
}

// Hit is an entry that an [Index] knows.
type Hit struct {
	Ref lektordir.Ref
	// Feed is what [Record.Feed] tells of; nil where the index does not know.
	Feed  *lektordir.Feed
	Entry lektordir.Entry // with the fields of Have
	Have  lektordir.Fields
	// Words tells what words the entry has, see [query.Subject]; it may be called
	// concurrently until the View is closed.
	Words func(folded string) query.Verdict
}

// Select gives the entries of a selection, in no order that means anything
// unless Newest is set: then from the last of them to the first. Malformed ones among
// those that had to be opened are left out with a warning. The error is the context's.
//
// Every command that asks a query comes through here or [Store.Each], so that what
// knows the answers without reading the directory is asked in one place.
func (s *Store) Select(ctx context.Context, sel Selection) ([]*Record, error) {
	if sel.Newest > 0 {
		best := newBest(&sel)
		enough := best.enough
		if sel.Order != nil {
			enough = nil
		}
		if err := s.each(ctx, sel, taker{take: best.add, again: best.reset, enough: enough}); err != nil {
			return nil, err
		}
		return best.sorted(), nil
	}
	var found []*Record
	err := s.each(ctx, sel, taker{take: func(r *Record) { found = append(found, r) }, again: func() { found = nil }})
	return found, err
}

// Each calls f, one by one, for the entries of a selection, in no order that means
// anything. Unlike [Store.Select] it need not have all of them in memory, for those
// who only count. The error is the context's, or the first of f, which ends it.
func (s *Store) Each(ctx context.Context, sel Selection, f func(*Record) error) error {
	if sel.Newest > 0 {
		found, err := s.Select(ctx, sel)
		for i := 0; i < len(found) && err == nil; i++ {
			err = f(found[i])
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Of what was given when it has to begin anew, nothing is given twice.
	var given []uint64
	var before map[uint64]bool
	seed := maphash.MakeSeed()
	err := s.each(ctx, sel, taker{
		take: func(r *Record) {
			if ctx.Err() != nil {
				return
			}
			if s.Index != nil {
				h := maphash.Comparable(seed, [2]string{r.Ref.Feed, r.Ref.Unique})
				if before[h] {
					return
				}
				given = append(given, h)
			}
			if err := f(r); err != nil {
				cancel(err)
			}
		},
		again: func() {
			before = make(map[uint64]bool, len(given))
			for _, h := range given {
				before[h] = true
			}
		},
	})
	return cmp.Or(context.Cause(ctx), err)
}

// taker is who gets the entries of a selection.
type taker struct {
	take func(*Record)
	// again is called before all are given once more, or what take has was the wrong
	// half.
	again func()
	// enough, if it is not nil, tells whether nothing is wanted of what is dated at a
	// time or before.
	enough func(time.Time) bool
}

// each gives the entries of a selection, of which at least all are among them that
// Newest keeps.
func (s *Store) each(ctx context.Context, sel Selection, t taker) error {
	if sel.Newest > 0 && sel.Order == nil {
		sel.Want |= lektordir.FieldPubDate
	}
	ok, err := s.look(ctx, func(v View) error { return s.find(ctx, v, sel, t) })
	if ok || err != nil {
		return err
	}
	t.again()
	return s.scan(ctx, sel, t.take)
}

// look lets f ask the index. It reports false where the directory has to be read
// instead, and what f has got is void. The error is the context's.
func (s *Store) look(ctx context.Context, f func(View) error) (ok bool, err error) {
	if s.Index == nil {
		return false, nil
	}
	view, err := s.Index.Look(ctx)
	if view == nil || err != nil {
		return false, err
	}
	err = f(view)
	view.Close()
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		s.Index.Failed(err)
	}
	return err == nil, nil
}

// find finds the entries of a selection by an index.
func (s *Store) find(ctx context.Context, view View, sel Selection, t taker) error {
	for _, err := range view.Complaints() {
		s.Report(err)
	}
	m := sel.Query.Bind(s.Now)
	first := sel.Query.Fields() &^ lektordir.FieldContent
	var found []*Record
	flush := func() error {
		kept, err := Filter(ctx, found, func(r *Record) bool { return r.wanted(m, first, sel.Want) })
		for _, r := range kept {
			r.words = nil // it knows no more once the view is closed
			t.take(r)
		}
		found = found[:0]
		return err
	}
	w := Wanted{
		Query: sel.Query, Matcher: m, Now: s.Now, OnlyUnread: !sel.All && !sel.Query.MentionsState(),
		SkipTrashed: !sel.Hidden && !sel.Query.MentionsTrash(), Withdrawn: sel.Hidden || sel.Query.MentionsWithdrawn(), Folders: s.folders, Want: sel.Want,
	}
	if t.enough != nil {
		w.Enough = func(when time.Time) bool { return flush() != nil || t.enough(when) }
	}
	err := view.Find(ctx, w, func(h Hit) bool {
		r := &Record{Ref: h.Ref, s: s, feed: h.Feed, entry: h.Entry, have: h.Have, words: h.Words}
		if !sel.Query.Empty() {
			switch r.Match(m) {
			case query.No:
				return true
			case query.Maybe:
				r.maybe = true
			}
		}
		if found = append(found, r); len(found) < manyFound {
			return true
		}
		return flush() == nil
	})
	return cmp.Or(err, flush())
}

// manyFound is how many entries that an index knows are read at once, where they have
// to be.
const manyFound = 256

// scan finds the entries of a selection by reading the directory.
func (s *Store) scan(ctx context.Context, sel Selection, f func(*Record)) error {
	m := sel.Query.Bind(s.Now)
	onlyUnread := !sel.All && !sel.Query.MentionsState()
	first := sel.Query.Fields() &^ lektordir.FieldContent
	total := 0
	var found []*Record
	flush := func() error {
		kept, err := Filter(ctx, found, func(r *Record) bool { return r.wanted(m, first, sel.Want) })
		for i := 0; i < len(kept) && err == nil; i++ {
			f(kept[i])
		}
		found = found[:0]
		return err
	}
	o := lektordir.ListOptions{SkipTrashed: !sel.Hidden && !sel.Query.MentionsTrash(), Withdrawn: sel.Hidden || sel.Query.MentionsWithdrawn(), Strict: sel.Strict}
	var bad []error
	for refs, err := range s.Dir.ListFeeds(ctx, o) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			bad = append(bad, err)
		}
		total += len(refs)
		for _, ref := range refs {
			if onlyUnread && !ref.Unread() {
				continue
			}
			r := s.Record(ref)
			if !sel.Query.Empty() {
				switch r.Match(m) {
				case query.No:
					continue
				case query.Maybe:
					r.maybe = true
				}
			}
			found = append(found, r)
		}
		if len(found) >= manyScanned {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	s.Report(errors.Join(bad...))
	if err := flush(); err != nil {
		return err
	}
	if s.Index != nil {
		s.Index.Missed(total)
	}
	return nil
}

// manyScanned is how many entries are in memory at once, and those of a feed more, where
// the directory is read.
const manyScanned = 4096

// wanted reads what is needed to tell whether the entry is: cheap files first,
// the content only if those do not tell.
func (r *Record) wanted(m *query.Matcher, first, want lektordir.Fields) bool {
	if !r.maybe {
		return want == 0 || r.s.Usable(r.Read(want))
	}
	if !r.s.Usable(r.Read(want | first)) {
		return false
	}
	verdict := r.Match(m)
	if verdict == query.Maybe {
		if !r.s.Usable(r.Read(first | lektordir.FieldContent | lektordir.FieldType)) {
			return false
		}
		verdict = r.Match(m)
		r.Forget()
	}
	return verdict == query.Yes
}

// best keeps so many of the records it is given: a heap whose first is the one to go
// next.
type best struct {
	list  []*Record
	limit int
	order func(a, b *Record) int
}

func newBest(sel *Selection) *best {
	b := &best{limit: sel.Newest, order: sel.Order}
	if b.order == nil {
		b.order = func(a, b *Record) int { return ByDate(b, a) }
	}
	return b
}

func (b *best) Len() int           { return len(b.list) }
func (b *best) Less(i, j int) bool { return b.order(b.list[i], b.list[j]) > 0 }
func (b *best) Swap(i, j int)      { b.list[i], b.list[j] = b.list[j], b.list[i] }
func (b *best) Push(x any)         { b.list = append(b.list, x.(*Record)) }
func (b *best) Pop() any {
	last := len(b.list) - 1
	r := b.list[last]
	b.list[last] = nil
	b.list = b.list[:last]
	return r
}

func (b *best) add(r *Record) {
	switch {
	case len(b.list) < b.limit:
		heap.Push(b, r)
	case b.order(r, b.list[0]) < 0:
		b.list[0] = r
		heap.Fix(b, 0)
	}
}

func (b *best) reset() { b.list = nil }

// enough reports whether what is dated at a time or before is not among the newest.
func (b *best) enough(t time.Time) bool {
	return len(b.list) == b.limit && b.list[0].Date().Unix() > t.Unix()
}

// sorted gives what was kept, the last first.
func (b *best) sorted() []*Record {
	slices.SortFunc(b.list, func(x, y *Record) int { return b.order(y, x) })
	return b.list
}
