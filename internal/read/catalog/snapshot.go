package catalog

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/lektordir/lektor/lektordir"
)

// Snapshot is the feeds and entries of a lektor-dir at a moment. It does not change, and shares with
// others what did not change between them.
type Snapshot struct {
	Feeds []*Feed // those that are in src/, new/ or cur/, by hash
	// Missing is the number of feeds that [Catalog.Part] has not read yet.
	Missing int

	numbered []*Feed // by number; nil for those that are no more
	order    order   // all entries of these feeds
}

// order is places by rising keys.
type order []place

// place is where an entry is: its key, which no other has, and the numbers of its feed and of itself.
type place struct {
	key         uint64
	feed, entry uint32
}

// Feed returns a feed by its hash, nil if there is none.
func (s *Snapshot) Feed(hash string) *Feed {
	if i, ok := s.index(hash); ok {
		return s.Feeds[i]
	}
	return nil
}

// Only returns the snapshot with some of its feeds alone, and their entries.
func (s *Snapshot) Only(wanted func(*Feed) bool) *Snapshot {
	some := &Snapshot{Feeds: make([]*Feed, 0, len(s.Feeds)), numbered: make([]*Feed, len(s.numbered)), order: s.order}
	for _, f := range s.Feeds {
		if wanted(f) {
			some.Feeds = append(some.Feeds, f)
			some.numbered[f.number] = f
		}
	}
	return some
}

func (s *Snapshot) index(hash string) (i int, ok bool) {
	return slices.BinarySearchFunc(s.Feeds, hash,
		func(f *Feed, hash string) int { return strings.Compare(f.Hash, hash) })
}

// entry returns the entry at a place, unless it is no more.
func (s *Snapshot) entry(p place) (Entry, bool) {
	f := s.numbered[p.feed]
	if f == nil || f.states[p.entry]&gone != 0 {
		return Entry{}, false
	}
	return Entry{f, p.entry}, true
}

// Find returns the entry with a key.
func (s *Snapshot) Find(key uint64) (Entry, bool) {
	if i, ok := s.order.search(key); ok {
		return s.entry(s.order[i])
	}
	return Entry{}, false
}

// search returns the index of the first place with a key or a greater one, and whether it has the key.
func (o order) search(key uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(o, key, func(p place, key uint64) int { return cmp.Compare(p.key, key) })
}

// between returns the places with keys from a first one on, less than another.
func (o order) between(from, before uint64) order {
	begin, _ := o.search(from)
	end, _ := o.search(before)
	return o[begin:max(begin, end)]
}

// Between yields the entries with keys from a first one on, less than another, with their keys: the last one first, or
// the other way around if rising is set.
func (s *Snapshot) Between(from, before uint64, rising bool) iter.Seq2[uint64, Entry] {
	return func(yield func(uint64, Entry) bool) {
		places := s.order.between(from, before)
		for i := range places {
			if !rising {
				i = len(places) - 1 - i
			}
			if e, ok := s.entry(places[i]); ok && !yield(places[i].key, e) {
				return
			}
		}
	}
}

// Since yields the feeds that differ from those of an earlier snapshot, nil for all, with what they were
// then: nil for a feed that came. A feed that has gone is yielded without entries.
func (s *Snapshot) Since(old *Snapshot) iter.Seq2[*Feed, *Feed] {
	return func(yield func(was, is *Feed) bool) {
		if old == nil {
			old = &Snapshot{}
		}
		a, b := old.Feeds, s.Feeds
		for len(a)+len(b) > 0 {
			var was, is *Feed
			switch {
			case len(b) == 0 || len(a) > 0 && a[0].Hash < b[0].Hash:
				was, a = a[0], a[1:]
				is = &Feed{Hash: was.Hash}
			case len(a) == 0 || b[0].Hash < a[0].Hash:
				is, b = b[0], b[1:]
			default:
				was, is, a, b = a[0], b[0], a[1:], b[1:]
			}
			if was != is && !yield(was, is) {
				return
			}
		}
	}
}

// noNumber is the number of a feed that is no more.
const noNumber = 1<<32 - 1

// with returns the snapshot with some feeds as they are now. Without a key, their entries get no place in
// the order.
func (s *Snapshot) with(feeds []*Feed, key func(lektordir.Ref) uint64) *Snapshot {
	next := &Snapshot{Feeds: slices.Clone(s.Feeds), numbered: slices.Clone(s.numbered), order: s.order}
	var come []place
	gone := false
	for _, f := range feeds {
		old, was := s.Feed(f.Hash), 0
		if f == old || f.number == noNumber && old == nil {
			continue
		}
		if old != nil && old.number == f.number {
			was = len(old.names) // which are in the order
		} else if old != nil {
			next.numbered[old.number], gone = nil, true
		}
		next.Feeds = append(next.Feeds, f)
		if i, ok := s.index(f.Hash); ok {
			next.Feeds[i] = f
			next.Feeds = next.Feeds[:len(next.Feeds)-1]
		}
		if f.number == noNumber {
			continue
		}
		next.numbered = append(next.numbered, make([]*Feed, max(0, int(f.number)+1-len(next.numbered)))...)
		next.numbered[f.number] = f
		for i := was; i < len(f.names) && key != nil; i++ {
			come = append(come, place{key(f.ref(i)), f.number, uint32(i)})
		}
	}
	if slices.Equal(next.Feeds, s.Feeds) {
		return s
	}
	if len(next.Feeds) > len(s.Feeds) {
		slices.SortFunc(next.Feeds, func(a, b *Feed) int { return strings.Compare(a.Hash, b.Hash) })
	}
	if gone {
		next.Feeds = slices.DeleteFunc(next.Feeds, func(f *Feed) bool { return f.number == noNumber })
		next.order = slices.DeleteFunc(slices.Clone(next.order),
			func(p place) bool { return next.numbered[p.feed] == nil })
	}
	next.order = next.order.add(come, func(a, b place) int {
		x, y := next.numbered[a.feed], next.numbered[b.feed]
		return cmp.Or(strings.Compare(x.Hash, y.Hash),
			strings.Compare(x.ref(int(a.entry)).Unique, y.ref(int(b.entry)).Unique))
	})
	return next
}

// add returns the order with more places. If several places have one key, the first keeps it, which is that of o or
// the first in more. Each of the others gets the next key that is no other's.
func (o order) add(more []place, less func(a, b place) int) order {
	slices.SortFunc(more, func(a, b place) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return less(a, b)
	})
	first, rest := more[:0], []place(nil)
	for _, p := range more {
		if o.has(p.key) || len(first) > 0 && first[len(first)-1].key == p.key {
			rest = append(rest, p)
		} else {
			first = append(first, p)
		}
	}
	o = o.merge(first)
	free := uint64(0)
	for i := range rest {
		for free = max(free, rest[i].key); o.has(free); free++ {
		}
		rest[i].key = free
		free++
	}
	return o.merge(rest)
}

func (o order) has(key uint64) bool {
	_, ok := o.search(key)
	return ok
}

// merge returns the order with places whose keys it does not have, sorted.
func (o order) merge(more []place) order {
	if len(more) == 0 {
		return o
	}
	merged := make(order, 0, len(o)+len(more))
	for _, p := range more {
		i, _ := o.search(p.key)
		merged, o = append(append(merged, o[:i]...), p), o[i:]
	}
	return append(merged, o...)
}
