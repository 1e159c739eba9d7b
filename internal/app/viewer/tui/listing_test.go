package tui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// dated is a disk on which each entry has a date of its own, or one with others.
type dated struct{ *memory }

func (dated) Dates(_ context.Context, refs []lektordir.Ref) ([]time.Time, bool) {
	dates := make([]time.Time, len(refs))
	for i, r := range refs {
		sum := 0
		for _, c := range r.Feed + r.Unique {
			sum = sum*7 + int(c)
		}
		dates[i] = time.Unix(int64(sum%50), 0)
	}
	return dates, true
}

// A list into which only what changed was put is the one that is made from the beginning:
// whatever came, was marked, went, and whatever is listed.
func TestListingWith(t *testing.T) {
	d := dated{newMemory(0)}
	random := rand.New(rand.NewPCG(1, 2))
	feed := func(i int) string { return fmt.Sprintf("f%d", i) }
	some := func(hash string) []lektordir.Ref {
		var refs []lektordir.Ref
		for k := range random.IntN(12) {
			r := lektordir.Ref{Feed: hash, Unique: fmt.Sprintf("%d.%d.h", 1700000000+random.IntN(99), k), Place: lektordir.New}
			if f := []string{"", "2,", "2,S", "2,F", "2,FS"}[random.IntN(5)]; f != "" {
				r.Place, r.Info = lektordir.Cur, f
			}
			refs = append(refs, r)
		}
		return refs
	}
	taken := 0
	for range 300 {
		s := &shelf{feeds: map[string]*onShelf{}}
		for i := range 12 {
			s.feeds[feed(i)] = newOnShelf(Feed{Hash: feed(i), Title: feed(i), Folders: [][]string{nil, {"A"}, {"A / B", "C"}}[i%3]})
			s.put(feed(i), some(feed(i)))
		}
		s.arrange()
		keep := &kept{}
		w := wanted{of: s.nodes[random.IntN(len(s.nodes))].id, all: random.IntN(2) == 0, oldest: random.IntN(2) == 0}
		l := s.list(t.Context(), d, w, keep)
		for range 5 {
			next := &shelf{feeds: map[string]*onShelf{}}
			for hash, f := range s.feeds {
				next.feeds[hash] = f
			}
			for range random.IntN(3) {
				switch i := random.IntN(13); { // one of them may be new
				case random.IntN(5) == 0:
					delete(next.feeds, feed(i))
				default:
					next.put(feed(i), some(feed(i)))
				}
			}
			next.arrange()
			for _, it := range l.items[:len(l.items)/3] {
				keep.add(keyOf(it.ref))
			}
			before := slices.Clone(l.items)
			want := next.list(t.Context(), d, w, keep)
			got, ok := l.with(t.Context(), d, next, keep)
			if !slices.Equal(before, l.items) {
				t.Fatal("the list that there was is another one")
			}
			if ok {
				taken++
				if !slices.EqualFunc(got.items, want.items, func(a, b *item) bool { return *a == *b }) || got.whole != want.whole {
					t.Fatalf("%+v: %d items, not %d", w, len(got.items), len(want.items))
				}
			}
			l, s = want, next
		}
	}
	if taken < 500 {
		t.Errorf("only %d lists were made so", taken)
	}
}
