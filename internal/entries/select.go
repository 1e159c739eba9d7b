package entries

import (
	"container/heap"
	"context"
	"slices"

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
	// Newest limits to so many of the newest; 0 does not.
	Newest int
	// Order puts those first, with Newest, of which so many are kept; nil stands for
	// what is newest. It sees the fields of Want.
	Order func(a, b *Record) int
	// Want is what is read of each, in parallel; what lacks it is left out.
	Want lektordir.Fields
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
		if err := s.each(ctx, sel, best.add); err != nil {
			return nil, err
		}
		return best.sorted(), nil
	}
	var found []*Record
	err := s.each(ctx, sel, func(r *Record) { found = append(found, r) })
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
	var failed error
	err := s.each(ctx, sel, func(r *Record) {
		if failed == nil {
			failed = f(r)
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

// each calls f for the entries of a selection, of which at least all are among them
// that Newest keeps.
func (s *Store) each(ctx context.Context, sel Selection, f func(*Record)) error {
	if sel.Newest > 0 && sel.Order == nil {
		sel.Want |= lektordir.FieldPubDate
	}
	return s.scan(ctx, sel, f)
}

// scan finds the entries of a selection by reading the directory.
func (s *Store) scan(ctx context.Context, sel Selection, f func(*Record)) error {
	refs, err := s.List(ctx, lektordir.ListOptions{SkipTrashed: !sel.Hidden && !sel.Query.MentionsTrash(), Withdrawn: sel.Hidden || sel.Query.MentionsWithdrawn()})
	if err != nil {
		return err
	}
	m := sel.Query.Bind(s.Now)
	onlyUnread := !sel.All && !sel.Query.MentionsState()
	found := make([]*Record, 0, len(refs))
	open := sel.Want != 0
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
				r.maybe, open = true, true
			}
		}
		found = append(found, r)
	}
	if open {
		first := sel.Query.Fields() &^ lektordir.FieldContent
		if found, err = Filter(ctx, found, func(r *Record) bool { return r.wanted(m, first, sel.Want) }); err != nil {
			return err
		}
	}
	for _, r := range found {
		f(r)
	}
	return nil
}

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

// sorted gives what was kept, the last first.
func (b *best) sorted() []*Record {
	slices.SortFunc(b.list, func(x, y *Record) int { return b.order(y, x) })
	return b.list
}
