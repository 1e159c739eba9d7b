package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/http/passwords"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
)

func TestAttack900URLsInARequest(t *testing.T) {
	w := newWorld(t, nil)
	pairs := []string{"port", w.port(), "path", "/cb", "protocol", "http-post"}
	for i := range 900 {
		pairs = append(pairs, fmt.Sprintf("url%d", i), w.feed(fmt.Sprintf("/feed%d", i), "x"))
	}
	r := w.form("/pleaseNotify", pairs...)
	m, _ := w.rpc("rssCloud.pleaseNotify", "x", 80, "/", "xml-rpc", func() (urls []string) {
		for i := 7; i < len(pairs); i += 2 {
			urls = append(urls, pairs[i])
		}
		return urls
	}())
	if !strings.Contains(r.body, "20 feeds at most") || m.Fault == nil || len(w.calls) != 0 || len(w.tree()) != 0 {
		t.Errorf("%d requests: %s", len(w.calls), r.body)
	}
}

func TestAttackPortThatIsMore(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "x")
	for _, tc := range [][3]string{
		{w.port() + "/notify?x=", "/cb", ""}, {"80@127.0.0.1:" + w.port(), "/cb", ""}, {"+" + w.port(), "/cb", ""}, {"0x50", "/cb", ""}, {"-1", "/cb", ""}, {"80 ", "/a b", ""},
		{w.port(), "/cb\r\nX: y", ""}, {w.port(), "/cb#x", ""}, {w.port(), "/" + strings.Repeat("x", 3000), ""}, {w.port(), "@evil.example/", "127.0.0.1/x"},
		{w.port(), "/cb", "127.0.0.1:" + w.port()}, {w.port(), "/cb", "user@127.0.0.1"}, {w.port(), "/cb", "127.0.0.1#"}, {w.port(), "/cb", "a b"}, {w.port(), "/cb", "::1]:80/["},
		{w.port(), "/cb", strings.Repeat("a", 300)},
	} {
		r := w.form("/pleaseNotify", "port", tc[0], "path", tc[1], "protocol", "http-post", "url1", feed, "domain", tc[2])
		if !strings.Contains(r.body, `success="false"`) {
			t.Errorf("%q: %s", tc, r.body)
		}
	}
	if len(w.calls) != 0 {
		t.Errorf("%+v", w.calls)
	}
	// A path that begins like a host, with "//", remains a path.
	w.form("/pleaseNotify", "port", w.port(), "path", "//evil.example/", "protocol", "http-post", "url1", feed)
	if got := w.got("POST", "//evil.example/"); len(got) != 1 {
		t.Errorf("%+v", w.calls)
	}
}

func TestAttackXForwardedForFromAStranger(t *testing.T) {
	for trusted, want := range map[string]string{"": "127.0.0.1", "10.0.0.0/8": "127.0.0.1", "127.0.0.1/32": "127.0.0.77"} {
		w := newWorld(t, func(o *Options) {
			if trusted != "" {
				o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(trusted)}
			}
		})
		feed := w.feed("/feed", "x")
		port := newSiteAt(t, want, w.site)
		r := w.do("POST", "/pleaseNotify", formType, encode("port", port, "path", "/cb", "protocol", "http-post", "url1", feed), "X-Forwarded-For", "6.6.6.6, 127.0.0.77")
		if list := w.subscriptions(feed); len(list) != 1 || list[0].Caller != want || list[0].Callback != "http://"+want+":"+port+"/cb" {
			t.Errorf("%q: %+v, %s", trusted, list, r.body)
		}
		// The hint about --trusted-proxy is printed once.
		w.form("/ping", "url", feed)
		w.do("POST", "/pleaseNotify", formType, "x=y", "X-Forwarded-For", "6.6.6.6")
		if n := strings.Count(w.log.String(), "use --trusted-proxy"); (n == 1) != (want == "127.0.0.1") {
			t.Errorf("%q: %s", trusted, w.log)
		}
	}
}

func TestAttackPrivateAddresses(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Callbacks.AllowPrivate = nil })
	feed := w.feed("/feed", "one")
	for _, domain := range []string{"", "127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1", "fd00::1", "64:ff9b::7f00:1", "localhost", "0.0.0.0"} {
		r := w.form("/pleaseNotify", "port", w.port(), "path", "/cb", "protocol", "http-post", "url1", feed, "domain", domain)
		if !strings.Contains(r.body, `success="false"`) {
			t.Errorf("%s: %s", domain, r.body)
		}
		w.subscribe("subscribe", w.site.URL+"/cb", feed)
	}
	if len(w.got("GET", "/cb"))+len(w.got("POST", "/cb")) != 0 {
		t.Errorf("%+v", w.calls)
	}
	// A private address allowed for callbacks is not allowed for feeds.
	w2 := newWorld(t, func(o *Options) { o.Feeds.AllowPrivate = nil })
	if r := w2.register("/cb", w2.feed("/feed", "x")); !strings.Contains(r.body, "error reading the resource") || len(w2.calls) != 0 {
		t.Errorf("%s, %+v", r.body, w2.calls)
	}
	if log := fmt.Sprint(w2.h.shared.log.Recent(), w.h.shared.log.Recent()); !strings.Contains(log, "the private address 127.0.0.1 was not asked; if it is yours, allow it with --allow-feeds") || !strings.Contains(log, "allow it with --allow-callbacks") {
		t.Errorf("%s", log)
	}
}

// The name of a callback first resolves to a public address, and later to a private one.
func TestAttackRebinding(t *testing.T) {
	var inside *site
	dials := atomic.Int32{}
	w := newWorld(t, func(o *Options) {
		o.Callbacks.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} // public, for this test
		o.Callbacks.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, _ := net.SplitHostPort(addr)
			if host == "rebind.example" {
				if host = "127.0.0.1"; dials.Add(1) > 1 {
					host, port = "127.0.0.2", newSiteAt(t, "127.0.0.2", inside)
				}
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
		}
		o.Callbacks.PerHost = 4
	})
	inside = newSite(t)
	feed := w.feed("/feed", "one")
	// The server closes the connection, so that there is another look-up.
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close")
		io.WriteString(rw, r.FormValue("challenge"))
	})
	r := w.form("/pleaseNotify", "port", w.port(), "path", "/cb", "protocol", "http-post", "url1", feed, "domain", "rebind.example")
	if !strings.Contains(r.body, `success="true"`) {
		t.Fatal(r.body)
	}
	w.feed("/feed", "two")
	w.ping(feed)
	if list := w.subscriptions(feed); dials.Load() < 2 || len(inside.calls) != 0 || !strings.Contains(list[0].Error, "private") {
		t.Errorf("%d dials, %+v, %+v", dials.Load(), inside.calls, list)
	}
}

func TestAttackCallbackThatRedirects(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Callbacks.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		o.Feeds.AllowPrivate = o.Callbacks.AllowPrivate
	})
	port := newSiteAt(t, "127.0.0.2", w.site)
	feed := w.feed("/feed", "one")
	for path, target := range map[string]string{"/meta": "http://169.254.169.254/latest/meta-data/", "/inside": "http://127.0.0.2:" + port + "/in", "/file": "file:///etc/passwd", "/circle": "/circle"} {
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, target, http.StatusTemporaryRedirect)
		})
		if r := w.register(path, feed); !strings.Contains(r.body, `success="false"`) {
			t.Errorf("%s: %s", path, r.body)
		}
		if r := w.register("/cb", w.site.URL+path); !strings.Contains(r.body, `success="false"`) {
			t.Errorf("a feed that redirects, %s: %s", path, r.body)
		}
	}
	if len(w.got("GET", "/in"))+len(w.got("POST", "/in")) != 0 {
		t.Errorf("%+v", w.calls)
	}
	// A redirect within the allowed addresses stays a POST.
	w.answer("/moved", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			http.Redirect(rw, r, "/there", http.StatusMovedPermanently)
		}
		io.WriteString(rw, r.FormValue("challenge"))
	})
	w.register("/moved", feed)
	w.feed("/feed", "two")
	w.ping(feed)
	if got := w.notified("/there"); len(got) != 1 || got[0] != feed {
		t.Errorf("%v", got)
	}
}

// A feed that sends its bytes very slowly delays its own subscribers, and no others.
func TestAttackFeedThatTrickles(t *testing.T) {
	w := newWorld(t, nil)
	trickle := func(over chan struct{}) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", "1000000")
			for {
				rw.Write([]byte(" "))
				http.NewResponseController(rw).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-over:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
	}
	over := make(chan struct{})
	w.answer("/trickle", trickle(over))
	feed := w.feed("/feed", "one")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			if r := w.ping(fmt.Sprintf("%s/trickle?%d", w.site.URL, i)); !strings.Contains(r.body, `success="false"`) {
				t.Errorf("%s", r.body)
			}
		})
	}
	w.register("/cb", feed)
	w.feed("/feed", "two")
	w.ping(feed)
	if len(w.notified("/cb")) != 1 {
		t.Error("the subscriber of the other feed is not notified")
	}
	close(over)
	all.Wait()
	// The timeout of the request ends the reading.
	short := newWorld(t, func(o *Options) { o.Feeds.Deadline = 300 * time.Millisecond })
	short.answer("/trickle", trickle(nil))
	if r := short.ping(short.site.URL + "/trickle"); !strings.Contains(r.body, `success="false"`) {
		t.Errorf("%s", r.body)
	}
	w.h.shared.opts.MaxSave = 0
	big := w.feed("/big", strings.Repeat("x", 2<<20))
	if r := w.ping(big); !strings.Contains(r.body, `success="false"`) {
		t.Errorf("a feed that is too long: %s", r.body)
	}
}

// Ten concurrent registrations for one feed are all stored, and the feed is read once.
func TestAttackConcurrentRegistrations(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { w.register(fmt.Sprintf("/cb%d", i), feed) })
	}
	all.Wait()
	if n := len(w.subscriptions(feed)); n != 10 || w.h.shared.counts.get() != 10 {
		t.Errorf("%d stored, %d counted", n, w.h.shared.counts.get())
	}
	if n := len(w.got("GET", "/feed")); n != 1 {
		t.Errorf("the feed was read %d times", n)
	}
	w.feed("/feed", "two")
	w.ping(feed)
	for i := range 10 {
		if len(w.notified(fmt.Sprintf("/cb%d", i))) != 1 {
			t.Errorf("%d is not notified", i)
		}
	}
}

// Concurrent failures of one subscription are all counted.
func TestAttackConcurrentEvents(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.subscribe("subscribe", w.site.URL+"/cb", feed)
	key := (&subscription{Protocol: WebSub, Callback: w.site.URL + "/cb"}).key()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, _, err := w.h.shared.states.apply(hashOf(feed), key, struck, w.clock.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Errors != 100 {
		t.Errorf("%+v", list)
	}
}

// A failed request for an existing subscription does not change it.
func TestAttackFailedRegistrationOfAnother(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	before := fmt.Sprint(w.tree())
	w.clock.Add(time.Hour)
	w.answer("/cb", http.NotFound)
	if r := w.register("/cb", feed); !strings.Contains(r.body, `success="false"`) {
		t.Error(r.body)
	}
	w.answer("/feed", http.NotFound)
	w.register("/cb", feed)
	if after := fmt.Sprint(w.tree()); after != before {
		t.Errorf("%s\n%s", before, after)
	}
}

// A feed without subscribers is not read twice, unless its URL is allowed. A feed with
// subscribers is.
func TestAttackHubAsAProxy(t *testing.T) {
	w := newWorld(t, nil)
	w.h.shared.opts.Allowed = []string{w.site.URL + "/mine/"}
	feed, mine := w.feed("/feed", "one"), w.feed("/mine/feed", "one")
	for range 5 {
		w.ping(feed)
		w.form("/pleaseNotify", "port", "1", "path", "/", "protocol", "http-post", "url1", feed)
		w.ping(mine)
	}
	if a, b := len(w.got("GET", "/feed")), len(w.got("GET", "/mine/feed")); a != 1 || b != 5 {
		t.Errorf("the feeds were read %d and %d times", a, b)
	}
	if tree := w.tree(); len(tree) != 0 {
		t.Errorf("the state has files of a feed without subscribers: %v", tree)
	}
	w.clock.Add(rememberFor)
	if w.ping(feed); len(w.got("GET", "/feed")) != 2 {
		t.Error("after rememberFor, the feed is not read again")
	}
}

func TestAttackTooManySubscriptions(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.PerCaller = 3 })
	feed := w.feed("/feed", "one")
	for i := range 3 {
		w.register(fmt.Sprintf("/cb%d", i), feed)
	}
	for range 2 {
		if r := w.register("/cb3", feed); !strings.Contains(r.body, "too many subscriptions from your address") {
			t.Error(r.body)
		}
		w.subscribe("subscribe", w.site.URL+"/websub", feed)
		if r := w.register("/cb0", feed); !strings.Contains(r.body, `success="true"`) {
			t.Errorf("a renewal at the limit is refused: %s", r.body)
		}
		w.restart()
		w.h.sweep(false) // as Run does at the start
	}
	if got := w.got("GET", "/websub"); len(got) != 2 || !strings.Contains(got[0].query, "denied") || len(w.subscriptions(feed)) != 3 {
		t.Errorf("%+v", got)
	}
	w.h.shared.counts.most, w.h.shared.counts.perCaller = 3, 100
	if r := w.register("/cb3", feed); !strings.Contains(r.body, "takes no more subscriptions") {
		t.Error(r.body)
	}
	w.clock.Add(CloudExpire)
	w.h.sweep(true)
	if r := w.register("/cb3", feed); !strings.Contains(r.body, `success="true"`) {
		t.Errorf("refused although a subscription has ended: %s", r.body)
	}
}

// While a thousand connections send nothing or very little, other clients are served, and
// memory stays bounded.
func TestAttackSlowConnections(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.NewServer(w.h, w.log)
	go s.Serve(httpserver.Limit(l, 64))
	t.Cleanup(func() { s.Close() })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var slow []net.Conn
	for i := range 1000 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		slow = append(slow, c)
		fmt.Fprintf(c, "POST /RPC2 HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n%s", strings.Repeat("x", i%100))
	}
	for range 20 {
		resp, err := http.Post("http://"+l.Addr().String()+"/ping", formType, strings.NewReader(encode("url", feed)))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(b), `success="true"`) {
			t.Errorf("%s", b)
		}
	}
	until(t, "the number of open connections is within the limit", func() bool {
		open := 0
		for _, c := range slow {
			c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				open++
			}
		}
		return open <= 64
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d MB", grown>>20)
	}
}

func TestAttackNestedXMLRPC(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Users = htpasswd(t, "bull:secret") })
	for _, body := range []string{
		"<methodCall><methodName>rssCloud.ping</methodName><params><param>" + strings.Repeat("<value><array><data>", 100_000),
		"<methodCall>" + strings.Repeat("<a>", 100_000), "<methodCall>" + strings.Repeat("<a/>", 200_000), "<x", "", "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><methodCall/>",
	} {
		r := w.do("POST", "/RPC2", "text/xml", body)
		m, err := rsscloud.Decode([]byte(r.body))
		if err != nil || m.Fault == nil || m.Fault.Code != 4 || r.status != 200 {
			t.Errorf("%.40s: %+v", body, r)
		}
	}
	// Each row exceeds one limit: depth, values, or other elements.
	for body, want := range map[string]string{
		"<methodCall><params><param>" + strings.Repeat("<value><array><data>", 12):                                                                     "nested more than 32 deep",
		"<methodCall><params><param><value><array><data>" + strings.Repeat("<value/>", 5000) + "</data></array></value></param></params></methodCall>": "more than 4096 values",
		"<methodCall>" + strings.Repeat("<a/>", 40_000) + "</methodCall>":                                                                              "more than 4096 values",
	} {
		if r := w.do("POST", "/RPC2", "text/xml", body); !strings.Contains(r.body, want) {
			t.Errorf("%.40s: %+v", body, r)
		}
	}
}

// htpasswd writes a file of users and passwords, as NAME:PASSWORD.
func htpasswd(t testing.TB, pairs ...string) string {
	t.Helper()
	var text strings.Builder
	for _, p := range pairs {
		name, password, _ := strings.Cut(p, ":")
		hash, err := passwords.Hash([]byte(password), 4)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s:%s\n", name, hash)
	}
	path := filepath.Join(t.TempDir(), "htpasswd")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAttackSaveRss(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Users = htpasswd(t, "bull:secret")
		o.TrustedProxies = loopback
	})
	const document = "<rss><channel/></rss>"
	for _, name := range []string{"../bull", "bull/../../x", "..", ".", "", "a\x00b", strings.Repeat("x", 300), "bull/"} {
		if m, r := w.rpc("rssCloud.saveRss", name, "secret", document); m.Fault == nil {
			t.Errorf("%q: %s", name, r.body)
		}
	}
	// The file of users must not have such names.
	for _, name := range []string{"../bull", "a/b", "..", ".", ""} {
		if _, err := readUsers(htpasswd(t, "ok:x", name+":secret"), time.Now); err == nil || !strings.Contains(err.Error(), ":2: ") {
			t.Errorf("the file may have the name %q: %v", name, err)
		}
	}
	// Send 100 MB, with and without a Content-Length. The hub reads no more than the greatest
	// valid call.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, length := range []int64{100 << 20, -1} {
		req, _ := http.NewRequest("POST", w.server.URL+"/RPC2", io.LimitReader(zeros{}, 100<<20))
		req.ContentLength = length
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // the hub closed the connection
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(b), "longer than") {
			t.Errorf("%.300s", b)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 48<<20 {
		t.Errorf("%d MB were allocated", grown>>20)
	}
	// After a few of a thousand wrong passwords, the hub no longer checks them. The user, who
	// calls from another address, can store the feed.
	call := func(from, password string) string {
		return w.do("POST", "/RPC2", "text/xml", string(rsscloud.EncodeCall("rssCloud.saveRss", "bull", password, document)), "X-Forwarded-For", from).body
	}
	wrong, wait := 0, 0
	for i := range 1000 {
		body := call("192.0.2.1", fmt.Sprint(i))
		switch {
		case strings.Contains(body, "password is wrong"):
			wrong++
		case strings.Contains(body, "too many wrong passwords"):
			wait++
		default:
			t.Fatal(body)
		}
	}
	if wrong != 5 || wait != 1000-wrong {
		t.Errorf("%d passwords were checked", wrong)
	}
	if body := call("192.0.2.1", "secret"); !strings.Contains(body, "too many wrong passwords") {
		t.Errorf("the right password after a thousand wrong ones: %s", body)
	}
	if body := call("192.0.2.2", "secret"); !strings.Contains(body, "/feeds/bull/rss.xml") {
		t.Error(body)
	}
	w.clock.Add(15 * time.Minute)
	if body := call("192.0.2.1", "secret"); !strings.Contains(body, "/feeds/bull/rss.xml") {
		t.Errorf("the right password after the longest wait: %s", body)
	}
	for path := range w.tree() {
		if !strings.HasPrefix(path, "/saved/bull/") {
			t.Errorf("the state has %s", path)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Scripts in URLs of feeds do not run on the page, and the page shows no path of a callback.
func TestAttackPage(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/secret-token", feed)
	for _, u := range []string{`http://a.example/"><script>alert(1)</script>`, "javascript:alert(1)", "http://127.0.0.1:1/\x1b[31m", `http://127.0.0.1:1/'onmouseover='x`} {
		w.ping(u)
	}
	w.answer("/secret-token", func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(500) })
	w.feed("/feed", "two")
	w.ping(feed)
	r := w.do("GET", "/", "", "")
	if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || strings.Contains(r.header.Get("Content-Security-Policy"), "script") {
		t.Errorf("%+v", r.header)
	}
	for _, bad := range []string{"<script", "secret-token", "\x1b", `href="javascript`, `'onmouseover='`} {
		if strings.Contains(r.body, bad) {
			t.Errorf("%s is on the page:\n%s", bad, r.body)
		}
	}
	log, _ := os.ReadFile(filepath.Join(w.opts.State, "log"))
	if !strings.Contains(r.body, feed) || strings.Contains(string(log), "secret-token") || strings.Contains(string(log), "\x1b") || !strings.Contains(string(log), "\tfailed\t"+feed) {
		t.Errorf("%s\n%s", r.body, log)
	}
}

// The page and the log never show the path of a callback, its redirect's target, or a
// password, even if it was typed as a user name.
func TestAttackSecretsInTheLog(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Users = htpasswd(t, "bull:typed-secret") })
	feed := w.feed("/feed", "one")
	for _, path := range []string{"/x'typed-secret", `/x?a="typed-secret`, "/x?<typed-secret>", "/x,typed-secret", "/(typed-secret"} {
		w.form("/pleaseNotify", "port", "1", "path", path, "protocol", "http-post", "domain", "127.0.0.1", "url1", feed)
		w.subscribe("subscribe", "http://127.0.0.1:1"+path, feed)
	}
	for i, to := range []string{"/typed-secret%zz", "typed-secret:%zz", "http://[typed-secret", "HTTP://169.254.169.254/typed-secret", "ftp://127.0.0.1/typed-secret"} {
		cb := fmt.Sprintf("/cb%d", i)
		w.answer(cb, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Location", to)
			rw.WriteHeader(http.StatusFound)
		})
		w.register(cb, feed)
	}
	w.register("/ok", "http://bull:typed-secret@127.0.0.1/feed", "http://bull:typed-secret@127.0.0.1/%zz")
	w.ping("http://bull:typed-secret@127.0.0.1/feed")
	w.rpc("rssCloud.saveRss", "typed-secret", "bull", "<rss/>")
	w.rpc("rssCloud.saveRss", "bull", "wrong", "<rss/>")
	log, _ := os.ReadFile(filepath.Join(w.opts.State, "log"))
	if n := strings.Count(string(log), "\n"); n < 20 || !strings.Contains(string(log), "saveRss by 127.0.0.1\n") {
		t.Errorf("%d lines:\n%s", n, log)
	}
	for _, text := range []string{string(log), w.do("GET", "/", "", "").body, w.log.String()} {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "typed-secret") {
				t.Error(line)
			}
		}
	}
}

// Slow callbacks of one caller do not keep other callers from registering.
func TestAttackSlowCallbacks(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.TrustedProxies = loopback })
	feed := w.feed("/feed", "one")
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	var waiting atomic.Int32
	w.answer("/slow", func(rw http.ResponseWriter, r *http.Request) {
		waiting.Add(1)
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	var all sync.WaitGroup
	for i := range 4 * verifyOne {
		all.Go(func() {
			w.do("POST", "/pleaseNotify", formType, encode("port", w.port(), "path", fmt.Sprintf("/slow?%d", i), "protocol", "http-post", "domain", "127.0.0.1", "url1", feed), "X-Forwarded-For", "192.0.2.66")
		})
	}
	until(t, "as many slow requests as one host gets at once", func() bool { return waiting.Load() >= DefaultPerHost })
	port := newSiteAt(t, "127.0.0.3", w.site)
	r := w.do("POST", "/pleaseNotify", formType, encode("port", port, "path", "/cb", "protocol", "http-post", "domain", "127.0.0.3", "url1", feed), "X-Forwarded-For", "192.0.2.1")
	if !strings.Contains(r.body, `success="true"`) {
		t.Error(r.body)
	}
	release()
	all.Wait()
	if n := w.h.shared.limits[verifying].Names(); n != 0 {
		t.Errorf("%d callers are remembered", n)
	}
}

// If a caller names a hundred feeds that do not respond, only a few are read at once, and
// feeds of other callers are still read.
func TestAttackManyFeedsThatAreSlow(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.TrustedProxies = loopback
		o.Feeds.PerHost = 200
	})
	w.h.shared.budget.most = 1000
	slow := newSite(t) // counts as many hosts, because the limit of a host is not tested here
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	var reading, most atomic.Int32
	slow.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n := reading.Add(1)
		defer reading.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		rw.Header().Set("Content-Length", "1000000")
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	var all sync.WaitGroup
	for i := range 10 {
		pairs := []string{"port", w.port(), "path", "/cb", "protocol", "http-post", "domain", "127.0.0.1"}
		for k := range DefaultMaxURLs {
			pairs = append(pairs, fmt.Sprint("url", k), fmt.Sprintf("%s/%d/%d", slow.URL, i, k))
		}
		all.Go(func() { w.do("POST", "/pleaseNotify", formType, encode(pairs...), "X-Forwarded-For", "192.0.2.66") })
	}
	until(t, "as many readings as one caller may have", func() bool { return reading.Load() == readOne })
	feed := w.feed("/feed", "one")
	// The attacker also pings the honest caller's feed first.
	all.Go(func() { w.do("POST", "/ping", formType, encode("url", feed), "X-Forwarded-For", "192.0.2.66") })
	r := w.do("POST", "/pleaseNotify", formType, encode("port", w.port(), "path", "/honest", "protocol", "http-post", "domain", "127.0.0.1", "url1", feed), "X-Forwarded-For", "192.0.2.1")
	w.feed("/feed", "two")
	w.do("POST", "/ping", formType, encode("url", feed), "X-Forwarded-For", "192.0.2.1")
	if len(w.notified("/honest")) != 1 {
		t.Errorf("%s, %v", r.body, w.notified("/honest"))
	}
	release()
	all.Wait()
	w.settle()
	if n := most.Load(); n > readOne {
		t.Errorf("%d feeds were read at once", n)
	}
	if n := w.h.shared.limits[reads].Names(); n != 0 {
		t.Errorf("%d callers are remembered", n)
	}
}

// A ping without a free place in the limiter is done later, if the feed has subscribers.
func TestPingWithoutAPlace(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	w.feed("/feed", "two")
	w.h.shared.limits[reads], w.h.shared.reader.wait = limiter.New(limiter.Options{All: 1, Each: 1}), time.Millisecond
	if _, err := w.h.shared.limits[reads].Acquire(t.Context(), "somebody"); err != nil {
		t.Fatal(err)
	}
	r := w.ping(feed)
	w.settle()
	w.h.shared.reader.wait, w.h.shared.limits[reads] = readWait, limiter.New(limiter.Options{All: readMost, Each: readOne})
	if !strings.Contains(r.body, `success="true" msg="Thanks for the ping. The feed cannot be read now; it is read again in 10s."`) {
		t.Error(r.body)
	}
	w.advance(readLater)
	if len(w.notified("/cb")) != 1 {
		t.Error("the ping is lost")
	}
}

// Slow uploads of one caller, even without a password, do not keep others from storing
// documents.
func TestAttackSlowDocuments(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Users = htpasswd(t, "bull:secret")
		o.TrustedProxies = loopback
	})
	var bodies []*io.PipeWriter
	var all sync.WaitGroup
	t.Cleanup(func() {
		for _, b := range bodies {
			b.CloseWithError(io.ErrUnexpectedEOF)
		}
		all.Wait()
	})
	for range 2 * saveMost {
		in, out := io.Pipe()
		bodies = append(bodies, out)
		all.Go(func() {
			req, _ := http.NewRequest("POST", w.server.URL+"/RPC2", in)
			req.ContentLength = 1 << 20
			req.Header.Set("X-Forwarded-For", "192.0.2.66")
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		})
		io.WriteString(out, "<methodCall>")
	}
	until(t, "the slow uploads", func() bool { return w.h.shared.limits[saving].Names() > 0 })
	document := "<rss>" + strings.Repeat("<a/>", 50_000) + "</rss>"
	r := w.do("POST", "/RPC2", "text/xml", string(rsscloud.EncodeCall("rssCloud.saveRss", "bull", "secret", document)), "X-Forwarded-For", "192.0.2.1")
	if !strings.Contains(r.body, "/feeds/bull/rss.xml") {
		t.Error(r.body)
	}
	for _, b := range bodies {
		b.CloseWithError(io.ErrUnexpectedEOF)
	}
	all.Wait()
	until(t, "the end of all uploads", func() bool { return w.h.shared.limits[saving].Names() == 0 })
}
