package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Clock is a clock that moves only by Sleep and [Clock.Add]. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock returns a clock at Monday noon, 2 March 2026, UTC.
func NewClock() *Clock { return ClockAt(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)) }

// ClockAt returns a clock at a time.
func ClockAt(t time.Time) *Clock { return &Clock{t: t} }

// Now returns the time on the clock.
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

// Sleep moves the clock and returns at once. The error is that of ctx.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.Add(d)
	return ctx.Err()
}

// Log collects the messages of a command, one a line. The zero value is empty. It is safe for
// concurrent use.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// Warn adds a warning, with the prefix "warning: ".
func (l *Log) Warn(format string, args ...any) { l.Info("warning: "+format, args...) }

// Info adds a message.
func (l *Log) Info(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// String returns all messages.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
