package websub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

const (
	// MaxURL is the maximum length of a URL that a hub accepts, in bytes.
	MaxURL = 2048
	// MaxSecret is the maximum length of a secret, in bytes (section 5.1: "less than 200
	// bytes").
	MaxSecret = 199
)

// ParseRequest reads the form of a subscriber's request (section 5.1), as [Send] sends it.
// It does not set Hub. It ignores an invalid lease.
func ParseRequest(form url.Values) (Request, error) {
	r := Request{Mode: form.Get("hub.mode"), Callback: form.Get("hub.callback"), Topic: form.Get("hub.topic"),
		Secret: form.Get("hub.secret")}
	switch {
	case r.Mode != Subscribe && r.Mode != Unsubscribe:
		return r, errors.New("hub.mode must be subscribe, unsubscribe or publish")
	case !IsURL(r.Callback):
		return r, errors.New("hub.callback is missing or not an http or https URL")
	case !IsURL(r.Topic):
		return r, errors.New("hub.topic is missing or not an http or https URL")
	case len(r.Secret) > MaxSecret:
		return r, fmt.Errorf("hub.secret is longer than %d bytes", MaxSecret)
	}
	r.Lease = lease(form)
	return r, nil
}

// IsURL reports whether a hub accepts a text as the URL of a topic or callback.
func IsURL(s string) bool {
	if len(s) > MaxURL || strings.TrimSpace(s) != s {
		return false
	}
	u, err := feedurl.Parse(s)
	return err == nil && u.User == nil && feedurl.IsHTTP(s)
}

// ParsePublish reads the form of a publisher's announcement. Section 6 leaves its form
// open; this is that of [Publish] and PubSubHubbub.
func ParsePublish(form url.Values) (topics []string, err error) {
	for _, t := range append(form["hub.url"], form["hub.topic"]...) {
		if !IsURL(t) {
			return nil, errors.New("hub.url is not an http or https URL")
		}
		if !slices.Contains(topics, t) { // some publishers send each topic by both names
			topics = append(topics, t)
		}
	}
	if len(topics) == 0 {
		return nil, errors.New("hub.url is missing")
	}
	return topics, nil
}

// with adds parameters to a callback (section 5.3).
func with(callback string, q url.Values) string {
	callback, _, _ = strings.Cut(callback, "#")
	sep := "?"
	if strings.Contains(callback, "?") {
		sep = "&"
	}
	return callback + sep + q.Encode()
}

// Verify asks a callback to confirm a request (section 5.3). The answer must be exactly the
// challenge, with status 2xx and without a redirect.
func Verify(ctx context.Context, c *fetch.Client, r Request, challenge string) error {
	q := url.Values{"hub.mode": {r.Mode}, "hub.topic": {r.Topic}, "hub.challenge": {challenge}}
	if r.Mode == Subscribe {
		q.Set("hub.lease_seconds", strconv.FormatInt(int64(r.Lease/time.Second), 10))
	}
	a, err := c.Post(ctx, &fetch.Post{URL: with(r.Callback, q), Method: http.MethodGet, Direct: true})
	switch {
	case err != nil:
		return err
	case !a.Success():
		return a.Error("")
	case string(a.Body) != challenge:
		return errors.New("the answer is not the challenge")
	}
	return nil
}

// Deny notifies a callback that its request or subscription is denied (section 5.2). It
// ignores the answer.
func Deny(ctx context.Context, c *fetch.Client, r Request, reason string) {
	q := url.Values{"hub.mode": {Denied}, "hub.topic": {r.Topic}, "hub.reason": {reason}}
	_, _ = c.Post(ctx, &fetch.Post{URL: with(r.Callback, q), Method: http.MethodGet, Direct: true})
}

// Content is a document for distribution, with its type.
type Content struct {
	Hub, Topic string // URLs; Topic is the one that was subscribed to
	Type       string
	Body       []byte
}

// Deliver sends content to a callback (section 7), signed if there is a secret (section 8).
// A redirect is an error: a subscriber moves by subscribing again. gone reports whether the
// subscriber ended the subscription.
func Deliver(ctx context.Context, c *fetch.Client, callback, secret string, content Content) (gone bool, err error) {
	p := &fetch.Post{URL: callback, Direct: true, ContentType: content.Type, Body: content.Body, Header: http.Header{
		"Link": {fmt.Sprintf("<%s>; rel=\"hub\", <%s>; rel=\"self\"", content.Hub, content.Topic)},
	}}
	if secret != "" {
		p.Header["X-Hub-Signature"] = []string{Sign("sha256", secret, content.Body)}
	}
	a, err := c.Post(ctx, p)
	switch {
	case err != nil:
		return false, err
	case a.Status == http.StatusGone:
		return true, nil
	case !a.Success():
		return false, a.Error("")
	}
	return false, nil
}
