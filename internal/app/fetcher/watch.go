package fetcher

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/watch"
)

// Times of [Runner.Watch].
const (
	// rescan is how often it looks for what no event tells of: intervals
	// changed by hand, subscriptions on file systems without events.
	rescan = time.Minute
	// settle is how long it lets other changes gather before it looks at all
	// feeds again.
	settle = 500 * time.Millisecond
	// poll is how often it looks where the kernel cannot tell.
	poll = 5 * time.Second
)

// Watch stays, and fetches each feed when it is due, or at once when somebody
// leaves a due marker. It returns nil when ctx ends, and an error only when
// the lektor-dir cannot be read. ready, if not nil, is called when changes from
// then on will be seen.
func (r *Runner) Watch(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	due := feeddir.DueDir(r.Dir)
	if err := os.MkdirAll(due, 0o777); err != nil {
		return err
	}
	changes := watch.New(ctx, poll, func(s string) { r.report.Warn("%s", s) })
	for _, dir := range []string{due, r.Dir.Join("src")} {
		if err := changes.Add(dir); err != nil {
			return err
		}
	}
	w := &watcher{r: r, q: r.newQueue(ctx), walks: semaphore.NewWeighted(maxWalks), finished: make(chan struct{}, 1), later: map[string]time.Time{}}
	defer func() {
		cancel()
		w.q.wait()
		r.disk.tell(r.Dir.Path(), r.report)
	}()
	recovered := r.now()
	if ready != nil {
		ready()
	}
	for {
		// A commit may have failed, other fetchers may be killed, and nobody else may come
		// for days.
		if !r.now().Before(recovered.Add(rescan)) {
			r.noteDate()
			r.Recover(ctx)
			recovered = r.now()
		}
		r.disk.tell(r.Dir.Path(), r.report)
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

// watcher is what [Runner.Watch] keeps between two looks at all feeds.
type watcher struct {
	r        *Runner
	q        *queue
	walks    *semaphore.Weighted
	finished chan struct{} // the visit of a feed is over

	mu sync.Mutex
	// later is when a feed is tried again whose state could not be saved, or that another
	// process has: it is as due as before.
	later map[string]time.Time
}

// skip reports whether a feed need not be looked at.
func (w *watcher) skip(hash string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.q.busy(hash) || w.r.now().Before(w.later[hash])
}

// done takes what became of a feed, and walks through its archives.
func (w *watcher) done(o Outcome) {
	w.r.tell(o)
	w.mu.Lock()
	delete(w.later, o.task.hash)
	if o.Busy+o.Broken > 0 {
		w.later[o.task.hash] = w.r.now().Add(rescan)
	}
	w.mu.Unlock()
	select {
	case w.finished <- struct{}{}:
	default:
	}
	// A walk holds up its feed, and nothing else.
	if o.walk && w.walks.Acquire(w.q.ctx, 1) == nil {
		w.r.walk(w.q.ctx, o, func() {})
		w.walks.Release(1)
	}
}

// marked queues the feeds for which somebody left a due marker.
func (w *watcher) marked() {
	for hash := range w.r.left() {
		if t := w.r.task(hash, Marked); t.url != "" {
			w.q.add([]task{t}, w.done)
		}
	}
}

// pause waits until the feeds must be looked at again, and takes care of due
// markers meanwhile. It reports false when ctx has ended.
func (w *watcher) pause(ctx context.Context, changes *watch.Watcher, next time.Time) bool {
	wait := rescan
	if !next.IsZero() {
		wait = max(min(wait, next.Sub(w.r.now())), 0)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	due := feeddir.DueDir(w.r.Dir)
	soon := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case dir := <-changes.Changed:
			if dir == due {
				w.marked()
				continue
			}
		case <-w.finished:
			// It is due again some time, which may be the first of all.
		}
		if !soon {
			soon = true
			if wait > settle {
				timer.Reset(settle)
			}
		}
	}
}
