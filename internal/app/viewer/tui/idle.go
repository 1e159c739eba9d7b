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
	idle    *time.Timer
	touched bool // a message came since the last call of look
	state   clockState
}

type clockState int

const (
	drawing clockState = iota
	hurried            // after a key
	slow               // a few more ticks, in case a busy machine missed one
	stopped
)

// quiet is the time without a message after which the ticker is slowed, and lastLook the time
// after that until it is stopped.
const (
	quiet    = 300 * time.Millisecond
	lastLook = 2500 * time.Millisecond
)

// shortFrame is the interval between two draws after a key.
const shortFrame = time.Millisecond

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
	c.idle = time.AfterFunc(quiet, c.look)
	return c
}

// wake starts the ticker, as something may have to be drawn, after a key at once.
func (c *drawClock) wake(key bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touched = true
	switch {
	case key:
		c.set(hurried, shortFrame, frame)
	case c.state == slow, c.state == stopped:
		c.set(drawing, frame, quiet)
	}
}

// set sets the interval of the ticker, and the time until the next look. The caller holds c.mu.
func (c *drawClock) set(state clockState, interval, look time.Duration) {
	c.state = state
	c.ticker.Reset(interval)
	c.idle.Reset(look)
}

// look slows the ticker and then stops it, unless a message came.
func (c *drawClock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state == hurried:
		c.set(drawing, frame, quiet)
	case c.touched:
		c.touched = false
		c.idle.Reset(quiet)
	case c.state == drawing:
		c.set(slow, lastLook/3, lastLook)
	default:
		c.state = stopped
		c.ticker.Stop()
	}
}
