package hub

import (
	"crypto/sha1"
	"fmt"
	"net/url"
	"time"

	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// WebSub is the name of the WebSub protocol. The other protocols are those of rssCloud.
const WebSub = "websub"

// Times of subscriptions.
const (
	// CloudExpire is rssCloud's: "You must renew your subscription every 24 hours
	// because they expire after 25 hours."
	CloudExpire = 25 * time.Hour
	// Limits and default of a WebSub lease.
	MinLease     = time.Minute
	MaxLease     = 30 * 24 * time.Hour
	DefaultLease = 10 * 24 * time.Hour
	// strikes is the number of failed series of attempts in a row after which an rssCloud subscriber
	// is no longer notified.
	strikes = 3
	// mostAfter is the longest Retry-After that is respected: news must arrive while they
	// are new, and one answer must not silence a subscription.
	mostAfter = time.Hour
)

// subscription is a subscription as the hub sees it, the counterpart of the listener's
// registration. It is a value without lock, clock or network. A [transition] changes it, and
// [states.apply] its file. A subscription begins when its callback is verified.
//
//	verified      begins, or begins anew
//	delivered     resets the count of errors
//	failed        an attempt has failed; its series of attempts goes on
//	struck        a whole series of attempts has failed; after three, an rssCloud subscriber is not notified
//	unsubscribed  ends
type subscription struct {
	Callback  string // URL
	Protocol  string // one of rssCloud's protocols, or WebSub
	Procedure string // XML-RPC procedure to call
	Secret    string // WebSub secret for signatures
	Feed      string // URL of the feed, as the subscriber wrote it
	Caller    string // address of the caller who registered it
	Since     time.Time
	Expires   time.Time
	Errors    int // failed series of attempts in a row
	Failed    time.Time
	Error     string // error of the last attempt, one line
	Slow      bool   // the last attempt took longer than [handOver]
}

// fields returns the values of its file.
func (s *subscription) fields() []values.Field {
	return []values.Field{
		{Name: "callback", Var: &s.Callback}, {Name: "protocol", Var: &s.Protocol},
		{Name: "procedure", Var: &s.Procedure}, {Name: "secret", Var: &s.Secret}, {Name: "feed", Var: &s.Feed},
		{Name: "caller", Var: &s.Caller}, {Name: "since", Var: &s.Since}, {Name: "expires", Var: &s.Expires},
		{Name: "errors", Var: &s.Errors}, {Name: "failed", Var: &s.Failed}, {Name: "error", Var: &s.Error},
		{Name: "slow", Var: &s.Slow},
	}
}

// get sets s from the values of its file. The secret is percent-encoded there, because it may contain any
// bytes.
func (s *subscription) get(v *values.Values) {
	v.Read(s.fields())
	s.Secret, _ = url.QueryUnescape(s.Secret)
}

// text returns the content of its file: v with the values of s.
func (s subscription) text(v *values.Values) []byte {
	s.Secret = url.QueryEscape(s.Secret)
	v.Write(s.fields())
	return v.Text()
}

// transition changes a subscription at a time. It sets a subscription that has ended to zero.
type transition func(s *subscription, now time.Time)

// verified means that the callback has confirmed the subscription as, for the duration of a lease.
func verified(as subscription, lease time.Duration) transition {
	return func(s *subscription, now time.Time) {
		*s = as
		s.Since, s.Expires = now, now.Add(lease)
	}
}

// delivered means that the subscriber has accepted a notification.
func delivered(slow bool) transition {
	return func(s *subscription, _ time.Time) {
		s.Errors, s.Error, s.Failed, s.Slow = 0, "", time.Time{}, slow
	}
}

// failed means that it has not.
func failed(text string, slow bool) transition {
	return func(s *subscription, now time.Time) { s.Error, s.Failed, s.Slow = termsafe.Brief(text), now, slow }
}

// struck means that all attempts of a series have failed.
func struck(s *subscription, _ time.Time) { s.Errors++ }

// unsubscribed means that the subscriber has ended the subscription.
func unsubscribed(s *subscription, _ time.Time) { *s = subscription{} }

// wants reports whether the subscriber is notified at now.
func (s *subscription) wants(now time.Time) bool {
	return !s.givenUp() && now.Before(s.Expires)
}

// givenUp reports whether too many series of attempts have failed. This never ends a WebSub
// subscription: "The hub MUST keep the subscription active until the end of the lease
// duration" (section 7).
func (s *subscription) givenUp() bool { return s.Protocol != WebSub && s.Errors >= strikes }

// rank orders the subscribers on a host: those that failed or were slow last time are last.
func (s *subscription) rank() int {
	if !s.Failed.IsZero() || s.Slow {
		return 1
	}
	return 0
}

// lease returns a requested lease, within the limits.
func lease(asked time.Duration) time.Duration {
	if asked <= 0 {
		return DefaultLease
	}
	return min(max(asked, MinLease), MaxLease)
}

// key returns the name of the subscription among those to its feed.
func (s *subscription) key() string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(s.Protocol+" "+plain(s.Callback))))
}
