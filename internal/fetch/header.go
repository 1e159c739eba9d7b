package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sendable reports whether v can be the value of a header field: any bytes but
// control characters other than tab.
func sendable(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// validator returns v if it can be stored and sent back, else "".
func validator(v string) string {
	if len(v) > maxValue || !sendable(v) {
		return ""
	}
	return v
}

// Validators returns ETag and Last-Modified of a header; "" for a missing one, or one that cannot
// be sent back.
func Validators(h http.Header) (etag, modified string) {
	return validator(h.Get("Etag")), validator(h.Get("Last-Modified"))
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

// serverNow returns the Date of a response, to compare dates in its header with, as the server's
// clock may be wrong.
func serverNow(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// RetryAfter returns the wait that h asks for, counted from now, the time of the response: between
// 0 (none or invalid) and [MaxRetryAfter]. The header is a number of seconds or an HTTP date.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if d, ok := Seconds(v); ok {
		return min(d, MaxRetryAfter)
	}
	t, err := http.ParseTime(strings.TrimSpace(v))
	if err != nil {
		return 0
	}
	return min(max(t.Sub(serverNow(h, now)), 0), MaxRetryAfter)
}

// MaxAge returns the max-age directive of h's Cache-Control, and false if it is missing or invalid.
// no-cache and no-store mean an age of 0, whatever the other directives are.
func MaxAge(h http.Header) (time.Duration, bool) {
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
func ExpiresIn(h http.Header, now time.Time) time.Duration {
	t, err := http.ParseTime(strings.TrimSpace(h.Get("Expires")))
	if err != nil {
		return 0
	}
	return max(t.Sub(serverNow(h, now)), 0)
}

// Age returns the time that a response has spent in caches.
func Age(h http.Header) time.Duration {
	d, _ := Seconds(h.Get("Age"))
	return d
}

// headerName returns an error for a header field that users cannot set: a misspelt one, or one that
// the protocol needs.
func headerName(name string) error {
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") != "" {
		return fmt.Errorf("%q is no name of a header", name)
	}
	switch http.CanonicalHeaderKey(name) {
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
func ParseHeaders(text string) (http.Header, error) {
	h := http.Header{}
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
		switch err := headerName(name); {
		case !ok:
			errs = append(errs, fmt.Errorf("line %d: not of the form \"Name: value\"", n))
		case err != nil:
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
		case !sendable(value):
			errs = append(errs, fmt.Errorf("line %d: the value of %s has control characters", n, name))
		default:
			h.Add(name, value)
		}
	}
	return h, errors.Join(errs...)
}
