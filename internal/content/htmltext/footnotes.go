package htmltext

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// footnotes are the URLs of a document.
type footnotes struct {
	none     bool     // no URL gets a footnote
	base     *url.URL // base for relative links, or nil
	urls     []string // URLs of the footnotes
	number   map[string]int
	unlisted int
	pictures []string
}

func newFootnotes(o Options) footnotes {
	f := footnotes{none: o.Bare}
	// With a long base, many short links would multiply the size of a document.
	if len(o.Base) < 1000 {
		if u, err := url.Parse(o.Base); err == nil && u.Host != "" {
			f.base = u
		}
	}
	return f
}

// target returns the URL of a link, or "" if it leads to no other page.
func (f *footnotes) target(href string) string {
	href = strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' || c == '\t' {
			return -1
		}
		return c
	}, strings.TrimSpace(href))
	if href == "" || href[0] == '#' || markup.Link(href) == "" {
		return ""
	}
	u, err := url.Parse(href)
	if err != nil {
		return termsafe.Line(href)
	}
	if u.Scheme == "" && f.base != nil {
		href = f.base.ResolveReference(u).String()
	}
	return termsafe.Line(href)
}

// note returns the mark of the footnote for a URL, or "" if the URL gets no footnote.
func (f *footnotes) note(target string) string {
	if target == "" || f.none {
		return ""
	}
	n, ok := f.number[target]
	if !ok {
		if len(f.urls) >= maxFootnotes {
			f.unlisted++
			return ""
		}
		if f.number == nil {
			f.number = map[string]int{}
		}
		f.urls = append(f.urls, target)
		n = len(f.urls)
		f.number[target] = n
	}
	return "[" + strconv.Itoa(n) + "]"
}
