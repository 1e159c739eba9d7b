package listener

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
)

// Times of registrations:
const (
	// CloudRenew and CloudExpire are those of rssCloud: "You must renew your
	// subscription every 24 hours because they expire after 25 hours."
	CloudRenew  = 24 * time.Hour
	CloudExpire = 25 * time.Hour
	// DefaultLease is the lease that is requested of WebSub hubs, and assumed if the hub
	// does not name one.
	DefaultLease = 10 * 24 * time.Hour
	// minLease and maxLease are the limits of leases that are accepted. maxRenew is the
	// longest time until a renewal, in case a hub has forgotten the subscription.
	minLease = 10 * time.Second
	maxLease = 365 * 24 * time.Hour
	maxRenew = 30 * 24 * time.Hour
	// minRenew is the minimum time between requests for a feed that changes its hub again
	// and again.
	minRenew = 5 * time.Minute
	// verifyWithin is how long a hub may take to verify a request before it is repeated.
	verifyWithin = time.Hour
	// deniedFor is the time until the next request after a denial.
	deniedFor = 24 * time.Hour
	// renewalSlack is how much earlier a registration may be renewed to share a request with
	// another of the same cloud.
	renewalSlack = 30 * time.Minute

	// deafAfter is how long a listener may be down before hubs may have dropped it: some do
	// after three errors, which three updates within a minute cause. Then all registrations
	// are renewed, spread over deafSpread.
	deafAfter  = time.Minute
	deafSpread = 5 * time.Minute
	// missedGrace is how much later than a scheduled fetch a notification may arrive.
	// missedRest is the minimum time between two renewals because of missed notifications.
	missedGrace = 2 * time.Minute
	missedRest  = time.Hour

	// failuresPerHub is the number of failures in a row after which the next hub of a feed is
	// tried.
	failuresPerHub = 3
)

// retry is the wait after failures in a row.
var retry = limiter.Backoff{Base: time.Minute, Cap: 6 * time.Hour, Jitter: -0.5}

// The states of a registration, as in the file state:
const (
	Requested     = "requested"     // the hub has not verified it yet
	Registered    = "registered"    //
	Suspect       = "suspect"       // accepted by the cloud, which has never called
	Failed        = "failed"        // will be tried again
	Denied        = "denied"        // by the hub; tried again the next day
	Unsubscribing = "unsubscribing" // the feed is no longer subscribed to
	Unsubscribed  = "unsubscribed"  // ended at the hub, if necessary
)

// WebSub is the name of the WebSub protocol. The other protocols are those of rssCloud.
const WebSub = "websub"

// offer is an offer of a feed to notify of its updates.
type offer struct {
	protocol string
	hub      string // URL
	cloud    rsscloud.Cloud
	topic    string
}

// key identifies offers that can share a request: hub and protocol.
func (o offer) key() string { return o.protocol + " " + o.hub }

// registration is the registration of a feed with a cloud or hub, as the subscriber sees
// it. It is a value without lock, clock or network. [registration.on] returns the value
// after an event, and the actions. [registration.due] returns the next request. In short:
//
//	asked            Failed, Requested, Registered or Suspect, as the hub answers
//	accepted         Registered or Suspect at a cloud, Requested at a WebSub hub
//	called, left     Registered, if it was Suspect
//	deaf, missed     unchanged, but renewed soon
//	intent           Registered, Unsubscribed or Denied
//	failed           Failed; Registered until that expires
//	asked, to end    Unsubscribed at a cloud, Unsubscribing at a WebSub hub
type registration struct {
	push.Registration // the part that is in files

	url    string // URL of the feed; "" if it is not subscribed to
	paused bool   // the user has paused the feed, so no requests are made
	offers []offer
	turn   int // index of the current offer
	// moved is when the hub or topic last changed.
	moved time.Time
}

// The events of a registration.
type (
	// read means that the feed was read again: its URL, its offers, and the base URL of
	// callbacks, "" for none.
	read struct {
		url    string
		offers []offer
		base   string
	}
	// asked means that a request is made: for an offer, or to end the registration. A new
	// registration gets this callback and secret. All registrations with a cloud share a
	// callback; in WebSub each has its own (section 5.1.1).
	asked struct {
		offer            offer
		end              bool
		callback, secret string
	}
	// accepted means that the hub answered the request with success. unheard is true if a
	// cloud did not call the callback before that.
	accepted struct{ unheard bool }
	// called means that a cloud called the callback to verify a registration.
	called struct{}
	// deaf means that no listener ran for long.
	deaf struct{}
	// missed means that the feed was found changed at a time without a notification.
	missed struct{ at time.Time }
	// failed means that the request failed.
	failed struct {
		text    string // in one line
		refused bool   // the hub refused: another request soon is useless
		// delayed means that no request was made, because the host asked for a pause: not a
		// failure. after is then the rest of the pause, otherwise the minimum wait.
		delayed bool
		after   time.Duration
	}
	// intent is the verification (section 5.3) or denial (5.2) by a hub.
	intent websub.Intent
	// delivered is a WebSub delivery (section 7). method is the method of its signature.
	// wrong is the reason why the signature is not valid, in one line.
	delivered struct{ method, wrong string }
	// left means that a due marker was left after a notification.
	left struct{}
)

// action is a set of actions after an event.
type action uint

const (
	save    action = 1 << iota // write the files
	wake                       // something may be due earlier
	send                       // make the request
	leave                      // unsubscribe at the previous hub
	confirm                    // answer the hub that the intent is right
	believe                    // treat the delivery as coming from the hub
)

// on returns the registration after an event, and the actions. jitter, from 0 to 1, spreads
// the retries of registrations that failed together.
func (r registration) on(event any, now time.Time, jitter float64) (registration, action) {
	switch e := event.(type) {
	case read:
		return r.onRead(e), wake
	case asked:
		return r.onAsked(e, now)
	case accepted:
		return r.onAccepted(e, now, jitter), save
	case failed:
		return r.onFailed(e, now, jitter), save
	case intent:
		return r.onIntent(e, now)
	case delivered:
		return r.onDelivered(e)
	case left:
		r.Notified = now
		return r.heard(), save
	case called:
		if r.State != Suspect {
			return r, 0
		}
		return r.heard(), save
	case deaf:
		return r.soon(now.Add(time.Duration(jitter * float64(deafSpread))))
	case missed:
		grace := missedGrace + time.Duration(jitter*float64(missedGrace))
		if e.at.Before(r.Since.Add(missedRest)) || e.at.Before(r.Notified.Add(missedGrace)) {
			return r, 0
		}
		return r.soon(e.at.Add(grace))
	}
	panic(fmt.Sprintf("no event of a registration: %T", event))
}

func (r registration) onRead(e read) registration {
	same := func(a, b offer) bool { return a.key() == b.key() }
	again := len(r.offers) > 0 && slices.EqualFunc(r.offers, e.offers, same)
	r.url, r.offers = e.url, e.offers
	if r.Hub != "" && e.base != "" && !strings.HasPrefix(r.Callback, e.base) {
		// The base URL has changed, and the hub must learn it.
		r.Next, r.Expires, r.Asked = time.Time{}, time.Time{}, time.Time{}
		r.Callback = e.base + r.Token()
	}
	if again {
		return r // it is still the same hub's turn
	}
	r.turn = slices.IndexFunc(r.offers, func(o offer) bool { return o.hub == r.Hub && o.protocol == r.Protocol })
	if r.turn < 0 {
		r.turn = 0
		if len(r.offers) > 0 {
			r.Failures = 0 // these were failures of a hub that the feed no longer names
		}
	}
	return r
}

func (r registration) onAsked(e asked, now time.Time) (registration, action) {
	if e.end {
		// rssCloud has no request to end a registration; without renewal it expires.
		if r.Protocol != WebSub || r.State == Failed || r.State == Denied {
			return r.ended(), save
		}
		r.State, r.Asked = Unsubscribing, now
		return r, send
	}
	do, o := send, e.offer
	if o.protocol != WebSub {
		o.topic = r.url
	} else if len(r.offers) > 0 {
		o.topic = r.offer().topic
	}
	same := r.Hub == o.hub && r.Protocol == o.protocol && !r.over()
	if o.protocol == WebSub {
		same = same && r.Topic == o.topic
		if r.Protocol == WebSub && r.active() && !same {
			do |= leave
		}
	} else {
		same = same && r.Token() == push.TokenOf(e.callback)
	}
	if same {
		r.Topic = o.topic
	} else {
		if r.Hub != "" {
			r.moved = now
		}
		r.Registration = push.Registration{
			Hub: o.hub, Protocol: o.protocol, Topic: o.topic, Callback: e.callback,
			Notified: r.Notified, Failures: r.Failures,
		}
		if o.protocol == WebSub && websub.Secure(o.hub) {
			r.Secret = e.secret
		}
	}
	if o.protocol == WebSub {
		r.Asked = now // the hub may verify before it answers
	}
	return r, do
}

// heard returns the registration after the cloud has shown that it knows it.
func (r registration) heard() registration {
	if r.State == Suspect {
		r.State, r.Error = Registered, ""
	}
	return r
}

// soon returns the registration with an earlier renewal, if the hub has it and its renewal
// is later.
func (r registration) soon(at time.Time) (registration, action) {
	if !r.active() || !r.Next.After(at) {
		return r, 0
	}
	r.Next = at
	return r, save | wake
}

// active reports whether the hub has the registration, as far as is known.
func (r *registration) active() bool { return r.State == Registered || r.State == Suspect }

func (r registration) onAccepted(e accepted, now time.Time, jitter float64) registration {
	switch {
	case r.Protocol != WebSub:
		// Some clouds do not test the callback. If one has notified us since the last
		// registration, it can reach us.
		known := r.active() && !r.Notified.IsZero() && !r.Notified.Before(r.Since)
		r = r.registered(now, CloudRenew, CloudExpire)
		if e.unheard && !known {
			r.State = Suspect
			r.Error = fmt.Sprintf("%s: the cloud accepted the registration but did not call; can it reach %s?", r.Hub,
				strings.TrimSuffix(r.Callback, r.Token()))
		}
		return r
	case r.Asked.IsZero():
		return r // the verification came before the answer
	case r.State != Registered && r.State != Unsubscribing:
		r.State = Requested
	}
	r.Next = now.Add(verifyWithin)
	if r.Failures++; r.Failures > 1 {
		r.Error = fmt.Sprintf("%s: the hub accepted the request but has not verified it; can it reach %s?", r.Hub,
			strings.TrimSuffix(r.Callback, r.Token()))
		r.Next = now.Add(retry.Wait(r.Failures, jitter, verifyWithin))
		if r.Failures%failuresPerHub == 0 {
			r.turn++
		}
	}
	if r.State == Unsubscribing && r.Failures > failuresPerHub {
		return r.ended() // enough attempts; deliveries get 410
	}
	return r
}

func (r registration) onFailed(e failed, now time.Time, jitter float64) registration {
	if r.Protocol == WebSub {
		if r.Asked.IsZero() {
			return r // the hub has verified the request in spite of the error
		}
		r.Asked = time.Time{}
	}
	if e.delayed {
		r.Next = now.Add(e.after)
	} else {
		r.Failures++
		wait := retry.Wait(r.Failures, jitter, e.after)
		if len(r.offers) > 1 && (e.refused || r.Failures%failuresPerHub == 0) {
			r.turn++
			if r.turn%len(r.offers) != 0 && r.Failures <= len(r.offers) {
				wait = 0 // try the next hub at once
			}
		}
		r.Next = now.Add(wait)
		if r.State == Unsubscribing && r.Failures > failuresPerHub {
			r.State, r.Asked, r.Next = Unsubscribed, time.Time{}, time.Time{}
		}
	}
	r.Error = e.text
	if !r.over() && !(r.active() && now.Before(r.Expires)) {
		r.State = Failed
	}
	return r
}

func (r registration) onIntent(e intent, now time.Time) (registration, action) {
	pending := websub.Subscribe
	if r.over() {
		pending = websub.Unsubscribe
	}
	switch {
	case e.Topic != r.Topic:
		return r, 0
	case e.Mode == websub.Denied && r.over():
		return r, confirm
	case e.Mode == websub.Denied && r.Asked.IsZero():
		// There was no request. Anybody who knows the callback can send this, for example
		// from a hub's public log. So ask the hub itself, at most once in missedRest, and
		// not if deliveries arrive.
		if now.Before(r.Since.Add(missedRest)) || r.Notified.After(r.Since) {
			return r, confirm
		}
		r, do := r.soon(now)
		return r, do | confirm
	case e.Mode == websub.Denied:
		r.State, r.Asked, r.Expires = Denied, time.Time{}, time.Time{}
		r.Failures++
		r.Error = (&fetch.RefusedError{URL: r.Hub, Message: e.Reason}).Error()
		r.Next = now.Add(deniedFor)
		if len(r.offers) > 1 && r.Failures < len(r.offers) {
			r.turn++
			r.Next = now
		}
		return r, confirm | save | wake
	case e.Mode != pending, pending == websub.Subscribe && r.url == "", r.Asked.IsZero() && r.State == Denied:
		return r, 0
	case r.Asked.IsZero() && (r.State == Registered || r.State == Unsubscribed):
		return r, confirm // the hub repeats a verification
	case pending == websub.Unsubscribe:
		return r.ended(), confirm | save
	}
	r.Signature = ""
	if e.Lease <= 0 {
		// Hubs must name a lease. A hub without it may serve rssCloud, too, and use its times.
		return r.registered(now, CloudRenew, DefaultLease), confirm | save
	}
	lease := min(max(e.Lease, minLease), maxLease)
	return r.registered(now, min(lease*4/5, maxRenew), lease), confirm | save
}

// ignored is the beginning of the error after an invalid delivery.
const ignored = "a delivery was ignored: "

func (r registration) onDelivered(e delivered) (registration, action) {
	if e.wrong != "" {
		// Section 8: ignore it. Report it once.
		text := ignored + e.wrong
		if r.Error == text {
			return r, 0
		}
		r.Error = text
		return r, save
	}
	if websub.Strength(e.method) > websub.Strength(r.Signature) {
		r.Signature = e.method
	}
	if e.method != "" && strings.HasPrefix(r.Error, ignored) {
		r.Error = ""
	}
	return r, believe
}

// registered returns the registration after the hub has confirmed it.
func (r registration) registered(now time.Time, renew, expire time.Duration) registration {
	r.State, r.Since, r.Asked, r.Failures, r.Error = Registered, now, time.Time{}, 0, ""
	r.Next, r.Expires = now.Add(renew), now.Add(expire)
	return r
}

// ended returns the registration after its end.
func (r registration) ended() registration {
	r.State, r.Asked, r.Expires, r.Next, r.Failures, r.Error = Unsubscribed, time.Time{}, time.Time{}, time.Time{}, 0,
		""
	return r
}

// over reports whether the registration has ended or is being ended.
func (r *registration) over() bool { return r.State == Unsubscribing || r.State == Unsubscribed }

// offer returns the current offer.
func (r *registration) offer() offer {
	if len(r.offers) == 0 {
		return offer{}
	}
	return r.offers[r.turn%len(r.offers)]
}

// wish is the next request of a registration.
type wish struct {
	at    time.Time // not before this time
	offer offer
	end   bool // to end the registration
	// early means that it may be made now, to share a request with another.
	early bool
}

// due returns the next request, and false if there is none.
func (r *registration) due(now time.Time) (wish, bool) {
	if r.paused {
		return wish{}, false
	}
	o := r.offer()
	// The feed is not subscribed to, or names no hub any more.
	if r.url == "" || len(r.offers) == 0 {
		if r.Hub == "" || r.State == Unsubscribed {
			return wish{}, false
		}
		at := r.Next
		if r.State != Unsubscribing || at.Sub(now) > maxRenew+time.Hour {
			at = time.Time{} // at once
		}
		return wish{at: at, end: true, offer: offer{protocol: r.Protocol, hub: r.Hub, topic: r.Topic}}, true
	}
	// A time too far ahead was set by a wrong clock.
	at, most := r.Next, maxRenew+time.Hour
	if r.active() && r.Protocol != WebSub && r.Failures == 0 {
		most = CloudExpire
	}
	if at.Sub(now) > most {
		at = time.Time{}
	}
	if r.Failures == 0 && (r.Hub != o.hub || r.Protocol != o.protocol || r.Topic != o.topic) {
		// The feed has another hub or URL now. minRenew keeps a feed whose hub changes with
		// every fetch from causing a request each time.
		at = time.Time{}
		if since := now.Sub(r.moved); !r.moved.IsZero() && since >= 0 {
			at = r.moved.Add(minRenew)
		}
	}
	if r.over() {
		at = time.Time{} // subscribed again
	}
	return wish{at: at, offer: o, early: o.protocol != WebSub && r.active() && at.Sub(now) <= renewalSlack}, true
}

// cooldown spaces the due markers of a feed: the first of several notifications leaves a
// marker at once, and the others leave one marker at the end of the cooldown. The length
// begins with a tenth of the maximum, is halved if the feed has changed since the last
// marker, and doubled otherwise. A cooldown is a value, like a registration.
type cooldown struct {
	last time.Time     // when the last marker was left
	due  time.Time     // when the next one is due; zero for never
	wait time.Duration // length
	// changed is the time of the feed's last change, when the last marker was left.
	changed time.Time
}

const (
	minDivisor  = 10 // the minimum is the maximum divided by this
	resetFactor = 10 // it is reset if there is no marker for this many times the maximum
)

// notified returns the cooldown after a notification, and whether to leave a marker now.
// changed is the time of the feed's last change.
func (c cooldown) notified(now time.Time, most time.Duration, changed time.Time) (cooldown, bool) {
	at := c.last.Add(max(c.wait, most/minDivisor))
	// A time in the future was set by a wrong clock.
	if most > 0 && !c.last.IsZero() && now.Before(at) && at.Sub(now) <= most {
		if c.due.IsZero() {
			c.due = at
		}
		return c, false
	}
	return c.left(now, most, changed), true
}

// left returns the cooldown after a marker was left.
func (c cooldown) left(now time.Time, most time.Duration, changed time.Time) cooldown {
	least := most / minDivisor
	wait := max(c.wait, least)
	switch since := now.Sub(c.last); {
	case c.last.IsZero(), since < 0, since > resetFactor*most:
		wait = least
	case changed.After(c.changed):
		wait = max(wait/2, least)
	default:
		wait = min(2*wait, most)
	}
	return cooldown{last: now, wait: wait, changed: changed}
}

// ripe reports whether a marker is due. A time more than most ahead counts as due.
func (c cooldown) ripe(now time.Time, most time.Duration) bool {
	return !c.due.IsZero() && !(now.Before(c.due) && c.due.Sub(now) <= most)
}
