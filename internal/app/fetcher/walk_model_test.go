package fetcher

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// madeUpDoc is a document of a random feed: an archive or the subscription document.
type madeUpDoc struct {
	day     int // the document's day
	entries []entry
}

// madeUp returns a random feed: entries in several documents and versions, with equal dates or
// none. The archives are oldest first.
func madeUp(rnd *rand.Rand) (archives []madeUpDoc, sub madeUpDoc) {
	ids, version := 1+rnd.IntN(6), 0
	entries := func(most int) (all []entry) {
		for range rnd.IntN(most) {
			version++
			id := strconv.Itoa(rnd.IntN(ids))
			all = append(all, entry{id, fmt.Sprintf("%s in version %d", id, version), rnd.IntN(4)})
		}
		return all
	}
	for range 1 + rnd.IntN(4) {
		archives = append(archives, madeUpDoc{rnd.IntN(3), entries(5)})
	}
	return archives, madeUpDoc{100, entries(4)}
}

// logical returns the text by id of the logical feed of RFC 5005, section 4.2. It follows the words
// of that section and shares no code with the fetcher.
func logical(archives []madeUpDoc, sub madeUpDoc) []string {
	type candidate struct {
		text          string
		entry, doc, i int
	}
	best := map[string]candidate{}
	for i, doc := range append(slices.Clone(archives), sub) {
		in := map[string]candidate{}
		for _, e := range doc.entries {
			// "clients SHOULD consider only the most recently updated entry"; if several in one
			// document are equal, the first, which is the newest.
			if old, dup := in[e.id]; !dup || e.day > old.entry {
				in[e.id] = candidate{e.text, e.day, doc.day, i}
			}
		}
		for id, c := range in {
			old, dup := best[id]
			switch {
			case !dup, c.entry > old.entry:
			case c.entry < old.entry:
				continue
			// "the entry sourced from the most recently updated feed document SHOULD replace all
			// other duplicates"; if documents are equal, the later one.
			case c.doc < old.doc:
				continue
			}
			best[id] = c
		}
	}
	var all []string
	for _, c := range best {
		all = append(all, c.text)
	}
	slices.Sort(all)
	return all
}

// walkFeeds is the environment variable with the number of random feeds. If it is set,
// TestWalkKilled runs in full, too.
const walkFeeds = "LEKTOR_TEST_FEEDS"

// TestWalkModel: in whatever order the documents are delivered, the result is the logical feed.
func TestWalkModel(t *testing.T) {
	feeds := 60
	if n, err := strconv.Atoi(os.Getenv(walkFeeds)); err == nil {
		feeds = n
	}
	seed := rand.Uint64()
	if v, err := strconv.ParseUint(os.Getenv("LEKTOR_TEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	r, s, l := setup(t, early())
	var hashes []string
	var want [][]string
	serve := func(i int, head string, doc madeUpDoc) {
		s.Handle(fmt.Sprintf("/%d/feed", i), server.Doc("", atomFeed(head, doc.day, doc.entries...)))
	}
	var later []func()
	var orders []string
	for i := range feeds {
		archives, sub := madeUp(rnd)
		head := ""
		for k, doc := range archives {
			path := fmt.Sprintf("/%d/%d", i, k)
			s.Handle(path, server.Doc("", atomFeed(mark+head, doc.day, doc.entries...)))
			head = link("prev-archive", path)
		}
		order := []string{"all at once", "the subscription document first", "the subscription document last", "the newest archive last"}[rnd.IntN(4)]
		orders = append(orders, order)
		switch order {
		case "all at once":
			serve(i, head, sub)
		case "the subscription document first":
			serve(i, "", sub)
			later = append(later, func() { serve(i, head+"<subtitle>now with archives</subtitle>", sub) })
		case "the subscription document last":
			serve(i, head, madeUpDoc{100, nil})
			later = append(later, func() { serve(i, head, sub) })
		default:
			// At first the second newest archive is the newest.
			if k := len(archives) - 2; k >= 0 {
				serve(i, link("prev-archive", fmt.Sprintf("/%d/%d", i, k)), madeUpDoc{100, nil})
			} else {
				serve(i, "", madeUpDoc{100, nil})
			}
			later = append(later, func() { serve(i, head, sub) })
		}
		hashes = append(hashes, subscribeTo(t, r, s.URL(fmt.Sprintf("/%d/feed", i)))...)
		if order == "the newest archive last" && len(archives) > 1 {
			// A delivered entry stays unless a later version comes: if two versions have the same
			// date, that of the older archive stays.
			older := logical(archives[:len(archives)-1], madeUpDoc{})
			want = append(want, nil)
			want[i] = ties(archives, sub, older)
		} else {
			want = append(want, logical(archives, sub))
		}
	}
	update(t, r, Selection{Feeds: hashes, Want: Want{Archives: true}})
	for _, f := range later {
		f()
	}
	update(t, r, Selection{Feeds: hashes})
	for i, hash := range hashes {
		got := titles(t, r, lektordir.ListOptions{Feeds: []string{hash}, AllVersions: true})
		if slices.Sort(got); !slices.Equal(got, want[i]) {
			t.Errorf("LEKTOR_TEST_SEED=%d, feed %d, %s:\n%q, want\n%q", seed, i, orders[i], got, want[i])
		}
	}
	if got := l.String(); strings.Contains(got, "error") || strings.Contains(got, "warning") {
		t.Error(got)
	}
}

// ties returns the logical feed if all but the newest archive were delivered before: if versions
// have the same date, the delivered one stays.
func ties(archives []madeUpDoc, sub madeUpDoc, before []string) []string {
	last := archives[len(archives)-1]
	day := map[string]int{} // day of the delivered version, by id
	text := map[string]string{}
	for _, doc := range archives[:len(archives)-1] {
		for _, e := range doc.entries {
			if slices.Contains(before, e.text) {
				day[e.id], text[e.id] = e.day, e.text
			}
		}
	}
	merge := func(doc madeUpDoc, equal bool) {
		newest := map[string]entry{}
		for _, e := range doc.entries {
			if old, dup := newest[e.id]; !dup || e.day > old.day {
				newest[e.id] = e
			}
		}
		for id, e := range newest {
			if d, known := day[id]; !known || e.day > d || equal && e.day == d {
				day[id], text[id] = e.day, e.text
			}
		}
	}
	// The subscription document is delivered before the new archive.
	merge(sub, true)
	merge(last, false)
	var all []string
	for _, s := range text {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}
