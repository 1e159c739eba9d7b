// Package websub speaks WebSub as a subscriber and as a hub, and tells a hub of an
// update as a publisher does.
//
// The specification is the W3C Recommendation of 23 January 2018; section
// numbers in comments are its. [Links] discovers hubs (section 4), [Send]
// requests and ends subscriptions (5.1), [ParseIntent] reads the requests by
// which a hub verifies or denies them (5.2, 5.3), and [ParseSignature] what
// proves that content is from the hub (8). A hub's are the inverses: [ParseRequest],
// [Verify], [Deny] and [Deliver]. Nothing here keeps state, and all of
// it is safe for concurrent use.
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
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/termsafe"
)

// Modes of requests (hub.mode).
const (
	Subscribe   = "subscribe"
	Unsubscribe = "unsubscribe"
	Denied      = "denied"
)

// Links returns the links of a feed as they count for discovery (section 4): hub
// and self in the header fields of the answer come before those in the
// document, and where the header has a hub those in the document do not count.
// The same holds for self by itself, as some servers send only one of the two.
// base is the URL of the document; links are those found in it.
func Links(h textproto.MIMEHeader, base string, links []feedconv.Link) []feedconv.Link {
	var found []feedconv.Link
	has := map[string]bool{}
	for _, l := range fetch.Links(h, base) {
		if l.Rel == "hub" || l.Rel == "self" {
			found = append(found, feedconv.Link{Rel: l.Rel, Href: l.URL})
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

// Request asks a hub for a subscription, or to end one (section 5.1).
type Request struct {
	Mode     string // Subscribe or Unsubscribe
	Hub      string // URL
	Callback string // URL, of this subscription alone
	Topic    string // URL
	// Lease is how long the subscription shall last; the hub decides. 0 leaves
	// it to the hub.
	Lease time.Duration
	// Secret is what the hub shall sign with, less than 200 bytes, or "". It
	// is sent only to hubs by https (section 5.1: SHOULD).
	Secret string
}

// Secure reports whether a secret may be told to a hub.
func Secure(hub string) bool { return strings.HasPrefix(strings.ToLower(hub), "https://") }

// Send makes the request. It returns nil when the hub accepted it (202), and
// with any other status of success, which older hubs answer; either way the
// subscription changes when the hub has verified the intent. The error is a
// [fetch.RefusedError] for 4xx, else one of package fetch's. A hub that finds fault with
// a request for a lease (400 or 422) is asked once more without: the parameter is
// optional, and there are hubs that know none, or not so long a one.
func Send(ctx context.Context, c *fetch.Client, r Request) error {
	err := send(ctx, c, r)
	if no, ok := errors.AsType[*fetch.RefusedError](err); ok && r.Lease > 0 && (no.Status == http.StatusBadRequest || no.Status == http.StatusUnprocessableEntity) {
		r.Lease = 0
		if send(ctx, c, r) == nil {
			return nil
		}
	}
	return err
}

func send(ctx context.Context, c *fetch.Client, r Request) error {
	q := url.Values{"hub.mode": {r.Mode}, "hub.callback": {r.Callback}, "hub.topic": {r.Topic}}
	// Before the recommendation hubs insisted on hub.verify, and others
	// ignore it.
	q.Set("hub.verify", "async")
	if r.Lease > 0 {
		q.Set("hub.lease_seconds", strconv.FormatInt(int64(r.Lease/time.Second), 10))
	}
	if r.Secret != "" && Secure(r.Hub) {
		q.Set("hub.secret", r.Secret)
	}
	return post(ctx, c, r.Hub, q, false)
}

// Publish tells a hub that a topic was updated. The recommendation leaves open
// how (section 6); this is what PubSubHubbub had, and hubs still take. chosen is
// as in [fetch.Post].
func Publish(ctx context.Context, c *fetch.Client, hub string, chosen bool, topic string) error {
	return post(ctx, c, hub, url.Values{"hub.mode": {"publish"}, "hub.url": {topic}, "hub.topic": {topic}}, chosen)
}

func post(ctx context.Context, c *fetch.Client, hub string, q url.Values, chosen bool) error {
	a, err := c.Post(ctx, &fetch.Post{URL: hub, ContentType: "application/x-www-form-urlencoded", Body: []byte(q.Encode()), Chosen: chosen})
	if err != nil {
		return err
	}
	return a.Verdict(termsafe.Brief(string(a.Body[:min(len(a.Body), 1000)])), "and did nothing")
}

// Intent is a GET of the hub to the callback: to verify that a request was
// ours (section 5.3), or to say that it is denied (5.2).
type Intent struct {
	Mode      string // Subscribe, Unsubscribe or Denied
	Topic     string
	Challenge string        // to answer with when the intent is ours
	Lease     time.Duration // 0 when the hub did not say
	Reason    string        // of a denial, cleaned, in one line
}

// MaxChallenge is the longest challenge that is answered, in bytes.
const MaxChallenge = 4096

// ErrNoIntent is returned for a query without hub.mode.
var ErrNoIntent = errors.New("no hub.mode")

// ParseIntent reads the query of such a request. The error is [ErrNoIntent] for
// another request, and says else what is wrong with it.
func ParseIntent(query url.Values) (Intent, error) {
	in := Intent{Mode: query.Get("hub.mode"), Topic: query.Get("hub.topic"), Challenge: query.Get("hub.challenge"), Reason: termsafe.Brief(query.Get("hub.reason"))}
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

// lease returns the lease that a request asks for or grants, at most ten years; 0 if it
// says none, or none that makes sense.
func lease(query url.Values) time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(query.Get("hub.lease_seconds")), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(min(n, 10*365*86400)) * time.Second
}

// Signature is the value of X-Hub-Signature (section 8).
type Signature struct {
	Method string // sha1, sha256, sha384 or sha512
	mac    []byte
}

var methods = []struct {
	name string
	hash func() hash.Hash
}{{"sha1", sha1.New}, {"sha256", sha256.New}, {"sha384", sha512.New384}, {"sha512", sha512.New}}

// Strength orders the methods: more is stronger, 0 stands for none of them.
func Strength(method string) int {
	for i, m := range methods {
		if m.name == method {
			return i + 1
		}
	}
	return 0
}

// ParseSignature reads method=signature. It fails for methods that the
// recommendation does not have.
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

// Hash returns what the content is to be written to, for [Signature.Matches].
func (s *Signature) Hash(secret string) hash.Hash {
	return hmac.New(methods[Strength(s.Method)-1].hash, []byte(secret))
}

// Matches compares in constant time.
func (s *Signature) Matches(h hash.Hash) bool { return hmac.Equal(h.Sum(nil), s.mac) }

// Sign returns the value of X-Hub-Signature, as a hub does.
func Sign(method, secret string, content []byte) string {
	h := hmac.New(methods[Strength(method)-1].hash, []byte(secret))
	h.Write(content)
	return method + "=" + hex.EncodeToString(h.Sum(nil))
}
