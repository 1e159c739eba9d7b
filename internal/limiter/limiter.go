// Package limiter bounds how much is done at once: in all, and for one host or caller.
package limiter

import (
	"context"
	"sync"
	"time"
)

// Options are the bounds of a [Limiter].
type Options struct {
	All  int // holders at once; [Unlimited] needs After 0
	Each int // holders at once that have the same name

	// After is how long a holder counts as one of All and Each. A holder that takes longer
	// is counted in a slow lane instead, if that has room, and so delays no quick one; 0
	// means that there is no slow lane.
	After             time.Duration
	SlowAll, SlowEach int // bounds of the slow lane

	// AfterFunc stands in for [time.AfterFunc]. It returns a function that stops the timer.
	AfterFunc func(d time.Duration, f func()) (stop func())
}

// Unlimited is the value of [Options].All for any number of holders.
const Unlimited = -1

// Limiter is a set of places. Waiting callers of one name get places in the order of their
// calls, and take none from callers of other names. It may be used by many goroutines.
type Limiter struct {
	o    Options
	all  lane
	mu   sync.Mutex
	each map[string]*name
}

// lane holds the places of quick holders, and those of slow ones.
type lane struct{ quick, slow chan struct{} }

func newLane(quick, slow int) lane {
	return lane{make(chan struct{}, quick), make(chan struct{}, slow)}
}

// name is a host or caller that has places, or waits for one.
type name struct {
	lane
	users int
}

// New returns a limiter without holders.
func New(o Options) *Limiter {
	if o.AfterFunc == nil {
		o.AfterFunc = func(d time.Duration, f func()) func() {
			timer := time.AfterFunc(d, f)
			return func() { timer.Stop() }
		}
	}
	return &Limiter{o: o, all: newLane(max(o.All, 0), o.SlowAll), each: map[string]*name{}}
}

// Place is a place that a holder has. The holder must call Release.
type Place struct {
	l    *Limiter
	key  string
	name *name
	stop func()

	mu   sync.Mutex
	lane state
}

// state is the lane of a place.
type state int

const (
	quick    state = iota
	late           // slow, and in the quick lane for want of room
	slow           // in the slow lane
	released       //
)

// Acquire waits for a place, and fails when ctx ends first.
func (l *Limiter) Acquire(ctx context.Context, key string) (*Place, error) {
	l.mu.Lock()
	n := l.each[key]
	if n == nil {
		n = &name{lane: newLane(l.o.Each, l.o.SlowEach)}
		l.each[key] = n
	}
	n.users++
	l.mu.Unlock()
	places := []chan struct{}{n.quick, l.all.quick}
	if l.o.All == Unlimited {
		places = places[:1]
	}
	for i, place := range places {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			if i == 1 {
				<-n.quick
			}
			l.forget(key, n)
			return nil, context.Cause(ctx)
		}
	}
	p := &Place{l: l, key: key, name: n, stop: func() {}}
	if l.o.After > 0 {
		// Under the lock, so that a timer that fires at once finds p whole.
		p.mu.Lock()
		p.stop = l.o.AfterFunc(l.o.After, p.handOver)
		p.mu.Unlock()
	}
	return p, nil
}

func (l *Limiter) forget(key string, n *name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.users--; n.users == 0 {
		delete(l.each, key)
	}
}

// handOver moves a place to the slow lane.
func (p *Place) handOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lane != quick {
		return
	}
	p.lane = late
	select {
	case p.name.slow <- struct{}{}:
	default:
		return
	}
	select {
	case p.l.all.slow <- struct{}{}:
	default:
		<-p.name.slow
		return
	}
	p.lane = slow
	<-p.l.all.quick
	<-p.name.quick
}

// Slow reports whether the holder has had its place for longer than [Options].After.
func (p *Place) Slow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lane == late || p.lane == slow
}

// Release gives the place back.
func (p *Place) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	if p.lane == slow {
		<-p.l.all.slow
		<-p.name.slow
	} else {
		if p.l.o.All != Unlimited {
			<-p.l.all.quick
		}
		<-p.name.quick
	}
	p.lane = released
	p.l.forget(p.key, p.name)
}

// Names returns the number of names that have a place or wait for one.
func (l *Limiter) Names() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.each)
}
