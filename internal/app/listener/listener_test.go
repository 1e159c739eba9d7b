package listener

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/testkit/hub"
)

const feedA, feedB = "http://a.example/rss.xml", "http://b.example/rss.xml?x=1&y=2"

// "When reading a feed, the aggregator looks for a <cloud> element. If it finds
// one … it should send a request to the cloud asking to be notified."
func TestWalkthroughAggregatorAsksToBeNotified(t *testing.T) {
	for _, protocol := range []string{"http-post", "xml-rpc"} {
		path := map[string]string{"http-post": "/rsscloud/pleaseNotify", "xml-rpc": "/RPC2"}[protocol]
		w := newWorld(t, &hub.Hub{}, nil)
		a := w.feed(feedA, w.cloud(path, protocol))
		b := w.feed(feedB, w.cloud(path, protocol))
		w.step()
		regs := w.hub.Registrations()
		if len(regs) != 2 || regs[0].Together != 2 {
			t.Fatalf("%s: %+v\n%s", protocol, regs, w.log)
		}
		if regs[0].Callback != regs[1].Callback || strings.Contains(regs[0].Callback, "?") || !strings.HasPrefix(regs[0].Callback, w.callback.URL+"/lektor/") {
			t.Errorf("%+v", regs)
		}
		st := w.state(a)
		if st.State != Registered || st.Protocol != protocol || st.Error != "" || st.Failures != 0 {
			t.Errorf("%+v", st)
		}
		if err := w.hub.Notify(feedA); err != nil {
			t.Fatal(err)
		}
		if !w.marker(a) || w.marker(b) || w.state(a).Notified.IsZero() {
			t.Errorf("%s: want a marker of the updated feed only", protocol)
		}
	}
}

// "You must renew your subscription every 24 hours because they expire after 25
// hours."
func TestWalkthroughRenewEvery24HoursExpireAfter25(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	if got := w.state(a).Expires.Sub(w.clock.Now()); got != 25*time.Hour {
		t.Errorf("expires after %s", got)
	}
	w.clock.Add(23*time.Hour + 59*time.Minute)
	w.step()
	if n := len(w.hub.Registrations()); n != 1 {
		t.Errorf("%d registrations before 24 hours", n)
	}
	w.clock.Add(time.Minute)
	w.step()
	if n := len(w.hub.Registrations()); n != 2 {
		t.Errorf("%d registrations after 24 hours", n)
	}
	// If the hub cannot be reached, the feed stays registered until the 25th hour.
	w.opts.Fetch.AllowPrivate = nil // the hub's address is no longer allowed
	w.restart()
	w.clock.Add(24 * time.Hour)
	w.step()
	if st := w.state(a); st.State != Registered || st.Failures != 1 || st.Error == "" {
		t.Errorf("%+v", st)
	}
	w.clock.Add(time.Hour + time.Second)
	w.step()
	if st := w.state(a); st.State != Failed {
		t.Errorf("%+v", st)
	}
	list, err := ReadStatus(w.dir, w.clock.Now())
	if err != nil || len(list) != 1 || list[0].State != Failed || list[0].URL != feedA {
		t.Errorf("%+v %v", list, err)
	}
}

// "To do so it must have an XML-RPC server or HTTP server capable of receiving a
// POST request." Clouds without challenges send a POST as a test call.
func TestWalkthroughTestCallOfTheHandler(t *testing.T) {
	w := newWorld(t, &hub.Hub{FiveParams: true}, nil)
	a := w.feed(feedA, w.cloud("/RPC2", "xml-rpc"))
	w.step()
	if st := w.state(a); st.State != Registered {
		t.Errorf("%+v", st)
	}
}

func TestFeedsOfOneHubShareRequestsAndHubsThatCannotStillWork(t *testing.T) {
	w := newWorld(t, &hub.Hub{OneFeed: true}, nil)
	var hashes []string
	for i := range 5 {
		hashes = append(hashes, w.feed(fmt.Sprintf("http://f%d.example/", i), w.cloud("/rsscloud/pleaseNotify", "http-post")))
	}
	w.step()
	if regs := w.hub.Registrations(); len(regs) != 5 {
		t.Fatalf("%+v", regs)
	}
	if n, _ := w.hub.Requests(); n != 6 {
		t.Errorf("%d requests", n)
	}
	for _, h := range hashes {
		if w.state(h).State != Registered {
			t.Errorf("%+v", w.state(h))
		}
	}
	w.clock.Add(CloudRenew)
	w.step()
	if n, _ := w.hub.Requests(); n != 11 {
		t.Errorf("%d requests: want single requests for a cloud that accepts one feed", n)
	}
}

func TestQuirksOfCloudsThatCallBack(t *testing.T) {
	for name, hub := range map[string]*hub.Hub{
		"bodies that must equal the challenge": {},
		"single quotes":                        {SingleQuotes: true},
		"only http-post":                       {OnlyHTTPPost: true},
		"url instead of url1":                  {WantsURL: true},
		"a challenge whose url is not encoded": {RawChallenge: true},
		"?url= appended to the callback":       {AppendsURL: true},
		"paths in any case, and with a slash":  {ShoutsPath: true},
		"a bare GET that wants 200":            {ProbesBare: true},
		"406 for text/xml":                     {RefusesAccept: true},
		"several at once":                      {SingleQuotes: true, RawChallenge: true, ShoutsPath: true, ProbesBare: true, OneFeed: true, AppendsURL: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hub, nil)
			b := w.feed(feedB, w.cloud("/rsscloud/pleaseNotify", "http-post"))
			w.step()
			if st := w.state(b); st.State != Registered {
				t.Fatalf("%+v\n%s", st, w.log)
			}
			if err := hub.Notify(feedB); err != nil || !w.marker(b) {
				t.Errorf("no marker: %v", err)
			}
		})
	}
}

// Some clouds know a feed only by the URL that the feed names as its own.
func TestCloudThatKnowsTheFeedByItsOwnURL(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	self := "http://www.a.example/rss.xml"
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"), "self="+self)
	w.step()
	resp := post(t, w.state(a).Callback, "application/x-www-form-urlencoded", "url="+url.QueryEscape(self))
	if resp.status != 200 || !w.marker(a) {
		t.Error("no marker")
	}
}

type response struct {
	status int
	body   string
	header http.Header
}

func do(t testing.TB, method, u, contentType string, body io.Reader) response {
	t.Helper()
	req, err := http.NewRequest(method, u, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return response{resp.StatusCode, string(b), resp.Header}
}

func post(t testing.TB, u, contentType, body string) response {
	t.Helper()
	return do(t, http.MethodPost, u, contentType, strings.NewReader(body))
}

func get(t testing.TB, u string) response { t.Helper(); return do(t, http.MethodGet, u, "", nil) }

func TestChallengeIsEchoedOnlyWhileARegistrationIsUnderWay(t *testing.T) {
	var w *world
	during := response{}
	// During the registration, the hub sends a challenge for another feed, too.
	hub := &hub.Hub{}
	w = newWorld(t, hub, nil)
	cloud := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		q, _ := url.ParseQuery(string(b))
		cb := "http://" + q.Get("domain") + ":" + q.Get("port") + q.Get("path")
		during = get(t, cb+"?url="+url.QueryEscape(q.Get("url1"))+"&challenge="+url.QueryEscape("<b>\r\n1</b>"))
		if other := get(t, cb+"?url=http%3A%2F%2Fother.example%2F&challenge=abc"); other.status != 404 {
			t.Errorf("the challenge for another feed is answered: %+v", other)
		}
		io.WriteString(rw, "<notifyResult success='true'/>")
	})
	s := newServer(t, cloud)
	u, _ := url.Parse(s)
	a := w.feed(feedA, fmt.Sprintf("cloud=%s\t%s\t/\t\thttp-post", u.Hostname(), u.Port()))
	w.step()
	if during.status != 200 || during.body != "<b>\r\n1</b>" || !strings.HasPrefix(during.header.Get("Content-Type"), "text/plain") || during.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%+v", during)
	}
	cb := w.state(a).Callback
	for query, want := range map[string]int{"": 200, "?url=" + feedA: 200, "?url=" + feedA + "&challenge=abc": 404, "?challenge=abc": 404} {
		if got := get(t, cb+query); got.status != want || strings.Contains(got.body, "abc") {
			t.Errorf("%s: %+v", query, got)
		}
	}
}

func TestNotificationOfUnknownFeedsIsAnsweredTheSame(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	cb := w.state(a).Callback
	form := "application/x-www-form-urlencoded"
	known, unknown := post(t, cb, form, "url="+feedA), post(t, cb, form, "url=http://plain.example/")
	if known.status != unknown.status || known.body != unknown.body || len(known.header) != len(unknown.header) {
		t.Errorf("%+v, %+v", known, unknown)
	}
	if !w.marker(a) || w.markers() != 0 {
		t.Error("want a marker for the known feed only")
	}
	known, unknown = post(t, cb, "text/xml", string(rsscloud.EncodeCall("x", feedA))), post(t, cb, "text/xml", string(rsscloud.EncodeCall("x", feedB)))
	if known.body != unknown.body || known.body != string(rsscloud.EncodeResponse(true)) {
		t.Errorf("%+v, %+v", known, unknown)
	}
	// A request without the token has no effect.
	w.clock.Add(time.Hour)
	base := strings.TrimSuffix(cb, w.state(a).Token())
	for _, u := range []string{base, base + strings.Repeat("0", push.TokenLen), w.callback.URL + "/"} {
		if got := post(t, u, form, "url="+feedA); got.status != 410 {
			t.Errorf("%s: %+v", u, got)
		}
		if got := get(t, u); got.status != 404 {
			t.Errorf("%s: %+v", u, got)
		}
	}
	if w.marker(a) {
		t.Error("a request without the token left a marker")
	}
}

func TestNotificationsThatCannotBeRead(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	cb := w.state(a).Callback
	for _, tc := range []struct {
		contentType, body string
		status            int
		want              string
	}{
		{"application/x-www-form-urlencoded", "", 400, "no url"},
		{"text/xml", "<methodCall><methodName>x</methodName></methodCall>", 200, "faultCode"},
		{"text/xml", "<x/>", 200, "faultCode"},
		{"text/xml", "<s:Envelope xmlns:s='x'/>", 415, "SOAP"},
		{"text/xml", strings.Repeat(" ", rsscloud.MaxMessage+1), 413, "too long"},
		{"text/xml", "<methodCall>" + strings.Repeat("<a>", 10_000), 200, "faultCode"},
	} {
		if got := post(t, cb, tc.contentType, tc.body); got.status != tc.status || !strings.Contains(got.body, tc.want) {
			t.Errorf("%.40s: %d %.80s", tc.body, got.status, got.body)
		}
	}
	if got := do(t, "PUT", cb, "", nil); got.status != 405 {
		t.Errorf("%+v", got)
	}
	if w.markers() != 0 {
		t.Error("a marker")
	}
}

func TestThousandNotificationsLeaveOneMarkerPerCooldown(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	markers := 0
	for range 990 {
		if err := w.hub.Notify(feedA); err != nil {
			t.Fatal(err)
		}
		if w.marker(a) {
			markers++
		}
		w.clock.Add(time.Millisecond)
	}
	if markers != 1 {
		t.Errorf("%d markers in the first second", markers)
	}
	// The last notification is not lost: at the end of the cooldown there is one more marker.
	w.step()
	if w.marker(a) {
		t.Error("a marker before the end of the cooldown")
	}
	if next := w.l.step(context.Background()); next.Sub(w.clock.Now()) > 10*time.Second {
		t.Errorf("the next step is at %s", next)
	}
	w.clock.Add(time.Second)
	w.step()
	if !w.marker(a) {
		t.Error("no marker at the end of the cooldown")
	}
	w.clock.Add(time.Minute)
	w.step()
	if w.marker(a) {
		t.Error("a third marker")
	}
}

func TestBackoff(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) { o.Rand = func() float64 { return 0.5 } })
	a := w.feed(feedA, "cloud=127.0.0.1\t1\t/\t\thttp-post") // no server listens there
	var waits []time.Duration
	for range 12 {
		w.step()
		waits = append(waits, w.state(a).Next.Sub(w.clock.Now()))
		w.clock.Add(waits[len(waits)-1])
	}
	if waits[0] != 45*time.Second || waits[1] != 90*time.Second || waits[11] != 270*time.Minute {
		t.Errorf("%v", waits)
	}
	if st := w.state(a); st.State != Failed || st.Failures != 12 || !strings.Contains(st.Error, "no connection") {
		t.Errorf("%+v", st)
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	n := 0
	s := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n++
		rw.Header().Set("Retry-After", "7200")
		rw.WriteHeader(503)
	}))
	w := newWorld(t, &hub.Hub{}, nil)
	u, _ := url.Parse(s)
	a := w.feed(feedA, fmt.Sprintf("cloud=%s\t%s\t/x\t\thttp-post", u.Hostname(), u.Port()))
	w.step()
	if got := w.state(a).Next.Sub(w.clock.Now()); got != 2*time.Hour || n != 1 {
		t.Errorf("%s, %d requests", got, n)
	}
}

func TestRestartKeepsRegistrationsAndDoesNotStampede(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	var hashes []string
	for i := range 20 {
		hashes = append(hashes, w.feed(fmt.Sprintf("http://f%d.example/", i), w.cloud("/rsscloud/pleaseNotify", "http-post")))
	}
	hashes = append(hashes, w.feed(feedB, "hub="+w.server.URL+"/websub", "self="+feedB))
	w.step()
	before, _ := w.hub.Requests()
	cb := w.state(hashes[0]).Callback
	w.clock.Add(20 * time.Hour)
	w.restart()
	w.step()
	if n, _ := w.hub.Requests(); n != before {
		t.Errorf("%d requests after a restart", n-before)
	}
	if post(t, cb, "", "url=http://f0.example/"); !w.marker(hashes[0]) {
		t.Error("the registration was not kept")
	}
	if err := w.hub.Deliver(feedB, "sha256", []byte("x")); err != nil || !w.marker(hashes[20]) {
		t.Error("the subscription was not kept", err)
	}
	w.clock.Add(5 * time.Hour)
	w.restart()
	w.step()
	if n, most := w.hub.Requests(); n != before+1 || most > 2 {
		t.Errorf("%d requests for renewals, %d at once", n-before, most)
	}
	if st := w.state(hashes[3]); st.State != Registered || st.Callback != cb {
		t.Errorf("%+v", st)
	}
}

func TestAnotherPublicURLRegistersAgain(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	old := w.state(a)
	public := *w.opts.Public
	public.Path = "/elsewhere"
	w.opts.Public = &public
	w.restart()
	w.step()
	regs := w.hub.Registrations()
	if len(regs) != 2 || !strings.HasPrefix(regs[1].Callback, w.callback.URL+"/elsewhere/") || w.state(a).Token() != old.Token() {
		t.Errorf("%+v %+v", regs, w.state(a))
	}
}

func TestIncompleteStateIsIgnored(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	dir := w.dir.Join("src", a, "etc", "cloudd")
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		for _, damage := range []string{"", "\x00\xff"} {
			if err := os.WriteFile(filepath.Join(dir, f.Name()), []byte(damage), 0o600); err != nil {
				t.Fatal(err)
			}
			w.restart()
			w.clock.Add(25 * time.Hour)
			w.step()
			if st := w.state(a); st.State != Registered || st.Token() == "" {
				t.Errorf("%s %q: %+v", f.Name(), damage, st)
			}
		}
	}
}

func TestSecretsAreReadableByTheOwnerOnly(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub="+w.server.URL+"/websub")
	w.step()
	for _, name := range []string{"secret", "callback"} {
		fi, err := os.Stat(filepath.Join(w.dir.Join("src", a, "etc", "cloudd"), name))
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, fi.Mode(), err)
		}
	}
}

func TestPasswordsInURLsAreNotSent(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	w.feed("http://c.example/", w.cloud("/rsscloud/pleaseNotify", "http-post"))
	hash, _ := w.test.Feed("http://c.example/", "C", "etc/fetch/url=http://me:secret@c.example/")
	w.step()
	if regs := w.hub.Registrations(); len(regs) != 1 || regs[0].Feed != "http://c.example/" {
		t.Errorf("%+v", regs)
	}
	if st := w.state(hash); strings.Contains(fmt.Sprint(st), "secret@") {
		t.Errorf("%+v", st)
	}
}

func TestSOAPCloudsAreNamed(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	w.feed(feedA, w.cloud("/soap", "soap"))
	w.step()
	w.step()
	if n := strings.Count(w.log.String(), "SOAP is not supported"); n != 1 {
		t.Errorf("warned %d times:\n%s", n, w.log)
	}
	list, _ := ReadStatus(w.dir, w.clock.Now())
	if len(list) != 1 || !strings.Contains(list[0].Error, "SOAP") {
		t.Errorf("%+v", list)
	}
}

func TestUnsubscribedFeedEndsItsRegistration(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	cb := w.state(a).Callback
	os.Remove(filepath.Join(w.dir.Join("src", a, "etc", "fetch"), "url"))
	w.step()
	if st := w.state(a); st.State != Unsubscribed {
		t.Errorf("%+v", st)
	}
	if got := post(t, cb, "", "url="+feedA); got.status != 200 || w.marker(a) {
		t.Errorf("%+v, or a marker", got)
	}
	w.clock.Add(30 * time.Hour)
	w.step()
	if n := len(w.hub.Registrations()); n != 1 {
		t.Errorf("%d registrations", n)
	}
	// Subscribe to the feed again.
	w.feed(feedA)
	w.step()
	if st := w.state(a); st.State != Registered || len(w.hub.Registrations()) != 2 {
		t.Errorf("%+v", st)
	}
}

// TestPausedFeed: a paused feed is not registered and not renewed, and its notifications are ignored.
// Resumed, it is registered again.
func TestPausedFeed(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	b := w.feed(feedB, "hub="+w.plain+"/websub", "self="+feedB)
	w.step()
	asked, _ := w.hub.Requests()
	w.feed(feedA, "../fetch/paused=on")
	w.feed(feedB, "../fetch/paused=")
	c := w.feed("http://c.example/", w.cloud("/rsscloud/pleaseNotify", "http-post"), "../fetch/paused=on")
	if err := w.hub.Notify(feedA); err != nil || w.marker(a) {
		t.Errorf("a notification left a marker, or %v", err)
	}
	if err := w.hub.Deliver(feedB, "", []byte("x")); err != nil || w.marker(b) {
		t.Errorf("a delivery left a marker, or %v", err)
	}
	w.clock.Add(DefaultLease * 2)
	w.step()
	if n, _ := w.hub.Requests(); n != asked {
		t.Errorf("%d requests for paused feeds", n-asked)
	}
	list, err := ReadStatus(w.dir, w.clock.Now())
	if err != nil || len(list) != 3 || list[0].State != "paused" || list[1].State != "paused" || list[2].State != "paused" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, hash := range []string{a, b, c} {
		os.Remove(w.dir.Join("src", hash, "etc/fetch/paused"))
	}
	w.step()
	for _, hash := range []string{a, b, c} {
		if st := w.state(hash); st.State != Registered || !st.Expires.After(w.clock.Now()) {
			t.Errorf("%+v", st)
		}
	}
	// A feed that is unsubscribed from while it is paused ends its registration.
	w.feed(feedB, "../fetch/paused=on")
	w.step()
	os.RemoveAll(w.dir.Join("src", b, "etc/fetch"))
	w.step()
	if st := w.state(b); st.State != Unsubscribed {
		t.Errorf("%+v", st)
	}
}

// WebSub, section 5 and 7: subscribe, verify, deliver; unsubscribe, 410.
func TestWebSubSubscription(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		w := newWorld(t, &hub.Hub{}, nil)
		hubURL := w.plain
		if scheme == "https" {
			hubURL = w.server.URL
		}
		self := "http://www.a.example/feed"
		a := w.feed(feedA, "hub="+hubURL+"/websub", "self="+self)
		w.step()
		st := w.state(a)
		if st.State != Registered || st.Topic != self || !st.Asked.IsZero() || st.Failures != 0 || st.Expires.Sub(w.clock.Now()) != DefaultLease {
			t.Fatalf("%+v\n%s", st, w.log)
		}
		subs := w.hub.Subscriptions()
		if len(subs) != 1 || (subs[0].Secret != "") != (scheme == "https") || len(subs[0].Secret) >= 200 {
			t.Errorf("%s: %+v", scheme, subs)
		}
		if err := w.hub.Deliver(self, "sha256", bytes.Repeat([]byte("x"), 200_000)); err != nil || !w.marker(a) {
			t.Errorf("no marker: %v", err)
		}
		// The subscription is renewed before the lease ends, with the same callback and secret.
		w.clock.Add(DefaultLease * 4 / 5)
		w.step()
		if again := w.hub.Subscriptions(); len(again) != 1 || again[0] != subs[0] {
			t.Errorf("%+v", again)
		}
		if got := w.state(a).Expires.Sub(w.clock.Now()); got != DefaultLease {
			t.Errorf("expires in %s", got)
		}
		// A verification without a request is refused.
		for _, q := range []url.Values{
			{"hub.mode": {"unsubscribe"}, "hub.topic": {self}, "hub.challenge": {"abc"}},
			{"hub.mode": {"subscribe"}, "hub.topic": {feedB}, "hub.challenge": {"abc"}},
		} {
			if got := get(t, st.Callback+"?"+q.Encode()); got.status != 404 || strings.Contains(got.body, "abc") {
				t.Errorf("%v: %+v", q, got)
			}
		}
		// A hub that repeats its verification gets the same answer, and changes nothing.
		again := func(mode string) {
			t.Helper()
			before := w.state(a)
			for i := range 3 {
				q := url.Values{"hub.mode": {mode}, "hub.topic": {self}, "hub.challenge": {fmt.Sprint("again", i)}, "hub.lease_seconds": {"60"}}
				if got := get(t, st.Callback+"?"+q.Encode()); got.status != 200 || got.body != fmt.Sprint("again", i) {
					t.Errorf("%v: %+v", q, got)
				}
			}
			if after := w.state(a); after != before {
				t.Errorf("the registration was %+v and is %+v", before, after)
			}
		}
		again("subscribe")
		// The user unsubscribes from the feed.
		os.Remove(filepath.Join(w.dir.Join("src", a, "etc", "fetch"), "url"))
		w.step()
		if st := w.state(a); st.State != Unsubscribed || len(w.hub.Subscriptions()) != 0 {
			t.Errorf("%+v", st)
		}
		again("unsubscribe")
		w.restart()
		again("unsubscribe")
		if status, err := w.hub.Post(st.Callback, "", []byte("x")); status != http.StatusGone || err != nil {
			t.Errorf("after unsubscribing: %d, %v", status, err)
		}
	}
}

func TestWebSubLeases(t *testing.T) {
	for lease, renew := range map[time.Duration]time.Duration{
		time.Second:               8 * time.Second,
		time.Minute:               48 * time.Second,
		time.Hour:                 48 * time.Minute,
		10 * 365 * 24 * time.Hour: maxRenew,
	} {
		w := newWorld(t, &hub.Hub{Lease: lease}, nil)
		a := w.feed(feedA, "hub="+w.plain+"/websub")
		w.step()
		st := w.state(a)
		if got := st.Next.Sub(w.clock.Now()); got != renew || st.Expires.Sub(w.clock.Now()) != min(max(lease, minLease), maxLease) {
			t.Errorf("%s: renewed after %s: %+v", lease, got, st)
		}
	}
}

// Section 5.2.
func TestWebSubDenial(t *testing.T) {
	w := newWorld(t, &hub.Hub{Deny: "not \x1b[2Jyou"}, nil)
	a := w.feed(feedA, "hub="+w.plain+"/websub")
	w.step()
	st := w.state(a)
	if st.State != Denied || !strings.Contains(st.Error, "not [2Jyou") {
		t.Errorf("%+v", st)
	}
	w.clock.Add(time.Hour)
	w.step()
	if n, _ := w.hub.Requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
	w.hub.Deny = ""
	w.clock.Add(24 * time.Hour)
	w.step()
	if st := w.state(a); st.State != Registered {
		t.Errorf("%+v", st)
	}
}

func TestWebSubHubThatNeverVerifies(t *testing.T) {
	w := newWorld(t, &hub.Hub{NoVerify: true}, nil)
	a := w.feed(feedA, "hub="+w.plain+"/websub")
	w.step()
	if st := w.state(a); st.State != Requested || st.Asked.IsZero() {
		t.Errorf("%+v", st)
	}
	// A verification after half an hour, and a restart of the listener, is accepted.
	w.clock.Add(30 * time.Minute)
	w.restart()
	st := w.state(a)
	if !w.hub.Verify(&hub.Subscription{Callback: st.Callback, Topic: st.Topic, Lease: time.Hour}, websub.Subscribe) || w.state(a).State != Registered {
		t.Error("a late verification is refused")
	}
	w.clock.Add(time.Hour)
	w.step()
	for range 5 {
		w.clock.Add(6 * time.Hour)
		w.step()
	}
	if st := w.state(a); !strings.Contains(st.Error, "can it reach") || st.Failures < 2 {
		t.Errorf("%+v", st)
	}
}

// Section 8: deliveries with a wrong, missing or downgraded signature are ignored.
func TestAttackWebSubSignatures(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub="+w.server.URL+"/websub")
	w.step()
	st := w.state(a)
	content := []byte("<rss/>")
	deliver := func(signature string) bool {
		t.Helper()
		w.clock.Add(time.Minute)
		status, err := w.hub.Post(st.Callback, signature, content)
		if err != nil || status/100 != 2 {
			t.Errorf("%q: %d, %v", signature, status, err)
		}
		return w.marker(a)
	}
	for _, method := range []string{"sha1", "sha256", "sha384", "sha512"} {
		if !deliver(websub.Sign(method, st.Secret, content)) {
			t.Errorf("a delivery with %s is ignored", method)
		}
		if bad := strings.Replace(websub.Sign(method, st.Secret, content), "=", "=0", 1); deliver(bad) || deliver(websub.Sign(method, "other", content)) {
			t.Errorf("a delivery with a wrong %s is not ignored", method)
		}
	}
	// The hub may change its method, also to a shorter one.
	if !deliver(websub.Sign("sha256", st.Secret, content)) {
		t.Error("a delivery with sha256 after sha512 is ignored")
	}
	for _, signature := range []string{"", "none", "sha1=", "md5=d41d8cd98f00b204e9800998ecf8427e",
		websub.Sign("sha1", st.Secret, content)} {
		if deliver(signature) {
			t.Errorf("a delivery with the signature %q is not ignored", signature)
		}
	}
	if got := w.state(a); !strings.Contains(got.Error, "ignored") || got.State != Registered {
		t.Errorf("%+v", got)
	}
	// With the next lease, the hub may begin with any method.
	w.clock.Add(9 * 24 * time.Hour)
	w.step()
	if !deliver(websub.Sign("sha256", st.Secret, content)) || w.state(a).Error != "" {
		t.Errorf("after renewal: %+v", w.state(a))
	}
}

func TestFeedWithSeveralHubsTriesAnotherAfterFailures(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub=http://127.0.0.1:1/dead\n"+w.plain+"/nothing-here", w.cloud("/rsscloud/pleaseNotify", "http-post"))
	for range 10 {
		w.step()
		w.clock.Add(10 * time.Minute)
	}
	if st := w.state(a); st.State != Registered || st.Protocol != "http-post" || st.Error != "" {
		t.Errorf("%+v\n%s", st, w.log)
	}
	// After a restart, the registration is kept.
	n, _ := w.hub.Requests()
	w.restart()
	w.step()
	if again, _ := w.hub.Requests(); again != n {
		t.Errorf("%d requests", again-n)
	}
}

func TestChangedHubIsNoticed(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub="+w.plain+"/websub")
	w.step()
	if len(w.hub.Subscriptions()) != 1 {
		t.Fatal(w.log)
	}
	os.Remove(filepath.Join(w.dir.Join("src", a, "etc", "push"), "hub"))
	w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	if st := w.state(a); st.Protocol != "http-post" || st.State != Registered {
		t.Errorf("%+v", st)
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	list, err := ReadStatus(w.dir, w.clock.Now())
	if err != nil || len(list) != 1 || list[0].State != "" || list[0].Protocol != "http-post" {
		t.Errorf("%+v, %v", list, err)
	}
	w.step()
	list, _ = ReadStatus(w.dir, w.clock.Now().Add(26*time.Hour))
	if list[0].State != "expired" {
		t.Errorf("%+v", list)
	}
}

// Run notices new and changed feeds without a restart.
func TestRunNoticesNewFeedsAndChangedHubs(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) { o.Cooldown = 0 })
	ready := make(chan struct{})
	w.opts.Ready = func() { close(ready) }
	w.restart()
	feed := func(feedURL string, files ...string) string {
		hash := w.feed(feedURL, files...)
		w.clock.Add(checkEvery)
		w.l.poke()
		return hash
	}
	b := w.feed(feedB) // exists before Run
	w.restart()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.l.Run(ctx) }()
	<-ready
	feed(feedB, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	until(t, "the registration at the new cloud of an existing feed", func() bool { return w.state(b).State == Registered })
	a := feed(feedA)
	until(t, "the reading of the new feed", func() bool { w.l.mu.Lock(); defer w.l.mu.Unlock(); _, ok := w.l.stamps[a]; return ok })
	feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	until(t, "the registration of a new feed", func() bool { return w.state(a).State == Registered })
	feed(feedA, "hub="+w.plain+"/websub", "cloud")
	until(t, "the subscription at the new hub", func() bool { st := w.state(a); return st.State == Registered && st.Protocol == WebSub })
	until(t, "the subscription in the hub", func() bool { return len(w.hub.Subscriptions()) == 1 })
	if err := w.hub.Deliver(feedA, "sha1", []byte("x")); err != nil || !w.marker(a) {
		t.Error("no marker", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// No temporary files are left.
	var odd []string
	filepath.WalkDir(w.dir.Path(), func(path string, d os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".") {
			odd = append(odd, path)
		}
		return nil
	})
	if len(odd) != 0 {
		t.Errorf("temporary files are left: %q", odd)
	}
}

func TestStoppedInTheMiddleOfARequest(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	w := newWorld(t, &hub.Hub{}, nil)
	u, _ := url.Parse(s)
	a := w.feed(feedA, fmt.Sprintf("cloud=%s\t%s\t/x\t\thttp-post", u.Hostname(), u.Port()))
	if err := w.l.Run(ctx); err != nil {
		t.Error(err)
	}
	if st := w.state(a); st != (push.Registration{}) {
		t.Errorf("%+v", st)
	}
}

func TestPrivateIsExplained(t *testing.T) {
	err := explain(fmt.Errorf("x: %w", &httpmsg.PrivateError{URL: "http://a.example/"}))
	if !strings.Contains(err, "--allow") {
		t.Error(err)
	}
	if s := explain(errors.New("a\nb\x1b")); s != "a b" {
		t.Errorf("%q", s)
	}
}

// If a feed names another URL of its own with every fetch, it is not registered anew each
// time.
func TestAttackFeedThatChangesItsTopicAllTheTime(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	for i := range 60 {
		w.feed(feedA, "hub="+w.plain+"/websub", fmt.Sprintf("self=http://a.example/%d", i))
		w.step()
		w.clock.Add(10 * time.Second)
	}
	// Ten minutes allow the first request and two changes, each with a request to end the
	// previous subscription.
	if n, _ := w.hub.Requests(); n > 7 {
		t.Errorf("%d requests", n)
	}
}

// Section 5.1: a subscriber that no longer wants content unsubscribes. A purged feed that is
// added again, even before the hub got the request, is registered anew.
func TestPurgedFeedEndsItsSubscription(t *testing.T) {
	for _, soon := range []bool{false, true} {
		w := newWorld(t, &hub.Hub{}, nil)
		a := w.feed(feedA, "hub="+w.server.URL+"/websub")
		w.step()
		old := w.state(a)
		if err := os.RemoveAll(w.dir.Join("src", a)); err != nil {
			t.Fatal(err)
		}
		if soon {
			if err := w.l.scan(); err != nil {
				t.Fatal(err)
			}
		} else {
			w.step()
			if subs := w.hub.Subscriptions(); len(subs) != 0 {
				t.Errorf("the hub still has subscriptions: %+v", subs)
			}
			w.step()
			if len(w.l.feeds) != 0 || len(w.l.callbacks.byToken) != 0 {
				t.Errorf("the listener still has %v, %v", w.l.feeds, w.l.callbacks)
			}
		}
		w.feed(feedA, "hub="+w.server.URL+"/websub")
		w.step()
		st := w.state(a)
		if st.State != Registered || st.Secret == "" || st.Token() == old.Token() {
			t.Errorf("after the feed was added again: %+v", st)
		}
	}
}

func TestPurgedFeedIsGone(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub="+w.plain+"/websub")
	w.step()
	cb := w.state(a).Callback
	if err := os.RemoveAll(w.dir.Join("src", a)); err != nil {
		t.Fatal(err)
	}
	w.step()
	if got := post(t, cb, "", "x"); got.status != http.StatusGone {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(w.dir.Join("src", a)); err == nil || w.markers() != 0 {
		t.Error("the listener created files for the purged feed")
	}
}
