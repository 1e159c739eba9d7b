// Package listener is the room of lektor-cloudd. It listens for news of feeds: it
// asks the clouds (rssCloud) and hubs (WebSub) that feeds name to be told of
// updates, keeps these registrations alive, and answers at their callbacks. A
// notification leaves a due marker, the empty file etc/fetch/due/$feed, and
// nothing else: whoever fetches reads the feed itself. [Ping] and [Save] are for
// those who publish a feed.
//
// What becomes of a registration is decided by a pure type, registration. Around
// it are an event loop, [Listener.Run], which makes requests when they are due,
// and the callback, [Listener.ServeHTTP]. What is kept is in files,
// [feeddir.Registration], and in them alone: a listener can be killed at any
// moment and started again.
package listener

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/limiter"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/serve"
	"github.com/lektordir/lektor/internal/watch"
	"github.com/lektordir/lektor/lektordir"
)

const (
	// DefaultCooldown is the least time between two due markers of a feed.
	DefaultCooldown = 10 * time.Second

	perBatch  = 20 // feeds in a request: what a hub takes that has a limit
	atOnce    = 64 // hubs that are asked
	rescan    = time.Minute
	noteEvery = 20 * time.Second // that somebody listens
	settle    = 300 * time.Millisecond
	pollEvery = 5 * time.Second
	// leaveAgain is when a marker is tried again that could not be left, as on
	// a disk that is full; a longer cooldown counts.
	leaveAgain = 5 * time.Second
	// strikes is how many feeds in a row a cloud may not know the request for
	// until it is taken for none.
	strikes = 3
)

// Listener is the listener for one lektor-dir. [Listener.Run] asks the hubs,
// and [Listener.ServeHTTP] is the callback; they run at the same time.
type Listener struct {
	dir    *lektordir.Dir
	opts   ListenOptions
	client *fetch.Client
	now    func() time.Time
	warner

	wake    chan struct{}
	limit   *limiter.Limiter // of the hubs that are asked at once
	batches sync.WaitGroup
	watched *watches  // nil until it runs
	heard   time.Time // when somebody listened last; Run alone uses it

	mu sync.Mutex
	// feeds are those that have offers, or a registration, and seen what was
	// last read of every feed. Run alone changes the two, and reads them
	// without a lock.
	feeds     map[string]*feed
	seen      map[string]feeddir.PushStamp
	callbacks callbacks
	hubs      map[string]*hubState // by URL
}

// hubState is what is known of a hub.
type hubState struct {
	busy   bool // it is being asked
	single bool // it is a cloud that takes one feed a request
}

// warner says what goes wrong. It may be used by many goroutines.
type warner struct {
	report serve.Reporter
	saying sync.Mutex
	said   map[string]bool
}

// warnOnce warns, unless it did so with that key before.
func (w *warner) warnOnce(key, format string, args ...any) {
	w.saying.Lock()
	said := w.said[key]
	if len(w.said) < 10000 {
		w.said[key] = true
	}
	w.saying.Unlock()
	if !said {
		w.report.Warn(format, args...)
	}
}

// feed is one feed. What is in it belongs to Listener.mu, but hash and saved.
type feed struct {
	hash string
	registration
	cooldown cooldown
	keys     []string // of the URLs that hubs know it by, see rsscloud.Key
	alias    string   // the URL that it gives itself, where that is another; or ""
	asking   bool     // a request is under way
	purged   bool     // it is not in the lektor-dir any more

	saving sync.Mutex
	saved  feeddir.Registration // as the files have it
}

// callback is what a token stands for: a subscription of WebSub, or all feeds
// of a cloud.
type callback struct {
	websub bool
	feeds  map[*feed]bool
	// asking is what a cloud is asked for just now, nil for nothing.
	asking *asking
}

// callbacks are those that are answered.
type callbacks struct {
	byToken map[string]*callback
	ofCloud map[string]string // tokens of clouds, by offer.key
}

// attach makes the callback of a feed known, if it has one.
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

// detach forgets it.
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

// asking are the feeds that a cloud is asked for, and the calls by which it verifies
// that the callback is theirs: a cloud makes one for every feed that it takes, the
// challenge, or a test call that looks as a notification does.
type asking struct {
	urls  []string
	calls map[string]*calls // by rsscloud.Key
}

// calls are those for one feed.
type calls struct {
	challenged bool
	posts      int
}

// post takes a notification, and tells whether it is a test call: the first that
// comes is, where no challenge came before.
func (c *calls) post() bool {
	c.posts++
	return c.posts == 1 && !c.challenged
}

// asks reports whether the cloud is asked for a feed with a key.
func (a *asking) asks(key string) bool {
	return slices.ContainsFunc(a.urls, func(u string) bool { return u != "" && rsscloud.Key(u) == key })
}

// called are the calls for a feed with a key.
func (a *asking) called(key string) *calls {
	if a.calls[key] == nil {
		a.calls[key] = &calls{}
	}
	return a.calls[key]
}

// heard reports whether a feed with these keys was called for.
func (a *asking) heard(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { c := a.calls[k]; return c != nil && (c.challenged || c.posts > 0) })
}

// New prepares a listener; close the client's connections with Close.
func New(d *lektordir.Dir, report serve.Reporter, o ListenOptions) *Listener {
	if o.Fetch.Now == nil {
		o.Fetch.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = mathrand.Float64
	}
	return &Listener{
		dir: d, opts: o, client: fetch.NewClient(o.Fetch), warner: warner{report: report, said: map[string]bool{}},
		// Without the monotonic clock, which stops while the machine sleeps:
		// a cloud's 25 hours do not.
		now:  func() time.Time { return o.Fetch.Now().Round(0) },
		wake: make(chan struct{}, 1), limit: limiter.New(limiter.Options{All: atOnce, Each: 1}),
		feeds: map[string]*feed{}, seen: map[string]feeddir.PushStamp{}, hubs: map[string]*hubState{},
		callbacks: callbacks{byToken: map[string]*callback{}, ofCloud: map[string]string{}},
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
	l.watched = &watches{l.dir, w, map[string]bool{}}
	if err := l.scan(); err != nil {
		return err
	}
	if l.opts.Ready != nil {
		l.opts.Ready()
	}
	l.heard = lastHeard(l.dir)
	l.listening()
	scanAt, noteAt := l.now().Add(rescan), l.now().Add(noteEvery)
	// A time further away than it can be comes from a clock that was wrong.
	late := func(at time.Time, every time.Duration) bool {
		left := at.Sub(l.now())
		return left <= 0 || left > every
	}
	dirty := map[string]bool{}
	var settled <-chan time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := l.step(ctx)
		wait := min(scanAt.Sub(l.now()), noteAt.Sub(l.now()), noteEvery)
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
			l.reload(dirty)
			clear(dirty)
		case <-timer.C:
			if late(noteAt, noteEvery) {
				noteAt = l.now().Add(noteEvery)
				l.listening()
			}
			if late(scanAt, rescan) {
				scanAt = l.now().Add(rescan)
				l.rescan()
			}
		}
	}
}

// listening notes that somebody listens now. If nobody did for [deafAfter], also because
// the machine slept, it has everything renewed.
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

// deaf has everything renewed.
func (l *Listener) deaf() {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.feeds))
	l.mu.Unlock()
	for _, f := range all {
		l.apply(f, deaf{})
	}
}

// hashOf returns the feed that a directory below src/ belongs to, "" for src/.
func (l *Listener) hashOf(dir string) string {
	rel, ok := strings.CutPrefix(dir, l.dir.Join("src")+"/")
	if !ok {
		return ""
	}
	h, _, _ := strings.Cut(rel, "/")
	return h
}

// poke makes Run look at what is due.
func (l *Listener) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// reload reads feeds again whose directories have changed; "" is src/.
func (l *Listener) reload(dirty map[string]bool) {
	if dirty[""] {
		l.rescan()
	}
	for h := range dirty {
		if h != "" {
			l.load(h)
		}
	}
}

func (l *Listener) rescan() {
	if err := l.scan(); err != nil {
		l.report.Warn("%v", err)
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
		l.watched.add(h)
		if old, known := l.seen[h]; !known || old != feeddir.StampPush(l.dir, h) {
			l.load(h)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.seen, func(h string, _ feeddir.PushStamp) bool { return !there[h] })
	for h, f := range l.feeds {
		if there[h] {
			continue
		}
		if !f.purged {
			// Its hub is told, as of every feed that is not subscribed to any
			// more, and whoever calls until then that it is gone.
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

// load reads one feed again.
func (l *Listener) load(hash string) {
	l.watched.add(hash)
	stamp := feeddir.StampPush(l.dir, hash)
	e := read{url: feeddir.PublicURL(l.dir, hash)}
	push, list, bad := readOffers(l.dir, hash, e.url)
	if e.offers = list; bad != nil {
		l.warnOnce(hash+bad.Error(), "%s: %v", e.url, bad)
	}
	if l.opts.Public != nil {
		e.base = l.base()
	}
	id, _ := atomicfile.Line(l.dir.Join("src", hash, "id"))
	missedAt := feeddir.Missed(l.dir, hash)
	f := l.feedOf(hash, len(e.offers) > 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[hash] = stamp
	if f == nil {
		return
	}
	l.feeds[hash] = f
	f.name(push, []string{e.url, id, f.Topic}, e.offers, e.url)
	l.callbacks.attach(f)
	do := l.advance(f, e)
	if !missedAt.IsZero() {
		do |= l.advance(f, missed{missedAt})
	}
	if do&wake != 0 {
		l.poke()
	}
}

// feedOf returns a feed as it is known, or as its files have it; nil for one that has
// neither offers nor a registration.
func (l *Listener) feedOf(hash string, offered bool) *feed {
	f := l.feeds[hash]
	if f != nil && !f.purged {
		return f
	}
	if f != nil {
		// It came again, with nothing of what was before.
		l.mu.Lock()
		l.callbacks.detach(f)
		delete(l.feeds, hash)
		l.mu.Unlock()
	}
	reg := feeddir.ReadRegistration(l.dir, hash)
	if !offered && reg.Hub == "" {
		return nil
	}
	if strings.Contains(reg.Error, notAsked) {
		reg.Next = time.Time{} // it may be allowed by now, and costs no request
	}
	return &feed{hash: hash, registration: registration{Registration: reg}, saved: reg}
}

// name sets the names by which hubs know a feed at a URL: some URLs, the topics of its
// offers, and the URL that it gives itself.
func (f *feed) name(push feeddir.Push, urls []string, offers []offer, feedURL string) {
	for _, o := range offers {
		urls = append(urls, o.topic)
	}
	f.keys, f.alias = nil, ""
	if len(push.Self) > 0 {
		urls = append(urls, push.Self[0])
		if push.Self[0] != feedURL && fetch.IsHTTP(push.Self[0]) {
			f.alias = push.Self[0]
		}
	}
	for _, u := range urls {
		if k := rsscloud.Key(u); u != "" && !slices.Contains(f.keys, k) {
			f.keys = append(f.keys, k)
		}
	}
}

// apply lets the registration of a feed take an event, and does what follows but
// for requests and answers, which the caller makes; it gets the registration
// before and after, too.
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

// advance is the part of apply for which the caller holds mu.
func (l *Listener) advance(f *feed, event any) action {
	is, do := f.on(event, l.now(), l.opts.Rand())
	if is.Callback != f.Callback {
		l.callbacks.detach(f)
		f.registration = is
		if l.feeds[f.hash] == f { // it was not purged meanwhile
			l.callbacks.attach(f)
		}
	}
	f.registration = is
	return do
}

// key is that of the offer that the registration is for.
func (f *feed) key() string { return offer{protocol: f.Protocol, hub: f.Hub}.key() }

func (l *Listener) base() string {
	return strings.TrimSuffix(l.opts.Public.String(), "/") + "/"
}

// save writes what has changed of a feed's registration.
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
	if err := reg.Write(l.dir, f.hash, &f.saved); err != nil {
		l.warnOnce("save"+err.Error(), "%v", err)
		return
	}
	f.saved = reg
}

// notified is told that a feed was updated.
func (l *Listener) notified(f *feed) {
	changed := feeddir.Changed(l.dir, f.hash)
	l.mu.Lock()
	was, now := f.cooldown, false
	if f.url != "" {
		f.cooldown, now = was.notified(l.now(), l.opts.Cooldown, changed)
	}
	wait := f.cooldown != was
	l.mu.Unlock()
	switch {
	case now:
		l.leave(f)
	case wait:
		l.poke()
	}
}

// leave leaves the due marker of a feed.
func (l *Listener) leave(f *feed) {
	now := l.now()
	l.mu.Lock()
	subscribed := f.url != ""
	l.mu.Unlock()
	if !subscribed {
		return
	}
	if err := feeddir.AddMarker(l.dir, f.hash); err != nil {
		l.warnOnce("mark"+err.Error(), "%v", err)
		l.mu.Lock()
		f.cooldown.due = now.Add(max(l.opts.Cooldown, leaveAgain))
		l.mu.Unlock()
		l.poke()
	}
	l.apply(f, left{})
}

// watches are the directories in which the next change of a feed's hubs will be
// seen. Run alone uses them.
type watches struct {
	dir     *lektordir.Dir
	watcher *watch.Watcher
	known   map[string]bool
}

// add watches push/ of a feed, or where it will appear.
func (w *watches) add(hash string) {
	if w == nil {
		return
	}
	dirs := feeddir.PushDirs(w.dir, hash)
	for i, dir := range dirs {
		if w.known[dir] {
			if _, err := os.Stat(dir); err == nil {
				return
			}
		} else if w.watcher.Add(dir) == nil {
			w.known[dir] = true
			// What came into it just before is seen by nobody else.
			for _, deeper := range slices.Backward(dirs[:i]) {
				if w.watcher.Add(deeper) == nil {
					w.known[deeper] = true
				}
			}
			return
		}
		delete(w.known, dir)
	}
}

// token returns as many bytes at random, as hexadecimal digits.
func token(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
