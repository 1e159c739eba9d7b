// Package fetcher is the room of lektor-fetch: it fetches the feeds that are due,
// many at a time, and delivers what is new in them. It joins fetch (exchanges),
// feeddir (what is known of a feed, and its schedule), feedconv (documents), delivery
// (what is new) and lektordir (the directory).
//
// A reader begins with runner.go. update.go chooses feeds and watch.go waits for them;
// outcome.go says why a feed is fetched and what became of it; queue.go starts a visit when
// its turn has come. session.go is a feed at work, visit.go the fetch of its document,
// document.go how one is parsed, fulltext.go the pages of its entries. walk.go goes through
// archives, paged.go through pages. find.go looks for the feed at a URL. The commands are in
// common.go, fetching.go, add.go, deliver.go, history.go, list.go, subscriptions.go, opml.go
// and move.go.
package fetcher

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

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

	opts    Options
	now     func() time.Time
	report  Reporter
	parser  parser
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
	return &Runner{
		Dir: d, Writer: w, Client: fetch.NewClient(o.Fetch), opts: o, now: o.Fetch.Now, report: report,
		parser: newParser(o, report),
		byURL:  sync.OnceValue(func() map[string]string { return feeddir.ByURL(d) }), extract: fulltext.Extract, together: together, pagesTime: pagesTime,
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
