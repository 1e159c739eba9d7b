package limiter

import (
	"math"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	doubling := Backoff{Base: time.Minute, Cap: time.Hour}
	steps := Backoff{Steps: []time.Duration{time.Second, time.Minute}}
	for _, c := range []struct {
		name       string
		b          Backoff
		failures   int
		random     float64
		retryAfter time.Duration
		want       time.Duration
	}{
		{"no failure", doubling, 0, 0, 0, 0},
		{"the first", doubling, 1, 0, 0, time.Minute},
		{"the third", doubling, 3, 0, 0, 4 * time.Minute},
		{"below the cap", doubling, 6, 0, 0, 32 * time.Minute},
		{"the cap", doubling, 7, 0, 0, time.Hour},
		{"far beyond the cap", doubling, math.MaxInt32, 0, 0, time.Hour},
		{"a base above the cap", Backoff{Base: 2 * time.Hour, Cap: time.Hour}, 1, 0, 0, 2 * time.Hour},
		{"a base above the cap, again", Backoff{Base: 2 * time.Hour, Cap: time.Hour}, 9, 0, 0, 2 * time.Hour},
		{"a server's pause", doubling, 1, 0, time.Hour, time.Hour},
		{"a shorter pause", doubling, 3, 0, time.Minute, 4 * time.Minute},
		{"a pause without failure", doubling, 0, 0, time.Minute, time.Minute},
		{"nothing but pauses", Backoff{}, 5, 0.5, time.Minute, time.Minute},
		{"a step", steps, 1, 0, 0, time.Second},
		{"the last step", steps, 2, 0, 0, time.Minute},
		{"beyond the last step", steps, 9, 0, 0, time.Minute},
		{"longer by jitter", Backoff{Base: time.Hour, Jitter: 0.5}, 1, 0.5, 0, 75 * time.Minute},
		{"shorter by jitter", Backoff{Base: time.Hour, Jitter: -0.5}, 1, 0.5, 0, 45 * time.Minute},
	} {
		if got := c.b.Wait(c.failures, c.random, c.retryAfter); got != c.want {
			t.Errorf("%s: Wait = %v, want %v", c.name, got, c.want)
		}
	}
	for failures, want := range []bool{false, false, false, true} {
		if got := steps.Over(failures); got != want {
			t.Errorf("Over(%d) of two steps = %v, want %v", failures, got, want)
		}
	}
}
