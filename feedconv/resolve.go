package feedconv

import (
	"cmp"
	"html"
	"net/url"
	"strings"
	"unicode"
)

// maxBase is the longest base URL that is heeded. A base is repeated in front
// of every relative reference, so a long one is an amplifier.
const maxBase = 2048

// documentBase is the URL against which a document's references are resolved
// before any xml:base: where it was found, and an http(s) Content-Location
// over that. It is nil when nothing is known.
func documentBase(opts Options) *url.URL {
	var base *url.URL
	if u, err := url.Parse(opts.URL); err == nil && u.Host != "" && len(opts.URL) <= maxBase {
		base = u
	}
	if cl := strings.TrimSpace(opts.ContentLocation); cl != "" {
		if u := childBase(base, cl); u != nil && (u.Scheme == "http" || u.Scheme == "https") {
			base = u
		}
	}
	return base
}

// childBase is the base that an xml:base of ref makes under base; base itself
// where ref is no hierarchical URL.
func childBase(base *url.URL, ref string) *url.URL {
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

// resolveURL makes ref absolute. It works on the text: what is absolute
// already, and what of a relative reference is kept, is never re-encoded,
// since a URL is also an identifier. White space around it goes, and line ends
// and tabs inside, as in browsers.
func resolveURL(base *url.URL, ref string) string {
	ref = trimURL(ref)
	if base == nil || ref == "" || hasScheme(ref) || base.Host == "" {
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

func trimURL(s string) string {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "\n\t\r") {
		s = strings.NewReplacer("\n", "", "\t", "", "\r", "").Replace(s)
	}
	return s
}

// hasScheme reports whether s starts with a URL scheme.
func hasScheme(s string) bool {
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

// isHTMLURLAttr tells whether the value of an attribute of HTML is a URL. That of "usemap"
// names a place in the same text.
func isHTMLURLAttr(name string) bool {
	switch name {
	case "href", "src", "action", "formaction", "cite", "poster", "longdesc", "background", "data", "codebase", "manifest",
		"lowsrc", "dynsrc", "icon", "srcset", "imagesrcset":
		return true
	}
	return false
}

// resolveHTML makes the URLs in HTML absolute. Only the values that change are
// rewritten; everything else stays byte for byte, and HTML in which nothing
// changes is returned as it is. References to a place in the same text (#name)
// are left: the entry is not shown where the feed was found.
//
// It stops when the text has grown by *budget, so that a short reference repeated
// often under a long base cannot fill the memory.
func resolveHTML(s string, base *url.URL, budget *int) string {
	if base == nil || *budget <= 0 {
		return s
	}
	var out []byte
	copied := 0 // s[:copied] is in out
text:
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			break
		}
		i += n + 1
		if i >= len(s) {
			break
		}
		if s[i] == '!' {
			if strings.HasPrefix(s[i:], "!--") {
				end := strings.Index(s[i+1:], "-->")
				if end < 0 {
					break
				}
				i += 1 + end
			}
			continue
		}
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			continue
		}
		nameStart := i
		for i < len(s) && !isSpace(s[i]) && s[i] != '>' && s[i] != '/' && s[i] != '<' {
			i++
		}
		name := s[nameStart:i]
		var done bool
		i, done = htmlAttrs(s, i, func(key string, from, to int) {
			lower := asciiLower(key)
			if !isHTMLURLAttr(lower) || *budget <= 0 {
				return
			}
			val := s[from:to]
			abs, changed := resolveAttr(base, lower, val)
			if !changed {
				return
			}
			if *budget -= max(len(abs)-len(val), 0); *budget <= 0 {
				return
			}
			quoted := from > 0 && (s[from-1] == '"' || s[from-1] == '\'')
			out = append(out, s[copied:from]...)
			if !quoted {
				out = append(out, '"')
			}
			out = append(out, escapeAttr(abs)...)
			if !quoted {
				out = append(out, '"')
			}
			copied = to
		})
		if done {
			break
		}
		switch len(name) {
		case 5, 6, 8: // the contents of these are no HTML
			switch n := asciiLower(name); n {
			case "script", "style", "textarea":
				end := indexFold(s[i:], "</"+n)
				if end < 0 {
					break text
				}
				i += end
			}
		}
	}
	if copied == 0 {
		return s
	}
	return string(append(out, s[copied:]...))
}

// htmlAttrs calls f with the name and the place of the value of each attribute
// of a tag, from behind its name on. It returns the place behind the tag; done
// is true when the text ends inside it.
func htmlAttrs(s string, i int, f func(key string, from, to int)) (next int, done bool) {
	for i < len(s) {
		switch {
		case s[i] == '>':
			return i + 1, false
		case s[i] == '<':
			return i, false
		case isSpace(s[i]) || s[i] == '/':
			i++
			continue
		}
		start := i
		i++
		for i < len(s) && !isSpace(s[i]) && s[i] != '=' && s[i] != '>' && s[i] != '/' && s[i] != '<' {
			i++
		}
		key := s[start:i]
		j := i
		for j < len(s) && isSpace(s[j]) {
			j++
		}
		if j >= len(s) || s[j] != '=' {
			i = j
			continue
		}
		j++
		for j < len(s) && isSpace(s[j]) {
			j++
		}
		if j >= len(s) {
			return j, true
		}
		if q := s[j]; q == '"' || q == '\'' {
			end := strings.IndexByte(s[j+1:], q)
			if end < 0 {
				return len(s), true
			}
			f(key, j+1, j+1+end)
			i = j + end + 2
			continue
		}
		i = j
		for i < len(s) && !isSpace(s[i]) && s[i] != '>' {
			i++
		}
		f(key, j, i)
	}
	return i, true
}

// resolveAttr gives the value of a URL attribute made absolute, not escaped,
// and whether it had to be.
func resolveAttr(base *url.URL, key, val string) (string, bool) {
	if strings.HasSuffix(key, "srcset") {
		return resolveSrcset(base, html.UnescapeString(val))
	}
	v := strings.TrimLeft(val, " \t\n\r\f")
	if v == "" || v[0] == '#' || hasScheme(v) {
		return "", false
	}
	// A scheme may be hidden in references: java&#115;cript:, mailto&#58;.
	v = trimURL(html.UnescapeString(v))
	if v == "" || v[0] == '#' || hasScheme(v) {
		return "", false
	}
	return resolveURL(base, v), true
}

// resolveSrcset resolves each candidate of a srcset: URLs with an optional
// descriptor, separated by commas; commas inside a URL belong to it.
func resolveSrcset(base *url.URL, v string) (string, bool) {
	var b strings.Builder
	changed := false
	for i := 0; i < len(v); {
		start := i
		for i < len(v) && (isSpace(v[i]) || v[i] == ',') {
			i++
		}
		b.WriteString(v[start:i])
		start = i
		for i < len(v) && !isSpace(v[i]) {
			i++
		}
		u := v[start:i]
		// What ends as white space for others is no part of it, either.
		bare := strings.TrimRightFunc(u, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		abs := resolveURL(base, bare)
		changed = changed || abs != bare
		b.WriteString(abs)
		b.WriteString(u[len(bare):])
		if bare == "" || strings.Contains(u[len(bare):], ",") {
			continue
		}
		start = i
		for depth := 0; i < len(v) && (v[i] != ',' || depth > 0); i++ {
			switch v[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		b.WriteString(v[start:i])
	}
	return b.String(), changed
}

var attrEscaper = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "'", "&#39;", "<", "&lt;", ">", "&gt;")

func escapeAttr(s string) string { return attrEscaper.Replace(s) }

// asciiLower lowers ASCII letters; a string that has none in upper case is
// returned as it is.
func asciiLower(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; c >= 'A' && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// indexFold is an Index without regard to the case of letters; sep starts with
// '<' and is in lower case.
func indexFold[T string | []byte](s T, sep string) int {
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

// isLinkScheme tells whether a scheme is one of URLs that a reader may follow. What a
// browser runs (javascript, data) or finds on the reader's own disk (file) is no link.
func isLinkScheme(scheme string) bool {
	switch scheme {
	case "http", "https", "mailto", "ftp", "ftps", "sftp", "gemini", "gopher", "spartan", "finger", "news", "nntp", "irc", "ircs",
		"xmpp", "sip", "sips", "tel", "sms", "geo", "magnet", "feed", "ipfs", "ipns", "rtsp", "rtmp", "mms", "webcal", "nostr", "acct":
		return true
	}
	return false
}

// link gives a URL as it is stored, empty for one that is no link. A relative
// reference, for which no base was known, stays.
func link(s string) string {
	if s = cleanLine(s); hasScheme(s) {
		if scheme, _, _ := strings.Cut(s, ":"); !isLinkScheme(asciiLower(scheme)) {
			return ""
		}
	}
	return s
}

// IsLink tells whether a reader may follow a URL, or a relative reference: its
// scheme is one of the web or of what is like it (mailto, ftp, gemini and others).
// Parse keeps no other as a link.
func IsLink(s string) bool { return link(s) != "" }

// firstLink gives the first of a list that is a link.
func firstLink(list ...string) string {
	for _, s := range list {
		if s = link(s); s != "" {
			return s
		}
	}
	return ""
}
