package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/lektordir"
)

// hooks are called while a feed is fetched.
type hooks struct {
	free      func() // when the request is over
	submitted func() // when its entries are being committed, if there are any
	finished  func(result)
}

// visit is the fetch of one feed. Each of its steps reports whether another one
// follows; one that does not has ended the visit.
type visit struct {
	r       *Runner
	ctx     context.Context
	t       task
	h       hooks
	name    string         // of the feed, in messages
	txn     *lektordir.Txn // nil until the feed was locked
	st      *feeddir.Visit // nil until the state was loaded
	began   time.Time      // before the document was asked for
	short   bool           // entries of the document are missing
	claimed bool           // there was a marker, to be cleared after the request
	req     *fetch.Request
	resp    *fetch.Response
	feed    *feedconv.Feed
	out     lektordir.Result
	full    *fullText // nil for a feed whose entries keep its own text
}

// feed fetches one feed and delivers what is new. When everything is done the
// hook finished is called once, perhaps from another goroutine after feed has
// returned. resp is a document that was fetched before, or nil.
func (r *Runner) feed(ctx context.Context, t task, resp *fetch.Response, h hooks) {
	v := &visit{r: r, ctx: ctx, t: t, h: h, name: fetch.Public(t.url), resp: resp, began: r.now()}
	if resp != nil {
		v.began = resp.Received
	}
	if v.begin() && v.ask() && v.read() {
		v.deliver()
	}
}

// end ends the visit. It returns false, for those steps that end with it.
func (v *visit) end(res result) bool {
	v.resp.Done()
	// Whoever is told that it is over may find the feed locked no more.
	if v.txn != nil {
		v.txn.Close()
	}
	res.hash = v.t.hash
	if !v.short {
		res.began = v.began
	}
	switch {
	case v.t.quiet:
	case res.kind == broken && v.r.disk.add(prefixed(v.name, res.err)):
	case res.kind == broken, res.err != nil && v.t.named:
		v.r.report.Error("%s", prefixed(v.name, res.err))
	case res.kind == failed:
		v.r.report.Info("%s", prefixed(v.name, res.err))
	}
	v.h.finished(res)
	return false
}

// fail ends a visit that brought no document that could be read: the feed is
// asked less often from now on.
func (v *visit) fail(k kind, err error) bool {
	if v.ctx.Err() != nil {
		return v.end(result{kind: skipped}) // the feed is as due as it was
	}
	err = prefixed(v.name, err)
	if bad := v.st.Fail(v.ctx, err); bad != nil {
		k, err = broken, errors.Join(err, bad)
	}
	v.clear()
	return v.end(result{kind: k, err: err})
}

// local ends a visit whose document could not be stored, see [feeddir.Visit].
func (v *visit) local(err error) bool {
	if v.ctx.Err() != nil {
		return v.end(result{kind: skipped})
	}
	return v.end(result{kind: broken, err: fmt.Errorf("not delivered: %w", err)})
}

// save ends a visit that brought something.
func (v *visit) save(res result) bool {
	if err := v.st.Save(); err != nil {
		res.kind, res.err = broken, err
	} else {
		res.walk = v.walk(res.kind == fetched)
	}
	v.clear()
	return v.end(res)
}

func (v *visit) clear() {
	if !v.claimed {
		return
	}
	if err := feeddir.Clear(v.r.Dir, v.t.hash); err != nil {
		v.r.report.Warn("%v", err)
	}
}

// waits reports whether the user asked for the feed's history by name, which another
// process that has the feed need not fetch.
func (v *visit) waits() bool { return v.t.named && (v.t.history || v.t.pages != 0) }

var errHistoryBusy = errors.New("its history was not fetched: another process is fetching the feed; try again later")

// begin locks the feed and looks whether it is to be fetched.
func (v *visit) begin() bool {
	var err error
	if v.waits() {
		v.txn, err = v.r.Writer.BeginWait(v.ctx, v.t.hash)
	} else {
		v.txn, err = v.r.Writer.Begin(v.t.hash)
	}
	if inUse := (*lektordir.BusyError)(nil); errors.As(err, &inUse) {
		if v.waits() {
			return v.end(result{kind: busy, err: errHistoryBusy})
		}
		v.r.report.Info("%s: skipped, another process is fetching it", cmp.Or(v.name, v.t.hash))
		return v.end(result{kind: busy})
	}
	switch {
	case err != nil && v.ctx.Err() != nil:
		return v.end(result{kind: skipped})
	case err != nil:
		return v.end(result{kind: broken, err: err})
	}
	if !v.t.force {
		feeddir.Fresh(v.r.Dir, v.t.hash)
	}
	st, err := v.r.state(v.t.hash)
	if err != nil {
		return v.end(result{kind: broken, err: err})
	}
	v.st = &feeddir.Visit{State: st, Client: v.r.Client, Now: v.r.now, Moved: func(to string) error {
		v.r.report.Info("%s: moved for good, and is fetched from %s from now on", v.name, fetch.Public(to))
		return nil
	}}
	if v.claimed, err = feeddir.Take(v.r.Dir, v.t.hash); err != nil {
		v.r.report.Warn("%v", err)
	}
	if !v.t.force && !v.claimed && !st.Due(v.r.now()) {
		return v.end(result{kind: skipped})
	}
	if v.req, err = st.Request(); errors.Is(err, fs.ErrNotExist) {
		return v.end(result{kind: skipped}) // unsubscribed meanwhile
	} else if err != nil {
		return v.end(result{kind: broken, err: err})
	}
	v.req.Last = v.t.last
	v.name = fetch.Public(v.req.URL)
	if feeddir.FullText(v.r.Dir, v.t.hash) {
		if v.full, err = v.newFullText(); err != nil {
			return v.end(result{kind: broken, err: err})
		}
	}
	return true
}

// ask makes the request, if that was not done before. It ends the visit when
// nothing new came.
func (v *visit) ask() bool {
	if v.resp == nil {
		if err := v.trusted(); err != nil {
			return v.fail(broken, err)
		}
		if err := v.r.room(v.ctx); err != nil {
			return v.local(err)
		}
		v.req.Hold = true
		resp, err := v.st.Ask(v.ctx, v.req)
		v.h.free()
		if err != nil {
			k := failed
			if !fetch.Remote(err) {
				k = broken
			}
			return v.fail(k, err)
		}
		v.resp = resp
	} else {
		v.st.Answered(v.resp)
		v.h.free()
	}
	for _, w := range v.st.Warnings() {
		v.r.report.Warn("%s", w)
	}
	for _, w := range v.resp.Warnings {
		v.r.report.Warn("%s: %s", v.name, w)
	}
	if !v.st.Known() {
		return true
	}
	v.mark() // what was delivered before a kill, or by another fetcher
	res := result{kind: unchanged}
	if v.resp.NotModified {
		res.kind = notModified
	}
	if v.full != nil {
		return v.again(res)
	}
	return v.save(res)
}

// mark marks what was read elsewhere, if marks wait.
func (v *visit) mark() map[lektordir.Ref]lektordir.Ref {
	if !v.st.Awaits() {
		return nil
	}
	return v.r.mark(v.t.hash)
}

// trusted looks at the commands of the feed, before anything is asked for that
// could not be read.
func (v *visit) trusted() error {
	if strings.HasPrefix(strings.ToLower(v.req.URL), "exec:") {
		if err := feeddir.Trusted(v.r.Dir, v.t.hash, "url"); err != nil {
			return err
		}
		v.req.AllowExec, v.req.Env = true, v.r.env(v.t.hash, v.req.URL)
	}
	if v.st.Filter() != "" {
		return feeddir.Trusted(v.r.Dir, v.t.hash, "filter")
	}
	return nil
}

// read reads the document and stages what is new in it.
func (v *visit) read() bool {
	unread := false
	// The documents that wait here are in memory, see [Runner.room].
	err := v.r.reading(v.ctx, int64(len(v.resp.Body)), func() (err error) {
		if v.feed, err = v.r.parse(v.ctx, v.st.State, v.resp, v.name, v.r.env(v.t.hash, v.req.URL)); err != nil {
			unread = true
			return err
		}
		if v.full != nil {
			return nil // pages are waited for without what is in short supply
		}
		return v.keep()
	})
	v.resp.Done() // pages may be as big
	if err == nil && v.full != nil {
		if err = v.fullText(); err == nil {
			err = v.r.reading(v.ctx, int64(len(v.resp.Body)), v.keep)
		}
	}
	switch {
	case unread:
		return v.fail(failed, err)
	case err != nil:
		return v.local(err)
	}
	return true
}

// keep stages what is new in the document, and records what it says of the feed.
func (v *visit) keep() error {
	policy, err := lektordir.ParsePolicy(v.st.OnUpdate())
	if err == nil {
		err = v.r.describe(v.txn, v.feed, "", "")
	}
	if err == nil {
		v.feed.Truncated = v.feed.Truncated || v.resp.Truncated
		v.short = v.feed.Truncated || v.resp.Short
		v.out, err = v.r.stage(v.ctx, v.txn, policy, v.feed, v.full.article())
	}
	if err == nil && v.full != nil {
		err = v.full.revise(&v.out)
	}
	if err == nil {
		err = v.r.ess(v.t.hash, v.feed, v.resp.WireBytes)
	}
	if err == nil {
		err = v.linked()
	}
	return err
}

// linked records which archives and pages the document names.
func (v *visit) linked() error {
	h := feeddir.HistoryOf(v.r.Dir, v.t.hash)
	doc := history.Subscribed(v.feed, v.resp.FinalURL, v.req.URL)
	l := feeddir.Linked{Kind: doc.Kind, Prev: doc.Prev, Next: doc.Next}
	if !fetch.IsHTTP(v.req.URL) {
		// What is not fetched has no history.
		if l.Prev, l.Next = "", ""; l.Kind != history.Complete {
			l.Kind = history.Plain
		}
	}
	if l == (feeddir.Linked{}) && !h.Exists() {
		return nil
	}
	old := h.Linked()
	if v.feed.Truncated && doc.Kind != history.Complete &&
		(old.Kind == history.Complete || l.Prev == "" && old.Prev != "" || l.Kind == history.Plain && old.Kind != history.Plain) {
		// What it does not say may stand in the part that is missing.
		return nil
	}
	if l.Prev != "" && old.Prev == "" && !v.t.history && !h.Baseline().Set() {
		b := history.Baseline{URL: l.Prev, Since: v.began}
		if v.st.ReadBefore() {
			// The feed has got archives since. Entries that it published before its last
			// document are no news.
			b = history.Baseline{Since: v.st.LastRead()}
		}
		if err := h.SetBaseline(b); err != nil {
			return err
		}
	}
	if l.Kind == history.Archive && old.Kind != history.Archive {
		hint := ""
		if doc.Current != "" {
			hint = "; what is new is at " + fetch.Brief(fetch.Public(doc.Current))
		}
		v.r.report.Warn("%s: it says that it is an archive, in which nothing new is to be expected%s", v.name, hint)
	}
	return h.SetLinked(l)
}

// walk reports whether a walk through archives or pages is to follow. read reports whether
// the document was another one than before.
func (v *visit) walk(read bool) bool {
	if !fetch.IsHTTP(v.req.URL) {
		return false
	}
	if v.t.history || v.t.pages != 0 {
		return true
	}
	h := feeddir.HistoryOf(v.r.Dir, v.t.hash)
	due, whole := h.WalkDue(v.r.now(), v.st.Document(), v.req.URL)
	if whole && h.Exists() {
		if err := v.settle(h, read); err != nil {
			v.r.report.Warn("%s: %v", v.name, err)
		}
	}
	return due
}

// settle takes note that nothing is missing. What a walk left that was killed at its end
// is removed.
func (v *visit) settle(h *feeddir.History, read bool) error {
	if read && !v.short {
		if err := h.Settle(v.began); err != nil {
			return err
		}
	}
	spool, err := feeddir.SpoolOf(v.r.Dir, v.t.hash)
	if err != nil {
		return err
	}
	return spool.Clear()
}

// deliver commits what was staged. The visit ends when that is durable.
func (v *visit) deliver() {
	f := v.feed
	hints := feeddir.Hints{TTL: f.TTL, UpdateInterval: f.UpdateInterval, SkipHours: f.SkipHours, SkipDays: f.SkipDays}
	// Many may wait for the commit: what they hold is let go of.
	v.resp.Digest() // the last use of the body, which may be large
	v.resp.Body, v.feed = nil, nil
	v.r.commit(v.txn, func(err error) {
		if err != nil {
			v.local(err)
			return
		}
		v.out = v.txn.Outcome(v.out)
		first := v.st.Checked().IsZero()
		v.st.Read(hints)
		v.full.settle()
		v.r.delivered(v.txn, v.mark())
		if !v.claimed && !first && len(v.out.New)+len(v.out.Updated) > 0 {
			// Whoever listens learns that nobody told him.
			if err := feeddir.LeaveMissed(v.r.Dir, v.t.hash, v.r.now()); err != nil {
				v.r.report.Warn("%v", err)
			}
		}
		v.save(result{kind: fetched, new: len(v.out.New), updated: len(v.out.Updated)})
	})
	v.h.submitted()
}
