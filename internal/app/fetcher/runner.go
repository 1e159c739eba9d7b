// Package fetcher implements lektor-fetch: it fetches the feeds that are due, many at a time, and
// delivers new and updated entries. It uses fetch (HTTP and commands), schedule (state
// of a feed), feedconv (parsing), feedstage (stages entries) and lektordir (the directory).
//
// Start reading with runner.go. update.go chooses feeds and watch.go waits for them; outcome.go
// holds reasons and results; queue.go starts visits. lockedfeed.go is a locked feed, visit.go the
// fetch of its document, document.go the parsing, fulltext.go the pages of its entries. walk.go
// walks through archives, paged.go through pages. find.go looks for the feed at a URL. The commands
// are in common.go, fetching.go, add.go, deliver.go, history.go, list.go, subscriptions.go, edit.go,
// opml.go and move.go.
package fetcher

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fulltext"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// DefaultJobs is the default number of feeds fetched at once. Most of the time is spent waiting for
// servers, and a few slow ones must not delay the others.
const DefaultJobs = 48

// delay is the maximum time that the entries of a feed wait to be synced together with others. If
// no other feed is pending, they do not wait, see [slot].
const delay = 250 * time.Millisecond

// FlagMaxEntries is the flag that sets [Options].MaxEntries, without dashes. Warnings name it.
const FlagMaxEntries = "max-entries"

// Options configure a [Runner].
type Options struct {
	Jobs       int // feeds fetched at once; 0 means DefaultJobs
	Fetch      fetch.Config
	MaxEntries int            // maximum for one document, see FlagMaxEntries; 0 means feedconv's default
	History    rfc5005.Limits // for one walk through archives or pages; a 0 means the default
	Interval   time.Duration  // for feeds without an interval of their own; 0 means fetch's default

	Steps bool // print the progress and the results to standard output, for another program

	// Delivered, if not nil, is called with entries that are durable in new/. Calls do not overlap.
	Delivered func([]lektordir.Ref)
	// Progress, if not nil, begins a progress display of total steps, 0 if unknown. The functions
	// that it returns count one step and end the display.
	Progress func(what string, total int) (step, end func())
}

// Reporter prints messages for the user, one line each.
type Reporter interface {
	Warn(format string, args ...any)
	Error(format string, args ...any)
	Info(format string, args ...any)
}

// Runner fetches and delivers into one lektor-dir. It is safe for concurrent use.
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
	byURL   func() map[string]string // hashes of the subscriptions by URL, as of the first call
	extract func(ctx context.Context, page []byte, url, contentType string) (*fulltext.Article, error)
	record  subscriptions.Recorder // of the command, see recording; nil for others
	missing sync.Once              // warns once that the program that extracts articles is missing

	walkBatch int                // see the constant
	pagesTime time.Duration      // see the constant
	testHook  func(where string) // for tests: called at steps where a kill matters
}

// New returns a runner. The caller must close it.
func New(d *lektordir.Dir, report Reporter, o Options) (*Runner, error) {
	w, err := feedfiles.NewWriter(d, commit.Options{Delay: delay, Warn: func(s string) { report.Warn("%s", s) }})
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
	if o.Progress == nil {
		o.Progress = func(string, int) (step, end func()) { return func() {}, func() {} }
	}
	return &Runner{
		Dir: d, Writer: w, Client: fetch.NewClient(o.Fetch), opts: o, now: o.Fetch.Now, report: report,
		parser: newParser(),
		byURL:  sync.OnceValue(func() map[string]string { return subscriptions.ByURL(d) }), extract: fulltext.Extract,
		walkBatch: walkBatch, pagesTime: pagesTime,
	}, nil
}

// Close closes the runner, after all calls have returned.
func (r *Runner) Close() error {
	err := r.Writer.Close()
	r.recordDate()
	r.Client.Close()
	return err
}

// recording makes the runner record changes of subscriptions for undo. The caller must call end.
func (r *Runner) recording(s *cmdline.Streams, command string) (end func()) {
	m := undo.Moving(entrystore.New(r.Dir, r.now(), s), command)
	var mu sync.Mutex
	r.record = func(changes ...subscriptions.Change) {
		mu.Lock()
		defer mu.Unlock()
		m.Settings(changes...)
	}
	return m.Close
}

// recordDate records the Date of servers, which other programs use to detect a wrong clock.
func (r *Runner) recordDate() {
	// A missing or old record only makes the detection weaker.
	_ = feedfiles.RecordDate(r.Dir, r.Client.Date(), r.now())
}

// Recover finishes or undoes interrupted commits, and removes temporary files. It must be called
// before anything else. Errors are reported; feeds can be fetched nevertheless.
func (r *Runner) Recover(ctx context.Context) {
	if err := r.Writer.Recover(ctx); err != nil && ctx.Err() == nil {
		r.report.Error("recovery: %v", err)
	}
	subscriptions.Sweep(r.Writer, r.Dir, r.now())
	undo.ForgetSecrets(r.Dir, r.now())
}

// reportOutcome reports why a feed failed.
func (r *Runner) reportOutcome(o VisitResult) {
	switch {
	case o.Err == nil, o.Broken > 0 && r.disk.add(o.Err):
	case o.Broken > 0, o.task.reason == Named:
		r.report.Error("%s", o.Err)
	case o.Failed > 0:
		r.report.Info("%s", o.Err)
	}
}

// hook calls the hook of tests.
func (r *Runner) hook(where string) {
	if r.testHook != nil {
		r.testHook(where)
	}
}

// prefixed adds name, a URL, to an error that does not begin with it.
func prefixed(name string, err error) error {
	name = feedurl.Brief(name)
	if name == "" || strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
