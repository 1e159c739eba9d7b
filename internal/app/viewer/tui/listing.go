package tui

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// item is an entry in a list. It does not change: what is marked is another one.
type item struct {
	ref  lektordir.Ref
	date time.Time
}

// key is what stays of an entry when it moves.
type key struct{ feed, unique string }

func keyOf(r lektordir.Ref) key { return key{r.Feed, r.Unique} }

// wanted says what a list is of.
type wanted struct {
	of     id
	query  string // of a search in it
	all    bool   // read ones too
	oldest bool   // first
}

// listing is a list that was made: of which shelf, and what it is of. It never changes.
type listing struct {
	wanted
	shelf *shelf
	items []*item
	whole bool // all dates are known
}

// datesWithin is how long a list waits for the dates of its entries before it is
// shown in the order of their delivery, which is nearly the same.
const datesWithin = 150 * time.Millisecond

// list makes a list. What is in keep is in it although it is read.
func (s *shelf) list(ctx context.Context, d Disk, w wanted, keep *kept) *listing {
	items, whole := sorted(ctx, d, w.pick(s.entries(w.of, nil), keep), w.oldest)
	return &listing{wanted: w, shelf: s, items: items, whole: whole}
}

// pick removes entries that are read, unless the list has them or they are in keep.
func (w wanted) pick(refs []lektordir.Ref, keep *kept) []lektordir.Ref {
	if w.lists() {
		return refs
	}
	return slices.DeleteFunc(refs, func(r lektordir.Ref) bool { return !r.Unread() && !keep.has(keyOf(r)) })
}

// lists tells whether a list has what is read, too.
func (w wanted) lists() bool { return w.all || w.of.kind == flaggedNode }

// with makes the same list of another shelf. Only feeds that are others there are looked
// at: of a hundred thousand entries those of ten feeds, for as long as a fetcher delivers.
// ok is false where it is better made from the beginning.
func (l *listing) with(ctx context.Context, d Disk, s *shelf, keep *kept) (made *listing, ok bool) {
	others := map[string]bool{}
	n := 0
	for hash, f := range s.feeds {
		if l.shelf.feeds[hash] != f {
			others[hash] = true
			n += f.All
		}
	}
	for hash := range l.shelf.feeds {
		if s.feeds[hash] == nil {
			others[hash] = true
		}
	}
	if len(others) == 0 {
		return &listing{wanted: l.wanted, shelf: s, items: l.items, whole: l.whole}, true
	}
	if n > len(l.items)/2 {
		return nil, false
	}
	fresh, whole := sorted(ctx, d, l.pick(s.entries(l.of, others), keep), l.oldest)
	items := make([]*item, 0, len(l.items)+len(fresh))
	for _, it := range l.items {
		if others[it.ref.Feed] {
			continue
		}
		for len(fresh) > 0 && compareItems(fresh[0], it, l.oldest) < 0 {
			items, fresh = append(items, fresh[0]), fresh[1:]
		}
		items = append(items, it)
	}
	items = append(items, fresh...)
	return &listing{wanted: l.wanted, shelf: s, items: items, whole: l.whole && whole}, true
}

// compareItems gives the order of a list.
func compareItems(a, b *item, oldest bool) int {
	c := a.date.Compare(b.date)
	if c == 0 {
		c = cmp.Or(cmp.Compare(a.ref.Unique, b.ref.Unique), cmp.Compare(a.ref.Feed, b.ref.Feed))
	}
	if !oldest {
		c = -c
	}
	return c
}

// sorted puts entries in order. whole is false when not all dates are known yet.
func sorted(ctx context.Context, d Disk, refs []lektordir.Ref, oldest bool) (items []*item, whole bool) {
	ctx, cancel := context.WithTimeout(ctx, datesWithin)
	defer cancel()
	dates, whole := d.Dates(ctx, refs)
	// What is moved while it is sorted is small: of each entry its date, and where it is.
	type place struct {
		secs     int64
		nanos, i int32
	}
	order := make([]place, len(refs))
	all := make([]item, len(refs))
	for i, t := range dates {
		order[i] = place{t.Unix(), int32(t.Nanosecond()), int32(i)}
		all[i] = item{refs[i], t}
	}
	slices.SortFunc(order, func(a, b place) int {
		c := cmp.Or(cmp.Compare(a.secs, b.secs), cmp.Compare(a.nanos, b.nanos))
		switch {
		case c == 0:
			return compareItems(&all[a.i], &all[b.i], oldest)
		case !oldest:
			c = -c
		}
		return c
	})
	items = make([]*item, len(refs))
	for k, at := range order {
		items[k] = &all[at.i]
	}
	return items, whole
}
