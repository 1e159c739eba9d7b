// Package discover finds the feeds that an HTML page links to, and the ESS and NNO documents of a page or a feed.
package discover

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// The limits of [Page].
const (
	MaxBytes = 4 << 20 // bytes of a page that are searched
	MaxLinks = 1000    // returned links of each kind
	maxURL   = 8000    // bytes of a link; servers need not take more (RFC 9110, section 4.1)
)

// Link is a document that a page links to.
type Link struct {
	URL   string // absolute if the URL of the page is absolute
	Type  string // MIME type as given, in lower case; may be empty
	Title string // one line; may be empty
}

// Result is what a page links to.
type Result struct {
	Title string // title of the page
	// Feeds are the feeds in the order of the page, without duplicates.
	Feeds []Link
	// Guessed is set if the page declares no feed, and Feeds are plain links that look like feeds.
	Guessed bool
	// ESS and NNO are links to small documents that show whether the feeds of the page have
	// changed.
	ESS, NNO []Link
	// Refresh is the page to which a browser would go on at once or after a while, or "".
	Refresh string
	// Challenge is set if the page is not the document that was asked for, but asks for proof that
	// a browser asks.
	Challenge bool
	// Limit is the limit that was exceeded: "4 MB" of the page, or "1000 links" of a kind; "" if
	// nothing was left out.
	Limit string
}

// types are the MIME types of feeds. Generic types are accepted because rel="alternate" is
// required, with which pages rarely name anything else.
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

// Page returns the feeds of a page at pageURL (after redirects). contentType is the HTTP header
// field, for its charset. Page accepts any input.
func Page(body []byte, pageURL, contentType string) Result {
	limit := ""
	if len(body) > MaxBytes {
		body, limit = body[:MaxBytes], fmt.Sprintf("%d MB", MaxBytes>>20)
	}
	enc, _, _ := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	text, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}
	s := scanner{Result: Result{Limit: limit}, z: html.NewTokenizer(bytes.NewReader(text)), seen: map[string]bool{},
		hrefs: map[string]bool{}}
	if base, err := url.Parse(strings.TrimSpace(pageURL)); err == nil {
		s.base = base
	}
	for s.token() {
	}
	if len(s.Feeds) == 0 {
		for _, a := range s.anchors {
			a.Title = fold(a.Title)
			s.add(&s.Feeds, a)
		}
		s.Guessed = len(s.Feeds) > 0
	}
	s.Challenge = slices.ContainsFunc(challenges,
		func(title string) bool { return strings.HasPrefix(strings.ToLower(s.Title), title) })
	return s.Result
}

// InFeed returns the ESS and NNO documents among the links of a feed.
func InFeed(links []feedconv.Link) Result {
	s := scanner{seen: map[string]bool{}}
	for _, l := range links {
		l.Type = textfile.BaseType(l.Type)
		if list := s.list("", l.Type, l.URL); list != nil {
			s.add(list, Link{URL: l.URL, Type: l.Type, Title: l.Title})
		}
	}
	return s.Result
}

// challenges are the beginnings of the titles of such pages, in lower case: of Cloudflare, DDoS-Guard,
// Anubis, Vercel and Imperva.
var challenges = []string{
	"just a moment...", "attention required! | cloudflare", "please wait... | cloudflare", "checking your browser",
	"ddos-guard",
	"making sure you're not a bot", "vercel security checkpoint", "pardon our interruption",
}

// Guesses returns URLs at which the feed of a page without links may be, the likeliest first: usual
// names, at the root of the site or of a user's part of it ("/~ann/"). It returns none if pageURL
// is not http or https.
func Guesses(pageURL string) []string {
	u, err := url.Parse(strings.TrimSpace(pageURL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	root := &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: "/"}
	if user, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/"); strings.HasPrefix(user, "~") {
		root.Path = "/" + user + "/"
	}
	var guesses []string
	for _, name := range []string{"feed", "feed.xml", "rss.xml", "atom.xml", "feed.json", "index.xml"} {
		guesses = append(guesses, root.JoinPath(name).String())
	}
	return guesses
}

// scanner parses a page.
type scanner struct {
	Result
	z        *html.Tokenizer
	base     *url.URL // nil if the URL of the page is invalid
	haveBase bool     // the page has a base element
	seen     map[string]bool
	inTitle  bool
	anchors  []Link          // plain links that look like feeds, as found
	hrefs    map[string]bool // the URLs of anchors
	open     *Link           // the anchor whose text is being read, or nil
}

// add adds a link unless it is listed already.
func (s *scanner) add(list *[]Link, l Link) {
	if l.URL = resolve(s.base, l.URL); l.URL == "" || len(l.URL) > maxURL || s.seen[l.URL] {
		return
	}
	s.seen[l.URL] = true
	if len(*list) >= MaxLinks {
		s.Limit = cmp.Or(s.Limit, fmt.Sprintf("%d links", MaxLinks))
		return
	}
	*list = append(*list, l)
}

// token parses a token, and returns false at the end.
func (s *scanner) token() bool {
	switch s.z.Next() {
	case html.ErrorToken:
		return false
	case html.TextToken:
		if s.inTitle && s.Title == "" {
			s.Title = fold(string(s.z.Text()))
		} else if s.open != nil && len(s.open.Title) < 200 {
			s.open.Title += string(s.z.Text())
		}
	case html.EndTagToken:
		name, _ := s.z.TagName()
		switch atom.Lookup(name) {
		case atom.Title:
			s.inTitle = false
		case atom.A:
			s.open = nil
		}
	case html.StartTagToken, html.SelfClosingTagToken:
		name, more := s.z.TagName()
		switch tag := atom.Lookup(name); tag {
		case atom.Title:
			s.inTitle = true
		case atom.Noscript:
			s.z.NextIsNotRawText()
		case atom.Base, atom.Link, atom.A, atom.Meta:
			attrs := map[string]string{}
			for more {
				var k, v []byte
				k, v, more = s.z.TagAttr()
				if _, ok := attrs[string(k)]; !ok && len(attrs) < 64 {
					attrs[string(k)] = string(v)
				}
			}
			if tag == atom.Meta {
				s.meta(attrs)
			} else if href := markup.TrimURL(attrs["href"]); href != "" {
				s.link(tag, href, attrs)
			} else if tag == atom.A {
				s.open = nil
			}
		}
	}
	return true
}

// meta sets Refresh if the element says so, unless it only reloads the page.
func (s *scanner) meta(attrs map[string]string) {
	if !strings.EqualFold(strings.TrimSpace(attrs["http-equiv"]), "refresh") || s.Refresh != "" {
		return
	}
	// HTML, "Refresh state (http-equiv="refresh")".
	to := strings.TrimLeft(attrs["content"], " \t\n\r\f0123456789.")
	to = strings.TrimLeft(to, " \t\n\r\f;,")
	if len(to) > 3 && strings.EqualFold(to[:3], "url") {
		if after, ok := strings.CutPrefix(strings.TrimSpace(to[3:]), "="); ok {
			to = strings.TrimSpace(after)
		}
	}
	if to != "" && (to[0] == '"' || to[0] == '\'') {
		to, _, _ = strings.Cut(to[1:], to[:1])
	}
	if to = markup.TrimURL(to); to == "" {
		return
	}
	if to = resolve(s.base, to); len(to) <= maxURL && (s.base == nil || to != s.base.String()) {
		s.Refresh = to
	}
}

// link handles an element that links to href.
func (s *scanner) link(tag atom.Atom, href string, attrs map[string]string) {
	l := Link{URL: href, Type: textfile.BaseType(attrs["type"]), Title: fold(attrs["title"])}
	switch tag {
	case atom.Base:
		// Only the first counts (HTML, "The base element").
		if b, err := url.Parse(resolve(s.base, href)); err == nil && b.IsAbs() && !s.haveBase {
			s.base = b
		}
		s.haveBase = true
	case atom.Link:
		if list := s.list(attrs["rel"], l.Type, href); list != nil {
			s.add(list, l)
		}
	case atom.A:
		s.open = nil
		// One more than MaxLinks shows that there are more.
		if (LooksLikeFeed(href) || types[l.Type]) && len(s.anchors) <= MaxLinks && !s.hrefs[href] {
			s.hrefs[href] = true
			l.Type = ""
			s.anchors = append(s.anchors, l)
			s.open = &s.anchors[len(s.anchors)-1]
		}
	}
}

// list returns the list for a <link> with this rel, type and href, nil for none.
func (s *scanner) list(rel, typ, href string) *[]Link {
	words := strings.Fields(strings.ToLower(rel))
	has := func(want string) bool { return slices.Contains(words, want) }
	switch {
	case strings.HasPrefix(typ, "application/ess"), has("ess"):
		return &s.ESS
	case strings.HasPrefix(typ, "application/nno"), has("nno"):
		return &s.NNO
	case has("stylesheet"), typ == "application/json" && !has("feed") && strings.Contains(href, "wp-json"):
		return nil // or the REST API of WordPress
	case has("feed") && !has("alternate"), has("alternate") && types[typ]:
		return &s.Feeds // in HTML drafts, the type of rel=feed was only advice
	}
	return nil
}

// LooksLikeFeed reports whether a URL is probably that of a feed, by its scheme, its path, or a
// parameter as in ?feed=rss2 (WordPress) and ?format=feed&type=atom (Joomla).
func LooksLikeFeed(href string) bool {
	u, err := url.Parse(href)
	if err != nil {
		return false
	}
	if strings.EqualFold(u.Scheme, "feed") {
		return true
	}
	p := strings.ToLower(strings.TrimRight(u.Path, "/"))
	switch path.Base(p) {
	case "feed", "feeds", "rss", "rss2", "atom", "feed.json", "rss.json", "feed.php", "rss.php", "atom.php":
		return true
	}
	query := u.Query()
	for _, key := range []string{"feed", "format", "type", "alt", "output"} {
		if slices.Contains([]string{"feed", "rss", "rss2", "atom", "rdf"}, strings.ToLower(query.Get(key))) {
			return true
		}
	}
	switch path.Ext(p) {
	case ".rss", ".xml", ".atom", ".rdf":
		return path.Base(p) != "sitemap.xml" && path.Base(p) != "opensearch.xml"
	}
	return strings.Contains(p, "/feeds/posts/") // of Blogger
}

// resolve returns the absolute URL of a reference, or "" if it cannot be a feed. It does not change
// absolute URLs, except for the fragment.
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
		// feed://host/… and feed:https://host/…, from buttons of old readers.
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

// fold returns s on one line, truncated to 500 bytes.
func fold(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "")
	}
	return s
}
