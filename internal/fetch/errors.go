package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/units"
)

// Names of the command-line flags that raise the limits of [Config], without
// the dashes: error messages tell the user of them, so the command must have
// them by these names.
const (
	FlagTimeout      = "timeout"
	FlagMaxBytes     = "max-bytes"
	FlagMaxDecoded   = "max-decoded"
	FlagMaxRedirects = "max-redirects"
	FlagMaxHeader    = "max-header"
)

// StatusError is an answer that is no document: a status other than 200 and
// 304, or one of these where it makes no sense.
type StatusError struct {
	// URL is the one that answered, after redirects, without userinfo.
	URL string
	// Status is the HTTP status.
	Status int
	// RetryAfter is how long the server wants to be left alone, counted from
	// the answer, set only for 429 and 503; 0 when it does not say, and
	// [MaxRetryAfter] at most.
	RetryAfter time.Duration
	// Detail says what is wrong when the status alone does not, or is empty.
	Detail string
}

func (e *StatusError) Error() string {
	text := cmp.Or(http.StatusText(e.Status), "an unknown status")
	s := fmt.Sprintf("%s: the server answered %d %s", Brief(e.URL), e.Status, text)
	switch {
	case e.Detail != "":
		return s + ": " + e.Detail
	case e.RetryAfter > 0:
		return s + " and wants to be left alone for " + units.ShortDuration(e.RetryAfter)
	case e.Status == http.StatusNotFound:
		return s + "; if it stays so, look for the new address on the feed's page"
	case e.Status == http.StatusGone:
		return s + "; the feed has ended, and is asked for once a month from now on"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return s + "; if it wants a password or token, put the header for it into the feed's etc/fetch/headers"
	case e.Status == http.StatusTooManyRequests:
		return s + "; it is asked less often from now on"
	case e.Status >= 500:
		return s + "; it is tried again later"
	}
	return s
}

// LimitError reports that a limit of [Config] ended an exchange.
type LimitError struct {
	URL string
	// Limit names what was limited: "bytes transferred", "bytes after
	// decompression", "redirects", "bytes of response header".
	Limit string
	Max   int64
	// Flag is the command-line flag that raises the limit, without dashes;
	// empty when there is none.
	Flag string
}

func (e *LimitError) Error() string {
	s := fmt.Sprintf("%s: more than %d %s", Brief(e.URL), e.Max, e.Limit)
	if e.Flag != "" {
		s += "; --" + e.Flag + " raises the limit"
	}
	return s
}

// TypeError is an answer that is no page where one was asked for ([Request].Page).
type TypeError struct{ URL, Type string }

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: it is no page, but %s", Brief(e.URL), Brief(e.Type))
}

// Kind sorts the reasons for which there was no answer.
type Kind string

// The kinds of [NetError].
const (
	KindDNS      Kind = "dns"      // the host's name has no address
	KindConnect  Kind = "connect"  // no connection to the address
	KindTLS      Kind = "tls"      // certificates and handshakes
	KindTimeout  Kind = "timeout"  // the deadline of the exchange passed
	KindProtocol Kind = "protocol" // what came is not HTTP, or broke off
)

// NetError is an exchange without an answer, or one whose answer did not come
// to its end within the deadline.
type NetError struct {
	URL  string
	Kind Kind
	// Offline is true when it looks as if this machine had no network: the
	// server cannot be blamed, and nothing was asked of it.
	Offline bool
	Err     error
}

func (e *NetError) Error() string {
	url := Brief(e.URL)
	switch e.Kind {
	case KindDNS:
		if d, ok := errors.AsType[*net.DNSError](e.Err); ok && d.IsNotFound {
			return fmt.Sprintf("%s: there is no host %q (DNS); check the address", url, d.Name)
		}
		return fmt.Sprintf("%s: the name server gave no answer: %v", url, e.Err)
	case KindConnect:
		return fmt.Sprintf("%s: no connection: %v", url, e.Err)
	case KindTLS:
		if c, ok := errors.AsType[x509.CertificateInvalidError](e.Err); ok && c.Reason == x509.Expired {
			return fmt.Sprintf("%s: the server's certificate has expired or is not valid yet (or this machine's clock is wrong): %v", url, e.Err)
		}
		return fmt.Sprintf("%s: no secure connection: %v", url, e.Err)
	case KindTimeout:
		return fmt.Sprintf("%s: %v; --%s raises the limit", url, e.Err, FlagTimeout)
	}
	return fmt.Sprintf("%s: no usable answer: %s", url, Brief(e.Err.Error()))
}

func (e *NetError) Unwrap() error { return e.Err }

// Timeout reports whether the deadline passed, see [net.Error].
func (e *NetError) Timeout() bool { return e.Kind == KindTimeout }

// RedirectError is a redirect that was not followed.
type RedirectError struct {
	URL    string // that sent the redirect
	Target string // as sent, or resolved where that was possible
	Reason string
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("%s: the redirect to %q was not followed: %s", Brief(e.URL), Brief(e.Target), e.Reason)
}

// FlagAllow is the flag that adds to [Config].AllowPrivate.
const FlagAllow = "allow"

// PrivateError is a connection to a private address that was refused because it
// was a public server or document that named it, or (Never) because no document
// is to be had at such an address.
type PrivateError struct {
	URL    string
	Addr   netip.Addr // zero when only the name was known (behind a proxy)
	Origin string     // the document that named URL; "" for a redirect
	Never  bool
}

func (e *PrivateError) Error() string {
	what := "a private address"
	if e.Addr.IsValid() {
		what = "the private address " + e.Addr.String()
	}
	allow := "--" + FlagAllow + " PREFIX"
	if e.Addr.IsValid() {
		allow = "--" + FlagAllow + " " + e.Addr.WithZone("").String()
	}
	switch {
	case e.Never:
		return fmt.Sprintf("%s: it is at %s, where there are secrets of this machine or nothing, and was not asked; if that is right, give %s", Brief(e.URL), e.Addr, allow)
	case e.Origin != "":
		return fmt.Sprintf("%s: it is at %s, named by the public document %s, and was not asked; if that is right, name it yourself, or give %s", Brief(e.URL), what, Brief(e.Origin), allow)
	}
	return fmt.Sprintf("%s: a public server redirects to %s, which was not asked; if that is right, subscribe to the new address itself, or give %s", Brief(e.URL), what, allow)
}

// DecodeError is a body whose Content-Encoding is not known, or is not what
// the server says it is.
type DecodeError struct {
	URL, Encoding string
	Err           error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("%s: the body cannot be decoded as %q: %v", Brief(e.URL), Brief(e.Encoding), e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// HostDelayError reports that nothing was asked, because the host has answered
// 429 or 503 to another request of this client and named a time that has not
// come yet.
type HostDelayError struct {
	URL, Host string
	Status    int       // what the host answered then
	Until     time.Time // when it may be asked again
	// Left is the time until then.
	Left time.Duration
}

func (e *HostDelayError) Error() string {
	return fmt.Sprintf("%s: not asked: %s answered %d to another request and wants to be left alone for %s", Brief(e.URL), e.Host, e.Status, units.ShortDuration(e.Left))
}

// CommandError is a command (an exec: source or a filter) that failed.
type CommandError struct {
	// Command is the command line, What "exec" or "filter".
	What, Command string
	Err           error
	// Stderr is the end of what it wrote to standard error, cleaned of
	// control characters, in one line.
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

// URLError is a URL that cannot be fetched as it stands.
type URLError struct{ URL, Reason string }

func (e *URLError) Error() string { return fmt.Sprintf("%s: %s", Brief(e.URL), e.Reason) }

// Remote reports whether the source of a feed is to blame for err (a server, the
// network, a command that failed) rather than this machine's files, the user's
// arguments, or the end of ctx.
func Remote(err error) bool {
	return errors.As(err, new(*StatusError)) || errors.As(err, new(*LimitError)) || errors.As(err, new(*NetError)) ||
		errors.As(err, new(*RedirectError)) || errors.As(err, new(*PrivateError)) || errors.As(err, new(*DecodeError)) ||
		errors.As(err, new(*HostDelayError)) || errors.As(err, new(*TypeError)) || errors.As(err, new(*CommandError))
}

// errDeadline is the cause by which the deadline of an exchange ends its context.
var errDeadline = errors.New("the deadline passed")

// classify makes one of this package's errors of what net/http returned for u.
func (x *exchange) classify(u *url.URL, err error) error {
	name := display(u)
	if private, ok := errors.AsType[*PrivateError](err); ok {
		return &PrivateError{URL: name, Addr: private.Addr, Never: private.Never}
	}
	if x.parent.Err() != nil {
		return fmt.Errorf("%s: %w", name, context.Cause(x.parent))
	}
	if errors.Is(context.Cause(x.ctx), errDeadline) {
		what := "no answer"
		if x.received > 0 {
			what = fmt.Sprintf("only %d bytes of the answer", x.received)
		} else if x.answered {
			what = "nothing but the header of the answer"
		}
		return &NetError{URL: name, Kind: KindTimeout, Err: fmt.Errorf("%s within %s", what, x.c.cfg.Deadline)}
	}
	// net/http has no types for these.
	if s := err.Error(); strings.Contains(s, "response headers exceeded") || strings.Contains(s, "response header list larger") {
		return &LimitError{URL: name, Limit: "bytes of response header", Max: x.c.cfg.MaxHeader, Flag: FlagMaxHeader}
	}
	e := &NetError{URL: name, Kind: KindProtocol, Err: err}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		e.Kind = KindDNS
		e.Offline = !dns.IsNotFound && (dns.IsTemporary || dns.IsTimeout)
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)),
		errors.As(err, new(tls.AlertError)), errors.As(err, new(x509.CertificateInvalidError)),
		strings.HasPrefix(err.Error(), "tls: "), strings.HasPrefix(err.Error(), "x509: "),
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Kind = KindTLS
	case errors.As(err, &op) && op.Op == "dial":
		e.Kind = KindConnect
		e.Offline = errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ENETDOWN)
	}
	return e
}

// Pause returns how long a server asked not to be asked again, with an error of this
// package that says so: the Retry-After of an answer, or what is left of the one before. It
// is 0 for all other errors.
func Pause(err error) time.Duration {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.RetryAfter
	}
	if e, ok := errors.AsType[*HostDelayError](err); ok {
		return e.Left
	}
	return 0
}
