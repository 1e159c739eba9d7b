package tui

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// drawClock stops the library's draw ticker while no message comes. The ticker runs
// framesPerSecond times a second all the time, which uses more battery than the rest of the
// reader. Only a message changes the screen. After a key the clock ticks faster for a while, so
// that the key need not wait for the next draw.
type drawClock struct {
	ticker   *time.Ticker
	mu       sync.Mutex
	next     *time.Timer   // until the next step
	interval time.Duration // of the ticker, too long if it is stopped
}

// newDrawClock returns the clock of a running program, nil if the library has no such ticker.
func newDrawClock(p *tea.Program) *drawClock {
	// The library has no option for this, and its ticker is an unexported field.
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() || field.IsNil() {
		return nil
	}
	c := &drawClock{ticker: (*time.Ticker)(field.UnsafePointer())}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = time.AfterFunc(time.Hour, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.step(8 * c.interval)
	})
	c.step(frame)
	return c
}

// wake starts the ticker, as something may have to be drawn, after a key at once.
func (c *drawClock) wake(key bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case key:
		c.step(frame / 8)
	case c.interval > frame:
		c.step(frame)
	case c.interval == frame: // a tick must not wait longer because another message comes
		c.next.Reset(stepTicks * frame)
	}
}

// stepTicks is the number of ticks of a step.
const stepTicks = 40

// step begins a step: ticks in an interval. The next step has longer ones, in case a busy machine missed a tick, until
// the ticker is stopped. The caller holds c.mu.
func (c *drawClock) step(interval time.Duration) {
	if c.interval = interval; interval > 8*frame {
		c.ticker.Stop()
		return
	}
	c.ticker.Reset(interval)
	c.next.Reset(stepTicks * interval)
}
