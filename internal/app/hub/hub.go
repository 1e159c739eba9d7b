// Package hub is the room of lektor-cloudd hub: a cloud of rssCloud and a hub of
// WebSub, which tells subscribers that a feed was updated when its publisher says so.
//
// All it knows of feeds and subscribers is in files, [states]. A ping reads the feed once,
// however many pings come meanwhile, see [readings]. If the document has changed, each of its
// subscribers becomes a job. Handlers add [jobs], and [Hub.hurry] does those that are due. A
// pure type, [subscription], decides when a subscription ends.
package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/limiter"
	"github.com/lektordir/lektor/internal/serve"
)

// Defaults and bounds of [Options].
const (
	DefaultMaxURLs      = 20
	DefaultPerCaller    = 100_000
	DefaultMost         = 2_000_000
	DefaultNotifyAtOnce = 256
	DefaultPerHost      = 8
	DefaultMaxFeed      = 8 << 20
	DefaultMaxSave      = 4 << 20
	DefaultMaxForm      = 64 << 10
	// DefaultTimeout is for an exchange with a feed's server or a subscriber;
	// MaxTimeout is what it is less than, as callers wait for what comes of it.
	DefaultTimeout = 7 * time.Second
	MaxTimeout     = 8 * time.Second
)

// Options are the options of [Serve], and of a [Hub].
type Options struct {
	serve.Options
	State string // directory of the state; made where there is none

	// Public is the URL under which the world reaches the hub.
	Public *url.URL
	// TrustedProxies are whose word counts for who made a request.
	TrustedProxies []netip.Prefix
	// Feeds says how feeds are read, and Callbacks how subscribers are notified; the
	// addresses in AllowPrivate are what each of them may have besides public ones.
	Feeds, Callbacks fetch.Config
	// Allowed are URLs with which those of feeds may begin that are read at every
	// ping, though nobody subscribes to them.
	Allowed []string
	// Users is the file of those who may store feeds here (htpasswd, bcrypt); ""
	// for nobody.
	Users string

	MaxURLs   int           // feeds in a request
	PerCaller int           // subscriptions of a caller
	Most      int           // and of all
	AtOnce    int           // notifications under way
	PingGap   time.Duration // between two readings of a feed for pings
	MaxSave   int           // bytes of a feed that is stored here
	MaxForm   int           // bytes of a request that is a form

	NoPage  bool // answers no request for the page
	Verbose bool // reports what the log has
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// AfterFunc is the timer of slow requests to callbacks; see [limiter.Options].
	AfterFunc func(time.Duration, func()) (stop func())
	// Ready is called once, when requests are served; nil for none.
	Ready func()
}

// Limits that are no options.
const (
	readMost    = 64               // feeds that are read at once
	readOne     = 8                // and those for one caller
	readWait    = 30 * time.Second // for a place to read a feed
	readLater   = 10 * time.Second
	verifyMost  = 64 // callbacks that are tried at once
	verifyOne   = 16 // and those of one caller
	saveMost    = 3  // large bodies that are read at once
	saveOne     = 1  // and those of one caller
	waitMost    = 3 * time.Second
	handOver    = 500 * time.Millisecond
	slowFor     = 8 // times as many may be slow as are notified at once
	heldMost    = 64 << 20
	rememberFor = 10 * time.Minute
	rememberErr = time.Minute
	remember    = 10_000
)

// Hub is a hub. [Hub.ServeHTTP] serves it while [Hub.Run] runs.
type Hub struct {
	*engine
	users    *users        // nil if nobody may store feeds
	patience time.Duration // of a ping's answer, with the notifications
	proxied  sync.Once     // that a proxy is not trusted is said
}

// engine does the jobs of a hub, and has what they and requests need.
type engine struct {
	states
	opts   Options
	report serve.Reporter
	now    func() time.Time
	log    *logbook

	background

	limits limits
	budget budget
	jobs   *jobs
	// recording is held while a document is added to the table and recorded, so that an
	// older one is never recorded after a newer one.
	recording sync.Mutex
	readings  readings
	counts    counts
	feeds     *fetch.Client

	reader   reader
	notifier notifier
}

// background is what goes on when a request is answered.
type background struct {
	ctx     context.Context
	stop    context.CancelFunc
	working sync.WaitGroup
	wake    chan struct{} // makes Run look at what is due
}

// limits bound by their kind what is done at once.
type limits [4]*limiter.Limiter

const (
	reads     = iota // of feeds, by caller
	verifying        // of callbacks, by caller
	saving           // of large bodies, by caller
	calling          // requests to callbacks, by server
)

// New opens the state of a hub. End it with Close.
func New(o Options, report serve.Reporter) (*Hub, error) {
	st, err := openStates(o.State)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	now := func() time.Time { return o.Now().Round(0) }
	atOnce, perHost := max(o.AtOnce, 1), max(o.Callbacks.PerHost, 1)
	h := &engine{
		states: st, opts: o, report: report, now: now,
		limits: limits{
			reads:     limiter.New(limiter.Options{All: readMost, Each: readOne}),
			verifying: limiter.New(limiter.Options{All: verifyMost, Each: verifyOne}),
			saving:    limiter.New(limiter.Options{All: saveMost, Each: saveOne}),
			calling: limiter.New(limiter.Options{
				All: atOnce, Each: perHost, After: handOver, SlowAll: slowFor * atOnce, SlowEach: slowFor * perHost, AfterFunc: o.AfterFunc,
			}),
		},
		budget: budget{most: perTarget}, background: background{wake: make(chan struct{}, 1)},
		readings: readings{now: now, last: map[string]*reading{}},
		counts:   counts{most: o.Most, perCaller: o.PerCaller, callers: map[string]int{}},
	}
	var u *users
	if o.Users != "" {
		if u, err = readUsers(o.Users, now); err != nil {
			return nil, err
		}
	}
	if h.jobs, err = openJobs(st.dir, now()); err != nil {
		return nil, err
	}
	if h.log, err = openLog(st.dir, now); err != nil {
		h.jobs.close()
		return nil, err
	}
	// What one feed or subscriber at a host says is not to silence the others there,
	// who are strangers to it: it is heeded for each.
	o.Feeds.Undeterred, o.Callbacks.Undeterred = true, true
	o.Callbacks.PerHost = (1 + slowFor) * perHost // the limit of calls counts
	h.feeds = fetch.NewClient(o.Feeds)
	h.reader = reader{h, readWait}
	h.notifier = notifier{h, fetch.NewClient(o.Callbacks), semaphore.NewWeighted(heldMost)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.adopt() // before requests begin jobs, which those of an earlier version would replace
	for hash, f := range h.jobs.documents() {
		h.record(hash, f) // which a kill has prevented
	}
	return &Hub{engine: h, users: u, patience: waitMost}, nil
}

// Close ends what goes on, which the next hub finishes, and waits until it has
// ended.
func (h *Hub) Close() {
	h.stop()
	h.working.Wait()
	h.feeds.Close()
	h.notifier.callbacks.Close()
	h.jobs.close()
	h.log.Close()
}

// Run finishes what an earlier hub began, does what is to be done later, and removes at
// the top of every hour who is to be removed, until ctx ends, which is no error.
func (h *Hub) Run(ctx context.Context) error {
	h.hurry()
	h.working.Go(func() { h.sweep(false) })
	if h.opts.Ready != nil {
		h.opts.Ready()
	}
	var top time.Time
	for {
		next, now := h.due(), h.now()
		switch left := top.Sub(now); {
		case left <= 0 && !top.IsZero():
			h.sweep(true)
			fallthrough
		case left > time.Hour, top.IsZero():
			top = now.Truncate(time.Hour).Add(time.Hour)
		}
		if next.IsZero() || top.Before(next) {
			next = top
		}
		timer := time.NewTimer(max(0, min(next.Sub(now), time.Minute))) // a machine sleeps, and clocks are set
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-h.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// due begins the jobs that are due, and returns when there will be more; zero for never.
func (h *engine) due() time.Time {
	w := h.jobs.begin(h.now(), max(h.opts.PingGap, mostAfter))
	for hash, j := range w.pings {
		h.working.Go(func() { h.reader.pingLate(hash, j) })
	}
	for _, hash := range w.records {
		h.working.Go(func() { h.recordAgain(hash) })
	}
	for _, p := range w.passes {
		h.working.Go(func() { h.notifier.pass(p) })
	}
	return w.next
}

// known returns what is known of a feed.
func (h *engine) known(hash string) (feedState, error) {
	if f := h.jobs.document(hash); f != nil {
		return *f, nil
	}
	return h.readFeed(hash)
}

// record writes the state of a feed to its file, after its subscribers were added to the
// table. If that fails, the table keeps the document, and it is recorded later. The caller
// holds recording, except New.
func (h *engine) record(hash string, f feedState) {
	if err := h.writeFeed(hash, f); err != nil {
		h.report.Warn("%v", err)
		h.jobs.notRecorded(hash, h.now())
		return
	}
	h.jobs.hasRecorded(hash)
}

// recordAgain records the document of a feed that the disk refused before.
func (h *engine) recordAgain(hash string) {
	h.recording.Lock()
	defer h.recording.Unlock()
	f := h.jobs.document(hash)
	if f == nil {
		return // a newer one was recorded meanwhile
	}
	if err := h.writeFeed(hash, *f); err != nil {
		h.report.Warn("%v", err)
		return
	}
	h.jobs.hasRecorded(hash)
}

// hurry does what is due at once, after a job was added, or an earlier hub left it.
func (h *engine) hurry() {
	h.due()
	h.poke()
}

// poke makes Run look at what is due.
func (h *engine) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// sweep is that of the state, after which the counts are right.
func (h *Hub) sweep(clean bool) {
	if clean {
		// By the real clock, which the file system has, too.
		atomicfile.SweepTree(h.dir, time.Now())
	}
	s, err := h.states.sweep(clean, h.now, func() bool { return h.ctx.Err() != nil }, h.report.Warn)
	if err != nil {
		h.report.Warn("%v", err)
	}
	if err != nil || h.ctx.Err() != nil {
		return
	}
	h.counts.set(s)
	if s.Expired+s.Failed > 0 {
		h.log.add("swept", "", "%d expired, %d failed, %d left", s.Expired, s.Failed, s.Kept)
	}
}

// counts are those of subscriptions. They are right after a sweep, and nearly so
// until the next: one that was made during a sweep may not count. They may be used by many
// goroutines.
type counts struct {
	most, perCaller int // of all, and of a caller

	mu      sync.Mutex
	all     int
	callers map[string]int
}

func (c *counts) set(s swept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.callers = s.Kept, s.callers
}

// get returns the number of all subscriptions.
func (c *counts) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// add counts n subscriptions of a caller that were made; below zero, that have ended.
func (c *counts) add(caller string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += n
	if c.callers[caller] += n; c.callers[caller] <= 0 {
		delete(c.callers, caller)
	}
}

// room returns the error for a caller who cannot have one more subscription.
func (c *counts) room(caller string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.all >= c.most:
		return errFull
	case c.callers[caller] >= c.perCaller:
		return errTooMany
	}
	return nil
}

// caller names who made a request: an address, or a network of 64 bits by IPv6, in
// which one has as many addresses as one likes.
func (h *Hub) caller(r *http.Request) (netip.Addr, string) {
	addr := serve.Peer(r, h.opts.TrustedProxies)
	// Who comes so, and is not trusted, is a proxy of the user's own as a rule, by which
	// all are one caller.
	if r.Header.Get("X-Forwarded-For") != "" && fetch.Private(addr) && addr == serve.Peer(r, nil) {
		h.proxied.Do(func() {
			h.report.Warn("%s says for whom it calls (X-Forwarded-For) and is not believed; if it is your proxy, give --trusted-proxy %[1]s", addr)
		})
	}
	return addr, network(addr)
}

// ServeHTTP is the hub. Paths count in any case and with a slash at the end.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Cache-Control", "no-store")
	path := strings.ToLower(strings.TrimRight(r.URL.Path, "/"))
	if base := h.base(); base != "" {
		path = strings.TrimPrefix(path, strings.ToLower(base)) // where a proxy does not take it away
	}
	handler := map[string]http.HandlerFunc{
		"/pleasenotify": h.pleaseNotify, "/rsscloud/pleasenotify": h.pleaseNotify,
		"/ping": h.pingREST, "/rsscloud/ping": h.pingREST, "/rpc2": h.rpc2, "/websub": h.websub,
	}[path]
	switch {
	case handler != nil && r.Method == http.MethodPost:
		handler(w, r)
	case handler != nil:
		head.Set("Allow", "POST")
		text := "only POST; a form to try it is at /"
		if h.opts.NoPage {
			text = "only POST"
		}
		http.Error(w, text, http.StatusMethodNotAllowed)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	case path == "" && !h.opts.NoPage:
		h.page(w, r)
	case strings.HasPrefix(path, savedPath):
		h.saved(w, r)
	default:
		http.NotFound(w, r)
	}
}

// base is the path of the public URL, without a slash at the end; "" for none.
func (h *Hub) base() string {
	if h.opts.Public == nil {
		return ""
	}
	if p := strings.Trim(h.opts.Public.Path, "/"); p != "" {
		return "/" + p
	}
	return ""
}

// public returns the URL of one of our paths.
func (h *engine) public(path string) string {
	return strings.TrimRight(h.opts.Public.String(), "/") + path
}

// challenge returns 20 characters at random, as the walkthrough's cloud does.
func challenge() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
