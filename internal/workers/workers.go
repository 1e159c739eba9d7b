// Package workers runs goroutines that do a piece of work together, as many at once as
// there are processors for them. A panic of one becomes a panic of the goroutine that waits
// for all, so that this one can restore a terminal or release a lock.
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

// Size returns how many goroutines of a [New] group work at once: as many as Go had
// processors when Size was first called. [Spare] adds processors that groups do not use.
var Size = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// spare is how many processors Spare adds: one for the goroutine that answers the user, and
// one for the one that reads and draws.
const spare = 2

// Spare lets Go run two goroutines more than a group has workers, until giveBack is called.
// Without it, a goroutine that becomes ready waits for a worker's time slice of 10 ms to
// end, and again for each goroutine that it hands something to. With it, the kernel
// chooses, and it prefers a thread that has waited to one that computes.
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

// Caught returns a recovered value as a Panic: the one that [Group.Wait] raised as it is,
// any other with the stack of the caller.
func Caught(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p
	}
	return &Panic{v, debug.Stack()}
}

// Group is a set of goroutines. The zero value does not limit how many work at once.
type Group struct {
	group errgroup.Group
	once  sync.Once
	first *Panic
}

// New returns a group of which [Size] goroutines work at once.
func New() *Group { return Limited(Size()) }

// Limited returns a group of which n goroutines work at once.
func Limited(n int) *Group {
	g := &Group{}
	g.group.SetLimit(n)
	return g
}

// Go calls f in a goroutine, as soon as fewer work than may at once.
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

// Wait waits for all goroutines and returns the first error. If one of them panicked, it
// panics with a [*Panic].
func (g *Group) Wait() error {
	err := g.group.Wait()
	if g.first != nil {
		panic(g.first)
	}
	return err
}

// batch is how many calls of [ForEach] a goroutine makes: one goroutine for each would cost
// more than some of the calls.
const batch = 32

// serialFor is how long [ForEach] works alone. Cheap calls finish within it, before another
// processor would wake up.
const serialFor = time.Millisecond

// ForEach calls f for 0 to n-1 on all processors. It stops early when ctx ends, and returns
// the cause. If f panics, ForEach panics with a [*Panic].
func ForEach(ctx context.Context, n int, f func(int)) error {
	done := 0
	for begun := time.Now(); done < n && ctx.Err() == nil && time.Since(begun) < serialFor; done++ {
		f(done)
	}
	g := New()
	for from := done; from < n && ctx.Err() == nil; from += batch {
		g.Go(func() error {
			for i := from; i < min(from+batch, n) && ctx.Err() == nil; i++ {
				f(i)
			}
			return nil
		})
	}
	_ = g.Wait() // f returns no errors
	return context.Cause(ctx)
}
