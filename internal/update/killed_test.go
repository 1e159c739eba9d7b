package update

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feedserver"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/lektordir"
)

// TestWatchRecoversOthers: what a fetcher left that was killed while another one
// watches is delivered by that one, before long.
func TestWatchRecoversOthers(t *testing.T) {
	var shift atomic.Int64
	r, s, _ := setup(t, Options{Fetch: fetch.Config{Now: func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }}})
	s.Handle("/feed", feedserver.Doc("", feedserver.RSS("Feed", 0, 1)))
	subscribeTo(t, r, s.URL("/feed"))
	if sum, err := r.Update(t.Context(), Selection{}); err != nil || sum.New != 1 {
		t.Fatal(sum, err)
	}
	refs, err := r.Dir.List(t.Context(), lektordir.ListOptions{})
	if err != nil || len(refs) != 1 {
		t.Fatal(refs, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, end := make(chan struct{}), make(chan error)
	go func() { end <- r.Watch(ctx, func() { close(ready) }) }()
	<-ready
	// Killed after its journal was written, and before the rename.
	if err := os.Rename(r.Dir.Abs(refs[0]), r.Dir.Join("tmp", refs[0].Feed, refs[0].Unique)); err != nil {
		t.Fatal(err)
	}
	shift.Store(int64(2 * rescan))
	// Something that makes it look: a feed that is subscribed to.
	s.Handle("/other", feedserver.Doc("", feedserver.RSS("Other", 0, 1)))
	subscribeTo(t, r, s.URL("/other"))
	eventually(t, "the entry", func() bool {
		_, err := os.Stat(r.Dir.Abs(refs[0]))
		return err == nil
	})
	cancel()
	if err := <-end; err != nil {
		t.Error(err)
	}
}
