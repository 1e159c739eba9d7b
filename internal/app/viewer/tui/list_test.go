package tui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// dated is a disk on which some entries share their dates.
type dated struct {
	*memory
	byFeed map[string][]lektordir.Ref
	titles map[string]string // by hash; those of others are the hash
}

func (d dated) Now(ctx context.Context, _ catalog.Part) (*catalog.Snapshot, error) {
	return d.names.now(ctx, d)
}

func (d dated) Feeds(context.Context) (feeds []Feed, err error) {
	for hash := range d.byFeed {
		f := foldered(hash)
		f.Title = cmp.Or(d.titles[hash], f.Title)
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// foldered returns a feed with folders that depend on its number.
func foldered(hash string) Feed {
	n, _ := strconv.Atoi(hash[1:])
	return Feed{Hash: hash, Title: hash, Folders: [][]string{nil, {"A"}, {"A / B", "C"}}[n%3]}
}

func (d dated) List(context.Context) (map[string][]lektordir.Ref, error) {
	return maps.Clone(d.byFeed), nil
}

func (dated) Dates(_ context.Context, entries []catalog.Entry) ([]time.Time, bool) {
	dates := make([]time.Time, len(entries))
	for i, e := range entries {
		r := e.Ref()
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
	d := dated{newMemory(0), map[string][]lektordir.Ref{}, nil}
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
		titles := map[string]string{}
		clear(d.byFeed)
		for i := range 12 {
			d.byFeed[feed(i)] = some(feed(i))
		}
		d.titles = titles
		read := func(old *snapshot) *snapshot {
			names, err := d.Now(t.Context(), catalog.Part{})
			if err != nil {
				t.Fatal(err)
			}
			return newSnapshot(old, names, nil)
		}
		s := read(nil)
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
			for range random.IntN(3) {
				hash := feed(random.IntN(13)) // the feed may be new
				switch old, ok := d.byFeed[hash]; {
				case random.IntN(5) == 0:
					delete(d.byFeed, hash)
				case random.IntN(2) == 0 && ok:
					// Entries arrive, and maybe the feed has another title.
					if random.IntN(3) == 0 {
						titles[hash] = feed(random.IntN(12))
					}
					refs := slices.Clone(old)
					for _, r := range some(hash) {
						if !slices.ContainsFunc(refs, func(old lektordir.Ref) bool { return old.Unique == r.Unique }) {
							refs = append(refs, r)
						}
					}
					d.byFeed[hash] = refs
				default:
					d.byFeed[hash] = some(hash)
				}
			}
			next := read(s)
			for _, it := range l.items[:len(l.items)/3] {
				keep[it.ID()] = true
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
			// A snapshot that was updated equals one that is made anew.
			if anew := newSnapshot(nil, next.names, nil); !reflect.DeepEqual(anew, next) {
				t.Fatalf("%+v, not %+v", next, anew)
			}
			var sum entrystore.Tally
			for _, refs := range d.byFeed {
				for _, r := range refs {
					sum.Add(r)
				}
			}
			if next.all != sum {
				t.Fatalf("%+v, not %+v", next.all, sum)
			}
			l, s = want, next
		}
	}
	if updates < 500 {
		t.Errorf("only %d lists were updated", updates)
	}
}
