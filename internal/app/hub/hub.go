// Package hub implements lektor-cloudd hub: an rssCloud server and a WebSub hub, which
// notifies subscribers of a feed after its publisher has announced an update.
//
// All state of feeds and subscribers is in files, see [states]. Pings that arrive while a
// feed is read share the next reading, see [readings]. If the document has changed, a job
// is added for each subscriber. Handlers add [jobs], and [Hub.hurry] begins those that are
// due. [subscription] is a value that decides when a subscription ends.
package hub

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/http/limiter"
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
	// DefaultTimeout limits an exchange with a feed's server or a subscriber. It must be
	// less than MaxTimeout, because callers wait for the result.
	DefaultTimeout = 7 * time.Second
	MaxTimeout     = 8 * time.Second
)

// Options are the options of [Serve], and of a [Hub].
type Options struct {
	httpserver.Options
	State string // directory of the state, created if missing

	// Public is the URL of the hub for clients. [Serve] sets it if it is nil.
	Public *url.URL
	// TrustedProxies are the networks of proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Feeds configures the requests for feeds, Callbacks those to subscribers. AllowPrivate
	// lists the private addresses that each may use.
	Feeds, Callbacks fetch.Config
	// Allowed are prefixes of feed URLs that are read at each ping, even without
	// subscribers.
	Allowed []string
	// Users is the file of users who may store feeds here (htpasswd, bcrypt); "" for none.
	Users string

	MaxURLs   int           // maximum of feeds in a request
	PerCaller int           // maximum of subscriptions of one caller
	Most      int           // maximum of all subscriptions
	AtOnce    int           // notifications at the same time
	PingGap   time.Duration // minimum time between two readings of a feed for pings
	MaxSave   int           // maximum size of a feed that is stored here, in bytes
	MaxForm   int           // maximum size of a form, in bytes

	NoPage  bool // disables the page
	Verbose bool // reports the lines of the log
	Now     func() time.Time
	// AfterFunc is the timer of slow requests to callbacks; see [limiter.Options].
	AfterFunc func(time.Duration, func()) (stop func())
	// Ready is called once, when requests are served; nil for none.
	Ready func()
}

// Fixed limits:
const (
	readMost    = 64                     // feeds that are read at once
	readOne     = 8                      // the same for one caller
	readWait    = 30 * time.Second       // timeout for the turn to read a feed
	readLater   = 10 * time.Second       // wait for another reading if the hub was too busy
	verifyMost  = 64                     // callbacks that are verified at once
	verifyOne   = 16                     // the same for one caller
	saveMost    = 3                      // large bodies that are read at once
	saveOne     = 1                      // the same for one caller
	waitMost    = 3 * time.Second        // wait of a ping for the notifications
	handOver    = 500 * time.Millisecond // time after which a request to a callback is slow
	slowFor     = 8                      // slow requests to callbacks, for each of AtOnce or PerHost
	heldMost    = 64 << 20               // bytes of content that waits for subscribers
	rememberFor = 10 * time.Minute       // age up to which a reading is used for subscribers
	rememberErr = time.Minute            // the same for a failed reading
	remember    = 10_000                 // entries of a table before old ones are removed
)

// Hub is a hub. [Hub.ServeHTTP] serves it while [Hub.Run] runs.
type Hub struct {
	*shared
	users    *users        // nil if no feeds are stored here
	pingWait time.Duration // how long a ping waits for the notifications
	proxied  sync.Once     // limits the warning about an untrusted proxy
}

// shared is the part of a hub that jobs and handlers share.
type shared struct {
	states states
	opts   Options
	report httpserver.Reporter
	now    func() time.Time
	log    *logbook

	background background

	limits limits
	budget budget
	jobs   *jobs

	readings readings
	counts   counts
	feeds    *fetch.Client

	reader   feedReader
	notifier notifier
}

// background holds the goroutines that continue after a request was answered.
type background struct {
	ctx     context.Context
	stop    context.CancelFunc
	working sync.WaitGroup
	wake    chan struct{} // makes Run look for due jobs
}

// limits are the limiters of concurrent work, by kind.
type limits [4]*limiter.Limiter

const (
	reads     = iota // readings of feeds, by caller
	verifying        // verifications of callbacks, by caller
	saving           // large bodies, by caller
	calling          // requests to callbacks, by server
)

// New opens the state of a hub. The caller must call Close.
func New(o Options, report httpserver.Reporter) (*Hub, error) {
	st, err := openStates(o.State)
	if err != nil {
		return nil, err
	}
	now := func() time.Time { return o.Now().Round(0) }
	atOnce, perHost := max(o.AtOnce, 1), max(o.Callbacks.PerHost, 1)
	h := &shared{
		states: st, opts: o, report: report, now: now,
		limits: limits{
			reads:     limiter.New(limiter.Options{All: readMost, Each: readOne}),
			verifying: limiter.New(limiter.Options{All: verifyMost, Each: verifyOne}),
			saving:    limiter.New(limiter.Options{All: saveMost, Each: saveOne}),
			calling: limiter.New(limiter.Options{
				All: atOnce, Each: perHost, After: handOver, SlowAll: slowFor * atOnce, SlowEach: slowFor * perHost,
				AfterFunc: o.AfterFunc,
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
	// A Retry-After of one feed or subscriber must not delay others on the same host, who
	// may be strangers to it. The hub keeps such pauses for each one itself.
	o.Feeds.Undeterred, o.Callbacks.Undeterred = true, true
	o.Callbacks.PerHost = (1 + slowFor) * perHost // limits.calling is the limit in effect
	h.feeds = fetch.NewClient(o.Feeds)
	h.reader = feedReader{h, readWait}
	h.notifier = notifier{h, fetch.NewClient(o.Callbacks), semaphore.NewWeighted(heldMost)}
	h.background.ctx, h.background.stop = context.WithCancel(context.Background())
	for hash, doc := range h.jobs.documents { // some may not have been recorded before a kill
		f, err := st.readFeed(hash)
		if err == nil && f.Digest != "" && f.Digest != doc.Digest && !f.Changed.After(doc.Changed) {
			h.record(hash, doc)
		}
	}
	return &Hub{shared: h, users: u, pingWait: waitMost}, nil
}

// Close stops the work in the background and waits for its end. The next hub continues it.
func (h *Hub) Close() {
	h.background.stop()
	h.background.working.Wait()
	h.feeds.Close()
	h.notifier.callbacks.Close()
	h.jobs.close()
	h.log.Close()
}

// Run continues the work of an earlier hub, begins jobs when they are due, and removes
// ended subscriptions at each full hour. It returns nil when ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	h.hurry()
	h.background.working.Go(func() { h.sweep(false) })
	if h.opts.Ready != nil {
		h.opts.Ready()
	}
	var top time.Time
	for {
		next, now := h.due(), h.now()
		switch untilSweep := top.Sub(now); {
		case untilSweep <= 0 && !top.IsZero():
			h.sweep(true)
			fallthrough
		case untilSweep > time.Hour, top.IsZero():
			top = now.Truncate(time.Hour).Add(time.Hour)
		}
		if next.IsZero() || top.Before(next) {
			next = top
		}
		// wake at least every minute: machines sleep, and clocks are set
		select {
		case <-ctx.Done():
			return nil
		case <-h.background.wake:
		case <-time.After(min(next.Sub(now), time.Minute)):
		}
	}
}

// due begins the jobs that are due, and returns when the next ones are; zero for never.
func (h *shared) due() time.Time {
	w := h.jobs.begin(h.now(), max(h.opts.PingGap, mostAfter), h.states.subscribedTo)
	for hash, j := range w.pings {
		h.background.working.Go(func() { h.reader.pingLate(hash, j) })
	}
	for _, p := range w.rounds {
		h.background.working.Go(func() { h.notifier.notifyRound(p) })
	}
	return w.next
}

// record writes the newest document of a feed to its file, after its subscribers were added to the
// table. If that fails, the next ping notifies them again.
func (h *shared) record(hash string, f feedState) {
	if err := h.states.writeFeed(hash, f); err != nil {
		h.report.Warn("%v", err)
	}
}

// joining is called before a feed is read for a new subscription. The caller calls left
// when the subscription is made or refused.
func (h *shared) joining(hash string) (left func()) {
	h.jobs.join(hash, 1)
	return func() {
		h.jobs.join(hash, -1)
		h.hurry()
	}
}

// hurry begins due jobs at once, and wakes Run.
func (h *shared) hurry() {
	h.due()
	h.poke()
}

// poke makes Run look for due jobs.
func (h *shared) poke() {
	select {
	case h.background.wake <- struct{}{}:
	default:
	}
}

// sweep counts the subscriptions and, with clean, removes those that have ended.
func (h *Hub) sweep(clean bool) {
	if clean {
		// Modification times are by the real clock.
		atomicfile.SweepTree(h.states.dir, time.Now())
	}
	s, err := h.states.sweep(clean, h.now, func() bool { return h.background.ctx.Err() != nil }, h.report.Warn)
	if err != nil {
		h.report.Warn("%v", err)
	}
	if err != nil || h.background.ctx.Err() != nil {
		return
	}
	h.counts.set(s)
	if s.Expired+s.Failed > 0 {
		h.log.add("swept", "", "%d expired, %d failed, %d left", s.Expired, s.Failed, s.Kept)
	}
}

// counts are the numbers of subscriptions. They are exact after a sweep, and approximate
// until the next one, because subscriptions may begin or end during the sweep. They are
// safe for concurrent use.
type counts struct {
	most, perCaller int // maximum of all, and of one caller

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

// add adds n to the number of subscriptions of a caller; n may be negative.
func (c *counts) add(caller string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += n
	if c.callers[caller] += n; c.callers[caller] <= 0 {
		delete(c.callers, caller)
	}
}

// checkLimit returns an error for a new subscription whose caller cannot have another one.
func (h *shared) checkLimit(s *subscription) error {
	if _, err := h.states.read(hashOf(s.Feed), s.key()); err == nil {
		return nil
	}
	c := &h.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.all >= c.most:
		return errFull
	case c.callers[s.Caller] >= c.perCaller:
		return errTooMany
	}
	return nil
}

// caller returns the address of the caller of a request, and a name for its limits: an IPv4
// address or an IPv6 /64 network.
func (h *Hub) caller(r *http.Request) (netip.Addr, string) {
	addr := httpserver.Peer(r, h.opts.TrustedProxies)
	// A private address that sends X-Forwarded-For is probably the user's own proxy. Unless
	// it is trusted, all callers share one limit.
	if r.Header.Get("X-Forwarded-For") != "" && fetch.Private(addr) && addr == httpserver.Peer(r, nil) {
		h.proxied.Do(func() {
			h.report.Warn("%s sends X-Forwarded-For, but is not trusted; if it is your proxy, use --trusted-proxy %[1]s", addr)
		})
	}
	return addr, network(addr)
}

// ServeHTTP serves the hub. Paths are compared without regard to case and a final slash.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Cache-Control", "no-store")
	path := strings.ToLower(strings.TrimRight(r.URL.Path, "/"))
	if base := h.base(); base != "" {
		path = strings.TrimPrefix(path, strings.ToLower(base)) // for proxies that do not remove it
	}
	handler := h.calls()[path]
	switch {
	case handler != nil && r.Method == http.MethodPost:
		handler(w, r)
	case handler != nil:
		header.Set("Allow", "POST")
		text := "only POST; a form to try it is at /"
		if h.opts.NoPage {
			text = "only POST"
		}
		http.Error(w, text, http.StatusMethodNotAllowed)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	case path == "" && !h.opts.NoPage:
		h.page(w, r)
	case strings.HasPrefix(path, savedPath):
		h.saved(w, r)
	default:
		http.NotFound(w, r)
	}
}

// calls returns the handlers of POST requests, by path in lower case.
func (h *Hub) calls() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/pleasenotify": h.pleaseNotify, "/rsscloud/pleasenotify": h.pleaseNotify,
		"/ping": h.pingREST, "/rsscloud/ping": h.pingREST, "/rpc2": h.rpc2, "/websub": h.websub,
	}
}

// base returns the path of the public URL, without a final slash; "" for none.
func (h *Hub) base() string {
	if p := strings.Trim(h.opts.Public.Path, "/"); p != "" {
		return "/" + p
	}
	return ""
}

// public returns the URL of a path of the hub.
func (h *shared) public(path string) string {
	return strings.TrimRight(h.opts.Public.String(), "/") + path
}

// challenge returns 20 random characters, as the cloud of the walkthrough does.
func challenge() string {
	return rand.Text()[:20]
}
