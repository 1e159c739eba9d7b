package listener

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/backoff"
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
	// minLease and maxLease bound the leases that are believed: a shorter one is
	// renewed as if it were minLease. maxRenew finds out about a hub that has
	// forgotten us.
	minLease = 10 * time.Second
	maxLease = 365 * 24 * time.Hour
	maxRenew = 30 * 24 * time.Hour
	// minRenew keeps a feed that has another hub every time from having one
	// asked all the time.
	minRenew = 5 * time.Minute
	// verifyWithin is how long a hub may take to verify a request before it
	// is made again.
	verifyWithin = time.Hour
	// deniedFor is how long a denial counts.
	deniedFor = 24 * time.Hour
	// share is how much earlier than necessary a registration is renewed to
	// share a request with another of the same cloud.
	share = 30 * time.Minute

	// deafAfter is how long a listener can be down before hubs may have given it up, as
	// some do after three errors, which three updates within a minute are. Then everything
	// is renewed within deafSpread.
	deafAfter  = time.Minute
	deafSpread = 5 * time.Minute
	// missedGrace is how long a notification may be later than what it tells of is
	// found by the schedule, and missedRest the least time from one renewal to
	// the next for want of a notification.
	missedGrace = 2 * time.Minute
	missedRest  = time.Hour

	// rotate is after how many failures in a row another of a feed's hubs has
	// its turn.
	rotate = 3
)

// retry is how long to wait after failures in a row.
var retry = backoff.Backoff{Base: time.Minute, Cap: 6 * time.Hour, Jitter: -0.5}

// The states of a feed's registration, as the file state has them.
const (
	Requested     = "requested"     // the hub has yet to verify it
	Registered    = "registered"    //
	Suspect       = "suspect"       // the cloud took it, and has never called
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
// happened and returns the value after it and what is to be done, and
// [registration.due] tells what it wants next. In short:
//
//	asked            Failed, Requested, Registered or Suspect, as the hub answers
//	accepted         Registered or Suspect at a cloud, Requested at a hub of WebSub
//	called, left     Registered, where it was Suspect
//	deaf, missed     as it was, and to be renewed soon
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
	// accepted is that the hub answered the request with success. A cloud calls
	// the callback before it does; unheard is that this one did not.
	accepted struct{ unheard bool }
	// called is that a cloud called the callback to verify a registration.
	called struct{}
	// deaf is that nobody listened for long.
	deaf struct{}
	// missed is that the feed was found changed at a time, and nobody had told of
	// it.
	missed struct{ at time.Time }
	// failed is that it did not.
	failed struct {
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

// on returns the registration after an event, and what is to be done. jitter, from
// 0 to 1, keeps those who failed together from coming again together.
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
		if r.Protocol == WebSub && r.stands() && !same {
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
			Notified: r.Notified, Failures: r.Failures,
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

// heard is the registration once the cloud has shown that it has it.
func (r registration) heard() registration {
	if r.State == Suspect {
		r.State, r.Error = Registered, ""
	}
	return r
}

// soon is the registration when it is to be renewed at a time, if it stands and
// would be later.
func (r registration) soon(at time.Time) (registration, action) {
	if !r.stands() || !r.Next.After(at) {
		return r, 0
	}
	r.Next = at
	return r, save | wake
}

// stands reports whether the hub has the registration, as far as is known.
func (r *registration) stands() bool { return r.State == Registered || r.State == Suspect }

func (r registration) onAccepted(e accepted, now time.Time, jitter float64) registration {
	switch {
	case r.Protocol != WebSub:
		// Some try no callback. One that notified us of late has us, and can reach us.
		known := r.stands() && !r.Notified.IsZero() && !r.Notified.Before(r.Since)
		r = r.registered(now, CloudRenew, CloudExpire)
		if e.unheard && !known {
			r.State = Suspect
			r.Error = fmt.Sprintf("%s: the cloud took the registration and did not call; can it reach %s?", r.Hub, strings.TrimSuffix(r.Callback, r.Token()))
		}
		return r
	case r.Asked.IsZero():
		return r // it was verified before the answer came
	case r.State != Registered && r.State != Unsubscribing:
		r.State = Requested
	}
	r.Next = now.Add(verifyWithin)
	if r.Failures++; r.Failures > 1 {
		r.Error = fmt.Sprintf("%s: the hub took the request and has not verified it; can it reach %s?", r.Hub, strings.TrimSuffix(r.Callback, r.Token()))
		r.Next = now.Add(retry.Wait(r.Failures, jitter, verifyWithin))
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
	if r.Protocol == WebSub {
		if r.Asked.IsZero() {
			return r // the hub verified it all the same
		}
		r.Asked = time.Time{}
	}
	if e.delayed {
		r.Next = now.Add(e.after)
	} else {
		r.Failures++
		wait := retry.Wait(r.Failures, jitter, e.after)
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
	if !r.over() && !(r.stands() && now.Before(r.Expires)) {
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
		// Nobody asked. Whoever knows the callback can say so, as the log of a hub
		// may show it to all: the hub itself is asked, once in a while, and where
		// deliveries come nothing is to be asked.
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
		// It must say; those that do not may have a time of their own, such as that of
		// rssCloud for one that serves both.
		return r.registered(now, CloudRenew, DefaultLease), confirm | save
	}
	lease := min(max(e.Lease, minLease), maxLease)
	return r.registered(now, min(lease*4/5, maxRenew), lease), confirm | save
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
	r.State, r.Since, r.Asked, r.Failures, r.Error = Registered, now, time.Time{}, 0, ""
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

// due returns the request that is to be made next, and false when there is none.
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
	if r.stands() && r.Protocol != WebSub && r.Failures == 0 {
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
	return wish{at: at, offer: o, early: o.protocol != WebSub && r.stands() && at.Sub(now) <= share}, true
}

// cooldown spaces the due markers of a feed, so that several notifications in a
// row leave one at once and one at the end. How long it is adapts to the feed: a
// tenth of the most at first and for one that has changed whenever it was said to,
// and twice as long for every time that it had not. It is a value, as a registration
// is.
type cooldown struct {
	last time.Time     // when a marker was left
	due  time.Time     // when one is to be left; zero for never
	wait time.Duration // from one to the next
	// changed is when the feed had changed before the last marker.
	changed time.Time
}

const (
	leastOfMost  = 10 // the most, divided by it, is the least that a cooldown is
	quietOfCools = 10 // after as many times the most it begins anew
)

// notified returns the cooldown after a notification, and whether a marker is to be
// left now. changed is when the feed last changed.
func (c cooldown) notified(now time.Time, most time.Duration, changed time.Time) (cooldown, bool) {
	at := c.last.Add(max(c.wait, most/leastOfMost))
	// A last one in the future is of a clock that was wrong.
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
	least := most / leastOfMost
	wait := max(c.wait, least)
	switch since := now.Sub(c.last); {
	case c.last.IsZero(), since < 0, since > quietOfCools*most:
		wait = least
	case changed.After(c.changed):
		wait = max(wait/2, least)
	default:
		wait = min(2*wait, most)
	}
	return cooldown{last: now, wait: wait, changed: changed}
}

// ripe reports whether a marker is due, which is never more than most away.
func (c cooldown) ripe(now time.Time, most time.Duration) bool {
	return !c.due.IsZero() && !(now.Before(c.due) && c.due.Sub(now) <= most)
}
