package fetch

import (
	"context"
	"sync"
	"time"
)

// maxHostWait is the longest Retry-After of a host that another request to it
// waits for; beyond it the request fails with a HostDelayError instead, so
// that one host cannot hold up a run.
const maxHostWait = 5 * time.Second

// gates lets requests to each host through one after another. Requests wait in
// the order in which they came. A host that is not in use costs nothing once
// its gap is over.
type gates struct {
	perHost int
	gap     time.Duration
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error

	mu      sync.Mutex
	m       map[string]*gate
	sweepAt int // size of m at which idle gates are removed
}

type gate struct {
	active  int             // slots taken
	waiting []chan struct{} // closed when a slot is handed over
	// ready is when the gap after the last request is over; blocked is when
	// Retry-After lets us ask again, and status what it came with.
	ready, blocked time.Time
	status         int
}

func (g *gate) idle(now time.Time) bool {
	return g.active == 0 && len(g.waiting) == 0 && !g.ready.After(now) && !g.blocked.After(now)
}

// enter waits for a slot of host and for the gap to be over. Every call that
// returns nil must be followed by leave.
func (gs *gates) enter(ctx context.Context, host string) error {
	gs.mu.Lock()
	if err := gs.delayed(host); err != nil {
		gs.mu.Unlock()
		return err
	}
	g := gs.m[host]
	if g == nil {
		gs.sweep()
		g = &gate{}
		gs.m[host] = g
	}
	if g.active < gs.perHost && len(g.waiting) == 0 {
		g.active++
		gs.mu.Unlock()
	} else {
		turn := make(chan struct{})
		g.waiting = append(g.waiting, turn)
		gs.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			gs.mu.Lock()
			defer gs.mu.Unlock()
			for i, w := range g.waiting {
				if w == turn {
					g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
					return context.Cause(ctx)
				}
			}
			gs.pass(g) // the slot came at the same moment
			return context.Cause(ctx)
		}
	}
	// The slot is ours. Other requests that run beside it (perHost > 1) may
	// move the time while we sleep, but only those that run already.
	var slept time.Time
	for {
		gs.mu.Lock()
		err := gs.delayed(host)
		until := g.ready
		if g.blocked.After(until) {
			until = g.blocked
		}
		wait := until.Sub(gs.now())
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			gs.pass(g)
			gs.mu.Unlock()
			return err
		}
		gs.mu.Unlock()
		// A clock that stands still or runs backwards must not keep us here.
		if wait <= 0 || !until.After(slept) {
			return nil
		}
		slept = until
		if err := gs.sleep(ctx, min(wait, max(gs.gap, maxHostWait))); err != nil {
			gs.mu.Lock()
			gs.pass(g)
			gs.mu.Unlock()
			return err
		}
	}
}

// leave gives the slot back; the gap begins.
func (gs *gates) leave(host string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.m[host]
	g.ready = gs.now().Add(gs.gap)
	gs.pass(g)
}

// block keeps all requests from host for d from now on.
func (gs *gates) block(host string, status int, d time.Duration) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.m[host]
	if until := gs.now().Add(d); g != nil && until.After(g.blocked) {
		g.blocked, g.status = until, status
	}
}

// delayed is the error for a request to a host that wants to be left alone for
// longer than one waits. The caller holds mu.
func (gs *gates) delayed(host string) error {
	g := gs.m[host]
	if g == nil {
		return nil
	}
	if left := g.blocked.Sub(gs.now()); left > maxHostWait {
		return &HostDelayError{Host: host, Status: g.status, Until: g.blocked, Left: left}
	}
	return nil
}

// pass gives a slot to whoever has waited longest. The caller holds mu.
func (gs *gates) pass(g *gate) {
	if len(g.waiting) == 0 {
		g.active--
		return
	}
	close(g.waiting[0])
	g.waiting = g.waiting[1:]
}

// sweep forgets idle hosts whenever their number may have doubled, so that
// each request pays for a constant share of it. The caller holds mu.
func (gs *gates) sweep() {
	if gs.m == nil {
		gs.m = make(map[string]*gate)
	}
	if len(gs.m) < max(gs.sweepAt, 64) {
		return
	}
	now := gs.now()
	for h, g := range gs.m {
		if g.idle(now) {
			delete(gs.m, h)
		}
	}
	gs.sweepAt = 2 * len(gs.m)
}
