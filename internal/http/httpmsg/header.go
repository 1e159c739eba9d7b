package httpmsg

import (
	"errors"
	"fmt"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the maximum Retry-After; longer ones are cut.
const MaxRetryAfter = 30 * 24 * time.Hour

// maxValue is the maximum size of a validator, in bytes.
const maxValue = 8 << 10

// Sendable reports whether v can be the value of a header field: it has no control characters
// except tab.
func Sendable(v string) bool {
	return !strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// Validator returns v if it can be stored and sent back, else "".
func Validator(v string) string {
	if len(v) > maxValue || !Sendable(v) {
		return ""
	}
	return v
}

// Validators returns ETag and Last-Modified of a header; "" for a missing one, or one that cannot
// be sent back.
func Validators(h textproto.MIMEHeader) (etag, modified string) {
	return Validator(h.Get("Etag")), Validator(h.Get("Last-Modified"))
}

// Seconds parses a number of seconds in an HTTP header. If it does not fit into a time.Duration,
// Seconds returns the longest one.
func Seconds(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	const most = 1<<63 - 1
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > most/int64(time.Second) {
		return most, true
	}
	return time.Duration(n) * time.Second, true
}

// ParseTime parses an HTTP date: the current form, or one of two obsolete ones (RFC 9110, section
// 5.6.7).
func ParseTime(text string) (t time.Time, err error) {
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if t, err = time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return t, err
}

// serverNow returns the Date of a response. Dates in its header are compared with it, since the
// server's clock may be wrong.
func serverNow(h textproto.MIMEHeader, now time.Time) time.Time {
	if t, err := ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// RetryAfter returns the wait that h asks for, counted from now, the time of the response: between
// 0 (none or invalid) and [MaxRetryAfter]. The header is a number of seconds or an HTTP date.
func RetryAfter(h textproto.MIMEHeader, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if d, ok := Seconds(v); ok {
		return min(d, MaxRetryAfter)
	}
	t, err := ParseTime(strings.TrimSpace(v))
	if err != nil {
		return 0
	}
	return min(max(t.Sub(serverNow(h, now)), 0), MaxRetryAfter)
}

// ResetAfter is [RetryAfter] for the field X-RateLimit-Reset, which has no standard: small numbers
// are seconds from now, large ones a Unix time, in seconds or milliseconds.
func ResetAfter(h textproto.MIMEHeader, now time.Time) time.Duration {
	whole, _, _ := strings.Cut(strings.TrimSpace(h.Get("X-Ratelimit-Reset")), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0
	}
	if n > 100e9 {
		n /= 1000
	}
	wait := time.Duration(min(n, 1e9)) * time.Second
	if n >= 1e9 {
		wait = time.Unix(n, 0).Sub(serverNow(h, now))
	}
	return min(max(wait, 0), MaxRetryAfter)
}

// MaxAge returns the max-age directive of h's Cache-Control, and false if it is missing or invalid.
// no-cache and no-store mean an age of 0, whatever the other directives are.
func MaxAge(h textproto.MIMEHeader) (time.Duration, bool) {
	var age time.Duration
	found := false
	for _, line := range h.Values("Cache-Control") {
		for d := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(d, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "no-cache":
				// With field names it applies to these fields only.
				if strings.TrimSpace(value) == "" {
					return 0, true
				}
			case "no-store":
				return 0, true
			case "max-age":
				if n, ok := Seconds(strings.Trim(strings.TrimSpace(value), `"`)); ok && !found {
					age, found = n, true
				}
			}
		}
	}
	return age, found
}

// ExpiresIn returns the time between Date and Expires, 0 if Expires is missing, invalid or past.
func ExpiresIn(h textproto.MIMEHeader, now time.Time) time.Duration {
	t, err := ParseTime(strings.TrimSpace(h.Get("Expires")))
	if err != nil {
		return 0
	}
	return max(t.Sub(serverNow(h, now)), 0)
}

// Age returns the time that a response has spent in caches.
func Age(h textproto.MIMEHeader) time.Duration {
	d, _ := Seconds(h.Get("Age"))
	return d
}

// CheckName returns an error for a header field that users cannot set: a misspelt one, or one that
// the protocol needs.
func CheckName(name string) error {
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") != "" {
		return fmt.Errorf("%q is not a name of a header", name)
	}
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "If-Match", "If-Modified-Since",
		"If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
		"Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return fmt.Errorf("%s cannot be set", name)
	}
	return nil
}

// ParseHeaders parses the lines of a headers file: "Name: value" each; empty lines and lines that
// begin with # are skipped. Invalid lines, and fields of the protocol such as Host and
// Accept-Encoding, are left out. The joined error names them by line and name, not by value, which
// may be secret.
func ParseHeaders(text string) (textproto.MIMEHeader, error) {
	h := textproto.MIMEHeader{}
	var errs []error
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		line = strings.TrimSuffix(line, "\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch err := CheckName(name); {
		case !ok:
			errs = append(errs, fmt.Errorf("line %d: not of the form \"Name: value\"", n))
		case err != nil:
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
		case !Sendable(value):
			errs = append(errs, fmt.Errorf("line %d: the value of %s has control characters", n, name))
		default:
			h.Add(name, value)
		}
	}
	return h, errors.Join(errs...)
}
