package listener

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/testkit/hub"
)

// cloudAt returns a line of etc/push/cloud.
func cloudAt(t *testing.T, base, path string) string {
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("cloud=%s\t%s\t%s\t\thttp-post", u.Hostname(), u.Port(), path)
}

func TestAttackCloudAtPrivateAddress(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	var hashes []string
	for i, host := range []string{"169.254.169.254", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"fd00::1", "fe80::1", "ff02::1", "::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"} {
		hashes = append(hashes, w.feed(fmt.Sprintf("http://c%d.example/", i), "cloud="+host+"\t80\t/latest/meta-data\t\thttp-post"))
		h := host
		if strings.Contains(h, ":") {
			h = "[" + h + "]"
		}
		hashes = append(hashes, w.feed(fmt.Sprintf("http://h%d.example/", i), "hub=http://"+h+"/"))
	}
	w.step()
	for _, h := range hashes {
		if st := w.state(h); st.State != Failed || !strings.Contains(st.Error, "private address") {
			t.Errorf("%s: %s %s", st.Hub, st.State, st.Error)
		}
	}
}

// If a name first resolves to a public address and later to a private one, the address of
// the connection counts.
func TestAttackNameThatBecomesPrivate(t *testing.T) {
	var hits atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer inside.Close()
	lookups := 0
	w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) {
		o.Fetch.AllowPrivate = nil
		o.Fetch.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if lookups++; lookups == 1 {
				return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("the public address does not answer")}
			}
			return (&net.Dialer{}).DialContext(ctx, network, inside.Listener.Addr().String())
		}
	})
	a := w.feed(feedA, "cloud=rebind.example\t80\t/\t\thttp-post")
	for range 3 {
		w.step()
		w.clock.Add(time.Hour)
	}
	if st := w.state(a); lookups < 2 || hits.Load() != 0 || !strings.Contains(st.Error, "private address 127.0.0.1") {
		t.Errorf("%d look-ups, %d requests to the private address: %+v", lookups, hits.Load(), st)
	}
}

func TestAttackRedirectToPrivateAddress(t *testing.T) {
	for _, target := range []string{"http://169.254.169.254/", "http://127.0.0.2:1/", "http://[::ffff:127.0.0.2]:1/", "file:///etc/passwd"} {
		s := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Location", target)
			rw.WriteHeader(307)
		}))
		w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) {
			o.Fetch.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		})
		a := w.feed(feedA, cloudAt(t, s, "/x"))
		w.step()
		if st := w.state(a); st.State != Failed || !strings.Contains(st.Error, "private address") && !strings.Contains(st.Error, "only http") {
			t.Errorf("%s: %+v", target, st)
		}
	}
}

func TestAttackHubThatTricklesRedirectsForEverOrAnswers100MB(t *testing.T) {
	var wrote atomic.Int64
	var forever atomic.Bool // trickle without an end, not only until the honest hub was asked
	cloud := &hub.Hub{}
	s := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/trickle":
			rw.Header().Set("Content-Length", "1000000")
			for r.Context().Err() == nil && (forever.Load() || len(cloud.Registrations()) == 0) {
				rw.Write([]byte(" "))
				http.NewResponseController(rw).Flush()
				tick := time.NewTimer(10 * time.Millisecond)
				<-tick.C
			}
		case "/100mb":
			chunk := make([]byte, 1<<20)
			for range 100 {
				n, err := rw.Write(chunk)
				wrote.Add(int64(n))
				if err != nil {
					return
				}
			}
		default:
			n := 0
			fmt.Sscanf(r.URL.Path, "/redirect%d", &n)
			rw.Header().Set("Location", fmt.Sprintf("/redirect%d", n+1))
			rw.WriteHeader(302)
		}
	}))
	w := newWorld(t, cloud, func(o *ListenOptions) { o.Fetch.MaxRedirects = 5 })
	trickle := w.feed("http://t.example/", cloudAt(t, s, "/trickle"))
	redirect := w.feed("http://r.example/", cloudAt(t, s, "/redirect"))
	big := w.feed("http://b.example/", "hub="+s+"/100mb")
	honest := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	before := heap()
	w.step()
	if grown := heap() - before; grown > 16<<20 || wrote.Load() > 32<<20 {
		t.Errorf("memory grew by %d bytes, %d were sent", grown, wrote.Load())
	}
	if st := w.state(trickle); st.State != Failed {
		t.Errorf("%+v", st)
	}
	if st := w.state(redirect); st.State != Failed || !strings.Contains(st.Error, "redirects") {
		t.Errorf("%+v", st)
	}
	if st := w.state(big); st.State != Requested {
		t.Errorf("%+v", st)
	}
	if st := w.state(honest); st.State != Registered {
		t.Errorf("%+v", st)
	}
	// A trickling answer does not end by itself; the timeout ends the request.
	forever.Store(true)
	w.opts.Fetch.Deadline = 300 * time.Millisecond
	w.restart()
	w.clock.Add(time.Hour)
	w.step()
	if st := w.state(trickle); st.State != Failed || !strings.Contains(st.Error, "within") {
		t.Errorf("%+v", st)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// listen serves a listener without timeouts, and returns the address.
func listen(t *testing.T, w *world, conns int) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.NewServer(w.l, w.log)
	// No timeout closes slow connections.
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = 0, 0, 0, 0
	go s.Serve(httpserver.Limit(l, conns))
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

func TestAttackChallengeOf1MBWithHTML(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	addr := listen(t, w, 16)
	st := w.state(a)
	// The answer is the same while a registration is under way.
	w.l.callbacks.byToken[st.Token()].asking = &asking{urls: []string{feedA}, calls: map[string]*calls{}}
	for _, n := range []int{8000, 1 << 20} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go fmt.Fprintf(c, "GET /%s?challenge=%s HTTP/1.1\r\nHost: x\r\n\r\n", st.Token(), strings.Repeat("%3Cscript%3E", n/11))
		b, _ := io.ReadAll(io.LimitReader(c, 1<<20))
		if answer := string(b); len(b) > 1000 || strings.Contains(answer, "script") || !strings.Contains(answer, " 4") {
			t.Errorf("%d: %.300q", n, answer)
		}
	}
}

func TestAttack1000SlowConnections(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) { o.Cooldown = 0 })
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	st := w.state(a)
	const limit = 100
	addr := listen(t, w, limit)
	before := heap()
	for i := range 1000 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		switch i % 3 {
		case 0: // nothing at all
		case 1: // a header without an end
			fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: x\r\nX-A: ", st.Token())
		case 2: // a body that does not arrive
			fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\nurl=", st.Token())
		}
		if i%50 != 49 {
			continue
		}
		if got := post(t, "http://"+addr+"/"+st.Token(), "", "url="+feedA); got.status != 200 || !w.marker(a) {
			t.Fatalf("after %d connections: %+v", i+1, got)
		}
	}
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("memory grew by %d bytes", grown)
	}
}
