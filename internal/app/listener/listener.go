// Package listener implements lektor-cloudd. It registers with the clouds (rssCloud) and
// hubs (WebSub) that feeds name, renews these registrations, and answers at their
// callbacks. A notification leaves a due marker, the empty file etc/fetch/due/$feed, and
// nothing else: lektor-fetch reads the feed itself. [Ping] and [Save] are for publishers of
// feeds.
//
// A value, registration, decides about each registration. Around it are an event loop,
// [Listener.Run], which makes requests when they are due, and the callback,
// [Listener.ServeHTTP]. All state is in files, [push.Registration], so a listener can be
// killed and restarted at any moment.
package listener

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	mathrand "math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

const (
	// DefaultCooldown is the minimum time between two due markers of a feed.
	DefaultCooldown = 10 * time.Second

	perBatch = 20 // feeds in a request; more exceed the limit of some hubs
	atOnce   = 64 // hubs that are asked at once
	// checkEvery is how often changes of feeds are looked for, and the heard file is written.
	checkEvery = 20 * time.Second
	// leaveAgain is the time after which a marker that could not be written, for example
	// on a full disk, is tried again; a longer cooldown takes precedence.
	leaveAgain = 5 * time.Second
	// strikes is the number of feeds in a row for which a cloud may answer "not found"
	// before the others are not tried.
	strikes = 3
)

// Listener is the listener for one lektor-dir. [Listener.Run] makes requests to hubs, and
// [Listener.ServeHTTP] serves the callbacks, concurrently.
type Listener struct {
	dir    *lektordir.Dir
	opts   ListenOptions
	client *fetch.Client
	now    func() time.Time
	warner

	wake    chan struct{}
	limit   *limiter.Limiter // limits concurrent requests to hubs
	batches sync.WaitGroup
	heard   time.Time // when a listener last ran; used only by Run

	mu sync.Mutex
	// feeds are the feeds with offers or a registration. stamps are the stamps of all feeds
	// when they were last read. Only Run changes these maps, and it reads them without the
	// lock.
	feeds     map[string]*feed
	stamps    map[string][]stamp.Stamp // of push.Paths
	rule      stamp.Rule
	callbacks callbacks
	single    map[string]bool // URLs of clouds that accept one feed per request
}

// warner prints warnings. It is safe for concurrent use.
type warner struct {
	report httpserver.Reporter
	mu     sync.Mutex
	warned map[string]bool
}

// warnOnce prints a warning, unless it was called with the same key before.
func (w *warner) warnOnce(key, format string, args ...any) {
	w.mu.Lock()
	done := w.warned[key]
	if len(w.warned) < 10000 {
		w.warned[key] = true
	}
	w.mu.Unlock()
	if !done {
		w.report.Warn(format, args...)
	}
}

// feed is one feed. Listener.mu guards its fields, except hash.
type feed struct {
	hash string
	registration
	cooldown cooldown
	keys     []string // keys of the URLs by which hubs know it, see rsscloud.Key
	alias    string   // URL that the feed names as its own, if it differs from url; else ""
	asking   bool     // a request is under way
	purged   bool     // it is no longer in the lektor-dir

	saving sync.Mutex
}

// callback is the meaning of a token: a WebSub subscription, or all feeds of a cloud.
type callback struct {
	websub bool
	feeds  map[*feed]bool
	// asking is the current registration with the cloud, nil if there is none.
	asking *asking
}

// callbacks are the known callbacks.
type callbacks struct {
	byToken map[string]*callback
	ofCloud map[string]string // tokens of clouds, by offer.key
}

// attach adds a feed to the callback of its token, if it has one.
func (c *callbacks) attach(f *feed) {
	token := f.Token()
	if token == "" {
		return
	}
	cb := c.byToken[token]
	if cb == nil {
		cb = &callback{websub: f.Protocol == WebSub, feeds: map[*feed]bool{}}
		c.byToken[token] = cb
	}
	cb.feeds[f] = true
	if key := f.key(); !cb.websub && c.ofCloud[key] == "" {
		c.ofCloud[key] = token
	}
}

// detach removes a feed from its callback.
func (c *callbacks) detach(f *feed) {
	token := f.Token()
	if cb := c.byToken[token]; cb != nil {
		delete(cb.feeds, f)
		if len(cb.feeds) == 0 {
			delete(c.byToken, token)
			if key := f.key(); c.ofCloud[key] == token {
				delete(c.ofCloud, key)
			}
		}
	}
}

// asking is a running registration with a cloud: its feeds, and the calls by which the
// cloud verifies the callback. A cloud makes one call for each feed: a challenge, or a test
// call that looks like a notification.
type asking struct {
	back  url.URL
	urls  []string
	calls map[string]*calls // by rsscloud.Key
}

// calls are the calls for one feed.
type calls struct {
	challenged bool
	posts      int
}

// post counts a notification, and reports whether it is a test call: the first one is,
// unless a challenge came before.
func (c *calls) post() bool {
	c.posts++
	return c.posts == 1 && !c.challenged
}

// asks reports whether the registration includes a feed with a key.
func (a *asking) asks(key string) bool {
	return slices.ContainsFunc(a.urls, func(u string) bool { return u != "" && rsscloud.Key(u) == key })
}

// called returns the calls for the feed with a key.
func (a *asking) called(key string) *calls {
	if a.calls[key] == nil {
		a.calls[key] = &calls{}
	}
	return a.calls[key]
}

// heard reports whether the cloud has called for a feed with one of the keys.
func (a *asking) heard(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		c := a.calls[k]
		return c != nil &&
			(c.challenged || c.posts > 0)
	})
}

// New returns a listener. The caller must call Close.
func New(d *lektordir.Dir, report httpserver.Reporter, o ListenOptions) *Listener {
	if o.Fetch.Now == nil {
		o.Fetch.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = mathrand.Float64
	}
	return &Listener{
		dir: d, opts: o, client: fetch.NewClient(o.Fetch), warner: warner{report: report, warned: map[string]bool{}},
		// Round removes the monotonic clock, which stops while the machine sleeps. The 25
		// hours of a cloud do not.
		now:  func() time.Time { return o.Fetch.Now().Round(0) },
		wake: make(chan struct{}, 1), limit: limiter.New(limiter.Options{All: atOnce, Each: 1}),
		feeds: map[string]*feed{}, stamps: map[string][]stamp.Stamp{}, single: map[string]bool{},
		rule:      stamp.Rule{Shared: d.Shared()},
		callbacks: callbacks{byToken: map[string]*callback{}, ofCloud: map[string]string{}},
	}
}

// Close closes idle connections. Call it after Run has returned.
func (l *Listener) Close() { l.client.Close() }

// Load reads the state of all feeds, so that their callbacks are known. [Listener.Run] does
// that, too. Call it before serving in order to miss no request.
func (l *Listener) Load() error { return l.scan() }

// Run keeps the registrations alive until ctx ends, and then returns nil. It notices feeds
// that are added or removed, or whose hubs change. Requests that run when ctx ends are
// cancelled; the next run repeats them.
func (l *Listener) Run(ctx context.Context) error {
	defer l.batches.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	check := l.now().Add(checkEvery)
	if err := l.scan(); err != nil {
		return err
	}
	if l.opts.Ready != nil {
		l.opts.Ready()
	}
	l.heard = lastHeard(l.dir)
	l.listening()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := l.step(ctx)
		wait := min(check.Sub(l.now()), checkEvery)
		if !next.IsZero() {
			wait = min(wait, next.Sub(l.now()))
		}
		timer.Reset(max(wait, 0))
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		case <-timer.C:
			// A time too far ahead was set by a wrong clock.
			if left := check.Sub(l.now()); left > 0 && left <= checkEvery {
				continue
			}
			check = l.now().Add(checkEvery)
			l.listening()
			if err := l.scan(); err != nil {
				l.warnOnce("scan"+err.Error(), "%v", err)
			}
		}
	}
}

// listening records that a listener runs now. If none ran for [deafAfter], for example
// because the machine slept, it renews all registrations.
func (l *Listener) listening() {
	now := l.now()
	if since := now.Sub(l.heard); since >= deafAfter || since < 0 {
		l.deaf()
	}
	l.heard = now
	if err := writeHeard(l.dir, now); err != nil {
		l.warnOnce("heard"+err.Error(), "%v", err)
	}
}

// deaf makes all registrations due for renewal.
func (l *Listener) deaf() {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.feeds))
	l.mu.Unlock()
	for _, f := range all {
		l.apply(f, deaf{})
	}
}

// poke makes Run look for due requests.
func (l *Listener) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// scan checks all feeds, and reads those that have changed.
func (l *Listener) scan() error {
	hashes, err := l.dir.FeedHashes()
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(hashes))
	for _, h := range hashes {
		there[h] = true
		if look := l.look(h); look.Needed(l.stamps[h]) {
			l.load(h, look)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.stamps, func(h string, _ []stamp.Stamp) bool { return !there[h] })
	for h, f := range l.feeds {
		if there[h] {
			continue
		}
		if !f.purged {
			// The registration is ended at the hub. Until then, calls of the callback get
			// 410.
			f.purged = true
			if l.advance(f, read{})&wake != 0 {
				l.poke()
			}
		}
		if f.Hub == "" || f.State == Unsubscribed {
			l.callbacks.detach(f)
			delete(l.feeds, h)
		}
	}
	return nil
}

// look begins a reading of a feed.
func (l *Listener) look(hash string) *stamp.Reading {
	return l.rule.Begin(unix.AT_FDCWD, l.stamps[hash], push.Paths(l.dir, hash)...)
}

// load reads a feed again.
func (l *Listener) load(hash string, reading *stamp.Reading) {
	e := read{url: subscriptions.PublicURL(l.dir, hash)}
	offered, list, bad := readOffers(l.dir, hash, e.url)
	if e.offers = list; bad != nil {
		l.warnOnce(hash+bad.Error(), "%s: %v", e.url, bad)
	}
	if l.opts.Public != nil {
		e.base = l.base()
	}
	id, _ := atomicfile.Line(l.dir.Join("src", hash, "id"))
	missedAt, paused := push.Missed(l.dir, hash), settings.Paused(l.dir, hash)
	f := l.feedOf(hash, len(e.offers) > 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamps[hash] = reading.End()
	if f == nil {
		return
	}
	l.feeds[hash] = f
	f.name(offered, []string{e.url, id, f.Topic}, e.offers, e.url)
	l.callbacks.attach(f)
	f.paused = paused
	do := l.advance(f, e)
	if !missedAt.IsZero() {
		do |= l.advance(f, missed{missedAt})
	}
	if do&wake != 0 {
		l.poke()
	}
}

// feedOf returns a known feed, or reads its registration. It returns nil for a feed without
// offers and registration.
func (l *Listener) feedOf(hash string, offered bool) *feed {
	f := l.feeds[hash]
	if f != nil && !f.purged {
		return f
	}
	if f != nil {
		// The feed was removed and added again, so the old state is dropped.
		l.mu.Lock()
		l.callbacks.detach(f)
		delete(l.feeds, hash)
		l.mu.Unlock()
	}
	reg := push.ReadRegistration(l.dir, hash)
	if !offered && reg.Hub == "" {
		return nil
	}
	if strings.Contains(reg.Error, notAsked) {
		reg.Next = time.Time{} // the address may be allowed now; if not, no request is made
	}
	return &feed{hash: hash, registration: registration{Registration: reg}}
}

// name sets the keys by which hubs know a feed: of the given URLs, the topics of its
// offers, and the URL that the feed names as its own.
func (f *feed) name(offered push.Offers, urls []string, offers []offer, feedURL string) {
	for _, o := range offers {
		urls = append(urls, o.topic)
	}
	f.keys, f.alias = nil, ""
	if len(offered.Self) > 0 {
		urls = append(urls, offered.Self[0])
		if offered.Self[0] != feedURL && feedurl.IsHTTP(offered.Self[0]) {
			f.alias = offered.Self[0]
		}
	}
	for _, u := range urls {
		if k := rsscloud.Key(u); u != "" && !slices.Contains(f.keys, k) {
			f.keys = append(f.keys, k)
		}
	}
}

// apply applies an event to the registration of a feed, saves it, and wakes Run if
// necessary. The caller makes requests and answers. apply returns the registration before
// and after, and the actions.
func (l *Listener) apply(f *feed, event any) (was, is registration, do action) {
	l.mu.Lock()
	was = f.registration
	do = l.advance(f, event)
	is = f.registration
	l.mu.Unlock()
	if do&save != 0 {
		l.save(f)
	}
	if do&wake != 0 {
		l.poke()
	}
	return was, is, do
}

// advance applies an event. The caller holds mu and does the actions.
func (l *Listener) advance(f *feed, event any) action {
	is, do := f.on(event, l.now(), l.opts.Rand())
	if is.Callback != f.Callback {
		l.callbacks.detach(f)
		f.registration = is
		if l.feeds[f.hash] == f { // unless it was removed meanwhile
			l.callbacks.attach(f)
		}
	}
	f.registration = is
	return do
}

// key returns the key of the registration's offer.
func (f *feed) key() string { return offer{protocol: f.Protocol, hub: f.Hub}.key() }

func (l *Listener) base() string {
	return strings.TrimSuffix(l.opts.Public.String(), "/") + "/"
}

// save writes the changes of a feed's registration.
func (l *Listener) save(f *feed) {
	f.saving.Lock()
	defer f.saving.Unlock()
	l.mu.Lock()
	reg := f.Registration
	gone := f.purged || l.feeds[f.hash] != f
	l.mu.Unlock()
	if gone {
		return
	}
	if err := reg.Write(l.dir, f.hash); err != nil {
		l.warnOnce("save"+err.Error(), "%v", err)
	}
}

// notified handles a notification that a feed was updated.
func (l *Listener) notified(f *feed) {
	changed := schedule.Changed(l.dir, f.hash)
	l.mu.Lock()
	was, now := f.cooldown, false
	if f.url != "" {
		f.cooldown, now = was.notified(l.now(), l.opts.Cooldown, changed)
	}
	wait := f.cooldown != was
	l.mu.Unlock()
	switch {
	case now:
		l.leaveMarker(f)
	case wait:
		l.poke()
	}
}

// leaveMarker writes the due marker of a feed.
func (l *Listener) leaveMarker(f *feed) {
	now := l.now()
	l.mu.Lock()
	subscribed := f.url != ""
	l.mu.Unlock()
	if !subscribed || settings.Paused(l.dir, f.hash) {
		return
	}
	if err := schedule.AddMarker(l.dir, f.hash); err != nil {
		l.warnOnce("mark"+err.Error(), "%v", err)
		l.mu.Lock()
		f.cooldown.due = now.Add(max(l.opts.Cooldown, leaveAgain))
		l.mu.Unlock()
		l.poke()
	}
	l.apply(f, left{})
}

// token returns random bytes in hexadecimal.
func token(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
