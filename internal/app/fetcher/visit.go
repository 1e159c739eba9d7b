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
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir/fromfeed"
)

// visit is the fetch of one feed. Each step returns nil if another step follows, or the outcome if
// the visit has ended.
type visit struct {
	*lockedFeed
	ctx        context.Context
	t          task
	turn       *slot
	name       string    // URL of the feed, for messages
	began      time.Time // before the request
	incomplete bool      // entries of the document are missing
	marked     bool      // there was a due marker, to be removed after the request
	req        *httpmsg.Request
	resp       *httpmsg.Response
	feed       *feedconv.Feed
	out        stage.Result
	full       *fullText // nil if the entries keep the feed's text
}

// visit fetches one feed and delivers new and updated entries. It returns when they are durable and
// the feed is unlocked. resp is a document that was fetched before, or nil.
func (r *Runner) visit(ctx context.Context, t task, turn *slot, resp *httpmsg.Response) VisitResult {
	v := &visit{ctx: ctx, t: t, turn: turn, name: feedurl.Public(t.url), resp: resp, began: r.now()}
	if resp != nil {
		v.began = resp.Received
	}
	var o *VisitResult
	s, err := r.open(ctx, t.hash, v.waitForLock())
	if err != nil {
		o = v.unopened(r, err)
	} else {
		v.lockedFeed = s
		defer s.Close()
		for _, step := range []func() *VisitResult{v.begin, v.ask, v.discover, v.read, v.deliver} {
			if o = step(); o != nil {
				break
			}
		}
	}
	v.resp.Done()
	if o.task.hash != "" {
		return *o // of another feed, see discover
	}
	if o.task = t; !v.incomplete {
		o.began = v.began
	}
	if o.Err != nil {
		o.Err = prefixed(v.name, o.Err)
	}
	return *o
}

func broken(err error) *VisitResult { return &VisitResult{Summary: Summary{Broken: 1}, Err: err} }
func skipped() *VisitResult         { return &VisitResult{Summary: Summary{Skipped: 1}} }

// fail ends a visit without a readable document: the feed will be requested less often.
func (v *visit) fail(err error, remote bool) *VisitResult {
	if v.ctx.Err() != nil {
		return skipped() // the feed stays due
	}
	err = prefixed(v.name, err)
	bad := v.st.Fail(v.r.now(), err)
	v.clear()
	if remote && bad == nil {
		return &VisitResult{Summary: Summary{Failed: 1}, Err: err}
	}
	return broken(errors.Join(err, bad))
}

// local ends a visit whose document could not be stored, see [schedule.State].
func (v *visit) local(err error) *VisitResult {
	if v.ctx.Err() != nil {
		return skipped()
	}
	return broken(fmt.Errorf("not delivered: %w", err))
}

// save ends a successful visit.
func (v *visit) save(sum Summary) *VisitResult {
	o := &VisitResult{Summary: sum}
	if to := v.st.MovedTo(); to != "" {
		v.r.report.Info("%s: moved permanently; it is fetched from %s from now on", v.name, feedurl.Public(to))
	}
	if err := v.st.Save(); err != nil {
		o = broken(err)
		o.New, o.Updated = sum.New, sum.Updated
	} else {
		o.walk = v.walk(sum.Fetched > sum.Unchanged)
		o.joined = len(v.out.New) == 0 || v.out.Unchanged+v.out.Ignored+len(v.out.Updated) > 0
	}
	v.clear()
	return o
}

func (v *visit) clear() {
	if !v.marked {
		return
	}
	if err := schedule.ClearMarker(v.r.Dir, v.hash); err != nil {
		v.r.report.Warn("%v", err)
	}
}

// waitForLock reports whether to wait for another process that has locked the feed: the user asked
// for the history, which the other process may not fetch.
func (v *visit) waitForLock() bool { return v.t.reason == Named && v.t.want.history() }

var errHistoryBusy = errors.New("its history was not fetched: another process is fetching the feed; try again later")

// unopened ends a visit whose feed could not be locked, or whose state could not be loaded.
func (v *visit) unopened(r *Runner, err error) *VisitResult {
	switch busy := commit.IsBusy(err); {
	case busy && v.waitForLock():
		return &VisitResult{Summary: Summary{Busy: 1}, Err: errHistoryBusy}
	case busy:
		r.report.Info("%s: skipped, another process is fetching it", cmp.Or(v.name, v.t.hash))
		return &VisitResult{Summary: Summary{Busy: 1}}
	case v.ctx.Err() != nil:
		return skipped()
	}
	return broken(err)
}

// begin decides whether the feed must be fetched, and prepares the request.
func (v *visit) begin() *VisitResult {
	if v.t.reason < Named && settings.Paused(v.r.Dir, v.hash) {
		return skipped() // a marker stays until the feed is resumed
	}
	var err error
	if v.marked, err = schedule.TakeMarker(v.r.Dir, v.hash); err != nil {
		v.r.report.Warn("%v", err)
	}
	if v.t.reason < Forced && !v.marked && !v.st.Schedule.Due(v.r.now()) {
		return skipped()
	}
	if v.req, err = v.st.Request(); errors.Is(err, fs.ErrNotExist) {
		return skipped() // unsubscribed meanwhile
	} else if err != nil {
		return broken(err)
	}
	v.req.Last = v.turn.last
	v.name = feedurl.Public(v.req.URL)
	on, err := settings.FullText(v.r.Dir, v.hash)
	if err == nil && on {
		v.full, err = v.newFullText()
	}
	if err != nil {
		return broken(err)
	}
	return nil
}

// ask makes the request, unless the document was fetched before. It ends the visit if the document
// has not changed.
func (v *visit) ask() *VisitResult {
	defer v.turn.asked()
	if v.resp == nil {
		if o := v.request(); o != nil {
			return o
		}
	}
	v.turn.asked()
	for _, w := range v.st.Warnings() {
		v.r.report.Warn("%s", w)
	}
	for _, w := range v.resp.Warnings {
		v.r.report.Warn("%s: %s", v.name, w)
	}
	if !v.st.Known(v.r.now(), v.resp) {
		return nil
	}
	v.mark() // marks for entries delivered before a kill, or by another fetcher
	sum := Summary{Fetched: 1, Unchanged: 1}
	if v.resp.NotModified {
		sum = Summary{NotModified: 1}
	}
	if v.full != nil {
		return v.retryPages(sum)
	}
	return v.save(sum)
}

// request requests the document. It fails if others may have written a command of the feed.
func (v *visit) request() *VisitResult {
	if strings.HasPrefix(strings.ToLower(v.req.URL), "exec:") {
		if err := feedfiles.Trusted(v.r.Dir, v.hash, "url"); err != nil {
			return v.fail(err, false)
		}
		v.req.AllowExec, v.req.Env = true, v.env(v.req.URL)
	}
	if err := v.trusted(); err != nil {
		return v.fail(err, false)
	}
	if err := v.r.parser.waitForPlace(v.ctx); err != nil {
		return v.local(err)
	}
	v.req.Hold = true
	var err error
	if v.resp, err = v.r.Client.Get(v.ctx, v.req); err != nil {
		if status, ok := errors.AsType[*httpmsg.StatusError](err); ok {
			status.Subscribed = true
		}
		return v.fail(err, httpmsg.Remote(err))
	}
	return nil
}

// discover looks for the feed of a subscription whose URL may be that of a page, as [Runner.Add] does with
// [AddOptions].First. If it is another feed, the subscription becomes that one: a new subscription with the
// same settings is made, which delivers its entries, and then this one ends. After a kill in between, the
// next visit finds the new one. A feed that is there already only gets the folders.
func (v *visit) discover() *VisitResult {
	if !v.st.Discover() {
		return nil
	}
	s, err := subscriptions.Read(v.r.Dir, v.hash)
	if err != nil {
		return broken(err)
	}
	f := &search{r: v.r, url: v.req.URL, origin: v.req.Origin, given: v.resp, o: AddOptions{
		Look: LookAround, First: true, Feed: subscriptions.Subscription{Alias: s.Alias, Interval: s.Interval,
			Categories: s.Categories, Private: s.Private, Paused: s.Paused},
	}}
	err = f.find(v.ctx)
	switch itself := f.existing != nil && f.existing.Hash == v.hash; {
	case err != nil:
		return v.fail(err, true)
	case itself || f.page != nil && f.page.instead:
		return v.fail(errors.New("the server answered a page in place of the feed"), true)
	case f.existing == nil && f.url == v.req.URL:
		return nil
	}
	v.r.report.Info("%s: its feed is %s", v.name, feedurl.Public(f.url))
	v.resp.Done()
	a := f.existing
	if a == nil {
		added, err := f.subscribe(v.ctx)
		if added.outcome.task.hash == "" && err != nil {
			return v.local(err)
		}
		a = &added
	} else if _, err := subscriptions.AddAll(v.r.Writer, v.r.Dir,
		[]*subscriptions.Subscription{{ID: a.ID, Categories: s.Categories}},
		subscriptions.AddAllOptions{}); err != nil {
		return broken(err)
	}
	v.clear()
	v.lockedFeed.Close()
	if err := subscriptions.Replace(v.r.Writer, v.r.Dir, v.hash, a.Hash); err != nil {
		return broken(err)
	}
	o := a.outcome
	o.task = v.r.task(a.Hash, v.t.reason)
	return &o
}

// read parses the document and stages new and updated entries.
func (v *visit) read() *VisitResult {
	doc, err := v.filtered(v.ctx, v.req.URL, v.resp.Body)
	if err != nil {
		return v.fail(err, true)
	}
	unread := false
	err = v.r.parser.withPlace(v.ctx, doc, func() (err error) {
		if v.feed, err = v.document(doc, v.req, v.resp); err != nil {
			unread = true
			return err
		}
		if v.full != nil {
			return nil // wait for pages without occupying the parser
		}
		return v.stageDocument()
	})
	v.resp.Done() // release its memory, as pages may be as large
	if err == nil && v.full != nil {
		if err = v.fullText(); err == nil {
			err = v.r.parser.withPlace(v.ctx, doc, v.stageDocument)
		}
	}
	switch {
	case unread:
		return v.fail(err, true)
	case err != nil:
		return v.local(err)
	}
	return nil
}

// stageDocument stages new and updated entries, and records the metadata of the feed.
func (v *visit) stageDocument() error {
	if err := v.describe(v.feed, "", ""); err != nil {
		return err
	}
	v.feed.Truncated = v.feed.Truncated || v.resp.Truncated
	v.incomplete = v.feed.Truncated || v.resp.Short
	var err error
	if v.out, err = v.stage(v.ctx, v.feed, v.full.entry); err != nil {
		return err
	}
	if v.full != nil {
		if err := v.full.revise(&v.out); err != nil {
			return err
		}
	}
	if err := recordESS(v.r.Dir, v.hash, v.feed, v.resp.WireBytes); err != nil {
		return err
	}
	return v.recordLinks()
}

// recordLinks records the archives and pages that the document names.
func (v *visit) recordLinks() error {
	h := history.Of(v.r.Dir, v.hash)
	doc := rfc5005.Subscribed(v.feed, v.resp.FinalURL, v.req.URL)
	l := history.Linked{Kind: doc.Kind, Prev: doc.Prev, Next: doc.Next}
	if !feedurl.IsHTTP(v.req.URL) {
		// Only feeds fetched by HTTP have a history.
		if l.Prev, l.Next = "", ""; l.Kind != rfc5005.Complete {
			l.Kind = rfc5005.Plain
		}
	}
	if l == (history.Linked{}) && !h.Exists() {
		return nil
	}
	old := h.Linked()
	if v.feed.Truncated && doc.Kind != rfc5005.Complete && lacks(l, old) {
		return nil // the link may be in the missing part
	}
	if l.Prev != "" && old.Prev == "" && !v.t.want.Archives && !h.Baseline().Set() {
		if err := h.SetBaseline(v.baseline(l)); err != nil {
			return err
		}
	}
	if l.Kind == rfc5005.Archive && old.Kind != rfc5005.Archive {
		hint := ""
		if doc.Current != "" {
			hint = "; new entries are at " + feedurl.Brief(feedurl.Public(doc.Current))
		}
		v.r.report.Warn("%s: it says that it is an archive, so no new entries will appear%s", v.name, hint)
	}
	return h.SetLinked(l)
}

// lacks reports whether l lacks a link or kind that old has.
func lacks(l, old history.Linked) bool {
	return old.Kind == rfc5005.Complete || l.Prev == "" && old.Prev != "" || l.Kind == rfc5005.Plain &&
		old.Kind != rfc5005.Plain
}

// baseline returns the baseline of a feed whose document names archives for the first time.
func (v *visit) baseline(l history.Linked) rfc5005.Baseline {
	if v.st.Document.ReadBefore() {
		// Archives were added since the last visit. Entries published before it are not new.
		return rfc5005.Baseline{Since: v.st.Document.LastRead()}
	}
	return rfc5005.Baseline{URL: l.Prev, Since: v.began}
}

// walk reports whether a walk through archives or pages must follow. read reports whether the
// document differs from the last one.
func (v *visit) walk(read bool) bool {
	if !feedurl.IsHTTP(v.req.URL) {
		return false
	}
	if v.t.want.history() {
		return true
	}
	h := history.Of(v.r.Dir, v.hash)
	due, whole := h.WalkDue(v.r.now(), v.st.Document.URL(), v.req.URL)
	if whole && h.Exists() {
		if err := v.recordWhole(h, read); err != nil {
			v.r.report.Warn("%s: %v", v.name, err)
		}
	}
	return due
}

// recordWhole records that no entries are missing, and removes the spool of a walk that was killed at
// its end.
func (v *visit) recordWhole(h *history.History, read bool) error {
	if read && !v.incomplete {
		if err := h.MoveBaseline(v.began); err != nil {
			return err
		}
	}
	spool, err := spool.Of(v.r.Dir, v.hash)
	if err != nil {
		return err
	}
	return spool.Clear()
}

// deliver commits the staged entries, and saves the state.
func (v *visit) deliver() *VisitResult {
	f := v.feed
	hints := schedule.Hints{TTL: f.TTL, UpdateInterval: f.UpdateInterval, SkipHours: f.SkipHours, SkipDays: f.SkipDays,
		Live: broadcasts(f)}
	if err := v.commitVisit(); err != nil {
		return v.local(err)
	}
	v.out = v.txn.Outcome(v.out)
	first := v.st.Schedule.Checked().IsZero()
	v.st.Succeeded(v.r.now(), v.resp, hints)
	if !v.marked && !first && len(v.out.New)+len(v.out.Updated) > 0 {
		// Record the time, so that the listener learns that a notification was missed.
		if err := push.RecordMissed(v.r.Dir, v.hash, v.r.now()); err != nil {
			v.r.report.Warn("%v", err)
		}
	}
	return v.save(Summary{Fetched: 1, New: len(v.out.New), Updated: len(v.out.Updated)})
}

// broadcasts returns the times at which live broadcasts begin or end.
func broadcasts(f *feedconv.Feed) (list []time.Time) {
	for i := range f.Entries {
		live := fromfeed.Live(&f.Entries[i])
		for _, name := range []string{"start", "end"} {
			t, err := humanize.ParseTime(live.Get(name), time.UTC)
			if err == nil && live.Get("status") != "ended" {
				list = append(list, t)
			}
		}
	}
	return list
}

// commitVisit commits the staged entries. It releases body and feed before, as many feeds may wait
// for the commit.
func (v *visit) commitVisit() error {
	v.resp.Digest() // the last use of the body, which may be large
	v.resp.Body, v.feed = nil, nil
	if err := v.lockedFeed.commit(v.turn.staged); err != nil {
		return err
	}
	v.full.recordDurable()
	return nil
}
