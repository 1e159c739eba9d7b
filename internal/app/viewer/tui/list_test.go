package tui

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// dated is a disk on which some entries share their dates.
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

// foldered returns a feed with folders that depend on its number.
func foldered(hash string) Feed {
	n, _ := strconv.Atoi(hash[1:])
	return Feed{Hash: hash, Title: hash, Folders: [][]string{nil, {"A"}, {"A / B", "C"}}[n%3]}
}

func (d dated) List(_ context.Context, feeds ...string) (map[string][]lektordir.Ref, error) {
	return maps.Clone(d.byFeed), nil
}

func (dated) Dates(_ context.Context, refs []*lektordir.Ref) ([]time.Time, bool) {
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

// An updated list equals a list that is made anew, after random arrivals, marks and removals, for
// every kind of list.
func TestListingWith(t *testing.T) {
	d := dated{newMemory(0), map[string][]lektordir.Ref{}}
	close(d.gate)
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
	updates := 0
	for range 300 {
		keep := map[key]bool{}
		empty := func() *snapshot { return &snapshot{feeds: map[string]*feedSnapshot{}} }
		put := func(s *snapshot, hash string, refs []lektordir.Ref) {
			d.byFeed[hash] = refs
			s.put(hash, slices.Clone(refs))
		}
		s := empty()
		clear(d.byFeed)
		for i := range 12 {
			s.feeds[feed(i)] = newFeedSnapshot(foldered(feed(i)))
			put(s, feed(i), some(feed(i)))
		}
		s.arrange()
		spec := listSpec{of: s.nodes[random.IntN(len(s.nodes))].id, all: random.IntN(2) == 0, order: order{by: entryOrders[random.IntN(len(entryOrders))], down: random.IntN(2) == 0}}
		work := func(s *snapshot, old *sortedList) *listWork {
			return &listWork{listSpec: spec, disk: d, snapshot: s, readHere: keep, old: old}
		}
		list := func(s *snapshot) *sortedList {
			l, err := work(s, nil).make(t.Context(), nil)
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
				switch i := random.IntN(13); { // the feed may be new
				case random.IntN(5) == 0:
					delete(next.feeds, feed(i))
					delete(d.byFeed, feed(i))
				case random.IntN(2) == 0 && next.feeds[feed(i)] != nil:
					// Entries arrive, and maybe the feed has another title.
					hash := feed(i)
					if f := foldered(hash); random.IntN(3) == 0 {
						f.Title = feed(random.IntN(12))
						next.feeds[hash] = newFeedSnapshot(f)
					}
					refs := slices.Clone(d.byFeed[hash])
					for _, r := range some(hash) {
						if !slices.ContainsFunc(refs, func(old lektordir.Ref) bool { return old.Unique == r.Unique }) {
							refs = append(refs, r)
						}
					}
					put(next, hash, refs)
				default:
					put(next, feed(i), some(feed(i)))
				}
			}
			next.arrange()
			for _, it := range l.items[:len(l.items)/3] {
				keep[keyOf(*it.ref)] = true
			}
			before := slices.Clone(l.items)
			want := list(next)
			got := work(next, l).update(t.Context())
			if !slices.Equal(before, l.items) {
				t.Fatal("update changed the old list")
			}
			if got != nil {
				updates++
				if !slices.EqualFunc(got.items, want.items, func(a, b *item) bool { return *a == *b }) || got.dated != want.dated {
					t.Fatalf("%+v: %d items, not %d", spec, len(got.items), len(want.items))
				}
			}
			l, s = want, next
			// The tally of the snapshot is that of the disk.
			read, err := newSnapshot(t.Context(), d, nil)
			if err != nil || read.all != s.all {
				t.Fatalf("%+v, not %+v, %v", read.all, s.all, err)
			}
		}
	}
	if updates < 500 {
		t.Errorf("only %d lists were updated", updates)
	}
}
