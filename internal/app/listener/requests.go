package listener

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// batch is the feeds that are requested together of a hub.
type batch struct {
	offer offer
	end   bool // to end subscriptions
	feeds []*feed
}

// add adds a feed, if there is room.
func (b *batch) add(f *feed) {
	if len(b.feeds) < perBatch {
		b.feeds = append(b.feeds, f)
		f.asking = true
	}
}

// step leaves due markers and starts due requests. It returns when the next ones are due;
// zero for never.
func (l *Listener) step(ctx context.Context) time.Time {
	ripe, batches, next := l.plan(l.now())
	for _, f := range ripe {
		l.leaveMarker(f)
	}
	for _, b := range batches {
		l.batches.Go(func() {
			if place, err := l.limit.Acquire(ctx, b.offer.hub); err == nil {
				l.ask(ctx, b)
				place.Release()
			}
			l.mu.Lock()
			for _, f := range b.feeds {
				f.asking = false
			}
			l.mu.Unlock()
			l.poke()
		})
	}
	return next
}

// plan returns the feeds whose marker is due, and the due requests, by offer key. It marks
// the feeds as being asked. next is when more is due; zero for never.
func (l *Listener) plan(now time.Time) (ripe []*feed, due map[string]*batch, next time.Time) {
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	due = map[string]*batch{}
	early := map[*feed]string{} // may be renewed together with others
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.feeds {
		if f.cooldown.ripe(now, max(l.opts.Cooldown, leaveAgain)) {
			f.cooldown = f.cooldown.left(now, l.opts.Cooldown, schedule.Changed(l.dir, f.hash))
			ripe = append(ripe, f)
		} else if !f.cooldown.due.IsZero() {
			soonest(f.cooldown.due)
		}
		if f.asking || l.opts.Public == nil {
			continue
		}
		want, ok := f.due(now)
		key := want.offer.key()
		switch {
		case !ok:
		case want.at.After(now):
			soonest(want.at)
			if want.early {
				early[f] = key
			}
		case due[key] == nil:
			due[key] = &batch{offer: want.offer, end: want.end}
			due[key].add(f)
		case due[key].end == want.end:
			due[key].add(f)
		}
	}
	for f, key := range early {
		if b := due[key]; b != nil && !b.end {
			b.add(f)
		}
	}
	return ripe, due, next
}

// exchange is the requests for one batch, and their results.
type exchange struct {
	*Listener
	batch *batch
	done  int
	fails map[string]int // number of failures, by error text
}

// ask makes the requests for a batch, and reports the results.
func (l *Listener) ask(ctx context.Context, b *batch) {
	slices.SortFunc(b.feeds, func(x, y *feed) int { return cmp.Compare(x.hash, y.hash) })
	x := &exchange{Listener: l, batch: b, fails: map[string]int{}}
	if b.offer.protocol == WebSub || b.end {
		x.each(ctx)
	} else {
		x.cloud(ctx)
	}
	for _, text := range slices.Sorted(maps.Keys(x.fails)) {
		l.report.Info("%s: %s", humanize.Count(x.fails[text], "feed"), text)
	}
	if l.opts.Verbose && x.done > 0 {
		what := "asked for"
		if b.end {
			what = "ended"
		}
		l.report.Info("%s %s at %s", what, humanize.Count(x.done, "feed"), b.offer.hub)
	}
}

// begin applies the event of a request for a feed.
func (x *exchange) begin(f *feed) (was, is registration, do action) {
	x.mu.Lock()
	shared := x.callbacks.ofCloud[x.batch.offer.key()]
	x.mu.Unlock()
	return x.apply(f, asked{
		offer: x.batch.offer, end: x.batch.end,
		callback: x.base() + cmp.Or(shared, token(push.TokenLen/2)), secret: token(32),
	})
}

// end applies the result of a request for a feed. err is its error, or the fatal error of
// an earlier request. unheard is true if the cloud did not call. end returns nil if the hub
// has verified a request that seemed to fail.
func (x *exchange) end(ctx context.Context, f *feed, err error, unheard bool) error {
	if ctx.Err() != nil {
		return err
	}
	if err == nil {
		_, is, _ := x.apply(f, accepted{unheard: unheard})
		if x.done++; is.State == Suspect {
			x.fails[is.Error]++
		}
		return nil
	}
	e := failure(err)
	if _, is, _ := x.apply(f, e); is.Error != e.text {
		x.done++
		return nil
	}
	x.fails[e.text]++
	return err
}

// failure returns the event for an error.
func failure(err error) failed {
	return failed{text: explain(err), refused: isA[*fetch.RefusedError](err),
		delayed: isA[*httpmsg.HostDelayError](err), after: httpmsg.Pause(err)}
}

// isA reports whether an error is, or wraps, an error of type E.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// each makes a request for each feed: to subscribe by WebSub, or to end any registration
// (section 5.1).
func (x *exchange) each(ctx context.Context) {
	var fatal error
	for _, f := range x.batch.feeds {
		if ctx.Err() != nil {
			return
		}
		was, r, do := x.begin(f)
		if fatal != nil {
			_ = x.end(ctx, f, fatal, false) // the request would fail, too
			continue
		}
		if do&leave != 0 {
			// The previous hub gets one request, and its answer is ignored: later deliveries
			// to the old callback get 410.
			_ = websub.Send(ctx, x.client, websub.Request{Mode: websub.Unsubscribe, Hub: was.Hub,
				Callback: was.Callback, Topic: was.Topic})
		}
		if do&send == 0 {
			x.done++
			continue
		}
		q := websub.Request{Mode: websub.Subscribe, Hub: r.Hub, Callback: r.Callback, Topic: r.Topic,
			Lease: DefaultLease, Secret: r.Secret}
		if x.batch.end {
			q.Mode, q.Lease, q.Secret = websub.Unsubscribe, 0, ""
		}
		if err := x.end(ctx, f, websub.Send(ctx, x.client, q), false); err != nil && !isA[*fetch.RefusedError](err) {
			fatal = err // the others would fail, too
		}
	}
}

// cloud registers feeds with a cloud: all by one request, or one by one if the cloud does
// not accept that.
func (x *exchange) cloud(ctx context.Context) {
	a := &asking{calls: map[string]*calls{}}
	var token string
	var urls []string
	for _, f := range x.batch.feeds {
		_, is, _ := x.begin(f)
		token = is.Token()
		urls = append(urls, is.Topic)
	}
	x.mu.Lock()
	one := x.single[x.batch.offer.hub]
	a.urls = slices.Clone(urls)
	for _, f := range x.batch.feeds {
		a.urls = append(a.urls, f.alias)
	}
	if cb := x.callbacks.byToken[token]; cb != nil { // nil if all of them were removed meanwhile
		cb.asking = a
		defer x.asked(cb, a)
	}
	x.mu.Unlock()
	a.back = *x.opts.Public
	a.back.Path = strings.TrimSuffix(a.back.Path, "/") + "/" + token
	rest := x.batch.feeds
	if !one && len(urls) > 1 {
		rest = x.registerTogether(ctx, a, urls)
	}
	x.registerSingly(ctx, a, rest)
}

func (x *exchange) register(ctx context.Context, a *asking, urls ...string) error {
	return rsscloud.Register(ctx, x.client, x.batch.offer.cloud, &a.back, urls)
}

// registerTogether registers all feeds by one request. It returns those to register by single requests, none if
// these would fail, too.
func (x *exchange) registerTogether(ctx context.Context, a *asking, urls []string) (rest []*feed) {
	err := x.register(ctx, a, urls...)
	fatal := err != nil && !isA[*fetch.RefusedError](err)
	for _, f := range x.batch.feeds {
		// Many clouds answer success although they took only one of the URLs.
		if fatal || err == nil && x.heard(a, f) {
			_ = x.end(ctx, f, err, false)
		} else {
			rest = append(rest, f)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.single[x.batch.offer.hub] = len(rest) > 0
	return rest
}

// registerSingly registers feeds, each by a request.
func (x *exchange) registerSingly(ctx context.Context, a *asking, feeds []*feed) {
	var fatal error
	missed := 0
	for _, f := range feeds {
		if ctx.Err() != nil {
			return
		}
		err := fatal
		if err == nil {
			x.mu.Lock()
			topic, alias := f.Topic, f.alias
			x.mu.Unlock()
			err = x.register(ctx, a, topic)
			refused, isRefused := errors.AsType[*fetch.RefusedError](err)
			if isRefused && alias != "" && x.register(ctx, a, alias) == nil {
				err = nil
			}
			switch {
			case err == nil:
				missed = -perBatch // the cloud exists
			case !isRefused:
				fatal = err // the others would fail, too
			case refused.Status == http.StatusNotFound || refused.Status == http.StatusMethodNotAllowed ||
				refused.Status == http.StatusGone:
				if missed++; missed == strikes {
					fatal = err
				}
			default:
				missed = -perBatch
			}
		}
		_ = x.end(ctx, f, err, err == nil && !x.heard(a, f))
	}
}

// heard reports whether the cloud called for a feed during the registration.
func (x *exchange) heard(a *asking, f *feed) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return a.heard(f.keys)
}

// asked ends a registration. If a cloud sent a challenge for a feed and also a call that
// looked like a test call, the call was a notification.
func (x *exchange) asked(cb *callback, a *asking) {
	x.mu.Lock()
	cb.asking = nil
	var marked []*feed
	for _, f := range x.batch.feeds {
		if slices.ContainsFunc(f.keys, func(k string) bool {
			c := a.calls[k]
			return c != nil && c.challenged &&
				c.posts > 0
		}) {
			marked = append(marked, f)
		}
	}
	x.mu.Unlock()
	for _, f := range marked {
		x.notified(f)
	}
}

// notAsked is a part of the error for a hub at an address that is not allowed.
const notAsked = ": not asked: the feed names a hub at "

// explain returns an error as a text for the log and the file error.
func explain(err error) string {
	if private, ok := errors.AsType[*httpmsg.PrivateError](err); ok {
		return termsafe.Brief(private.URL + notAsked + private.Where() + "; if it is yours, allow it with --allow")
	}
	return termsafe.Brief(err.Error())
}
