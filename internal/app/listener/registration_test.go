package listener

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/protocol/websub"
)

// Offers of a feed by WebSub and by rssCloud, and times, for the tables.
var (
	t0     = time.Unix(1_800_000_000, 0).UTC()
	hubX   = offer{protocol: WebSub, hub: "https://hub.example/", topic: feedA}
	hubY   = offer{protocol: WebSub, hub: "http://other.example/", topic: feedA}
	cloudX = offer{protocol: "http-post", hub: "http://cloud.example/pleaseNotify", topic: feedA}
	never  time.Time
)

const (
	tokenA, tokenB = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	base           = "http://me.example/"
)

// at returns a registration with the offer o, in a state and with a number of failures. It
// was renewed at t0. offers are the offers of its feed.
func at(o offer, state string, failures int, offers ...offer) registration {
	r := registration{url: feedA, offers: offers}
	r.Registration = push.Registration{Hub: o.hub, Protocol: o.protocol, Topic: o.topic, Callback: base + tokenA, State: state, Failures: failures}
	switch state {
	case Registered, Suspect:
		r.Next, r.Expires = t0.Add(CloudRenew), t0.Add(CloudExpire)
	case Requested, Unsubscribing:
		r.Asked, r.Next = t0, t0.Add(verifyWithin)
	}
	if failures > 0 {
		r.Error = "old"
	}
	return r
}

// with changes a registration.
func (r registration) with(change func(*registration)) registration { change(&r); return r }

// Each row is an event in a state, with the fields that it changes; all other fields must
// stay.
func TestEveryTransition(t *testing.T) {
	later := t0.Add(time.Hour)
	fail := failed{text: "no"}
	unsubscribed := func(r *registration) {
		r.State, r.Asked, r.Next, r.Expires, r.Failures, r.Error = Unsubscribed, never, never, never, 0, ""
	}
	registered := func(lease, renew time.Duration) func(*registration) {
		return func(r *registration) {
			r.State, r.Since, r.Asked, r.Failures, r.Error = Registered, later, never, 0, ""
			r.Next, r.Expires = later.Add(renew), later.Add(lease)
		}
	}
	cloud := registered(CloudExpire, CloudRenew)
	same := func(*registration) {}
	for _, tc := range []struct {
		name   string
		from   registration
		event  any
		change func(*registration)
		do     action
	}{
		// The files of the feed were read.
		{"a feed that has offers", registration{}, read{feedA, []offer{hubX}, base}, func(r *registration) { r.url, r.offers = feedA, []offer{hubX} }, wake},
		{"the hub's turn is found", at(cloudX, Registered, 2), read{feedA, []offer{hubX, cloudX}, base},
			func(r *registration) { r.offers, r.turn = []offer{hubX, cloudX}, 1 }, wake},
		{"failures of a hub that is no longer offered", at(cloudX, Failed, 5, cloudX), read{feedA, []offer{hubX}, base},
			func(r *registration) { r.offers, r.Failures = []offer{hubX}, 0 }, wake},
		{"failures if there are no offers any more", at(cloudX, Failed, 5, cloudX), read{"", nil, base},
			func(r *registration) { r.url, r.offers = "", nil }, wake},
		{"the same offers again", at(cloudX, Failed, 5, cloudX, hubX).with(func(r *registration) { r.turn = 1 }),
			read{feedA, []offer{cloudX, hubX}, base}, same, wake},
		{"reached elsewhere", at(cloudX, Registered, 0, cloudX), read{feedA, []offer{cloudX}, "http://new.example/x/"},
			func(r *registration) { r.Callback, r.Next, r.Expires = "http://new.example/x/"+tokenA, never, never }, wake},
		{"reached nowhere", at(cloudX, Registered, 0, cloudX), read{feedA, []offer{cloudX}, ""}, same, wake},

		// A request is made.
		{"first, cloud", registration{url: feedA, offers: []offer{cloudX}}, asked{offer: cloudX, callback: base + tokenB, secret: "s"},
			func(r *registration) {
				r.Hub, r.Protocol, r.Topic, r.Callback = cloudX.hub, cloudX.protocol, feedA, base+tokenB
			}, send},
		{"first, hub by https", registration{url: feedA, offers: []offer{hubX}}, asked{offer: hubX, callback: base + tokenB, secret: "s"},
			func(r *registration) {
				r.Hub, r.Protocol, r.Topic, r.Callback, r.Secret, r.Asked = hubX.hub, WebSub, feedA, base+tokenB, "s", later
			}, send},
		{"first, hub by http", registration{url: feedA, offers: []offer{hubY}}, asked{offer: hubY, callback: base + tokenB, secret: "s"},
			func(r *registration) {
				r.Hub, r.Protocol, r.Topic, r.Callback, r.Asked = hubY.hub, WebSub, feedA, base+tokenB, later
			}, send},
		{"again, cloud", at(cloudX, Registered, 1, cloudX), asked{offer: cloudX, callback: base + tokenA}, same, send},
		{"again, cloud with another callback", at(cloudX, Registered, 1, cloudX), asked{offer: cloudX, callback: base + tokenB},
			func(r *registration) {
				r.Callback, r.State, r.Next, r.Expires, r.moved, r.Error = base+tokenB, "", never, never, later, ""
			}, send},
		{"again, hub", at(hubX, Registered, 0, hubX), asked{offer: hubX, callback: base + tokenB, secret: "s"}, func(r *registration) { r.Asked = later }, send},
		{"again, after the end", at(hubX, Unsubscribed, 0, hubX), asked{offer: hubX, callback: base + tokenB, secret: "s"},
			func(r *registration) {
				r.State, r.Callback, r.Secret, r.Asked, r.moved = "", base+tokenB, "s", later, later
			}, send},
		{"another hub", at(hubX, Registered, 0, hubY), asked{offer: hubY, callback: base + tokenB, secret: "s"},
			func(r *registration) {
				r.Hub, r.Callback, r.Asked, r.moved = hubY.hub, base+tokenB, later, later
				r.State, r.Next, r.Expires = "", never, never
			}, send | leave},
		{"another hub after one that failed", at(hubX, Failed, 1, hubY), asked{offer: hubY, callback: base + tokenB},
			func(r *registration) {
				r.Hub, r.Callback, r.Asked, r.moved, r.State, r.Error = hubY.hub, base+tokenB, later, later, "", ""
			}, send},
		{"a hub after a cloud, which gets no request", at(cloudX, Registered, 0, hubY), asked{offer: hubY, callback: base + tokenB},
			func(r *registration) {
				r.Hub, r.Protocol, r.Callback, r.Asked, r.moved = hubY.hub, WebSub, base+tokenB, later, later
				r.State, r.Next, r.Expires = "", never, never
			}, send},
		{"another topic at the same hub", at(hubX, Registered, 0, offer{WebSub, hubX.hub, cloudX.cloud, feedB}), asked{offer: hubX, callback: base + tokenB, secret: "s"},
			func(r *registration) {
				r.Topic, r.Callback, r.Secret, r.Asked, r.moved = feedB, base+tokenB, "s", later, later
				r.State, r.Next, r.Expires = "", never, never
			}, send | leave},
		{"the end at a cloud", at(cloudX, Registered, 0), asked{offer: cloudX, end: true}, unsubscribed, save},
		{"the end at a hub", at(hubX, Registered, 0), asked{offer: hubX, end: true}, func(r *registration) { r.State, r.Asked = Unsubscribing, later }, send},
		{"the end at a hub that never had it", at(hubX, Failed, 3), asked{offer: hubX, end: true}, unsubscribed, save},
		{"the end at a hub that denied it", at(hubX, Denied, 1), asked{offer: hubX, end: true}, unsubscribed, save},

		// The hub answers with success.
		{"accepted by a cloud", at(cloudX, Failed, 4, cloudX), accepted{}, cloud, save},
		{"accepted by a cloud that never called", at(cloudX, "", 0, cloudX), accepted{unheard: true}, func(r *registration) {
			cloud(r)
			r.State, r.Error = Suspect, cloudX.hub+": the cloud accepted the registration but did not call; can it reach "+base+"?"
		}, save},
		{"accepted by a cloud, renewed", at(cloudX, Registered, 0, cloudX), accepted{}, cloud, save},
		{"accepted by a hub", at(hubX, "", 0, hubX).with(func(r *registration) { r.Asked = t0 }), accepted{},
			func(r *registration) { r.State, r.Failures, r.Next = Requested, 1, later.Add(verifyWithin) }, save},
		{"accepted by a hub, to be renewed", at(hubX, Registered, 0, hubX).with(func(r *registration) { r.Asked = t0 }), accepted{},
			func(r *registration) { r.Failures, r.Next = 1, later.Add(verifyWithin) }, save},
		{"accepted by a hub that has verified it by then", at(hubX, Registered, 0, hubX), accepted{}, same, save},
		{"accepted by a hub that verified nothing for long", at(hubX, Requested, 2, hubX, cloudX), accepted{},
			func(r *registration) {
				r.Failures, r.Next, r.turn = 3, later.Add(verifyWithin), 1
				r.Error = hubX.hub + ": the hub accepted the request but has not verified it; can it reach " + base + "?"
			}, save},
		{"accepted by a hub, the end", at(hubX, Unsubscribing, 0), accepted{}, func(r *registration) { r.Failures, r.Next = 1, later.Add(verifyWithin) }, save},
		{"accepted by a hub, the end that it never verifies", at(hubX, Unsubscribing, failuresPerHub), accepted{}, unsubscribed, save},

		// The request fails.
		{"failed, cloud", at(cloudX, "", 0, cloudX), fail, func(r *registration) {
			r.State, r.Failures, r.Error, r.Next = Failed, 1, "no", later.Add(time.Minute)
		}, save},
		{"failed, cloud where it has not expired", at(cloudX, Registered, 1, cloudX), fail, func(r *registration) {
			r.Failures, r.Error, r.Next = 2, "no", later.Add(2*time.Minute)
		}, save},
		{"failed, cloud where it has expired", at(cloudX, Registered, 1, cloudX).with(func(r *registration) { r.Expires = later }), fail, func(r *registration) {
			r.State, r.Failures, r.Error, r.Next = Failed, 2, "no", later.Add(2*time.Minute)
		}, save},
		{"failed, hub", at(hubX, Requested, 0, hubX), fail, func(r *registration) {
			r.State, r.Asked, r.Failures, r.Error, r.Next = Failed, never, 1, "no", later.Add(time.Minute)
		}, save},
		{"failed, hub that has verified it by then", at(hubX, Registered, 0, hubX), fail, same, save},
		{"failed, with Retry-After", at(cloudX, "", 0, cloudX), failed{text: "no", after: 2 * time.Hour}, func(r *registration) {
			r.State, r.Failures, r.Error, r.Next = Failed, 1, "no", later.Add(2*time.Hour)
		}, save},
		{"delayed by a pause of the host", at(cloudX, Registered, 0, cloudX), failed{text: "no", delayed: true, after: time.Second}, func(r *registration) {
			r.Error, r.Next = "no", later.Add(time.Second)
		}, save},
		{"refused, the next hub is tried at once", at(hubX, Requested, 0, hubX, cloudX), failed{text: "no", refused: true}, func(r *registration) {
			r.State, r.Asked, r.Failures, r.Error, r.Next, r.turn = Failed, never, 1, "no", later, 1
		}, save},
		{"refused by the last hub", at(cloudX, Failed, 1, hubX, cloudX).with(func(r *registration) { r.turn = 1 }), failed{text: "no", refused: true},
			func(r *registration) { r.Failures, r.Error, r.Next, r.turn = 2, "no", later.Add(2*time.Minute), 2 }, save},
		{"failed, the next hub's turn", at(cloudX, Failed, failuresPerHub-1, cloudX, hubX), fail, func(r *registration) {
			r.Failures, r.Error, r.Next, r.turn = failuresPerHub, "no", later.Add(4*time.Minute), 1
		}, save},
		{"failed, the end", at(hubX, Unsubscribing, 0), fail, func(r *registration) {
			r.Asked, r.Failures, r.Error, r.Next = never, 1, "no", later.Add(time.Minute)
		}, save},
		{"failed, the end too often", at(hubX, Unsubscribing, failuresPerHub), fail, func(r *registration) {
			r.State, r.Asked, r.Failures, r.Error, r.Next = Unsubscribed, never, failuresPerHub+1, "no", never
		}, save},

		// The hub verifies an intent.
		{"verified", at(hubX, Requested, 2, hubX).with(func(r *registration) { r.Signature = "sha512" }), intent{Mode: websub.Subscribe, Topic: feedA, Lease: 10 * time.Hour},
			func(r *registration) { registered(10*time.Hour, 8*time.Hour)(r); r.Signature = "" }, confirm | save},
		{"verified before the answer", at(hubX, "", 0, hubX).with(func(r *registration) { r.Asked = t0 }), intent{Mode: websub.Subscribe, Topic: feedA, Lease: DefaultLease},
			registered(DefaultLease, DefaultLease*4/5), confirm | save},
		{"verified without a lease", at(hubX, Requested, 0, hubX), intent{Mode: websub.Subscribe, Topic: feedA}, registered(DefaultLease, 24*time.Hour), confirm | save},
		{"verified for seconds", at(hubX, Requested, 0, hubX), intent{Mode: websub.Subscribe, Topic: feedA, Lease: time.Second}, registered(minLease, minLease*4/5), confirm | save},
		{"verified for a minute", at(hubX, Requested, 0, hubX), intent{Mode: websub.Subscribe, Topic: feedA, Lease: time.Minute}, registered(time.Minute, 48*time.Second), confirm | save},
		{"verified for ever", at(hubX, Requested, 0, hubX), intent{Mode: websub.Subscribe, Topic: feedA, Lease: 100 * maxRenew}, registered(maxLease, maxRenew), confirm | save},
		{"verified once more", at(hubX, Registered, 0, hubX), intent{Mode: websub.Subscribe, Topic: feedA, Lease: time.Hour}, same, confirm},
		{"verified once more, while it is renewed", at(hubX, Registered, 0, hubX).with(func(r *registration) { r.Asked = t0 }), intent{Mode: websub.Subscribe, Topic: feedA, Lease: DefaultLease},
			registered(DefaultLease, DefaultLease*4/5), confirm | save},
		{"verified once more, another topic", at(hubX, Registered, 0, hubX), intent{Mode: websub.Subscribe, Topic: feedB}, same, 0},
		{"verified once more, the contrary", at(hubX, Registered, 0, hubX), intent{Mode: websub.Unsubscribe, Topic: feedA}, same, 0},
		{"verified after a request that seemed to fail", at(hubX, Failed, 1, hubX), intent{Mode: websub.Subscribe, Topic: feedA, Lease: DefaultLease},
			registered(DefaultLease, DefaultLease*4/5), confirm | save},
		{"verified, the feed is no longer subscribed to", at(hubX, Registered, 0).with(func(r *registration) { r.url = "" }), intent{Mode: websub.Subscribe, Topic: feedA}, same, 0},
		{"verified after a denial", at(hubX, Denied, 1, hubX), intent{Mode: websub.Subscribe, Topic: feedA}, same, 0},
		{"verified, another topic", at(hubX, Requested, 0, hubX), intent{Mode: websub.Subscribe, Topic: feedB}, same, 0},
		{"verified, the contrary", at(hubX, Requested, 0, hubX), intent{Mode: websub.Unsubscribe, Topic: feedA}, same, 0},
		{"the end verified", at(hubX, Unsubscribing, 1), intent{Mode: websub.Unsubscribe, Topic: feedA}, unsubscribed, confirm | save},
		{"the end verified once more", at(hubX, Unsubscribed, 0), intent{Mode: websub.Unsubscribe, Topic: feedA}, same, confirm},
		{"the end verified, the contrary once more", at(hubX, Unsubscribed, 0), intent{Mode: websub.Subscribe, Topic: feedA}, same, 0},
		{"the end verified after a request that seemed to fail", at(hubX, Unsubscribing, 1).with(func(r *registration) { r.Asked = never }), intent{Mode: websub.Unsubscribe, Topic: feedA}, unsubscribed, confirm | save},
		{"the end wanted, the contrary verified", at(hubX, Unsubscribing, 1), intent{Mode: websub.Subscribe, Topic: feedA}, same, 0},

		// The hub denies the request.
		{"denied", at(hubX, Requested, 1, hubX), intent{Mode: websub.Denied, Topic: feedA, Reason: "because"}, func(r *registration) {
			r.State, r.Asked, r.Failures, r.Next = Denied, never, 2, later.Add(deniedFor)
			r.Error = hubX.hub + ": refused: because"
		}, confirm | save | wake},
		{"denied later", at(hubX, Registered, 0, hubX, cloudX), intent{Mode: websub.Denied, Topic: feedA}, func(r *registration) { r.Next = later }, confirm | save | wake},
		{"denied later, where deliveries come", at(hubX, Registered, 0, hubX).with(func(r *registration) { r.Notified = t0 }), intent{Mode: websub.Denied, Topic: feedA}, same, confirm},
		{"denied later, just renewed", at(hubX, Registered, 0, hubX).with(func(r *registration) { r.Since = t0.Add(time.Minute) }), intent{Mode: websub.Denied, Topic: feedA}, same, confirm},
		{"denied, and failed before", at(hubX, Failed, 1, hubX), intent{Mode: websub.Denied, Topic: feedA}, same, confirm},
		{"denied, another topic", at(hubX, Requested, 1, hubX), intent{Mode: websub.Denied, Topic: feedB}, same, 0},
		{"denied, at the end", at(hubX, Unsubscribing, 1), intent{Mode: websub.Denied, Topic: feedA}, same, confirm},

		// The hub delivers content.
		{"delivered", at(hubX, Registered, 0, hubX), delivered{method: "sha256"}, func(r *registration) { r.Signature = "sha256" }, believe},
		{"delivered without a secret", at(hubY, Registered, 1, hubY), delivered{}, same, believe},
		{"delivered, signed worse", at(hubX, Registered, 0, hubX).with(func(r *registration) { r.Signature = "sha512"; r.Error = ignored + "x" }), delivered{method: "sha256"},
			func(r *registration) { r.Error = "" }, believe},
		{"delivered, signed wrong", at(hubX, Registered, 0, hubX), delivered{wrong: "x"}, func(r *registration) { r.Error = ignored + "x" }, save},
		{"delivered, signed wrong again", at(hubX, Registered, 0, hubX).with(func(r *registration) { r.Error = ignored + "x" }), delivered{wrong: "x"}, same, 0},
		{"called, suspect", at(cloudX, Suspect, 0, cloudX).with(func(r *registration) { r.Error = "x" }), called{}, func(r *registration) { r.State, r.Error = Registered, "" }, save},
		{"called, registered", at(cloudX, Registered, 0, cloudX), called{}, same, 0},
		{"a marker left, suspect", at(cloudX, Suspect, 0, cloudX), left{}, func(r *registration) { r.State, r.Notified = Registered, later }, save},

		// No listener ran, or no notification came.
		{"deaf", at(cloudX, Registered, 0, cloudX), deaf{}, func(r *registration) { r.Next = later }, save | wake},
		{"deaf, hub", at(hubX, Registered, 0, hubX), deaf{}, func(r *registration) { r.Next = later }, save | wake},
		{"deaf, and due anyway", at(cloudX, Suspect, 0, cloudX).with(func(r *registration) { r.Next = t0 }), deaf{}, same, 0},
		{"deaf, and failed", at(cloudX, Failed, 2, cloudX), deaf{}, same, 0},
		{"missed", at(cloudX, Registered, 0, cloudX), missed{later}, func(r *registration) { r.Next = later.Add(missedGrace) }, save | wake},
		{"missed, and just notified", at(cloudX, Registered, 0, cloudX).with(func(r *registration) { r.Notified = later.Add(-time.Minute) }), missed{later}, same, 0},
		{"missed before it was renewed", at(cloudX, Registered, 0, cloudX).with(func(r *registration) { r.Since = t0.Add(time.Minute) }), missed{later}, same, 0},
		{"a marker left", at(cloudX, Registered, 1, cloudX), left{}, func(r *registration) { r.Notified = later }, save},
	} {
		before := tc.from
		got, do := tc.from.on(tc.event, later, 0)
		if want := tc.from.with(tc.change); !reflect.DeepEqual(got, want) || do != tc.do {
			t.Errorf("%s:\n got %+v, %b\nwant %+v, %b", tc.name, got, do, want, tc.do)
		}
		if !reflect.DeepEqual(tc.from, before) {
			t.Errorf("%s: on changed its receiver", tc.name)
		}
	}
}

// The next request of a registration, in every state.
func TestEveryWish(t *testing.T) {
	expired := CloudExpire + time.Hour
	lost := func(r *registration) { r.url = "" }
	for _, tc := range []struct {
		name  string
		r     registration
		since time.Duration // t0
		want  wish
		none  bool
	}{
		{"no offers", registration{url: feedA}, 0, wish{}, true},
		{"new", registration{url: feedA, offers: []offer{hubX}}, 0, wish{offer: hubX}, false},
		{"not subscribed to", registration{offers: []offer{hubX}}, 0, wish{}, true},
		{"registered", at(hubX, Registered, 0, hubX), time.Hour, wish{at: t0.Add(CloudRenew), offer: hubX}, false},
		{"registered, cloud", at(cloudX, Registered, 0, cloudX), time.Hour, wish{at: t0.Add(CloudRenew), offer: cloudX}, false},
		{"registered, cloud, soon", at(cloudX, Registered, 0, cloudX), CloudRenew - renewalSlack, wish{at: t0.Add(CloudRenew), offer: cloudX, early: true}, false},
		{"requested", at(hubX, Requested, 1, hubX), 0, wish{at: t0.Add(verifyWithin), offer: hubX}, false},
		{"failed, the next hub's turn", at(hubX, Failed, failuresPerHub, hubX, cloudX).with(func(r *registration) { r.turn, r.Next = 1, t0.Add(time.Hour) }), 0, wish{at: t0.Add(time.Hour), offer: cloudX}, false},
		{"another hub", at(hubX, Registered, 0, hubY), 0, wish{offer: hubY}, false},
		{"another topic", at(hubX, Registered, 0, offer{protocol: WebSub, hub: hubX.hub, topic: feedB}), 0, wish{offer: offer{protocol: WebSub, hub: hubX.hub, topic: feedB}}, false},
		{"another hub just after the last", at(hubX, Registered, 0, hubY).with(func(r *registration) { r.moved = t0 }), time.Minute, wish{at: t0.Add(minRenew), offer: hubY}, false},
		{"another hub, and the clock was wrong", at(hubX, Registered, 0, hubY).with(func(r *registration) { r.moved = t0.Add(time.Hour) }), time.Minute, wish{offer: hubY}, false},
		{"a clock that was ahead, cloud", at(cloudX, Registered, 0, cloudX), -2 * time.Hour, wish{offer: cloudX, early: true}, false},
		{"a clock that was ahead, hub", at(hubX, Registered, 0, hubX), -2 * maxRenew, wish{offer: hubX}, false},
		{"lost, cloud", at(cloudX, Registered, 0, cloudX).with(lost), 0, wish{offer: offer{protocol: "http-post", hub: cloudX.hub, topic: feedA}, end: true}, false},
		{"lost, hub", at(hubX, Registered, 0, hubX).with(lost), 0, wish{offer: hubX, end: true}, false},
		{"no offers any more", at(hubX, Registered, 0), 0, wish{offer: hubX, end: true}, false},
		{"unsubscribing", at(hubX, Unsubscribing, 1, hubX).with(lost), 0, wish{at: t0.Add(verifyWithin), offer: hubX, end: true}, false},
		{"unsubscribed", at(hubX, Unsubscribed, 0).with(lost), expired, wish{}, true},
		{"subscribed to again", at(hubX, Unsubscribed, 0, hubX), 0, wish{offer: hubX}, false},
		{"subscribed to again before the end", at(hubX, Unsubscribing, 1, hubX), 0, wish{offer: hubX}, false},
	} {
		if got, ok := tc.r.due(t0.Add(tc.since)); ok == tc.none || got != tc.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", tc.name, got, ok, tc.want)
		}
	}
}

func TestNoEventOfARegistration(t *testing.T) {
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "no event") {
			t.Error(s)
		}
	}()
	registration{}.on(1, t0, 0)
}

func TestCooldown(t *testing.T) {
	const most = 10 * time.Second
	never, old := time.Time{}, t0.Add(-time.Hour)
	for _, tc := range []struct {
		name  string
		from  cooldown
		since time.Duration // t0
		seen  time.Time     // when the feed changed
		want  cooldown
		now   bool
	}{
		{"the first", cooldown{}, 0, old, cooldown{t0, never, most / 10, old}, true},
		{"within it", cooldown{last: t0, wait: most}, time.Second, old, cooldown{last: t0, wait: most, due: t0.Add(most)}, false},
		{"within it again", cooldown{last: t0, wait: most, due: t0.Add(most)}, 2 * time.Second, old, cooldown{last: t0, wait: most, due: t0.Add(most)}, false},
		{"after it, and it had changed", cooldown{last: t0, wait: most, changed: old}, most, t0, cooldown{t0.Add(most), never, most / 2, t0}, true},
		{"after it, and it had not", cooldown{last: t0, wait: 3 * time.Second, changed: old}, most, old, cooldown{t0.Add(most), never, 6 * time.Second, old}, true},
		{"and it had not again", cooldown{last: t0, wait: 6 * time.Second, changed: old}, most, old, cooldown{t0.Add(most), never, most, old}, true},
		{"the second after two seconds", cooldown{last: t0, wait: most / 10, changed: old}, 2 * time.Second, t0, cooldown{t0.Add(2 * time.Second), never, most / 10, t0}, true},
		{"after long", cooldown{last: t0, wait: most, changed: old}, time.Hour, old, cooldown{t0.Add(time.Hour), never, most / 10, old}, true},
		{"the clock was wrong", cooldown{last: t0.Add(time.Hour), wait: most}, 0, old, cooldown{t0, never, most / 10, old}, true},
	} {
		if got, now := tc.from.notified(t0.Add(tc.since), most, tc.seen); got != tc.want || now != tc.now {
			t.Errorf("%s: %+v, %v", tc.name, got, now)
		}
	}
	c := cooldown{last: t0, due: t0.Add(most)}
	for since, want := range map[time.Duration]bool{0: false, most: true, -time.Hour: true} {
		if c.ripe(t0.Add(since), most) != want {
			t.Error(since)
		}
	}
	if (cooldown{last: t0}).ripe(t0.Add(time.Hour), most) {
		t.Error("nothing is due")
	}
}

// A stranger who knows a callback causes at most one marker in each cooldown. For a feed that
// changes with each notification, a marker is left after a tenth of the cooldown.
func TestCooldownAdapts(t *testing.T) {
	const most = 10 * time.Second
	for _, changes := range []bool{false, true} {
		var c cooldown
		markers, changed := 0, t0
		for i := range 600 {
			now := t0.Add(time.Duration(i) * time.Second)
			if changes {
				changed = now
			}
			leave := c.ripe(now, most)
			if leave {
				c = c.left(now, most, changed)
			} else {
				c, leave = c.notified(now, most, changed)
			}
			if leave {
				markers++
			}
		}
		if want := map[bool]int{false: 64, true: 600}[changes]; markers > want || markers < want-6 {
			t.Errorf("changes %v: %d markers in ten minutes", changes, markers)
		}
	}
}
