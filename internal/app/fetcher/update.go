package fetcher

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
)

// Selection selects the feeds to fetch.
type Selection struct {
	Feeds []string // hashes; if empty, all feeds that match Reason
	// Reason is Due for the feeds that are due or marked, and Forced for all feeds. Feeds in Feeds
	// are always fetched, with reason Named if Reason is not Forced. Paused feeds are only fetched
	// with reason Named.
	Reason Reason
	Want
}

// Update fetches the selected feeds. A failing feed does not keep others from being fetched;
// failures are reported as they happen, and counted. The error is the one of ctx, or of a
// lektor-dir that cannot be read.
func (r *Runner) Update(ctx context.Context, sel Selection) (Summary, error) {
	var sum Summary
	tasks, err := r.tasks(sel)
	if err != nil {
		return sum, err
	}
	sum.Feeds = len(tasks)
	step, end := r.opts.Progress("fetching", len(tasks))
	end = sync.OnceFunc(end)
	defer end()
	var mu sync.Mutex
	var walks []VisitResult
	q := r.newQueue(ctx)
	q.add(tasks, func(o VisitResult) {
		r.reportOutcome(o)
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
	// New entries of a feed must not wait for the archives of another.
	sum.add(r.walks(ctx, walks))
	r.disk.report(r.Dir.Path(), r.report)
	return sum, context.Cause(ctx)
}

// tasks returns the selected feeds.
func (r *Runner) tasks(sel Selection) (tasks []task, err error) {
	if len(sel.Feeds) == 0 {
		tasks, _, err = r.due(sel.Reason == Forced, nil)
	}
	selected := map[string]bool{}
	for _, h := range sel.Feeds {
		if !selected[h] {
			selected[h] = true
			tasks = append(tasks, r.task(h, cmp.Or(sel.Reason, Named)))
		}
	}
	for i := range tasks {
		tasks[i].want = sel.Want
	}
	return tasks, err
}

func (r *Runner) task(hash string, reason Reason) task {
	url, _ := feedfiles.URL(r.Dir, hash)
	return newTask(hash, url, reason)
}

// due returns the feeds that are due, or all, without paused ones and those for which skip returns true, and
// the time when the next one is due. It reads little more than modification times, as a timer may run it every
// minute.
func (r *Runner) due(all bool, skip func(hash string) bool) (tasks []task, next time.Time, err error) {
	hashes, err := r.Dir.FeedHashes()
	if err != nil {
		return nil, next, err
	}
	marked := r.marked()
	now := r.now()
	for _, hash := range hashes {
		if skip != nil && skip(hash) || settings.Paused(r.Dir, hash) {
			continue
		}
		reason := Due
		switch {
		case all:
			reason = Forced
		case marked[hash]:
			reason = Marked
		case !feedfiles.Subscribed(r.Dir, hash):
			continue
		default:
			if schedule.IntervalChanged(r.Dir, hash) {
				r.reschedule(hash)
			}
			if due, at := schedule.Due(r.Dir, hash, now); !due {
				if !at.IsZero() && (next.IsZero() || at.Before(next)) {
					next = at
				}
				continue
			}
		}
		url, err := feedfiles.URL(r.Dir, hash)
		// A feed without a URL is not subscribed to. For other errors, the visit reports the cause.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue
		}
		tasks = append(tasks, newTask(hash, url, reason))
	}
	return tasks, next, nil
}

// reschedule computes the due time of a feed again, after its interval was changed by hand.
func (r *Runner) reschedule(hash string) {
	s, err := r.open(context.Background(), hash, false)
	if err != nil {
		return // another process has locked the feed, and sets the time itself
	}
	defer s.Close()
	if err := s.st.Schedule.Reschedule(); err != nil {
		r.report.Warn("src/%s: %v", hash, err)
	}
}

// marked returns the feeds that have a due marker.
func (r *Runner) marked() map[string]bool { return schedule.Marked(r.Dir, r.report.Warn) }
