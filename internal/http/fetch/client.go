// Package fetch requests feed documents, with consideration for servers.
//
// [Client] makes the exchanges: conditional requests, redirects, compression, limits in time and
// size, limits and gaps per host. It supports http, https, file: and exec: sources. It does not
// parse documents, and it keeps no state between runs.
package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// Defaults of [Config].
const (
	DefaultUserAgent    = "lektor-fetch (+https://github.com/lektordir/lektor)"
	DefaultPerHost      = 1
	DefaultGap          = 250 * time.Millisecond
	DefaultDeadline     = 30 * time.Second
	DefaultMaxBytes     = 16 << 20
	DefaultMaxDecoded   = 16 << 20
	DefaultMaxRedirects = 10
	DefaultMaxHeader    = 256 << 10
)

const (
	maxIdle     = 64               // idle connections of all hosts
	idleTimeout = 10 * time.Second // how long an idle connection is kept
	bigBodies   = 2                // bodies over a megabyte that are read or held at the same time
	drainBytes  = 4 << 10          // bytes read of an unwanted body, so that the connection can be reused
)

// accept prefers types of feeds; pages are accepted for autodiscovery.
const accept = "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, " +
	"application/xml;q=0.9, text/xml;q=0.9, application/activity+json;q=0.8, application/json;q=0.8, text/html;q=0.7, */*;q=0.5"

// acceptPage prefers HTML, as some servers have a version for machines under the same URL.
const acceptPage = "text/html, application/xhtml+xml, */*;q=0.1"

// MaxPage is the maximum size in bytes of a page requested with [httpmsg.Request].Page, as transferred and
// decoded. Larger pages are applications or whole sites.
const MaxPage = 8 << 20

// Config is the configuration of a [Client]. A zero field means its default, except for Gap.
type Config struct {
	// UserAgent is sent with every request; it should name the program, its version and its home
	// page.
	UserAgent string
	// PerHost is the maximum number of concurrent requests to one host and port. The caller decides
	// how many hosts are requested concurrently, by its calls of Get.
	PerHost int
	// Gap is the time between the end of a request and the start of the next
	// one to the same host and port. 0 means none; see [DefaultGap].
	Gap time.Duration
	// Deadline is the time for one exchange, from the name lookup to the last byte after all
	// redirects, without the wait for the host.
	Deadline time.Duration
	// MaxBytes limits a body as transferred (and the output of a command), MaxDecoded the body
	// after decompression.
	MaxBytes, MaxDecoded int64
	// MaxRedirects limits the redirects of one exchange.
	MaxRedirects int
	// MaxHeader limits the header of a response, in bytes.
	MaxHeader int64
	// AllowPrivate are prefixes of private addresses that are treated as public: redirects from
	// public hosts may lead there, and documents may name them. Link-local, unspecified and
	// multicast addresses, and those of metadata services of clouds, are refused unless listed
	// here.
	AllowPrivate []netip.Prefix
	// Undeterred does not block a host after Retry-After; for a host that is shared with unrelated
	// users.
	Undeterred bool

	// Now and Sleep replace the clock. Sleep returns early with an error when ctx ends. Network
	// deadlines always use real time.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// Resolver and Dial, if not nil, look up names and make connections. The remote address of a
	// connection that Dial made is checked too.
	Resolver *net.Resolver
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	// Proxy chooses a proxy as in [http.Transport]; nil means none. The address that a proxy
	// connects to cannot be checked: behind a proxy, only IP addresses and localhost are recognised
	// as private.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS, if not nil, is the base of the configuration of TLS connections.
	TLS *tls.Config
}

// DefaultConfig returns the default configuration of commands.
func DefaultConfig() Config {
	return Config{Gap: DefaultGap}.withDefaults()
}

func (cfg Config) withDefaults() Config {
	cfg.UserAgent = cmp.Or(cfg.UserAgent, DefaultUserAgent)
	cfg.PerHost = cmp.Or(cfg.PerHost, DefaultPerHost)
	cfg.Deadline = cmp.Or(cfg.Deadline, DefaultDeadline)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	cfg.MaxDecoded = cmp.Or(cfg.MaxDecoded, DefaultMaxDecoded)
	cfg.MaxRedirects = cmp.Or(cfg.MaxRedirects, DefaultMaxRedirects)
	cfg.MaxHeader = cmp.Or(cfg.MaxHeader, DefaultMaxHeader)
	cfg.Gap = max(cfg.Gap, 0)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Sleep == nil {
		cfg.Sleep = workers.Sleep
	}
	return cfg
}

// Client fetches documents. It is safe for concurrent use. A process should use one client for all
// requests, as the limits per host are those of a client.
//
// Requests to one host and port are made in the order of the calls, PerHost at a time, with Gap
// between them. If a host answers 429 or 503 with Retry-After, all further requests of this client
// to that host are held back until then, including those for other feeds; retryAfter has the
// exceptions. A wait of a few seconds is waited for; for a longer one they fail with a
// [httpmsg.HostDelayError] and send nothing.
type Client struct {
	cfg   Config
	gates *gates
	// strict connects to public addresses only, open also to private ones. The pools are separate,
	// so that no redirect reuses a connection that it could not have made.
	strict, open *http.Transport
	big          *semaphore.Weighted // bodies over a megabyte
	date         atomic.Int64        // see Date, in seconds
}

// NewClient returns a client. The caller must close it after the last request.
func NewClient(cfg Config) *Client {
	cfg = cfg.withDefaults()
	c := &Client{
		cfg:   cfg,
		gates: newGates(cfg),
		big:   semaphore.NewWeighted(bigBodies),
	}
	c.strict, c.open = c.transport(true), c.transport(false)
	return c
}

// maxAhead is how far a server's clock may be ahead of ours; a Date further ahead is ignored.
const maxAhead = 24 * time.Hour

// Date returns the latest Date that a server has sent, and the zero time before the first. It
// ignores a Date more than a day ahead of our clock, as then the server's clock is wrong.
func (c *Client) Date() time.Time {
	if s := c.date.Load(); s != 0 {
		return time.Unix(s, 0)
	}
	return time.Time{}
}

// noteDate records the Date of a response.
func (c *Client) noteDate(h http.Header) {
	t, err := http.ParseTime(h.Get("Date"))
	if err != nil || t.After(c.cfg.Now().Add(maxAhead)) {
		return
	}
	for s := t.Unix(); ; {
		old := c.date.Load()
		if s <= old || c.date.CompareAndSwap(old, s) {
			return
		}
	}
}

// Close closes the idle connections.
func (c *Client) Close() {
	c.strict.CloseIdleConnections()
	c.open.CloseIdleConnections()
}

func (c *Client) transport(strict bool) *http.Transport {
	t := &http.Transport{
		Proxy:                  c.cfg.Proxy,
		DialContext:            c.dialer(strict),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // decoded by this package, with limits
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    c.cfg.PerHost,
		IdleConnTimeout:        idleTimeout + c.cfg.Gap,
		MaxResponseHeaderBytes: c.cfg.MaxHeader,
	}
	if c.cfg.TLS != nil {
		t.TLSClientConfig = c.cfg.TLS.Clone()
	}
	return t
}

// noProbes turns off TCP keep-alive probes: exchanges have a deadline, and connections are kept for
// a short time only.
const noProbes time.Duration = -1

// viaProxy is the key of a context value that is set if a request goes through a proxy, whose
// address the user chose.
type viaProxy struct{}

func (c *Client) dialer(strict bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if ctx.Value(viaProxy{}) != nil {
			if c.cfg.Dial != nil {
				return c.cfg.Dial(ctx, network, addr)
			}
			return (&net.Dialer{Resolver: c.cfg.Resolver, KeepAlive: noProbes}).DialContext(ctx, network, addr)
		}
		if c.cfg.Dial != nil {
			conn, err := c.cfg.Dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			if err := c.check(conn.RemoteAddr().String(), strict); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return conn, nil
		}
		// Check the address right before the connection is made: another lookup could return a
		// different one. Several addresses may be tried, even concurrently.
		refused := make(chan error, 1)
		d := net.Dialer{
			Resolver:  c.cfg.Resolver,
			KeepAlive: noProbes,
			ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
				err := c.check(address, strict)
				if err != nil {
					select {
					case refused <- err:
					default:
					}
				}
				return err
			},
		}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			select {
			case err = <-refused:
			default:
			}
			return nil, err
		}
		return conn, nil
	}
}

// check returns an error if an address (with port) is never allowed, or is private and strict is
// set.
func (c *Client) check(address string, strict bool) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	switch s := standingOf(ap.Addr(), c.cfg.AllowPrivate); {
	case s == never:
		return &httpmsg.PrivateError{Addr: ap.Addr(), Never: true}
	case s == private && strict:
		return &httpmsg.PrivateError{Addr: ap.Addr()}
	}
	return nil
}

// exchange is one call of Get.
type exchange struct {
	c           *Client
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
	page        bool // see Request.Page
	held        bool // the body holds a place for big bodies
	// privateOK is set while a private address is the user's choice.
	privateOK bool
	timer     *time.Timer
	remaining time.Duration // until the deadline
	since     time.Time
	// received and answered describe the response to the current hop.
	received int64
	answered bool
	local    bool // the server has a private address
}

// begin begins an exchange. The caller must call end.
func (c *Client) begin(ctx context.Context) *exchange {
	x := &exchange{c: c, parent: ctx, remaining: c.cfg.Deadline}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

func (x *exchange) end() {
	x.pause()
	x.cancel(nil)
}

// run and pause start and stop the clock of the deadline, which is in real time, as it limits the
// network.
func (x *exchange) run() {
	x.since = time.Now()
	x.timer = time.AfterFunc(x.remaining, func() { x.cancel(errDeadline) })
}

func (x *exchange) pause() {
	if x.timer != nil {
		x.timer.Stop()
		x.remaining -= time.Since(x.since)
		x.timer = nil
	}
}

// enterBig waits for one of the places for big bodies, which limit the use of memory.
func (x *exchange) enterBig() error {
	if !x.c.big.TryAcquire(1) {
		x.pause()
		defer x.run()
		if err := x.c.big.Acquire(x.ctx, 1); err != nil {
			return context.Cause(x.ctx)
		}
	}
	x.held = true
	return nil
}

func (x *exchange) leaveBig() {
	if x.held {
		x.held = false
		x.c.big.Release(1)
	}
}

// follow calls hop with u, and with each URL that hop returns, until hop returns nil or an error.
// origin is the URL of the document that named u, "" for none.
func (x *exchange) follow(u *url.URL, origin string, hop func(u *url.URL) (next *url.URL, err error)) error {
	first, most := u, x.c.cfg.MaxRedirects
	visited := map[string]bool{}
	for redirects := 0; redirects <= most; redirects++ {
		visited[u.String()] = true
		next, err := hop(u)
		if refused := (*httpmsg.PrivateError)(nil); errors.As(err, &refused) && redirects == 0 {
			refused.Origin = feedurl.Public(origin)
		}
		if err != nil || next == nil {
			return err
		}
		if visited[next.String()] {
			return &httpmsg.RedirectError{URL: feedurl.Display(u), Target: next.String(),
				Reason: "it is a redirect loop (the server may require a cookie, and lektor stores none)"}
		}
		u = next
	}
	return &httpmsg.LimitError{URL: feedurl.Display(first), Limit: "redirects", Max: int64(most),
		Flag: httpmsg.FlagMaxRedirects}
}

// request returns a GET request for u.
func (c *Client) request(u *url.URL, accept, encoding string) *http.Request {
	return &http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {c.cfg.UserAgent}, "Accept": {accept}, "Accept-Encoding": {encoding}},
	}
}

// withoutUser returns u without its userinfo, and the userinfo, nil if there is none.
func withoutUser(u *url.URL) (*url.URL, *url.Userinfo) {
	plain := *u
	plain.User = nil
	return &plain, u.User
}

// authorize adds a user and password to a request, unless user is nil.
func authorize(req *http.Request, user *url.Userinfo) {
	if user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
}

// Get fetches a document, following redirects. It returns a response for 200, 203 and 304, and an
// error for every other status. The text of an error names the URL and, if possible, a remedy. A
// document that was cut off is returned with [httpmsg.Response].Truncated set.
//
// If ctx ends, the error wraps the cause of ctx.
func (c *Client) Get(ctx context.Context, r *httpmsg.Request) (*httpmsg.Response, error) {
	switch scheme, rest, _ := strings.Cut(strings.TrimSpace(r.URL), ":"); strings.ToLower(scheme) {
	case "file":
		return c.getFile(r, rest)
	case "exec":
		if !r.AllowExec {
			return nil, &feedurl.Error{URL: r.URL,
				Reason: "commands are run only for a subscription in a directory that nobody else can write to"}
		}
		return c.getExec(ctx, r, rest)
	}
	return c.getHTTP(ctx, r)
}

// getHTTP is Get for an http or https URL.
func (c *Client) getHTTP(ctx context.Context, r *httpmsg.Request) (*httpmsg.Response, error) {
	u, err := feedurl.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	x := c.begin(ctx)
	defer x.end()
	x.page, x.privateOK = r.Page, !r.Stranger && (r.Origin == "" || vouched(r.Origin, u))
	origin, user := withoutUser(u)
	accepted := accept
	if r.Page {
		accepted = acceptPage
	}
	validated := cmp.Or(r.Validated, origin.String())
	trusted := true // all URLs so far have the feed's own origin, so credentials may be sent
	lasting := true // all redirects so far were permanent
	res := &httpmsg.Response{}
	err = x.follow(origin, r.Origin, func(u *url.URL) (*url.URL, error) {
		trusted = trusted && feedurl.SameOriginURL(origin, u)
		ask := func(conditional bool) (*redirect, error) {
			req := c.request(u, accepted, acceptEncoding)
			req.Close = r.Last
			if trusted {
				authorize(req, user)
				own(r, req.Header)
			}
			return x.hop(u, req, res, conditional && conditions(r, req.Header))
		}
		next, err := ask(u.String() == validated)
		if errors.Is(err, errOtherDocument) {
			next, err = ask(false)
		}
		if next == nil {
			return nil, err
		}
		if lasting = lasting && next.lasting && !(u.Scheme == "https" && next.to.Scheme == "http"); lasting {
			res.Moved = httpmsg.Move{To: next.to.String(), Public: !x.privateOK}
		}
		return next.to, nil
	})
	if r.Hold && err == nil && x.held {
		res.Leave = x.leaveBig
	} else {
		x.leaveBig()
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// own adds the header fields of the user to h, except names that the protocol reserves.
func own(r *httpmsg.Request, h http.Header) {
	for name, values := range r.Header {
		if httpmsg.CheckName(name) == nil {
			h[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// conditions adds the request's validators to h, and reports whether there are any.
func conditions(r *httpmsg.Request, h http.Header) (conditional bool) {
	for name, v := range map[string]string{"If-None-Match": r.ETag, "If-Modified-Since": r.LastModified} {
		if v != "" && httpmsg.Sendable(v) {
			h[name] = []string{v}
			conditional = true
		}
	}
	return conditional
}

// send makes one request in a place of the host. done closes the body of the response and releases
// the place.
func (x *exchange) send(req *http.Request) (resp *http.Response, done func(), err error) {
	host := hostKey(req.URL)
	x.pause()
	var leave func()
	if err = x.c.gates.rest(x.ctx, req.URL.String()); err == nil {
		leave, err = x.c.gates.enter(x.ctx, host)
	}
	if err != nil {
		if delay, ok := errors.AsType[*httpmsg.HostDelayError](err); ok {
			delay.URL, delay.Host = feedurl.Display(req.URL), serviceOf(host)
			return nil, nil, delay
		}
		return nil, nil, x.classify(req.URL, err)
	}
	x.run()
	x.received, x.answered = 0, false
	if resp, err = x.roundTrip(req); err != nil {
		leave()
		return nil, nil, x.classify(req.URL, err)
	}
	x.answered = true
	x.c.noteDate(resp.Header)
	return resp, func() { resp.Body.Close(); leave() }, nil
}

// retryAfter returns the Retry-After of a 429 or 503 response, or the X-RateLimit-Reset of a 429,
// counted from when it was received, and blocks the host, or its service, for that time. A host at a
// private address blocks only the URL: one bridge there serves many sites, and passes on what one of
// them says.
func (x *exchange) retryAfter(resp *http.Response, received time.Time) (wait time.Duration) {
	header, blocked := textproto.MIMEHeader(resp.Header), serviceOf(hostKey(resp.Request.URL))
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		wait = cmp.Or(httpmsg.RetryAfter(header, received), httpmsg.ResetAfter(header, received))
	case http.StatusServiceUnavailable:
		wait = httpmsg.RetryAfter(header, received)
	}
	if x.local {
		blocked = resp.Request.URL.String()
	}
	if wait > 0 && !x.c.cfg.Undeterred {
		x.c.gates.block(blocked, resp.StatusCode, wait)
	}
	return wait
}

// redirect is the target of a redirect; lasting is set for 301 and 308.
type redirect struct {
	to      *url.URL
	lasting bool
}

// errOtherDocument is the error of hop for a 304 that is about another document than the validators
// of the request.
var errOtherDocument = errors.New("the document has not changed since another one than that of the request")

// confirms reports whether a 304 with the header got is about the document whose validators were sent
// (RFC 9111, section 4.3.4). Some servers compare only whether a date is later: a document that
// changed to one with an earlier date is new to the client.
func confirms(sent, got http.Header) bool {
	tag := func(s string) string { return strings.TrimPrefix(strings.TrimSpace(s), "W/") }
	if is, was := got.Get("ETag"), sent.Get("If-None-Match"); is != "" && was != "" {
		return tag(is) == tag(was)
	}
	is, was := got.Get("Last-Modified"), sent.Get("If-Modified-Since")
	if is == "" || was == "" || is == was {
		return true
	}
	a, aerr := http.ParseTime(is)
	b, berr := http.ParseTime(was)
	return aerr == nil && berr == nil && a.Equal(b)
}

// hop makes one request. It returns the redirect of the response, or nil after it has filled res.
func (x *exchange) hop(u *url.URL, req *http.Request, res *httpmsg.Response, conditional bool) (*redirect, error) {
	resp, done, err := x.send(req)
	if err != nil {
		return nil, err
	}
	defer done()
	res.Received = x.c.cfg.Now()
	fail := func(detail string) error {
		drain(resp)
		return statusError(feedurl.Display(u), resp.StatusCode, x.retryAfter(resp, res.Received), detail)
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo:
		if t := resp.Header.Get("Content-Type"); x.page && !isPage(t) {
			drain(resp)
			return nil, &httpmsg.TypeError{URL: feedurl.Display(u), Type: t}
		}
		if err := x.readBody(u, resp, res); err != nil {
			return nil, err
		}
	case http.StatusNotModified:
		if !conditional {
			return nil, fail("the request was not conditional")
		}
		if !confirms(req.Header, resp.Header) {
			drain(resp)
			return nil, errOtherDocument
		}
		res.NotModified = true
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		next, err := redirected(u, resp, fail)
		if err != nil {
			return nil, err
		}
		return &redirect{next, resp.StatusCode == http.StatusMovedPermanently ||
			resp.StatusCode == http.StatusPermanentRedirect}, nil
	default:
		return nil, fail("")
	}
	res.Status, res.Header, res.FinalURL = resp.StatusCode, textproto.MIMEHeader(resp.Header), feedurl.Display(u)
	res.ETag, res.LastModified = httpmsg.Validators(res.Header)
	// A document may change twice within one second, with the same Last-Modified. A date is
	// therefore a validator only if it is at least a second old (RFC 9110, section 8.8.2.2).
	if age, ok := modifiedAgo(resp.Header); ok && age.Abs() < time.Second && res.ETag == "" {
		res.LastModified = ""
	}
	return nil, nil
}

// isPage reports whether a Content-Type is that of an HTML page. A response without Content-Type
// may be a page.
func isPage(contentType string) bool {
	switch textfile.BaseType(contentType) {
	case "", "text/html", "application/xhtml+xml":
		return true
	}
	return false
}

// redirected returns the target of a redirect of a request for u. fail makes the error for a
// redirect without Location.
func redirected(u *url.URL, resp *http.Response, fail func(detail string) error) (*url.URL, error) {
	next, err := location(u, resp.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	if next == nil {
		return nil, fail("a redirect without a target")
	}
	drain(resp)
	return next, nil
}

// roundTrip tries public addresses first. It connects to a private address only if there is no
// public one and the user chose the host. Otherwise it clears privateOK, so that no redirect leads
// to a private address.
func (x *exchange) roundTrip(req *http.Request) (*http.Response, error) {
	ctx := x.ctx
	if proxy := x.c.cfg.Proxy; proxy != nil {
		p, err := proxy(req)
		if err != nil {
			return nil, err
		}
		if p != nil {
			ctx = context.WithValue(ctx, viaProxy{}, true)
			req.Close = false // the connection is to the proxy
			addr, err := netip.ParseAddr(req.URL.Hostname())
			name := strings.TrimSuffix(strings.ToLower(req.URL.Hostname()), ".")
			s := public
			x.local = err == nil && Private(addr)
			if err == nil {
				s = standingOf(addr, x.c.cfg.AllowPrivate)
			} else if name == "localhost" || strings.HasSuffix(name, ".localhost") {
				s, x.local = private, true
			}
			if s == never || s == private && !x.privateOK {
				return nil, &httpmsg.PrivateError{Addr: addr, Never: s == never}
			}
			x.privateOK = x.privateOK && s == private
		}
	}
	traced := ctx
	if ctx == x.ctx {
		traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			ap, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String())
			x.local = err == nil && Private(ap.Addr())
		}})
	}
	req = req.WithContext(traced)
	// A literal private address cannot have a public one, so strict need not try it.
	if addr, err := netip.ParseAddr(req.URL.Hostname()); err == nil && ctx == x.ctx && x.c.cfg.Dial == nil &&
		standingOf(addr, x.c.cfg.AllowPrivate) != public {
		if !x.privateOK {
			return nil, &httpmsg.PrivateError{Addr: addr.Unmap(),
				Never: standingOf(addr, x.c.cfg.AllowPrivate) == never}
		}
		return x.c.open.RoundTrip(req)
	}
	resp, err := x.c.strict.RoundTrip(req)
	if err == nil {
		if ctx == x.ctx {
			x.privateOK = false
		}
		return resp, nil
	}
	if x.privateOK && errors.As(err, new(*httpmsg.PrivateError)) {
		return x.c.open.RoundTrip(req)
	}
	return nil, err
}

// location resolves a Location header. It returns nil if the header is empty.
func location(u *url.URL, loc string) (*url.URL, error) {
	if loc == "" {
		return nil, nil
	}
	refuse := func(reason string) error {
		return &httpmsg.RedirectError{URL: feedurl.Display(u), Target: feedurl.Redact(loc), Reason: reason}
	}
	next, err := u.Parse(loc)
	if err != nil {
		return nil, refuse("it is not a valid URL")
	}
	if next.Scheme != "http" && next.Scheme != "https" {
		return nil, refuse("only http and https are followed")
	}
	if next.Hostname() == "" {
		return nil, refuse("the URL names no host")
	}
	// Never send credentials that a server chose.
	next.User, next.Fragment, next.RawFragment = nil, "", ""
	next.Host = strings.ToLower(next.Host)
	next.RawQuery = feedurl.EscapeQuery(next.RawQuery)
	// A reference without a scheme may have a host that is invalid in an http URL.
	if _, err := url.Parse(next.String()); err != nil {
		return nil, refuse("it is not a valid URL")
	}
	return next, nil
}

// drain reads a short body that is not used, so that the connection can be reused.
func drain(resp *http.Response) {
	if resp.ContentLength <= drainBytes {
		_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	}
}

// HostKey returns the host and port, like "example.com:443", to which the first request for a URL
// is sent, "" if the URL is not http or https. Requests with the same key wait for each other, so
// start requests with different keys concurrently.
func HostKey(rawURL string) string {
	u, err := feedurl.Parse(rawURL)
	if err != nil {
		return ""
	}
	return hostKey(u)
}

func hostKey(u *url.URL) string { return net.JoinHostPort(u.Hostname(), feedurl.Port(u)) }
