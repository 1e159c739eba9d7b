package fetcher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/delivery"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/internal/stage"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/workers"
)

// maxWalks is how many walks through archives are made at once.
const maxWalks = 8

// Defaults of [history.Limits].
const (
	DefaultLimitDocuments = 100
	DefaultLimitEntries   = 10_000
	DefaultLimitBytes     = 256 << 20
)

// together is how many entries of archives wait for each other to be synced.
const together = 1000

// mostMends is how often a walk that was asked for is made again, as the link that stopped it
// is in a recorded archive: for the last one, for all of a circle, and for one behind it.
const mostMends = 3

// walk is a walk through the archives of a feed, or through its pages. It holds
// the feed's lock from its begin to its end. What comes is spooled, and delivered when
// the walk has ended, the oldest first: so entries without a date are in order, and a
// walk that is interrupted is taken up where it was.
type walk struct {
	*session
	t    task
	name string // of the feed, in messages
	step func() // counts a document that was asked for

	h     *feeddir.History
	spool *feeddir.Spool
	req   *fetch.Request // for the document that is subscribed to

	way    []passed // newest first
	choice history.Choice
	last   *feedconv.Feed // of the last of way

	sum   Summary
	after time.Duration // what a server that failed wants to be left alone for
}

// passed is a document that is to be delivered.
type passed struct {
	url     string
	stored  history.Stored
	partial bool // entries of it were left out, so it is not recorded
}

// walks makes walks, some at a time, and adds what came of them up.
func (r *Runner) walks(ctx context.Context, visits []Outcome) (sum Summary) {
	if len(visits) == 0 {
		return sum
	}
	// The last document alone says that there are no more.
	step, end := r.progress("older documents", 0)
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
	_ = g.Wait() // there are none
	for _, s := range sums {
		sum.add(s)
	}
	if sum.kept > 0 {
		r.report.Info("stopped; %s of archives came, and will not be asked for again", units.Count(sum.kept, "document"))
	}
	return sum
}

// walk makes one walk after a visit, and reports what went wrong. Its summary has entries
// and documents only. step is called for each document.
func (r *Runner) walk(ctx context.Context, visit Outcome, step func()) Summary {
	w := &walk{t: visit.task, name: fetch.Public(visit.task.url), step: step}
	var err error
	if w.session, err = r.open(ctx, w.t.hash, w.t.reason == Named); err == nil {
		defer w.Close()
		err = w.through(ctx, visit.began)
	}
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, errNoWalk):
	case errors.As(err, new(*commit.BusyError)):
		// Whoever has the feed walks himself, or the next visit does.
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

// errNoWalk ends a walk for which there is no reason any more.
var errNoWalk = errors.New("there is nothing to walk through")

// through reads what is needed of the feed, and goes through its pages or archives. began
// is when the visit before did, see [Outcome].
func (w *walk) through(ctx context.Context, began time.Time) (err error) {
	if w.req, err = w.st.Request(); errors.Is(err, fs.ErrNotExist) {
		return errNoWalk // unsubscribed meanwhile
	} else if err != nil {
		return err
	}
	w.name = fetch.Public(w.req.URL)
	if err := w.trusted(); err != nil {
		return err
	}
	w.h = feeddir.HistoryOf(w.r.Dir, w.hash)
	if w.spool, err = feeddir.SpoolOf(w.r.Dir, w.hash); err != nil {
		return err
	}
	if w.t.want.Pages != 0 {
		return w.pages(ctx)
	}
	err = w.archives(ctx, began)
	if ctx.Err() != nil {
		w.sum.kept = len(w.way)
	}
	return err
}

// archives walks through the archives.
func (w *walk) archives(ctx context.Context, began time.Time) error {
	linked := w.h.Linked()
	if linked.Prev == "" {
		w.nothing(linked)
		return nil
	}
	if w.t.want.Archives {
		// The user wants all there is, now and, should this be interrupted, later.
		if err := w.h.SetBaseline(history.Baseline{}); err != nil {
			return err
		}
	}
	walk, err := w.follow(ctx, nil)
	var again []string
	for range mostMends {
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
	// Before anything is recorded: what is recorded is not looked at again.
	if err := w.tell(walk.Stopped()); err != nil {
		return err
	}
	if err := w.deliver(ctx, walk.Baseline); err != nil {
		return err
	}
	if walk.Stopped() == nil && !walk.Waits() {
		err := w.h.Whole()
		if err == nil && !began.IsZero() {
			err = w.h.Settle(began)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.h.Sync(), w.spool.Clear())
}

// follow gets the archives, and remembers those whose entries are to be delivered. again
// are recorded ones that are asked for once more.
func (w *walk) follow(ctx context.Context, again []string) (*history.Walk, error) {
	walk, err := w.h.Walk(w.r.now(), w.t.want.Archives, w.st.Document(), w.req.URL)
	if err != nil {
		return nil, err
	}
	walk.Limits = w.r.opts.History
	for _, url := range again {
		walk.Forget(url)
	}
	w.way, w.choice, w.last, w.sum.Reused = nil, history.Choice{}, nil, 0
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

// archive gets one archive. An error is a local one; what is wrong with the archive
// ends the walk.
func (w *walk) archive(ctx context.Context, walk *history.Walk, url, from string) error {
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
	known, err := walk.Arrived(doc.Final)
	if err != nil {
		return nil
	}
	if known != nil {
		walk.Count(0, int64(len(doc.Body)))
		return w.h.Store(*known)
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
		w.r.at("spooled")
	}
	s := walk.Got(history.Reached(feed, doc.Final))
	s.Digest = fmt.Sprintf("%x", sha256.Sum256(doc.Body))
	w.pass(url, s, feed)
	if !walk.Baseline.Set() {
		return nil
	}
	arrived, err := delivery.Arrived(w.txn, feed)
	if err == nil && walk.Baseline.Behind(delivery.Versions(feed), arrived) {
		walk.End()
	}
	return err
}

// misled reports whether the link that led to a document is to blame that it could not be
// had, rather than a server that is in trouble.
func misled(err error) bool {
	var status *fetch.StatusError
	var network *fetch.NetError
	switch {
	case errors.As(err, &status):
		return status.Status < 500 && status.Status != http.StatusTooManyRequests
	case errors.As(err, &network):
		return !network.Offline && !network.Timeout()
	}
	return errors.As(err, new(*fetch.RedirectError)) || errors.As(err, new(*feedconv.NotFeedError))
}

// pass remembers a document on the way.
func (w *walk) pass(url string, s history.Stored, feed *feedconv.Feed) {
	w.way = append(w.way, passed{url: url, stored: s})
	w.last = feed
	for id, updated := range delivery.Versions(feed) {
		w.choice.Add(id, history.Version{Updated: updated, Document: feed.Updated, Nearness: -len(w.way)})
	}
}

// get asks for a document that one at from names. The error is for the user.
func (w *walk) get(ctx context.Context, url, from string) (*feeddir.Spooled, error) {
	resp, err := w.ask(ctx, w.req, &fetch.Request{URL: url, Origin: from})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w.sum.Requested++
	w.step()
	w.r.at("requested")
	if err != nil {
		return nil, err
	}
	return &feeddir.Spooled{
		URL: url, Final: history.Normal(resp.FinalURL), ContentType: resp.Header.Get("Content-Type"),
		ContentLocation: resp.Header.Get("Content-Location"), ContentLanguage: resp.Header.Get("Content-Language"),
		Body: resp.Body,
	}, nil
}

// read reads a document of the feed's history. One of which something is missing is
// an error: it is recorded as stored once, and never asked for again.
func (w *walk) read(ctx context.Context, doc *feeddir.Spooled) (feed *feedconv.Feed, err error) {
	h := http.Header{}
	h.Set("Content-Type", doc.ContentType)
	h.Set("Content-Location", doc.ContentLocation)
	h.Set("Content-Language", doc.ContentLanguage)
	body, err := w.filtered(ctx, w.req.URL, doc.Body)
	if err != nil {
		return nil, err
	}
	err = w.r.parser.reading(ctx, body, func() (err error) {
		feed, err = w.session.parse(body, doc.Final, h)
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

// reason says in a line why a document could not be had.
func (w *walk) reason(url string, err error) string {
	w.after = fetch.Pause(err)
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		return fmt.Sprintf("the server answered %d %s", status.Status, cmp.Or(http.StatusText(status.Status), "an unknown status"))
	}
	return strings.TrimPrefix(err.Error(), fetch.Brief(url)+": ")
}

// tell records and tells the user why the walk did not come to its end, if so: once,
// unless he asked for it.
func (w *walk) tell(stop *history.Stop) error {
	if stop == nil {
		return nil
	}
	news, err := w.h.Missing(w.r.now(), stop.URL, stop.Reason, len(w.way) > 0, w.after)
	w.report(news, stop)
	return err
}

// report tells the user where a walk ended too early.
func (w *walk) report(news bool, stop *history.Stop) {
	err := fmt.Errorf("older entries are missing: %w", stop)
	switch {
	case w.t.reason == Named:
		w.r.report.Error("%v", prefixed(w.name, err))
	case news:
		w.r.report.Warn("%v", prefixed(w.name, err))
	}
}

// nothing tells who asked for it that there are no archives.
func (w *walk) nothing(l feeddir.Linked) {
	switch {
	case !w.t.want.Archives || w.t.reason != Named:
	case l.Kind == history.Complete:
		w.r.report.Info("%s: its document has all entries there are", w.name)
	case l.Next != "":
		w.r.report.Info("%s: it has no archives; --pages all goes through its pages", w.name)
	default:
		w.r.report.Info("%s: it has no archives", w.name)
	}
}

// deliver delivers what was passed, the oldest first, and of a walk with a baseline what is
// news. Each archive is recorded when its entries are durable, and removed from the spool
// then.
func (w *walk) deliver(ctx context.Context, b history.Baseline) error {
	var staged []passed
	entries, added := 0, 0 // staged; of these, new
	commit := func() error {
		err := w.record(staged, added)
		staged, entries, added = nil, 0, 0
		return err
	}
	for len(w.way) > len(staged) {
		at := len(w.way) - len(staged)
		p := w.way[at-1]
		feed, err := w.again(ctx, p.url)
		if err != nil {
			return err
		}
		out, err := w.stagePassed(ctx, b, feed, -at, &p)
		if errors.Is(err, stage.ErrOverlap) {
			if err := commit(); err != nil {
				return err
			}
			out, err = w.stagePassed(ctx, b, feed, -at, &p)
		}
		if err != nil {
			return err
		}
		w.r.at("staged")
		staged = append(staged, p)
		added += len(out.New)
		if entries += len(out.New) + len(out.Updated); entries >= w.r.together {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	return commit()
}

// again returns a document that was passed: the last one from memory, others from the
// spool.
func (w *walk) again(ctx context.Context, url string) (*feedconv.Feed, error) {
	if feed := w.last; feed != nil {
		w.last = nil
		return feed, nil
	}
	doc, err := w.spool.Get(url)
	switch {
	case err != nil:
		return nil, err
	case doc == nil:
		// Not recorded, it is asked for again.
		return nil, fmt.Errorf("%s was fetched, and is not in etc/fetch/spool any more", fetch.Brief(url))
	}
	return w.read(ctx, doc)
}

// stagePassed stages a document that was passed. If there is a baseline, only news
// among its unknown entries are delivered.
func (w *walk) stagePassed(ctx context.Context, b history.Baseline, feed *feedconv.Feed, nearness int, p *passed) (stage.Result, error) {
	policy := w.st.OnUpdate()
	old := map[string]bool{}
	if b.Set() {
		arrived, err := delivery.Arrived(w.txn, feed)
		if err != nil {
			return stage.Result{}, err
		}
		for id, date := range delivery.Versions(feed) {
			if _, known := arrived[id]; !known && !b.News(date) {
				old[id] = true
			}
		}
	}
	p.partial = len(old) > 0
	return delivery.StageWith(ctx, w.txn, feed, policy, delivery.Options{
		Dates: stage.OnlyNewer, Apart: true,
		Keep: func(id string) bool { return w.choice.From(id, nearness) && !old[id] },
	})
}

// record commits the documents that are staged, the last of the way, with so many new
// entries. It records the archives among them.
func (w *walk) record(staged []passed, added int) error {
	if len(staged) == 0 {
		return nil
	}
	if err := w.session.commit(w.r.Writer.Flush); err != nil {
		return err
	}
	w.r.at("delivered")
	w.sum.New += added
	w.sum.Updated += len(w.txn.Delivered()) - added // viewers may have taken older versions
	for _, p := range staged {
		if w.t.want.Pages == 0 && !p.partial {
			p.stored.Time = w.r.now()
			if err := w.h.Store(p.stored); err != nil {
				return err
			}
			w.r.at("recorded")
		}
		if err := w.spool.Remove(p.url); err != nil {
			return err
		}
	}
	w.way = w.way[:len(w.way)-len(staged)]
	w.txn = w.txn.Next()
	return nil
}
