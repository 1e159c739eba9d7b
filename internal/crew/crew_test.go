package crew

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// A panic of a goroutine is one of who waits, when the others are done, and tells where it
// was; also through a crew in a crew.
func TestPanic(t *testing.T) {
	var done atomic.Int32
	outer := New()
	outer.Go(func() error {
		inner := New()
		for i := range 50 {
			inner.Go(func() error {
				if i == 7 {
					somewhere()
				}
				done.Add(1)
				return errors.New("an error")
			})
		}
		return inner.Wait()
	})
	defer func() {
		p, ok := recover().(*Panic)
		if !ok || p.Value != "a defect" || !strings.Contains(p.Error(), "somewhere") || !strings.Contains(p.Error(), "a defect") {
			t.Errorf("it panics with %v", p)
		}
		if done.Load() != 49 {
			t.Errorf("%d of the others are done", done.Load())
		}
	}()
	_ = outer.Wait()
	t.Error("no panic")
}

func somewhere() { panic("a defect") }

func TestErrors(t *testing.T) {
	var c Crew
	want := errors.New("an error")
	c.Go(func() error { return nil })
	c.Go(func() error { return want })
	if err := c.Wait(); err != want {
		t.Errorf("%v", err)
	}
}

// A crew is no larger for processors that are spared.
func TestSpare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	size := Size()
	giveBack := Spare()
	if n := runtime.GOMAXPROCS(0); n <= size || Size() != size {
		t.Errorf("%d processors, and crews of %d, were %d", n, Size(), size)
	}
	giveBack()
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("%d processors, not %d", n, before)
	}
}
