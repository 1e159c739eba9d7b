// Package workers runs goroutines that share a piece of work, as many at once as there are
// processors. A panic of a goroutine is raised again in the goroutine that waits for them,
// so that it can restore a terminal or release a lock. It also waits for locks of other processes.
package workers

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Size returns the number of goroutines of a [New] group that run at once: GOMAXPROCS when
// Size was first called. [Spare] adds processors that groups do not use.
var Size = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// spare is the number of processors that Spare adds: one for the goroutine that answers the
// user, and one for the goroutine that reads and draws.
const spare = 2

// Spare adds two processors beyond the workers of a group, until giveBack is called.
// Without them, a goroutine that becomes ready waits for the end of a worker's 10 ms time
// slice, and again after each hand-over. With them, the kernel schedules, and prefers
// threads that have waited.
func Spare() (giveBack func()) {
	before := runtime.GOMAXPROCS(Size() + spare)
	return func() { runtime.GOMAXPROCS(before) }
}

// Panic is the panic of a goroutine, with its stack.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Caught returns a recovered value as a [Panic]. It returns the one of [Group.Wait]
// unchanged, and adds the caller's stack to any other.
func Caught(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p
	}
	return &Panic{v, debug.Stack()}
}

// Group is a set of goroutines. The zero value does not limit how many run at once.
type Group struct {
	group errgroup.Group
	once  sync.Once
	first *Panic
}

// New returns a group of which [Size] goroutines run at once.
func New() *Group { return Limited(Size()) }

// Limited returns a group of which n goroutines run at once.
func Limited(n int) *Group {
	g := &Group{}
	g.group.SetLimit(n)
	return g
}

// Go calls f in a goroutine. It waits while as many run as the limit allows.
func (g *Group) Go(f func() error) {
	g.group.Go(func() error {
		defer func() {
			if v := recover(); v != nil {
				g.once.Do(func() { g.first = Caught(v) })
			}
		}()
		return f()
	})
}

// Wait waits for all goroutines, and returns the first error. If one panicked, Wait panics
// with a [*Panic].
func (g *Group) Wait() error {
	err := g.group.Wait()
	if g.first != nil {
		panic(g.first)
	}
	return err
}

// mostCalls is the maximum number of calls of [ForEach] in a goroutine. A goroutine for each call would cost
// more than a cheap call.
const mostCalls = 32

// serialFor is how long [ForEach] works without other goroutines. Cheap calls finish within
// it, before another processor would wake up.
const serialFor = time.Millisecond

// ForEach calls f for 0 to n-1 on all processors. It stops when ctx ends, and returns the
// cause. If f panics, ForEach panics with a [*Panic].
func ForEach(ctx context.Context, n int, f func(int)) error {
	done := 0
	for begun := time.Now(); done < n && ctx.Err() == nil && time.Since(begun) < serialFor; done++ {
		f(done)
	}
	g := New()
	batch := min(max((n-done)/(4*Size()), 1), mostCalls) // few expensive calls need all processors too
	for from := done; from < n && ctx.Err() == nil; from += batch {
		g.Go(func() error {
			for i := from; i < min(from+batch, n) && ctx.Err() == nil; i++ {
				f(i)
			}
			return nil
		})
	}
	_ = g.Wait() // f never fails
	return context.Cause(ctx)
}
