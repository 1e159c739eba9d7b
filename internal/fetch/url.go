package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// IsHTTP reports whether a URL is an http or https one: what others may have
// asked for on their word.
func IsHTTP(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Public returns a URL without user and password.
func Public(raw string) string {
	if strings.IndexByte(raw, '@') < 0 {
		return raw // there is no user, and no need to look
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return redact(raw)
	case u.User == nil:
		return raw
	}
	return display(u)
}

// ParseURL parses an http or https URL as [Client.Get] takes it: surrounding
// space and the fragment are removed, scheme and host lower-cased; userinfo
// stays. The error is a [URLError] that shows no password.
func ParseURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	u, err := url.Parse(raw)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // the rest of its text is the URL with the password
		}
		return nil, &URLError{URL: redact(raw), Reason: "not a URL: " + redact(err.Error())}
	}
	refuse := func(reason string) (*url.URL, error) { return nil, &URLError{URL: redact(raw), Reason: reason} }
	switch {
	case u.Scheme == "":
		return refuse("not a URL: it has no scheme such as https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse(fmt.Sprintf("cannot fetch %s: URLs, only http:, https:, file: and exec:", u.Scheme))
	case u.Hostname() == "":
		return refuse("the URL names no host")
	}
	u.Host = strings.ToLower(u.Host)
	u.Fragment, u.RawFragment = "", ""
	u.RawQuery = escapeQuery(u.RawQuery)
	return u, nil
}

// escapeQuery encodes what people write in a query and what no request line
// may hold: spaces and characters beyond ASCII. All else stays as it is.
func escapeQuery(q string) string {
	if strings.IndexFunc(q, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
		return q
	}
	var b strings.Builder
	for _, c := range []byte(q) {
		if c <= ' ' || c > '~' {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// SameOrigin reports whether what may be sent to a may be sent to b. Moving to
// https on the same host is no loss.
func SameOrigin(a, b string) bool {
	u, aerr := url.Parse(a)
	v, berr := url.Parse(b)
	return aerr == nil && berr == nil && sameOrigin(u, v)
}

func sameOrigin(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	return a.Scheme == b.Scheme && Port(a) == Port(b) ||
		a.Scheme == "http" && Port(a) == "80" && b.Scheme == "https" && Port(b) == "443"
}

// Brief cuts a URL, or another word that a stranger chose, for a message: of
// one as long as a header may be, nobody would find what comes after it.
func Brief(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// display returns u as it may be shown and logged: a password in it is nobody's
// business, and the user name would be taken for one.
func display(u *url.URL) string {
	if u.User == nil {
		return u.String()
	}
	v := *u
	v.User = nil
	return v.String()
}

// redact removes what may be userinfo from a URL that could not be parsed.
func redact(s string) string {
	if i := strings.Index(s, "//"); i >= 0 {
		end := len(s)
		if j := strings.IndexAny(s[i+2:], "/?#"); j >= 0 {
			end = i + 2 + j
		}
		if at := strings.LastIndexByte(s[:end], '@'); at > i {
			return s[:i+2] + s[at+1:]
		}
	}
	return s
}
