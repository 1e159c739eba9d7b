package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// Validators are opaque bytes that are returned unchanged, after 200 and 304 alike.
func TestValidatorsAreOpaque(t *testing.T) {
	for _, etag := range []string{
		`"abc"`, `W/"abc"`, `abc`, `W/abc`, `"a b"`, `"`, `""`, "\"\xe4\xff\x80\"", `"a""b"`, `"a,b"`, `*`, "\"tab\tbed\"", strings.Repeat("x", 8<<10),
	} {
		for _, modified := range []string{"", "Mon, 02 Mar 2026 12:00:00 GMT", "0", "yesterday \xe9"} {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["ETag"] = []string{etag} // the case of the name does not matter
				if modified != "" {
					w.Header().Set("Last-Modified", modified)
				}
				if r.Header.Get("If-None-Match") == etag && r.Header.Get("If-Modified-Since") == modified {
					w.WriteHeader(304)
					return
				}
				fmt.Fprint(w, rss)
			})
			c := client(t)
			res := get(t, c, s.URL)
			if res.ETag != etag || res.LastModified != modified || res.NotModified {
				t.Fatalf("got %q and %q, want %q and %q", res.ETag, res.LastModified, etag, modified)
			}
			res, err := c.Get(t.Context(), &httpmsg.Request{URL: s.URL, ETag: res.ETag, LastModified: res.LastModified})
			if err != nil {
				t.Fatal(err)
			}
			if !res.NotModified || res.Status != 304 || res.ETag != etag || len(res.Body) != 0 {
				t.Errorf("%q, %q: not recognised: %d", etag, modified, res.Status)
			}
			s.Close()
		}
	}
}

// A document that is written twice within a second has the same date twice. A client that fetched
// the first version would never get the second from a server that compares dates only.
func TestDateOfThisSecond(t *testing.T) {
	const now = "Mon, 02 Mar 2026 12:00:01 GMT"
	for _, c := range []struct{ date, modified, etag, kept string }{
		{now, now, "", ""},
		{now, now, `"a"`, now},
		{now, "Mon, 02 Mar 2026 12:00:00 GMT", "", "Mon, 02 Mar 2026 12:00:00 GMT"},
		{now, "Mon, 02 Mar 2026 12:00:02 GMT", "", "Mon, 02 Mar 2026 12:00:02 GMT"},
		{"-", now, "", now}, // the server does not say
		{"soon", now, "", now},
		{now, "0", "", "0"},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Last-Modified", c.modified)
			if h["Date"] = nil; c.date != "-" {
				h["Date"] = []string{c.date}
			}
			if c.etag != "" {
				h.Set("ETag", c.etag)
			}
			fmt.Fprint(w, rss)
		})
		if res := get(t, client(t), s.URL); res.LastModified != c.kept || res.ETag != c.etag {
			t.Errorf("%+v: %q and %q are kept", c, res.LastModified, res.ETag)
		}
	}
}

// A validator that cannot be sent is neither stored nor sent from a state file.
func TestBadValidators(t *testing.T) {
	var asked http.Header
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header
		w.Header().Set("ETag", strings.Repeat("x", 8<<10+1))
		fmt.Fprint(w, rss)
	})
	c := client(t)
	for _, v := range []string{"a\nb", "a\rb", "a\x00b", "a\x7fb", "\x1b[m"} {
		res, err := c.Get(t.Context(), &httpmsg.Request{URL: s.URL, ETag: v, LastModified: v})
		if err != nil {
			t.Fatal(err)
		}
		if asked["If-None-Match"] != nil || asked["If-Modified-Since"] != nil {
			t.Errorf("%q was sent", v)
		}
		if res.ETag != "" {
			t.Error("an endless validator was kept")
		}
		if httpmsg.Validator(v) != "" {
			t.Errorf("%q would be kept", v)
		}
	}
}

func TestRequestHeader(t *testing.T) {
	var h http.Header
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		h = r.Header.Clone()
		http.SetCookie(w, &http.Cookie{Name: "c", Value: "1"})
		fmt.Fprint(w, rss)
	})
	c := client(t)
	get(t, c, s.URL)
	get(t, c, s.URL)
	if got := h.Get("User-Agent"); got != DefaultUserAgent {
		t.Errorf("User-Agent is %q", got)
	}
	if got := h.Get("Accept-Encoding"); got != "gzip, br, zstd" {
		t.Errorf("Accept-Encoding is %q", got)
	}
	for _, name := range []string{"Cookie", "If-None-Match", "If-Modified-Since", "Authorization", "Referer"} {
		if h[name] != nil {
			t.Errorf("%s was sent", name)
		}
	}
	// A header of the user replaces the default, except headers of the protocol.
	_, err := c.Get(t.Context(), &httpmsg.Request{URL: s.URL, Header: textproto.MIMEHeader{
		"User-Agent": {"me"}, "X-Token": {"a", "b"}, "Accept-Encoding": {"compress"}, "Host": {"x"}, "If-None-Match": {"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if h.Get("User-Agent") != "me" || len(h["X-Token"]) != 2 || h.Get("Accept-Encoding") != acceptEncoding || h["If-None-Match"] != nil {
		t.Errorf("sent %v", h)
	}
}

func TestEncodings(t *testing.T) {
	doc := []byte(rss + strings.Repeat("<!-- padding -->", 10000))
	twice := append(compress(t, "gzip", doc[:100]), compress(t, "gzip", doc[100:])...)
	for name, c := range map[string]struct {
		header string
		body   []byte
		warn   bool
	}{
		"none":               {"", doc, false},
		"identity":           {"identity", doc, false},
		"gzip":               {"gzip", compress(t, "gzip", doc), false},
		"x-gzip":             {"X-GZip", compress(t, "gzip", doc), false},
		"br":                 {"br", compress(t, "br", doc), false},
		"zstd":               {"zstd", compress(t, "zstd", doc), false},
		"two members":        {"gzip", twice, false},
		"padding":            {"gzip", append(compress(t, "gzip", doc), make([]byte, 100)...), false},
		"two codings":        {"br, gzip", compress(t, "gzip", compress(t, "br", doc)), false},
		"two, one a lie":     {"gzip, br", compress(t, "br", doc), true},
		"gzip, a lie":        {"gzip", doc, true},
		"br, a lie":          {"br", doc, true},
		"zstd, a lie":        {"zstd", doc, true},
		"another header's":   {"utf-8", doc, false},
		"gzip, and UTF-8":    {"utf-8, gzip", compress(t, "gzip", doc), false},
		"gzip, empty member": {"gzip", append(compress(t, "gzip", nil), compress(t, "gzip", doc)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if c.header != "" {
					w.Header().Set("Content-Encoding", c.header)
				}
				_, _ = w.Write(c.body)
			})
			res := get(t, client(t), s.URL)
			if string(res.Body) != string(doc) {
				t.Errorf("%d bytes came of %d", len(res.Body), len(doc))
			}
			if res.WireBytes != int64(len(c.body)) {
				t.Errorf("%d bytes on the wire, want %d", res.WireBytes, len(c.body))
			}
			if res.Truncated || c.warn != (len(res.Warnings) > 0) {
				t.Errorf("truncated %v, warnings %q", res.Truncated, res.Warnings)
			}
		})
	}
}

func TestBadEncodings(t *testing.T) {
	for name, c := range map[string]struct {
		header, body, want string
	}{
		"unknown":  {"compress", rss, `"compress"`},
		"no gzip":  {"gzip", "\x00\x01\x02 nonsense", `"gzip"`},
		"no br":    {"br", "nonsense\xff\xff\xff\xff\xff", `"br"`},
		"no zstd":  {"zstd", "nonsense", `"zstd"`},
		"too many": {"gzip, gzip, gzip, gzip", rss, "too many"},
		"a header": {"gzip", "\x1f\x8b\x08\x00", "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", c.header)
				fmt.Fprint(w, c.body)
			})
			err := getErr(t, client(t), s.URL)
			var d *httpmsg.DecodeError
			if !errors.As(err, &d) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.URL) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A document that is cut off is returned up to the cut, marked as truncated.
func TestTruncated(t *testing.T) {
	doc := []byte(rss)
	for i := range 20000 { // several blocks of zstd
		doc = fmt.Appendf(doc, "<item>%d %d</item>", i, i*i*i)
	}
	hijack := func(w http.ResponseWriter, text string) {
		conn, bw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = bw.WriteString(text)
		_ = bw.Flush()
		_ = conn.Close()
	}
	for name, coding := range map[string]string{"plain": "", "gzip": "gzip", "br": "br", "zstd": "zstd"} {
		body := doc
		if coding != "" {
			body = compress(t, coding, doc)
		}
		half := string(body[:len(body)/2])
		for frame, text := range map[string]string{
			"length":  fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), half),
			"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(body), half),
			"whole":   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(half), half), // cut before it was sent
		} {
			if frame == "whole" && coding == "" {
				continue // nothing shows it here
			}
			t.Run(name+" "+frame, func(t *testing.T) {
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					hijack(w, "HTTP/1.1 200 OK\r\nContent-Encoding: "+coding+"\r\n"+text)
				})
				res := get(t, client(t), s.URL)
				if !res.Truncated || len(res.Warnings) != 1 {
					t.Errorf("truncated %v, warnings %q", res.Truncated, res.Warnings)
				}
				if len(res.Body) < 1000 || string(res.Body) != string(doc[:len(res.Body)]) {
					t.Errorf("%d bytes came", len(res.Body))
				}
			})
		}
	}
	t.Run("damaged", func(t *testing.T) {
		body := compress(t, "gzip", doc)
		body[len(body)-6] ^= 1 // the checksum
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(body)
		})
		if res := get(t, client(t), s.URL); !res.Truncated {
			t.Error("a damaged document passed for a whole one")
		}
	})
	// Many servers send the length before compression.
	t.Run("wrong length", func(t *testing.T) {
		body := compress(t, "gzip", doc)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			hijack(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(doc), body))
		})
		if res := get(t, client(t), s.URL); res.Truncated || string(res.Body) != string(doc) {
			t.Errorf("truncated %v, %d bytes", res.Truncated, len(res.Body))
		}
	})
	t.Run("nothing", func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
		})
		var e *httpmsg.NetError
		if err := getErr(t, client(t), s.URL); !errors.As(err, &e) || e.Kind != httpmsg.KindProtocol {
			t.Errorf("%v", err)
		}
	})
}

func TestStatusErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		after  string
		want   time.Duration
		text   string
	}{
		{404, "", 0, "404 Not Found"},
		{410, "", 0, "once a month"},
		{401, "", 0, "etc/fetch/headers"},
		{403, "", 0, "etc/fetch/headers"},
		{500, "", 0, "repeated later"},
		{204, "", 0, "204"},
		{206, "", 0, "206"},
		{304, "", 0, "not conditional"},
		{300, "", 0, "300"},
		{301, "", 0, "without a target"},
		{799, "", 0, "an unknown status"},
		{429, "", 0, "less frequent"},
		{429, "120", 2 * time.Minute, "2m"},
		{429, "reset 300", 5 * time.Minute, "5m"},
		{503, "reset 300", 0, "503"},
		{503, "3600", time.Hour, "1h"},
		{503, "99999999999999999999", httpmsg.MaxRetryAfter, "720h"},
		{503, "-5", 0, "503"},
		{503, "soon", 0, "503"},
		{500, "3600", 0, "500"}, // means nothing there
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if reset, ok := strings.CutPrefix(c.after, "reset "); ok {
				w.Header().Set("X-RateLimit-Reset", reset)
			} else if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.status)
		})
		err := getErr(t, client(t), s.URL+"/feed")
		var e *httpmsg.StatusError
		plain := err.Error()
		if errors.As(err, &e) {
			e.Subscribed = true
		}
		if e == nil || e.Status != c.status || e.RetryAfter != c.want || !strings.HasPrefix(err.Error(), plain) ||
			!strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), s.URL+"/feed") {
			t.Errorf("%d %q: %v, %+v", c.status, c.after, err, e)
		}
		if !httpmsg.Remote(err) {
			t.Errorf("%v: not a remote failure", err)
		}
		s.Close()
	}
}

// publicAddr is a public address.
const publicAddr = "93.184.215.14:80"

// A 503 or 429 with Retry-After blocks the whole host, but on a private address, where one bridge serves many
// sites, only its URL.
func TestUnavailableHoldsHostOrURL(t *testing.T) {
	for _, c := range []struct {
		remote, proxied string // address of the server, and its host behind a proxy; "" for 127.0.0.1
		allow           bool
		status          int
		host            bool // the whole host is paused
	}{
		{"", "", false, 503, false},
		{"", "", true, 503, false},
		{"", "", false, 429, false},
		{publicAddr, "", false, 429, true},
		{"192.168.1.7:80", "", false, 503, false},
		{"[fd12::7]:80", "", false, 503, false},
		{publicAddr, "", false, 503, true},
		{"", "10.0.0.7", false, 503, false},
		{"", "bridge.localhost", false, 503, false},
		{"", "feeds.example", false, 503, true},
	} {
		asked := map[string]int{}
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if asked[r.URL.Path]++; r.URL.Path == "/busy" {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(c.status)
				return
			}
			fmt.Fprint(w, rss)
		})
		clk := server.NewClock()
		cl := client(t, func(cfg *Config) {
			cfg.Now, cfg.Sleep = clk.Now, clk.Sleep
			if !c.allow {
				cfg.AllowPrivate = nil
			}
			if c.proxied != "" {
				cfg.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(s.URL) }
			}
			if c.remote != "" {
				cfg.Dial = claimed(s, c.remote)
			}
		})
		base := s.URL
		if c.proxied != "" {
			base = "http://" + c.proxied
		}
		getErr(t, cl, base+"/busy")
		_, err := cl.Get(t.Context(), &httpmsg.Request{URL: base + "/other"})
		if errors.As(err, new(*httpmsg.HostDelayError)) != c.host || (err != nil) != c.host {
			t.Errorf("%+v: another feed: %v", c, err)
		}
		err = getErr(t, cl, base+"/busy")
		var delay *httpmsg.HostDelayError
		if !errors.As(err, &delay) || delay.Left != 10*time.Minute || strings.Contains(delay.Host, "busy") || asked["/busy"] != 1 {
			t.Errorf("%+v: the same feed, after %d requests: %v", c, asked["/busy"], err)
		}
		if clk.Add(10 * time.Minute); !errors.As(getErr(t, cl, base+"/busy"), new(*httpmsg.StatusError)) {
			t.Errorf("%+v: not requested after the pause", c)
		}
	}
}

// claims is a connection that claims to be to another address.
type claims struct {
	net.Conn
	remote net.Addr
}

func (c claims) RemoteAddr() net.Addr { return c.remote }

// claimed returns a [Config.Dial] that connects to a server, and claims that it is at another address.
func claimed(s *httptest.Server, remote string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		return claims{conn, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(remote))}, err
	}
}

// Retry-After blocks the other feeds of the host, too.
func TestRetryAfterHoldsHost(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/busy" {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(429)
			return
		}
		fmt.Fprint(w, rss)
	})
	clk := server.NewClock()
	c := client(t, func(cfg *Config) { cfg.Now, cfg.Sleep, cfg.Dial = clk.Now, clk.Sleep, claimed(s, publicAddr) })
	get(t, c, s.URL+"/other")
	getErr(t, c, s.URL+"/busy")
	err := getErr(t, c, s.URL+"/other")
	var delay *httpmsg.HostDelayError
	if !errors.As(err, &delay) || !delay.Until.Equal(clk.Now().Add(10*time.Minute)) || asked.Load() != 2 {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
	if !strings.Contains(err.Error(), s.URL+"/other") || !strings.Contains(err.Error(), "10m") || !httpmsg.Remote(err) {
		t.Errorf("%v", err)
	}
	clk.Add(10 * time.Minute)
	get(t, c, s.URL+"/other")
}

// Retry-After blocks the other sites of a service, but not those of other hosts.
func TestRetryAfterHoldsService(t *testing.T) {
	for _, c := range []struct {
		busy, other string
		blocked     string // the host in the error
	}{
		{"a.blogspot.com", "B.Blogspot.com", "blogspot.com:80"},
		{"a.substack.com", "b.substack.com", "substack.com:80"},
		{"a.tumblr.com", "www.tumblr.com", "tumblr.com:80"},
		{"a.github.io", "github.io", "github.io:80"},
		{"a.example.com", "b.example.com", ""},
		{"a.example.co.uk", "b.example.co.uk", ""},
		{"a.blogspot.com", "b.github.io", ""},
		{"a.blogspot.com", "b.blogspot.com:81", ""},
		{"feeds.internal", "other.internal", ""},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/busy" {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(429)
				return
			}
			fmt.Fprint(w, rss)
		})
		clk := server.NewClock()
		cl := client(t, func(cfg *Config) {
			cfg.Now, cfg.Sleep = clk.Now, clk.Sleep
			cfg.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(s.URL) }
		})
		getErr(t, cl, "http://"+c.busy+"/busy")
		_, err := cl.Get(t.Context(), &httpmsg.Request{URL: "http://" + c.other + "/"})
		delay, _ := errors.AsType[*httpmsg.HostDelayError](err)
		if (delay != nil) != (c.blocked != "") || (err != nil) != (c.blocked != "") || delay != nil && delay.Host != c.blocked {
			t.Errorf("%+v: %v", c, err)
		}
		clk.Add(10 * time.Minute)
		get(t, cl, "http://"+c.other+"/")
	}
}

// Twenty concurrent requests to a host share one connection, one after the other, with the gap
// between them.
func TestOneConnectionPerHost(t *testing.T) {
	var active, most, conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := active.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer active.Add(-1)
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, rss)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	clk := server.NewClock()
	start := clk.Now()
	c := client(t, func(cfg *Config) { cfg.Gap, cfg.Now, cfg.Sleep = 250*time.Millisecond, clk.Now, clk.Sleep })
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			path := "/"
			if i%2 == 0 {
				path = "/missing"
			}
			_, _ = c.Get(t.Context(), &httpmsg.Request{URL: s.URL + path})
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d requests at once", most.Load())
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
	if d := clk.Now().Sub(start); d != 19*250*time.Millisecond {
		t.Errorf("the gaps took %v", d)
	}
}

func TestRedirects(t *testing.T) {
	mux := http.NewServeMux()
	var hops []int
	mux.HandleFunc("/feed", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, rss) })
	mux.HandleFunc("/to/", func(w http.ResponseWriter, r *http.Request) {
		// /to/301/302/feed: a hop for each status.
		status, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/to/"), "/")
		next := "/to/" + rest
		if !strings.Contains(rest, "/") {
			next = "/" + rest
		}
		n := 0
		fmt.Sscan(status, &n)
		hops = append(hops, n)
		w.Header().Set("Location", next+"#fragment")
		w.WriteHeader(n)
	})
	s := serve(t, mux.ServeHTTP)
	c := client(t)
	for _, v := range []struct {
		path, permanent string
		hops            []int
	}{
		{"/feed", "", nil},
		{"/to/301/feed", "/feed", []int{301}},
		{"/to/308/feed", "/feed", []int{308}},
		{"/to/302/feed", "", []int{302}},
		{"/to/303/feed", "", []int{303}},
		{"/to/307/feed", "", []int{307}},
		{"/to/301/308/feed", "/feed", []int{301, 308}},
		{"/to/301/302/feed", "/to/302/feed", []int{301, 302}},
		{"/to/302/301/feed", "", []int{302, 301}},
		{"/to/301/302/301/feed", "/to/302/301/feed", []int{301, 302, 301}},
		{"/to/301/301/301/301/301/301/301/301/301/301/feed", "/feed", []int{301, 301, 301, 301, 301, 301, 301, 301, 301, 301}},
	} {
		hops = nil
		res := get(t, c, s.URL+v.path)
		want := v.permanent
		if want != "" {
			want = s.URL + want
		}
		if res.Moved.To != want || res.FinalURL != s.URL+"/feed" || !reflect.DeepEqual(hops, v.hops) {
			t.Errorf("%s: permanent %q, final %q, hops %v", v.path, res.Moved.To, res.FinalURL, hops)
		}
	}
}

func TestRefusedRedirects(t *testing.T) {
	for _, loc := range []string{
		"ftp://example.com/", "file:///etc/passwd", "exec:touch /tmp/x", "javascript:1", "http://", "http:///x", "http://[::1", "http://x/%zz", "//",
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", loc)
			w.WriteHeader(301)
		})
		err := getErr(t, client(t), s.URL)
		var e *httpmsg.RedirectError
		if !errors.As(err, &e) || !httpmsg.Remote(err) {
			t.Errorf("%s: %v", loc, err)
		}
		s.Close()
	}
}

// lektor does not send a user and password from a Location header, nor print them.
func TestRedirectUserinfo(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Location", "http://eve:secret@"+r.Host+"/feed")
			w.WriteHeader(301)
			return
		}
		if r.Header.Get("Authorization") != "" {
			t.Error("it was sent")
		}
		fmt.Fprint(w, rss)
	})
	if res := get(t, client(t), s.URL); strings.Contains(fmt.Sprint(res.Moved.To, res.FinalURL), "secret") {
		t.Errorf("it is shown: %s, %s", res.Moved.To, res.FinalURL)
	}
}

// Credentials and the feed's headers are sent to the feed's own origin only, and not after a
// redirect to another origin, even if that redirects back.
func TestCredentialsStayHome(t *testing.T) {
	type seen struct{ host, path, auth, token string }
	var mu sync.Mutex
	var got []seen
	var home, away *httptest.Server
	handler := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			user, pass, _ := r.BasicAuth()
			mu.Lock()
			got = append(got, seen{name, r.URL.Path, user + ":" + pass, r.Header.Get("X-Token")})
			mu.Unlock()
			switch name + r.URL.Path {
			case "home/":
				http.Redirect(w, r, "/2", 302)
			case "home/2":
				http.Redirect(w, r, away.URL+"/3", 302)
			case "away/3":
				http.Redirect(w, r, home.URL+"/4", 302)
			default:
				w.WriteHeader(500)
			}
		}
	}
	home, away = serve(t, handler("home")), serve(t, handler("away"))
	u, err := url.Parse(home.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("me", "sec ret")
	_, err = client(t).Get(t.Context(), &httpmsg.Request{URL: u.String(), Header: textproto.MIMEHeader{"X-Token": {"tok"}}})
	want := []seen{
		{"home", "/", "me:sec ret", "tok"},
		{"home", "/2", "me:sec ret", "tok"},
		{"away", "/3", ":", ""},
		{"home", "/4", ":", ""},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if err == nil || strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "me:") || strings.Contains(err.Error(), "me@") {
		t.Errorf("the error is %v", err)
	}
}

func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"http://a/", "http://A:80/x", true},
		{"http://a/", "https://a/", true},
		{"https://a/", "http://a/", false},
		{"http://a:8080/", "https://a/", false},
		{"http://a/", "https://a:8443/", false},
		{"http://a/", "http://b.a/", false},
		{"http://a:80/", "http://a:81/", false},
	} {
		if got := feedurl.SameOrigin(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
	}
}

// A zero Config means the defaults that commands show.
func TestDefaultConfig(t *testing.T) {
	d := DefaultConfig()
	if d.Gap != DefaultGap || d.PerHost != 1 || d.Deadline != 30*time.Second || d.MaxBytes != 16<<20 || d.MaxDecoded != 16<<20 || d.MaxRedirects != 10 {
		t.Errorf("%+v", d)
	}
	if z := (Config{}).withDefaults(); z.Gap != 0 || z.Deadline != d.Deadline || z.UserAgent != d.UserAgent {
		t.Errorf("%+v", z)
	}
}

func TestURLs(t *testing.T) {
	c := client(t)
	for _, raw := range []string{"", "example.com/feed", "ftp://example.com", "http://", "http:///x", "http://me:secret@[::1", "http://me:secret@x:port/", "http://me:secret@x/%zz", "gopher:x", "//me:secret@x/"} {
		err := getErr(t, c, raw)
		var e *feedurl.Error
		if !errors.As(err, &e) || strings.Contains(err.Error(), "secret") || httpmsg.Remote(err) {
			t.Errorf("%q: %v", raw, err)
		}
	}
	u, err := feedurl.Parse("  HTTP://Example.COM:80/Path?q#frag ")
	if err != nil || u.String() != "http://example.com:80/Path?q" {
		t.Errorf("%v, %v", u, err)
	}
	// A request line cannot contain spaces or non-ASCII characters.
	u, err = feedurl.Parse("http://e.com/a b/é?q=ü x&y=%20+'\"<|")
	if err != nil || u.String() != "http://e.com/a%20b/%C3%A9?q=%C3%BC%20x&y=%20+'\"<|" {
		t.Errorf("%v, %v", u, err)
	}
	var asked string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked = r.RequestURI; r.URL.Path == "/moved" {
			w.Header().Set("Location", "/to?q=ü x")
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(w, rss)
	})
	get(t, c, s.URL+"/x?a b=é")
	if asked != "/x?a%20b=%C3%A9" {
		t.Errorf("asked for %s", asked)
	}
	get(t, c, s.URL+"/moved")
	if asked != "/to?q=%C3%BC%20x" {
		t.Errorf("asked for %s", asked)
	}
	for raw, want := range map[string]string{
		"http://Example.com/x": "example.com:80", "https://example.com": "example.com:443", "http://[::1]:8/": "[::1]:8", "file:///x": "", "exec:x": "",
	} {
		if got := HostKey(raw); got != want {
			t.Errorf("HostKey(%q) = %q", raw, got)
		}
	}
}

func TestTLS(t *testing.T) {
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, rss) })
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, plain.URL, 301)
			return
		}
		w.Header().Set("X-Proto", r.Proto)
		w.Header().Set("Etag", "\"\xff\"")
		fmt.Fprint(w, rss)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	trusting := client(t, func(c *Config) { c.TLS = &tls.Config{RootCAs: roots} })
	if res := get(t, trusting, s.URL); res.Header.Get("X-Proto") != "HTTP/2.0" || string(res.Body) != rss || res.ETag != "\"\xff\"" {
		t.Errorf("%q over %s, etag %q", res.Body, res.Header.Get("X-Proto"), res.ETag)
	}
	// A redirect from https to http is followed, but never counts as permanent.
	if res := get(t, trusting, s.URL+"/down"); res.Moved.To != "" || res.FinalURL != plain.URL {
		t.Errorf("permanent %q, final %q", res.Moved.To, res.FinalURL)
	}
	for _, c := range []struct{ url string }{{s.URL}, {strings.Replace(plain.URL, "http:", "https:", 1)}} {
		var e *httpmsg.NetError
		if err := getErr(t, client(t), c.url); !errors.As(err, &e) || e.Kind != httpmsg.KindTLS || !strings.Contains(err.Error(), c.url) {
			t.Errorf("%v (%+v)", err, e)
		}
	}
}

func TestConnectErrors(t *testing.T) {
	port, free, err := server.Port(false)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	var e *httpmsg.NetError
	if err := getErr(t, client(t), fmt.Sprintf("http://127.0.0.1:%d", port)); !errors.As(err, &e) || e.Kind != httpmsg.KindConnect || e.Offline || !httpmsg.Remote(err) {
		t.Errorf("%v (%+v)", err, e)
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprint(conn, "ICY 200 OK\r\n\r\n")
			_ = conn.Close()
		}
	})
	if err := getErr(t, client(t), s.URL); !errors.As(err, &e) || e.Kind != httpmsg.KindProtocol {
		t.Errorf("%v (%+v)", err, e)
	}
}

func TestCancel(t *testing.T) {
	reached := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	_, err := client(t).Get(ctx, &httpmsg.Request{URL: s.URL})
	if !errors.Is(err, context.Canceled) || httpmsg.Remote(err) {
		t.Errorf("%v", err)
	}
}

// Behind a proxy, addresses cannot be looked up. The address of the proxy itself may be private.
func TestProxy(t *testing.T) {
	var asked []string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://10.1.2.3/", 302)
			return
		}
		fmt.Fprint(w, rss)
	})
	c := client(t, func(cfg *Config) {
		cfg.AllowPrivate = nil
		cfg.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	})
	get(t, c, "http://feeds.example/")
	get(t, c, "http://10.1.2.3/")
	var e *httpmsg.PrivateError
	if err := getErr(t, c, "http://feeds.example/away"); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
	if len(asked) != 3 {
		t.Errorf("the proxy was asked for %q", asked)
	}
}

// Validators are sent only to the URL that sent them, not to other URLs of the redirects.
func TestValidatorsBelongToTheirURL(t *testing.T) {
	var got []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Path+" "+r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since"))
		switch {
		case r.URL.Path == "/a":
			http.Redirect(w, r, "/b", http.StatusFound)
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
		default:
			fmt.Fprint(w, rss)
		}
	})
	for _, c := range []struct {
		url, validated string
		want           []string
		notModified    bool
	}{
		{"/a", "", []string{"/a 12", "/b "}, false},
		{"/a", "/a", []string{"/a 12", "/b "}, false},
		{"/a", "/b", []string{"/a ", "/b 12"}, true},
		{"/a", "/c", []string{"/a ", "/b "}, false},
		{"/b", "", []string{"/b 12"}, true},
		{"/b", "/a", []string{"/b "}, false},
	} {
		got = nil
		r := &httpmsg.Request{URL: s.URL + c.url, ETag: "1", LastModified: "2"}
		if c.validated != "" {
			r.Validated = s.URL + c.validated
		}
		resp, err := client(t).Get(t.Context(), r)
		if err != nil || resp.NotModified != c.notModified || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, %+v, %v", c, got, resp, err)
		}
	}
}

// A 304 about another document than the one whose validators were sent (RFC 9111, section 4.3.4) is no
// confirmation, so the document is requested once more without conditions.
func TestOtherDocumentNotModified(t *testing.T) {
	const etag, date, older = `"1"`, "Mon, 02 Mar 2026 12:00:00 GMT", "Mon, 02 Mar 2026 11:00:00 GMT"
	for _, c := range []struct {
		etag, date   string // sent
		is, modified string // of the 304
		again        bool
	}{
		{etag, date, etag, date, false},
		{etag, date, `W/"1"`, older, false}, // the tag alone counts
		{etag, date, "", "", false},
		{etag, date, "", date, false},
		{etag, "", "", older, false},
		{"", date, "", "Monday, 02-Mar-26 12:00:00 GMT", false},
		{"", date, `"2"`, date, false},
		{"", date, "", "", false},
		{"", date, "", older, true},
		{"", date, "", "soon", true},
		{etag, date, `"2"`, date, true},
		{`W/"1"`, "", `W/"2"`, "", true},
	} {
		asked := 0
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.Header.Get("If-None-Match") == "" && r.Header.Get("If-Modified-Since") == "" {
				w.Header().Set("ETag", `"3"`)
				fmt.Fprint(w, rss)
				return
			}
			for name, value := range map[string]string{"ETag": c.is, "Last-Modified": c.modified} {
				if value != "" {
					w.Header().Set(name, value)
				}
			}
			w.WriteHeader(http.StatusNotModified)
		})
		resp, err := client(t).Get(t.Context(), &httpmsg.Request{URL: s.URL, ETag: c.etag, LastModified: c.date})
		switch {
		case err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.again && (resp.NotModified || string(resp.Body) != rss || resp.ETag != `"3"` || asked != 2):
			t.Errorf("%+v: %d requests, status %d, ETag %s", c, asked, resp.Status, resp.ETag)
		case !c.again && (!resp.NotModified || asked != 1):
			t.Errorf("%+v: %d requests, status %d", c, asked, resp.Status)
		}
	}
}

// TestDateOfServers: Date returns the latest Date of all responses, including redirects and errors,
// and ignores dates far ahead of the local clock.
func TestDateOfServers(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	dates := map[string]string{
		"/from": "Mon, 02 Mar 2026 10:00:00 GMT", "/to": "Mon, 02 Mar 2026 09:00:00 GMT", "/error": "Mon, 02 Mar 2026 11:00:00 GMT",
		"/behind": "Thu, 01 Jan 2015 00:00:00 GMT", "/ahead": "Fri, 02 Mar 2046 00:00:00 GMT", "/none": "soon",
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", dates[r.URL.Path])
		switch r.URL.Path {
		case "/from":
			http.Redirect(w, r, "/to", http.StatusFound)
		case "/error":
			http.Error(w, "no", http.StatusInternalServerError)
		default:
			fmt.Fprint(w, rss)
		}
	})
	c := client(t, func(cfg *Config) { cfg.Now = func() time.Time { return now } })
	if d := c.Date(); !d.IsZero() {
		t.Errorf("before the first answer: %v", d)
	}
	for _, step := range []struct{ path, want string }{
		{"/none", ""}, {"/ahead", ""}, {"/behind", "2015-01-01T00:00:00Z"}, {"/from", "2026-03-02T10:00:00Z"}, {"/behind", "2026-03-02T10:00:00Z"}, {"/error", "2026-03-02T11:00:00Z"},
	} {
		_, _ = c.Get(t.Context(), &httpmsg.Request{URL: s.URL + step.path})
		got := ""
		if d := c.Date(); !d.IsZero() {
			got = d.UTC().Format(time.RFC3339)
		}
		if got != step.want {
			t.Errorf("after %s the date is %q, not %q", step.path, got, step.want)
		}
	}
}
