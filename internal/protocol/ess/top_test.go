package ess

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// sample is a document of a test.
type sample struct {
	kind    Kind
	build   int64
	entries []FeedEntry // as written
}

func (s sample) bytes() []byte {
	if s.kind == NNO {
		return AppendNNO(nil, Time(s.build), slices.Clone(s.entries))
	}
	var entries []Entry
	feed := ""
	for _, e := range s.entries {
		feed, entries = e.Feed, append(entries, e.Entry)
	}
	// Not AppendESS, which sorts.
	return appendESS(nil, s.build, feed, entries)
}

// bruteForce returns the n newest entries by sorting all. An entry occurs as often as in the
// document that has it most often.
func bruteForce(docs []sample, n int) []FeedEntry {
	most := map[FeedEntry]int{}
	for _, d := range docs {
		count := map[FeedEntry]int{}
		for _, e := range d.entries {
			count[e]++
			most[e] = max(most[e], count[e])
		}
	}
	var all []FeedEntry
	for e, k := range most {
		for range k {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, FeedEntry.Compare)
	return all[:min(n, len(all))]
}

// TestTopEqualsBruteForce compares Top with bruteForce for random documents in any order.
func TestTopEqualsBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 1000 {
		var docs []sample
		span := []int64{3, 50, 5000}[rng.IntN(3)]
		entry := func(feed string) FeedEntry {
			return FeedEntry{feed, Entry{1000000 - rng.Int64N(span), uint8(rng.IntN(1 + rng.IntN(256)))}}
		}
		for i := range rng.IntN(30) {
			d := sample{kind: ESS, build: 1000000 + rng.Int64N(100)}
			if rng.IntN(4) == 0 {
				d.kind = NNO
			}
			for range rng.IntN(30) {
				feed := fmt.Sprintf("http://example.com/%d", i)
				if d.kind == NNO {
					feed = fmt.Sprintf("http://example.com/%d", rng.IntN(30))
				}
				d.entries = append(d.entries, entry(feed))
			}
			if d.kind == ESS && rng.IntN(3) == 0 {
				docs = append(docs, d) // added twice
			}
			docs = append(docs, d)
		}
		n := 1 + rng.IntN(40)
		want := bruteForce(docs, n)
		rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		top := NewTop(n)
		for _, d := range docs {
			if len(d.entries) == 0 {
				continue
			}
			if err := top.AddBytes(d.bytes(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := top.Entries(); !slices.Equal(got, want) || top.Lost() {
			t.Fatalf("round %d, n %d, lost %v:\n got %v\nwant %v", round, n, top.Lost(), got, want)
		}
	}
}

func TestTopNotFull(t *testing.T) {
	top := NewTop(1000)
	add(t, top, pageESS, pageNNO)
	if len(top.Entries()) != 8 {
		t.Errorf("got %v; want len(top.Entries()) == 8", top.Entries())
	}
}

func TestTopFeedAgain(t *testing.T) {
	const u, v = "http://e.com/a", "http://e.com/b"
	const first, second = "60000,http://e.com/a,10,1,20,2", "60600,http://e.com/a,5,3,20,1"
	newer := list(fe(u, 1005, 3), fe(u, 990, 1))
	for _, order := range [][]string{{first, second}, {second, first}, {first, second, second, first}} {
		top := NewTop(10)
		add(t, top, order...)
		if got := top.Entries(); !slices.Equal(got, newer) {
			t.Errorf("got %q: %v; want slices.Equal(got, newer)", order, got)
		}
	}
	// Entries of the feed from an NNO stay.
	top := NewTop(10)
	add(t, top, "60000,http://e.com/a,20,2,http://e.com/b,30,9", first, second)
	if got, want := top.Entries(), list(fe(u, 1005, 3), fe(u, 990, 1), fe(u, 980, 2), fe(v, 970, 9)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestTopReplacedAfterPushingOut checks that the list is the beginning of the correct one if
// entries were dropped for others that stopped counting.
func TestTopReplacedAfterPushingOut(t *testing.T) {
	top := newTop(2, 2)
	add(t, top, "60000,http://e.com/b,10,1,20,2", "60000,http://e.com/a,1,1,2,2", "60000,http://e.com/c,30,1")
	if top.Lost() {
		t.Error("entries are lost before the newer document")
	}
	add(t, top, "60060,http://e.com/a,2,1,40,2", "60000,http://e.com/c,30,1")
	if got, want := top.Entries(), list(fe("http://e.com/a", 999, 1)); !slices.Equal(got, want) || !top.Lost() {
		t.Errorf("%v, lost %v", got, top.Lost())
	}
	add(t, top, "60000,http://e.com/c,5,1")
	if top.Lost() || len(top.Entries()) != 2 {
		t.Errorf("%v, lost %v", top.Entries(), top.Lost())
	}
}

func TestTopTrueDuplicates(t *testing.T) {
	top := NewTop(10)
	add(t, top, "60000,http://e.com/a,10,1,10,1", "60000,http://e.com/a,10,1,http://e.com/b,5,5")
	if len(top.Entries()) != 3 {
		t.Errorf("got %v; want len(top.Entries()) == 3", top.Entries())
	}
}

// TestTopManyEqual checks that a document with many equal entries is not slow.
func TestTopManyEqual(t *testing.T) {
	doc := []byte("60000,http://e.com/a")
	for range 300_000 {
		doc = append(doc, ",0,0,0,1"...)
	}
	top := NewTop(1000)
	start := time.Now()
	if err := top.AddBytes(doc, nil); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("got %v; want d <= time.Minute", d)
	}
	e := top.Entries()
	if len(e) != 1000 || e[999].Sum != 0 {
		t.Errorf("got %d, %v; want len(e) == 1000 and e[999].Sum == 0", len(e), e[len(e)-1])
	}
}

// TestTopMemory checks that memory depends on N, with little for each feed.
func TestTopMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	top := NewTop(1000)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	doc := []byte{}
	for i := range 100_000 {
		var e []Entry
		for range 5 {
			e = append(e, Entry{int64(i) + rng.Int64N(100), uint8(rng.IntN(256))}) // later feeds have newer entries
		}
		doc = AppendESS(doc[:0], Time(int64(i)+200), fmt.Sprintf("http://e%d.example.com/feed.xml", i), e)
		if err := top.AddBytes(doc, nil); err != nil {
			t.Fatal(err)
		}
	}
	if after := heap(); after > before+16<<20 {
		t.Errorf("%d bytes", after-before)
	}
	runtime.KeepAlive(top)
}

func add(t testing.TB, top *Top, docs ...string) {
	t.Helper()
	for _, d := range docs {
		if err := top.AddBytes([]byte(d), func(w Warning) { t.Errorf("%q: %v", d, w) }); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkTop(b *testing.B) {
	rng := rand.New(rand.NewPCG(9, 10))
	var docs [][]byte
	size := 0
	for i := range 1000 {
		var e []Entry
		for range 100 {
			e = append(e, Entry{20_000_000 - rng.Int64N(14400), uint8(rng.IntN(256))})
		}
		docs = append(docs, AppendESS(nil, Time(20_000_000), fmt.Sprintf("https://www.example%d.com/feed.xml", i), e))
		size += len(docs[i])
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	top := NewTop(1000)
	for b.Loop() {
		for _, d := range docs {
			top.AddBytes(d, nil)
		}
	}
}
