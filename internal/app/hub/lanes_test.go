package hub

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/passwords"
)

// timers replaces the timers of a hub; they fire when a test calls fire.
type timers struct {
	mu    sync.Mutex
	next  int
	f     map[int]func() // running timers
	fired int
}

func (t *timers) after(_ time.Duration, f func()) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.f == nil {
		t.f = map[int]func(){}
	}
	t.next++
	id := t.next
	t.f[id] = f
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.f, id)
	}
}

// fire fires the running timers if their number, with those that fired before, is expected.
func (t *timers) fire(expected int) {
	t.mu.Lock()
	if t.fired+len(t.f) != expected {
		t.mu.Unlock()
		return
	}
	all := t.f
	t.fired, t.f = expected, nil
	t.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// A host has forty slow subscribers and ten fast ones. When the slow requests have exceeded
// the time of a quick one, the fast subscribers are notified although no slow request has
// ended. From the next update on, the fast subscribers come first.
func TestSlowSubscribersOfOneHost(t *testing.T) {
	var clock timers
	w := newWorld(t, func(o *Options) { o.AfterFunc = clock.after })
	feed := w.feed("/feed", "one")
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	var mu sync.Mutex
	var order []string
	var waiting atomic.Int32
	const slow, fast = 40, 10
	for i := range slow + fast {
		path := fmt.Sprintf("/fast%d", i)
		if i < slow {
			path = fmt.Sprintf("/slow%d", i)
		}
		w.register(path, feed)
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			order = append(order, path)
			mu.Unlock()
			if strings.HasPrefix(path, "/slow") {
				waiting.Add(1)
				<-hold
				waiting.Add(-1)
			}
		})
	}
	ping := func(document string) (begun []string) {
		mu.Lock()
		order = nil
		mu.Unlock()
		w.feed("/feed", document)
		go http.Post(w.server.URL+"/ping", formType, strings.NewReader(encode("url", feed)))
		count := func(prefix string) (n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, path := range order {
				if strings.HasPrefix(path, prefix) {
					n++
				}
			}
			return n
		}
		until(t, "requests to all subscribers, although no slow one answers", func() bool {
			clock.fire(int(waiting.Load())) // only when slow requests have all places
			return count("/fast") == fast && count("/slow") == slow
		})
		if n := waiting.Load(); n != slow {
			t.Errorf("%d slow requests wait", n)
		}
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(order)
	}
	ping("two")
	release()
	w.settle()
	for _, s := range w.subscriptions(feed) {
		if s.Slow != strings.Contains(s.Callback, "/slow") {
			t.Errorf("%s: slow is %v", s.Callback, s.Slow)
		}
	}
	// With one request at a time, only the rank determines the order.
	w.opts.AtOnce, w.opts.Callbacks.PerHost = 1, 1
	w.restart()
	hold = make(chan struct{})
	close(hold)
	mu.Lock()
	order = nil
	mu.Unlock()
	w.feed("/feed", "three")
	w.ping(feed)
	w.settle()
	if len(order) != slow+fast || slices.ContainsFunc(order[:fast], func(path string) bool { return strings.HasPrefix(path, "/slow") }) {
		t.Errorf("the order is %v", order)
	}
}

// A lane is named after host and port, with the default port if the URL has none.
func TestLanes(t *testing.T) {
	for callback, want := range map[string]string{
		"http://A.example/x": "a.example:80", "http://a.example:80/y": "a.example:80", "https://a.example/": "a.example:443", "http://a.example:8080/": "a.example:8080",
		"http://[2001:db8::1]/": "[2001:db8::1]:80", "http://[": "",
	} {
		if got := fetch.HostKey(callback); got != want {
			t.Errorf("%s: %s", callback, got)
		}
	}
}

// If a callback fails for one feed of a request, it is not tried for the others.
func TestAttackCallbackOfAVictim(t *testing.T) {
	for _, protocol := range []string{"http-post", "xml-rpc"} {
		w := newWorld(t, nil)
		var urls []string
		for i := range DefaultMaxURLs {
			urls = append(urls, w.feed(fmt.Sprintf("/feed%d", i), "x"))
		}
		request := func(path string) response {
			pairs := []string{"port", w.port(), "path", path, "protocol", protocol, "notifyProcedure", "x", "domain", "localhost"}
			for i, u := range urls {
				pairs = append(pairs, fmt.Sprint("url", i), u)
			}
			return w.form("/pleaseNotify", pairs...)
		}
		victim := func(path string) int { return len(w.got("GET", path)) + len(w.got("POST", path)) }
		w.answer("/victim", http.NotFound)
		// By XML-RPC there are two requests: a challenge and a notification.
		want := 1
		if r := request("/victim"); !strings.Contains(r.body, `success="false"`) || victim("/victim") > want+1 || victim("/victim") < want {
			t.Errorf("%s: %d requests: %s", protocol, victim("/victim"), r.body)
		}
		// A callback that works is tried for each feed.
		if r := request("/cb"); !strings.Contains(r.body, `success="true"`) || strings.Contains(r.body, "But not") || victim("/cb") < len(urls) {
			t.Errorf("%s: %d requests: %s", protocol, victim("/cb"), r.body)
		}
		// A callback works for some feeds; the message names the others.
		var n atomic.Int32
		w.answer("/some", func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && n.Add(1) > 3 {
				rw.WriteHeader(http.StatusNotFound)
				return
			}
			fmt.Fprint(rw, r.FormValue("challenge"))
		})
		if r := request("/some"); protocol == "http-post" && (!strings.Contains(r.body, `success="true"`) || !strings.Contains(r.body, "But not for ")) {
			t.Errorf("%s: %s", protocol, r.body)
		}
	}
}

// Fifty requests name one victim as a feed and as a callback: within a minute it gets no more
// requests than the budget. Subscribers who confirm have no limit.
func TestAttackBudgetOfATarget(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.TrustedProxies = loopback })
	victim := &site{}
	port := newSiteAt(t, "127.0.0.9", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		victim.mu.Lock()
		defer victim.mu.Unlock()
		victim.calls = append(victim.calls, call{path: r.URL.Path})
		rw.WriteHeader(http.StatusNotFound)
	}))
	attack := func() {
		for i := range 50 {
			const host = "127.0.0.9"
			pairs := []string{"port", port, "path", fmt.Sprintf("/%d", i), "protocol", "http-post", "domain", host}
			for k := range DefaultMaxURLs {
				pairs = append(pairs, fmt.Sprint("url", k), fmt.Sprintf("http://%s:%s/%d/%d", host, port, i, k))
			}
			pairs = append(pairs[:len(pairs)-2], "url99", w.site.URL+"/feed") // this feed can be read
			w.do("POST", "/pleaseNotify", formType, encode(pairs...), "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
			w.subscribe("subscribe", fmt.Sprintf("http://%s:%s/w%d", host, port, i), w.site.URL+"/feed")
		}
		w.settle()
	}
	feed := w.feed("/feed", "x")
	w.register("/cb0", feed)
	attack()
	if n := len(victim.calls); n > perTarget || n < perTarget/2 {
		t.Errorf("the victim got %d requests within a minute", n)
	}
	for i := range 2 * perTarget {
		if r := w.register(fmt.Sprintf("/cb%d", i), feed); !strings.Contains(r.body, `success="true"`) {
			t.Fatalf("%d: %s", i, r.body)
		}
	}
	w.clock.Add(time.Minute)
	before := len(victim.calls)
	if attack(); len(victim.calls)-before > perTarget || len(victim.calls) == before {
		t.Errorf("%d requests in the next minute", len(victim.calls)-before)
	}
	// All names of a host count as one target.
	ctx := context.Background()
	for _, u := range []string{"http://localhost/", "http://127.0.0.1:8080/x", "http://LOCALHOST:1/", "http://[::ffff:127.0.0.1]/"} {
		if got := target(ctx, &w.opts.Callbacks, u); got != "127.0.0.1" && got != "::/64" {
			t.Errorf("%s: %s", u, got)
		}
	}
	if a, b := target(ctx, &w.opts.Callbacks, "http://[2001:db8::1]/"), target(ctx, &w.opts.Callbacks, "http://[2001:db8::2]/"); a != b {
		t.Errorf("%s, %s", a, b)
	}
}

// The password for an unknown name is compared with a hash of the file, so that the time does
// not show which names exist. If hashes have different costs, a name always gets the same hash.
func TestAttackNamesByTime(t *testing.T) {
	path := htpasswd(t, "bull:secret", "cow:secret")
	u, err := readUsers(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	compare := u.checker.Compare
	var compared [][]byte
	u.checker.Compare = func(hash, _ []byte) error {
		compared = append(compared, hash)
		return passwords.ErrDenied
	}
	const n = 20
	for i := range n {
		for again := range 2 {
			if err := u.check(t.Context(), fmt.Sprint("nobody", i), "secret", netip.AddrFrom4([4]byte{192, 0, byte(again), byte(i)})); err != errPassword {
				t.Error(err)
			}
		}
	}
	seen := map[string]bool{}
	for i, hash := range compared {
		if !strings.HasPrefix(string(hash), "$2a$04$") {
			t.Errorf("compared with %q", hash)
		}
		if i%2 == 1 && string(hash) != string(compared[i-1]) {
			t.Error("one name is compared with two hashes")
		}
		seen[string(hash)] = true
	}
	if len(compared) != 2*n || len(seen) != 2 {
		t.Errorf("%d comparisons with %d hashes", len(compared), len(seen))
	}
	// The password that belongs to the hash is refused for an unknown name.
	u.checker.Compare = compare
	for i := range n {
		if err := u.check(t.Context(), fmt.Sprint("nobody", i), "secret", netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})); err != errPassword {
			t.Errorf("nobody%d has the password of another: %v", i, err)
		}
	}
}
