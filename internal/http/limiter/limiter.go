// Package limiter bounds how much is done at once, in all and for one host or caller, and how soon a failed
// operation is repeated.
package limiter

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Options are the bounds of a [Limiter].
type Options struct {
	All  int // maximum of holders at once; if it is [Unlimited], After must be 0
	Each int // maximum of holders at once that have the same name

	// After is how long a holder counts as one of All and Each. A holder that takes longer
	// is counted in a slow lane instead, if that has room, and so does not delay quick
	// holders. 0 means that there is no slow lane.
	After             time.Duration
	SlowAll, SlowEach int // bounds of the slow lane

	// AfterFunc stands in for [time.AfterFunc]. It returns a function that stops the timer.
	AfterFunc func(d time.Duration, f func()) (stop func())
}

// Unlimited is the value of [Options].All for any number of holders.
const Unlimited = -1

// Limiter is a set of places. Callers of one name get places in the order of their calls,
// and names take turns. It may be used by many goroutines.
type Limiter struct {
	o     Options
	mu    sync.Mutex
	all   lane
	names map[string]*name
	ready []*name // in order of their turns: names with a waiting caller and room for it
}

// lane counts the quick and the slow holders.
type lane struct{ quick, slow int }

// name is a host or caller that has places, or is waiting for one.
type name struct {
	lane
	key     string
	waiting []*waiter
	ready   bool // listed in Limiter.ready
}

// waiter holds the function to call when a place is free.
type waiter struct{ begin func(*Place) }

// New returns a new limiter.
func New(o Options) *Limiter {
	if o.AfterFunc == nil {
		o.AfterFunc = func(d time.Duration, f func()) func() {
			timer := time.AfterFunc(d, f)
			return func() { timer.Stop() }
		}
	}
	return &Limiter{o: o, names: map[string]*name{}}
}

// Queue returns at once, and calls begin when there is a place. begin must neither block
// nor call the limiter: it starts a goroutine, or sends the place to one.
func (l *Limiter) Queue(key string, begin func(*Place)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue(key, &waiter{begin})
}

// queue is Queue for a caller that holds mu.
func (l *Limiter) queue(key string, w *waiter) *name {
	n := l.names[key]
	if n == nil {
		n = &name{key: key}
		l.names[key] = n
	}
	n.waiting = append(n.waiting, w)
	l.advance(n)
	return n
}

// Acquire waits for a place. It fails if ctx ends first.
func (l *Limiter) Acquire(ctx context.Context, key string) (*Place, error) {
	begun := make(chan *Place, 1)
	w := &waiter{func(p *Place) { begun <- p }}
	l.mu.Lock()
	n := l.queue(key, w)
	l.mu.Unlock()
	select {
	case p := <-begun:
		return p, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(n.waiting, w)
	if i >= 0 {
		n.waiting = slices.Delete(n.waiting, i, i+1)
		l.advance(n)
	}
	l.mu.Unlock()
	if i < 0 {
		(<-begun).Release()
	}
	return nil, context.Cause(ctx)
}

// advance starts the callers that have a place after n changed, and removes n if it is unused. The
// caller must hold mu.
func (l *Limiter) advance(n *name) {
	l.list(n)
	for len(l.ready) > 0 && (l.o.All == Unlimited || l.all.quick < l.o.All) {
		next := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		next.ready = false
		if len(next.waiting) == 0 {
			continue // its caller no longer waits
		}
		w := next.waiting[0]
		next.waiting[0] = nil
		next.waiting = next.waiting[1:]
		next.quick++
		l.all.quick++
		l.list(next)
		p := &Place{l: l, name: next}
		if l.o.After > 0 {
			p.stop = l.o.AfterFunc(l.o.After, p.handOver)
		}
		w.begin(p)
	}
	if len(n.waiting) == 0 && n.lane == (lane{}) && l.names[n.key] == n {
		delete(l.names, n.key)
	}
}

// list adds n to the ready names if it is ready. The caller must hold mu.
func (l *Limiter) list(n *name) {
	if !n.ready && len(n.waiting) > 0 && n.quick < l.o.Each {
		n.ready = true
		l.ready = append(l.ready, n)
	}
}

// Place is a place of a holder. The holder must call Release. The methods ReleaseName and Release
// of a nil Place do nothing.
type Place struct {
	l    *Limiter
	name *name
	stop func() // the timer; nil without a slow lane
	lane state
}

// state is the lane of a place.
type state int

const (
	quick    state = iota
	late           // slow, but in the quick lane, because the slow lane is full
	slow           // in the slow lane
	unnamed        // counted in all, but no longer for its name
	released       //
)

// handOver moves a place to the slow lane.
func (p *Place) handOver() {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.lane != quick {
		return
	}
	p.lane = late
	if p.name.slow >= p.l.o.SlowEach || p.l.all.slow >= p.l.o.SlowAll {
		return
	}
	p.lane = slow
	p.count(-1, 1)
}

// count changes the numbers of holders in both lanes. The caller must hold mu.
func (p *Place) count(quick, slow int) {
	p.name.quick += quick
	p.name.slow += slow
	p.l.all.quick += quick
	p.l.all.slow += slow
	p.l.advance(p.name)
}

// Slow reports whether the holder has had its place for longer than [Options].After.
func (p *Place) Slow() bool {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	return p.lane == late || p.lane == slow
}

// ReleaseName lets the next caller of the name have a place. The holder counts as one of
// [Options].All until Release; it is in no slow lane.
func (p *Place) ReleaseName() {
	if p == nil {
		return
	}
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.lane == quick {
		p.lane = unnamed
		p.name.quick--
		p.l.advance(p.name)
	}
}

// Release frees the place. Later calls do nothing.
func (p *Place) Release() {
	if p == nil {
		return
	}
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.stop != nil {
		p.stop()
	}
	was := p.lane
	p.lane = released
	switch was {
	case quick, late:
		p.count(-1, 0)
	case slow:
		p.count(0, -1)
	case unnamed:
		p.l.all.quick--
		p.l.advance(p.name)
	}
}

// Names returns the number of names that have a place or wait for one.
func (l *Limiter) Names() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names)
}
