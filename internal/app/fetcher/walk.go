package fetcher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// maxWalks is the number of walks through archives at the same time.
const maxWalks = 8

// Defaults of [rfc5005.Limits].
const (
	DefaultLimitDocuments = 100
	DefaultLimitEntries   = 10_000
	DefaultLimitBytes     = 256 << 20
)

// walkBatch is the number of entries of archives that are synced together.
const walkBatch = 1000

// maxRepairs is how often a walk that the user asked for is repeated. Each repetition requests the
// recorded archives again that may have the link that stopped the walk.
const maxRepairs = 3

// walk is a walk through the archives or pages of a feed. It holds the feed's lock all the time.
// Documents are spooled, and delivered at the end of the walk, oldest first: so entries without a
// date are in order, and an interrupted walk can be resumed.
type walk struct {
	*lockedFeed
	t    task
	name string // URL of the feed, for messages
	step func() // counts a requested document

	h     *history.History
	spool *spool.Spool
	req   *httpmsg.Request // request for the feed's own document

	began  time.Time   // start of the visit before, see [VisitResult]
	joined bool        // the documents so far reach back to entries that were delivered before the visit
	queue  []queuedDoc // documents to deliver, newest first
	choice rfc5005.Choice

	sum        Summary
	retryAfter time.Duration // delay that a failing server asked for
}

// queuedDoc is a document to deliver.
type queuedDoc struct {
	url     string
	stored  rfc5005.Stored
	partial bool // some of its entries are not delivered, so it is not recorded
}

// walks runs walks, maxWalks at a time, and returns the sum of their results.
func (r *Runner) walks(ctx context.Context, visits []VisitResult) (sum Summary) {
	if len(visits) == 0 {
		return sum
	}
	// The number of documents is unknown until the last one was read.
	step, end := r.opts.Progress("older documents", 0)
	defer end()
	sums := make([]Summary, len(visits))
	g := workers.Limited(maxWalks)
	for i, o := range visits {
		g.Go(func() error {
			if ctx.Err() == nil {
				sums[i] = r.walk(ctx, o, step)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return no error
	for _, s := range sums {
		sum.add(s)
	}
	if sum.spooled > 0 {
		r.report.Info("stopped; %s of archives were fetched, and will not be requested again",
			humanize.Count(sum.spooled, "document"))
	}
	return sum
}

// walk makes one walk after a visit, and reports errors. The summary counts entries and documents
// only. step is called for each document.
func (r *Runner) walk(ctx context.Context, visit VisitResult, step func()) Summary {
	w := &walk{t: visit.task, name: feedurl.Public(visit.task.url), step: step, began: visit.began,
		joined: visit.joined}
	var err error
	if w.lockedFeed, err = r.open(ctx, w.t.hash, w.t.reason == Named); err == nil {
		defer w.Close()
		err = w.run(ctx)
	}
	switch {
	case err == nil, ctx.Err() != nil:
	case commit.IsBusy(err):
		// The other process walks through the archives, or the next visit does.
		if w.t.reason == Named {
			r.report.Error("%v", prefixed(w.name, err))
		}
	default:
		if err = prefixed(w.name, fmt.Errorf("its history: %w", err)); !r.disk.add(err) {
			r.report.Error("%v", err)
		}
	}
	return w.sum
}

// run prepares the walk and walks through pages or archives.
func (w *walk) run(ctx context.Context) (err error) {
	if w.req, err = w.st.Request(); errors.Is(err, fs.ErrNotExist) {
		return nil // unsubscribed meanwhile
	} else if err != nil {
		return err
	}
	w.name = feedurl.Public(w.req.URL)
	if err := w.trusted(); err != nil {
		return err
	}
	w.h = history.Of(w.r.Dir, w.hash)
	if w.spool, err = spool.Of(w.r.Dir, w.hash); err != nil {
		return err
	}
	if w.t.want.Pages != 0 {
		return w.pages(ctx)
	}
	err = w.archives(ctx)
	if ctx.Err() != nil {
		w.sum.spooled = len(w.queue)
	}
	return err
}

// archives walks through the archives.
func (w *walk) archives(ctx context.Context) error {
	linked := w.h.Linked()
	if linked.Prev == "" {
		w.reportNoArchives(linked)
		return nil
	}
	if w.t.want.Archives {
		// Remove the baseline, so that a later visit resumes the walk if this one is interrupted.
		if err := w.h.SetBaseline(rfc5005.Baseline{}); err != nil {
			return err
		}
	}
	walk, err := w.follow(ctx, nil)
	var again []string
	for range maxRepairs {
		if err != nil || !w.t.want.Archives || w.t.reason != Named || len(walk.Broken()) == 0 {
			break
		}
		again = append(again, walk.Broken()...)
		walk, err = w.follow(ctx, again)
	}
	if err != nil {
		return err
	}
	w.sum.Reused += walk.Known()
	// Report before delivering: delivered archives are recorded, and the next walk does not read
	// them again.
	if stop := walk.Stopped(); stop != nil {
		isNew, err := w.h.Missing(w.r.now(), stop.URL, stop.Reason, len(w.queue) > 0, w.retryAfter)
		if w.report(isNew, stop); err != nil {
			return err
		}
	}
	if err := w.deliver(ctx, walk.Baseline); err != nil {
		return err
	}
	if walk.Stopped() == nil && !walk.Waits() {
		err := w.h.ClearGap()
		if err == nil && !w.began.IsZero() {
			err = w.h.MoveBaseline(w.began)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.h.Sync(), w.spool.Clear())
}

// follow fetches the archives, and collects those whose entries must be delivered. The recorded
// archives in again are requested once more.
func (w *walk) follow(ctx context.Context, again []string) (*rfc5005.Walk, error) {
	walk, err := w.h.Walk(w.r.now(), w.t.want.Archives, w.st.Document.URL(), w.req.URL)
	if err != nil {
		return nil, err
	}
	walk.Limits = w.r.opts.History
	for _, url := range again {
		walk.Forget(url)
	}
	w.queue, w.choice, w.sum.Reused = nil, rfc5005.Choice{}, 0
	for {
		url, from, ok := walk.Next()
		if !ok {
			return walk, nil
		}
		if err := w.archive(ctx, walk, url, from); err != nil {
			return nil, err
		}
	}
}

// archive fetches one archive. It returns local errors; a broken archive ends the walk.
func (w *walk) archive(ctx context.Context, walk *rfc5005.Walk, url, from string) error {
	doc, err := w.spool.Get(url)
	if err != nil {
		return err
	}
	spooled := doc != nil
	if !spooled {
		if walk.May() != nil {
			return nil
		}
		if doc, err = w.get(ctx, url, from); err != nil {
			if ctx.Err() != nil {
				return err
			}
			walk.Fail(w.reason(url, err), misled(err))
			return nil
		}
	}
	stored, err := walk.Arrived(doc.Final)
	if err != nil {
		return nil
	}
	if stored != nil {
		walk.Count(0, int64(len(doc.Body)))
		return w.h.Store(*stored)
	}
	feed, err := w.read(ctx, doc)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		walk.Fail(w.reason(url, err), misled(err))
		return w.spool.Remove(url)
	}
	if spooled {
		w.sum.Reused++
	} else {
		walk.Count(len(feed.Entries), int64(len(doc.Body)))
		if err := w.spool.Put(doc); err != nil {
			return err
		}
		w.r.hook("spooled")
	}
	s := walk.Got(rfc5005.Reached(feed, doc.Final))
	s.Digest = fmt.Sprintf("%x", sha256.Sum256(doc.Body))
	w.enqueue(url, s, feed)
	return w.endByDate(walk, url, feed)
}

// endByDate ends a walk with a baseline behind an archive whose entries are all older.
func (w *walk) endByDate(walk *rfc5005.Walk, url string, feed *feedconv.Feed) error {
	if !walk.Baseline.Set() {
		return nil
	}
	doc := feedstage.Document(feed, "", nil)
	versions := doc.Versions()
	arrived, err := w.txn.Arrived(doc)
	if err != nil {
		return err
	}
	for _, at := range arrived {
		w.joined = w.joined || at.Before(w.began)
	}
	if !walk.Baseline.Behind(versions, arrived) {
		return nil
	}
	walk.End()
	if n := walk.Baseline.Skipped(versions, arrived); n > 0 && !w.joined {
		// The publisher has imported old entries, or dates them back.
		w.r.report.Info("%s: %s in its archive %s not delivered, as they are dated before the last visit; if the publisher has added them since, lektor-fetch history %[1]s delivers them",
			w.name, humanize.Count(n, "entry"), feedurl.Public(url))
	}
	return nil
}

// misled reports whether the link is wrong that led to a failed document, rather than the server
// being in trouble.
func misled(err error) bool {
	var status *httpmsg.StatusError
	var network *httpmsg.NetError
	switch {
	case errors.As(err, &status):
		return status.Status < 500 && status.Status != http.StatusTooManyRequests
	case errors.As(err, &network):
		return !network.Offline && !network.Timeout()
	}
	return errors.As(err, new(*httpmsg.RedirectError)) || errors.As(err, new(*feedconv.NotFeedError))
}

// enqueue adds a document to the queue.
func (w *walk) enqueue(url string, s rfc5005.Stored, feed *feedconv.Feed) {
	w.queue = append(w.queue, queuedDoc{url: url, stored: s})
	for id, updated := range feedstage.Document(feed, "", nil).Versions() {
		w.choice.Add(id, rfc5005.Version{Updated: updated, Document: feed.Updated, Nearness: -len(w.queue)})
	}
}

// get requests the document at url, which the document at from names. The error is for the user.
func (w *walk) get(ctx context.Context, url, from string) (*spool.Spooled, error) {
	resp, err := w.ask(ctx, w.req, &httpmsg.Request{URL: url, Origin: from})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w.sum.Requested++
	w.step()
	w.r.hook("requested")
	if err != nil {
		return nil, err
	}
	return &spool.Spooled{
		URL: url, Final: rfc5005.Normal(resp.FinalURL), ContentType: resp.Header.Get("Content-Type"),
		ContentLocation: resp.Header.Get("Content-Location"), ContentLanguage: resp.Header.Get("Content-Language"),
		Body: resp.Body,
	}, nil
}

// read parses a document of the feed's history. An incomplete document is an error, as it would be
// recorded as stored, and never requested again.
func (w *walk) read(ctx context.Context, doc *spool.Spooled) (feed *feedconv.Feed, err error) {
	h := textproto.MIMEHeader{}
	h.Set("Content-Type", doc.ContentType)
	h.Set("Content-Location", doc.ContentLocation)
	h.Set("Content-Language", doc.ContentLanguage)
	body, err := w.filtered(ctx, w.req.URL, doc.Body)
	if err != nil {
		return nil, err
	}
	err = w.r.parser.withPlace(ctx, body, func() (err error) {
		feed, err = w.lockedFeed.parse(body, doc.Final, h)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case limited(feed) >= 0:
		return nil, errors.New(feed.Warnings[limited(feed)].String() + "; --" + FlagMaxEntries + " raises the limit")
	case feed.Truncated:
		return nil, errTruncated
	}
	return feed, nil
}

// reason returns the reason of a failed request in one line.
func (w *walk) reason(url string, err error) string {
	w.retryAfter = httpmsg.Pause(err)
	if status, ok := errors.AsType[*httpmsg.StatusError](err); ok {
		return fmt.Sprintf("the server answered %d %s", status.Status,
			cmp.Or(http.StatusText(status.Status), "an unknown status"))
	}
	return strings.TrimPrefix(err.Error(), feedurl.Brief(url)+": ")
}

// report reports where a walk stopped early: once only, unless the user asked for the walk.
func (w *walk) report(isNew bool, stop *rfc5005.Stop) {
	err := fmt.Errorf("older entries are missing: %w", stop)
	switch {
	case w.t.reason == Named:
		w.r.report.Error("%v", prefixed(w.name, err))
	case isNew:
		w.r.report.Warn("%v", prefixed(w.name, err))
	}
}

// reportNoArchives reports that there are no archives, if the user asked for them.
func (w *walk) reportNoArchives(l history.Linked) {
	switch {
	case !w.t.want.Archives || w.t.reason != Named:
	case l.Kind == rfc5005.Complete:
		w.r.report.Info("%s: its document has all entries of the feed", w.name)
	case l.Next != "":
		w.r.report.Info("%s: it has no archives; --pages all walks through its pages", w.name)
	default:
		w.r.report.Info("%s: it has no archives", w.name)
	}
}

// deliver delivers the queued documents, oldest first; if b is set, only new entries. Each
// archive is recorded, and removed from the spool, when its entries are durable.
func (w *walk) deliver(ctx context.Context, b rfc5005.Baseline) error {
	var staged []queuedDoc
	entries, added := 0, 0 // entries: staged; added: of these, the new ones
	commit := func() error {
		err := w.record(staged, added)
		staged, entries, added = nil, 0, 0
		return err
	}
	for len(w.queue) > len(staged) {
		at := len(w.queue) - len(staged)
		p := w.queue[at-1]
		feed, err := w.document(ctx, p.url)
		if err != nil {
			return err
		}
		out, err := w.stageQueued(ctx, b, feed, -at, &p)
		if errors.Is(err, stage.ErrOverlap) {
			if err := commit(); err != nil {
				return err
			}
			out, err = w.stageQueued(ctx, b, feed, -at, &p)
		}
		if err != nil {
			return err
		}
		w.r.hook("staged")
		staged = append(staged, p)
		added += len(out.New)
		if entries += len(out.New) + len(out.Updated); entries >= w.r.walkBatch {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	return commit()
}

// document returns a queued document.
func (w *walk) document(ctx context.Context, url string) (*feedconv.Feed, error) {
	doc, err := w.spool.Get(url)
	switch {
	case err != nil:
		return nil, err
	case doc == nil:
		// It is not recorded, so the next walk requests it again.
		return nil, fmt.Errorf("%s was fetched, but is no longer in etc/fetch/spool", feedurl.Brief(url))
	}
	return w.read(ctx, doc)
}

// stageQueued stages a queued document. If b is set, unknown entries are left out unless they
// are new.
func (w *walk) stageQueued(ctx context.Context, b rfc5005.Baseline, feed *feedconv.Feed, nearness int,
	p *queuedDoc) (stage.Result, error) {
	doc := feedstage.Document(feed, w.st.Settings.OnUpdate(), nil)
	old := map[string]bool{}
	if b.Set() {
		arrived, err := w.txn.Arrived(doc)
		if err != nil {
			return stage.Result{}, err
		}
		for id, date := range doc.Versions() {
			if _, known := arrived[id]; !known && !b.News(date) {
				old[id] = true
			}
		}
	}
	p.partial = len(old) > 0
	doc.Dates, doc.NoOverlap = stage.OnlyNewer, true
	doc.Keep = func(id string) bool { return w.choice.From(id, nearness) && !old[id] }
	return w.txn.Stage(ctx, doc)
}

// record commits the staged documents, which are the last ones of the queue and have added new
// entries, and records the archives among them.
func (w *walk) record(staged []queuedDoc, added int) error {
	if len(staged) == 0 {
		return nil
	}
	if err := w.lockedFeed.commit(w.r.Writer.Flush); err != nil {
		return err
	}
	w.r.hook("delivered")
	w.sum.New += added
	w.sum.Updated += len(w.txn.Delivered()) - added // without older versions that a viewer has moved
	for _, p := range staged {
		if w.t.want.Pages == 0 && !p.partial {
			p.stored.Time = w.r.now()
			if err := w.h.Store(p.stored); err != nil {
				return err
			}
			w.r.hook("recorded")
		}
		if err := w.spool.Remove(p.url); err != nil {
			return err
		}
	}
	w.queue = w.queue[:len(w.queue)-len(staged)]
	w.txn = w.txn.Next()
	return nil
}
