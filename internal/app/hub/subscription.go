package hub

import (
	"crypto/sha1"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/values"
)

// WebSub is the protocol of a subscription that is none of rssCloud's.
const WebSub = "websub"

// Times of subscriptions.
const (
	// CloudExpire is rssCloud's: "You must renew your subscription every 24 hours
	// because they expire after 25 hours."
	CloudExpire = 25 * time.Hour
	// The leases of WebSub: what is asked for is held within these, and is the
	// default where nothing is.
	MinLease     = time.Minute
	MaxLease     = 30 * 24 * time.Hour
	DefaultLease = 10 * 24 * time.Hour
	// strikes is after how many ladders in a row that failed nothing more is sent to a
	// subscriber by rssCloud.
	strikes = 3
	// mostAfter is the longest Retry-After of a subscriber that is heeded: he is to
	// have the news while they are, and one answer is not to end his subscription.
	mostAfter = time.Hour
)

// subscription is a subscriber's place at a feed, as the hub sees it: the mirror of
// the listener's registration. It is a value, without lock, clock or network:
// [subscription.on] takes what happened, and returns the value after it and what is to
// be done. It begins when it is verified, and not before.
//
//	verified      begins, or begins anew
//	delivered     no ladders in a row have failed
//	failed        an attempt; its ladder goes on
//	struck        a whole ladder has failed; by rssCloud, nothing is sent after three
//	unsubscribed  ends
type subscription struct {
	Callback  string // URL
	Protocol  string // of rssCloud, or WebSub
	Procedure string // to be called, by XML-RPC
	Secret    string // to sign with, by WebSub
	Feed      string // URL of the feed, as the subscriber has it
	Caller    string // who asked for it, an address
	Since     time.Time
	Expires   time.Time
	Errors    int // ladders in a row that failed
	Failed    time.Time
	Error     string // of the last attempt, in one line
	Slow      bool   // the last attempt took longer than [handOver]
	// After is until when the subscriber wants to be left alone, as he said with the
	// last of them (Retry-After).
	After time.Time
}

// get sets a subscription to the values of its file.
func (s *subscription) get(v *values.Values) {
	secret, _ := url.QueryUnescape(v.Get("secret"))
	*s = subscription{
		Callback: v.Get("callback"), Protocol: v.Get("protocol"), Procedure: v.Get("procedure"), Secret: secret,
		Feed: v.Get("feed"), Caller: v.Get("caller"), Since: v.Time("since"), Expires: v.Time("expires"),
		Errors: v.Int("errors"), Failed: v.Time("failed"), Error: v.Get("error"), After: v.Time("after"), Slow: v.Get("slow") != "",
	}
}

// text returns the text of its file, whose other values are those of v. The secret is
// percent-encoded, as any bytes can be in it.
func (s *subscription) text(v *values.Values) []byte {
	slow := ""
	if s.Slow {
		slow = "yes"
	}
	for _, pair := range [][2]string{
		{"callback", s.Callback}, {"protocol", s.Protocol}, {"procedure", s.Procedure}, {"secret", url.QueryEscape(s.Secret)},
		{"feed", s.Feed}, {"caller", s.Caller}, {"since", stamp(s.Since)}, {"expires", stamp(s.Expires)}, {"errors", strconv.Itoa(s.Errors)},
		{"failed", stamp(s.Failed)}, {"error", s.Error}, {"after", stamp(s.After)}, {"slow", slow},
	} {
		v.Set(pair[0], pair[1])
	}
	return v.Text()
}

// The events of a subscription.
type (
	// verified is that the callback is the subscriber's own, and wants to be
	// notified: as a new subscription says, and for how long.
	verified struct {
		as    subscription
		lease time.Duration
	}
	// delivered is that the subscriber answered a notification with success.
	delivered struct{ slow bool }
	// failed is that it did not. after is the subscriber's Retry-After, 0 for none.
	failed struct {
		text  string
		after time.Duration
		slow  bool
	}
	// struck is that all attempts of a ladder have failed.
	struck struct{}
	// unsubscribed is that the subscriber wants no more.
	unsubscribed struct{}
)

// change is what is to be done after an event.
type change int

const (
	keep   change = iota // what is on the disk is as it was
	store                // to be written
	remove               // to be removed
)

func (s subscription) on(event any, now time.Time) (subscription, change) {
	switch e := event.(type) {
	case verified:
		s = e.as
		s.Since, s.Expires = now, now.Add(e.lease)
		return s, store
	case delivered:
		if !s.hasFailed() && s.Slow == e.slow {
			return s, keep
		}
		s.Errors, s.Error, s.Failed, s.After, s.Slow = 0, "", time.Time{}, time.Time{}, e.slow
		return s, store
	case failed:
		s.Error, s.Failed, s.After, s.Slow = termsafe.Brief(e.text), now, time.Time{}, e.slow
		if e.after > 0 {
			// A file has whole seconds, and none of them is to be too early.
			s.After = now.Add(min(e.after, mostAfter) + time.Second - 1).Truncate(time.Second)
		}
		return s, store
	case struck:
		s.Errors++
		return s, store
	case unsubscribed:
		return s, remove
	}
	panic("no event of a subscription")
}

// wants reports whether the subscriber is to be notified.
func (s *subscription) wants(now time.Time) bool {
	return !s.givenUp() && now.Before(s.Expires)
}

// givenUp reports whether too many ladders have failed. By WebSub that ends nothing:
// "The hub MUST keep the subscription active until the end of the lease duration"
// (section 7).
func (s *subscription) givenUp() bool { return s.Protocol != WebSub && s.Errors >= strikes }

// hasFailed reports whether the last notification was not taken.
func (s *subscription) hasFailed() bool { return s.Errors > 0 || !s.Failed.IsZero() }

// rank orders the subscribers of a host: those that failed or were slow the last time come
// last.
func (s *subscription) rank() int {
	if s.hasFailed() || s.Slow {
		return 1
	}
	return 0
}

// busy returns until when the subscriber wants to be left alone, and false when he does
// not. What is further away than it can be is of a clock that was wrong.
func (s *subscription) busy(now time.Time) (time.Time, bool) {
	left := s.After.Sub(now)
	return s.After, left > 0 && left <= mostAfter+time.Second
}

// lease holds what a subscriber asks for within what he can have.
func lease(asked time.Duration) time.Duration {
	if asked <= 0 {
		return DefaultLease
	}
	return min(max(asked, MinLease), MaxLease)
}

// key names a subscription among those to its feed.
func (s *subscription) key() string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(s.Protocol+" "+plain(s.Callback))))
}
