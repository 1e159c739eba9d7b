package fetch

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/httpmsg"
	"github.com/lektordir/lektor/internal/limiter"
)

// maxHostWait is the longest Retry-After of a host that another request to it
// waits for; beyond it the request fails with a HostDelayError instead, so
// that one host cannot hold up a run.
const maxHostWait = 5 * time.Second

// gates lets requests to each host through, [Config].PerHost at a time, in the order in
// which they came, with pauses between them.
type gates struct {
	cfg    Config
	places *limiter.Limiter // places of each host

	mu      sync.Mutex
	pauses  map[string]pause // pauses of hosts
	sweepAt int              // size of pauses at which those that are over are removed
}

// pause is the time in which a host is not asked.
type pause struct {
	ready   time.Time // when the gap after the last request is over
	blocked time.Time // when Retry-After lets us ask again
	status  int       // that Retry-After came with
}

func (p pause) until() time.Time {
	if p.blocked.After(p.ready) {
		return p.blocked
	}
	return p.ready
}

func newGates(cfg Config) *gates {
	return &gates{cfg: cfg, places: limiter.New(limiter.Options{All: limiter.Unlimited, Each: cfg.PerHost}), pauses: map[string]pause{}}
}

// enter waits for a place at host and for the pause to be over. leave returns the place;
// the gap begins then.
func (gs *gates) enter(ctx context.Context, host string) (leave func(), err error) {
	if _, err := gs.pause(host); err != nil {
		return nil, err
	}
	place, err := gs.places.Acquire(ctx, host)
	if err != nil {
		return nil, err
	}
	if err := gs.rest(ctx, host); err != nil {
		place.Release()
		return nil, err
	}
	return func() {
		gs.set(host, func(p *pause) { p.ready = gs.cfg.Now().Add(gs.cfg.Gap) })
		place.Release()
	}, nil
}

// rest waits until the host may be asked. Other requests that run beside it (PerHost > 1)
// may move the time while we sleep, but only those that run already.
func (gs *gates) rest(ctx context.Context, host string) error {
	var slept time.Time
	for {
		p, err := gs.pause(host)
		until := p.until()
		wait := until.Sub(gs.cfg.Now())
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		// A clock that stands still or runs backwards must not keep us here.
		if err != nil || wait <= 0 || !until.After(slept) {
			return err
		}
		slept = until
		if err := gs.cfg.Sleep(ctx, min(wait, max(gs.cfg.Gap, maxHostWait))); err != nil {
			return err
		}
	}
}

// block keeps all requests from host for d from now on.
func (gs *gates) block(host string, status int, d time.Duration) {
	gs.set(host, func(p *pause) {
		if until := gs.cfg.Now().Add(d); until.After(p.blocked) {
			p.blocked, p.status = until, status
		}
	})
}

// pause returns the pause of a host. It is an error if the host wants to be left alone for
// longer than one waits.
func (gs *gates) pause(host string) (pause, error) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	p := gs.pauses[host]
	if left := p.blocked.Sub(gs.cfg.Now()); left > maxHostWait {
		return p, &httpmsg.HostDelayError{Host: host, Status: p.status, Until: p.blocked, Left: left}
	}
	return p, nil
}

// set changes the pause of a host. Pauses that are over are removed whenever their number
// may have doubled, so that each request pays for a constant share of it.
func (gs *gates) set(host string, change func(*pause)) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if len(gs.pauses) >= max(gs.sweepAt, 64) {
		now := gs.cfg.Now()
		maps.DeleteFunc(gs.pauses, func(_ string, p pause) bool { return !p.until().After(now) })
		gs.sweepAt = 2 * len(gs.pauses)
	}
	p := gs.pauses[host]
	change(&p)
	gs.pauses[host] = p
}
