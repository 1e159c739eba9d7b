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
	w := watch.New(ctx, poll, func(s string) { r.report.Warn("%s", s) })
	for _, dir := range []string{due, r.Dir.Join("src")} {
		if err := w.Add(dir); err != nil {
			return err
		}
	}
	q := r.newQueue(ctx)
	finished := make(chan struct{}, 1)
	var mu sync.Mutex
	// A feed whose state could not be saved, or that another process has, is
	// as due as before; it is not tried again at once.
	later := map[string]time.Time{}
	skip := func(hash string) bool {
		mu.Lock()
		defer mu.Unlock()
		return q.busy(hash) || r.now().Before(later[hash])
	}
	walks := semaphore.NewWeighted(maxWalks)
	done := func(o Outcome) {
		r.tell(o)
		mu.Lock()
		delete(later, o.task.hash)
		if o.Busy+o.Broken > 0 {
			later[o.task.hash] = r.now().Add(rescan)
		}
		mu.Unlock()
		select {
		case finished <- struct{}{}:
		default:
		}
		// A walk holds up its feed, and nothing else.
		if o.walk && walks.Acquire(ctx, 1) == nil {
			r.walk(ctx, o, func() {})
			walks.Release(1)
		}
	}
	defer func() {
		cancel()
		q.wait()
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
		tasks, next, err := r.due(false, skip)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			q.add(t, done)
		}
		marked := func() {
			for hash := range r.left() {
				if t := r.task(hash, Marked); t.url != "" {
					q.add(t, done)
				}
			}
		}
		if !r.pause(ctx, w, marked, next, finished) {
			return nil
		}
	}
}

// pause waits until the feeds must be looked at again, and calls marked whenever due
// markers changed meanwhile. It reports false when ctx has ended.
func (r *Runner) pause(ctx context.Context, w *watch.Watcher, marked func(), next time.Time, finished <-chan struct{}) bool {
	wait := rescan
	if !next.IsZero() {
		wait = max(min(wait, next.Sub(r.now())), 0)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	due := feeddir.DueDir(r.Dir)
	soon := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case dir := <-w.Changed:
			if dir == due {
				marked()
				continue
			}
		case <-finished:
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
