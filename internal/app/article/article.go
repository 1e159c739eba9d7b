// Package article implements lektor-article, which extracts the article of a page. Only this
// package imports go-readability.
package article

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fulltext"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Limits of a page.
const (
	maxBytes = 16 << 20
	maxTags  = 100_000 // limits the memory for the tree of elements
)

// ExtractOptions are the options of [Extract].
type ExtractOptions struct {
	URL         string // URL of the page; may be empty
	ContentType string // HTTP header field Content-Type, for the charset; may be empty
	JSON        bool   // print a [fulltext.Article] instead of HTML
}

// Extract reads a page and prints its article as HTML. If the URL of the page is known, URLs in
// the article are absolute. A page without an article is an error, except with JSON, which then
// has no content.
func Extract(ctx context.Context, o ExtractOptions, s *cmdline.Streams) error {
	var base *url.URL
	if o.URL != "" {
		u, err := url.Parse(o.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return cmdline.Usagef("--url: %q is not an http or https URL", o.URL)
		}
		u.User = nil
		base = u
	}
	page, err := s.ReadFile(ctx, "-", maxBytes)
	if err != nil {
		return err
	}
	a, err := extract(page, base, o.ContentType)
	switch {
	case err != nil:
		return err
	case o.JSON:
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a); err != nil {
			return err
		}
		_, err = s.Out.Write(termsafe.JSON(b.Bytes()))
		return err
	case a.Content == "" && a.Refresh != "":
		return cmdline.Hint(errors.New("the page has no article"), "it sends a browser to %s", a.Refresh)
	case a.Content == "":
		return errors.New("the page has no article")
	}
	// Not as references, since HTML reads those of C1 controls as other characters.
	_, err = io.WriteString(s.Out, termsafe.Clean(a.Content)+"\n")
	return err
}

// extract returns the article of a page; base may be nil. It fails if the page cannot be read. An
// article without content means that the page has none.
func extract(page []byte, base *url.URL, contentType string) (*fulltext.Article, error) {
	text := decode(page, contentType)
	if n := tags(text); n > maxTags {
		return nil, fmt.Errorf("the page has more than %d elements", maxTags)
	}
	doc, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the page cannot be read: %w", err)
	}
	a := &fulltext.Article{}
	base = resolve(base, doc)
	a.Refresh = refresh(base, doc)
	p := readability.NewParser()
	found, err := p.ParseAndMutate(doc, base)
	if err != nil || found.Node == nil {
		return a, nil // the page has no article
	}
	a.Title = found.Title()
	clean(found.Node, base)
	var b, plain strings.Builder
	if errors.Join(found.RenderHTML(&b), found.RenderText(&plain)) == nil && strings.TrimSpace(plain.String()) != "" {
		a.Content = strings.TrimSpace(b.String())
	}
	return a, nil
}

// decode converts a page to UTF-8. A page that is valid UTF-8 is read as UTF-8, unless contentType
// names a charset. A charset that the page declares itself does not count then: pages that were
// moved between servers often declare the wrong one.
func decode(page []byte, contentType string) []byte {
	_, params, _ := mime.ParseMediaType(contentType)
	enc, _, certain := charset.DetermineEncoding(page[:min(len(page), 1024)], contentType)
	if (!certain || params["charset"] == "") && utf8.Valid(page) {
		return bytes.TrimPrefix(page, []byte("\ufeff"))
	}
	text, err := enc.NewDecoder().Bytes(page)
	if err != nil {
		return bytes.ToValidUTF8(page, []byte("\ufffd"))
	}
	return text
}

// tags counts the start tags of a page, up to one more than maxTags.
func tags(page []byte) (n int) {
	z := html.NewTokenizer(bytes.NewReader(page))
	for n <= maxTags {
		switch z.Next() {
		case html.ErrorToken:
			return n
		case html.StartTagToken, html.SelfClosingTagToken:
			n++
		}
	}
	return n
}

// each calls f for the elements of a tree. The parser limits its depth.
func each(root *html.Node, f func(*html.Node)) {
	if root.Type == html.ElementNode {
		f(root)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			f(n)
		}
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// resolve returns the base URL of a page: that of its first base element, else the page's own.
func resolve(base *url.URL, doc *html.Node) *url.URL {
	declared := ""
	each(doc, func(n *html.Node) {
		if n.DataAtom == atom.Base && declared == "" {
			declared = strings.TrimSpace(attr(n, "href"))
		}
	})
	u, err := url.Parse(declared)
	switch {
	case declared == "" || err != nil:
		return base
	case base != nil:
		u = base.ResolveReference(u)
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return base
	}
	u.User = nil
	return u
}

// maxRefresh is the maximum delay of a redirect, in seconds. A page that redirects later is
// meant to be read itself.
const maxRefresh = 10

// refresh returns the URL to which a page redirects by a refresh, "" if it does not.
func refresh(base *url.URL, doc *html.Node) (to string) {
	if base == nil {
		return ""
	}
	each(doc, func(n *html.Node) {
		if n.DataAtom != atom.Meta || to != "" || !strings.EqualFold(attr(n, "http-equiv"), "refresh") {
			return
		}
		for p := n.Parent; p != nil; p = p.Parent {
			if p.DataAtom == atom.Noscript {
				return // a redirect for browsers without scripts; the page may still have an article
			}
		}
		seconds, target, ok := strings.Cut(strings.ReplaceAll(attr(n, "content"), ",", ";"), ";")
		wait := 0
		if _, err := fmt.Sscanf(strings.TrimSpace(seconds), "%d", &wait); err != nil || wait > maxRefresh || !ok {
			return
		}
		target = strings.TrimSpace(target)
		if len(target) >= 4 && strings.EqualFold(target[:3], "url") {
			target = strings.TrimLeft(target[3:], " \t=")
		}
		target = strings.Trim(target, `"' `)
		u, err := base.Parse(target)
		if err != nil || target == "" || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return
		}
		u.User, u.Fragment = nil, ""
		if here := *base; u.String() != here.String() {
			to = u.String()
		}
	})
	return to
}

// references are the attributes whose URLs are made absolute.
var references = []string{"href", "src", "poster", "cite"}

// clean removes scripts, styles, forms and their attributes from the article, and makes URLs
// absolute. lektor's viewers clean content themselves; this is for grep, and for other viewers.
func clean(root *html.Node, base *url.URL) {
	var unwanted []*html.Node
	each(root, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Object, atom.Embed, atom.Form, atom.Input,
			atom.Button, atom.Link, atom.Meta, atom.Base, atom.Template:
			unwanted = append(unwanted, n)
			return
		}
		var kept []html.Attribute
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "id" || a.Key == "class" ||
				strings.HasPrefix(a.Key, "data-") || a.Key == "srcdoc" {
				continue
			}
			if slices.Contains(references, a.Key) {
				a.Val = reference(base, a.Val)
			}
			if a.Val != "" || a.Key == "alt" {
				kept = append(kept, a)
			}
		}
		n.Attr = kept
	})
	for _, n := range unwanted {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// reference returns a URL as an absolute one, or "" if it is invalid or not of the web or mail.
func reference(base *url.URL, raw string) string {
	raw = strings.TrimSpace(raw)
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	if base != nil && u.Scheme == "" {
		u = base.ResolveReference(u)
	}
	switch u.Scheme {
	case "http", "https", "mailto", "":
		return u.String()
	}
	return ""
}
