package spill

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
)

// Set is a set of texts of which only digests are in memory, 16 bytes each: so many that
// two texts of millions having the same one need not be thought of, whoever wrote them, as
// the digests are others in each run. It is used by one goroutine at a time.
type Set struct {
	seeds [2]maphash.Seed
	list  [][2]uint64 // sorted
	more  map[[2]uint64]bool
}

// mostUnsorted is how many digests come before they are sorted into the others.
const mostUnsorted = 1 << 14

// NewSet gives an empty set.
func NewSet() *Set {
	return &Set{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, more: map[[2]uint64]bool{}}
}

func (s *Set) of(text string) [2]uint64 {
	return [2]uint64{maphash.String(s.seeds[0], text), maphash.String(s.seeds[1], text)}
}

// Has tells whether a text is in the set.
func (s *Set) Has(text string) bool { return s.has(s.of(text)) }

func (s *Set) has(d [2]uint64) bool {
	if s.more[d] {
		return true
	}
	_, ok := slices.BinarySearchFunc(s.list, d, compare)
	return ok
}

// Add adds a text.
func (s *Set) Add(text string) {
	d := s.of(text)
	if s.has(d) {
		return
	}
	if s.more[d] = true; len(s.more) < max(mostUnsorted, len(s.list)/8) {
		return
	}
	// From the end on, each goes to its place.
	some := slices.SortedFunc(maps.Keys(s.more), compare)
	clear(s.more)
	old := len(s.list)
	s.list = append(s.list, some...)
	for to := len(s.list) - 1; len(some) > 0; to-- {
		if last := some[len(some)-1]; old > 0 && compare(s.list[old-1], last) > 0 {
			s.list[to] = s.list[old-1]
			old--
		} else {
			s.list[to] = last
			some = some[:len(some)-1]
		}
	}
}

func compare(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
