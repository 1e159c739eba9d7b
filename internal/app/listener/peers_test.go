package listener

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/testkit/hub"
)

// The tests here imitate deviations of real hubs.

// If a hub reads only the first URL of a request and answers success for all, the other
// feeds are registered by single requests.
func TestHubThatTakesOneFeedOfABatch(t *testing.T) {
	for _, protocol := range []string{"http-post", "xml-rpc"} {
		path := map[string]string{"http-post": "/rsscloud/pleaseNotify", "xml-rpc": "/RPC2"}[protocol]
		w := newWorld(t, &hub.Hub{FirstOnly: true, CallsRPC: true}, nil)
		var hashes, urls []string
		for i := range 5 {
			u := fmt.Sprintf("http://f%d.example/", i)
			hashes, urls = append(hashes, w.feed(u, w.cloud(path, protocol))), append(urls, u)
		}
		w.step()
		for i, h := range hashes {
			if st := w.state(h); st.State != Registered || st.Error != "" {
				t.Errorf("%s: %s: %+v", protocol, urls[i], st)
			}
			// A test call by XML-RPC is not a notification.
			if w.marker(h) {
				t.Errorf("%s: %s: a marker for a test call", protocol, urls[i])
			}
			if err := w.hub.Notify(urls[i]); err != nil || !w.marker(h) {
				t.Errorf("%s: a notification of %s leaves no marker: %v", protocol, urls[i], err)
			}
		}
		if n, _ := w.hub.Requests(); n != 5 {
			t.Errorf("%s: %d requests", protocol, n)
		}
	}
}

// A registration is suspect until the hub calls.
func TestHubThatNeverCalls(t *testing.T) {
	w := newWorld(t, &hub.Hub{NeverCalls: true}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	b := w.feed(feedB, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	list, err := ReadStatus(w.dir, w.clock.Now())
	if err != nil || len(list) != 2 || list[0].State != Suspect || !strings.Contains(list[0].Error, "did not call") {
		t.Fatalf("%+v, %v", list, err)
	}
	if !strings.Contains(w.log.String(), "2 feeds: ") {
		t.Errorf("the log does not mention it: %s", w.log)
	}
	if err := w.hub.Notify(feedA); err != nil || !w.marker(a) {
		t.Error("a notification leaves no marker", err)
	}
	if st := w.state(a); st.State != Registered || st.Error != "" {
		t.Errorf("after a call: %+v", st)
	}
	// The registration is renewed like others. If the hub has notified since the last
	// registration, it can reach the listener, although it makes no test call.
	for _, notified := range []bool{true, false} {
		w.clock.Add(CloudRenew)
		w.step()
		if st := w.state(b); st.State != Suspect || st.Expires.Sub(w.clock.Now()) != CloudExpire {
			t.Errorf("%+v", st)
		}
		if st := w.state(a); (st.State == Registered) != notified || st.Expires.Sub(w.clock.Now()) != CloudExpire {
			t.Errorf("notified %v: %+v", notified, st)
		}
	}
}

// Some hubs verify a registration after they have answered.
func TestHubThatCallsLate(t *testing.T) {
	w := newWorld(t, &hub.Hub{CallsLate: true}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	if st := w.state(a); st.State != Suspect {
		t.Fatalf("%+v", st)
	}
	if !w.hub.LateChallenges() {
		t.Error("the challenge is not answered")
	}
	if st := w.state(a); st.State != Registered || st.Error != "" {
		t.Errorf("%+v", st)
	}
	cb := w.state(a).Callback
	if got := get(t, cb+"?challenge=x&url="+feedA); got.status != 404 {
		t.Errorf("a challenge without a suspect registration is answered: %+v", got)
	}
}

// An answer of 200 that is not a result is a failure, even if the hub made a test call.
func TestHubThatAnswersNoResult(t *testing.T) {
	for _, answer := range []string{"OK", "<html>welcome</html>", "{}", "<methodResponse><params/></methodResponse>"} {
		w := newWorld(t, &hub.Hub{Answer: answer}, nil)
		a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
		w.step()
		if st := w.state(a); st.State != Failed || !strings.Contains(st.Error, "not a cloud") {
			t.Errorf("%s: %+v", answer, st)
		}
	}
}

// A notification during a registration does not count as a test call if there is a
// challenge, too.
func TestNotificationDuringARegistration(t *testing.T) {
	var w *world
	var a string
	s := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		cb := "http://" + r.FormValue("domain") + ":" + r.FormValue("port") + r.FormValue("path")
		post(t, cb, "application/x-www-form-urlencoded", "url="+feedA)
		get(t, cb+"?challenge=x&url="+feedA)
		fmt.Fprint(rw, `<notifyResult success="true" msg=""/>`)
	}))
	w = newWorld(t, &hub.Hub{}, nil)
	a = w.feed(feedA, cloudAt(t, s, "/pleaseNotify"))
	w.step()
	if w.state(a).State != Registered || !w.marker(a) {
		t.Errorf("the notification is lost: %+v", w.state(a))
	}
}

// Some hubs drop a subscriber after three errors. A listener that was down for a minute
// therefore renews its registrations.
func TestHubThatDropsAbsentListeners(t *testing.T) {
	w := newWorld(t, &hub.Hub{Forgets: 3}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	b := w.feed(feedB, "hub="+w.plain+"/websub")
	w.step()
	if err := writeHeard(w.dir, w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.callback.Config.Handler = http.NotFoundHandler()
	for range 3 {
		w.hub.Notify(feedA)
	}
	if n := len(w.hub.Registrations()); n != 0 {
		t.Fatalf("%d registrations", n)
	}
	w.callback.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.l.ServeHTTP(rw, r) })
	before, _ := w.hub.Requests()
	for _, away := range []time.Duration{time.Minute - time.Second, time.Minute} {
		w.clock.Add(away)
		w.restart()
		run(t, w)
		after, _ := w.hub.Requests()
		if want := map[bool]int{true: 2}[away >= time.Minute]; after-before != want {
			t.Errorf("after %s: %d requests", away, after-before)
		}
	}
	// While the listener runs, it does not renew early.
	before, _ = w.hub.Requests()
	for range 10 {
		w.clock.Add(checkEvery)
		w.l.listening()
		w.step()
	}
	if after, _ := w.hub.Requests(); after != before {
		t.Errorf("%d requests while it listens", after-before)
	}
	w.clock.Add(-10 * checkEvery)
	if err := w.hub.Notify(feedA); err != nil || !w.marker(a) {
		t.Error("a notification leaves no marker after the renewal", err)
	}
	if w.state(b).Since != w.clock.Now() {
		t.Errorf("%+v", w.state(b))
	}
}

// run does the beginning of Run, and the requests that are due then.
func run(t *testing.T, w *world) {
	t.Helper()
	w.l.heard = lastHeard(w.dir)
	w.l.listening()
	w.step()
}

// If a scheduled fetch finds a feed changed without a notification, the hub may have dropped
// the registration, so it is renewed.
func TestFeedFoundChangedWithoutANotification(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	asked := func() int { n, _ := w.hub.Requests(); return n }
	missed := func() {
		t.Helper()
		if err := push.RecordMissed(w.dir, a, w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		w.l.load(a, w.l.look(a))
		w.step()
	}
	missed()
	w.clock.Add(missedGrace)
	if w.step(); asked() != 1 {
		t.Errorf("renewed just after it was registered: %d", asked())
	}
	w.clock.Add(2 * time.Hour)
	missed()
	if asked() != 1 {
		t.Error("the notification may be on its way")
	}
	w.clock.Add(missedGrace)
	if w.step(); asked() != 2 {
		t.Errorf("not renewed: %d requests, %+v", asked(), w.state(a))
	}
	// A notification shortly after the fetch prevents the renewal.
	w.clock.Add(2 * time.Hour)
	if err := w.hub.Notify(feedA); err != nil {
		t.Fatal(err)
	}
	missed()
	w.clock.Add(missedGrace)
	if w.step(); asked() != 2 {
		t.Errorf("%d requests", asked())
	}
}

// A hub may refuse requests with a lease, or grant only a minute.
func TestHubsWithLeasesOfTheirOwn(t *testing.T) {
	w := newWorld(t, &hub.Hub{NoLease: true, Lease: time.Minute}, nil)
	a := w.feed(feedA, "hub="+w.plain+"/websub")
	w.step()
	for range 5 {
		st := w.state(a)
		if st.State != Registered || !st.Next.Before(st.Expires) || !w.clock.Now().Before(st.Expires) {
			t.Fatalf("%+v", st)
		}
		w.clock.Add(st.Next.Sub(w.clock.Now()))
		w.step()
	}
}

// If a batch fails, every feed of it has a complete state. When the hub's address is allowed,
// the requests are made at once.
func TestFeedsOfAFailedBatchHaveACompleteState(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) { o.Fetch.AllowPrivate = nil })
	var hashes []string
	for i := range 4 {
		push := "hub=" + w.plain + "/websub"
		if i > 1 {
			push = w.cloud("/rsscloud/pleaseNotify", "http-post")
		}
		hashes = append(hashes, w.feed(fmt.Sprintf("http://f%d.example/", i), push))
	}
	w.step()
	for _, h := range hashes {
		st := w.state(h)
		if st.State != Failed || st.Hub == "" || st.Topic == "" || st.Callback == "" || st.Failures != 1 || st.Next != w.clock.Now().Add(time.Minute) || !strings.Contains(st.Error, "--allow") {
			t.Errorf("%+v", st)
		}
	}
	w.opts.Fetch.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w.restart()
	w.step()
	for _, h := range hashes {
		if st := w.state(h); st.State != Registered || st.Error != "" {
			t.Errorf("allowed: %+v", st)
		}
	}
}

// If a hub cannot be reached, it gets one request. All feeds of the batch have the same
// complete state, with the error and the same backoff.
func TestUnreachableHubIsAskedOnce(t *testing.T) {
	var requests atomic.Int32
	s := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		panic(http.ErrAbortHandler)
	}))
	for _, push := range []string{"hub=" + s + "/websub", cloudAt(t, s, "/rsscloud/pleaseNotify")} {
		requests.Store(0)
		w := newWorld(t, &hub.Hub{}, nil)
		var hashes []string
		for i := range 5 {
			hashes = append(hashes, w.feed(fmt.Sprintf("http://f%d.example/", i), push))
		}
		w.step()
		if n := requests.Load(); n > 2 { // net/http may try once more by itself
			t.Errorf("%s: %d requests", push, n)
		}
		for _, h := range hashes {
			if st := w.state(h); st.State != Failed || st.Failures != 1 || st.Error == "" || st.Next != w.clock.Now().Add(time.Minute) || st.Topic == "" || st.Callback == "" {
				t.Errorf("%s: %+v", push, st)
			}
		}
		// The first success clears the errors.
		w.clock.Add(time.Minute)
		for i, h := range hashes {
			os.RemoveAll(w.dir.Join("src", h, "etc/push"))
			w.test.Feed(fmt.Sprintf("http://f%d.example/", i), "Feed", "etc/push/hub="+w.plain+"/websub")
		}
		w.step()
		for _, h := range hashes {
			if st := w.state(h); st.State != Registered || st.Error != "" || st.Failures != 0 {
				t.Errorf("%s, later: %+v", push, st)
			}
		}
	}
}

// If strangers know a callback, for example from the public log of a hub, they can neither
// end a subscription, nor cause more than one fetch in a cooldown.
func TestStrangersWhoKnowTheCallback(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub="+w.server.URL+"/websub")
	b := w.feed(feedB, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	w.clock.Add(2 * time.Hour)
	content := []byte("<rss/>")
	if err := w.hub.Deliver(feedA, "sha512", content); err != nil || !w.marker(a) {
		t.Fatal("not delivered", err)
	}
	before := w.state(a)
	if got := get(t, before.Callback+"?hub.mode=denied&hub.topic="+feedA+"&hub.reason=haha"); got.status != 200 {
		t.Errorf("%+v", got)
	}
	w.step()
	if got := w.state(a); got != before {
		t.Errorf("a stranger's denial: %+v", got)
	}
	// The hub changes its hash function. Deliveries are accepted, except with sha1.
	w.clock.Add(time.Minute)
	for method, accepted := range map[string]bool{"sha256": true, "sha1": false} {
		w.clock.Add(time.Hour)
		status, err := w.hub.Post(before.Callback, websub.Sign(method, before.Secret, content), content)
		if err != nil || status != 200 || w.marker(a) != accepted {
			t.Errorf("%s: %d, %v", method, status, err)
		}
	}
	markers := 0
	for range 600 {
		post(t, w.state(b).Callback, "", "url="+feedB)
		w.step()
		if w.marker(b) {
			markers++
		}
		w.clock.Add(time.Second)
	}
	if most := int(10*time.Minute/w.opts.Cooldown) + 4; markers > most {
		t.Errorf("%d requests in ten minutes for a feed that does not change", markers)
	}
}

// Each of several updates, two seconds after the previous marker, leaves a marker within a
// second.
func TestSecondUpdateComesSoon(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	var late []time.Duration
	for range 5 {
		begin := w.clock.Now()
		if err := w.hub.Notify(feedA); err != nil {
			t.Fatal(err)
		}
		for w.step(); !w.marker(a); w.step() {
			w.clock.Add(100 * time.Millisecond)
		}
		late = append(late, w.clock.Now().Sub(begin))
		w.clock.Add(2 * time.Second)
		// lektor-fetch finds the feed changed.
		w.test.Feed(feedA, "Feed", "etc/fetch/body="+begin.String())
	}
	if slices.Max(late) > time.Second {
		t.Errorf("%v", late)
	}
}

// With the default cooldown, each of five updates ten seconds apart is fetched within two
// seconds, even if two hubs announce each update.
func TestFiveUpdatesTenSecondsApart(t *testing.T) {
	for _, twice := range []bool{false, true} {
		w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) { o.Cooldown = DefaultCooldown })
		a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
		w.step()
		document, fetched := 0, 0 // version of the feed, and last version that was fetched
		for range 5 {
			document++
			begin, late := w.clock.Now(), time.Duration(-1)
			for n := range 100 {
				if n == 0 || twice && n == 3 {
					if err := w.hub.Notify(feedA); err != nil {
						t.Fatal(err)
					}
				}
				if w.step(); w.marker(a) && fetched < document {
					fetched, late = document, w.clock.Now().Sub(begin)
					w.test.Feed(feedA, "Feed", "etc/fetch/body="+fmt.Sprint(document))
				}
				w.clock.Add(100 * time.Millisecond)
			}
			if late < 0 || late > 2*time.Second {
				t.Errorf("update %d, announced twice %v: fetched after %s", document, twice, late)
			}
		}
	}
}

// The test call of an XML-RPC cloud is answered with true, and leaves no marker.
func TestTestCallByXMLRPCIsNoNotification(t *testing.T) {
	w := newWorld(t, &hub.Hub{CallsRPC: true}, nil)
	a := w.feed(feedA, w.cloud("/RPC2", "xml-rpc"))
	w.step()
	if st := w.state(a); st.State != Registered || st.Protocol != rsscloud.XMLRPC || w.marker(a) {
		t.Errorf("%+v", st)
	}
	if err := w.hub.Notify(feedA); err != nil || !w.marker(a) {
		t.Error("the first notification counts as a test call", err)
	}
}
