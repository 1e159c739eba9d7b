// Package crew has goroutines that do a piece of work together: as many at once as there
// are processors for them, and a panic of one is a panic of who waits for all. So who has
// a terminal to restore, or a lock to give back, does it.
package crew

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Size is how many goroutines work at once: as many as Go had processors when this was
// asked for the first time. [Spare] adds some that a crew does not take.
var Size = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// spare is how many processors are had beside those of crews: one for who answers, and
// one for what reads and draws.
const spare = 2

// Spare lets Go run some goroutines more than crews have, until it is given back. Without
// it a goroutine that becomes ready waits for one of a crew to have had its ten
// milliseconds, and once more for each that it hands something to; with it, it is the
// kernel that gives it the processor, and that prefers who waited to who computes.
func Spare() (giveBack func()) {
	before := runtime.GOMAXPROCS(Size() + spare)
	return func() { runtime.GOMAXPROCS(before) }
}

// Panic is that of a goroutine, with where it was.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Caught gives the panic that was recovered: that of a goroutine of a crew as it was,
// another one with the stack of the caller.
func Caught(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p
	}
	return &Panic{v, debug.Stack()}
}

// Crew is goroutines at work. The zero value has none.
type Crew struct {
	group errgroup.Group
	once  sync.Once
	first *Panic
}

// New gives a crew of which [Size] work at once.
func New() *Crew {
	c := &Crew{}
	c.group.SetLimit(Size())
	return c
}

// Go has f done by another goroutine, when one has time.
func (c *Crew) Go(f func() error) {
	c.group.Go(func() error {
		defer func() {
			if v := recover(); v != nil {
				c.once.Do(func() { c.first = Caught(v) })
			}
		}()
		return f()
	})
}

// Wait waits until all is done, and gives the first error. It panics with a [*Panic] if one
// of them did.
func (c *Crew) Wait() error {
	err := c.group.Wait()
	if c.first != nil {
		panic(c.first)
	}
	return err
}
