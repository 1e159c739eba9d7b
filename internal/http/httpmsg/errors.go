package httpmsg

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// Names of the flags that set the limits of an exchange, without dashes. Error messages name them,
// so commands must use these names.
const (
	FlagTimeout      = "timeout"
	FlagMaxBytes     = "max-bytes"
	FlagMaxDecoded   = "max-decoded"
	FlagMaxRedirects = "max-redirects"
	FlagMaxHeader    = "max-header"
)

// Statuses that this package and the state of a feed distinguish.
const (
	StatusOK                   = 200
	StatusNonAuthoritativeInfo = 203
	StatusGone                 = 410

	statusUnauthorized    = 401
	statusForbidden       = 403
	statusNotFound        = 404
	statusTooManyRequests = 429
)

// StatusError is a response without a document: a status other than 200 and 304, or one of these
// where it is not valid.
type StatusError struct {
	// URL is the URL of the response, after redirects, without userinfo.
	URL string
	// Status is the HTTP status, Text its name; "" if it has none.
	Status int
	Text   string
	// RetryAfter is the wait that the server asked for, by [RetryAfter] or [ResetAfter], at most
	// [MaxRetryAfter]; set only for 429 and 503, otherwise 0.
	RetryAfter time.Duration
	// Detail describes the error if the status alone does not; it may be empty.
	Detail string
	// Subscribed is set if the URL is that of a subscribed feed. The text then says what happens next,
	// and what the user can do.
	Subscribed bool
}

func (e *StatusError) Error() string {
	text := cmp.Or(e.Text, "an unknown status")
	s := fmt.Sprintf("%s: the server answered %d %s", feedurl.Brief(e.URL), e.Status, text)
	switch {
	case e.Detail != "":
		return s + ": " + e.Detail
	case e.RetryAfter > 0:
		return s + " and asks for a pause of " + humanize.ShortDuration(e.RetryAfter)
	case !e.Subscribed:
	case e.Status == statusNotFound:
		return s + "; if this continues, look for the new address on the feed's page"
	case e.Status == StatusGone:
		return s + "; the feed has ended, and is fetched once a month from now on"
	case e.Status == statusUnauthorized, e.Status == statusForbidden:
		return s + "; if the server needs a password or token, put the header for it into the feed's etc/fetch/headers"
	case e.Status == statusTooManyRequests:
		return s + "; requests are less frequent from now on"
	case e.Status >= 500:
		return s + "; the request is repeated later"
	}
	return s
}

// LimitError reports that a limit ended an exchange.
type LimitError struct {
	URL string
	// Limit is the name of the limit: "bytes transferred", "bytes after decompression",
	// "redirects", "bytes of response header".
	Limit string
	Max   int64
	// Flag is the flag that raises the limit, without dashes; "" if there is none.
	Flag string
}

func (e *LimitError) Error() string {
	s := fmt.Sprintf("%s: more than %d %s", feedurl.Brief(e.URL), e.Max, e.Limit)
	if e.Flag != "" {
		s += "; --" + e.Flag + " raises the limit"
	}
	return s
}

// TypeError is a response that is not a page although one was requested ([Request].Page).
type TypeError struct{ URL, Type string }

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: it is not a page, but %s", feedurl.Brief(e.URL), feedurl.Brief(e.Type))
}

// Kind is the kind of a network error.
type Kind string

// The kinds of [NetError].
const (
	KindDNS      Kind = "dns"      // the host's name has no address
	KindConnect  Kind = "connect"  // no connection to the address
	KindTLS      Kind = "tls"      // certificates and handshakes
	KindTimeout  Kind = "timeout"  // the deadline of the exchange passed
	KindProtocol Kind = "protocol" // the answer is not HTTP, or broke off
)

// NetError is an exchange without a response, or with one that did not end within the deadline.
type NetError struct {
	URL  string
	Kind Kind
	// Offline is set if this machine probably has no network: then nothing was requested, and the
	// server is not to blame.
	Offline bool
	// Expired is true if the certificate has expired or is not valid yet.
	Expired bool
	Err     error
}

func (e *NetError) Error() string {
	url := feedurl.Brief(e.URL)
	switch e.Kind {
	case KindDNS:
		if d, ok := errors.AsType[*net.DNSError](e.Err); ok && d.IsNotFound {
			return fmt.Sprintf("%s: there is no host %q (DNS); check the address", url, d.Name)
		}
		return fmt.Sprintf("%s: the name server gave no answer: %v", url, e.Err)
	case KindConnect:
		return fmt.Sprintf("%s: no connection: %v", url, e.Err)
	case KindTLS:
		if e.Expired {
			return fmt.Sprintf("%s: the server's certificate has expired or is not valid yet (or this machine's clock is wrong): %v", url, e.Err)
		}
		return fmt.Sprintf("%s: no secure connection: %v", url, e.Err)
	case KindTimeout:
		return fmt.Sprintf("%s: %v; --%s raises the limit", url, e.Err, FlagTimeout)
	}
	return fmt.Sprintf("%s: no usable answer: %s", url, feedurl.Brief(e.Err.Error()))
}

func (e *NetError) Unwrap() error { return e.Err }

// Timeout reports whether the deadline passed, see [net.Error].
func (e *NetError) Timeout() bool { return e.Kind == KindTimeout }

// RedirectError is a redirect that was not followed.
type RedirectError struct {
	URL    string // URL of the response
	Target string // absolute if possible, else as sent
	Reason string
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("%s: the redirect to %q was not followed: %s", feedurl.Brief(e.URL), feedurl.Brief(e.Target),
		e.Reason)
}

// FlagAllow is the name of the flag that permits private addresses, without dashes.
const FlagAllow = "allow"

// PrivateError is a refused connection to a private address, because a public server or document
// named it, or, if Never is set, because no document can be at such an address.
type PrivateError struct {
	URL    string
	Addr   netip.Addr // zero if only the name is known, because of a proxy
	Origin string     // the document or server, or another text for who named URL; "" for a redirect now
	Never  bool
}

// Where returns the address, as in "the private address 10.0.0.1".
func (e *PrivateError) Where() string {
	if !e.Addr.IsValid() {
		return "a private address"
	}
	return "the private address " + e.Addr.String()
}

func (e *PrivateError) Error() string {
	what, allow := e.Where(), "--"+FlagAllow+" PREFIX"
	if e.Addr.IsValid() {
		allow = "--" + FlagAllow + " " + e.Addr.WithZone("").String()
	}
	switch {
	case e.Never:
		return fmt.Sprintf("%s: no request was made, since the address %s has no public documents, but may have secrets of this machine; if that is wrong, use %s", feedurl.Brief(e.URL), e.Addr, allow)
	case e.Origin != "":
		by := feedurl.Brief(e.Origin)
		if feedurl.IsHTTP(e.Origin) {
			by += ", which is public"
		}
		return fmt.Sprintf("%s: it is at %s, named by %s, so no request was made; if that is right, name it yourself, or use %s", feedurl.Brief(e.URL), what, by, allow)
	}
	return fmt.Sprintf("%s: a public server redirects to %s, and no request was made there; if that is right, subscribe to the new address itself, or use %s", feedurl.Brief(e.URL), what, allow)
}

// DecodeError is a body with an unknown Content-Encoding, or one that does not match it.
type DecodeError struct {
	URL, Encoding string
	Err           error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("%s: the body cannot be decoded as %q: %v", feedurl.Brief(e.URL), feedurl.Brief(e.Encoding),
		e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// HostDelayError reports that no request was made, because the host has answered another request of
// this client with 429 or 503, and the wait that it asked for is not over.
type HostDelayError struct {
	URL, Host string
	Status    int           // status of the response that asked for the pause
	Until     time.Time     // end of the pause
	Left      time.Duration // rest of the pause
}

func (e *HostDelayError) Error() string {
	return fmt.Sprintf("%s: no request was made: %s answered %d to another request and asks for a pause of %s",
		feedurl.Brief(e.URL), e.Host, e.Status, humanize.ShortDuration(e.Left))
}

// CommandError is a command (an exec: source or a filter) that failed.
type CommandError struct {
	// Command is the command line, What is "exec" or "filter".
	What, Command string
	Err           error
	// Stderr is the end of its standard error, in one line without control characters.
	Stderr string
}

func (e *CommandError) Error() string {
	s := fmt.Sprintf("%s: %s: %v", e.What, e.Command, e.Err)
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}

func (e *CommandError) Unwrap() error { return e.Err }

// Remote reports whether the source of a feed caused err (a server, the network, a failed command),
// rather than this machine's files, the user's arguments, or the end of ctx.
func Remote(err error) bool {
	return errors.As(err, new(*StatusError)) || errors.As(err, new(*LimitError)) || errors.As(err, new(*NetError)) ||
		errors.As(err, new(*RedirectError)) || errors.As(err, new(*PrivateError)) ||
		errors.As(err, new(*DecodeError)) ||
		errors.As(err, new(*HostDelayError)) || errors.As(err, new(*TypeError)) || errors.As(err, new(*CommandError))
}

// Pause returns the wait that a server asked for by the response of err, or the rest of the wait of
// an earlier response. It returns 0 for other errors.
func Pause(err error) time.Duration {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.RetryAfter
	}
	if e, ok := errors.AsType[*HostDelayError](err); ok {
		return e.Left
	}
	return 0
}
