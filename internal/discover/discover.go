// Package discover finds the feeds that an HTML page links to.
package discover

import (
	"bytes"
	"mime"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// The limits of [Page].
const (
	MaxBytes = 4 << 20 // of a page that are looked at
	MaxLinks = 64      // of each kind that are returned
	maxURL   = 8000    // bytes of a link; servers need not take more (RFC 9110, section 4.1)
)

// Link is a document that a page links to.
type Link struct {
	URL   string // absolute where the page's URL is
	Type  string // MIME type as given, in lower case; may be empty
	Title string // one line; may be empty
}

// Result is what a page links to.
type Result struct {
	Title string // of the page
	// Feeds are the feeds in the order of the page, each once.
	Feeds []Link
	// Guessed is set when the page declares no feed, and Feeds are plain links
	// that look like ones.
	Guessed bool
	// ESS and NNO are links to documents that tell cheaply whether the
	// page's feeds have changed.
	ESS, NNO []Link
}

// types are the MIME types of feeds. The generic ones count on
// rel="alternate" alone, where a page has no reason to name anything else.
var types = map[string]bool{
	"application/rss+xml":       true,
	"application/atom+xml":      true,
	"application/feed+json":     true,
	"application/rdf+xml":       true,
	"application/x.atom+xml":    true,
	"application/x-atom+xml":    true,
	"application/x-rss+xml":     true,
	"application/rss":           true,
	"application/atom":          true,
	"application/rss+json":      true,
	"application/activity+json": false, // a person, not a list of posts
	"text/rss":                  true,
	"text/rss+xml":              true,
	"text/atom+xml":             true,
	"text/xml":                  true,
	"application/xml":           true,
	"application/json":          true,
}

// Page looks for feeds in a page that was found at pageURL (after redirects).
// contentType is the HTTP header field, for its charset. The page may be
// anything; nothing in it makes Page fail.
func Page(body []byte, pageURL, contentType string) Result {
	if len(body) > MaxBytes {
		body = body[:MaxBytes]
	}
	enc, _, _ := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	text, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}
	base, err := url.Parse(strings.TrimSpace(pageURL))
	if err != nil {
		base = nil
	}
	var r Result
	var guesses []Link
	seen := map[string]bool{}
	add := func(list *[]Link, l Link) {
		if l.URL = resolve(base, l.URL); l.URL == "" || len(l.URL) > maxURL || seen[l.URL] || len(*list) >= MaxLinks {
			return
		}
		seen[l.URL] = true
		*list = append(*list, l)
	}
	type guess struct{ href, text string }
	var anchor *guess // the <a> that is open
	var anchors []guess
	inTitle, haveBase := false, false
	z := html.NewTokenizer(bytes.NewReader(text))
	z.SetMaxBuf(1 << 20)
loop:
	for {
		switch z.Next() {
		case html.ErrorToken:
			break loop
		case html.TextToken:
			if inTitle && r.Title == "" {
				r.Title = fold(string(z.Text()))
			} else if anchor != nil && len(anchor.text) < 200 {
				anchor.text += string(z.Text())
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			switch atom.Lookup(name) {
			case atom.Title:
				inTitle = false
			case atom.A:
				anchor = nil
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := atom.Lookup(name)
			switch tag {
			case atom.Title:
				inTitle = true
				continue
			case atom.Base, atom.Link, atom.A:
			default:
				continue
			}
			attrs := map[string]string{}
			for more {
				var k, v []byte
				k, v, more = z.TagAttr()
				if _, ok := attrs[string(k)]; !ok && len(attrs) < 64 {
					attrs[string(k)] = string(v)
				}
			}
			href := cleanURL(attrs["href"])
			switch {
			case tag == atom.Base:
				// Only the first counts (HTML, "The base element").
				if href != "" && !haveBase {
					haveBase = true
					if u := resolve(base, href); u != "" {
						if b, err := url.Parse(u); err == nil && b.IsAbs() {
							base = b
						}
					}
				}
			case href == "":
			case tag == atom.Link:
				l := Link{URL: href, Type: mediaType(attrs["type"]), Title: fold(attrs["title"])}
				switch kind(attrs["rel"], l.Type) {
				case feedLink:
					add(&r.Feeds, l)
				case essLink:
					add(&r.ESS, l)
				case nnoLink:
					add(&r.NNO, l)
				}
			case tag == atom.A:
				anchor = nil
				if looksLikeFeed(href) || types[mediaType(attrs["type"])] {
					if len(anchors) < MaxLinks {
						anchors = append(anchors, guess{href: href, text: attrs["title"]})
						anchor = &anchors[len(anchors)-1]
					}
				}
			}
		}
	}
	if len(r.Feeds) == 0 {
		for _, a := range anchors {
			add(&guesses, Link{URL: a.href, Title: fold(a.text)})
		}
		r.Feeds, r.Guessed = guesses, len(guesses) > 0
	}
	return r
}

type linkKind int

const (
	otherLink linkKind = iota
	feedLink
	essLink
	nnoLink
)

// kind tells what a <link> with this rel and type is.
func kind(rel, typ string) linkKind {
	has := func(want string) bool {
		for r := range strings.FieldsSeq(rel) {
			if strings.EqualFold(r, want) {
				return true
			}
		}
		return false
	}
	switch {
	case strings.HasPrefix(typ, "application/ess"), has("ess"):
		return essLink
	case strings.HasPrefix(typ, "application/nno"), has("nno"):
		return nnoLink
	case has("stylesheet"):
		return otherLink
	case has("feed") && !has("alternate"):
		// The rel of HTML drafts: the type is only advice then.
		return feedLink
	case has("alternate") && types[typ]:
		if typ == "application/json" && !has("feed") {
			// WordPress names its REST API so.
			return otherLink
		}
		return feedLink
	}
	return otherLink
}

// mediaType gives a MIME type without parameters, in lower case.
func mediaType(s string) string {
	if t, _, err := mime.ParseMediaType(s); err == nil {
		return t
	}
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// looksLikeFeed reports whether a plain link probably leads to a feed.
func looksLikeFeed(href string) bool {
	u, err := url.Parse(href)
	if err != nil {
		return false
	}
	if strings.EqualFold(u.Scheme, "feed") {
		return true
	}
	p := strings.ToLower(strings.TrimRight(u.Path, "/"))
	switch path.Base(p) {
	case "feed", "feeds", "rss", "atom", "feed.json", "rss.json":
		return true
	}
	switch path.Ext(p) {
	case ".rss", ".xml", ".atom", ".rdf":
		return path.Base(p) != "sitemap.xml" && path.Base(p) != "opensearch.xml"
	}
	return false
}

// resolve gives the absolute URL of a reference, or "" for one that can be no
// feed. Absolute ones stay byte for byte.
func resolve(base *url.URL, ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "http" || scheme == "https":
		if u.Host == "" {
			return ""
		}
		ref, _, _ = strings.Cut(ref, "#")
		return ref
	case scheme == "feed":
		// feed://host/… and feed:https://host/…, of old readers' buttons.
		rest := ref[len("feed:"):]
		if strings.HasPrefix(rest, "//") {
			return resolve(base, "http:"+rest)
		}
		if inner, err := url.Parse(rest); err == nil && (inner.Scheme == "http" || inner.Scheme == "https") {
			return resolve(base, rest)
		}
		return ""
	case scheme != "":
		return ""
	}
	if base == nil {
		return ref
	}
	abs := base.ResolveReference(u)
	abs.Fragment, abs.RawFragment = "", ""
	if s := strings.ToLower(abs.Scheme); s != "http" && s != "https" && s != "file" {
		return ""
	}
	return abs.String()
}

// cleanURL strips what browsers strip from a URL: white space around it, tabs
// and newlines in it.
func cleanURL(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, strings.TrimSpace(s))
}

// fold makes one line of text.
func fold(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "")
	}
	return s
}
