// Package fetcher is the room of lektor-fetch: it fetches the feeds that are due,
// many at a time, and delivers what is new in them. It joins fetch (exchanges
// and schedule), feedconv (documents), delivery (what is new) and lektordir
// (the directory).
package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/fulltext"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/lektordir"
)

// DefaultJobs is how many feeds are fetched at once. Most of the time is spent
// waiting for servers, and a few that stall must not hold up the others.
const DefaultJobs = 48

// delay is how long a feed's entries wait for those of others to be synced
// with. It costs nothing where no others are to come, see [turn].
const delay = 250 * time.Millisecond

// FlagMaxEntries is the command-line flag that raises [Options].MaxEntries,
// without the dashes: warnings tell the user of it.
const FlagMaxEntries = "max-entries"

// Options say how a [Runner] works.
type Options struct {
	Jobs       int // feeds fetched at once; 0 means DefaultJobs
	Fetch      fetch.Config
	MaxEntries int            // taken of one document, see FlagMaxEntries; 0 means feedconv's default
	History    history.Limits // of one walk through archives or pages; a 0 means its default
	Interval   time.Duration  // of feeds without their own; 0 means fetch's default

	// Delivered is told of entries once they are durable in new/. Calls do
	// not overlap.
	Delivered func([]lektordir.Ref)
	// Progress begins a progress display of work in so many steps, 0 if their number is
	// not known; the functions it returns count one step and end it. May be nil.
	Progress func(what string, total int) (step, end func())
}

// Reporter takes messages for the user, one line each.
type Reporter interface {
	Warn(format string, args ...any)
	Error(format string, args ...any)
	Info(format string, args ...any)
}

// Runner fetches and delivers into one lektor-dir. It is safe for concurrent
// use.
type Runner struct {
	Dir    *lektordir.Dir
	Writer *commit.Writer
	Client *fetch.Client

	opts   Options
	now    func() time.Time
	report Reporter
	// parsing bounds the documents that are parsed at once: what one grows to meanwhile is
	// the greater part of the memory, and more than there are processors gain nothing.
	parsing *semaphore.Weighted
	parsers int64
	disk    disk
	print   sync.Mutex
	byURL   func() map[string]string // hashes of the subscriptions when it was first called, see Add
	extract func(ctx context.Context, page []byte, url, contentType string) (*fulltext.Article, error)
	missing sync.Once // the program that finds articles: the user is told once for all feeds

	together  int                // see the constant
	pagesTime time.Duration      // see the constant
	reached   func(where string) // for tests: called where a kill matters
}

// New prepares a runner. Close it.
func New(d *lektordir.Dir, report Reporter, o Options) (*Runner, error) {
	w, err := feeddir.NewWriter(d, commit.Options{Delay: delay})
	if err != nil {
		return nil, err
	}
	o.Jobs = cmp.Or(max(o.Jobs, 0), DefaultJobs)
	o.History.Documents = cmp.Or(o.History.Documents, DefaultLimitDocuments)
	o.History.Entries = cmp.Or(o.History.Entries, DefaultLimitEntries)
	o.History.Bytes = cmp.Or(o.History.Bytes, DefaultLimitBytes)
	if o.Fetch.Now == nil {
		o.Fetch.Now = time.Now
	}
	parsers := int64(max(2, runtime.GOMAXPROCS(0)) + 1)
	return &Runner{
		Dir: d, Writer: w, Client: fetch.NewClient(o.Fetch), opts: o, now: o.Fetch.Now, report: report,
		parsing: semaphore.NewWeighted(parsers), parsers: parsers,
		byURL: sync.OnceValue(func() map[string]string { return feeddir.ByURL(d) }), extract: fulltext.Extract, together: together, pagesTime: pagesTime,
	}, nil
}

// Close ends the runner, after all of its work has ended.
func (r *Runner) Close() error {
	err := r.Writer.Close()
	r.noteDate()
	r.Client.Close()
	return err
}

// noteDate records the Date of servers, by which others recognise a wrong clock.
func (r *Runner) noteDate() {
	// A record that is missing or old protects less, and harms nothing.
	_ = feeddir.NoteDate(r.Dir, r.Client.Date(), r.now())
}

// Recover finishes what earlier runs left half done, and removes their temporary
// files. It comes before anything else; errors are reported, and keep nobody from
// fetching other feeds.
func (r *Runner) Recover(ctx context.Context) {
	if err := r.Writer.Recover(ctx); err != nil && ctx.Err() == nil {
		r.report.Error("recovery: %v", err)
	}
	feeddir.Sweep(r.Dir, r.now())
}

// Selection says which feeds to fetch.
type Selection struct {
	Feeds []string // hashes; none means all that are due
	All   bool     // all, due or not
	// Unnamed means that the user did not name Feeds.
	Unnamed bool
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

// tell reports why a feed failed.
func (r *Runner) tell(o Outcome) {
	switch {
	case o.Err == nil, o.Broken > 0 && r.disk.add(o.Err):
	case o.Broken > 0, o.task.reason == Named:
		r.report.Error("%s", o.Err)
	case o.Failed > 0:
		r.report.Info("%s", o.Err)
	}
}

// progress begins a progress display, where one is wanted.
func (r *Runner) progress(what string, total int) (step, end func()) {
	if r.opts.Progress == nil {
		return func() {}, func() {}
	}
	return r.opts.Progress(what, total)
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
		tasks, _, err = r.due(sel.All, nil)
	}
	reason := Named
	if sel.Unnamed {
		reason = Forced
	}
	seen := map[string]bool{}
	for _, h := range sel.Feeds {
		if !seen[h] {
			seen[h] = true
			tasks = append(tasks, r.task(h, reason))
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

// at is told by tests to be somewhere.
func (r *Runner) at(where string) {
	if r.reached != nil {
		r.reached(where)
	}
}

// prefixed puts the URL in front of an error that does not begin with it.
func prefixed(name string, err error) error {
	name = fetch.Brief(name)
	if name == "" || strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
