package fetcher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/delivery"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
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

// AllPages stands for as many pages as there are.
const AllPages = -1

// walking is a walk through the archives of a feed, or through its pages. It holds
// the feed's lock from its begin to its end. What comes is spooled, and delivered when
// the walk has ended, the oldest first: so entries without a date are in order, and a
// walk that is interrupted is taken up where it was.
type walking struct {
	r    *Runner
	t    task
	name string // of the feed, in messages
	step func() // counts a document that was asked for

	txn    *lektordir.Txn
	st     *feeddir.State
	h      *feeddir.History
	spool  *feeddir.Spool
	req    *fetch.Request // for the document that is subscribed to
	policy lektordir.Policy

	way    []passed // newest first
	choice history.Choice
	last   *feedconv.Feed // of the last of way

	staged       []passed // not committed yet
	new, updated int      // entries of staged
	delivered    int      // documents of way

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
func (r *Runner) walks(ctx context.Context, tasks []task) (sum Summary) {
	if len(tasks) == 0 {
		return sum
	}
	// The last document alone says that there are no more.
	step, end := r.progress("older documents", 0)
	defer end()
	sums := make([]Summary, len(tasks))
	var g errgroup.Group
	g.SetLimit(maxWalks)
	for i, t := range tasks {
		g.Go(func() error {
			if ctx.Err() == nil {
				sums[i] = r.walk(ctx, t, step)
			}
			return nil
		})
	}
	_ = g.Wait() // there are none
	for _, s := range sums {
		sum.walked(s)
	}
	if sum.kept > 0 {
		r.report.Info("stopped; %s of archives came, and will not be asked for again", units.Count(sum.kept, "document"))
	}
	return sum
}

// walk makes one walk, and reports what went wrong. Its summary has entries and
// documents only. step is called for each document.
func (r *Runner) walk(ctx context.Context, t task, step func()) Summary {
	w := &walking{r: r, t: t, name: fetch.Public(t.url), step: step}
	err := w.begin(ctx)
	if err == nil {
		if t.pages != 0 {
			err = w.pages(ctx)
		} else {
			err = w.archives(ctx)
		}
	}
	if w.txn != nil {
		w.txn.Close()
	}
	if ctx.Err() != nil && t.pages == 0 {
		w.sum.kept = len(w.way) - w.delivered
	}
	inUse := (*lektordir.BusyError)(nil)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, errNoWalk):
	case errors.As(err, &inUse):
		// Whoever has the feed walks himself, or the next visit does.
		if t.named {
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

// begin locks the feed and reads what is needed of it.
func (w *walking) begin(ctx context.Context) (err error) {
	r := w.r
	if w.t.named {
		w.txn, err = r.Writer.BeginWait(ctx, w.t.hash)
	} else {
		w.txn, err = r.Writer.Begin(w.t.hash)
	}
	if err != nil {
		return err
	}
	if w.st, err = r.state(w.t.hash); err != nil {
		return err
	}
	if w.req, err = w.st.Request(); errors.Is(err, fs.ErrNotExist) {
		return errNoWalk // unsubscribed meanwhile
	} else if err != nil {
		return err
	}
	w.name = fetch.Public(w.req.URL)
	if w.policy, err = lektordir.ParsePolicy(w.st.OnUpdate()); err != nil {
		return err
	}
	if w.st.Filter() != "" {
		if err := feeddir.Trusted(r.Dir, w.t.hash, "filter"); err != nil {
			return err
		}
	}
	w.h = feeddir.HistoryOf(r.Dir, w.t.hash)
	w.spool, err = feeddir.SpoolOf(r.Dir, w.t.hash)
	return err
}

// archives walks through the archives.
func (w *walking) archives(ctx context.Context) error {
	linked := w.h.Linked()
	if linked.Prev == "" {
		w.nothing(linked)
		return nil
	}
	if w.t.history {
		// The user wants all there is, now and, should this be interrupted, later.
		if err := w.h.SetBaseline(history.Baseline{}); err != nil {
			return err
		}
	}
	walk, err := w.follow(ctx, nil)
	var again []string
	for range mostMends {
		if err != nil || !w.t.history || !w.t.named || len(walk.Broken()) == 0 {
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
		if err == nil && !w.t.began.IsZero() {
			err = w.h.Settle(w.t.began)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.h.Sync(), w.spool.Clear())
}

// follow gets the archives, and remembers those whose entries are to be delivered. again
// are recorded ones that are asked for once more.
func (w *walking) follow(ctx context.Context, again []string) (*history.Walk, error) {
	walk, err := w.h.Walk(w.r.now(), w.t.history, w.st.Document(), w.req.URL)
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
func (w *walking) archive(ctx context.Context, walk *history.Walk, url, from string) error {
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
	feed, err := w.parse(ctx, doc)
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
func (w *walking) pass(url string, s history.Stored, feed *feedconv.Feed) {
	w.way = append(w.way, passed{url: url, stored: s})
	w.last = feed
	for id, updated := range delivery.Versions(feed) {
		w.choice.Add(id, history.Version{Updated: updated, Document: feed.Updated, Nearness: -len(w.way)})
	}
}

// get asks for a document that one at from names. The error is for the user.
func (w *walking) get(ctx context.Context, url, from string) (*feeddir.Spooled, error) {
	req := &fetch.Request{URL: url, Origin: from}
	if history.SameOrigin(w.req.URL, url) {
		req.Header = w.req.Header
		req.URL = as(w.req.URL, url)
	}
	if err := w.r.room(ctx); err != nil {
		return nil, err
	}
	resp, err := w.r.Client.Get(ctx, req)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w.sum.Requested++
	w.step()
	w.r.at("requested")
	switch {
	case err != nil:
		return nil, err
	case resp.Truncated:
		return nil, errTruncated
	}
	return &feeddir.Spooled{
		URL: url, Final: history.Normal(resp.FinalURL), ContentType: resp.Header.Get("Content-Type"),
		ContentLocation: resp.Header.Get("Content-Location"), ContentLanguage: resp.Header.Get("Content-Language"),
		Body: resp.Body,
	}, nil
}

var errTruncated = errors.New("the document was cut off, or its end is missing")

// as gives a URL the user and password of another one of its origin.
func as(owner, raw string) string {
	o, oerr := url.Parse(owner)
	u, err := url.Parse(raw)
	if oerr != nil || err != nil || o.User == nil {
		return raw
	}
	u.User = o.User
	return u.String()
}

// parse reads a document of the feed's history. One of which something is missing is
// an error: it is recorded as stored once, and never asked for again.
func (w *walking) parse(ctx context.Context, doc *feeddir.Spooled) (feed *feedconv.Feed, err error) {
	body, contentType := doc.Body, doc.ContentType
	if filter := w.st.Filter(); filter != "" {
		if body, err = w.r.Client.Filter(ctx, filter, body, w.r.env(w.t.hash, w.req.URL)...); err != nil {
			return nil, err
		}
		contentType = ""
	}
	h := http.Header{}
	h.Set("Content-Location", doc.ContentLocation)
	h.Set("Content-Language", doc.ContentLanguage)
	err = w.r.reading(ctx, int64(len(body)), func() (err error) {
		feed, err = w.r.read(body, doc.Final, contentType, h)
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
func (w *walking) reason(url string, err error) string {
	var status *fetch.StatusError
	var delay *fetch.HostDelayError
	switch {
	case errors.As(err, &delay):
		w.after = delay.Left
	case errors.As(err, &status):
		w.after = status.RetryAfter
		return fmt.Sprintf("the server answered %d %s", status.Status, cmp.Or(http.StatusText(status.Status), "an unknown status"))
	}
	return strings.TrimPrefix(err.Error(), fetch.Brief(url)+": ")
}

// tell records and tells the user why the walk did not come to its end, if so: once,
// unless he asked for it.
func (w *walking) tell(stop *history.Stop) error {
	if stop == nil {
		return nil
	}
	news, err := w.h.Missing(w.r.now(), stop.URL, stop.Reason, len(w.way) > 0, w.after)
	w.report(news, stop)
	return err
}

// report tells the user where a walk ended too early.
func (w *walking) report(news bool, stop *history.Stop) {
	err := fmt.Errorf("older entries are missing: %w", stop)
	switch {
	case w.t.named:
		w.r.report.Error("%v", prefixed(w.name, err))
	case news:
		w.r.report.Warn("%v", prefixed(w.name, err))
	}
}

// nothing tells who asked for it that there are no archives.
func (w *walking) nothing(l feeddir.Linked) {
	switch {
	case !w.t.history || !w.t.named:
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
func (w *walking) deliver(ctx context.Context, b history.Baseline) error {
	for i := len(w.way) - 1; i >= 0; i-- {
		p := w.way[i]
		feed := w.last
		if w.last = nil; feed == nil {
			doc, err := w.spool.Get(p.url)
			if err == nil && doc == nil {
				// Not recorded, it is asked for again.
				err = fmt.Errorf("%s was fetched, and is not in etc/fetch/spool any more", fetch.Brief(p.url))
			}
			if err == nil {
				feed, err = w.parse(ctx, doc)
			}
			if err != nil {
				return err
			}
		}
		out, err := w.stage(ctx, b, feed, -(i + 1), &p)
		if errors.Is(err, lektordir.ErrOverlap) {
			if err := w.commit(); err != nil {
				return err
			}
			out, err = w.stage(ctx, b, feed, -(i + 1), &p)
		}
		if err != nil {
			return err
		}
		w.r.at("staged")
		w.staged = append(w.staged, p)
		w.new += len(out.New)
		w.updated += len(out.Updated)
		if w.new+w.updated >= w.r.together {
			if err := w.commit(); err != nil {
				return err
			}
		}
	}
	return w.commit()
}

// stage stages a document that was passed. Of those of its entries that are not known
// only news come, if there is a baseline.
func (w *walking) stage(ctx context.Context, b history.Baseline, feed *feedconv.Feed, nearness int, p *passed) (lektordir.Result, error) {
	old := map[string]bool{}
	if b.Set() {
		arrived, err := delivery.Arrived(w.txn, feed)
		if err != nil {
			return lektordir.Result{}, err
		}
		for id, date := range delivery.Versions(feed) {
			if _, known := arrived[id]; !known && !b.News(date) {
				old[id] = true
			}
		}
	}
	p.partial = len(old) > 0
	return delivery.StageWith(ctx, w.txn, feed, w.policy, delivery.Options{
		Dates: lektordir.OnlyNewer, Apart: true,
		Keep: func(id string) bool { return w.choice.From(id, nearness) && !old[id] },
	})
}

// commit commits what is staged, and records the archives.
func (w *walking) commit() error {
	if len(w.staged) == 0 {
		return nil
	}
	if err := w.r.commitNow(w.txn); err != nil {
		return err
	}
	w.r.at("delivered")
	w.sum.New += w.new
	w.sum.Updated += len(w.txn.Delivered()) - w.new // viewers may have taken older versions
	w.new, w.updated = 0, 0
	for _, p := range w.staged {
		if w.t.pages == 0 && !p.partial {
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
	w.delivered += len(w.staged)
	w.staged = nil
	w.txn = w.txn.Next()
	return nil
}

// commitNow commits a transaction, waits for it, and tells of what was delivered.
func (r *Runner) commitNow(txn *lektordir.Txn) error {
	done := make(chan error, 1)
	r.commit(txn, func(err error) { done <- err })
	r.Writer.Flush()
	if err := <-done; err != nil {
		return err
	}
	r.delivered(txn, r.mark(txn.Feed()))
	return nil
}

// reading reads a document of a size, when there is room for what it grows to.
func (r *Runner) reading(ctx context.Context, size int64, read func() error) error {
	size = min(size, maxHeld)
	if err := r.held.Acquire(ctx, size); err != nil {
		return err
	}
	defer r.held.Release(size)
	r.parsing <- struct{}{}
	defer func() { <-r.parsing }()
	return read()
}

// at is told by tests to be somewhere.
func (r *Runner) at(where string) {
	if r.reached != nil {
		r.reached(where)
	}
}

// pages walks through the pages of a feed, of which the first was delivered. Nothing
// of it is recorded: pages change all the while (RFC 5005, section 3).
func (w *walking) pages(ctx context.Context) error {
	linked := w.h.Linked()
	limits := w.r.opts.History
	guessed := linked.Kind == history.Plain && linked.Next != ""
	next, from := linked.Next, w.st.Document()
	visited := map[string]bool{history.Normal(from): true, history.Normal(w.req.URL): true}
	if next == "" {
		w.r.report.Info("%s: it has no pages", w.name)
		return nil
	}
	var stop *history.Stop
	entries, size := 0, int64(0)
	for page := 2; next != "" && stop == nil && (w.t.pages == AllPages || page <= w.t.pages); page++ {
		url := next
		next = ""
		fail := func(reason string) { stop = &history.Stop{URL: url, Reason: reason} }
		switch err := history.Check(from, url); {
		case err != nil:
			fail(err.(*history.LinkError).Reason)
			continue
		case visited[url]:
			fail("the pages go round in a circle: this one was passed before")
			continue
		case limits.Documents > 0 && w.sum.Requested >= limits.Documents, limits.Entries > 0 && entries >= limits.Entries, limits.Bytes > 0 && size >= limits.Bytes:
			fail(fmt.Sprintf("the walk ended here; --%s, --%s and --%s raise the limits", history.FlagDocuments, history.FlagEntries, history.FlagBytes))
			continue
		}
		visited[url] = true
		doc, err := w.get(ctx, url, from)
		var feed *feedconv.Feed
		if err == nil {
			feed, err = w.parse(ctx, doc)
		}
		var status *fetch.StatusError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case guessed && errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone):
			continue // the page before was the last
		case err != nil:
			fail(w.reason(url, err))
			continue
		}
		if !w.further(feed) {
			// A server that has no such page may send another one instead.
			if w.t.named && history.Page(feed, doc.Final).Next != "" {
				w.r.report.Info("%s: its page %d has nothing that is not on those before it; those behind it were not asked for", w.name, page)
			}
			continue
		}
		entries += len(feed.Entries)
		size += int64(len(doc.Body))
		if err := w.spool.Put(doc); err != nil {
			return err
		}
		w.pass(url, history.Stored{}, feed)
		linked := history.Page(feed, doc.Final)
		from, next = linked.URL, linked.Next
		if next == "" && guessed {
			next = history.PageURL(w.st.Document(), page+1)
		}
	}
	if err := w.deliver(ctx, history.Baseline{}); err != nil {
		return err
	}
	if stop != nil {
		w.report(true, stop)
	}
	return nil
}

// further reports whether a page has an entry that does not stand on a page before it.
func (w *walking) further(feed *feedconv.Feed) bool {
	for id := range delivery.Versions(feed) {
		if !w.choice.Has(id) {
			return true
		}
	}
	return false
}
