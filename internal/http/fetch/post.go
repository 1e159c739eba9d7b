package fetch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// MaxAnswer is the maximum number of bytes read of the response to a [Post]. The rest is ignored.
const MaxAnswer = 64 << 10

// Post is a request with a body.
type Post struct {
	// URL is an http or https URL; its userinfo is not sent.
	URL string
	// Method defaults to POST. A GET or HEAD has no body.
	Method string
	// ContentType, unless it is "", and Body are sent, again after each redirect.
	ContentType string
	Body        []byte
	// Header is sent too, again after each redirect to the same server, see [SameOrigin], but not
	// to another one.
	Header http.Header
	// Chosen means that the user named the URL, so that it may be at a private address, as with
	// [Client.Get]. Otherwise private addresses are refused from the first request.
	Chosen bool
	// Secret means that the body is for this server only, or useless without the header: a redirect
	// to another server is a [httpmsg.RedirectError].
	Secret bool
	// Direct means that redirects are not followed, but returned like other responses.
	Direct bool
}

// Answer is the response to a [Post], whatever its status.
type Answer struct {
	Status   int // a redirect only if the [Post] is Direct
	Header   http.Header
	Body     []byte // its first MaxAnswer bytes
	FinalURL string // URL after redirects, without userinfo
	// RetryAfter is as in [httpmsg.StatusError].
	RetryAfter time.Duration
}

// Error returns an error for a response without success, with a line of detail from the server, or
// "".
func (a *Answer) Error(detail string) error {
	return statusError(a.FinalURL, a.Status, a.RetryAfter, detail)
}

// Post sends a body and returns the response. Host limits, deadlines, size limits and the refusal
// of private addresses are those of [Client.Get], and so are the types of errors, except that no
// status is an error.
//
// After a redirect by 301, 302, 307 or 308 it repeats the POST with its body (RFC 9110, section
// 15.4, allows a GET after the first two, which would lose it). 303, and any redirect from https to
// http, is a [httpmsg.RedirectError].
func (c *Client) Post(ctx context.Context, p *Post) (*Answer, error) {
	u, err := feedurl.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	x := c.begin(ctx)
	defer x.end()
	u.User = nil
	x.privateOK = p.Chosen
	header := p.Header
	var answer *Answer
	err = x.follow(u, "", func(u *url.URL) (next *url.URL, err error) {
		if next, answer, err = x.post(u, p, header); next != nil && !feedurl.SameOriginURL(u, next) {
			header = nil
		}
		return next, err
	})
	return answer, err
}

// redirectCodes are the statuses of a redirect.
var redirectCodes = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect,
	http.StatusPermanentRedirect, http.StatusSeeOther}

// post makes one request of Post.
func (x *exchange) post(u *url.URL, p *Post, header http.Header) (*url.URL, *Answer, error) {
	method, body := cmp.Or(p.Method, http.MethodPost), io.Reader(bytes.NewReader(p.Body))
	get := method == http.MethodGet || method == http.MethodHead
	if get {
		body = nil
	}
	req, err := http.NewRequestWithContext(x.ctx, method, u.String(), body)
	if err != nil {
		return nil, nil, &feedurl.Error{URL: feedurl.Display(u), Reason: "not a URL"}
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", x.c.cfg.UserAgent)
	if !get && p.ContentType != "" {
		req.Header.Set("Content-Type", p.ContentType)
	}
	req.Header.Set("Accept", "*/*")
	resp, done, err := x.send(req)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if !p.Direct && slices.Contains(redirectCodes, resp.StatusCode) {
		next, err := redirected(u, resp, func(detail string) error {
			return statusError(feedurl.Display(u), resp.StatusCode, 0, detail)
		})
		if err != nil {
			return nil, nil, err
		}
		refuse := func(reason string) error {
			return &httpmsg.RedirectError{URL: feedurl.Display(u), Target: next.String(), Reason: reason}
		}
		switch {
		case resp.StatusCode == http.StatusSeeOther && !get:
			return nil, nil, refuse("a 303 redirect would lose the content of the request")
		case u.Scheme == "https" && next.Scheme == "http":
			return nil, nil, refuse("it leads from https to http")
		case p.Secret && !feedurl.SameOriginURL(u, next):
			return nil, nil, refuse("it leads to another server, which must not get the password")
		}
		return next, nil, nil
	}
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, FinalURL: feedurl.Display(u)}
	a.RetryAfter = x.retryAfter(resp, x.c.cfg.Now())
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer))
	x.received = int64(len(a.Body))
	if err != nil && x.ctx.Err() != nil {
		return nil, nil, x.classify(u, err)
	}
	// Return a body that was cut off: the status matters most.
	return nil, a, nil
}

// ParsePrefix parses a network such as "10.0.0.0/8", or a single address, for
// [Config].AllowPrivate.
func ParsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err == nil {
		return p.Masked(), nil
	}
	a, aerr := netip.ParseAddr(s)
	if aerr != nil {
		return p, fmt.Errorf("%s: give a network such as 10.0.0.0/8, or an address", s)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}
