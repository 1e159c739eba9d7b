package tui

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// The library looks for something to draw at each tick of a clock, framesPerSecond times a
// second for as long as it runs, which costs a battery more than the reader itself. drawClock
// stops that clock while no message comes. Only a message changes what is drawn.
type drawClock struct {
	ticker  *time.Ticker
	mu      sync.Mutex
	idle    *time.Timer
	touched bool // a message came since the last look
	state   clockState
}

type clockState int

const (
	drawing clockState = iota
	slow               // one more look at what a busy machine may have missed
	stopped
)

// quiet is how long no message comes until the clock is slowed, and lastLook how long it is
// slow until it is stopped.
const (
	quiet    = 300 * time.Millisecond
	lastLook = 2500 * time.Millisecond
)

// newDrawClock returns the clock of a program that runs, nil if it has none that we know.
func newDrawClock(p *tea.Program) *drawClock {
	// The library has no option for it, and keeps the ticker to itself.
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() || field.IsNil() {
		return nil
	}
	c := &drawClock{ticker: (*time.Ticker)(field.UnsafePointer())}
	c.idle = time.AfterFunc(quiet, c.look)
	return c
}

// wake starts the clock, as something may have to be drawn.
func (c *drawClock) wake() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touched = true
	if c.state != drawing {
		c.state = drawing
		c.ticker.Reset(frame)
		c.idle.Reset(quiet)
	}
}

// look slows the clock and then stops it, unless a message came.
func (c *drawClock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.touched:
		c.touched = false
		c.idle.Reset(quiet)
	case c.state == drawing:
		c.state = slow
		c.ticker.Reset(lastLook / 3)
		c.idle.Reset(lastLook)
	default:
		c.state = stopped
		c.ticker.Stop()
	}
}
