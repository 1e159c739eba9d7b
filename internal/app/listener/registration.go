package listener

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/websub"
)

// Times of registrations.
const (
	// CloudRenew and CloudExpire are those of rssCloud: "You must renew your
	// subscription every 24 hours because they expire after 25 hours."
	CloudRenew  = 24 * time.Hour
	CloudExpire = 25 * time.Hour
	// DefaultLease is asked of WebSub hubs, and assumed when one does not say
	// what it gives.
	DefaultLease = 10 * 24 * time.Hour
	// minRenew keeps a hub that gives short leases from being asked all the
	// time, maxRenew finds out about one that has forgotten us.
	minRenew = 5 * time.Minute
	maxRenew = 30 * 24 * time.Hour
	// verifyWithin is how long a hub may take to verify a request before it
	// is made again.
	verifyWithin = time.Hour
	// deniedFor is how long a denial counts.
	deniedFor = 24 * time.Hour
	// share is how much earlier than necessary a registration is renewed to
	// share a request with another of the same cloud.
	share = 30 * time.Minute

	backoffFirst = time.Minute
	backoffMost  = 6 * time.Hour
	// rotate is after how many failures in a row another of a feed's hubs has
	// its turn.
	rotate = 3
)

// The states of a feed's registration, as the file state has them.
const (
	Requested     = "requested"     // the hub has yet to verify it
	Registered    = "registered"    //
	Failed        = "failed"        // and is tried again
	Denied        = "denied"        // by the hub; tried again the next day
	Unsubscribing = "unsubscribing" // the feed is not subscribed to any more
	Unsubscribed  = "unsubscribed"  // and the hub knows, or need not
)

// WebSub is the protocol of a registration that is none of rssCloud's.
const WebSub = "websub"

// offer is a way in which a feed offers to tell of its updates.
type offer struct {
	protocol string
	hub      string // URL
	cloud    rsscloud.Cloud
	topic    string
}

// key names what a request can be shared with: a hub, asked by a protocol.
func (o offer) key() string { return o.protocol + " " + o.hub }

// registration is a feed's place at a cloud or hub, as the subscriber sees it. It
// is a value, and has no lock, clock or network: [registration.on] takes what
// happened and gives the value after it and what is to be done, and
// [registration.due] tells what it wants next. In short:
//
//	asked            Failed, Requested or Registered, as the hub answers
//	accepted         Registered by a cloud, Requested by a hub of WebSub
//	intent           Registered, Unsubscribed, or Denied
//	failed           Failed; Registered until that expires
//	asked, to end    Unsubscribed at a cloud, Unsubscribing at a hub of WebSub
type registration struct {
	feeddir.Registration // what is kept in files

	url    string // of the feed; "" when it is not subscribed to
	offers []offer
	turn   int // which of the offers
	// moved is when it last went from one hub or topic to another.
	moved time.Time
}

// The events of a registration.
type (
	// read is that the feed's drawer was read: its URL, what it offers, and the
	// base of the URLs by which hubs reach us now, "" for none.
	read struct {
		url    string
		offers []offer
		base   string
	}
	// asked is that a request is to be made, for an offer or to end the
	// registration. A new registration gets the callback and the secret; those
	// at a cloud have all the same callback, with WebSub each has its own
	// (section 5.1.1).
	asked struct {
		offer            offer
		end              bool
		callback, secret string
	}
	// accepted is that the hub answered the request with success.
	accepted struct{}
	// failed is that it did not.
	failed struct {
		sent    bool   // the request was made; else one like it failed before
		text    string // in one line
		refused bool   // by the hub: no use to ask it again soon
		// delayed is that somebody else's answer keeps us from asking at all,
		// which is no failure; after is for how long. Without it after is the
		// least time to wait.
		delayed bool
		after   time.Duration
	}
	// intent is a hub's verification (section 5.3) or denial (5.2).
	intent websub.Intent
	// delivered is a delivery of WebSub (section 7): the method by which it is
	// signed, or what is wrong with the signature, in one line.
	delivered struct{ method, wrong string }
	// left is that a due marker was left, as the hub told of an update.
	left struct{}
)

// action is what is to be done after an event; several can be.
type action uint

const (
	save    action = 1 << iota // write the files
	wake                       // something may be due earlier than before
	send                       // make the request
	leave                      // tell the hub before this one that it is over
	confirm                    // answer the hub that its intent is ours
	believe                    // what was delivered is from the hub
)

// on gives the registration after an event, and what is to be done. jitter, from
// 0 to 1, keeps those who failed together from coming again together.
func (r registration) on(event any, now time.Time, jitter float64) (registration, action) {
	switch e := event.(type) {
	case read:
		return r.onRead(e), wake
	case asked:
		return r.onAsked(e, now)
	case accepted:
		return r.onAccepted(now, jitter), save
	case failed:
		return r.onFailed(e, now, jitter), save
	case intent:
		return r.onIntent(e, now)
	case delivered:
		return r.onDelivered(e)
	case left:
		r.Notified = now
		return r, save
	}
	panic(fmt.Sprintf("no event of a registration: %T", event))
}

func (r registration) onRead(e read) registration {
	r.url, r.offers = e.url, e.offers
	if r.Hub != "" && e.base != "" && !strings.HasPrefix(r.Callback, e.base) {
		// We are reached elsewhere now, which the hub does not know yet.
		r.Next, r.Expires, r.Asked = time.Time{}, time.Time{}, time.Time{}
		r.Callback = e.base + r.Token()
	}
	r.turn = slices.IndexFunc(r.offers, func(o offer) bool { return o.hub == r.Hub && o.protocol == r.Protocol })
	if r.turn < 0 {
		r.turn = 0
		if len(r.offers) > 0 {
			r.Failures = 0 // they were those of a hub that it does not have any more
		}
	}
	return r
}

func (r registration) onAsked(e asked, now time.Time) (registration, action) {
	if e.end {
		// rssCloud has no way to say it: one that is not renewed ends by itself.
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
		if r.Protocol == WebSub && r.State == Registered && !same {
			do |= leave
		}
	} else {
		same = same && r.Token() == feeddir.TokenOf(e.callback)
	}
	if same {
		r.Topic = o.topic
	} else {
		if r.Hub != "" {
			r.moved = now
		}
		r.Registration = feeddir.Registration{
			Hub: o.hub, Protocol: o.protocol, Topic: o.topic, Callback: e.callback,
			Notified: r.Notified, Failures: r.Failures, Error: r.Error,
		}
		if o.protocol == WebSub && websub.Secure(o.hub) {
			r.Secret = e.secret
		}
	}
	if o.protocol == WebSub {
		r.Asked = now // the hub may verify it before it answers
	}
	return r, do
}

func (r registration) onAccepted(now time.Time, jitter float64) registration {
	switch {
	case r.Protocol != WebSub:
		return r.registered(now, CloudRenew, CloudExpire)
	case r.Asked.IsZero():
		return r // it was verified before the answer came
	case r.State != Registered && r.State != Unsubscribing:
		r.State = Requested
	}
	r.Next = now.Add(verifyWithin)
	if r.Failures++; r.Failures > 1 {
		r.Error = fmt.Sprintf("%s: the hub took the request and has not verified it; can it reach %s?", r.Hub, strings.TrimSuffix(r.Callback, r.Token()))
		r.Next = now.Add(max(verifyWithin, backoff(r.Failures, jitter)))
		if r.Failures%rotate == 0 {
			r.turn++
		}
	}
	if r.State == Unsubscribing && r.Failures > rotate {
		return r.ended() // it had its chances; what it delivers is answered with 410
	}
	return r
}

func (r registration) onFailed(e failed, now time.Time, jitter float64) registration {
	if e.sent && r.Protocol == WebSub {
		if r.Asked.IsZero() {
			return r // the hub verified it all the same
		}
		r.Asked = time.Time{}
	}
	if e.delayed {
		r.Next = now.Add(e.after)
	} else {
		r.Failures++
		wait := max(backoff(r.Failures, jitter), e.after)
		if len(r.offers) > 1 && (e.refused || r.Failures%rotate == 0) {
			r.turn++
			if r.turn%len(r.offers) != 0 && r.Failures <= len(r.offers) {
				wait = 0 // the next of its hubs has its turn at once
			}
		}
		r.Next = now.Add(wait)
		if r.State == Unsubscribing && r.Failures > rotate {
			r.State, r.Asked, r.Next = Unsubscribed, time.Time{}, time.Time{}
		}
	}
	r.Error = e.text
	if !r.over() && !(r.State == Registered && now.Before(r.Expires)) {
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
	case e.Mode != pending, r.Asked.IsZero():
		return r, 0
	case pending == websub.Unsubscribe:
		return r.ended(), confirm | save
	}
	lease := e.Lease
	if lease <= 0 {
		lease = DefaultLease
	}
	r.Signature = ""
	return r.registered(now, min(max(lease*4/5, minRenew), maxRenew), lease), confirm | save
}

// ignored begins the error of a feed with a delivery that was not believed.
const ignored = "a delivery was ignored: "

func (r registration) onDelivered(e delivered) (registration, action) {
	if e.wrong != "" {
		// Section 8: ignored. It is said once.
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

// registered is the registration once the hub has it.
func (r registration) registered(now time.Time, renew, expire time.Duration) registration {
	r.State, r.Asked, r.Failures, r.Error = Registered, time.Time{}, 0, ""
	r.Next, r.Expires = now.Add(renew), now.Add(expire)
	return r
}

// ended is the registration once it is over.
func (r registration) ended() registration {
	r.State, r.Asked, r.Expires, r.Next, r.Failures, r.Error = Unsubscribed, time.Time{}, time.Time{}, time.Time{}, 0, ""
	return r
}

// over reports whether the registration is ended, or is being so.
func (r *registration) over() bool { return r.State == Unsubscribing || r.State == Unsubscribed }

// offer is the one that has its turn.
func (r *registration) offer() offer {
	if len(r.offers) == 0 {
		return offer{}
	}
	return r.offers[r.turn%len(r.offers)]
}

// wish is the request that a registration wants to be made.
type wish struct {
	at    time.Time // not before
	offer offer
	end   bool // to end the registration
	// early is that it can be made now, to share a request with another.
	early bool
}

// due gives the request that is to be made next, and false when there is none.
func (r *registration) due(now time.Time) (wish, bool) {
	o := r.offer()
	// Nobody subscribes to the feed, or it names no hub any more.
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
	// After a clock that was wrong, no time is further away than it can be.
	at, most := r.Next, maxRenew+time.Hour
	if r.State == Registered && r.Protocol != WebSub && r.Failures == 0 {
		most = CloudExpire
	}
	if at.Sub(now) > most {
		at = time.Time{}
	}
	if r.Failures == 0 && (r.Hub != o.hub || r.Protocol != o.protocol || r.Topic != o.topic) {
		// The feed has another hub now, or is elsewhere. One that says so with
		// every fetch does not get a request for each.
		at = time.Time{}
		if since := now.Sub(r.moved); !r.moved.IsZero() && since >= 0 {
			at = r.moved.Add(minRenew)
		}
	}
	if r.over() {
		at = time.Time{} // subscribed to again
	}
	return wish{at: at, offer: o, early: o.protocol != WebSub && r.State == Registered && at.Sub(now) <= share}, true
}

// backoff is how long to wait after so many failures: a minute, doubled up to
// six hours, less up to half of it.
func backoff(failures int, jitter float64) time.Duration {
	d := backoffMost
	if failures < 16 {
		d = min(backoffFirst<<max(failures-1, 0), backoffMost)
	}
	return d - time.Duration(jitter*float64(d)/2)
}

// cooldown spaces the due markers of a feed, so that several notifications in a
// row leave one at once and one at the end. It is a value, as a registration is.
type cooldown struct {
	last time.Time // when a marker was left
	due  time.Time // when one is to be left; zero for never
}

// notified gives the cooldown after a notification, and whether a marker is to be
// left now.
func (c cooldown) notified(now time.Time, least time.Duration) (cooldown, bool) {
	at := c.last.Add(least)
	// A last one in the future is of a clock that was wrong.
	if least > 0 && !c.last.IsZero() && now.Before(at) && at.Sub(now) <= least {
		if c.due.IsZero() {
			c.due = at
		}
		return c, false
	}
	c.last = now
	return c, true
}

// ripe reports whether a marker is due, which is never more than most away.
func (c cooldown) ripe(now time.Time, most time.Duration) bool {
	return !c.due.IsZero() && !(now.Before(c.due) && c.due.Sub(now) <= most)
}
