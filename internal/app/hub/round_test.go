package hub

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A subscriber that ends while a pass runs and registers again before the next update gets
// that update, although the pass does not know of the new subscription.
func TestSubscriberThatComesBackDuringAPass(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hash, key := strings.Repeat("a", 40), strings.Repeat("b", 40)
	dir := t.TempDir()
	r := &round{hash: hash, feed: "http://127.0.0.1/feed"}
	update := func(serial string) {
		if _, open, err := r.update(filepath.Join(dir, "pending", hash+"."+serial), []string{key}, nil, nil, now); err != nil || !open {
			t.Fatal(open, err)
		}
	}
	update("1-1")
	old, _ := r.begin(now)
	if old == nil {
		t.Fatal("there is no pass")
	}
	// An update does not disturb a pass that reads what it needs of the round.
	var reader sync.WaitGroup
	reader.Go(func() {
		if !old.few {
			t.Error("the log does not name the subscriber")
		}
	})
	update("1-2")
	reader.Wait()
	old.done(key) // it is not there any more, as the old pass sees it
	if s := old.rest(now); s.ended {
		t.Error("the round has ended without the update")
	}
	again, err := readRound(r.path, now)
	if err != nil || len(again.left) != 1 {
		t.Errorf("after a kill: %+v, %v", again, err)
	}
	p, _ := r.begin(now)
	if p == nil || !p.take(key, now) {
		t.Fatal("the subscriber is not notified")
	}
	p.done(key)
	if s := p.rest(now); !s.ended {
		t.Error("the round goes on")
	}
}
