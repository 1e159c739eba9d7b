package limiter

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// timers replaces the timers of a limiter; they fire when a test calls fire.
type timers struct {
	mu sync.Mutex
	f  []func()
}

func (t *timers) after(_ time.Duration, f func()) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.f = append(t.f, f)
	return func() {}
}

// fire fires all timers.
func (t *timers) fire() {
	t.mu.Lock()
	all := t.f
	t.f = nil
	t.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// try acquires a place that must be free.
func try(t *testing.T, l *Limiter, key string) *Place {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatalf("no place for %s: %v", key, err)
	}
	return p
}

// full reports whether no place is free for a name: a hundred tries fail. One try is not
// enough, as select may choose the end of the context although there is a place.
func full(t *testing.T, l *Limiter, key string) bool {
	t.Helper()
	for range 100 {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if p, err := l.Acquire(ctx, key); err == nil {
			p.Release()
			return false
		}
	}
	return true
}

func TestBounds(t *testing.T) {
	l := New(Options{All: 3, Each: 2})
	a, b := try(t, l, "a"), try(t, l, "a")
	if !full(t, l, "a") || full(t, l, "b") {
		t.Error("want two places for a name, and one for another")
	}
	c := try(t, l, "b")
	if !full(t, l, "c") {
		t.Error("more than three places are free")
	}
	for _, p := range []*Place{a, b, c} {
		if p.Slow() {
			t.Error("Slow reports true without a slow lane")
		}
		p.Release()
	}
	if l.Names() != 0 || full(t, l, "a") {
		t.Errorf("%d names are remembered", l.Names())
	}
}

// A slow holder moves to the slow lane, if that has room, and so frees its place.
func TestSlowHoldersLeaveTheQuickLane(t *testing.T) {
	var clock timers
	l := New(Options{All: 2, Each: 2, After: time.Second, SlowAll: 4, SlowEach: 3, AfterFunc: clock.after})
	var held []*Place
	for range 2 {
		held = append(held, try(t, l, "a"))
	}
	if !full(t, l, "a") {
		t.Error("not full")
	}
	clock.fire()
	for range 2 {
		held = append(held, try(t, l, "a"))
	}
	clock.fire()
	// The slow lane has room for one more holder.
	held = append(held, try(t, l, "a"))
	if !full(t, l, "a") || !held[0].Slow() || !held[3].Slow() || held[4].Slow() {
		t.Error("want three slow holders of the name, and two late ones")
	}
	for _, p := range held {
		p.Release()
	}
	if l.Names() != 0 || l.all != (lane{}) {
		t.Errorf("%d names, %d and %d places are not released", l.Names(), l.all.quick, l.all.slow)
	}
	clock.fire() // timers of released places
	if l.all != (lane{}) {
		t.Error("a timer that fires after the release takes a place")
	}
}

// Forty slow holders of one name do not delay a quick one: after Options.After it gets a
// place, although no slow holder has ended.
func TestQuickHoldersPassSlowOnes(t *testing.T) {
	var clock timers
	l := New(Options{All: 256, Each: 8, After: time.Second, SlowAll: 2048, SlowEach: 64, AfterFunc: clock.after})
	for range 5 {
		for range 8 {
			try(t, l, "a")
		}
		clock.fire()
	}
	try(t, l, "a")
}

// TestUnlimited checks that without a bound on all, only callers of one name wait for each other.
func TestUnlimited(t *testing.T) {
	l := New(Options{All: Unlimited, Each: 1})
	var places []*Place
	for i := range 100 {
		p, err := l.Acquire(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Acquire(ctx, "7"); err == nil {
		t.Error("a name gets more than its places")
	}
	for _, p := range places {
		p.Release()
	}
	if n := l.Names(); n != 0 {
		t.Errorf("%d names are remembered", n)
	}
}

// Queued callers of one name begin in the order of their calls. Names take turns, even if one of
// them has queued many callers before.
func TestQueue(t *testing.T) {
	l := New(Options{All: 2, Each: 1})
	var order []string
	var held []*Place
	for _, who := range []string{"a1", "a2", "a3", "b1", "c1", "b2"} {
		l.Queue(who[:1], func(p *Place) {
			order = append(order, who)
			held = append(held, p)
		})
	}
	if got := fmt.Sprint(order); got != "[a1 b1]" {
		t.Fatalf("%s have places, want a1 and b1", got)
	}
	held[0].ReleaseName()
	if len(order) != 2 || full(t, l, "a") == false {
		t.Fatalf("%s have places; a holder that has released its name must still count as one of all", order)
	}
	for i := 0; i < len(held); i++ {
		held[i].Release()
		held[i].ReleaseName()
		held[i].Release() // again
	}
	if got := fmt.Sprint(order); got != "[a1 b1 c1 a2 b2 a3]" {
		t.Errorf("the order is %s, want [a1 b1 c1 a2 b2 a3]", got)
	}
	if l.Names() != 0 || l.all != (lane{}) {
		t.Errorf("%d names and %v places are not released", l.Names(), l.all)
	}
}

// After a holder has released its name, another caller of the name gets a place, if All permits.
func TestReleaseName(t *testing.T) {
	l := New(Options{All: 3, Each: 1})
	a := try(t, l, "a")
	a.ReleaseName()
	b := try(t, l, "a")
	if !full(t, l, "a") {
		t.Error("a name with one place gets two")
	}
	b.ReleaseName()
	c := try(t, l, "a")
	c.ReleaseName()
	if !full(t, l, "z") {
		t.Error("four of three places are held")
	}
	for _, p := range []*Place{a, b, c, nil} {
		p.Release()
	}
	if l.Names() != 0 || l.all != (lane{}) {
		t.Errorf("%d names and %v places are not released", l.Names(), l.all)
	}
}

// Callers whose context ends leave the queue, and later callers get their turn.
func TestAcquireEnds(t *testing.T) {
	l := New(Options{All: 1, Each: 1})
	first := try(t, l, "a")
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 20 {
		group.Go(func() {
			if p, err := l.Acquire(ctx, string(rune('a'+i%2))); err == nil {
				p.Release()
			}
		})
	}
	cancel()
	group.Wait()
	if l.Names() != 1 {
		t.Errorf("%d names, want the one that has a place", l.Names())
	}
	first.Release()
	try(t, l, "b").Release()
	if l.Names() != 0 || l.all != (lane{}) {
		t.Errorf("%d names and %v places are not released", l.Names(), l.all)
	}
}
