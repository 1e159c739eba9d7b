package hub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The tests here are named after what WebSub says that a hub MUST do.

// subscribe makes a request to the hub of WebSub, and waits until it was done.
func (w *world) subscribe(mode, callback, topic string, more ...string) response {
	w.t.Helper()
	r := w.form("/websub", append([]string{"hub.mode", mode, "hub.callback", callback, "hub.topic", topic}, more...)...)
	w.settle()
	return r
}

// Section 5.1: "Hubs MUST accept a subscription request with the parameters
// hub.callback, hub.mode and hub.topic", "MUST ignore additional request parameters
// they do not understand"; 5.1.2: "MUST respond [...] 202 Accepted".
func TestWebSubAcceptsARequest(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	if r := w.subscribe("subscribe", w.site.URL+"/cb", feed, "hub.verify", "sync", "hub.foo", "bar"); r.status != 202 {
		t.Errorf("%+v", r)
	}
	list := w.subscriptions(feed)
	if len(list) != 1 || list[0].Protocol != WebSub || list[0].Expires != w.clock.now().Add(DefaultLease) {
		t.Errorf("%+v", list)
	}
}

// Section 5.1.2: "If a hub finds any errors in the subscription request, an appropriate
// HTTP error response code (4xx or 5xx) MUST be returned."
func TestWebSubErrorsAreAnswered(t *testing.T) {
	w := newWorld(t, nil)
	feed, cb := w.feed("/feed", "one"), w.site.URL+"/cb"
	for _, tc := range [][]string{
		{"subscribe", "", feed}, {"subscribe", cb, ""}, {"", cb, feed}, {"frobnicate", cb, feed}, {"subscribe", "/cb", feed},
		{"subscribe", "ftp://a.example/", feed}, {"subscribe", cb, "urn:x"}, {"publish", "", ""}, {"subscribe", "http://u:p@a.example/", feed},
		{"subscribe", cb, feed, "hub.secret", strings.Repeat("x", 200)},
		{"subscribe", "http://a.example/" + strings.Repeat("x", 3000), feed},
	} {
		r := w.form("/websub", append([]string{"hub.mode", tc[0], "hub.callback", tc[1], "hub.topic", tc[2]}, tc[3:]...)...)
		if r.status != 400 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") || len(r.body) < 10 {
			t.Errorf("%q: %+v", tc, r)
		}
	}
	if w.settle(); len(w.subscriptions(feed)) != 0 || len(w.got("GET", "/cb")) != 0 {
		t.Error("it was done all the same")
	}
}

// Section 5.3: "The hub MUST verify the subscription request with the subscriber";
// hub.mode, hub.topic, hub.challenge and hub.lease_seconds are REQUIRED; "Hubs MUST
// preserve the query string during subscription verification by appending new
// parameters to the end of the list".
func TestWebSubVerifiesTheIntent(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.subscribe("subscribe", w.site.URL+"/cb?hub.topic=mine&a=b%20c", feed, "hub.lease_seconds", "3600")
	got := w.got("GET", "/cb")
	if len(got) != 1 || !strings.HasPrefix(got[0].query, "hub.topic=mine&a=b%20c&") {
		t.Fatalf("%+v", got)
	}
	q, _ := url.ParseQuery(strings.TrimPrefix(got[0].query, "hub.topic=mine&a=b%20c&"))
	if q.Get("hub.mode") != "subscribe" || q.Get("hub.topic") != feed || len(q.Get("hub.challenge")) < 20 || q.Get("hub.lease_seconds") != "3600" {
		t.Errorf("%v", q)
	}
	w.subscribe("unsubscribe", w.site.URL+"/cb?hub.topic=mine&a=b%20c", feed)
	if got := w.got("GET", "/cb"); len(got) != 2 || !strings.Contains(got[1].query, "hub.mode=unsubscribe") || strings.Contains(got[1].query, "lease") || len(w.subscriptions(feed)) != 0 {
		t.Errorf("%+v", got)
	}
}

// Section 5.3.1: "The subscriber MUST [...] respond with an HTTP success (2xx) code with
// a response body equal to the hub.challenge parameter"; "the hub MUST consider other
// client and server response codes (3xx, 4xx, 5xx) to mean that the verification has
// failed"; 5.1: "Any failures to confirm the subscription action MUST leave the
// subscription state unchanged."
func TestWebSubFailedVerificationChangesNothing(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.subscribe("subscribe", w.site.URL+"/cb", feed, "hub.secret", "old")
	before := w.tree()
	for name, f := range map[string]http.HandlerFunc{
		"404":  func(rw http.ResponseWriter, r *http.Request) { http.NotFound(rw, r) },
		"500":  func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(500) },
		"more": func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.FormValue("hub.challenge")+"\n") },
		"less": func(rw http.ResponseWriter, r *http.Request) {},
		"302": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "/moved?"+r.URL.RawQuery, http.StatusFound)
		},
		"308": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "/moved?"+r.URL.RawQuery, http.StatusPermanentRedirect)
		},
		"status": func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(404)
			fmt.Fprint(rw, r.FormValue("hub.challenge"))
		},
	} {
		w.answer("/cb", f)
		w.clock.add(time.Second)
		w.subscribe("subscribe", w.site.URL+"/cb", feed, "hub.secret", "new")
		w.subscribe("unsubscribe", w.site.URL+"/cb", feed)
		if after := w.tree(); len(after) != len(before) || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: %v", name, after)
		}
	}
}

// Section 5.1: "Hubs MUST allow subscribers to re-request subscriptions that are already
// activated. Each subsequent request [...] MUST override the previous subscription state
// for a specific topic URL and callback URL combination, once the action is verified."
func TestWebSubASubsequentRequestOverrides(t *testing.T) {
	w := newWorld(t, nil)
	feed, cb := w.feed("/feed", "one"), w.site.URL+"/cb"
	w.subscribe("subscribe", cb, feed, "hub.secret", "old", "hub.lease_seconds", "3600")
	w.subscribe("subscribe", cb, feed, "hub.secret", "new", "hub.lease_seconds", "7200")
	w.subscribe("subscribe", cb+"?2", feed)
	list := w.subscriptions(feed)
	if len(list) != 2 || list[0].Secret != "new" || list[0].Expires != w.clock.now().Add(2*time.Hour) {
		t.Errorf("%+v", list)
	}
}

// Section 5.3: "Hubs MUST enforce lease expirations, and MUST NOT issue perpetual lease
// durations."
func TestWebSubLeasesAreEnforced(t *testing.T) {
	w := newWorld(t, nil)
	feed, cb := w.feed("/feed", "0"), w.site.URL+"/cb"
	for asked, want := range map[string]time.Duration{"": DefaultLease, "0": DefaultLease, "-5": DefaultLease, "x": DefaultLease, "1": MinLease, "7200": 2 * time.Hour, "99999999999999999": MaxLease, "99999999999999999999999": DefaultLease} {
		w.subscribe("subscribe", cb, feed, "hub.lease_seconds", asked)
		got := w.got("GET", "/cb")
		q, _ := url.ParseQuery(got[len(got)-1].query)
		if list := w.subscriptions(feed); list[0].Expires != w.clock.now().Add(want) || q.Get("hub.lease_seconds") != fmt.Sprint(int(want.Seconds())) {
			t.Errorf("%q: %+v, %v", asked, list, q)
		}
	}
	w.subscribe("subscribe", cb, feed, "hub.lease_seconds", "60")
	for i, want := range []int{1, 1} {
		w.clock.add(30 * time.Second)
		w.feed("/feed", fmt.Sprint(i+1))
		w.ping(feed)
		if got := len(w.got("POST", "/cb")); got != want {
			t.Errorf("%d deliveries", got)
		}
	}
}

// Section 5.2: a hub may deny, and tells so by hub.mode=denied.
func TestWebSubDeniesATopicThatCannotBeRead(t *testing.T) {
	w := newWorld(t, nil)
	w.answer("/none", http.NotFound)
	if r := w.subscribe("subscribe", w.site.URL+"/cb", w.site.URL+"/none"); r.status != 202 {
		t.Errorf("%+v", r)
	}
	got := w.got("GET", "/cb")
	if len(got) != 1 || !strings.Contains(got[0].query, "hub.mode=denied") || !strings.Contains(got[0].query, "hub.reason=the+topic") || len(w.tree()) != 0 {
		t.Errorf("%+v", got)
	}
}

// Section 7: "The request MUST have a Content-Type header corresponding to the type of
// the topic"; "MUST contain the full contents of the topic URL"; "MUST include at least
// one Link Header with rel=hub [...] MUST include one Link Header with rel=self set to
// the canonical URL of the topic".
func TestWebSubContentDistribution(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.subscribe("subscribe", w.site.URL+"/cb?a=b", feed)
	document := "<rss>" + strings.Repeat("x", 100_000) + "\x00\xff</rss>"
	w.feed("/feed", document)
	if r := w.form("/websub", "hub.mode", "publish", "hub.url", feed); r.status != 202 {
		t.Errorf("%+v", r)
	}
	w.settle()
	got := w.got("POST", "/cb")
	if len(got) != 1 || got[0].body != document || got[0].query != "a=b" || got[0].header.Get("Content-Type") != "application/rss+xml" ||
		got[0].header.Get("Link") != `<`+w.server.URL+`/websub>; rel="hub", <`+feed+`>; rel="self"` || got[0].header.Get("X-Hub-Signature") != "" {
		t.Errorf("%.300v", got)
	}
}

// Section 8: "If the subscriber supplied a value for hub.secret [...], the hub MUST
// generate an HMAC signature of the payload and include that signature in the request
// headers".
func TestWebSubSignedDelivery(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.subscribe("subscribe", w.site.URL+"/cb", feed, "hub.secret", " s e\tc\r\nret%")
	w.feed("/feed", "two")
	w.ping(feed)
	mac := hmac.New(sha256.New, []byte(" s e\tc\r\nret%"))
	mac.Write([]byte("two"))
	got := w.got("POST", "/cb")
	if len(got) != 1 || got[0].header.Get("X-Hub-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("%+v", got)
	}
}

// Section 7: "the subscriber [...] MUST respond with an HTTP 410 code [...] the hub MUST
// terminate the subscription"; other codes are failures.
func TestWebSubGoneEndsTheSubscription(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	status := 503
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			rw.Header().Set("Retry-After", "3600")
			rw.WriteHeader(status)
		}
		fmt.Fprint(rw, r.URL.Query().Get("hub.challenge"))
	})
	w.subscribe("subscribe", w.site.URL+"/cb", feed)
	w.subscribe("subscribe", w.site.URL+"/ok", feed)
	w.feed("/feed", "two")
	w.ping(feed)
	if list := w.subscriptions(feed); len(list) != 2 || list[0].Errors != 1 {
		t.Errorf("%+v", list)
	}
	status = 410
	w.feed("/feed", "three")
	w.ping(feed)
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Callback != w.site.URL+"/ok" {
		t.Errorf("%+v", list)
	}
	// Whoever asks to be left alone does so for himself.
	if got := w.got("POST", "/ok"); len(got) != 2 {
		t.Errorf("%d deliveries to the other", len(got))
	}
}

// Section 7: "The hub MUST consider all other subscriber response codes as failures; this
// means that subscribers MUST NOT use HTTP redirects for moving subscriptions."
func TestWebSubRedirectedDeliveryIsAFailure(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.subscribe("subscribe", w.site.URL+"/cb", feed, "hub.secret", "s")
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "/moved", http.StatusTemporaryRedirect)
	})
	w.feed("/feed", "two")
	w.ping(feed)
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Errors != 1 {
		t.Errorf("%+v", list)
	}
	if got := w.got("POST", "/moved"); len(got) != 0 {
		t.Errorf("it was delivered to somebody else: %+v", got)
	}
}

// One hub serves both worlds: whoever tells, all hear.
func TestBothWorlds(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cloud", feed)
	w.subscribe("subscribe", w.site.URL+"/websub", feed)
	w.feed("/feed", "two")
	w.form("/websub", "hub.mode", "publish", "hub.topic", feed, "hub.url", feed)
	w.settle()
	w.feed("/feed", "three")
	w.ping(feed)
	if a, b := len(w.notified("/cloud")), len(w.got("POST", "/websub")); a != 2 || b != 2 {
		t.Errorf("%d and %d", a, b)
	}
}
