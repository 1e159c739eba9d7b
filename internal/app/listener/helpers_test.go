package listener

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/hub"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// world is a lektor-dir, a hub and a listener between them.
type world struct {
	t        testing.TB
	dir      *lektordir.Dir
	test     *testdir.Dir
	hub      *hub.Hub
	server   *httptest.Server // serves the hub
	l        *Listener
	callback *httptest.Server
	clock    *server.Clock
	log      *server.Log
	plain    string // URL of the hub by http
	opts     ListenOptions
}

// newWorld starts a hub and a listener. Run is not called; step does the due work instead.
func newWorld(t testing.TB, hub *hub.Hub, change func(*ListenOptions)) *world {
	w := &world{t: t, test: testdir.New(t), hub: hub, clock: server.ClockAt(time.Unix(1_800_000_000, 0).UTC()), log: &server.Log{}}
	var err error
	if w.dir, err = lektordir.Open(w.test.Path, nil); err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewTLSServer(hub)
	t.Cleanup(w.server.Close)
	t.Cleanup(hub.Wait)
	plain := httptest.NewServer(hub)
	t.Cleanup(plain.Close)
	w.callback = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.l.ServeHTTP(rw, r) }))
	t.Cleanup(w.callback.Close)
	pool := x509.NewCertPool()
	pool.AddCert(w.server.Certificate())
	public, _ := url.Parse(w.callback.URL + "/lektor")
	w.opts = ListenOptions{
		Public: public, Cooldown: 10 * time.Second, Rand: func() float64 { return 0 },
		Common: Common{Fetch: fetch.Config{AllowPrivate: loopback, Now: w.clock.Now, TLS: &tls.Config{RootCAs: pool}, Deadline: time.Minute, PerHost: 2}},
	}
	if change != nil {
		change(&w.opts)
	}
	w.restart()
	w.test.Feed("urn:x:plain", "A feed without a hub", "etc/fetch/url=http://plain.example/")
	w.plain = plain.URL
	return w
}

// restart ends the listener and starts another one.
func (w *world) restart() {
	if w.l != nil {
		w.l.Close()
	}
	w.l = New(w.dir, w.log, w.opts)
	if err := w.l.Load(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.l.Close)
}

// step makes all requests that are due, and waits for their results.
func (w *world) step() {
	w.t.Helper()
	if err := w.l.scan(); err != nil {
		w.t.Fatal(err)
	}
	for range 100 {
		w.l.step(context.Background())
		w.l.batches.Wait()
		w.hub.Wait()
		w.l.mu.Lock()
		n := len(w.l.wake)
		w.l.mu.Unlock()
		if n == 0 {
			return
		}
		<-w.l.wake
	}
	w.t.Fatal("requests are due without an end")
}

// feed subscribes to a feed with files in etc/push/, and returns its hash.
func (w *world) feed(feedURL string, files ...string) string {
	all := []string{"etc/fetch/url=" + feedURL}
	for _, f := range files {
		all = append(all, "etc/push/"+f)
	}
	hash, err := w.test.Feed(feedURL, "Feed", all...)
	if err != nil {
		w.t.Fatal(err)
	}
	return hash
}

// cloud returns a line of etc/push/cloud for the hub.
func (w *world) cloud(path, protocol string) string {
	u, _ := url.Parse(w.plain)
	return fmt.Sprintf("cloud=%s\t%s\t%s\t\t%s", u.Hostname(), u.Port(), path, protocol)
}

func (w *world) state(hash string) push.Registration {
	return push.ReadRegistration(w.dir, hash)
}

// marker reports whether a feed has a due marker, and removes it.
func (w *world) marker(hash string) bool {
	return os.Remove(w.dir.Join("etc/fetch/due", hash)) == nil
}

func (w *world) markers() int {
	list, _ := filepath.Glob(w.dir.Join("etc/fetch/due/*"))
	return len(list)
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if ok() {
			return
		}
		poll := time.NewTimer(2 * time.Millisecond)
		<-poll.C
	}
	t.Fatalf("waited in vain for: %s", what)
}

// newServer starts a server for a test, and returns its URL.
func newServer(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
