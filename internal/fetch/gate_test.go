package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
)

func newGates(perHost int, gap time.Duration) *gates {
	return &gates{perHost: perHost, gap: gap, now: time.Now, sleep: sleep}
}

// Per host one request at a time and a gap between the end of one and the
// start of the next, in the order of the calls; other hosts do not wait.
func TestGateOrderAndGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := newGates(1, 250*time.Millisecond)
		start := time.Now()
		var mu sync.Mutex
		var got []string
		var wg sync.WaitGroup
		for i := range 5 {
			for _, host := range []string{"a:80", "b:80"} {
				wg.Go(func() {
					if err := gs.enter(t.Context(), host); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					got = append(got, fmt.Sprint(host, i, " ", time.Since(start)))
					mu.Unlock()
					time.Sleep(time.Second)
					gs.leave(host)
				})
			}
			synctest.Wait() // so that the order of calls is known
		}
		wg.Wait()
		var want []string
		for i := range 5 {
			at := time.Duration(i) * 1250 * time.Millisecond
			want = append(want, fmt.Sprint("a:80", i, " ", at), fmt.Sprint("b:80", i, " ", at))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("requests started at\n%q, want\n%q", got, want)
		}
	})
}

func TestGatePerHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := newGates(3, 0)
		var active, most atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := gs.enter(t.Context(), "a:80"); err != nil {
					t.Error(err)
					return
				}
				if n := active.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				active.Add(-1)
				gs.leave("a:80")
			})
		}
		wg.Wait()
		if most.Load() != 3 {
			t.Errorf("%d requests at once, want 3", most.Load())
		}
	})
}

func TestGateHeedsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := newGates(1, time.Hour)
		if err := gs.enter(t.Context(), "a:80"); err != nil {
			t.Fatal(err)
		}
		// Waiting for the slot.
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() { errs <- gs.enter(ctx, "a:80") }()
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("waiting for a slot ended with %v", err)
		}
		gs.leave("a:80")
		// Waiting for the gap.
		ctx, cancel = context.WithCancel(t.Context())
		go func() { errs <- gs.enter(ctx, "a:80") }()
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("waiting for the gap ended with %v", err)
		}
		if g := gs.m["a:80"]; g.users != 0 {
			t.Errorf("the slot was not given back: %+v", g)
		}
		time.Sleep(time.Hour)
		if err := gs.enter(t.Context(), "a:80"); err != nil {
			t.Error(err)
		}
		gs.leave("a:80")
	})
}

// A host that wants to be left alone is: those that wait in line hear of it,
// too. A few seconds are waited for.
func TestGateBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := newGates(1, 0)
		if err := gs.enter(t.Context(), "a:80"); err != nil {
			t.Fatal(err)
		}
		errs := make(chan error)
		go func() { errs <- gs.enter(t.Context(), "a:80") }()
		synctest.Wait()
		gs.block("a:80", 429, time.Minute)
		gs.leave("a:80")
		var delay *HostDelayError
		if err := <-errs; !errors.As(err, &delay) || delay.Left != time.Minute || delay.Status != 429 {
			t.Errorf("who waited in line got %v", err)
		}
		if err := gs.enter(t.Context(), "b:80"); err != nil {
			t.Errorf("another host: %v", err)
		}
		time.Sleep(time.Minute - 2*time.Second)
		before := time.Now()
		if err := gs.enter(t.Context(), "a:80"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(before); d != 2*time.Second {
			t.Errorf("waited %v for the last 2 seconds", d)
		}
	})
}

// Thousands of hosts leave nothing behind.
func TestGateForgets(t *testing.T) {
	c := server.NewClock()
	gs := &gates{perHost: 1, gap: time.Second, now: c.Now, sleep: c.Sleep}
	for i := range 20000 {
		host := fmt.Sprint("host", i, ":80")
		if err := gs.enter(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		gs.leave(host)
		c.Add(time.Second / 10)
	}
	if len(gs.m) > 200 {
		t.Errorf("%d hosts are remembered", len(gs.m))
	}
}

// With a clock that stands still requests go on.
func TestGateStoppedClock(t *testing.T) {
	now := time.Now()
	gs := &gates{perHost: 1, gap: time.Second, now: func() time.Time { return now },
		sleep: func(context.Context, time.Duration) error { return nil }}
	for range 3 {
		if err := gs.enter(t.Context(), "a:80"); err != nil {
			t.Fatal(err)
		}
		gs.leave("a:80")
	}
}
