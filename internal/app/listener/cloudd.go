// Package listener is the room of lektor-cloudd. It listens for news of feeds: it asks the clouds (rssCloud) and
// hubs (WebSub) that feeds name to be told of updates, keeps these registrations
// alive, and answers at their callbacks. A notification leaves a due marker,
// the empty file etc/fetch/due/$feed, and nothing else: whoever fetches reads
// the feed itself.
//
// What it keeps is in files, [State], and in them alone: it can be killed at any
// moment and started again. Which hubs a feed names is read from
// src/$feed/etc/push/, where a fetcher records it.
package listener

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/watch"
	"github.com/lektordir/lektor/internal/websub"
	"github.com/lektordir/lektor/lektordir"
)

// Times of registrations.
const (
	// CloudRenew and CloudExpire are those of rssCloud: "You must renew your
	// subscription every 24 hours because they expire after 25 hours."
	CloudRenew  = 24 * time.Hour
	CloudExpire = 25 * time.Hour
	// DefaultLease is asked of WebSub hubs, and assumed when one does not say
	// what it gives.
	DefaultLease = 10 * 24 * time.Hour
	// minRenew keeps a hub that gives short leases from being asked all the
	// time, maxRenew finds out about one that has forgotten us.
	minRenew = 5 * time.Minute
	maxRenew = 30 * 24 * time.Hour
	// verifyWithin is how long a hub may take to verify a request before it
	// is made again.
	verifyWithin = time.Hour
	// denied is how long a denial counts.
	denied = 24 * time.Hour
	// share is how much earlier than necessary a registration is renewed to
	// share a request with another of the same cloud.
	share = 30 * time.Minute

	backoffFirst = time.Minute
	backoffMost  = 6 * time.Hour
	// rotate is after how many failures in a row another of a feed's hubs has
	// its turn.
	rotate = 3
)

const (
	// DefaultCooldown is the least time between two due markers of a feed.
	DefaultCooldown = 10 * time.Second

	tokenLen  = 32 // hexadecimal digits: 128 bits
	perBatch  = 64 // feeds in a request
	workers   = 64 // hubs that are asked at once
	rescan    = time.Minute
	settle    = 300 * time.Millisecond
	pollEvery = 5 * time.Second
	// markAgain is when a marker is tried again that could not be left, as on
	// a disk that is full; a longer cooldown counts.
	markAgain = 5 * time.Second
	// strikes is how many feeds in a row a cloud may not know the request for
	// until it is taken for none.
	strikes = 3
)

// Reporter takes messages for the user, one line each.
type Reporter interface {
	Warn(format string, args ...any)
	Info(format string, args ...any)
}

// Options say how a [Listener] works.
type Options struct {
	// Public is the URL under which hubs reach the listener, a path included
	// where a proxy adds one. Without it nothing is registered.
	Public *url.URL
	// Fetch is how hubs are asked; Gap and PerHost there are what one hub is
	// asked at most, and AllowPrivate what addresses besides public ones.
	Fetch fetch.Config
	// Cooldown is the least time between two due markers of a feed; several
	// notifications meanwhile leave one at its end.
	Cooldown time.Duration
	// TrustedProxies are whose word counts for who made a request.
	TrustedProxies []netip.Prefix
	// Verbose reports every notification.
	Verbose bool

	// Rand gives numbers from 0 to 1 for jitter; nil means at random.
	Rand func() float64
	// Ready is called once, when feeds that change from then on are noticed;
	// nil for none.
	Ready func()
}

// Listener is the listener for one lektor-dir. [Listener.Run] asks the hubs,
// and [Listener.ServeHTTP] is the callback; they run at the same time.
type Listener struct {
	dir    *lektordir.Dir
	opts   Options
	report Reporter
	client *fetch.Client
	now    func() time.Time

	wake    chan struct{}
	slots   chan struct{}
	batches sync.WaitGroup

	mu        sync.Mutex
	feeds     map[string]*feed     // that have offers, or a state
	seen      map[string]stamps    // of all feeds
	callbacks map[string]*callback // by token
	tokens    map[string]string    // of clouds, by protocol and URL
	busy      map[string]bool      // hubs that are being asked
	single    map[string]bool      // clouds that take one feed a request
	watcher   *watch.Watcher
	watched   map[string]bool
	warned    map[string]bool
}

// feed is one feed. What is in it belongs to Listener.mu, but saved.
type feed struct {
	hash   string
	url    string // "" when it is not subscribed to
	keys   []string
	offers []offer
	turn   int // which of the offers
	st     State
	asking bool // a request is under way
	// dueAt is when the cooldown ends after which a marker is to be left.
	dueAt  time.Time
	marked time.Time // the last marker
	// changed is when it last went from one hub or topic to another.
	changed time.Time

	saving sync.Mutex
	saved  State // as the files have it
}

// callback is what a token stands for: a subscription of WebSub, or all feeds
// of a cloud.
type callback struct {
	websub bool
	feeds  map[*feed]bool
	asking []string // URLs of feeds that a cloud is asked for just now
}

// stamps tell whether a feed must be looked at again.
type stamps struct{ url, push time.Time }

// New prepares a listener; close the client's connections with Close.
func New(d *lektordir.Dir, report Reporter, o Options) *Listener {
	if o.Fetch.Now == nil {
		o.Fetch.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = mathrand.Float64
	}
	return &Listener{
		dir: d, opts: o, report: report, client: fetch.NewClient(o.Fetch),
		// Without the monotonic clock, which stops while the machine sleeps:
		// a cloud's 25 hours do not.
		now:  func() time.Time { return o.Fetch.Now().Round(0) },
		wake: make(chan struct{}, 1), slots: make(chan struct{}, workers),
		feeds: map[string]*feed{}, seen: map[string]stamps{}, callbacks: map[string]*callback{}, tokens: map[string]string{},
		busy: map[string]bool{}, single: map[string]bool{}, watched: map[string]bool{}, warned: map[string]bool{},
	}
}

// Close closes idle connections. Call it after Run has returned.
func (l *Listener) Close() { l.client.Close() }

// Load reads the state of all feeds, so that callbacks are known. [Listener.Run]
// does so, too; to call it before serving is for who must not miss a request.
func (l *Listener) Load() error { return l.scan() }

// Run keeps the registrations alive until ctx ends, which is no error. A feed
// that is added, removed or changes its hubs meanwhile is noticed. Requests
// that are under way when ctx ends are given up, and made again by the next
// run.
func (l *Listener) Run(ctx context.Context) error {
	defer l.batches.Wait()
	w := watch.New(ctx, pollEvery, func(s string) { l.report.Warn("%s", s) })
	if err := w.Add(l.dir.Join("src")); err != nil {
		return err
	}
	l.mu.Lock()
	l.watcher = w
	l.mu.Unlock()
	if err := l.scan(); err != nil {
		return err
	}
	if l.opts.Ready != nil {
		l.opts.Ready()
	}
	scanAt := l.now().Add(rescan)
	late := func() bool { left := scanAt.Sub(l.now()); return left <= 0 || left > rescan }
	dirty := map[string]bool{}
	var settled <-chan time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := l.step(ctx)
		wait := min(scanAt.Sub(l.now()), rescan)
		if !next.IsZero() {
			wait = min(wait, next.Sub(l.now()))
		}
		timer.Reset(max(wait, 0))
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		case dir := <-w.Changed:
			dirty[l.hashOf(dir)] = true
			if settled == nil {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil
			if dirty[""] {
				if err := l.scan(); err != nil {
					l.report.Warn("%v", err)
				}
			}
			for h := range dirty {
				if h != "" {
					l.load(h)
				}
			}
			clear(dirty)
		case <-timer.C:
			if late() {
				scanAt = l.now().Add(rescan)
				if err := l.scan(); err != nil {
					l.report.Warn("%v", err)
				}
			}
		}
	}
}

// hashOf gives the feed that a directory below src/ belongs to, "" for src/.
func (l *Listener) hashOf(dir string) string {
	rel, ok := strings.CutPrefix(dir, l.dir.Join("src")+"/")
	if !ok {
		return ""
	}
	h, _, _ := strings.Cut(rel, "/")
	return h
}

func (l *Listener) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// scan looks at all feeds, and reads those that have changed.
func (l *Listener) scan() error {
	hashes, err := l.dir.FeedHashes()
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(hashes))
	for _, h := range hashes {
		there[h] = true
		l.watchFeed(h)
		l.mu.Lock()
		old, known := l.seen[h]
		l.mu.Unlock()
		if !known || old != l.stamps(h) {
			l.load(h)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.seen {
		if !there[h] {
			delete(l.seen, h)
			if f := l.feeds[h]; f != nil {
				// Purged: whoever still calls is told that it is gone.
				l.detach(f)
				delete(l.feeds, h)
			}
		}
	}
	return nil
}

func (l *Listener) stamps(hash string) stamps {
	mtime := func(path string) time.Time {
		fi, err := os.Stat(path)
		if err != nil {
			return time.Time{}
		}
		return fi.ModTime()
	}
	return stamps{mtime(filepath.Join(l.dir.SrcEtc(hash, "fetch"), "url")), mtime(l.dir.SrcEtc(hash, "push"))}
}

// load reads one feed again.
func (l *Listener) load(hash string) {
	l.watchFeed(hash)
	stamps := l.stamps(hash)
	feedURL := subscription(l.dir, hash)
	var list []offer
	if feedURL != "" {
		var bad error
		if list, bad = offers(l.dir, hash, feedURL); bad != nil {
			l.warnOnce(hash+bad.Error(), "%s: %v", feedURL, bad)
		}
	}
	l.mu.Lock()
	f := l.feeds[hash]
	l.seen[hash] = stamps
	l.mu.Unlock()
	if f == nil {
		st := ReadState(l.dir, hash)
		if len(list) == 0 && st.Hub == "" {
			return
		}
		f = &feed{hash: hash, st: st, saved: st}
		if st.Hub != "" && st.Callback != "" && l.opts.Public != nil && !strings.HasPrefix(st.Callback, l.base()) {
			// We are reached elsewhere now, which the hub does not know yet.
			f.st.Next, f.st.Expires, f.st.Asked = time.Time{}, time.Time{}, time.Time{}
			f.st.Callback = l.base() + f.st.token()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.feeds[hash]; other != nil {
		f = other
	} else {
		l.feeds[hash] = f
		l.attach(f)
	}
	f.url, f.offers = feedURL, list
	f.keys = f.keys[:0]
	for _, u := range []string{feedURL, f.st.Topic, firstLine(l.dir.Join("src", hash, "id")), firstLine(filepath.Join(l.dir.SrcEtc(hash, "push"), "self"))} {
		if k := rsscloud.Key(u); u != "" && !slices.Contains(f.keys, k) {
			f.keys = append(f.keys, k)
		}
	}
	for _, o := range list {
		if k := rsscloud.Key(o.topic); !slices.Contains(f.keys, k) {
			f.keys = append(f.keys, k)
		}
	}
	f.turn = slices.IndexFunc(list, func(o offer) bool { return o.hub == f.st.Hub && o.protocol == f.st.Protocol })
	if f.turn < 0 {
		f.turn = 0
		if len(list) > 0 {
			f.st.Failures = 0 // they were those of a hub that it does not have any more
		}
	}
	l.poke()
}

// watchFeed watches the directory in which the next change of a feed's hubs
// will be seen: push/ itself, or where it will appear.
func (l *Listener) watchFeed(hash string) {
	l.mu.Lock()
	w := l.watcher
	l.mu.Unlock()
	if w == nil {
		return
	}
	for _, dir := range []string{l.dir.SrcEtc(hash, "push"), l.dir.Join("src", hash, "etc"), l.dir.Join("src", hash)} {
		l.mu.Lock()
		known := l.watched[dir]
		l.mu.Unlock()
		err := error(nil)
		if !known {
			if err = w.Add(dir); err == nil {
				l.mu.Lock()
				l.watched[dir] = true
				l.mu.Unlock()
				if dir != l.dir.SrcEtc(hash, "push") {
					// What came into it just before is seen by nobody else.
					l.watchDeeper(w, hash)
				}
				return
			}
		} else if _, err = os.Stat(dir); err == nil {
			return
		}
		l.mu.Lock()
		delete(l.watched, dir)
		l.mu.Unlock()
	}
}

func (l *Listener) watchDeeper(w *watch.Watcher, hash string) {
	for _, dir := range []string{l.dir.Join("src", hash, "etc"), l.dir.SrcEtc(hash, "push")} {
		if w.Add(dir) == nil {
			l.mu.Lock()
			l.watched[dir] = true
			l.mu.Unlock()
		}
	}
}

func (l *Listener) warnOnce(key, format string, args ...any) {
	l.mu.Lock()
	said := l.warned[key]
	if len(l.warned) < 10000 {
		l.warned[key] = true
	}
	l.mu.Unlock()
	if !said {
		l.report.Warn(format, args...)
	}
}

// attach makes the callback of a feed known. The caller holds mu.
func (l *Listener) attach(f *feed) {
	token := f.st.token()
	if token == "" || l.feeds[f.hash] != f {
		return // it has none, or was purged meanwhile
	}
	cb := l.callbacks[token]
	if cb == nil {
		cb = &callback{websub: f.st.Protocol == WebSub, feeds: map[*feed]bool{}}
		l.callbacks[token] = cb
	}
	cb.feeds[f] = true
	if key := f.st.Protocol + " " + f.st.Hub; !cb.websub && l.tokens[key] == "" {
		l.tokens[key] = token
	}
}

// detach forgets it. The caller holds mu.
func (l *Listener) detach(f *feed) {
	token := f.st.token()
	if cb := l.callbacks[token]; cb != nil {
		delete(cb.feeds, f)
		if len(cb.feeds) == 0 {
			delete(l.callbacks, token)
			if key := f.st.Protocol + " " + f.st.Hub; l.tokens[key] == token {
				delete(l.tokens, key)
			}
		}
	}
}

func (l *Listener) base() string {
	return strings.TrimSuffix(l.opts.Public.String(), "/") + "/"
}

// save writes what has changed of a feed's state.
func (l *Listener) save(f *feed) {
	f.saving.Lock()
	defer f.saving.Unlock()
	l.mu.Lock()
	st := f.st
	gone := l.feeds[f.hash] != f
	l.mu.Unlock()
	if gone {
		return
	}
	if err := write(l.dir, f.hash, &f.saved, &st); err != nil {
		l.warnOnce("save"+err.Error(), "%v", err)
		return
	}
	f.saved = st
}

// batch is what a hub is asked at a time.
type batch struct {
	offer offer
	end   bool // to end subscriptions, not to make them
	feeds []*feed
}

// step leaves the markers and starts the requests that are due, and gives the
// time when the next will be; zero when there is none.
func (l *Listener) step(ctx context.Context) time.Time {
	now := l.now()
	var next time.Time
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	var mark []*feed
	hubs := map[string]*batch{}
	var early []*feed // could be renewed with others

	l.mu.Lock()
	for _, f := range l.feeds {
		if !f.dueAt.IsZero() {
			if now.Before(f.dueAt) && f.dueAt.Sub(now) <= max(l.opts.Cooldown, markAgain) {
				soonest(f.dueAt)
			} else {
				mark = append(mark, f)
			}
		}
		if f.asking || l.opts.Public == nil {
			continue
		}
		end := l.wantsEnd(f)
		if !end && len(f.offers) == 0 {
			continue
		}
		// After a clock that was wrong, no time is further away than it can be.
		at := f.st.Next
		most := maxRenew + time.Hour
		if f.st.State == Registered && f.st.Protocol != WebSub && f.st.Failures == 0 {
			most = CloudExpire
		}
		if at.Sub(now) > most {
			at = time.Time{}
		}
		if end && f.st.State != Unsubscribing {
			at = time.Time{} // at once
		}
		if o := f.offer(); !end && f.st.Failures == 0 && (f.st.Hub != o.hub || f.st.Protocol != o.protocol || f.st.Topic != o.topic) {
			// The feed has another hub now, or is elsewhere. One that says so
			// with every fetch does not get a request for each.
			at = time.Time{}
			if since := now.Sub(f.changed); !f.changed.IsZero() && since >= 0 {
				at = f.changed.Add(minRenew)
			}
		}
		if !end && (f.st.State == Unsubscribed || f.st.State == Unsubscribing) {
			at = time.Time{} // subscribed to again
		}
		o := f.offer()
		if end {
			o = offer{protocol: f.st.Protocol, hub: f.st.Hub, topic: f.st.Topic}
		}
		if at.After(now) {
			soonest(at)
			if !end && o.protocol != WebSub && f.st.State == Registered && at.Sub(now) <= share {
				early = append(early, f)
			}
			continue
		}
		key := o.protocol + " " + o.hub
		if l.busy[o.hub] {
			continue // its end wakes us
		}
		b := hubs[key]
		if b == nil {
			b = &batch{offer: o, end: end}
			hubs[key] = b
		}
		if b.end == end && len(b.feeds) < perBatch {
			b.feeds = append(b.feeds, f)
			f.asking = true
		}
	}
	for _, f := range early {
		if b := hubs[f.offer().protocol+" "+f.offer().hub]; b != nil && !b.end && len(b.feeds) < perBatch {
			b.feeds = append(b.feeds, f)
			f.asking = true
		}
	}
	for key, b := range hubs {
		if l.busy[b.offer.hub] {
			// The same hub by another protocol, in this very round.
			for _, f := range b.feeds {
				f.asking = false
			}
			delete(hubs, key)
			continue
		}
		l.busy[b.offer.hub] = true
	}
	l.mu.Unlock()

	for _, f := range mark {
		l.mark(f)
	}
	for _, b := range hubs {
		l.batches.Go(func() {
			select {
			case l.slots <- struct{}{}:
				l.ask(ctx, b)
				<-l.slots
			case <-ctx.Done():
			}
			l.mu.Lock()
			delete(l.busy, b.offer.hub)
			for _, f := range b.feeds {
				f.asking = false
			}
			l.mu.Unlock()
			l.poke()
		})
	}
	return next
}

// offer is the one that has its turn.
func (f *feed) offer() offer {
	if len(f.offers) == 0 {
		return offer{}
	}
	return f.offers[f.turn%len(f.offers)]
}

// wantsEnd reports whether a feed's registration is to be ended: nobody
// subscribes to the feed, or it names no hub any more.
func (l *Listener) wantsEnd(f *feed) bool {
	return (f.url == "" || len(f.offers) == 0) && f.st.Hub != "" && f.st.State != Unsubscribed
}

// ask asks a hub for the feeds of a batch, and takes down what it says.
func (l *Listener) ask(ctx context.Context, b *batch) {
	slices.SortFunc(b.feeds, func(x, y *feed) int { return cmp.Compare(x.hash, y.hash) })
	fails := map[string]int{}
	done := 0
	end := func(f *feed, err error) {
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			done++
			return
		}
		fails[l.failed(f, err)]++
	}
	switch {
	case b.offer.protocol == WebSub:
		var fatal error
		for _, f := range b.feeds {
			if ctx.Err() != nil {
				break
			}
			err := fatal
			if err == nil {
				err = l.askWebSub(ctx, f, b.offer, b.end)
			}
			var refused *websub.RefusedError
			if err != nil && !errors.As(err, &refused) {
				fatal = err // no use to try it with the others
			}
			end(f, err)
		}
	case b.end:
		// rssCloud has no way to say it; a registration that is not renewed
		// ends by itself.
		for _, f := range b.feeds {
			l.ended(f)
			end(f, nil)
		}
	default:
		l.askCloud(ctx, b, end)
	}
	for _, text := range slices.Sorted(mapKeys(fails)) {
		l.report.Info("%s: %s", units.Count(fails[text], "feed"), text)
	}
	if l.opts.Verbose && done > 0 {
		what := "asked for"
		if b.end {
			what = "ended"
		}
		l.report.Info("%s %s at %s", what, units.Count(done, "feed"), b.offer.hub)
	}
}

func mapKeys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// adopt gives a feed the callback for an offer. All feeds of a cloud have one;
// with WebSub each has its own (section 5.1.1).
func (l *Listener) adopt(f *feed, o offer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shared := l.tokens[o.protocol+" "+o.hub]
	if f.st.Hub == o.hub && f.st.Protocol == o.protocol && f.st.State != Unsubscribed && f.st.State != Unsubscribing &&
		(o.protocol != WebSub && f.st.token() == shared || o.protocol == WebSub && f.st.Topic == o.topic) {
		f.st.Topic = o.topic
		return
	}
	l.detach(f)
	old := f.st
	if old.Hub != "" {
		f.changed = l.now()
	}
	f.st = State{Hub: o.hub, Protocol: o.protocol, Topic: o.topic, Notified: old.Notified, Failures: old.Failures, Error: old.Error}
	if o.protocol == WebSub && websub.Secure(o.hub) {
		f.st.Secret = random(32)
	}
	f.st.Callback = l.base() + cmp.Or(shared, random(tokenLen/2))
	l.attach(f)
}

// random gives so many bytes as hexadecimal digits.
func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// askCloud registers feeds with a cloud: all of them by one request, and where
// it will not have that, one by one.
func (l *Listener) askCloud(ctx context.Context, b *batch, end func(*feed, error)) {
	var urls []string
	for _, f := range b.feeds {
		o := b.offer
		l.mu.Lock()
		o.topic = f.url
		l.mu.Unlock()
		l.adopt(f, o)
	}
	l.mu.Lock()
	one := l.single[b.offer.hub]
	token := b.feeds[0].st.token()
	cb := l.callbacks[token]
	if cb == nil {
		cb = &callback{} // all of them were purged meanwhile
	}
	for _, f := range b.feeds {
		urls = append(urls, f.url)
	}
	var more []string // that single feeds are also known by
	for _, f := range b.feeds {
		more = append(more, l.alias(f))
	}
	cb.asking = append(slices.Clone(urls), more...)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		cb.asking = nil
		l.mu.Unlock()
	}()
	back := rsscloud.Callback{HTTPS: l.opts.Public.Scheme == "https", Domain: l.opts.Public.Hostname(), Path: strings.TrimSuffix(l.opts.Public.Path, "/") + "/" + token}
	back.Port, _ = strconv.Atoi(portOf(l.opts.Public))
	register := func(urls ...string) error {
		return rsscloud.Register(ctx, l.client, b.offer.cloud, back, urls)
	}
	var refused *rsscloud.RefusedError
	if !one && len(urls) > 1 {
		err := register(urls...)
		if err == nil || !errors.As(err, &refused) {
			for _, f := range b.feeds {
				if err == nil {
					l.registered(f, CloudRenew, CloudExpire)
				}
				end(f, err)
			}
			return
		}
		l.mu.Lock()
		l.single[b.offer.hub] = true
		l.mu.Unlock()
	}
	var fatal error
	missed := 0
	for i, f := range b.feeds {
		if ctx.Err() != nil {
			return
		}
		err := fatal
		if err == nil {
			err = register(urls[i])
			if errors.As(err, &refused) && more[i] != "" {
				if register(more[i]) == nil {
					err = nil
				}
			}
			switch {
			case err == nil:
				missed = -len(b.feeds) // there is a cloud
			case !errors.As(err, &refused):
				fatal = err // no use to try it with the others
			case refused.Status == http.StatusNotFound || refused.Status == http.StatusMethodNotAllowed || refused.Status == http.StatusGone:
				if missed++; missed == strikes {
					fatal = err
				}
			default:
				missed = -len(b.feeds)
			}
		}
		if err == nil {
			l.registered(f, CloudRenew, CloudExpire)
		}
		end(f, err)
	}
}

// alias is the URL that a feed gives itself, where that is another one: a cloud
// may know no other. The caller holds mu.
func (l *Listener) alias(f *feed) string {
	self := firstLine(filepath.Join(l.dir.SrcEtc(f.hash, "push"), "self"))
	if self == f.url || !fetch.IsHTTP(self) {
		return ""
	}
	return self
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// registered takes down a registration that the hub has accepted.
func (l *Listener) registered(f *feed, renew, expire time.Duration) {
	now := l.now()
	l.mu.Lock()
	f.st.State, f.st.Asked, f.st.Failures, f.st.Error = Registered, time.Time{}, 0, ""
	f.st.Next, f.st.Expires = now.Add(renew), now.Add(expire)
	l.mu.Unlock()
	l.save(f)
}

// ended takes down that a registration is over.
func (l *Listener) ended(f *feed) {
	l.mu.Lock()
	f.st.State, f.st.Asked, f.st.Expires, f.st.Next, f.st.Failures, f.st.Error = Unsubscribed, time.Time{}, time.Time{}, time.Time{}, 0, ""
	l.mu.Unlock()
	l.save(f)
}

// askWebSub requests a subscription, or ends one (section 5.1).
func (l *Listener) askWebSub(ctx context.Context, f *feed, o offer, end bool) error {
	mode := websub.Subscribe
	if end {
		l.mu.Lock()
		never := f.st.State == Failed || f.st.State == Denied
		l.mu.Unlock()
		if never {
			l.ended(f)
			return nil
		}
		mode = websub.Unsubscribe
	} else {
		l.mu.Lock()
		if len(f.offers) > 0 {
			o.topic = f.offer().topic
		}
		old := f.st
		l.mu.Unlock()
		if old.Protocol == WebSub && (old.Hub != o.hub || old.Topic != o.topic) && old.State == Registered {
			// The hub that it leaves is told once, and not waited for: what it
			// delivers to the old callback is answered with 410.
			_ = websub.Send(ctx, l.client, websub.Request{Mode: websub.Unsubscribe, Hub: old.Hub, Callback: old.Callback, Topic: old.Topic})
		}
		l.adopt(f, o)
	}
	now := l.now()
	l.mu.Lock()
	f.st.Asked = now // the hub may verify it before it answers
	if end {
		f.st.State = Unsubscribing
	}
	r := websub.Request{Mode: mode, Hub: f.st.Hub, Callback: f.st.Callback, Topic: f.st.Topic, Lease: DefaultLease, Secret: f.st.Secret}
	l.mu.Unlock()
	if end {
		r.Lease, r.Secret = 0, ""
	}
	err := websub.Send(ctx, l.client, r)
	l.mu.Lock()
	switch {
	case err != nil && !f.st.Asked.IsZero():
		f.st.Asked = time.Time{}
	case err != nil:
		err = nil // verified all the same
	case !f.st.Asked.IsZero():
		if f.st.State != Registered && f.st.State != Unsubscribing {
			f.st.State = Requested
		}
		f.st.Next = now.Add(verifyWithin)
		if f.st.Failures++; f.st.Failures > 1 {
			f.st.Error = fmt.Sprintf("%s: the hub took the request and has not verified it; can it reach %s?", f.st.Hub, l.base())
			f.st.Next = l.now().Add(max(verifyWithin, l.backoff(f.st.Failures)))
			if f.st.Failures%rotate == 0 {
				f.turn++
			}
		}
		if end && f.st.Failures > rotate {
			// It had its chances; what it delivers is answered with 410.
			f.st.State, f.st.Asked, f.st.Next, f.st.Failures, f.st.Error = Unsubscribed, time.Time{}, time.Time{}, 0, ""
		}
	}
	l.mu.Unlock()
	if err == nil {
		l.save(f)
	}
	return err
}

// verified takes down what a hub verified.
func (l *Listener) verified(f *feed, lease time.Duration) {
	if lease <= 0 {
		lease = DefaultLease
	}
	renew := min(max(lease*4/5, minRenew), maxRenew)
	l.mu.Lock()
	f.st.Signature = ""
	l.mu.Unlock()
	l.registered(f, renew, lease)
}

// backoff is how long to wait after so many failures: a minute, doubled up to
// six hours, less up to half of it, so that those who failed together do not
// come again together.
func (l *Listener) backoff(failures int) time.Duration {
	d := backoffMost
	if failures < 16 {
		d = min(backoffFirst<<max(failures-1, 0), backoffMost)
	}
	return d - time.Duration(l.opts.Rand()*float64(d)/2)
}

// failed takes down a request that failed, and gives what to say of it, which
// is the same for all feeds of a hub.
func (l *Listener) failed(f *feed, err error) string {
	now := l.now()
	text := explain(err)
	var (
		delay   *fetch.HostDelayError
		status  *fetch.StatusError
		refused *rsscloud.RefusedError
		denies  *websub.RefusedError
	)
	l.mu.Lock()
	if errors.As(err, &delay) {
		f.st.Next = now.Add(delay.Left)
	} else {
		f.st.Failures++
		wait := l.backoff(f.st.Failures)
		if errors.As(err, &status) {
			wait = max(wait, status.RetryAfter)
		}
		if len(f.offers) > 1 && (errors.As(err, &refused) || errors.As(err, &denies) || f.st.Failures%rotate == 0) {
			f.turn++
			if f.turn%len(f.offers) != 0 && f.st.Failures <= len(f.offers) {
				wait = 0 // the next of its hubs has its turn at once
			}
		}
		f.st.Next = now.Add(wait)
		if f.st.State == Unsubscribing && f.st.Failures > rotate {
			f.st.State, f.st.Asked, f.st.Next = Unsubscribed, time.Time{}, time.Time{}
		}
	}
	f.st.Error = text
	if f.st.State != Unsubscribing && f.st.State != Unsubscribed &&
		!(f.st.State == Registered && now.Before(f.st.Expires)) {
		f.st.State = Failed
	}
	l.mu.Unlock()
	l.save(f)
	return text
}

// explain gives an error in words for a log and the file error, cleaned.
func explain(err error) string {
	var private *fetch.PrivateError
	if errors.As(err, &private) {
		what := "a private address"
		if private.Addr.IsValid() {
			what = "the private address " + private.Addr.String()
		}
		return termsafe.Brief(fmt.Sprintf("%s: not asked: the feed names a hub at %s; if it is yours, --allow it", private.URL, what))
	}
	return termsafe.Brief(err.Error())
}

// notify is told that a feed was updated.
func (l *Listener) notify(f *feed) {
	now := l.now()
	l.mu.Lock()
	if f.url == "" {
		l.mu.Unlock()
		return
	}
	if at := f.marked.Add(l.opts.Cooldown); l.opts.Cooldown > 0 && !f.marked.IsZero() && now.Before(at) && at.Sub(now) <= l.opts.Cooldown {
		if f.dueAt.IsZero() {
			f.dueAt = at
			l.poke()
		}
		l.mu.Unlock()
		return
	}
	f.marked = now
	l.mu.Unlock()
	l.mark(f)
}

// mark leaves the due marker of a feed.
func (l *Listener) mark(f *feed) {
	now := l.now()
	l.mu.Lock()
	f.dueAt, f.marked, f.st.Notified = time.Time{}, now, now
	subscribed := f.url != ""
	l.mu.Unlock()
	if !subscribed {
		return
	}
	if err := feeddir.Leave(l.dir, f.hash); err != nil {
		l.warnOnce("mark"+err.Error(), "%v", err)
		l.mu.Lock()
		f.dueAt = now.Add(max(l.opts.Cooldown, markAgain))
		l.mu.Unlock()
		l.poke()
	}
	l.save(f)
}

// subscription gives the URL by which the world knows a feed that is subscribed
// to: without a password, and for one that comes from a file or a command the
// URL that it gives itself. It is "" when the feed is not subscribed to.
func subscription(d *lektordir.Dir, hash string) string {
	u := firstLine(filepath.Join(d.SrcEtc(hash, "fetch"), "url"))
	if u == "" || fetch.IsHTTP(u) {
		return fetch.Public(u)
	}
	if self := firstLine(filepath.Join(d.SrcEtc(hash, "push"), "self")); fetch.IsHTTP(self) {
		return fetch.Public(self)
	}
	return u
}
