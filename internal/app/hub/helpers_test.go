package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/testkit/server"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// call is a request that a subscriber or the server of a feed received.
type call struct {
	method, path, query, body string
	header                    http.Header
}

// site is a server of feeds and callbacks, which records all requests.
type site struct {
	*httptest.Server
	mu      sync.Mutex
	calls   []call
	feeds   map[string]string           // by path
	answers map[string]http.HandlerFunc // handlers of callbacks that do not behave normally, by path
}

// newSite starts a site whose callbacks answer challenges and accept notifications.
func newSite(t testing.TB) *site {
	s := &site{feeds: map[string]string{}, answers: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.calls = append(s.calls, call{r.Method, r.URL.Path, r.URL.RawQuery, string(b), r.Header})
	feed, isFeed := s.feeds[r.URL.Path]
	answer := s.answers[r.URL.Path]
	s.mu.Unlock()
	q := r.URL.Query()
	switch {
	case answer != nil:
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		answer(w, r)
	case isFeed:
		w.Header().Set("Content-Type", "application/rss+xml")
		io.WriteString(w, feed)
	case q.Get("challenge") != "":
		io.WriteString(w, q.Get("challenge"))
	case q.Get("hub.challenge") != "":
		io.WriteString(w, q.Get("hub.challenge"))
	case strings.HasPrefix(string(b), "<?xml"):
		w.Write(rsscloud.EncodeResponse(true))
	}
}

// feed sets the document at a path, and returns its URL.
func (s *site) feed(path, document string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[path] = document
	return s.URL + path
}

func (s *site) answer(path string, f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = f
}

// got lists the requests to a path.
func (s *site) got(method, path string) (list []call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.method == method && c.path == path {
			list = append(list, c)
		}
	}
	return list
}

func (s *site) port() string { u, _ := url.Parse(s.URL); return u.Port() }

// newSiteAt serves a site at another address, too, and returns the port there. It occupies
// the same port of 127.0.0.1 with a server that finds nothing, because another test might
// use that port.
func newSiteAt(t testing.TB, addr string, s http.Handler) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", addr+":0")
		if err != nil {
			t.Skip(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if addr != "127.0.0.1" {
			none, err := net.Listen("tcp", "127.0.0.1:"+port)
			if err != nil {
				defer l.Close() // keep the port until then, so that the next attempt gets another
				continue
			}
			serveUntilEnd(t, none, http.NotFoundHandler())
		}
		serveUntilEnd(t, l, s)
		return port
	}
}

func serveUntilEnd(t testing.TB, l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

// world is a hub and a site for its feeds and callbacks.
type world struct {
	t testing.TB
	*site
	h      *Hub
	server *httptest.Server
	clock  *server.Clock
	log    *server.Log
	opts   Options
}

func newWorld(t testing.TB, change func(*Options)) *world {
	w := &world{t: t, site: newSite(t), clock: server.ClockAt(time.Date(2027, 1, 15, 8, 30, 0, 0, time.UTC)), log: &server.Log{}}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.h.ServeHTTP(rw, r) }))
	t.Cleanup(w.server.Close)
	config := fetch.Config{AllowPrivate: loopback, Deadline: time.Minute, PerHost: DefaultPerHost, MaxBytes: 1 << 20, MaxRedirects: 5}
	public, _ := url.Parse(w.server.URL)
	w.opts = Options{
		State: filepath.Join(t.TempDir(), "state"), Public: public, Feeds: config, Callbacks: config,
		MaxURLs: DefaultMaxURLs, PerCaller: 1000, Most: 10_000, AtOnce: DefaultNotifyAtOnce, MaxSave: 1 << 20, MaxForm: DefaultMaxForm, Now: w.clock.Now,
	}
	if change != nil {
		change(&w.opts)
	}
	w.start()
	t.Cleanup(func() { w.h.Close() })
	return w
}

// start starts a hub with the existing state.
func (w *world) start() {
	w.t.Helper()
	h, err := New(w.opts, w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	h.pingWait = time.Minute // all are notified before a ping is answered
	w.h = h
}

// settle waits for the work that continues after a request was answered.
func (w *world) settle() { w.h.shared.background.working.Wait() }

// restart ends the hub and starts another one.
func (w *world) restart() {
	w.t.Helper()
	w.h.Close()
	w.start()
}

// response is the answer to a request.
type response struct {
	status int
	header http.Header
	body   string
}

func (w *world) do(method, path, contentType, body string, header ...string) response {
	w.t.Helper()
	req, err := http.NewRequest(method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(b)}
}

const formType = "application/x-www-form-urlencoded"

// form posts a form of names and values.
func (w *world) form(path string, pairs ...string) response {
	w.t.Helper()
	return w.do(http.MethodPost, path, formType, encode(pairs...))
}

func encode(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		parts = append(parts, url.QueryEscape(pairs[i])+"="+url.QueryEscape(pairs[i+1]))
	}
	return strings.Join(parts, "&")
}

// rpc makes an XML-RPC call, and returns the result or fault.
func (w *world) rpc(method string, params ...any) (*rsscloud.Message, response) {
	w.t.Helper()
	r := w.do(http.MethodPost, "/RPC2", "text/xml", string(rsscloud.EncodeCall(method, params...)))
	m, err := rsscloud.Decode([]byte(r.body))
	if err != nil {
		w.t.Fatalf("%v: %s", err, r.body)
	}
	return m, r
}

// register registers a callback of the site by http-post, with the domain.
func (w *world) register(callback string, feeds ...string) response {
	w.t.Helper()
	pairs := []string{"notifyProcedure", "", "port", w.port(), "path", callback, "protocol", "http-post", "domain", "127.0.0.1"}
	for i, f := range feeds {
		pairs = append(pairs, fmt.Sprintf("url%d", i+1), f)
	}
	return w.form("/rsscloud/pleaseNotify", pairs...)
}

func (w *world) ping(feed string) response {
	w.t.Helper()
	return w.form("/rsscloud/ping", "url", feed)
}

// notified returns the feeds of the notifications that a callback got by http-post.
func (w *world) notified(callback string) (feeds []string) {
	for _, c := range w.got(http.MethodPost, callback) {
		q, _ := url.ParseQuery(c.body)
		feeds = append(feeds, q.Get("url"))
	}
	return feeds
}

// subscriptions reads the subscriptions to a feed.
func (w *world) subscriptions(feed string) (list []subscription) {
	w.t.Helper()
	keys, err := w.h.shared.states.keys(hashOf(feed))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range keys {
		s, err := w.h.shared.states.read(hashOf(feed), k)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a sweep has just removed it
		}
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b subscription) int { return strings.Compare(a.Callback, b.Callback) })
	return list
}

// tree returns the files of the state by path, without the log and a table without jobs.
func (w *world) tree() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	filepath.WalkDir(w.opts.State, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), "log") {
			b, _ := os.ReadFile(path)
			if d.Name() == "jobs" && len(b) == 0 {
				return nil
			}
			all[strings.TrimPrefix(path, w.opts.State)] = string(b)
		}
		return nil
	})
	return all
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !within(time.Minute, ok) {
		t.Fatalf("waited in vain for: %s", what)
	}
}

// within waits up to d for a condition, and reports whether it became true.
func within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if ok() {
			return true
		}
		poll := time.NewTimer(2 * time.Millisecond)
		<-poll.C
	}
	return false
}

// run runs the hub until stop is called.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.h.Run(ctx) }()
	return func() { cancel(); <-done }
}

// digest returns the digest of the document that the subscribers of a feed know.
func (w *world) digest(feed string) string {
	f, err := w.h.shared.states.readFeed(hashOf(feed))
	if err != nil {
		w.t.Error(err)
	}
	return f.Digest
}
