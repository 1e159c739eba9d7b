package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// errDeadline is the cause of a context that ended by the deadline of the exchange.
var errDeadline = errors.New("the deadline passed")

// classify converts an error of net/http for u to an error of package httpmsg.
func (x *exchange) classify(u *url.URL, err error) error {
	name := feedurl.Display(u)
	if private, ok := errors.AsType[*httpmsg.PrivateError](err); ok {
		return &httpmsg.PrivateError{URL: name, Addr: private.Addr, Never: private.Never}
	}
	if x.parent.Err() != nil {
		return fmt.Errorf("%s: %w", name, context.Cause(x.parent))
	}
	if errors.Is(context.Cause(x.ctx), errDeadline) {
		what := "no answer"
		if x.received > 0 {
			what = fmt.Sprintf("only %d bytes of the response", x.received)
		} else if x.answered {
			what = "only the header of the response"
		}
		return &httpmsg.NetError{URL: name, Kind: httpmsg.KindTimeout,
			Err: fmt.Errorf("%s within %s", what, x.c.cfg.Deadline)}
	}
	// net/http has no types for these.
	if s := err.Error(); strings.Contains(s, "response headers exceeded") ||
		strings.Contains(s, "response header list larger") {
		return &httpmsg.LimitError{URL: name, Limit: "bytes of response header", Max: x.c.cfg.MaxHeader,
			Flag: httpmsg.FlagMaxHeader}
	}
	e := &httpmsg.NetError{URL: name, Kind: httpmsg.KindProtocol, Err: err}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		e.Kind = httpmsg.KindDNS
		e.Offline = !dns.IsNotFound && (dns.IsTemporary || dns.IsTimeout)
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)),
		errors.As(err, new(tls.AlertError)), errors.As(err, new(x509.CertificateInvalidError)),
		strings.HasPrefix(err.Error(), "tls: "), strings.HasPrefix(err.Error(), "x509: "),
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Kind = httpmsg.KindTLS
		invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
		e.Expired = ok && invalid.Reason == x509.Expired
	case errors.As(err, &op) && op.Op == "dial":
		e.Kind = httpmsg.KindConnect
		e.Offline = errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ENETDOWN)
	}
	return e
}

// statusError returns the error for a response without a document.
func statusError(u string, status int, retryAfter time.Duration, detail string) error {
	return &httpmsg.StatusError{URL: u, Status: status, Text: http.StatusText(status), RetryAfter: retryAfter,
		Detail: detail}
}
