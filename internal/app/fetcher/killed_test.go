package fetcher

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// deliveredOne subscribes to a feed and returns the one entry that it delivers.
func deliveredOne(t *testing.T, r *Runner, s *server.Server) lektordir.Ref {
	t.Helper()
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 1)))
	subscribeTo(t, r, s.URL("/feed"))
	if sum, err := r.Update(t.Context(), Selection{}); err != nil || sum.New != 1 {
		t.Fatal(sum, err)
	}
	refs, err := r.Dir.List(t.Context(), lektordir.ListOptions{})
	if err != nil || len(refs) != 1 {
		t.Fatal(refs, err)
	}
	return refs[0]
}

// unsettle moves an entry back to the state after a kill between the write of the journal and the
// rename.
func unsettle(t *testing.T, r *Runner, entry lektordir.Ref) {
	t.Helper()
	if err := os.Rename(r.Dir.Join(entry.Path()), r.Dir.Join("tmp", entry.Feed, entry.Unique)); err != nil {
		t.Fatal(err)
	}
}

// TestWatchRecoversOthers: a watch delivers the entries of another fetcher that was killed
// meanwhile.
func TestWatchRecoversOthers(t *testing.T) {
	var shift atomic.Int64
	r, s, _ := setup(t, Options{Fetch: fetch.Config{Now: func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }}})
	entry := deliveredOne(t, r, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, end := make(chan struct{}), make(chan error)
	go func() { end <- r.Watch(ctx, func() { close(ready) }) }()
	<-ready
	unsettle(t, r, entry)
	shift.Store(int64(2 * rescan))
	// A new subscription causes a scan.
	s.Handle("/other", server.Doc("", server.RSS("Other", 0, 1)))
	subscribeTo(t, r, s.URL("/other"))
	eventually(t, "the entry", func() bool {
		_, err := os.Stat(r.Dir.Join(entry.Path()))
		return err == nil
	})
	cancel()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// A purge by another process that was killed is finished when a fetch locks the feed. The fetch
// does not create the feed again.
func TestPurgedMeanwhile(t *testing.T) {
	r, s, l := setup(t, Options{})
	entry := deliveredOne(t, r, s)
	asked := len(s.Requests("/feed"))
	gone := func(what string) {
		t.Helper()
		for _, path := range []string{r.Dir.Join("src", entry.Feed), r.Dir.Join("new", entry.Feed)} {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s: %s is there", what, path)
			}
		}
		if n := len(s.Requests("/feed")); n != asked {
			t.Errorf("%s: %d requests for a feed that nobody is subscribed to", what, n-asked)
		}
		if l.String() != "" {
			t.Errorf("%s: %s", what, l)
		}
	}
	begun := func() {
		t.Helper()
		if err := os.WriteFile(r.Dir.Join("tmp", entry.Feed, ";purge"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	begun()
	sum, err := r.Update(t.Context(), Selection{Feeds: []string{entry.Feed}, Reason: Forced})
	if err != nil || sum.Skipped != 1 || sum.New != 0 {
		t.Error(sum, err)
	}
	gone("update")

	// The interval was changed by hand before.
	if deliveredOne(t, r, s).Feed != entry.Feed {
		t.Fatal("another feed")
	}
	asked = len(s.Requests("/feed"))
	begun()
	r.reschedule(entry.Feed)
	gone("a new interval")

	for _, key := range []string{"alias", "categories", "interval"} {
		if deliveredOne(t, r, s).Feed != entry.Feed {
			t.Fatal("another feed")
		}
		asked = len(s.Requests("/feed"))
		begun()
		var none *lektordir.NotFoundError
		if err := subscriptions.Set(r.Writer, r.Dir, entry.Feed, key, "3h", nil); !errors.As(err, &none) {
			t.Errorf("%s: %v", key, err)
		}
		gone(key)
	}
}
