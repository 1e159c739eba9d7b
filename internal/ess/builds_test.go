package ess

import (
	"math/rand/v2"
	"testing"
)

// TestBuilds: what a table of builds says is what a map says, while it grows, of a copy
// and of two that were merged.
func TestBuilds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var a, b builds
	of := [3]map[uint64]int64{{}, {}, {}} // of the one, of the other and of both
	hashes := make([]uint64, 30_000)
	for i := range hashes {
		hashes[i] = rng.Uint64()
	}
	for range 100_000 {
		h, build := hashes[rng.IntN(len(hashes))], rng.Int64N(1<<20)
		which := rng.IntN(2)
		[]*builds{&a, &b}[which].learn(h, build)
		for _, m := range []map[uint64]int64{of[which], of[2]} {
			if m[h] = max(m[h], build); m[h] == 0 {
				delete(m, h)
			}
		}
	}
	both := a.clone()
	both.merge(&b)
	for which, table := range []*builds{&a, &b, &both} {
		if table.n != len(of[which]) {
			t.Errorf("%d feeds are known, not %d", table.n, len(of[which]))
		}
		for _, h := range hashes {
			if got := table.of(h); got != of[which][h] {
				t.Fatalf("%#x: %d, not %d", h, got, of[which][h])
			}
		}
	}
	// What is built after all times counts as the last one, and never less than others.
	both.learn(7<<40, 1<<40)
	both.learn(8<<40, -1)
	if both.of(7<<40) != lastBuild || both.of(8<<40) != 0 {
		t.Errorf("%d and %d", both.of(7<<40), both.of(8<<40))
	}
}
