package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// item is an entry in a list. It is immutable.
type item struct {
	catalog.Entry
	date time.Time
	text string // to sort by before the date; "" if the order is by date only
}

// key identifies an entry whatever its flags are.
type key = part.Key

func keyOf(r lektordir.Ref) key { return part.KeyOf(r) }

// listSpec specifies the entries of a list and their order.
type listSpec struct {
	of    id
	query string // search in the node; "" if none
	all   bool   // read entries too
	order
}

// includesRead reports whether the list has read entries too.
func (w listSpec) includesRead() bool { return w.all || w.of.kind == flaggedNode }

// text returns the query of the list, "" if it needs none.
func (w listSpec) text() string {
	var parts []string
	if w.of.kind == savedNode {
		parts = append(parts, `query:"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w.of.name)+`"`)
	}
	if q := strings.TrimSpace(w.query); q != "" {
		if len(parts) > 0 {
			q = "(" + q + ")"
		}
		parts = append(parts, q)
	}
	return strings.Join(parts, " ")
}

// sortedList is a complete list of a snapshot. It is immutable.
type sortedList struct {
	listSpec
	snapshot *snapshot
	items    []*item
	dated    bool // all dates are known
}

// listWork holds the inputs for a list. It is used in a goroutine of its own.
type listWork struct {
	listSpec
	disk     listDisk
	snapshot *snapshot
	readHere map[key]bool // read entries that stay in the list
	old      *sortedList  // the list before; may be nil
	progress func(done, total int)
}

// make makes the list. A search calls partial with the entries that it has found so far.
func (w *listWork) make(ctx context.Context, partial func([]*item)) (*sortedList, error) {
	if w.text() != "" {
		return w.search(ctx, partial)
	}
	if w.again() {
		if list := w.update(ctx); list != nil {
			return list, nil
		}
	}
	return w.sorted(ctx, w.unread(w.snapshot.entries(w.of, nil)), partial), nil
}

// again reports whether the list is on the screen already.
func (w *listWork) again() bool { return w.old != nil && w.old.listSpec == w.listSpec }

// unread removes read entries, unless the list includes them or they are in readHere.
func (w *listWork) unread(entries []catalog.Entry) []catalog.Entry {
	if w.includesRead() {
		return entries
	}
	return slices.DeleteFunc(entries, func(e catalog.Entry) bool {
		return !e.Unread() && (len(w.readHere) == 0 || !w.readHere[e.ID()])
	})
}

// update returns the old list with the entries of changed feeds replaced. While a fetcher
// delivers, update sorts the entries of a few feeds instead of all. It returns nil if sorting all
// entries is faster.
func (w *listWork) update(ctx context.Context) *sortedList {
	changed := map[string]bool{}
	n := 0
	for _, f := range w.snapshot.names.Since(w.old.snapshot.names) {
		changed[f.Hash] = true
		n += f.Shown
	}
	if n > len(w.old.items)/2 {
		return nil
	}
	list := w.sorted(ctx, w.unread(w.snapshot.entries(w.of, changed)), nil)
	fresh := list.items
	items := make([]*item, 0, len(w.old.items)+len(fresh))
	for _, it := range w.old.items {
		if changed[it.Feed.Hash] {
			continue
		}
		for len(fresh) > 0 && compareItems(fresh[0], it, w.order) < 0 {
			items, fresh = append(items, fresh[0]), fresh[1:]
		}
		items = append(items, it)
	}
	list.items = append(items, fresh...)
	list.dated = list.dated && w.old.dated
	return list
}

// datesWithin is how long a list waits for the dates of its entries, and arrivalsWithin how long, if the
// list is on the screen already. After that, entries without a date are sorted by their time of
// delivery, which is nearly the same order.
const (
	datesWithin    = 150 * time.Millisecond
	arrivalsWithin = time.Second
)

// sorted returns the list of these entries. If the texts to sort by take long, provisional gets
// the entries by date meanwhile; it may be nil.
func (w *listWork) sorted(ctx context.Context, entries []catalog.Entry, provisional func([]*item)) *sortedList {
	within := datesWithin
	if w.again() {
		within = arrivalsWithin
	}
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	dates, dated := w.disk.Dates(soon, entries)
	list := &sortedList{listSpec: w.listSpec, snapshot: w.snapshot, dated: dated}
	sort := func(texts []string, o order) []*item {
		all, items := make([]item, len(entries)), make([]*item, len(entries))
		for i, t := range dates {
			all[i] = item{Entry: entries[i], date: t}
			if texts != nil {
				all[i].text = texts[i]
			}
			items[i] = &all[i]
		}
		slices.SortFunc(items, func(a, b *item) int { return compareItems(a, b, o) })
		return items
	}
	if provisional != nil && w.by != byDate.by {
		defer time.AfterFunc(datesWithin, func() { provisional(sort(nil, byDate)) }).Stop()
	}
	list.items = sort(w.texts(ctx, entries), w.order)
	return list
}

// searchChunk is the number of entries that a search without an index matches at once, and
// searchPause the least time between two partial results.
const (
	searchChunk = 256
	searchPause = 100 * time.Millisecond
)

// search returns the entries that match the query. Without an index it matches them in the
// order of the list, so that the first lines of the screen are found first.
func (w *listWork) search(ctx context.Context, partial func([]*item)) (*sortedList, error) {
	query, err := w.disk.Query(ctx, w.text())
	if err != nil {
		return nil, err
	}
	entries := w.snapshot.entries(w.of, nil)
	if w.of.kind == savedNode && w.query == "" && !query.State {
		entries = w.unread(entries) // as ls does, unless the query has a term about flags
	}
	if found, ok := query.Find(ctx); ok {
		in := make(map[key]bool, len(found))
		for _, r := range found {
			in[keyOf(r)] = true
		}
		entries = slices.DeleteFunc(entries, func(e catalog.Entry) bool { return !in[e.ID()] })
		return w.sorted(ctx, entries, partial), nil
	}
	list := w.sorted(ctx, entries, nil)
	var found []*item
	shown := time.Now()
	for part := range slices.Chunk(list.items, searchChunk) {
		if ctx.Err() != nil {
			break
		}
		refs := make([]lektordir.Ref, len(part))
		for i, it := range part {
			refs[i] = it.Ref()
		}
		for i, matches := range query.Match(ctx, refs) {
			if matches {
				found = append(found, part[i])
			}
		}
		if time.Since(shown) > searchPause {
			partial(slices.Clone(found))
			shown = time.Now()
		}
	}
	list.items = found
	return list, nil
}

// overlay returns the rows of a list without entries that are being trashed.
func overlay(q *work.Queue, rows []*item) []*item {
	if !q.Trashing() {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(it *item) bool { return q.Trashed(it.Entry) })
}
