package fetcher

import (
	"context"
	"os"
	"sync"
	"time"

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
	q := newQueue(r.opts.Fetch.PerHost)
	defer q.closeAt(ctx)()
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
	var workers, walks sync.WaitGroup
	slots := make(chan struct{}, maxWalks)
	// A walk holds up its feed, and nothing else.
	walk := func(t task) {
		select {
		case slots <- struct{}{}:
			r.walk(ctx, t, func() {})
			<-slots
		case <-ctx.Done():
		}
		q.done(t)
	}
	defer func() { workers.Wait(); r.commits.Wait(); walks.Wait(); r.disk.tell(r.Dir.Path(), r.report) }()
	defer cancel()
	workers.Go(func() {
		r.work(ctx, q, r.opts.Jobs, false, func(t task, res result) bool {
			mu.Lock()
			delete(later, res.hash)
			if res.kind == busy || res.kind == broken {
				later[res.hash] = r.now().Add(rescan)
			}
			mu.Unlock()
			select {
			case finished <- struct{}{}:
			default:
			}
			if !res.walk || ctx.Err() != nil {
				return false
			}
			t.began = res.began
			walks.Go(func() { walk(t) })
			return true
		})
	})
	recovered := r.now()
	if ready != nil {
		ready()
	}
	for {
		// Other fetchers may be killed as well, and nobody else may come for days.
		if r.unsettled.Swap(false) || !r.now().Before(recovered.Add(rescan)) {
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
			q.add(t)
		}
		if !r.pause(ctx, q, w, next, finished) {
			return nil
		}
	}
}

// pause waits until the feeds must be looked at again, and takes care of due
// markers meanwhile. It reports false when ctx has ended.
func (r *Runner) pause(ctx context.Context, q *queue, w *watch.Watcher, next time.Time, finished <-chan struct{}) bool {
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
				for h := range r.left() {
					t := r.task(h)
					t.marked = true
					if t.url != "" {
						q.add(t)
					}
				}
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
