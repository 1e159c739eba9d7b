// Package feedurl handles the URLs of feeds and of documents that they name: it checks,
// normalises and displays them. It makes no requests.
package feedurl

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/humanize"
)

// IsHTTP reports whether a URL is http or https. Only these may come from others; file: and exec:
// URLs may not.
func IsHTTP(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Web returns a URL if it is http or https, else "".
func Web(raw string) string {
	if IsHTTP(raw) {
		return raw
	}
	return ""
}

// IsVideo reports whether a URL is a page of YouTube, whose video a player may find.
func IsVideo(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Host == "www.youtube.com" || u.Host == "youtube.com" || u.Host == "youtu.be")
}

// Public returns a URL without user name and password.
func Public(raw string) string {
	if strings.IndexByte(raw, '@') < 0 {
		return raw // without an @ there is no user
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return Redact(raw)
	case u.User == nil:
		return raw
	}
	return Display(u)
}

// Parse parses an http or https URL for a request: it removes surrounding space and the fragment,
// and lowers the case of scheme and host. User name and password stay. The error is an [Error]
// without the password.
func Parse(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	u, err := url.Parse(raw)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // the rest of its text is the URL with the password
		}
		return nil, &Error{URL: Redact(raw), Reason: "not a URL: " + Redact(err.Error())}
	}
	refuse := func(reason string) (*url.URL, error) { return nil, &Error{URL: Redact(raw), Reason: reason} }
	switch {
	case u.Scheme == "":
		return refuse("not a URL: it has no scheme such as https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse(fmt.Sprintf("cannot fetch %s: URLs, only http:, https:, file: and exec:", u.Scheme))
	case u.Hostname() == "":
		return refuse("the URL names no host")
	case u.Port() != "":
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
			return refuse("the port is not a number from 1 to 65535")
		}
	}
	u.Host = strings.ToLower(u.Host)
	u.Fragment, u.RawFragment = "", ""
	u.RawQuery = EscapeQuery(u.RawQuery)
	return u, nil
}

// Article returns the part of the URL of a page that is equal in all links to it: without the scheme, www.
// before the host, a slash at the end of the path, and the parameters utm_*. It returns "" if the URL is not
// http or https.
func Article(raw string) string {
	u, err := Parse(raw)
	if err != nil {
		return ""
	}
	params := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(p string) bool {
		return len(p) >= 4 && strings.EqualFold(p[:4], "utm_")
	})
	host := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(u.Host, "www."), ":80"), ":443")
	_, fragment, _ := strings.Cut(strings.TrimSpace(raw), "#")
	return host + strings.TrimRight(u.EscapedPath(), "/") + "?" + strings.Join(params, "&") + "#" + fragment
}

// EscapeQuery escapes characters of a query that a request line cannot have: spaces and
// characters beyond ASCII.
func EscapeQuery(q string) string {
	return Escape(q, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Escape percent-encodes the characters for which special returns true, and invalid UTF-8.
func Escape(s string, special func(rune) bool) string {
	if strings.IndexFunc(s, special) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if special(r) || r == utf8.RuneError && n == 1 {
			for _, c := range []byte(s[:n]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// SameOrigin reports whether secrets for a may be sent to b. The same host by https counts as the
// same origin.
func SameOrigin(a, b string) bool {
	u, aerr := url.Parse(a)
	v, berr := url.Parse(b)
	return aerr == nil && berr == nil && SameOriginURL(u, v)
}

func SameOriginURL(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	return a.Scheme == b.Scheme && Port(a) == Port(b) ||
		a.Scheme == "http" && Port(a) == "80" && b.Scheme == "https" && Port(b) == "443"
}

// Brief shortens a URL, or another untrusted word, for a message. A URL may be as long as a
// header, and would hide the rest of the message.
func Brief(s string) string {
	return humanize.Cut(s, 400)
}

// Display returns u for messages and logs, without user name and password.
func Display(u *url.URL) string {
	if u.User == nil {
		return u.String()
	}
	v := *u
	v.User = nil
	return v.String()
}

// Redact removes text that may be a user name and password from a URL that cannot be parsed.
func Redact(s string) string {
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

// Port returns the port of an http or https URL, by default that of its scheme.
func Port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// FilePath converts the part of a URL after "file:" to a path.
func FilePath(rest string) (string, error) {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		host, path, ok := strings.Cut(after, "/")
		if !ok || host != "" && !strings.EqualFold(host, "localhost") {
			return "", errors.New("a file: URL names a file on this machine, file:///path")
		}
		rest = "/" + path
	}
	path, err := url.PathUnescape(rest)
	if err != nil || strings.Contains(path, "\x00") {
		return "", errors.New("not a path: write % as %25")
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("the path must be absolute, file:///path")
	}
	return path, nil
}

// Check returns an error if a user cannot subscribe to a URL.
func Check(v string) error {
	switch scheme, rest, _ := strings.Cut(v, ":"); strings.ToLower(scheme) {
	case "file":
		if _, err := FilePath(rest); err != nil {
			return &Error{URL: v, Reason: err.Error()}
		}
		return nil
	case "exec":
		if strings.TrimSpace(rest) == "" {
			return &Error{URL: v, Reason: "there is no command after exec:"}
		}
		return nil
	}
	_, err := Parse(v)
	return err
}

// Error is the error of a URL that cannot be fetched.
type Error struct{ URL, Reason string }

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", Brief(e.URL), e.Reason) }
