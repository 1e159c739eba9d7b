package fetch

import (
	"context"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/limiter"
)

// maxHostWait is the longest Retry-After for which other requests to the host wait. After a longer
// one they fail with a HostDelayError, so that one host does not delay the whole run.
const maxHostWait = 5 * time.Second

// gates limits the concurrent requests to each host to [Config].PerHost, in the order of the calls,
// with pauses between them. A pause may also be that of a URL.
type gates struct {
	cfg    Config
	places *limiter.Limiter // places of each host

	mu      sync.Mutex
	pauses  map[string]pause // pauses of hosts, services and URLs
	sweepAt int              // size of pauses at which ended pauses are removed
}

// pause is the time until the next request to a host.
type pause struct {
	ready   time.Time // end of the gap after the last request
	blocked time.Time // end of Retry-After
	status  int       // of the response with Retry-After
}

func (p pause) until() time.Time {
	if p.blocked.After(p.ready) {
		return p.blocked
	}
	return p.ready
}

func newGates(cfg Config) *gates {
	return &gates{cfg: cfg, places: limiter.New(limiter.Options{All: limiter.Unlimited, Each: cfg.PerHost}),
		pauses: map[string]pause{}}
}

// enter waits for a place at host and for the end of its pause. leave releases the place and starts
// the gap.
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

// rest waits until the pause of a host or URL ends. A concurrent request (PerHost > 1) may extend the
// pause meanwhile.
func (gs *gates) rest(ctx context.Context, host string) error {
	var slept time.Time
	for {
		p, err := gs.pause(host)
		until := p.until()
		wait := until.Sub(gs.cfg.Now())
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		// Do not wait forever for a clock that stands still or runs backwards.
		if err != nil || wait <= 0 || !until.After(slept) {
			return err
		}
		slept = until
		if err := gs.cfg.Sleep(ctx, min(wait, max(gs.cfg.Gap, maxHostWait))); err != nil {
			return err
		}
	}
}

// services are domains whose subdomains are one service, although the list of public suffixes does not
// have them.
var services = map[string]bool{"substack.com": true, "tumblr.com": true}

// serviceOf returns the service that a host belongs to, as in "blogspot.com:443", or else the host. Its
// subdomains are sites of many people, with one rate limit for all of them.
func serviceOf(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return host
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	suffix, icann := publicsuffix.PublicSuffix(name)
	if domain, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil && services[domain] {
		return net.JoinHostPort(domain, port)
	}
	if icann || !strings.Contains(suffix, ".") { // not a private part of the list
		return host
	}
	return net.JoinHostPort(suffix, port)
}

// block blocks all requests to a host, a service or a URL for d.
func (gs *gates) block(key string, status int, d time.Duration) {
	gs.set(key, func(p *pause) {
		if until := gs.cfg.Now().Add(d); until.After(p.blocked) {
			p.blocked, p.status = until, status
		}
	})
}

// pause returns the pause of a host or URL, and an error if that or its service is blocked for longer
// than maxHostWait.
func (gs *gates) pause(host string) (pause, error) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	p := gs.pauses[host]
	if s := gs.pauses[serviceOf(host)]; s.blocked.After(p.blocked) {
		p.blocked, p.status = s.blocked, s.status
	}
	if delay := p.blocked.Sub(gs.cfg.Now()); delay > maxHostWait {
		return p, &httpmsg.HostDelayError{Host: host, Status: p.status, Until: p.blocked, Left: delay}
	}
	return p, nil
}

// set changes the pause of a host. It removes ended pauses whenever the map may have doubled, so
// the cost per request is constant on average.
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
