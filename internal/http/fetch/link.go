package fetch

import (
	"net/textproto"
	"net/url"
	"regexp"
	"strings"
	"sync"
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
	unescape := strings.NewReplacer(`\\`, `\`, `\`, "")
	var out []Link
	for _, field := range h.Values("Link") {
		for _, link := range linkPattern().FindAllStringSubmatch(field, max(maxLinks-len(out), 0)) {
			params := map[string]string{}
			for _, p := range paramPattern().FindAllStringSubmatch(link[2], -1) {
				name := strings.ToLower(p[1])
				if _, ok := params[name]; !ok {
					params[name] = unescape.Replace(p[2]) + strings.TrimSpace(p[3])
				}
			}
			u, err := root.Parse(strings.TrimSpace(link[1]))
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

// A link with its parameters, up to the comma after it; and a parameter with its value, in quotes or not. If a name is
// repeated, its first value is used (section 3.3).
var (
	linkPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`<([^>]*)>((?:"(?:\\.|[^"\\])*"?|[^,"])*)`)
	})
	paramPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`([^\s;="]+)\s*(?:=\s*(?:"((?:\\.|[^"\\])*)"?|([^;"]*)))?`)
	})
)

// aboutDocument reports whether the context of a link is the document itself.
func aboutDocument(root *url.URL, params map[string]string) bool {
	anchor, ok := params["anchor"]
	if !ok {
		return true
	}
	context, err := root.Parse(strings.TrimSpace(anchor))
	return err == nil && context.String() == root.String()
}
