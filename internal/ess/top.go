package ess

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// DefaultTop is the default number of entries of an NNO.
const DefaultTop = 100

// Top is the aggregator of the specification (section "ESS Specifications"): it
// holds the N newest entries of any number of ESS and NNO documents. What the
// page does in steps (sort feeds by their first entry, insert and remove the
// oldest, purge, split) is one step here: every entry stands for itself, in the
// order of [FeedEntry.Compare], so that the order of the documents does not matter.
//
// An entry (feed, minute, checksum) that several documents have counts once; one
// that a document has several times counts that often.
//
// Of a feed the ESS documents with the latest build time count; of NNO documents
// all do. An entry of an ESS document is held with its build time, so that it
// stops counting when a later document of its feed comes. More than N entries
// are held for this, but not all: if too many stop counting, the list is shorter
// than N and ends before the newest entry that was dropped; see [Top.Lost] and
// [Top.Again].
//
// A Top is not safe for concurrent use.
type Top struct {
	n      int
	keep   int                 // how many entries remain when others are dropped
	builds map[string]int64    // of each feed the minute of its latest ESS document
	held   map[FeedEntry]times // up to twice as many as keep
	cut    FeedEntry           // the newest entry that was dropped; from it on none counts
}

// times is how often an entry stands in one document, at most: an ESS document
// of a build time, and an NNO document.
type times struct {
	build    int64
	ess, nno uint32
}

// An additional spare × N entries are kept, but at most maxSpare, to take the
// places of those that stop counting.
const (
	spare    = 3
	maxSpare = 1 << 16
)

// NewTop returns a Top of n entries, at least 1.
func NewTop(n int) *Top {
	n = max(n, 1)
	return newTop(n, n+min(spare*n, maxSpare))
}

func newTop(n, keep int) *Top { return (&Top{n: n, keep: keep, builds: map[string]int64{}}).Again() }

// Again returns a Top without entries that has the build times of t, which must
// not be used any more. Of the same documents it loses nothing: no entry in it
// stops counting.
func (t *Top) Again() *Top {
	return &Top{n: t.n, keep: t.keep, builds: t.builds, held: map[FeedEntry]times{}, cut: FeedEntry{Entry: Entry{Minute: math.MinInt64}}}
}

// Lost reports whether the entries end before the N-th because others, which may
// come next, were dropped.
func (t *Top) Lost() bool { return t.cut.Minute != math.MinInt64 && len(t.Entries()) < t.n }

// Entries returns the N newest entries, newest first.
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
		if e.Minute >= t.cut.Minute { // few are, of most documents
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

// canonical returns a URL as it is written: a raw comma as %2C.
func canonical(url string) string { return strings.ReplaceAll(url, ",", "%2C") }

// count is how often an entry that is held counts.
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

// drop drops the oldest entries, and those that do not count.
func (t *Top) drop() {
	if list := t.known(); len(list) > t.keep {
		t.cut = list[t.keep]
	}
	maps.DeleteFunc(t.held, func(e FeedEntry, _ times) bool { return t.count(e) == 0 })
}
