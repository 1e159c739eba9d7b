package tui

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// dated is a disk on which each entry has a date of its own, or one with others.
type dated struct {
	*memory
	byFeed map[string][]lektordir.Ref
}

func (d dated) Feeds(context.Context) (feeds []Feed, err error) {
	for hash := range d.byFeed {
		feeds = append(feeds, foldered(hash))
	}
	return feeds, nil
}

// foldered gives a feed whose folders are those of its number.
func foldered(hash string) Feed {
	n, _ := strconv.Atoi(hash[1:])
	return Feed{Hash: hash, Title: hash, Folders: [][]string{nil, {"A"}, {"A / B", "C"}}[n%3]}
}

func (d dated) List(_ context.Context, feeds ...string) iter.Seq2[[]lektordir.Ref, error] {
	if len(feeds) == 0 {
		feeds = slices.Sorted(maps.Keys(d.byFeed))
	}
	return func(yield func([]lektordir.Ref, error) bool) {
		for _, hash := range feeds {
			if !yield(slices.Clone(d.byFeed[hash]), nil) {
				return
			}
		}
	}
}

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
	for _, lean := range []bool{false, true} {
		t.Run(fmt.Sprintf("lean %t", lean), func(t *testing.T) { listingWith(t, lean) })
	}
}

func listingWith(t *testing.T, lean bool) {
	d := dated{newMemory(0), map[string][]lektordir.Ref{}}
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
		keep := &kept{}
		empty := func() *shelf { return &shelf{feeds: map[string]*onShelf{}, budget: &budget{read: keep}, lean: lean} }
		put := func(s *shelf, hash string) {
			d.byFeed[hash] = some(hash)
			s.put(hash, slices.Clone(d.byFeed[hash]))
		}
		s := empty()
		clear(d.byFeed)
		for i := range 12 {
			s.feeds[feed(i)] = newOnShelf(foldered(feed(i)))
			put(s, feed(i))
		}
		s.arrange()
		w := wanted{of: s.nodes[random.IntN(len(s.nodes))].id, all: random.IntN(2) == 0, oldest: random.IntN(2) == 0}
		list := func(s *shelf) *listing {
			l, err := s.list(t.Context(), d, w, keep)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := list(s)
		for range 5 {
			next := empty()
			for hash, f := range s.feeds {
				next.feeds[hash] = f
			}
			for range random.IntN(3) {
				switch i := random.IntN(13); { // one of them may be new
				case random.IntN(5) == 0:
					delete(next.feeds, feed(i))
					delete(d.byFeed, feed(i))
				default:
					put(next, feed(i))
				}
			}
			next.arrange()
			for _, it := range l.items[:len(l.items)/3] {
				keep.add(keyOf(it.ref))
			}
			before := slices.Clone(l.items)
			want := list(next)
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
			// Of what is on the disk all shelves make the same list.
			var items [2][]item
			for i, most := range []int{0, 1 << 20} {
				made, err := newShelf(t.Context(), d, nil, &budget{most: most, read: keep})
				if err != nil {
					t.Fatal(err)
				}
				if made.lean != (most == 0) && len(made.nodes) > 2 || made.all != s.all {
					t.Fatalf("lean %t, %+v of %+v", made.lean, made.all, s.all)
				}
				for _, it := range list(made).items {
					items[i] = append(items[i], *it)
				}
			}
			if !slices.Equal(items[0], items[1]) {
				t.Fatalf("%+v:\n%v\n%v", w, items[0], items[1])
			}
		}
	}
	if taken < 500 {
		t.Errorf("only %d lists were made so", taken)
	}
}

// Of too many those are picked that were delivered last, or first, however they come.
func TestPicked(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		p := &picked{most: 1 + random.IntN(20), oldest: random.IntN(2) == 0}
		var all []lektordir.Ref
		for f := range random.IntN(12) {
			var refs []lektordir.Ref
			for k := range random.IntN(12) {
				refs = append(refs, lektordir.Ref{Feed: fmt.Sprint("f", f), Unique: fmt.Sprintf("%d.%d.h", 1700000000+random.IntN(50), k), Place: lektordir.Cur, Info: "2,S"})
			}
			p.add(refs)
			all = append(all, refs...)
		}
		p.cut()
		slices.SortFunc(all, func(a, b lektordir.Ref) int {
			c := cmp.Or(strings.Compare(a.Unique, b.Unique), strings.Compare(a.Feed, b.Feed))
			if p.oldest {
				return c
			}
			return -c
		})
		left := all[min(len(all), p.most):]
		all = all[:len(all)-len(left)]
		got := slices.SortedFunc(slices.Values(p.refs), func(a, b lektordir.Ref) int { return strings.Compare(a.Path(), b.Path()) })
		want := slices.SortedFunc(slices.Values(all), func(a, b lektordir.Ref) int { return strings.Compare(a.Path(), b.Path()) })
		if !slices.Equal(got, want) {
			t.Fatalf("%+v\n%v\n%v", p, got, want)
		}
		if of := len(all) + len(left); len(left) > 0 && p.of() != of || len(left) == 0 && p.of() != 0 {
			t.Fatalf("%d of %d", p.of(), of)
		}
		for _, r := range want {
			if p.beyond(r) {
				t.Fatalf("%s is beyond %s", r.Unique, p.bound)
			}
		}
		for _, r := range left {
			if !p.beyond(r) && !r.Delivered().Equal(p.bound) {
				t.Fatalf("%s is not beyond %s", r.Unique, p.bound)
			}
		}
	}
}

// A list of very many, read ones too, has some of them, and says of how many.
func TestSomeOfMany(t *testing.T) {
	d := newMemory(40)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.budget.listed = 10
	k.await("1/40 ") // unread ones are never too many
	k.press("a")
	k.await("1/10 of 40")
	k.await("Title 39")
	k.press("s")
	k.await("Title 00")
	k.await("of 40")
	k.press("s")
	k.await("Title 39")
	k.press("enter", "enter", "q")
	k.until("read", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return !k.scanning && !k.list.busy && len(d.marks) == 1
	})
	k.await("/10 of 40")
	d.mu.Lock()
	d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: "1700000099.1.h", Place: lektordir.New})
	d.mu.Unlock()
	k.update(changedMsg{[]string{"f"}})
	k.await("of 41")
	k.await("Title 99")
}
