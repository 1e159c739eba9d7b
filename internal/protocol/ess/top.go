package ess

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// DefaultTop is the default number of entries of an NNO.
const DefaultTop = 100

// Top is the aggregator of the specification (section "ESS Specifications"): it holds the N
// newest entries of any number of ESS and NNO documents. The specification works in steps
// (sort feeds by their first entry, insert, remove the oldest, purge, split). Top orders
// single entries by [FeedEntry.Compare] instead, so the order of the documents does not
// matter.
//
// An entry (feed, minute, checksum) in several documents counts once. An entry that is
// several times in one document counts that often.
//
// All NNO documents count, but of the ESS documents of a feed only those with the latest
// build time. So an entry of an ESS document stops counting when a later document of its
// feed is added. Top holds more than N entries for this case, but not all. If too many stop
// counting, the list is shorter than N, and ends before the newest entry that was dropped;
// see [Top.Lost] and [Top.Again].
//
// A Top is not safe for concurrent use.
type Top struct {
	n      int
	keep   int                 // number of entries that remain after a drop
	builds map[string]int64    // feed -> minute of its latest ESS document
	held   map[FeedEntry]times // at most 2*keep
	cut    FeedEntry           // newest entry that was dropped; it and older entries do not count
}

// times are the maximum numbers of times that an entry is in one document: in an ESS
// document with the build time build, and in an NNO document.
type times struct {
	build    int64
	ess, nno uint32
}

// spare × N more entries are held, at most maxSpare, to replace entries that stop counting.
const (
	spare    = 3
	maxSpare = 1 << 16
)

// NewTop returns a Top for n entries, at least 1.
func NewTop(n int) *Top {
	n = max(n, 1)
	return newTop(n, n+min(spare*n, maxSpare))
}

func newTop(n, keep int) *Top { return (&Top{n: n, keep: keep, builds: map[string]int64{}}).Again() }

// Again returns an empty Top with the build times of t. t must not be used afterwards. If
// the same documents are added again, no entry stops counting, so none is lost.
func (t *Top) Again() *Top {
	return &Top{n: t.n, keep: t.keep, builds: t.builds, held: map[FeedEntry]times{},
		cut: FeedEntry{Entry: Entry{Minute: math.MinInt64}}}
}

// Lost reports whether there are fewer than N entries because entries were dropped.
func (t *Top) Lost() bool { return t.cut.Minute != math.MinInt64 && len(t.Entries()) < t.n }

// Entries returns the at most N newest entries, newest first.
func (t *Top) Entries() []FeedEntry {
	var list []FeedEntry
	for _, e := range t.known() {
		for range min(t.count(e), t.n-len(list)) {
			list = append(list, e)
		}
	}
	return list
}

// Add adds the entries of a document.
func (t *Top) Add(doc *Document) {
	build, own := Minute(doc.Build), canonical(doc.URL)
	if own != "" {
		t.builds[own] = max(t.builds[own], build)
	}
	var list []FeedEntry
	for _, e := range doc.Entries {
		if e.Minute >= t.cut.Minute { // true for few entries of most documents
			list = append(list, FeedEntry{canonical(e.Feed), e.Entry})
		}
	}
	slices.SortFunc(list, FeedEntry.Compare)
	for len(list) > 0 {
		e, n := list[0], 1
		for n < len(list) && list[n] == e {
			n++
		}
		list = list[n:]
		held := t.held[e]
		switch {
		case e.Feed != own:
			held.nno = max(held.nno, uint32(n))
		case build > held.build:
			held.build, held.ess = build, uint32(n)
		case build == held.build:
			held.ess = max(held.ess, uint32(n))
		}
		t.held[e] = held
		if len(t.held) > 2*t.keep {
			t.drop()
		}
	}
}

// canonical returns the escaped form of a URL: a comma becomes %2C.
func canonical(url string) string { return strings.ReplaceAll(url, ",", "%2C") }

// count returns how often a held entry counts.
func (t *Top) count(e FeedEntry) int {
	held := t.held[e]
	switch {
	case e.Compare(t.cut) >= 0:
		return 0
	case held.build < t.builds[e.Feed]:
		return int(held.nno)
	}
	return int(max(held.ess, held.nno))
}

// known returns the entries that count, newest first.
func (t *Top) known() []FeedEntry {
	var list []FeedEntry
	for e := range t.held {
		if t.count(e) > 0 {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, FeedEntry.Compare)
	return list
}

// drop drops the oldest entries, and entries that do not count.
func (t *Top) drop() {
	if list := t.known(); len(list) > t.keep {
		t.cut = list[t.keep]
	}
	maps.DeleteFunc(t.held, func(e FeedEntry, _ times) bool { return t.count(e) == 0 })
}
