// Package websub implements WebSub for subscribers and hubs, and the announcement of
// updates by publishers.
//
// The specification is the W3C Recommendation of 23 January 2018; section numbers in
// comments are from it. [Links] discovers hubs (section 4). [Send] requests and ends
// subscriptions (5.1). [ParseIntent] reads the requests by which a hub verifies or denies
// them (5.2, 5.3). [ParseSignature] reads the signature of content (8). The functions for
// hubs are [ParseRequest], [Verify], [Deny] and [Deliver]. The package keeps no state, and
// is safe for concurrent use.
package websub

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Modes of requests (hub.mode):
const (
	Subscribe   = "subscribe"
	Unsubscribe = "unsubscribe"
	Denied      = "denied"
)

// Links returns the links of a feed for discovery (section 4): first hub and self in the
// header fields of the answer, then those in the document. If the header has a hub, hubs in
// the document are ignored; the same applies to self, because some servers send only one of
// the two. base is the URL of the document; links are the links in it.
func Links(h textproto.MIMEHeader, base string, links []feedconv.Link) []feedconv.Link {
	var found []feedconv.Link
	has := map[string]bool{}
	for _, l := range fetch.Links(h, base) {
		if l.Rel == "hub" || l.Rel == "self" {
			found = append(found, feedconv.Link{Rel: l.Rel, URL: l.URL})
			has[l.Rel] = true
		}
	}
	if len(found) == 0 {
		return links
	}
	for _, l := range links {
		if !has[strings.ToLower(l.Rel)] {
			found = append(found, l)
		}
	}
	return found
}

// Request is a request to a hub to begin or end a subscription (section 5.1).
type Request struct {
	Mode     string // Subscribe or Unsubscribe
	Hub      string // URL
	Callback string // URL for this subscription only
	Topic    string // URL
	// Lease is the requested duration of the subscription, which the hub may change. 0
	// leaves it to the hub.
	Lease time.Duration
	// Secret is the key for signatures, less than 200 bytes, or "". It is sent only to
	// https hubs (section 5.1: SHOULD).
	Secret string
}

// Secure reports whether a secret may be sent to a hub.
func Secure(hub string) bool { return strings.HasPrefix(strings.ToLower(hub), "https://") }

// Send makes the request. It returns nil if the hub accepts it: with 202, or with another
// 2xx status, which older hubs send. The subscription changes when the hub has verified the
// intent. The error is a [fetch.RefusedError] for 4xx, or another one of package fetch. If
// a hub answers 400 or 422 to a request with a lease, Send repeats it without: the
// parameter is optional, and some hubs do not know it or refuse long leases.
func Send(ctx context.Context, c *fetch.Client, r Request) error {
	err := send(ctx, c, r)
	if no, ok := errors.AsType[*fetch.RefusedError](err); ok && r.Lease > 0 &&
		(no.Status == http.StatusBadRequest || no.Status == http.StatusUnprocessableEntity) {
		r.Lease = 0
		if send(ctx, c, r) == nil {
			return nil
		}
	}
	return err
}

func send(ctx context.Context, c *fetch.Client, r Request) error {
	q := url.Values{"hub.mode": {r.Mode}, "hub.callback": {r.Callback}, "hub.topic": {r.Topic}}
	// Older hubs require hub.verify, and others ignore it.
	q.Set("hub.verify", "async")
	if r.Lease > 0 {
		q.Set("hub.lease_seconds", strconv.FormatInt(int64(r.Lease/time.Second), 10))
	}
	if r.Secret != "" && Secure(r.Hub) {
		q.Set("hub.secret", r.Secret)
	}
	return post(ctx, c, r.Hub, q, false)
}

// Publish notifies a hub of an update of a topic. Section 6 leaves the form open; this is
// that of PubSubHubbub, which hubs accept. For chosen see [fetch.Post].
func Publish(ctx context.Context, c *fetch.Client, hub string, chosen bool, topic string) error {
	return post(ctx, c, hub, url.Values{"hub.mode": {"publish"}, "hub.url": {topic}, "hub.topic": {topic}}, chosen)
}

func post(ctx context.Context, c *fetch.Client, hub string, q url.Values, chosen bool) error {
	a, err := c.Post(ctx, &fetch.Post{URL: hub, ContentType: "application/x-www-form-urlencoded",
		Body: []byte(q.Encode()), Chosen: chosen})
	if err != nil {
		return err
	}
	return a.Verdict(termsafe.Brief(string(a.Body[:min(len(a.Body), 1000)])), "and did nothing")
}

// Intent is a GET of the hub to the callback: it verifies a request (section 5.3) or denies
// it (5.2).
type Intent struct {
	Mode      string // Subscribe, Unsubscribe or Denied
	Topic     string
	Challenge string        // the answer, if the intent is ours
	Lease     time.Duration // 0 if the hub does not name one
	Reason    string        // reason of a denial, cleaned, in one line
}

// MaxChallenge is the maximum length of a challenge that is answered, in bytes.
const MaxChallenge = 4096

// ErrNoIntent is the error for a query without hub.mode.
var ErrNoIntent = errors.New("no hub.mode")

// ParseIntent reads the query of such a request. The error is [ErrNoIntent] for any other
// request.
func ParseIntent(query url.Values) (Intent, error) {
	in := Intent{Mode: query.Get("hub.mode"), Topic: query.Get("hub.topic"), Challenge: query.Get("hub.challenge"),
		Reason: termsafe.Brief(query.Get("hub.reason"))}
	switch in.Mode {
	case "":
		return in, ErrNoIntent
	case Denied:
		return in, nil
	case Subscribe, Unsubscribe:
	default:
		return in, fmt.Errorf("hub.mode %q is unknown", termsafe.Brief(in.Mode))
	}
	if in.Topic == "" || in.Challenge == "" || len(in.Challenge) > MaxChallenge {
		return in, errors.New("hub.topic or hub.challenge is missing or too long")
	}
	in.Lease = lease(query)
	return in, nil
}

// lease returns the lease in a query, at most ten years; 0 if it is missing or invalid.
func lease(query url.Values) time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(query.Get("hub.lease_seconds")), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(min(n, 10*365*86400)) * time.Second
}

// Signature is a parsed X-Hub-Signature (section 8).
type Signature struct {
	Method string // sha1, sha256, sha384 or sha512
	mac    []byte
}

var methods = []struct {
	name string
	hash func() hash.Hash
}{{"sha1", sha1.New}, {"sha256", sha256.New}, {"sha384", sha512.New384}, {"sha512", sha512.New}}

// Strength returns the strength of a method: larger is stronger, 0 is unknown.
func Strength(method string) int {
	for i, m := range methods {
		if m.name == method {
			return i + 1
		}
	}
	return 0
}

// ParseSignature parses method=signature. It fails for methods that are not in the
// recommendation.
func ParseSignature(s string) (*Signature, error) {
	method, value, ok := strings.Cut(strings.TrimSpace(s), "=")
	method = strings.ToLower(method)
	mac, err := hex.DecodeString(strings.TrimSpace(value))
	switch {
	case s == "":
		return nil, errors.New("there is no signature")
	case !ok || err != nil:
		return nil, errors.New("the signature cannot be read")
	case Strength(method) == 0:
		return nil, fmt.Errorf("the signature's method %q is unknown", termsafe.Brief(method))
	}
	return &Signature{Method: method, mac: mac}, nil
}

// Hash returns a hash for [Signature.Matches], to which the caller writes the content.
func (s *Signature) Hash(secret string) hash.Hash {
	return hmac.New(methods[Strength(s.Method)-1].hash, []byte(secret))
}

// Matches compares a hash with the signature, in constant time.
func (s *Signature) Matches(h hash.Hash) bool { return hmac.Equal(h.Sum(nil), s.mac) }

// Sign returns the value of X-Hub-Signature.
func Sign(method, secret string, content []byte) string {
	h := hmac.New(methods[Strength(method)-1].hash, []byte(secret))
	h.Write(content)
	return method + "=" + hex.EncodeToString(h.Sum(nil))
}
