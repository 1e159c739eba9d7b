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
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/delivery"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/fulltext"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/websub"
	"github.com/lektordir/lektor/lektordir"
)

// DefaultJobs is how many feeds are fetched at once. Most of the time is spent
// waiting for servers, and a few that stall must not hold up the others.
const DefaultJobs = 48

// maxHeld is how many bytes of documents may wait to be parsed before no
// further request is begun.
const maxHeld = 32 << 20

// delay is how long a feed's entries wait for those of others to be synced
// with. It costs nothing where no others are to come, see [hooks].
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
	Writer *lektordir.Writer
	Client *fetch.Client

	opts    Options
	now     func() time.Time
	report  Reporter
	parsing chan struct{}       // slots for documents that are being parsed
	held    *semaphore.Weighted // bytes of documents that are in memory, see room
	big     *feedconv.Limiter
	print   sync.Mutex
	disk    disk
	commits sync.WaitGroup
	// unsettled tells that a commit failed, and may have left entries in tmp/
	// that the journal names.
	unsettled atomic.Bool
	urls      sync.Once
	byURL     map[string]string  // see Add
	together  int                // see the constant
	reached   func(where string) // for tests: told where a walk is

	pagesTime time.Duration // see the constant
	extract   func(ctx context.Context, page []byte, url, contentType string) (*fulltext.Article, error)
	missing   missing
}

// New prepares a runner. Close it.
func New(d *lektordir.Dir, report Reporter, o Options) (*Runner, error) {
	w, err := d.NewWriter(lektordir.WriterOptions{Delay: delay})
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
	r := &Runner{
		Dir: d, Writer: w, Client: fetch.NewClient(o.Fetch), opts: o, now: o.Fetch.Now, report: report,
		big: feedconv.NewLimiter(1), together: together, pagesTime: pagesTime, extract: fulltext.Extract,
		// What a document grows to while it is parsed is the greater part of
		// the memory; more at once than there are processors gain nothing.
		parsing: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
		held:    semaphore.NewWeighted(maxHeld),
	}
	return r, nil
}

// Close waits for what is being committed.
func (r *Runner) Close() error {
	r.commits.Wait()
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
	// Unnamed tells that it was not the user who named Feeds.
	Unnamed bool
	// History asks for all archives of the feeds, and Pages for so many of their
	// pages, the first among them, or [AllPages].
	History bool
	Pages   int
	// FullText asks for the pages of unread entries, too, that were delivered without.
	FullText bool
}

// Summary counts what became of the feeds of a run.
type Summary struct {
	Feeds       int
	Fetched     int // a document came
	Unchanged   int // of these, the same as last time
	NotModified int // 304
	Failed      int // for which a server, the network or the document is to blame
	Broken      int // for which this machine is: disk, permissions
	Busy        int // another process fetches them
	Skipped     int // not due any more
	New         int // entries delivered
	Updated     int // new versions delivered of entries known before

	// Documents of the history of feeds, archives and pages: those asked for, and
	// those that were had before.
	Requested, Reused int

	kept int // documents that wait in the spool since the walk was stopped
}

// String is the summary line.
func (s Summary) String() string {
	var parts []string
	add := func(n int, one, many string) {
		if n == 1 {
			parts = append(parts, one)
		} else if n > 1 {
			parts = append(parts, units.Group(int64(n))+" "+many)
		}
	}
	add(s.Fetched, "1 fetched", "fetched")
	add(s.NotModified, "1 not modified", "not modified")
	add(s.Failed+s.Broken, "1 failed", "failed")
	add(s.Busy, "1 busy", "busy")
	add(s.Skipped, "1 not due any more", "not due any more")
	line := units.Count(s.Feeds, "feed") + ": " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		line = units.Count(s.Feeds, "feed") + ": nothing done"
	}
	entries := units.Count(s.New, "new entry")
	if s.Updated > 0 {
		entries += ", " + units.Group(int64(s.Updated)) + " updated"
	}
	if s.Requested+s.Reused > 0 {
		entries += fmt.Sprintf("; history: %s requested, %s reused", units.Count(s.Requested, "document"), units.Group(int64(s.Reused)))
	}
	return line + "; " + entries
}

func (s *Summary) add(res result) {
	switch res.kind {
	case fetched:
		s.Fetched++
	case unchanged:
		s.Fetched++
		s.Unchanged++
	case notModified:
		s.NotModified++
	case failed:
		s.Failed++
	case broken:
		s.Broken++
	case busy:
		s.Busy++
	case skipped:
		s.Skipped++
	}
	s.New += res.new
	s.Updated += res.updated
}

// walked adds what a walk brought.
func (s *Summary) walked(w Summary) {
	s.New += w.New
	s.Updated += w.Updated
	s.Requested += w.Requested
	s.Reused += w.Reused
	s.kept += w.kept
}

// kind is what became of a feed.
type kind int

const (
	fetched kind = iota
	unchanged
	notModified
	failed  // not our fault
	broken  // our fault
	busy    // another process has it
	skipped // not due any more, or stopped
)

// result is what became of a feed.
type result struct {
	hash         string
	kind         kind
	err          error // for failed and broken
	new, updated int
	walk         bool      // through its archives or pages is to be made
	began        time.Time // when the visit did, zero if entries of the document are missing
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
	q := newQueue(r.opts.Fetch.PerHost)
	for _, t := range tasks {
		q.add(t)
	}
	defer q.closeAt(ctx)()
	var mu sync.Mutex
	var walks []task
	r.work(ctx, q, min(r.opts.Jobs, len(tasks)), true, func(t task, res result) bool {
		mu.Lock()
		defer mu.Unlock()
		sum.add(res)
		if res.walk {
			t.began = res.began
			walks = append(walks, t)
		}
		step()
		return false
	})
	r.commits.Wait()
	end()
	// News of no feed waits for the archives of another.
	sum.walked(r.walks(ctx, walks))
	r.disk.tell(r.Dir.Path(), r.report)
	if ctx.Err() != nil {
		return sum, context.Cause(ctx)
	}
	return sum, nil
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

// work runs workers on a queue and returns when they have ended. finished tells
// whether more is to be done with the feed: then it is the caller who tells the queue
// when that is done.
func (r *Runner) work(ctx context.Context, q *queue, workers int, once bool, finished func(task, result) (more bool)) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				t, ok := q.next(once)
				if !ok {
					return
				}
				h := hooks{
					free: sync.OnceFunc(func() { q.freed(t) }),
					submitted: sync.OnceFunc(func() {
						if q.submitted() {
							r.Writer.Flush()
						}
					}),
				}
				h.finished = func(res result) {
					h.free()
					h.submitted()
					if !finished(t, res) {
						q.done(t)
					}
				}
				r.feed(ctx, t, nil, h)
			}
		})
	}
	wg.Wait()
}

// tasks lists the feeds selected.
func (r *Runner) tasks(sel Selection) ([]task, error) {
	if len(sel.Feeds) > 0 {
		var tasks []task
		for _, h := range sel.Feeds {
			if slices.ContainsFunc(tasks, func(t task) bool { return t.hash == h }) {
				continue
			}
			t := r.task(h)
			t.named, t.force = !sel.Unnamed, true
			tasks = append(tasks, t)
		}
		return sel.wanting(tasks), nil
	}
	tasks, _, err := r.due(sel.All, nil)
	return sel.wanting(tasks), err
}

// wanting makes tasks ask for history as the selection does.
func (sel Selection) wanting(tasks []task) []task {
	for i := range tasks {
		tasks[i].history, tasks[i].pages, tasks[i].fullText = sel.History, sel.Pages, sel.FullText
	}
	return tasks
}

func (r *Runner) task(hash string) task {
	url, _ := feeddir.URL(r.Dir, hash)
	return newTask(hash, url)
}

func newTask(hash, url string) task {
	// Feeds that come from no host do not wait for each other.
	return task{hash: hash, url: url, host: cmp.Or(fetch.HostKey(url), hash)}
}

// due lists the feeds that are due, or all, and tells when the next of the
// others is. It looks at modification times only: a timer may run it every
// minute. Feeds for which skip is true are left out; calls of it overlap.
func (r *Runner) due(all bool, skip func(hash string) bool) ([]task, time.Time, error) {
	hashes, err := r.Dir.FeedHashes()
	if err != nil {
		return nil, time.Time{}, err
	}
	marked := r.left()
	now := r.now()
	// Nothing else goes on while a run begins: all processors look.
	parts := slices.Collect(slices.Chunk(hashes, len(hashes)/runtime.GOMAXPROCS(0)+1))
	found := make([][]task, len(parts))
	nexts := make([]time.Time, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			for _, h := range part {
				if skip != nil && skip(h) {
					continue
				}
				if t, next := r.inspect(h, all, marked[h], now); t.hash != "" {
					found[i] = append(found[i], t)
				} else if !next.IsZero() && (nexts[i].IsZero() || next.Before(nexts[i])) {
					nexts[i] = next
				}
			}
		})
	}
	wg.Wait()
	var next time.Time
	for _, t := range nexts {
		if next.IsZero() || !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	return slices.Concat(found...), next, nil
}

// inspect gives the task for a feed that is due, or when it will be; neither for
// one that is not subscribed to.
func (r *Runner) inspect(hash string, all, marked bool, now time.Time) (t task, next time.Time) {
	if !all && !marked {
		if !feeddir.Subscribed(r.Dir, hash) {
			return task{}, time.Time{}
		}
		if feeddir.IntervalChanged(r.Dir, hash) {
			r.reschedule(hash)
		}
		if due, next := feeddir.Due(r.Dir, hash, now); !due {
			return task{}, next
		}
	}
	url, err := feeddir.URL(r.Dir, hash)
	// There is none, nor can there be; where one cannot be looked for, the fetch
	// tells why.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return task{}, time.Time{}
	}
	t = newTask(hash, url)
	t.marked, t.force = marked, all
	return t, time.Time{}
}

// reschedule moves the time a feed is due to what its interval says, which was
// changed by hand.
func (r *Runner) reschedule(hash string) {
	t, err := r.Writer.Begin(hash)
	if err != nil {
		return // whoever has it sets the time himself
	}
	defer t.Close()
	if st, err := r.state(hash); err == nil {
		if err := st.Reschedule(); err != nil {
			r.report.Warn("src/%s: %v", hash, err)
		}
	}
}

// left gives the feeds that somebody wants fetched at once.
func (r *Runner) left() map[string]bool { return feeddir.Left(r.Dir, r.report.Warn) }

func (r *Runner) state(hash string) (*feeddir.State, error) {
	st, err := feeddir.Load(r.Dir, hash)
	if err != nil {
		return nil, err
	}
	st.DefaultInterval = r.opts.Interval
	st.Limits = fmt.Sprintf("%s=%d", FlagMaxEntries, cmp.Or(r.opts.MaxEntries, feedconv.DefaultMaxEntries))
	return st, nil
}

// room waits until the documents that wait to be parsed leave room for another.
// How large that will be is not known, nor need it be: not more than one of each
// worker comes in excess.
func (r *Runner) room(ctx context.Context) error {
	if err := r.held.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	r.held.Release(1)
	return nil
}

// commit commits a transaction; done is called in a goroutine of its own, as
// the committer has other feeds to go on with.
func (r *Runner) commit(txn *lektordir.Txn, done func(error)) {
	r.commits.Add(1)
	txn.Commit(func(err error) {
		go func() {
			defer r.commits.Done()
			done(err)
		}()
	})
}

// delivered tells of entries that are in new/ now; those for which marks waited are
// in cur/ already.
func (r *Runner) delivered(txn *lektordir.Txn, moved map[lektordir.Ref]lektordir.Ref) {
	if r.opts.Delivered == nil {
		return
	}
	refs := txn.Delivered()
	for i, ref := range refs {
		if to, ok := moved[ref]; ok {
			refs[i] = to
		}
	}
	r.print.Lock()
	defer r.print.Unlock()
	if len(refs) > 0 {
		r.opts.Delivered(refs)
	}
}

// mark marks what came of a feed and was read elsewhere, see [feeddir.Mark]. What it
// cannot mark waits for the next visit.
func (r *Runner) mark(hash string) map[lektordir.Ref]lektordir.Ref {
	moved, err := feeddir.MarkArrived(r.Dir, hash, r.now())
	if err != nil {
		r.report.Warn("%v", err)
	}
	return moved
}

// stage stages what is new in a document of a feed, after describe. article is that of
// [delivery.Options].
func (r *Runner) stage(ctx context.Context, txn *lektordir.Txn, p lektordir.Policy, feed *feedconv.Feed, article func(int) (delivery.Article, bool)) (lektordir.Result, error) {
	h := feeddir.HistoryOf(r.Dir, txn.Feed())
	// Of a document that was left short nobody knows what else is in it. Where it was
	// cut off, the mark may stand in the part that is missing.
	whole := !feed.Truncated && limited(feed) < 0
	var old []string
	was := false
	if !whole {
		var bad error
		old, was, bad = r.Dir.Complete(txn.Feed())
		was = was && bad == nil
	}
	o := delivery.Options{Rank: feed.Complete || feed.Truncated && was, Dates: dates(h), Article: article}
	out, err := delivery.StageWith(ctx, txn, feed, p, o)
	switch {
	case err != nil:
	case o.Rank:
		// Before what is new is there: nobody is to see it come and not find it.
		ids := out.Ranked
		if !whole {
			if !was {
				return out, nil // everything is shown
			}
			in := map[string]bool{}
			for _, id := range ids {
				in[id] = true
			}
			ids = append(ids, slices.DeleteFunc(old, func(id string) bool { return in[id] })...)
		}
		err = h.Present(ids)
	default:
		err = h.NotComplete()
	}
	return out, err
}

// dates are those of the document of a feed with such a history.
func dates(h *feeddir.History) lektordir.Dates {
	if h.Stored() {
		// An archive may have a later version (RFC 5005, section 4.1).
		return lektordir.NotOlder
	}
	return lektordir.AnyDate
}

// parse reads a document, through the feed's filter if it has one.
func (r *Runner) parse(ctx context.Context, st *feeddir.State, resp *fetch.Response, name string, env []string) (*feedconv.Feed, error) {
	doc := resp.Body
	contentType := resp.Header.Get("Content-Type")
	if filter := st.Filter(); filter != "" {
		out, err := r.Client.Filter(ctx, filter, doc, env...)
		if err != nil {
			return nil, err
		}
		doc, contentType = out, ""
	}
	feed, err := r.read(doc, resp.FinalURL, contentType, resp.Header)
	if err != nil {
		return nil, err
	}
	// The end of the document is missing. Where the server did not say how long
	// it is, that may have happened on the way: what came is delivered, and
	// the rest must come by the next request.
	if feed.Truncated && resp.Header.Get("Content-Length") == "" {
		resp.Truncated = true
	}
	resp.Short = limited(feed) >= 0
	r.warn(name, feed)
	return feed, nil
}

// env is what the commands of a feed find in their environment: its URL, without a
// password, its name below src/, and the lektor-dir.
func (r *Runner) env(hash, url string) []string {
	return []string{"LEKTOR_URL=" + fetch.Public(url), "LEKTOR_FEED=" + hash, "LEKTOR_DIR=" + r.Dir.Path()}
}

// read reads a document.
func (r *Runner) read(doc []byte, url, contentType string, h http.Header) (*feedconv.Feed, error) {
	feed, err := feedconv.ParseBytes(doc, feedconv.Options{
		URL: url, ContentType: contentType,
		ContentLocation: h.Get("Content-Location"), ContentLanguage: h.Get("Content-Language"),
		MaxBytes: r.opts.Fetch.MaxDecoded, MaxEntries: r.opts.MaxEntries,
		Limiter: r.big,
	})
	if limit, ok := errors.AsType[*feedconv.LimitError](err); ok {
		err = &fetch.LimitError{URL: fetch.Public(url), Limit: limit.Limit, Max: limit.Max, Flag: fetch.FlagMaxDecoded}
	}
	if feed != nil {
		// Those who listen look for hubs in the header first.
		feed.Links = websub.Links(h, url, feed.Links)
	}
	return feed, err
}

// limited gives the first warning that a limit left something out which can
// be raised, -1 for none.
func limited(feed *feedconv.Feed) int {
	return slices.IndexFunc(feed.Warnings, func(w feedconv.Warning) bool { return w.Limit != "" })
}

// warn says what was wrong with a document, in one line. Of several defects it
// names the one that the user can do something about.
func (r *Runner) warn(name string, feed *feedconv.Feed) {
	if len(feed.Warnings) == 0 {
		return
	}
	i := limited(feed)
	text := feed.Warnings[max(0, i)].String()
	if i >= 0 {
		text += "; --" + FlagMaxEntries + " raises the limit"
	}
	if n := len(feed.Warnings); n > 1 {
		text += " (and " + units.Count(n-1, "more defect") + ")"
	}
	r.report.Warn("%s: %s", name, text)
}

// describe writes what a document says of the feed into src/$feed. id is for a
// feed that is not there yet.
func (r *Runner) describe(txn *lektordir.Txn, feed *feedconv.Feed, id, name string) error {
	old, _ := r.Dir.ReadFeed(txn.Feed())
	if old == nil {
		old = &lektordir.Feed{}
	}
	id = cmp.Or(old.ID, id)
	if lektordir.FeedHash(id) != txn.Feed() {
		// The file is lost; the URL is the id as long as the feed did not move.
		url := r.task(txn.Feed()).url
		if id = url; lektordir.FeedHash(id) != txn.Feed() {
			return fmt.Errorf("src/%s: the id of the feed is lost", txn.Feed())
		}
	}
	authors := make([]string, 0, len(feed.Authors))
	for _, p := range feed.Authors {
		authors = append(authors, p.String())
	}
	title := strings.Join(strings.Fields(feed.Title), " ")
	if err := txn.PutFeed(&lektordir.Feed{
		ID:          id,
		Name:        cmp.Or(name, title, old.Name, feeddir.DefaultName(id)),
		Description: feed.Description,
		Language:    feed.Language,
		Image:       feed.Image,
		Copyright:   feed.Copyright,
		Author:      strings.Join(authors, ", "),
		Link:        feed.Link,
		Generator:   feed.Generator.String(),
	}); err != nil {
		return err
	}
	if err := feeddir.GuardID(r.Dir, txn.Feed(), id); err != nil {
		return err
	}
	return feeddir.PushOf(feed.Clouds, feed.Links).Write(r.Dir, txn.Feed())
}

// prefixed puts the URL in front of an error that does not begin with it.
func prefixed(name string, err error) error {
	name = fetch.Brief(name)
	if name == "" || strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
