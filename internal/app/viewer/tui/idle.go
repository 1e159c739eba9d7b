package tui

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// drawClock stops the library's draw ticker while no message comes. The ticker runs
// framesPerSecond times a second all the time, which uses more battery than the rest of the
// reader. Only a message changes the screen. After a key the clock ticks faster for a frame, so
// that the key need not wait for the next draw.
type drawClock struct {
	ticker  *time.Ticker
	mu      sync.Mutex
	next    *time.Timer // until the next step
	step    int         // index in steps, or the number of steps if the ticker is stopped
	touched bool        // a message came in the present step
}

// steps are the intervals of the ticker, and how long each is used.
var steps = [...]struct{ interval, lasts time.Duration }{
	{time.Millisecond, frame},                         // after a key
	{frame, 300 * time.Millisecond},                   // after another message
	{800 * time.Millisecond, 2500 * time.Millisecond}, // a few more ticks, in case a busy machine missed one
}

// newDrawClock returns the clock of a running program, nil if the library has no such ticker.
func newDrawClock(p *tea.Program) *drawClock {
	// The library has no option for this, and its ticker is an unexported field.
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() || field.IsNil() {
		return nil
	}
	c := &drawClock{ticker: (*time.Ticker)(field.UnsafePointer()), step: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = time.AfterFunc(steps[c.step].lasts, c.look)
	return c
}

// wake starts the ticker, as something may have to be drawn, after a key at once.
func (c *drawClock) wake(key bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.touched = true; {
	case key:
		c.to(0)
	case c.step > 1:
		c.to(1)
	}
}

// to begins a step. The caller holds c.mu.
func (c *drawClock) to(step int) {
	if c.step = step; step == len(steps) {
		c.ticker.Stop()
		return
	}
	c.ticker.Reset(steps[step].interval)
	c.next.Reset(steps[step].lasts)
}

// look begins the next step, unless a message came.
func (c *drawClock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.touched && c.step == 1 {
		c.touched = false
		c.next.Reset(steps[1].lasts)
		return
	}
	c.to(c.step + 1)
}
