package ess

import (
	"bytes"
	"container/heap"
	"hash/maphash"
	"slices"
	"strings"
)

// DefaultTop is the N of those who say nothing.
const DefaultTop = 100

// Top is the aggregator of the specification (section "ESS Specifications"): of
// any number of ESS and NNO documents, in any order, it gives the N newest
// entries, and has memory for some times as many. What the page does in steps (sort feeds by
// their first entry, insert and remove the oldest, purge, split) is one step
// here: every entry stands for itself. Entries are in the order of
// [FeedEntry.Compare], so that the order of the documents does not matter.
//
// An entry (feed, minute, checksum) that several documents have counts once; one
// that a document has several times counts that often.
//
// An ESS document replaces what an ESS document of the same feed with an earlier
// build time has brought, and one that is earlier than what came before is passed
// over: of each feed the build time is remembered, in some twelve bytes, for sixteen
// million feeds. As no more than some times N entries are held, replacing has a limit:
// what the entries that are replaced had pushed out is lost, and where less than N
// are left [Top.Entries] ends early, before the newest of what was lost; see
// [Top.Lost] and [Top.Again].
//
// A Top is not safe for concurrent use: give each worker its own, and
// [Top.Merge] them, which gives what one Top would hold.
type Top struct {
	max    int // N
	room   int // how many are held
	feeds  map[string]*topFeed
	nodes  map[nodeKey]*node
	heap   byAge
	held   int    // entries, counting equal ones
	doc    uint64 // serial number of the document
	free   []*node
	url    []byte // of the document
	builds builds // minutes of the latest ESS documents of feeds

	floor struct { // the first entry, in order, that was turned away or pushed out
		set    bool
		minute int64
		feed   []byte
		sum    uint8
	}
}

// topFeed is a feed of which something is held.
type topFeed struct {
	url   string
	build int64 // minute of the newest ESS document; 0 when there was none
	nodes []*node
}

type nodeKey struct {
	feed   *topFeed
	minute int64
	sum    uint8
}

// node is an entry that is held, perhaps several times.
type node struct {
	nodeKey
	// How many there are of it in one document, of each kind.
	ess, nno uint32
	doc      uint64 // the document that was last seen to have it,
	seen     uint32 // and how often it has
	index    int    // in the heap
	place    int    // in feed.nodes
}

func (n *node) count() int { return int(max(n.ess, n.nno)) }

// So many times N entries are held besides the newest N, up to a number, as feeds
// that are given again take some back.
const (
	spare    = 3
	maxSpare = 1 << 16
)

// NewTop prepares to hold n entries, at least 1.
func NewTop(n int) *Top {
	n = max(n, 1)
	return newTop(n, n+min(spare*n, maxSpare))
}

func newTop(n, room int) *Top {
	return &Top{max: n, room: room, feeds: map[string]*topFeed{}, nodes: map[nodeKey]*node{}}
}

// Again gives an empty Top of the same size that knows the build times which t
// has learned. Given the same documents, from this one or from several made by
// Again, it takes back nothing, and so loses nothing.
func (t *Top) Again() *Top {
	again := newTop(t.max, t.room)
	again.builds = t.builds.clone()
	return again
}

// seed makes what hashes alike unknown to whoever writes documents.
var seed = maphash.MakeSeed()

func hash(url []byte) uint64 { return maphash.Bytes(seed, url) }

// Len is the number of entries that are given.
func (t *Top) Len() int { return min(t.held, t.max) }

// Lost reports whether entries are missing at the end, as documents of feeds
// that were given again took back what had pushed others out.
func (t *Top) Lost() bool { return t.floor.set && t.held < t.max }

// Entries gives the newest N of what is held, newest first.
func (t *Top) Entries() []FeedEntry {
	out := make([]FeedEntry, 0, t.held)
	for _, n := range t.heap {
		for range n.count() {
			out = append(out, FeedEntry{n.feed.url, Entry{n.minute, n.sum}})
		}
	}
	slices.SortFunc(out, FeedEntry.Compare)
	return slices.Clip(out[:t.Len()])
}

// Add takes the document that the decoder was reset to. The error is that of the decoder, a [*BuildError] or the
// reader's; entries that were read before it count.
func (t *Top) Add(d *Decoder) error {
	if err := d.Begin(); err != nil {
		return err
	}
	t.doc++
	if !d.Next() {
		if d.err == nil && d.urls == 1 && !d.drop && !d.mark {
			// The feed has no entries any more.
			t.begin(canonical(d), d.build)
		}
		return d.err
	}
	// The second pair or URL tells the kind, and looking there overwrites the
	// first.
	t.url = append(t.url[:0], canonical(d)...)
	minute, sum, urls := d.minute, d.sum, d.urls
	more := d.Next()
	if d.Kind() == NNO {
		t.single(t.url, minute, sum)
		for ; more; more = d.Next() {
			t.single(canonical(d), d.minute, d.sum)
		}
		return d.err
	}
	feed := t.begin(t.url, d.build)
	skip := feed == stale
	if skip {
		feed = nil
	} else {
		feed = t.insert(feed, t.url, minute, sum, ESS)
	}
	for ; more; more = d.Next() {
		switch {
		case d.urls != urls:
			// Another feed's, in what began as ESS.
			t.single(canonical(d), d.minute, d.sum)
		case skip:
		case t.held >= t.room && d.minute < t.heap[0].minute && t.floor.set && d.minute < t.floor.minute:
			// Most entries of most documents.
		default:
			feed = t.insert(feed, t.url, d.minute, d.sum, ESS)
		}
	}
	if feed != nil {
		feed.build = max(feed.build, d.build)
	}
	return d.err
}

// canonical gives the decoder's URL as it is written: a raw comma as %2C.
func canonical(d *Decoder) []byte {
	if !d.commas {
		return d.url
	}
	return bytes.ReplaceAll(d.url, []byte(","), []byte("%2C"))
}

// stale stands for the feed of a document that is older than what is held.
var stale = &topFeed{}

// begin gives the feed of an ESS document, nil when nothing is held of it. What
// is held from earlier ones goes.
func (t *Top) begin(url []byte, build int64) *topFeed {
	h := hash(url)
	if build < t.builds.of(h) {
		return stale
	}
	t.builds.learn(h, build)
	feed := t.feeds[string(url)]
	switch {
	case feed == nil || feed.build == 0 || feed.build == build:
		return feed
	case build < feed.build:
		return stale
	}
	t.replace(feed)
	if len(feed.nodes) == 0 {
		return nil
	}
	return feed
}

// replace removes what only ESS documents of a feed have brought.
func (t *Top) replace(feed *topFeed) {
	for _, n := range slices.Backward(feed.nodes) {
		t.held -= n.count()
		n.ess, n.doc, n.seen = 0, 0, 0
		t.held += n.count()
		if n.count() == 0 {
			t.remove(n)
		}
	}
	feed.build = 0
}

// single takes an entry of an NNO.
func (t *Top) single(url []byte, minute int64, sum uint8) {
	if t.held >= t.room && minute < t.heap[0].minute && t.floor.set && minute < t.floor.minute {
		return
	}
	t.insert(t.feeds[string(url)], url, minute, sum, NNO)
}

// insert takes an entry, of a feed that is known or nil, and gives its feed,
// nil when nothing is held of it.
func (t *Top) insert(feed *topFeed, url []byte, minute int64, sum uint8, kind Kind) *topFeed {
	if feed != nil && len(feed.nodes) == 0 {
		feed = nil // it was all pushed out meanwhile
	}
	if feed != nil {
		if n := t.nodes[nodeKey{feed, minute, sum}]; n != nil {
			if n.doc != t.doc {
				n.doc, n.seen = t.doc, 0
			}
			n.seen++
			if int(n.seen) > n.count() {
				if t.held >= t.room {
					if t.heap[0] == n {
						t.reject(minute, url, sum)
						return feed
					}
					t.evict()
				}
				t.held++
			}
			n.note(kind, n.seen)
			return feed
		}
	}
	if t.held >= t.room && !t.newer(minute, url, sum, t.heap[0]) || t.floor.set && !t.aboveFloor(minute, url, sum) {
		t.reject(minute, url, sum)
		return feed
	}
	if t.held >= t.room {
		t.evict()
		if feed != nil && len(feed.nodes) == 0 {
			feed = nil
		}
	}
	if feed == nil {
		feed = &topFeed{url: string(url)}
		t.feeds[feed.url] = feed
	}
	n := t.add(nodeKey{feed, minute, sum})
	n.doc, n.seen = t.doc, 1
	n.note(kind, 1)
	t.held++
	return feed
}

// note raises how often a document of a kind has the entry.
func (n *node) note(kind Kind, seen uint32) {
	if kind == NNO {
		n.nno = max(n.nno, seen)
	} else {
		n.ess = max(n.ess, seen)
	}
}

// Merge takes what another Top of the same size holds. The other must not be
// used any more.
func (t *Top) Merge(o *Top) {
	if o.floor.set {
		// What comes after it cannot be among the first: o held enough that
		// comes before.
		t.reject(o.floor.minute, o.floor.feed, o.floor.sum)
		for len(t.heap) > 0 && !t.aboveFloor(t.heap[0].minute, []byte(t.heap[0].feed.url), t.heap[0].sum) {
			t.held -= t.heap[0].count()
			t.remove(t.heap[0])
		}
	}
	// What goes, goes first: else the order of feeds would decide what is
	// pushed out meanwhile.
	t.builds.merge(&o.builds)
	for url, feed := range t.feeds {
		if feed.build != 0 && feed.build < t.builds.of(hash([]byte(url))) {
			t.replace(feed)
		}
	}
	for _, from := range o.feeds {
		if from.build != 0 {
			t.begin([]byte(from.url), from.build)
		}
	}
	for _, from := range o.feeds {
		url := []byte(from.url)
		feed := t.feeds[from.url]
		if from.build != 0 {
			feed = t.begin(url, from.build)
		}
		skip := feed == stale
		if skip {
			feed = t.feeds[from.url]
		}
		for _, n := range from.nodes {
			if !skip {
				t.doc++
				for range n.ess {
					feed = t.insert(feed, url, n.minute, n.sum, ESS)
				}
			}
			t.doc++
			for range n.nno {
				feed = t.insert(feed, url, n.minute, n.sum, NNO)
			}
		}
		if feed != nil && !skip {
			feed.build = max(feed.build, from.build)
		}
	}
}

// newer reports whether an entry comes before one that is held.
func (t *Top) newer(minute int64, url []byte, sum uint8, n *node) bool {
	if minute != n.minute {
		return minute > n.minute
	}
	if string(url) != n.feed.url {
		return string(url) < n.feed.url
	}
	return sum < n.sum
}

// aboveFloor reports whether an entry comes before all that was pushed out.
func (t *Top) aboveFloor(minute int64, url []byte, sum uint8) bool {
	if minute != t.floor.minute {
		return minute > t.floor.minute
	}
	if c := bytes.Compare(url, t.floor.feed); c != 0 {
		return c < 0
	}
	// The floor itself may come again: of several equal ones some are held.
	return sum <= t.floor.sum
}

// reject notes that an entry was turned away.
func (t *Top) reject(minute int64, url []byte, sum uint8) {
	if t.floor.set && !t.aboveFloor(minute, url, sum) {
		return
	}
	t.floor.set, t.floor.minute, t.floor.sum = true, minute, sum
	t.floor.feed = append(t.floor.feed[:0], url...)
}

// evict pushes out one of the oldest entry.
func (t *Top) evict() {
	n := t.heap[0]
	// Nothing before it was ever turned away or pushed out.
	t.floor.set, t.floor.minute, t.floor.sum = true, n.minute, n.sum
	t.floor.feed = append(t.floor.feed[:0], n.feed.url...)
	t.held--
	if n.ess == n.nno {
		n.ess--
		n.nno--
	} else if n.ess > n.nno {
		n.ess--
	} else {
		n.nno--
	}
	if n.count() == 0 {
		t.remove(n)
	}
}

// add puts a new node into the heap.
func (t *Top) add(k nodeKey) *node {
	var n *node
	if l := len(t.free); l > 0 {
		n, t.free = t.free[l-1], t.free[:l-1]
		*n = node{}
	} else {
		n = &node{}
	}
	n.nodeKey = k
	t.nodes[k] = n
	n.place = len(k.feed.nodes)
	k.feed.nodes = append(k.feed.nodes, n)
	heap.Push(&t.heap, n)
	return n
}

// remove takes a node out of the heap.
func (t *Top) remove(n *node) {
	heap.Remove(&t.heap, n.index)
	delete(t.nodes, n.nodeKey)
	list := n.feed.nodes
	list[n.place] = list[len(list)-1]
	list[n.place].place = n.place
	n.feed.nodes = list[:len(list)-1]
	if len(n.feed.nodes) == 0 {
		delete(t.feeds, n.feed.url)
	}
	n.feed = nil
	t.free = append(t.free, n)
}

// older reports whether a comes after b in the order of entries.
func older(a, b *node) bool {
	if a.minute != b.minute {
		return a.minute < b.minute
	}
	if a.feed != b.feed {
		if c := strings.Compare(a.feed.url, b.feed.url); c != 0 {
			return c > 0
		}
	}
	return a.sum > b.sum
}

// byAge is a heap of nodes, the oldest first.
type byAge []*node

func (h byAge) Len() int           { return len(h) }
func (h byAge) Less(i, j int) bool { return older(h[i], h[j]) }

func (h byAge) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byAge) Push(x any) {
	n := x.(*node)
	n.index = len(*h)
	*h = append(*h, n)
}

func (h *byAge) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return n
}
