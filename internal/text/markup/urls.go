package markup

import (
	"cmp"
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// maxBase is the maximum length in bytes of a base URL. A base is repeated in front of every
// relative reference, so a long one would inflate the document.
const maxBase = 2048

// DocumentBase is the URL against which a document's references are resolved before any xml:base:
// contentLocation, resolved against found, if it is an http(s) URL, else found. It is nil if
// neither is usable.
func DocumentBase(found, contentLocation string) *url.URL {
	var base *url.URL
	if u, err := url.Parse(found); err == nil && u.Host != "" && len(found) <= maxBase {
		base = u
	}
	if cl := strings.TrimSpace(contentLocation); cl != "" {
		if u := Base(base, cl); u != nil && (u.Scheme == "http" || u.Scheme == "https") {
			base = u
		}
	}
	return base
}

// Base returns the base URL inside an element whose xml:base is ref. If ref is not a hierarchical
// URL, it returns base.
func Base(base *url.URL, ref string) *url.URL {
	ref = strings.TrimSpace(ref)
	if ref == "" || len(ref) > maxBase {
		return base
	}
	u, err := url.Parse(ref)
	if err != nil {
		return base
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if u.Host == "" || u.Scheme == "" || len(u.Path) > maxBase {
		return base
	}
	return u
}

// Resolve makes ref absolute. It works on the text and never re-encodes a URL, because a URL is
// also an identifier. As in browsers, white space around the URL is removed, and so are line ends
// and tabs inside.
func Resolve(base *url.URL, ref string) string {
	ref = TrimURL(ref)
	if base == nil || ref == "" || HasScheme(ref) || base.Host == "" {
		return ref
	}
	origin := base.Scheme + "://"
	if base.User != nil {
		origin += base.User.String() + "@"
	}
	origin += base.Host
	basePath := base.EscapedPath()
	basePath = cmp.Or(basePath, "/")
	switch ref[0] {
	case '#':
		if base.RawQuery != "" || base.ForceQuery {
			// No URL has spaces in it, and in a srcset they end one.
			basePath += "?" + strings.ReplaceAll(base.RawQuery, " ", "%20")
		}
		return origin + basePath + ref
	case '?':
		return origin + basePath + ref
	case '/':
		if strings.HasPrefix(ref, "//") {
			return base.Scheme + ":" + ref
		}
		return origin + removeDots(ref)
	}
	return origin + removeDots(basePath[:strings.LastIndexByte(basePath, '/')+1]+ref)
}

// TrimURL removes the same characters as browsers: white space around a URL, tabs and newlines in it.
func TrimURL(s string) string {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "\n\t\r") {
		s = strings.NewReplacer("\n", "", "\t", "", "\r", "").Replace(s)
	}
	return s
}

// HasScheme reports whether s starts with a URL scheme (RFC 3986, section 3.1) and a colon.
func HasScheme[T string | []byte](s T) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		case c == ':':
			return i > 0
		default:
			return false
		}
	}
	return false
}

// removeDots resolves the segments . and .. of a path that starts with a
// slash; query and fragment are left alone.
func removeDots(p string) string {
	rest := ""
	if i := strings.IndexAny(p, "?#"); i >= 0 {
		p, rest = p[:i], p[i:]
	}
	if !strings.Contains(p, "/.") {
		return p + rest
	}
	out := make([]byte, 0, len(p))
	for p != "" {
		seg := p // "/name", up to the next slash
		if i := strings.IndexByte(p[1:], '/'); i >= 0 {
			seg = p[:i+1]
		}
		p = p[len(seg):]
		switch seg {
		case "/.", "/..":
			if seg == "/.." {
				for len(out) > 0 {
					c := out[len(out)-1]
					out = out[:len(out)-1]
					if c == '/' {
						break
					}
				}
			}
			if p == "" {
				out = append(out, '/')
			}
		default:
			out = append(out, seg...)
		}
	}
	return string(out) + rest
}

// IsURLAttr reports whether the value of an attribute of HTML, its name in lower case, is
// a URL. The value of "usemap" names a place in the same text.
func IsURLAttr(name string) bool {
	switch name {
	case "href", "src", "action", "formaction", "cite", "poster", "longdesc", "background", "data", "codebase",
		"manifest",
		"lowsrc", "dynsrc", "icon", "srcset", "imagesrcset":
		return true
	}
	return false
}

// ResolveAttr returns the value of a URL attribute made absolute, not escaped,
// and whether it had to be.
func ResolveAttr(base *url.URL, key, val string) (string, bool) {
	if strings.HasSuffix(key, "srcset") {
		return resolveSrcset(base, html.UnescapeString(val))
	}
	v := strings.TrimLeft(val, " \t\n\r\f")
	if v == "" || v[0] == '#' || HasScheme(v) {
		return "", false
	}
	// A scheme may be hidden in references: java&#115;cript:, mailto&#58;.
	v = TrimURL(html.UnescapeString(v))
	if v == "" || v[0] == '#' || HasScheme(v) {
		return "", false
	}
	return Resolve(base, v), true
}

// resolveSrcset resolves each candidate of a srcset: URLs with an optional
// descriptor, separated by commas; commas inside a URL belong to it.
func resolveSrcset(base *url.URL, v string) (string, bool) {
	changed := false
	v = candidate().ReplaceAllStringFunc(v, func(c string) string {
		u := c[:strings.IndexAny(c+" ", " \t\n\r\f")]
		// Unicode white space at the end does not belong to the URL, either.
		bare := strings.TrimRightFunc(u, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		abs := Resolve(base, bare)
		changed = changed || abs != bare
		return abs + c[len(bare):]
	})
	return v, changed
}

// candidate matches a URL and a comma, or its descriptor up to the next comma that is not in parentheses.
var candidate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:[^\s,]\S*[^\s,]|[^\s,])(?:,|[^,(]*(?:\([^)]*\)?[^,(]*)*)`)
})

// IndexFold is Index, ignoring case. sep must start with '<' and be in lower case.
func IndexFold(s []byte, sep string) int {
	for i := 0; ; {
		for i < len(s) && s[i] != '<' {
			i++
		}
		if i+len(sep) > len(s) {
			return -1
		}
		if strings.EqualFold(string(s[i:i+len(sep)]), sep) {
			return i
		}
		i++
	}
}

// isLinkScheme reports whether a reader may follow URLs of a scheme. URLs that a browser executes
// (javascript, data) or opens on the reader's own disk (file) are not links.
func isLinkScheme(scheme string) bool {
	switch scheme {
	case "http", "https", "mailto", "ftp", "ftps", "sftp", "gemini", "gopher", "spartan", "finger", "news", "nntp",
		"irc", "ircs",
		"xmpp", "sip", "sips", "tel", "sms", "geo", "magnet", "feed", "ipfs", "ipns", "rtsp", "rtmp", "mms", "webcal",
		"nostr", "acct":
		return true
	}
	return false
}

// Link returns a URL in the form in which it is stored, or "" if a reader must not follow it. A
// relative reference is kept.
func Link(s string) string {
	if s = CleanLine(s); HasScheme(s) {
		if scheme, _, _ := strings.Cut(s, ":"); !isLinkScheme(strings.ToLower(scheme)) {
			return ""
		}
	}
	return s
}

// FirstLink returns the first of a list that is a link.
func FirstLink(list ...string) string {
	for _, s := range list {
		if s = Link(s); s != "" {
			return s
		}
	}
	return ""
}

// IsWebURL reports whether s is an absolute URL of http or https.
func IsWebURL(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	return ok && rest != "" && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) &&
		!strings.ContainsAny(s, " \t\n")
}
