package fetch

import (
	"net/textproto"
	"net/url"
	"strings"
)

// maxLinks is the maximum number of links read from one header.
const maxLinks = 32

// Link is a link from a Link header field.
type Link struct {
	Rel string // one relation, in lower case
	URL string // absolute if base is absolute
}

// Links parses the Link header fields of a response (RFC 8288, section 3), and returns a Link for
// each relation. base is the URL of the document. Malformed links, links whose anchor names another
// document (section 3.2), and all fields after the first maxLinks links are left out.
func Links(h textproto.MIMEHeader, base string) []Link {
	root, err := url.Parse(base)
	if err != nil {
		root = &url.URL{}
	}
	root.Fragment, root.RawFragment = "", ""
	var out []Link
	for _, s := range h.Values("Link") {
		for len(out) < maxLinks {
			_, after, ok := strings.Cut(s, "<")
			target, after, closed := strings.Cut(after, ">")
			if !ok || !closed {
				break
			}
			var params map[string]string
			params, s = linkParams(after)
			u, err := root.Parse(strings.TrimSpace(target))
			if err != nil || !aboutDocument(root, params) {
				continue
			}
			for rel := range strings.FieldsSeq(strings.ToLower(params["rel"])) {
				out = append(out, Link{Rel: rel, URL: u.String()})
			}
		}
	}
	return out
}

// aboutDocument reports whether the context of a link is the document itself.
func aboutDocument(root *url.URL, params map[string]string) bool {
	anchor, ok := params["anchor"]
	if !ok {
		return true
	}
	context, err := root.Parse(strings.TrimSpace(anchor))
	return err == nil && context.String() == root.String()
}

// linkParams parses the parameters of one link, up to the comma after it. If a name is repeated,
// its first value is used (section 3.3). Names are in lower case.
func linkParams(s string) (params map[string]string, rest string) {
	params = map[string]string{}
	for {
		s = strings.TrimLeft(s, " \t;")
		if s == "" || s[0] == ',' {
			return params, strings.TrimPrefix(s, ",")
		}
		i := strings.IndexAny(s, "=;,")
		if i < 0 {
			return params, ""
		}
		name := strings.ToLower(strings.TrimSpace(s[:i]))
		if s[i] != '=' {
			s = s[i:]
			continue
		}
		var value string
		value, s = linkValue(strings.TrimLeft(s[i+1:], " \t"))
		if _, ok := params[name]; !ok {
			params[name] = value
		}
	}
}

// linkValue parses the value of a parameter, a token or a quoted string.
func linkValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, ";,")
		if i < 0 {
			i = len(s)
		}
		return strings.TrimSpace(s[:i]), s[i:]
	}
	var b strings.Builder
	i := 1
	for ; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), s[min(i+1, len(s)):]
}
