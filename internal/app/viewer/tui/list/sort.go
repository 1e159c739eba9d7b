package list

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// Item is an entry in a list. It is immutable.
type Item struct {
	catalog.Entry
	date Date
	text string // to sort by before the date; "" if the order is by date only
}

// Date is the date of an entry in microseconds of Unix time. A list has millions of them.
type Date int64

// DateOf returns the date of a time.
func DateOf(t time.Time) Date { return Date(t.UnixMicro()) }

// Time returns the time of a date.
func (d Date) Time() time.Time { return time.UnixMicro(int64(d)).UTC() }

// Spec specifies the entries of a list and their order.
type Spec struct {
	Of    tree.ID
	Query string // search in the node; "" if none
	All   bool   // read entries too
	tree.Order
}

// IncludesRead reports whether the list has read entries too.
func (w Spec) IncludesRead() bool { return w.All || w.Of.Kind == tree.FlaggedNode }

// text returns the query of the list, "" if it needs none.
func (w Spec) text() string {
	text := strings.TrimSpace(w.Query)
	if w.Of.Kind != tree.SavedNode {
		return text
	}
	saved := `query:"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w.Of.Name) + `"`
	if text != "" {
		saved += " (" + text + ")"
	}
	return saved
}

// SortedList is a complete list of a snapshot. It is immutable.
type SortedList struct {
	Spec
	snapshot *tree.Snapshot
	Items    []*Item
	Dated    bool // all dates are known
}

// Work holds the inputs for a list. It is used in a goroutine of its own.
type Work struct {
	Spec
	Disk     Disk
	Snapshot *tree.Snapshot
	ReadHere map[part.Key]bool // read entries that stay in the list
	Old      *SortedList       // the list before; may be nil
}

// Make makes the list. If the texts to sort by take long, provisional gets the entries by date meanwhile; it may be
// nil.
func (w *Work) Make(ctx context.Context, provisional func([]*Item)) (*SortedList, error) {
	text := w.text()
	if text == "" && w.again() {
		if list := w.Update(ctx); list != nil {
			return list, nil
		}
	}
	if text == "" {
		return w.sorted(ctx, w.unread(w.Snapshot.Entries(w.Of, nil)), provisional), nil
	}
	found, err := w.Disk.Search(ctx, text, func(flags bool) []catalog.Entry {
		entries := w.Snapshot.Entries(w.Of, nil)
		if w.Of.Kind == tree.SavedNode && w.Query == "" && !flags {
			return w.unread(entries) // as ls does, unless the query has a term about flags
		}
		return entries
	})
	if err != nil {
		return nil, err
	}
	return w.sorted(ctx, found, provisional), nil
}

// again reports whether the list is on the screen already.
func (w *Work) again() bool { return w.Old != nil && w.Old.Spec == w.Spec }

// unread removes read entries, unless the list includes them or they are in readHere.
func (w *Work) unread(entries []catalog.Entry) []catalog.Entry {
	if w.IncludesRead() {
		return entries
	}
	return slices.DeleteFunc(entries, func(e catalog.Entry) bool {
		return !e.Unread() && (len(w.ReadHere) == 0 || !w.ReadHere[e.ID()])
	})
}

// Update returns the old list with the entries of changed feeds replaced. While a fetcher
// delivers, update sorts the entries of a few feeds instead of all. It returns nil if sorting all
// entries is faster.
func (w *Work) Update(ctx context.Context) *SortedList {
	changed := map[string]bool{}
	n := 0
	for _, f := range w.Snapshot.Names.Since(w.Old.snapshot.Names) {
		changed[f.Hash] = true
		n += f.Shown
	}
	if n > len(w.Old.Items)/2 {
		return nil
	}
	list := w.sorted(ctx, w.unread(w.Snapshot.Entries(w.Of, changed)), nil)
	fresh := list.Items
	items := make([]*Item, 0, len(w.Old.Items)+len(fresh))
	for _, it := range w.Old.Items {
		if changed[it.Feed.Hash] {
			continue
		}
		for len(fresh) > 0 && compareItems(fresh[0], it, w.Order) < 0 {
			items, fresh = append(items, fresh[0]), fresh[1:]
		}
		items = append(items, it)
	}
	list.Items = append(items, fresh...)
	list.Dated = list.Dated && w.Old.Dated
	return list
}

// datesWithin is how long a list waits for the dates of its entries, and arrivalsWithin how long, if the
// list is on the screen already. After that, entries without a date are sorted by their time of
// delivery, which is nearly the same order.
const (
	datesWithin    = 150 * time.Millisecond
	arrivalsWithin = time.Second
)

// sorted returns the list of these entries, see [Work.Make].
func (w *Work) sorted(ctx context.Context, entries []catalog.Entry, provisional func([]*Item)) *SortedList {
	within := datesWithin
	if w.again() {
		within = arrivalsWithin
	}
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	dates, dated := w.Disk.Dates(soon, entries)
	list := &SortedList{Spec: w.Spec, snapshot: w.Snapshot, Dated: dated}
	sort := func(texts []string, o tree.Order) []*Item {
		all, items := make([]Item, len(entries)), make([]*Item, len(entries))
		for i, t := range dates {
			all[i] = Item{Entry: entries[i], date: t}
			if texts != nil {
				all[i].text = texts[i]
			}
			items[i] = &all[i]
		}
		slices.SortFunc(items, func(a, b *Item) int { return compareItems(a, b, o) })
		return items
	}
	if provisional != nil && w.By != tree.ByDate.By {
		defer time.AfterFunc(datesWithin, func() { provisional(sort(nil, tree.ByDate)) }).Stop()
	}
	list.Items = sort(w.texts(ctx, entries), w.Order)
	return list
}

// overlay returns the rows of a list without entries that are being trashed.
func overlay(q *work.Queue, rows []*Item) []*Item {
	if !q.Trashing() {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(it *Item) bool { return q.Trashed(it.Entry) })
}

// compareItems compares by the text to sort by, then by date, then by name.
func compareItems(a, b *Item, o tree.Order) int {
	c := strings.Compare(a.text, b.text)
	if o.Down {
		c = -c
	}
	if c != 0 {
		return c
	}
	// The names of most entries need no comparison.
	if c = cmp.Compare(a.date, b.date); c == 0 {
		c = cmp.Or(strings.Compare(a.Ref().Unique, b.Ref().Unique), strings.Compare(a.Feed.Hash, b.Feed.Hash))
	}
	if o.Down || o.By != "date" {
		c = -c
	}
	return c
}

// texts returns for each entry the text to sort by; nil if the order is by date only.
func (w *Work) texts(ctx context.Context, entries []catalog.Entry) []string {
	var of func(e catalog.Entry) string
	switch w.By {
	case "title", "author":
		return w.Disk.SortTexts(ctx, entries, w.By)
	case "feed":
		of = func(e catalog.Entry) string { return w.Snapshot.Feeds[e.Feed.Hash].Place }
	case "flags":
		of = func(e catalog.Entry) string { return entrystore.FlagOrder(e.Ref()) }
	case "random":
		of = func(e catalog.Entry) string { return chance(e.Ref(), w.Seed) }
	default:
		return nil
	}
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = of(e)
	}
	return texts
}

// chance returns a random text for an entry, always the same with the same seed.
func chance(r lektordir.Ref, seed uint64) string {
	h := fnv.New64a()
	fmt.Fprint(h, r.Feed, "/", r.Unique, " ", seed) // the seed is last, as the last bytes are mixed least
	return string(h.Sum(nil))
}
