package tui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
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

func (d dated) Feeds(context.Context) (feeds []tree.Feed, err error) {
	for hash := range d.byFeed {
		f := foldered(hash)
		f.Title = cmp.Or(d.titles[hash], f.Title)
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// foldered returns a feed with folders that depend on its number.
func foldered(hash string) tree.Feed {
	n, _ := strconv.Atoi(hash[1:])
	return tree.Feed{Hash: hash, Title: hash, Folders: [][]string{nil, {"A"}, {"A / B", "C"}}[n%3]}
}

func (d dated) List(context.Context) (map[string][]lektordir.Ref, error) {
	return maps.Clone(d.byFeed), nil
}

func (dated) Dates(_ context.Context, entries []catalog.Entry) ([]list.Date, bool) {
	dates := make([]list.Date, len(entries))
	for i, e := range entries {
		r := e.Ref()
		sum := 0
		for _, c := range r.Feed + r.Unique {
			sum = sum*7 + int(c)
		}
		dates[i] = list.DateOf(time.Unix(int64(sum%50), 0))
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
		keep := map[part.Key]bool{}
		titles := map[string]string{}
		clear(d.byFeed)
		for i := range 12 {
			d.byFeed[feed(i)] = some(feed(i))
		}
		d.titles = titles
		read := func() *tree.Snapshot {
			names, err := d.Now(t.Context(), catalog.Part{})
			if err != nil {
				t.Fatal(err)
			}
			return tree.NewSnapshot(names, nil)
		}
		s := read()
		nodes := []tree.ID{{Kind: tree.AllNode}, {Kind: tree.FlaggedNode}}
		for _, hash := range slices.Sorted(maps.Keys(s.Feeds)) {
			nodes = append(nodes, tree.ID{Kind: tree.FeedNode, Name: hash})
		}
		spec := list.Spec{Of: nodes[random.IntN(len(nodes))], All: random.IntN(2) == 0, Order: tree.Order{By: tree.EntryOrders[random.IntN(len(tree.EntryOrders))], Down: random.IntN(2) == 0}}
		work := func(s *tree.Snapshot, old *list.SortedList) *list.Work {
			return &list.Work{Spec: spec, Disk: d, Snapshot: s, ReadHere: keep, Old: old}
		}
		sorted := func(s *tree.Snapshot) *list.SortedList {
			l, err := work(s, nil).Make(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := sorted(s)
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
			next := read()
			for _, it := range l.Items[:len(l.Items)/3] {
				keep[it.ID()] = true
			}
			before := slices.Clone(l.Items)
			want := sorted(next)
			got := work(next, l).Update(t.Context())
			if !slices.Equal(before, l.Items) {
				t.Fatal("update changed the old list")
			}
			if got != nil {
				updates++
				if !slices.EqualFunc(got.Items, want.Items, func(a, b *list.Item) bool { return *a == *b }) || got.Dated != want.Dated {
					t.Fatalf("%+v: %d items, not %d", spec, len(got.Items), len(want.Items))
				}
			}
			var sum entrystore.Tally
			for _, refs := range d.byFeed {
				for _, r := range refs {
					sum.Add(r)
				}
			}
			if next.All != sum {
				t.Fatalf("%+v, not %+v", next.All, sum)
			}
			l, s = want, next
		}
	}
	if updates < 500 {
		t.Errorf("only %d lists were updated", updates)
	}
}
