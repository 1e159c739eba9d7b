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

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/testkit/server"
)

func gatesOf(perHost int, gap time.Duration) *gates {
	return NewClient(Config{PerHost: perHost, Gap: gap}).gates
}

// Each host gets one request at a time, in the order of the calls, with the gap between the end of
// one and the start of the next. Other hosts do not wait.
func TestGateOrderAndGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := gatesOf(1, 250*time.Millisecond)
		start := time.Now()
		var mu sync.Mutex
		var got []string
		var wg sync.WaitGroup
		for i := range 5 {
			for _, host := range []string{"a:80", "b:80"} {
				wg.Go(func() {
					leave, err := gs.enter(t.Context(), host)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					got = append(got, fmt.Sprint(host, i, " ", time.Since(start)))
					mu.Unlock()
					time.Sleep(time.Second)
					leave()
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
		gs := gatesOf(3, 0)
		var active, most atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				leave, err := gs.enter(t.Context(), "a:80")
				if err != nil {
					t.Error(err)
					return
				}
				if n := active.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				active.Add(-1)
				leave()
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
		gs := gatesOf(1, time.Hour)
		leave, err := gs.enter(t.Context(), "a:80")
		if err != nil {
			t.Fatal(err)
		}
		stopped := func(where string) {
			ctx, cancel := context.WithCancel(t.Context())
			errs := make(chan error)
			go func() { _, err := gs.enter(ctx, "a:80"); errs <- err }()
			synctest.Wait()
			cancel()
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("waiting for %s ended with %v", where, err)
			}
		}
		stopped("the place")
		leave()
		stopped("the gap")
		time.Sleep(time.Hour)
		if leave, err = gs.enter(t.Context(), "a:80"); err != nil {
			t.Fatal(err)
		}
		leave()
	})
}

// If a host is blocked for long, waiting requests fail, too. They wait for a block of a few
// seconds.
func TestGateBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := gatesOf(1, 0)
		leave, err := gs.enter(t.Context(), "a:80")
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error)
		go func() { _, err := gs.enter(t.Context(), "a:80"); errs <- err }()
		synctest.Wait()
		gs.block("a:80", 429, time.Minute)
		leave()
		var delay *httpmsg.HostDelayError
		if err := <-errs; !errors.As(err, &delay) || delay.Left != time.Minute || delay.Status != 429 {
			t.Errorf("the waiting request got %v", err)
		}
		if _, err := gs.enter(t.Context(), "b:80"); err != nil {
			t.Errorf("another host: %v", err)
		}
		time.Sleep(time.Minute - 2*time.Second)
		before := time.Now()
		if _, err := gs.enter(t.Context(), "a:80"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(before); d != 2*time.Second {
			t.Errorf("waited %v for the last 2 seconds", d)
		}
	})
}

// The pauses of thousands of hosts are removed.
func TestGateForgets(t *testing.T) {
	c := server.NewClock()
	gs := NewClient(Config{Gap: time.Second, Now: c.Now, Sleep: c.Sleep}).gates
	for i := range 20000 {
		leave, err := gs.enter(t.Context(), fmt.Sprint("host", i, ":80"))
		if err != nil {
			t.Fatal(err)
		}
		leave()
		c.Add(time.Second / 10)
	}
	if len(gs.pauses) > 200 || gs.places.Names() > 0 {
		t.Errorf("%d hosts are remembered, %d have places", len(gs.pauses), gs.places.Names())
	}
}

// If the clock stands still, requests do not hang.
func TestGateStoppedClock(t *testing.T) {
	now := time.Now()
	gs := NewClient(Config{Gap: time.Second, Now: func() time.Time { return now },
		Sleep: func(context.Context, time.Duration) error { return nil }}).gates
	for range 3 {
		leave, err := gs.enter(t.Context(), "a:80")
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
}
