package fetch

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
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
	slots *semaphore.Weighted // handed over in the order in which requests came
	users int                 // that have a slot or wait for one
	// ready is when the gap after the last request is over; blocked is when
	// Retry-After lets us ask again, and status what it came with.
	ready, blocked time.Time
	status         int
}

func (g *gate) idle(now time.Time) bool {
	return g.users == 0 && !g.ready.After(now) && !g.blocked.After(now)
}

// enter waits for a slot of host and for the gap to be over. Every call that
// returns nil must be followed by leave.
func (gs *gates) enter(ctx context.Context, host string) error {
	gs.mu.Lock()
	g := gs.m[host]
	if g == nil {
		gs.sweep()
		g = &gate{slots: semaphore.NewWeighted(int64(gs.perHost))}
		gs.m[host] = g
	}
	err := gs.delayed(host)
	if err == nil {
		g.users++
	}
	gs.mu.Unlock()
	if err != nil {
		return err
	}
	if err := g.slots.Acquire(ctx, 1); err != nil {
		gs.mu.Lock()
		g.users--
		gs.mu.Unlock()
		return context.Cause(ctx)
	}
	if err := gs.rest(ctx, host, g); err != nil {
		gs.mu.Lock()
		defer gs.mu.Unlock()
		gs.pass(g)
		return err
	}
	return nil
}

// rest waits, in a slot, until the host may be asked. Other requests that run
// beside it (perHost > 1) may move the time while we sleep, but only those that
// run already.
func (gs *gates) rest(ctx context.Context, host string, g *gate) error {
	var slept time.Time
	for {
		gs.mu.Lock()
		err := gs.delayed(host)
		until := g.ready
		if g.blocked.After(until) {
			until = g.blocked
		}
		wait := until.Sub(gs.now())
		gs.mu.Unlock()
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		// A clock that stands still or runs backwards must not keep us here.
		if err != nil || wait <= 0 || !until.After(slept) {
			return err
		}
		slept = until
		if err := gs.sleep(ctx, min(wait, max(gs.gap, maxHostWait))); err != nil {
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
	g.users--
	g.slots.Release(1)
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
