package server

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that only sleeping and [Clock.Add] move. It is safe for
// concurrent use.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock starts on a Monday at noon, 2 March 2026 in UTC.
func NewClock() *Clock { return &Clock{t: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)} }

// Now is the time on the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Add moves the clock.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// Sleep moves the clock and returns at once, with the error of ctx.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.Add(d)
	return ctx.Err()
}
