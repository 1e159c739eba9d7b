package fetcher

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/files/watch"
)

// Intervals of [Runner.Watch].
const (
	// rescan is the time between two scans for changes without an event: intervals changed by hand,
	// file systems without events.
	rescan = time.Minute
	// collectFor is the time to collect further changes before all feeds are scanned.
	collectFor = 500 * time.Millisecond
	// poll is the time between two scans if the kernel sends no events.
	poll = 5 * time.Second
)

// Watch fetches each feed when it is due, or at once when it has a due marker. It returns nil when
// ctx ends, and an error only if the lektor-dir cannot be read. ready, if not nil, is called when
// later changes will be noticed.
func (r *Runner) Watch(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	due := schedule.DueDir(r.Dir)
	if err := os.MkdirAll(due, 0o777); err != nil {
		return err
	}
	changes := watch.New(ctx, poll, func(s string) { r.report.Warn("%s", s) }, nil)
	for _, dir := range []string{due, r.Dir.Join("src")} {
		if err := changes.Add(dir); err != nil {
			return err
		}
	}
	w := &watcher{r: r, q: r.newQueue(ctx), walks: semaphore.NewWeighted(maxWalks), finished: make(chan struct{}, 1),
		retryAt: map[string]time.Time{}}
	defer func() {
		cancel()
		w.q.wait()
		r.disk.report(r.Dir.Path(), r.report)
	}()
	recovered := r.now()
	if ready != nil {
		ready()
	}
	for {
		// A commit may have failed, or another fetcher may have been killed; no other process may
		// come for days.
		if !r.now().Before(recovered.Add(rescan)) {
			r.recordDate()
			r.Recover(ctx)
			recovered = r.now()
		}
		r.disk.report(r.Dir.Path(), r.report)
		tasks, next, err := r.due(false, w.skip)
		if err != nil {
			return err
		}
		w.q.add(tasks, w.done)
		if !w.pause(ctx, changes, next) {
			return nil
		}
	}
}

// watcher is the state of [Runner.Watch].
type watcher struct {
	r        *Runner
	q        *queue
	walks    *semaphore.Weighted
	finished chan struct{} // a visit has ended

	mu sync.Mutex
	// retryAt holds the time of the next try for feeds that stay due, because their state could not
	// be saved or another process has locked them.
	retryAt map[string]time.Time
}

// skip reports whether a feed need not be fetched now.
func (w *watcher) skip(hash string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.q.busy(hash) || w.r.now().Before(w.retryAt[hash])
}

// done reports the outcome of a visit, and walks through the feed's archives.
func (w *watcher) done(o VisitResult) {
	w.r.reportOutcome(o)
	w.mu.Lock()
	delete(w.retryAt, o.task.hash)
	if o.Busy+o.Broken > 0 {
		w.retryAt[o.task.hash] = w.r.now().Add(rescan)
	}
	w.mu.Unlock()
	// A walk delays its own feed only.
	if o.walk && w.walks.Acquire(w.q.ctx, 1) == nil {
		w.r.walk(w.q.ctx, o, func() {})
		w.walks.Release(1)
	}
	select {
	case w.finished <- struct{}{}:
	default:
	}
}

// marked queues the feeds that have a due marker.
func (w *watcher) marked() {
	for hash := range w.r.marked() {
		if t := w.r.task(hash, Marked); t.url != "" {
			w.q.add([]task{t}, w.done)
		}
	}
}

// pause waits until the feeds must be scanned again, and fetches marked feeds meanwhile. It returns
// false when ctx has ended.
func (w *watcher) pause(ctx context.Context, changes *watch.Watcher, next time.Time) bool {
	wait := rescan
	if !next.IsZero() {
		wait = max(min(wait, next.Sub(w.r.now())), 0)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	due := schedule.DueDir(w.r.Dir)
	soon := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-changes.Wake():
			changed := changes.Take()
			if changed[due] {
				w.marked()
				delete(changed, due)
			}
			if len(changed) == 0 {
				continue
			}
		case <-w.finished:
			// The feed has a new due time, which may be the next of all, or a marker of the meantime.
		}
		if !soon {
			soon = true
			if wait > collectFor {
				timer.Reset(collectFor)
			}
		}
	}
}
