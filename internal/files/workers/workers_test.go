package workers

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestPanic: a panic of a goroutine reaches the waiting goroutine after the other goroutines have
// ended, with the original stack, also through nested groups.
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
			t.Errorf("%d of the other goroutines are done", done.Load())
		}
	}()
	_ = outer.Wait()
	t.Error("no panic")
}

func somewhere() { panic("a defect") }

func TestErrors(t *testing.T) {
	var c Group
	want := errors.New("an error")
	c.Go(func() error { return nil })
	c.Go(func() error { return want })
	if err := c.Wait(); err != want {
		t.Errorf("got %v, want %v", err, want)
	}
}

// TestSpare: spare processors do not make groups larger.
func TestSpare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	size := Size()
	giveBack := Spare()
	if n := runtime.GOMAXPROCS(0); n <= size || Size() != size {
		t.Errorf("%d processors, and groups of %d, were %d", n, Size(), size)
	}
	giveBack()
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("%d processors, not %d", n, before)
	}
}

func TestForEach(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 1000} {
		var seen [1000]atomic.Int32
		if err := ForEach(t.Context(), n, func(i int) { seen[i].Add(1) }); err != nil {
			t.Fatal(err)
		}
		for i := range seen {
			if got := seen[i].Load(); (got == 1) != (i < n) {
				t.Fatalf("%d of %d: %d times", i, n, got)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	var calls atomic.Int32
	err := ForEach(ctx, 1_000_000, func(i int) {
		if calls.Add(1) == 100 {
			cancel(why)
		}
	})
	if !errors.Is(err, why) || calls.Load() > 10_000 {
		t.Errorf("ForEach = %v after %d calls, want %v after some 100", err, calls.Load(), why)
	}
}

// TestFewCalls: a few calls that take long are made on all processors.
func TestFewCalls(t *testing.T) {
	if Size() < 2 {
		t.Skip("one processor")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	meet := make(chan struct{})
	if err := ForEach(ctx, 1+2*Size(), func(i int) {
		if i == 0 {
			for begun := time.Now(); time.Since(begun) < serialFor; {
			}
			return
		}
		select { // each of the others ends only while another is running
		case meet <- struct{}{}:
		case <-meet:
		case <-ctx.Done():
		}
	}); err != nil {
		t.Error(err)
	}
}
