package fetcher

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
)

// Selection says which feeds to fetch.
type Selection struct {
	Feeds []string // hashes; none means all feeds that there is a reason for
	// Reason is Due for the feeds that are due or marked, and Forced for all feeds. Feeds
	// that are listed are fetched in any case: as Named ones if Reason is not Forced.
	Reason Reason
	Want
}

// Update fetches the feeds selected. One that fails never keeps others from
// being fetched; failures are reported as they happen, and counted. The error
// is that of ctx, or of a lektor-dir that cannot be read.
func (r *Runner) Update(ctx context.Context, sel Selection) (Summary, error) {
	var sum Summary
	tasks, err := r.tasks(sel)
	if err != nil {
		return sum, err
	}
	sum.Feeds = len(tasks)
	step, end := r.progress("fetching", len(tasks))
	end = sync.OnceFunc(end)
	defer end()
	var mu sync.Mutex
	var walks []Outcome
	q := r.newQueue(ctx)
	q.add(tasks, func(o Outcome) {
		r.tell(o)
		mu.Lock()
		defer mu.Unlock()
		sum.add(o.Summary)
		if o.walk {
			walks = append(walks, o)
		}
		step()
	})
	q.wait()
	end()
	// News of no feed waits for the archives of another.
	sum.add(r.walks(ctx, walks))
	r.disk.tell(r.Dir.Path(), r.report)
	return sum, context.Cause(ctx)
}

// Due lists the URLs of the feeds that [Runner.Update] would fetch.
func (r *Runner) Due(sel Selection) ([]string, error) {
	tasks, err := r.tasks(sel)
	urls := make([]string, len(tasks))
	for i, t := range tasks {
		urls[i] = fetch.Public(t.url)
	}
	return urls, err
}

// tasks lists the feeds selected.
func (r *Runner) tasks(sel Selection) (tasks []task, err error) {
	if len(sel.Feeds) == 0 {
		tasks, _, err = r.due(sel.Reason == Forced, nil)
	}
	seen := map[string]bool{}
	for _, h := range sel.Feeds {
		if !seen[h] {
			seen[h] = true
			tasks = append(tasks, r.task(h, cmp.Or(sel.Reason, Named)))
		}
	}
	for i := range tasks {
		tasks[i].want = sel.Want
	}
	return tasks, err
}

func (r *Runner) task(hash string, reason Reason) task {
	url, _ := feeddir.URL(r.Dir, hash)
	return newTask(hash, url, reason)
}

// due lists the feeds that are due, or all, but for those that skip reports. It returns
// when the next of the others is due, too. It looks at modification times only: a timer
// may run it every minute.
func (r *Runner) due(all bool, skip func(hash string) bool) (tasks []task, next time.Time, err error) {
	hashes, err := r.Dir.FeedHashes()
	if err != nil {
		return nil, next, err
	}
	marked := r.left()
	now := r.now()
	for _, hash := range hashes {
		if skip != nil && skip(hash) {
			continue
		}
		reason := Due
		switch {
		case all:
			reason = Forced
		case marked[hash]:
			reason = Marked
		case !feeddir.Subscribed(r.Dir, hash):
			continue
		default:
			if feeddir.IntervalChanged(r.Dir, hash) {
				r.reschedule(hash)
			}
			if due, at := feeddir.Due(r.Dir, hash, now); !due {
				if !at.IsZero() && (next.IsZero() || at.Before(next)) {
					next = at
				}
				continue
			}
		}
		url, err := feeddir.URL(r.Dir, hash)
		// A feed without a URL is not subscribed to. If the URL cannot be looked for, the
		// visit reports why.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue
		}
		tasks = append(tasks, newTask(hash, url, reason))
	}
	return tasks, next, nil
}

// reschedule moves the time a feed is due to what its interval says, which was
// changed by hand.
func (r *Runner) reschedule(hash string) {
	s, err := r.open(context.Background(), hash, false)
	if err != nil {
		return // another process that has the feed sets the time itself
	}
	defer s.Close()
	if err := s.st.Reschedule(); err != nil {
		r.report.Warn("src/%s: %v", hash, err)
	}
}

// left returns the feeds that somebody wants fetched at once.
func (r *Runner) left() map[string]bool { return feeddir.Left(r.Dir, r.report.Warn) }
