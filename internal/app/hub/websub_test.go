package hub

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The tests here are named after requirements of WebSub for hubs.

// subscribe sends a WebSub request to the hub, and waits until it was done.
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
	if len(list) != 1 || list[0].Protocol != WebSub || list[0].Expires != w.clock.Now().Add(DefaultLease) {
		t.Errorf("%+v", list)
	}
}

// Section 5.1.2: "If a hub finds any errors in the subscription request, an appropriate
// HTTP error response code (4xx or 5xx) MUST be returned. [...] hubs SHOULD return a
// description of the error in the response body as plain text"; 5.1: hub.mode is "The
// literal string", hub.secret "MUST be less than 200 bytes in length".
func TestWebSubErrorsAreAnswered(t *testing.T) {
	w := newWorld(t, nil)
	feed, cb := w.feed("/feed", "one"), w.site.URL+"/cb"
	for _, tc := range [][]string{
		{"subscribe", "", feed}, {"subscribe", cb, ""}, {"", cb, feed}, {"frobnicate", cb, feed}, {"subscribe", "/cb", feed},
		{"subscribe", "ftp://a.example/", feed}, {"subscribe", cb, "urn:x"}, {"publish", "", ""}, {"subscribe", "http://u:p@a.example/", feed}, {"SUBSCRIBE", cb, feed}, {"denied", cb, feed},
		{"subscribe", cb, feed, "hub.secret", strings.Repeat("x", 200)},
		{"subscribe", "http://a.example/" + strings.Repeat("x", 3000), feed},
	} {
		r := w.form("/websub", append([]string{"hub.mode", tc[0], "hub.callback", tc[1], "hub.topic", tc[2]}, tc[3:]...)...)
		if r.status != 400 || r.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") || len(r.body) < 10 {
			t.Errorf("%q: %+v", tc, r)
		}
	}
	if w.settle(); len(w.subscriptions(feed)) != 0 || len(w.got("GET", "/cb")) != 0 {
		t.Error("the invalid request was executed")
	}
	if r := w.form("/websub", "hub.mode", "subscribe", "hub.callback", cb, "hub.topic", feed, "hub.filler", strings.Repeat("x", DefaultMaxForm)); r.status != 413 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%+v", r)
	}
	if r := w.do("POST", "/websub", formType, "hub.mode=subscribe&hub.topic=%zz"); r.status != 400 {
		t.Errorf("%+v", r)
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
		w.clock.Add(time.Second)
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
	if len(list) != 2 || list[0].Secret != "new" || list[0].Expires != w.clock.Now().Add(2*time.Hour) {
		t.Errorf("%+v", list)
	}
	// "The subscriber MAY [...] make a new subscription without a hub.secret."
	w.subscribe("subscribe", cb, feed)
	w.feed("/feed", "two")
	w.ping(feed)
	if got := w.got("POST", "/cb"); len(got) != 2 || got[0].header.Get("X-Hub-Signature")+got[1].header.Get("X-Hub-Signature") != "" {
		t.Errorf("%+v", got)
	}
}

// Section 5.1: hub.lease_seconds "MAY be present for unsubscription requests and MUST be
// ignored by the hub in that case." 2.1: a hub "MUST support unsubscription requests",
// which are verified like others, whether there is a subscription or not.
func TestWebSubUnsubscription(t *testing.T) {
	w := newWorld(t, nil)
	feed, cb := w.feed("/feed", "one"), w.site.URL+"/cb"
	for i, lease := range []string{"3600", "0", "-1", "x", ""} {
		w.subscribe("subscribe", cb, feed)
		for range 2 { // the second request finds no subscription
			if r := w.subscribe("unsubscribe", cb, feed, "hub.lease_seconds", lease); r.status != 202 {
				t.Errorf("%q: %+v", lease, r)
			}
		}
		got := w.got("GET", "/cb")
		if len(w.subscriptions(feed)) != 0 || w.h.shared.counts.get() != 0 || len(got) != 3*(i+1) {
			t.Fatalf("%q: %d subscriptions counted, %+v", lease, w.h.shared.counts.get(), got)
		}
		for _, c := range got[len(got)-2:] {
			if q, _ := url.ParseQuery(c.query); q.Get("hub.mode") != "unsubscribe" || q.Get("hub.topic") != feed || q.Get("hub.challenge") == "" || q.Has("hub.lease_seconds") {
				t.Errorf("%+v", c)
			}
		}
	}
	w.feed("/feed", "two")
	if w.ping(feed); len(w.got("POST", "/cb")) != 0 {
		t.Error("the content is still delivered after unsubscribing")
	}
}

// Section 5.1.1: "Hubs MUST always decode non-reserved characters for these URL
// parameters"; 8.3: "The Hub MUST use the exact callback used by the subscriber". Topics
// with a fragment are also named exactly as in the request.
func TestWebSubURLsAreOneWhateverIsEncoded(t *testing.T) {
	w := newWorld(t, nil)
	w.feed("/~feed", "one")
	var uri string
	w.answer("/cb~", func(rw http.ResponseWriter, r *http.Request) {
		uri = r.RequestURI
		fmt.Fprint(rw, r.URL.Query().Get("hub.challenge"))
	})
	w.subscribe("subscribe", w.site.URL+"/%63b%7E?a=%2f&%62", w.site.URL+"/%7Efeed")
	w.subscribe("subscribe", w.site.URL+"/cb~?a=%2F&b", w.site.URL+"/~feed#part", "hub.secret", "s")
	list := w.subscriptions(w.site.URL + "/~feed")
	if len(list) != 1 || list[0].Secret != "s" || !strings.HasPrefix(uri, "/cb~?a=%2F&b&hub.challenge=") || !strings.Contains(uri, "%23part") {
		t.Errorf("%+v, %s", list, uri)
	}
	w.subscribe("subscribe", w.site.URL+"/%63b%7E?a=%2f&%62", w.site.URL+"/%7Efeed#part")
	w.feed("/~feed", "two")
	w.ping(w.site.URL + "/%7efeed")
	if got := w.got("POST", "/cb~"); len(got) != 1 || uri != "/%63b%7E?a=%2f&%62" || !strings.Contains(got[0].header.Get("Link"), "/%7Efeed#part>; rel=\"self\"") {
		t.Errorf("%s, %+v", uri, got)
	}
}

// Section 5.3: hub.challenge is "A hub-generated, random string"; 8.2: "the hub SHOULD
// use a random, single-use hub.challenge". The lease is "measured from the time the
// verification request was made".
func TestWebSubChallengeIsRandomAndTheLeaseBeginsWithIt(t *testing.T) {
	w := newWorld(t, nil)
	feed, seen := w.feed("/feed", "one"), map[string]bool{}
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		seen[r.FormValue("hub.challenge")] = true
		w.clock.Add(5 * time.Second)
		fmt.Fprint(rw, r.FormValue("hub.challenge"))
	})
	for range 3 {
		begin := w.clock.Now()
		w.subscribe("subscribe", w.site.URL+"/cb", feed, "hub.lease_seconds", "600")
		if list := w.subscriptions(feed); len(list) != 1 || list[0].Expires != begin.Add(10*time.Minute) {
			t.Errorf("%+v, asked at %s", list, begin)
		}
	}
	if len(seen) != 3 || seen[""] {
		t.Errorf("%v", seen)
	}
}

// Section 7: "The subscriber's callback URL MUST return an HTTP 2xx response code to
// indicate a success"; "The response body from the subscriber MUST be ignored by the
// hub"; "The hub MUST consider all other subscriber response codes as failures".
func TestWebSubSuccessOfADelivery(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "0")
	status := 0
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			rw.Header().Set("Location", "/elsewhere")
			rw.WriteHeader(status)
			if status != 204 && status != 304 {
				fmt.Fprint(rw, "<html>error: no</html>")
			}
			return
		}
		fmt.Fprint(rw, r.FormValue("hub.challenge"))
	})
	for i, status2 := range []int{200, 201, 202, 204, 206, 226, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 429, 500, 503, 599} {
		w.subscribe("subscribe", w.site.URL+"/cb", feed)
		status = status2
		w.clock.Add(extraAfter)
		w.feed("/feed", fmt.Sprint(i+1))
		w.ping(feed)
		if list := w.subscriptions(feed); len(list) != 1 || list[0].Failed.IsZero() != (status/100 == 2) {
			t.Errorf("%d: %+v", status, list)
		}
	}
	if got := w.got("POST", "/elsewhere"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// Section 7: "The hub MUST keep the subscription active until the end of the lease
// duration, and if a new update is published to the topic, MUST continue to retry
// delivery to the previously-failing subscriber."
func TestWebSubSubscriptionIsKeptUntilTheEndOfTheLease(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "0")
	m := &moody{status: 500}
	w.subscribe("subscribe", w.site.URL+"/cb", feed, "hub.lease_seconds", "86400")
	w.answer("/cb", m.answer)
	for i := range 9 {
		w.feed("/feed", fmt.Sprint(i+1))
		w.ping(feed)
		w.clock.Add(2 * time.Hour)
		w.h.sweep(true)
	}
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Errors != 1 || w.h.shared.counts.get() != 1 || len(w.got("POST", "/cb")) != 9 {
		t.Fatalf("%+v, %d tries", list, len(w.got("POST", "/cb")))
	}
	m.set(200)
	w.advance(0)
	if got := w.got("POST", "/cb"); len(got) != 10 || got[9].body != "9" {
		t.Errorf("%+v", got)
	}
	w.clock.Add(7 * time.Hour)
	w.feed("/feed", "late")
	w.ping(feed)
	if w.h.sweep(true); len(w.got("POST", "/cb")) != 10 || len(w.tree()) != 0 {
		t.Errorf("after its end: %v", w.tree())
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
		if list := w.subscriptions(feed); list[0].Expires != w.clock.Now().Add(want) || q.Get("hub.lease_seconds") != fmt.Sprint(int(want.Seconds())) {
			t.Errorf("%q: %+v, %v", asked, list, q)
		}
	}
	w.subscribe("subscribe", cb, feed, "hub.lease_seconds", "60")
	for i, want := range []int{1, 1} {
		w.clock.Add(30 * time.Second)
		w.feed("/feed", fmt.Sprint(i+1))
		w.ping(feed)
		if got := len(w.got("POST", "/cb")); got != want {
			t.Errorf("%d deliveries", got)
		}
	}
}

// Section 5.2: "If (and when) the subscription is denied, the hub MUST inform the
// subscriber by sending an HTTP [...] GET request to the subscriber's callback URL";
// hub.mode ("denied") and hub.topic are REQUIRED. 5.1.2: "the HTTP response MUST NOT
// depend on the process or outcome of verification or validation."
func TestWebSubDeniedSubscribersAreInformed(t *testing.T) {
	denied := func(w *world, reason string) {
		t.Helper()
		var last call
		for _, c := range w.got("GET", "/cb") {
			last = c
		}
		q, _ := url.ParseQuery(last.query)
		if q.Get("mine") != "1" || q.Get("hub.mode") != "denied" || q.Get("hub.topic") != w.site.URL+"/feed#x" || !strings.Contains(q.Get("hub.reason"), reason) || q.Has("hub.challenge") {
			t.Errorf("%s: %+v", reason, w.got("GET", "/cb"))
		}
	}
	subscribe := func(w *world) {
		t.Helper()
		if r := w.subscribe("subscribe", w.site.URL+"/cb?mine=1", w.site.URL+"/feed#x"); r.status != 202 {
			t.Errorf("%+v", r)
		}
	}
	w := newWorld(t, nil)
	w.answer("/feed", http.NotFound)
	subscribe(w)
	if denied(w, "the topic cannot be read"); len(w.tree()) != 0 {
		t.Errorf("%v", w.tree())
	}
	w = newWorld(t, func(o *Options) { o.Most = 0 })
	w.feed("/feed", "one")
	subscribe(w)
	denied(w, "takes no more subscriptions")
	// The disk is full after the callback has confirmed.
	w = newWorld(t, nil)
	w.feed("/feed", "one")
	feeds := filepath.Join(w.opts.State, "feeds")
	if err := errors.Join(os.Remove(feeds), os.WriteFile(feeds, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	subscribe(w)
	denied(w, "cannot store it now")
	// A callback that never verified is not sent a denial.
	w = newWorld(t, nil)
	w.feed("/feed", "one")
	w.answer("/cb", http.NotFound)
	if subscribe(w); len(w.got("GET", "/cb")) != 1 {
		t.Errorf("%+v", w.got("GET", "/cb"))
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
	if r := w.form("/websub", "hub.mode", "publish", "hub.url", feed); r.status != 204 || r.body != "" {
		t.Errorf("%+v", r)
	}
	w.settle()
	got := w.got("POST", "/cb")
	if len(got) != 1 || got[0].body != document || got[0].query != "a=b" || got[0].header.Get("Content-Type") != "application/rss+xml" ||
		got[0].header.Get("Link") != `<`+w.server.URL+`/websub>; rel="hub", <`+feed+`>; rel="self"` || got[0].header.Get("X-Hub-Signature") != "" {
		t.Errorf("%.300v", got)
	}
	// The type is that of the topic, with its parameters.
	for i, kind := range []string{`application/feed+json; charset="utf-8"; x=y`, "text/html", ""} {
		w.answer("/feed", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header()["Content-Type"] = nil
			if kind != "" {
				rw.Header().Set("Content-Type", kind)
			}
			fmt.Fprint(rw, i)
		})
		w.ping(feed)
		if got := w.got("POST", "/cb"); len(got) != i+2 || got[i+1].header.Get("Content-Type") != cmp.Or(kind, "application/octet-stream") {
			t.Errorf("%q: %.300v", kind, got)
		}
	}
}

// Section 8: "If the subscriber supplied a value for hub.secret [...], the hub MUST
// generate an HMAC signature of the payload and include that signature in the request
// headers".
func TestWebSubSignedDelivery(t *testing.T) {
	// A secret of 199 bytes is accepted, and all its bytes count.
	long := newWorld(t, nil)
	topic, secret := long.feed("/feed", "one"), strings.Repeat("é", 99)+"x"
	long.subscribe("subscribe", long.site.URL+"/cb", topic, "hub.secret", secret)
	long.feed("/feed", "two")
	long.ping(topic)
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte("two"))
	if got := long.got("POST", "/cb"); len(got) != 1 || got[0].header.Get("X-Hub-Signature") != "sha256="+hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("%+v", got)
	}
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

// Section 7: "The subscriber's callback URL MAY return an HTTP 410 code to indicate that
// the subscription has been deleted, and the hub MAY terminate the subscription".
func TestWebSubGoneEndsTheSubscription(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	m := &moody{status: 503, after: "3600"}
	w.answer("/cb", m.answer)
	w.subscribe("subscribe", w.site.URL+"/cb", feed)
	w.subscribe("subscribe", w.site.URL+"/ok", feed)
	w.feed("/feed", "two")
	w.ping(feed)
	if list := w.subscriptions(feed); len(list) != 2 || list[0].Failed.IsZero() {
		t.Errorf("%+v", list)
	}
	m.set(410)
	w.clock.Add(time.Hour)
	w.feed("/feed", "three")
	w.ping(feed)
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Callback != w.site.URL+"/ok" {
		t.Errorf("%+v", list)
	}
	// The other subscriber is notified as before.
	if got := w.got("POST", "/ok"); len(got) != 2 {
		t.Errorf("%d deliveries to the other subscriber", len(got))
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
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Failed.IsZero() {
		t.Errorf("%+v", list)
	}
	if got := w.got("POST", "/moved"); len(got) != 0 {
		t.Errorf("the target of the redirect got the delivery: %+v", got)
	}
}

// A publisher's request with too many topics is refused as a whole.
func TestWebSubTooManyTopicsAreRefused(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxURLs = 2 })
	pairs := []string{"hub.mode", "publish"}
	for i := range 3 {
		pairs = append(pairs, "hub.url", w.feed(fmt.Sprintf("/feed%d", i), "one"))
	}
	if r := w.form("/websub", pairs...); r.status != 400 || !strings.Contains(r.body, "2 feeds at most") {
		t.Errorf("%+v", r)
	}
	if r := w.form("/websub", append(pairs[:6:6], "hub.topic", pairs[3], "hub.topic", pairs[5])...); r.status != 204 {
		t.Errorf("%+v", r)
	}
	w.settle()
}

// One hub serves rssCloud and WebSub: a ping by either protocol notifies subscribers of both.
func TestBothProtocols(t *testing.T) {
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
