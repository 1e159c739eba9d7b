package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// short sets a short deadline, for servers that never end.
func short(cfg *Config) { cfg.Deadline = 300 * time.Millisecond }

// longer calls try with longer and longer deadlines until it returns true, because a busy machine
// may miss a short deadline.
func longer(t *testing.T, first time.Duration, try func(deadline time.Duration) (done bool)) {
	t.Helper()
	for d := first; !try(d); d *= 2 {
		if d > time.Minute {
			t.Fatal("no deadline is long enough")
		}
	}
}

// zeros is a body of n zero bytes; an endless one if n is negative.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n >= 0 {
		if z.n == 0 {
			return 0, io.EOF
		}
		if int64(len(p)) > z.n {
			p = p[:z.n]
		}
		z.n -= int64(len(p))
	}
	clear(p)
	return len(p), nil
}

// bomb writes n zero bytes to w, compressed with gzip.
func bomb(w io.Writer, n int64) {
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, _ = io.Copy(z, &zeros{n})
	_ = z.Close()
}

// For each hostile server, the exchange ends with an error that names the limit and the flag that
// raises it, and uses little memory.
func TestHostileServers(t *testing.T) {
	small := func(cfg *Config) { cfg.MaxBytes, cfg.MaxDecoded = 1<<20, 2<<20 }
	flat := make([]byte, 5<<20)
	brBomb, zstdBomb := compress(t, "br", flat), compress(t, "zstd", flat)
	flat = nil
	encoded := func(coding string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			_, _ = w.Write(body)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		config  func(*Config)
		flag    string
	}{
		"gzip bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			bomb(w, 64<<20)
		}, small, httpmsg.FlagMaxDecoded},
		"br bomb":   {encoded("br", brBomb), small, httpmsg.FlagMaxDecoded},
		"zstd bomb": {encoded("zstd", zstdBomb), small, httpmsg.FlagMaxDecoded},
		"bomb in a bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip, gzip")
			z := gzip.NewWriter(w)
			bomb(z, 64<<20)
			_ = z.Close()
		}, small, httpmsg.FlagMaxDecoded},
		"endless body": {func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, &zeros{-1}) }, small, httpmsg.FlagMaxBytes},
		"body too long": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1048577")
			_, _ = io.Copy(w, &zeros{1<<20 + 1})
		}, small, httpmsg.FlagMaxBytes},
		"body that is not decoded": {func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, &zeros{1 << 20}) },
			func(cfg *Config) { cfg.MaxDecoded = 1<<20 - 1 }, httpmsg.FlagMaxDecoded},
		"header of 10 MB": {func(w http.ResponseWriter, r *http.Request) {
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 10000))
			}
		}, nil, httpmsg.FlagMaxHeader},
		"header without end": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, err = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nX: ")
			for err == nil {
				_, err = conn.Write(make([]byte, 1000))
			}
		}, nil, httpmsg.FlagMaxHeader},
		"redirects without end": {func(w http.ResponseWriter, r *http.Request) {
			n := 0
			fmt.Sscan(r.URL.Path[1:], &n)
			http.Redirect(w, r, fmt.Sprint("/", n+1), 302)
		}, nil, httpmsg.FlagMaxRedirects},
		"stall before the answer": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, short, httpmsg.FlagTimeout},
		"stall after the header": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, short, httpmsg.FlagTimeout},
		"stall in the body": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, rss)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, short, httpmsg.FlagTimeout},
		"trickle": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		}, short, httpmsg.FlagTimeout},
		"trickle over redirects": {func(w http.ResponseWriter, r *http.Request) {
			n := 0
			fmt.Sscan(r.URL.Path[1:], &n)
			select {
			case <-r.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
			http.Redirect(w, r, fmt.Sprint("/", n+1), 302)
		}, short, httpmsg.FlagTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.handler)
			cl := client(t)
			if c.config != nil {
				cl = client(t, c.config)
			}
			err := getErr(t, cl, s.URL)
			if !strings.Contains(err.Error(), "--"+c.flag+" raises") || !strings.HasPrefix(err.Error(), s.URL) {
				t.Errorf("the error is %v, and does not name --%s", err, c.flag)
			}
			var limit *httpmsg.LimitError
			var network *httpmsg.NetError
			if c.flag == httpmsg.FlagTimeout {
				if !errors.As(err, &network) || !network.Timeout() {
					t.Errorf("%v is a %T", err, err)
				}
			} else if !errors.As(err, &limit) || limit.Flag != c.flag {
				t.Errorf("%v is a %T", err, err)
			}
			if !httpmsg.Remote(err) {
				t.Error("not a remote failure")
			}
		})
	}
}

// Messages name the cause, even if the server chose very long words.
func TestMessagesAreBrief(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for what, h := range map[string]http.HandlerFunc{
		"only http and https": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "gopher://"+long)
			w.WriteHeader(302)
		},
		"404 Not Found": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/"+long, 302)
				return
			}
			http.NotFound(w, r)
		},
		"lektor accepts only": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", long)
			fmt.Fprint(w, rss)
		},
		"malformed HTTP response": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				fmt.Fprint(conn, long, "\r\n\r\n")
				conn.Close()
			}
		},
		"8388608 bytes that RFC 9659 allows": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			fmt.Fprint(w, "\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x80\x03\x00\x00a")
		},
	} {
		err := getErr(t, client(t), serve(t, h).URL)
		if line := termsafe.Brief(err.Error()); !strings.Contains(line, what) || len(err.Error()) > 1000 {
			t.Errorf("%q is not in %q (%d bytes)", what, line, len(err.Error()))
		}
	}
}

// A decompression bomb uses at most the memory of the largest allowed body and of the decoder
// windows.
func TestBombMemory(t *testing.T) {
	flat := make([]byte, 40<<20)
	bombs := map[string][]byte{"br": compress(t, "br", flat), "zstd": compress(t, "zstd", flat), "gzip": compress(t, "gzip", flat)}
	flat = nil
	// A window of 2 GiB, announced by a frame of a few bytes.
	bombs["zstd, huge window"] = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x03, 0x00, 0x00, 0x61}
	for name, body := range bombs {
		t.Run(name, func(t *testing.T) {
			coding, _, _ := strings.Cut(name, ",")
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", coding)
				_, _ = w.Write(body)
			})
			c := client(t)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := getErr(t, c, s.URL)
			runtime.ReadMemStats(&after)
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 64 {
				t.Errorf("%d MiB were allocated for %v", n, err)
			}
		})
	}
}

// A body of exactly the limit is allowed.
func TestLimitsAreInclusive(t *testing.T) {
	body := make([]byte, 100000)
	for i := range body {
		body[i] = byte(i * i >> 7)
	}
	for _, coding := range []string{"", "gzip", "br", "zstd"} {
		wire := body
		if coding != "" {
			wire = compress(t, coding, body)
		}
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			_, _ = w.Write(wire)
		})
		c := client(t, func(cfg *Config) { cfg.MaxBytes, cfg.MaxDecoded = int64(len(wire)), int64(len(body)) })
		if res := get(t, c, s.URL); len(res.Body) != len(body) {
			t.Errorf("%q: %d bytes", coding, len(res.Body))
		}
		c = client(t, func(cfg *Config) { cfg.MaxBytes, cfg.MaxDecoded = int64(len(wire))-1, int64(len(body)) })
		getErr(t, c, s.URL)
		c = client(t, func(cfg *Config) { cfg.MaxBytes, cfg.MaxDecoded = int64(len(wire)), int64(len(body))-1 })
		getErr(t, c, s.URL)
	}
}

// Many bodies over a megabyte wait for each other, and none fails because of the wait.
func TestBigBodiesTakeTurns(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, &zeros{3 << 20}) })
	c := client(t, func(cfg *Config) { cfg.PerHost = 100 })
	errs := make(chan error)
	for range 12 {
		go func() {
			res, err := c.Get(t.Context(), &httpmsg.Request{URL: s.URL})
			if err == nil && len(res.Body) != 3<<20 {
				err = fmt.Errorf("%d bytes", len(res.Body))
			}
			errs <- err
		}()
	}
	for range 12 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if !c.big.TryAcquire(bigBodies) {
		t.Error("places are still taken")
	}
}

// A held body keeps its place until Done is called; a failed one releases its place.
func TestBigBodiesAreHeld(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		size := int64(3 << 20)
		if r.URL.Path == "/over" {
			size = 5 << 20
		}
		_, _ = io.Copy(w, &zeros{size})
	})
	c := client(t, func(cfg *Config) { cfg.PerHost, cfg.MaxBytes, cfg.MaxDecoded = 100, 4<<20, 4<<20 })
	fetch := func(path string) *httpmsg.Response {
		t.Helper()
		res, err := c.Get(t.Context(), &httpmsg.Request{URL: s.URL + path, Hold: true})
		if (err != nil) != (path == "/over") {
			t.Fatal(path, err)
		}
		return res
	}
	places := func(want int, when string) {
		t.Helper()
		if left := int64(bigBodies - want); !c.big.TryAcquire(left) || c.big.TryAcquire(1) {
			t.Errorf("%s: not %d places are taken", when, want)
		} else {
			c.big.Release(left)
		}
	}
	fetch("/over").Done()
	places(0, "one failed")
	first := fetch("/a")
	places(1, "one is held")
	second := fetch("/b")
	places(2, "two are held")
	first.Done()
	first.Done()
	places(1, "the first is done")
	third := fetch("/c")
	second.Done()
	third.Done()
	places(0, "all are done")
}

func TestRedirectLoop(t *testing.T) {
	var n atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		http.Redirect(w, r, map[string]string{"/": "/a", "/a": "/b", "/b": "/a"}[r.URL.Path], 301)
	})
	var e *httpmsg.RedirectError
	if err := getErr(t, client(t), s.URL+"/"); !errors.As(err, &e) || !strings.Contains(err.Error(), "redirect loop") || n.Load() != 3 {
		t.Errorf("after %d requests: %v", n.Load(), err)
	}
}

// The deadline does not include the wait for the host.
func TestDeadlineIsOfTheExchange(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, rss) })
	longer(t, time.Second/4, func(deadline time.Duration) bool {
		waited := false
		c := client(t, func(cfg *Config) {
			cfg.Deadline, cfg.Gap = deadline, time.Hour
			cfg.Sleep = func(ctx context.Context, _ time.Duration) error {
				waited = true
				return workers.Sleep(ctx, deadline+deadline/10)
			}
		})
		for range 2 {
			if _, err := c.Get(t.Context(), &httpmsg.Request{URL: s.URL}); err != nil {
				if e := (*httpmsg.NetError)(nil); !errors.As(err, &e) || e.Kind != httpmsg.KindTimeout {
					t.Fatal(err)
				}
				return false
			}
		}
		if !waited {
			t.Error("nothing was waited for")
		}
		return true
	})
}

func TestPrivateAddresses(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("127.1.0.0/16"), netip.MustParsePrefix("203.0.113.7/32")}
	allow = append(allow, netip.MustParsePrefix("169.254.7.0/24"))
	for want, addrs := range map[standing]string{
		public: "8.8.8.8 1.1.1.1 192.88.98.255 192.88.100.1 3fff:1000::1 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1 " +
			"2606:4700::1111 2a00::1 64:ff9b::808:808 ::ffff:8.8.8.8 2002:808:808::1 ::ffff:0:808:808 " +
			"127.1.2.3 ::ffff:127.1.2.3 64:ff9b::7f01:203 203.0.113.7 169.254.7.1 2002:a9fe:701::1",
		private: "10.0.0.1 127.0.0.1 127.255.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.127.255.255 " +
			"255.255.255.255 240.0.0.1 198.18.0.1 192.0.0.1 192.88.99.1 192.88.99.255 3fff::1 3fff:fff:ffff::1 2002:c058:6301::1 ::1 fc00::1 fd12::1 fec0::1 " +
			"::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::808:808 2002:7f00:1:: 2002:a00:1::1 " +
			"::ffff:0:a00:1 203.0.113.8",
		never: "0.0.0.0 0.1.2.3 169.254.169.254 169.254.0.1 224.0.0.1 239.1.1.1 :: fe80::1 fe80::1%eth0 ff02::1 " +
			"100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254 " +
			"::ffff:169.254.169.254 ::ffff:0.0.0.0 64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe 2002:a9fe:a9fe::1 ::a9fe:a9fe ::ffff:0:a9fe:a9fe 2002:6464:64c8::1",
	} {
		for addr := range strings.FieldsSeq(addrs) {
			if got := standingOf(netip.MustParseAddr(addr), allow); got != want || got != public && !Private(netip.MustParseAddr(addr)) {
				t.Errorf("%s: standing %v, want %v", addr, got, want)
			}
		}
	}
}

// Addresses that can never have a document are not requested, even by name or through a proxy,
// unless the user allows them.
func TestNeverAsked(t *testing.T) {
	for _, host := range []string{"169.254.169.254", "[fe80::1]", "0.0.0.0", "[::]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "224.0.0.1", "metadata.example"} {
		dialed := 0
		refuse := func(allow ...netip.Prefix) error {
			c := client(t, func(cfg *Config) {
				cfg.AllowPrivate = allow
				cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
					dialed++
					ours, theirs := net.Pipe()
					theirs.Close()
					addr, _ := netip.ParseAddr(strings.Trim(host, "[]"))
					if host == "metadata.example" {
						addr = netip.MustParseAddr("169.254.169.254")
					}
					return &pipe{ours, net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 80))}, nil
				}
			})
			_, err := c.Get(t.Context(), &httpmsg.Request{URL: "http://" + host + "/latest"})
			return err
		}
		var e *httpmsg.PrivateError
		if err := refuse(); !errors.As(err, &e) || !e.Never || !httpmsg.Remote(err) || !strings.Contains(err.Error(), "--"+httpmsg.FlagAllow) {
			t.Errorf("%s: %v", host, err)
		}
		if err := refuse(netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fc00::/16")); !errors.As(err, &e) {
			t.Errorf("%s: %v", host, err)
		}
		dialed = 0
		if err := refuse(netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")); errors.As(err, &e) || dialed == 0 {
			t.Errorf("%s, allowed: %v", host, err)
		}
	}
	proxied := 0
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied++ })
	to, _ := url.Parse(proxy.URL)
	c := NewClient(Config{Proxy: http.ProxyURL(to)})
	defer c.Close()
	var e *httpmsg.PrivateError
	if _, err := c.Get(t.Context(), &httpmsg.Request{URL: "http://169.254.169.254/"}); !errors.As(err, &e) || !e.Never || proxied > 0 {
		t.Errorf("by a proxy: %v", err)
	}
}

// pipe is a connection whose remote address the test chooses.
type pipe struct {
	net.Conn
	to net.Addr
}

func (p *pipe) RemoteAddr() net.Addr { return p.to }

// A public document cannot cause a request to a private address, however it refers to it. A
// document on the same host or on a private host can.
func TestOrigin(t *testing.T) {
	asked := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprint(w, rss)
	})
	c := NewClient(Config{})
	defer c.Close()
	open := NewClient(Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	defer open.Close()
	byName := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for _, o := range []struct {
		origin, url string
		ok          bool
	}{
		{"", s.URL, true},
		{"http://public.example/feed", s.URL, false},
		{"http://public.example/feed", byName, false},
		{"https://93.184.216.34/feed", s.URL, false},
		{"http://169.254.169.254/", s.URL, false},
		{"http://127.0.0.1:1/other", s.URL, true},
		{"http://10.1.2.3/feed", s.URL, true},
		{"http://nas.local/feed", s.URL, true},
		{"http://nas/feed", s.URL, true},
		{"http://LOCALHOST./feed", s.URL, true},
		{"http://134744072/feed", s.URL, false},
		{"http://0x08080808/feed", s.URL, false},
		{"http://localhost.example/feed", s.URL, false},
		{"http://local/../feed", s.URL, true},
		{"http://127.0.0.1.example/feed", s.URL, false},
		{"file:///tmp/feed", s.URL, false},
		{"exec:curl http://public.example/", s.URL, false},
		{"a list", s.URL, false},
		{"/home/kim/Sync/lektor/laptop-0123456789abcdef", s.URL, false}, // a peer of lektor-share
	} {
		asked = 0
		_, err := c.Get(t.Context(), &httpmsg.Request{URL: o.url, Origin: o.origin})
		var e *httpmsg.PrivateError
		if o.ok != (err == nil) || o.ok != (asked == 1) || !o.ok && (!errors.As(err, &e) || !strings.Contains(err.Error(), ", named by ") || !strings.Contains(err.Error(), o.origin)) {
			t.Errorf("%+v: %d requests, %v", o, asked, err)
		}
		if _, err := open.Get(t.Context(), &httpmsg.Request{URL: o.url, Origin: o.origin}); err != nil && o.url == s.URL {
			t.Errorf("%+v, allowed: %v", o, err)
		}
	}
}

// A public server cannot redirect to the private network, by address or by name. A private server
// that the user chose can redirect to another private one.
func TestPrivateRedirects(t *testing.T) {
	var asked atomic.Int32
	follow := func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, 302)
			return
		}
		fmt.Fprint(w, rss)
	}
	private1 := serveOn(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { asked.Add(1); follow(w, r) })
	private2 := serveOn(t, "127.0.0.3", func(w http.ResponseWriter, r *http.Request) { asked.Add(1); follow(w, r) })
	public1 := serveOn(t, "127.0.0.2", follow)
	public2 := serveOn(t, "127.0.0.4", follow)
	names := map[string]string{"rebound.example.": "127.0.0.1", "fine.example.": "127.0.0.4"}
	c := client(t, func(cfg *Config) {
		cfg.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32"), netip.MustParsePrefix("127.0.0.4/32")}
		cfg.Resolver = resolver(t, names)
	})
	to := func(chain ...string) string {
		out := chain[len(chain)-1]
		for i := len(chain) - 2; i >= 0; i-- {
			out = chain[i] + "/?to=" + url.QueryEscape(out)
		}
		return out
	}
	port := func(s string) string { _, p, _ := net.SplitHostPort(strings.TrimPrefix(s, "http://")); return p }
	for _, v := range []struct {
		what string
		url  string
		ok   bool
		priv int32 // requests that reach private servers
	}{
		{"private", to(private1.URL), true, 1},
		{"public", to(public1.URL), true, 0},
		{"private, by name", "http://rebound.example:" + port(private1.URL), true, 1},
		{"public to public", to(public1.URL, public2.URL), true, 0},
		{"public to public, by name", to(public1.URL, "http://fine.example:"+port(public2.URL)), true, 0},
		{"private to private", to(private1.URL, private2.URL), true, 2},
		{"private to itself", to(private1.URL, private1.URL+"/2"), true, 2},
		{"private to public", to(private1.URL, public1.URL), true, 1},
		{"public to private", to(public1.URL, private1.URL), false, 0},
		{"public to public to private", to(public1.URL, public2.URL, private1.URL), false, 0},
		{"private to public to private", to(private1.URL, public1.URL, private2.URL), false, 1},
		{"public to private, by name", to(public1.URL, "http://rebound.example:"+port(private1.URL)), false, 0},
		{"public to localhost", to(public1.URL, "http://localhost:"+port(private1.URL)), false, 0},
		{"public to 0", to(public1.URL, "http://0.0.0.0:"+port(private1.URL)), false, 0},
		{"public to mapped", to(public1.URL, "http://[::ffff:127.0.0.1]:"+port(private1.URL)), false, 0},
	} {
		// Twice, as idle connections to private servers, which other feeds may use, must not be
		// reused for a redirect.
		for range 2 {
			asked.Store(0)
			_, err := c.Get(t.Context(), &httpmsg.Request{URL: v.url})
			var e *httpmsg.PrivateError
			if v.ok && err != nil || !v.ok && !errors.As(err, &e) {
				t.Errorf("%s: %v", v.what, err)
			}
			if asked.Load() != v.priv {
				t.Errorf("%s: private servers got %d requests, want %d", v.what, asked.Load(), v.priv)
			}
		}
	}
}

// Dial does not bypass the check of addresses.
func TestPrivateDialHook(t *testing.T) {
	s := serveOn(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { t.Error("it was asked") })
	public := serveOn(t, "127.0.0.2", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://inside.example/", 302) })
	c := client(t, func(cfg *Config) {
		cfg.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasPrefix(addr, "inside.example:") {
				addr = strings.TrimPrefix(s.URL, "http://")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	var e *httpmsg.PrivateError
	if err := getErr(t, c, public.URL); !errors.As(err, &e) || e.Addr != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%v", err)
	}
}

// resolver resolves names (with a final dot) to an address; "" is a failure of the name server.
// Other names do not exist.
func resolver(t *testing.T, names map[string]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			q := m.Questions[0]
			switch addr, ok := names[q.Name.String()]; {
			case !ok:
				m.RCode = dnsmessage.RCodeNameError
			case addr == "":
				m.RCode = dnsmessage.RCodeServerFailure
			case q.Type == dnsmessage.TypeA:
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type, TTL: 1},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
				}}
			}
			if b, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(b, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestDNSErrors(t *testing.T) {
	c := client(t, func(cfg *Config) { cfg.Resolver = resolver(t, map[string]string{"broken.example.": ""}) })
	var e *httpmsg.NetError
	if err := getErr(t, c, "http://missing.example./"); !errors.As(err, &e) || e.Kind != httpmsg.KindDNS || e.Offline ||
		!strings.Contains(err.Error(), `no host "missing.example."`) {
		t.Errorf("%v (%+v)", err, e)
	}
	if err := getErr(t, c, "http://broken.example./"); !errors.As(err, &e) || e.Kind != httpmsg.KindDNS || !e.Offline {
		t.Errorf("%v (%+v)", err, e)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a feed%.xml")
	write(t, dir, "a feed%.xml", rss)
	c := client(t, func(cfg *Config) { cfg.MaxBytes = 1000 })
	u := (&url.URL{Scheme: "file", Path: path}).String()
	res := get(t, c, u)
	if string(res.Body) != rss || res.Status != 200 || res.FinalURL != u || res.ETag == "" {
		t.Errorf("%+v", res)
	}
	get(t, c, "FILE://localhost"+strings.TrimPrefix(u, "file://"))
	r := &httpmsg.Request{URL: u, ETag: res.ETag}
	if res, err := c.Get(t.Context(), r); err != nil || !res.NotModified || res.ETag != r.ETag || len(res.Body) != 0 {
		t.Errorf("unchanged: %+v, %v", res, err)
	}
	// The size or the modification time changed.
	write(t, dir, "a feed%.xml", rss+"\n")
	if res, err := c.Get(t.Context(), r); err != nil || res.NotModified {
		t.Errorf("longer: %+v, %v", res, err)
	}
	write(t, dir, "a feed%.xml", rss)
	if err := os.Chtimes(path, time.Now(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if res, err := c.Get(t.Context(), r); err != nil || res.NotModified {
		t.Errorf("newer: %+v, %v", res, err)
	}
	write(t, dir, "long", strings.Repeat("x", 1001))
	for _, bad := range []string{"file:", "file://host/x", "file:relative", "file:///%zz", "file:///%00", "file://" + dir, "file:///dev/zero", "file://" + dir + "/missing", "file://" + dir + "/long"} {
		if err := getErr(t, c, bad); !strings.Contains(err.Error(), "file:") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestExec(t *testing.T) {
	c := client(t, func(cfg *Config) { cfg.MaxBytes, cfg.Deadline = 10000, time.Minute })
	run := func(c *Client, command string) (*httpmsg.Response, error) {
		return c.Get(t.Context(), &httpmsg.Request{URL: "exec:" + command, AllowExec: true})
	}
	if res, err := run(c, `printf '%s' "<rss?a=b#c>" | cat`); err != nil || string(res.Body) != "<rss?a=b#c>" || res.Status != 200 {
		t.Errorf("%+v, %v", res, err)
	}
	var e *feedurl.Error
	if _, err := c.Get(t.Context(), &httpmsg.Request{URL: "exec:echo"}); !errors.As(err, &e) {
		t.Errorf("run without permission: %v", err)
	}
	if _, err := run(c, "  "); !errors.As(err, &e) {
		t.Errorf("no command: %v", err)
	}
	var ce *httpmsg.CommandError
	if _, err := run(c, `echo out; printf 'bad\033[m\nthing\n' >&2; exit 3`); !errors.As(err, &ce) ||
		!strings.HasSuffix(err.Error(), "exit status 3: bad[m thing") || !httpmsg.Remote(err) {
		t.Errorf("%v", err)
	}
	var limit *httpmsg.LimitError
	if _, err := run(c, "while :; do echo xxxxxxxxxxxxxxxxxxxxx; done"); !errors.As(err, &limit) || limit.Flag != httpmsg.FlagMaxBytes {
		t.Errorf("%v", err)
	}
	// A background process does not delay the result, and is killed.
	dir := t.TempDir()
	if res, err := run(c, "echo doc; (sleep 600 & echo $! >"+dir+"/pid)"); err != nil || string(res.Body) != "doc\n" {
		t.Errorf("%+v, %v", res, err)
	}
	waitDead(t, dir+"/pid")
}

// At the deadline the command and its children are killed.
func TestExecDeadline(t *testing.T) {
	pid := t.TempDir() + "/pid"
	c := client(t, short)
	longer(t, time.Second/4, func(deadline time.Duration) bool {
		c := client(t, func(cfg *Config) { cfg.Deadline = deadline })
		_, err := c.Filter(t.Context(), "sleep 600 & echo $! >"+pid+".new; mv "+pid+".new "+pid+"; wait", []byte(rss))
		var e *httpmsg.NetError
		if !errors.As(err, &e) || !e.Timeout() {
			t.Errorf("%v", err)
		}
		_, err = os.Stat(pid)
		return err == nil
	})
	waitDead(t, pid)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Filter(ctx, "sleep 600", nil); !errors.Is(err, context.Canceled) || httpmsg.Remote(err) {
		t.Errorf("%v", err)
	}
}

// waitDead waits until the process whose id is in a file has ended.
func waitDead(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	fmt.Sscan(string(b), &pid)
	if pid == 0 {
		t.Fatalf("no process in %q", b)
	}
	for deadline := time.Now().Add(time.Minute); alive(pid); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

func TestFilter(t *testing.T) {
	c := client(t)
	out, err := c.Filter(t.Context(), "tr a-z A-Z", []byte("<rss>"))
	if err != nil || string(out) != "<RSS>" {
		t.Errorf("%q, %v", out, err)
	}
	// A filter need not read all of its input.
	out, err = c.Filter(t.Context(), "head -c 3", make([]byte, 10<<20))
	if err != nil || len(out) != 3 {
		t.Errorf("%q, %v", out, err)
	}
	var e *httpmsg.CommandError
	if _, err := c.Filter(t.Context(), "no-such-command-here", nil); !errors.As(err, &e) || e.What != "filter" {
		t.Errorf("%v", err)
	}
}

// A server is public if it has a public address, as here an allowed one.
func TestMovedByPublicServer(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to" {
			http.Redirect(w, r, "/feed", http.StatusMovedPermanently)
		}
	})
	feed := s.URL + "/feed"
	for _, public := range []bool{false, true} {
		c := client(t, func(c *Config) {
			if !public {
				c.AllowPrivate = nil
			}
		})
		if m := get(t, c, s.URL+"/to").Moved; m != (httpmsg.Move{To: feed, Public: public}) {
			t.Errorf("public %v: %+v", public, m)
		}
		if m := get(t, c, feed).Moved; m != (httpmsg.Move{}) {
			t.Errorf("public %v: not moved: %+v", public, m)
		}
	}
}
