package ess

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// newestOf returns the entries of all documents, newest first. All NNO documents count, and
// the ESS documents of a feed with the latest build time. An entry occurs as often as in the
// document that has it most often.
func newestOf(docs []sample) []FeedEntry {
	latest := map[string]int64{}
	for _, d := range docs {
		if d.kind == ESS {
			latest[d.feed()] = max(latest[d.feed()], d.build)
		}
	}
	var count []sample
	for _, d := range docs {
		if d.kind == NNO || latest[d.feed()] == d.build {
			count = append(count, d)
		}
	}
	return bruteForce(count, 1<<30)
}

func (s sample) feed() string { return s.entries[0].Feed }

// TestTopModel compares Top with newestOf for random documents in any order. Feeds have
// several documents with different build times. If entries are lost, a second pass finds all.
func TestTopModel(t *testing.T) {
	const begin = 1_000_000
	rng := rand.New(rand.NewPCG(11, 12))
	lost := 0
	for round := range 1000 {
		var docs []sample
		feeds := 1 + rng.IntN(6)
		span := []int64{2, 20, 2000}[rng.IntN(3)]
		sums := 1 + rng.IntN(4)
		url := func(i int) string { return fmt.Sprintf("http://example.com/%d", i) }
		entry := func(feed string) FeedEntry {
			return FeedEntry{feed, Entry{begin - rng.Int64N(span), uint8(rng.IntN(sums))}}
		}
		for range rng.IntN(20) {
			d := sample{kind: ESS, build: begin + rng.Int64N(3) - 1}
			if rng.IntN(3) == 0 {
				d.kind = NNO
				for range 1 + rng.IntN(8) {
					d.entries = append(d.entries, entry(url(rng.IntN(feeds+1))))
				}
			} else {
				feed := url(rng.IntN(feeds))
				for range 1 + rng.IntN(8) {
					d.entries = append(d.entries, entry(feed))
				}
				rng.Shuffle(len(d.entries), func(i, j int) { d.entries[i], d.entries[j] = d.entries[j], d.entries[i] })
			}
			docs = append(docs, d)
			if rng.IntN(4) == 0 {
				docs = append(docs, d)
			}
		}
		n := []int{1 + rng.IntN(feeds+20), 1000}[rng.IntN(2)]
		room := n + n*rng.IntN(2)
		truth := newestOf(docs)
		for order := range 3 {
			rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
			run := func(top *Top) *Top {
				for _, d := range docs {
					if err := top.AddBytes(d.bytes(), nil); err != nil {
						t.Fatal(err)
					}
				}
				return top
			}
			top := run(newTop(n, room))
			wasLost := top.Lost()
			got, want := top.Entries(), truth[:min(n, len(truth))]
			if top.Lost() {
				lost++
				want = want[:min(len(got), len(want))]
			}
			if !slices.Equal(got, want) {
				t.Fatalf("round %d, order %d, n %d, lost %v:\n got %v\nwant %v\n%v", round, order, n, top.Lost(), got, want, docs)
			}
			if again := run(top.Again()); again.Lost() || !slices.Equal(again.Entries(), truth[:min(n, len(truth))]) {
				t.Fatalf("round %d: the second pass\n got %v\nwant %v", round, again.Entries(), truth[:min(n, len(truth))])
			}
			for range 3 {
				if again := run(newTop(n, room)); !slices.Equal(again.Entries(), got) || again.Lost() != wasLost {
					t.Fatalf("round %d, order %d, n %d: first %d entries, then %d", round, order, n, len(got), len(again.Entries()))
				}
			}
		}
	}
	if lost == 0 {
		t.Error("no entries were lost in any round, so this tests nothing")
	}
}

// TestTopStaleDocumentWithOthers checks that entries of other feeds in an outdated ESS
// document count.
func TestTopStaleDocumentWithOthers(t *testing.T) {
	docs := []string{"120000,http://e.com/a,0,1", "60000,http://e.com/a,1,1,2,2,http://e.com/b,3,3"}
	want := list(fe("http://e.com/a", 2000, 1), fe("http://e.com/b", 997, 3))
	for range 2 {
		top := NewTop(10)
		for _, d := range docs {
			if err := top.AddBytes([]byte(d), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := top.Entries(); !slices.Equal(got, want) {
			t.Errorf("got %q: %v; want slices.Equal(got, want)", docs, got)
		}
		slices.Reverse(docs)
	}
}

// TestTopEmptied checks that a newer document without entries removes the entries of its feed.
func TestTopEmptied(t *testing.T) {
	top := NewTop(10)
	add(t, top, "60000,http://e.com/a,10,1,20,2", "60000,http://e.com/b,10,1", "60060,http://e.com/a")
	if got, want := top.Entries(), list(fe("http://e.com/b", 990, 1)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestStrictOwn checks that DecodeStrict finds no defects in written documents, whose entries
// are ordered by their escaped URLs.
func TestStrictOwn(t *testing.T) {
	entries := list(fe("http://e.com/a,b", 5, 1), fe("http://e.com/a+b", 5, 1), fe("http://e.com/\x00", 5, 1), fe("http://e.com/a+b", 5, 0), fe("http://e.com/é", 9, 1))
	doc := AppendNNO(nil, Time(60), entries)
	if got, err := DecodeStrict(doc, func(w Warning) { t.Error(w) }); err != nil || len(got.Entries) != 5 {
		t.Errorf("got %s: %v, %v; want err == nil and len(got.Entries) == 5", doc, got, err)
	}
	doc = AppendESS(nil, Time(60), "http://e.com/a,b", []Entry{{5, 2}, {5, 1}, {9, 0}, {70, 255}, {5, 1}})
	if got, err := DecodeStrict(doc, func(w Warning) { t.Error(w) }); err != nil || len(got.Entries) != 5 {
		t.Errorf("got %s: %v, %v; want err == nil and len(got.Entries) == 5", doc, got, err)
	}
}
