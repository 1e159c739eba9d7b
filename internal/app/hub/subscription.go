package hub

import (
	"crypto/sha1"
	"fmt"
	"time"

	"github.com/lektordir/lektor/internal/termsafe"
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
	// strikes is after how many errors in a row a subscriber is given up.
	strikes = 3
	// mostAfter is the longest Retry-After of a subscriber that is heeded: he is to
	// have the news while they are, and one answer is not to end his subscription.
	mostAfter = time.Hour
)

// subscription is a subscriber's place at a feed, as the hub sees it: the mirror of
// the listener's registration. It is a value, without lock, clock or network:
// [subscription.on] takes what happened, and gives the value after it and what is to
// be done. It begins when it is verified, and not before.
//
//	verified      begins, or begins anew
//	delivered     no errors in a row any more
//	failed        one more; by rssCloud, after three it is not notified any more
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
	Errors    int // in a row
	Failed    time.Time
	Error     string // the last of them, in one line
	// After is until when the subscriber wants to be left alone, as he said with the
	// last of them (Retry-After).
	After  time.Time
	others string // lines of its file with other names
}

// The events of a subscription.
type (
	// verified is that the callback is the subscriber's own, and wants to be
	// notified: as a new subscription says, and for how long.
	verified struct {
		as    subscription
		lease time.Duration
	}
	// delivered is that a notification was taken.
	delivered struct{}
	// failed is that it was not; again, that it was not either when it was tried
	// again, which is no other error. after is for how long the subscriber wants to be
	// left alone, 0 where he did not say.
	failed struct {
		text  string
		again bool
		after time.Duration
	}
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
		others := s.others
		s = e.as
		s.others = others
		s.Since, s.Expires = now, now.Add(e.lease)
		return s, store
	case delivered:
		if !s.hasFailed() {
			return s, keep
		}
		s.Errors, s.Error, s.Failed, s.After = 0, "", time.Time{}, time.Time{}
		return s, store
	case failed:
		if !e.again {
			s.Errors++
		}
		s.Error, s.Failed, s.After = termsafe.Brief(e.text), now, time.Time{}
		if e.after > 0 {
			// A file has whole seconds, and none of them is to be too early.
			s.After = now.Add(min(e.after, mostAfter) + time.Second - 1).Truncate(time.Second)
		}
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

// givenUp reports whether the subscriber has failed too often. By WebSub nobody has:
// "The hub MUST keep the subscription active until the end of the lease duration"
// (section 7).
func (s *subscription) givenUp() bool { return s.Protocol != WebSub && s.Errors >= strikes }

// hasFailed reports whether the last notification was not taken.
func (s *subscription) hasFailed() bool { return s.Errors > 0 || !s.Failed.IsZero() }

// busy gives until when the subscriber wants to be left alone, and false when he does
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
