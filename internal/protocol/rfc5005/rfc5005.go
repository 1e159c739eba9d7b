// Package rfc5005 implements the rules for the documents of one feed (RFC 5005, and
// draft-nottingham-atompub-feed-history before it): the kind of a document, which one comes next,
// where a walk through them ends, and which of several versions of an entry to use. It makes no
// requests and writes nothing: documents are passed as [feedconv.Feed], stored ones as a [Record];
// the results are URLs and reasons.
//
// A feed is one of these:
//
//   - complete: its document has all entries of the feed (RFC 5005, section 2);
//   - archived: its subscription document, which changes, links by prev-archive to archive
//     documents, which do not change (section 4);
//   - paged: its documents link from one to the next and change all the time (section 3);
//   - plain: no link or mark.
//
// The RFC does not say what a feed is that is several of these at once. Here fh:complete on the
// subscription document wins over every link. On an archive it means nothing. If there are archives
// and pages, archives are walked, and pages only on request.
package rfc5005

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// Kind is the kind of a document.
type Kind string

// The kinds. Their text is stored and displayed.
const (
	Plain    Kind = ""
	Complete Kind = "complete" // all entries of the feed
	Archived Kind = "archived" // the subscription document of a feed that has archives
	Archive  Kind = "archive"  // an archive document
	Paged    Kind = "paged"    // a page
)

// Document is the kind and the links of a feed document. URLs are normalised by [Normal], except
// invalid ones; "" means no link.
type Document struct {
	Kind Kind
	URL  string // its own URL, from which links are checked
	// Prev is the archive before this document, Next the next page.
	Prev, Next string
	// Guessed is set if no link names Next: it is the usual next page of the generator of the feed.
	Guessed bool
	// Current is the subscription document that this one is an archive of, if it is another
	// document.
	Current string
	// Self is the document's own self link, if it has the same origin as URL.
	Self string
}

// Subscribed returns the Document of a subscription document. final is its URL after redirects, and
// asked are its other known URLs.
func Subscribed(f *feedconv.Feed, final string, asked ...string) Document {
	d := begin(f, final)
	links := linksOf(f)
	current := links.href("current")
	elsewhere := current != "" && !slices.ContainsFunc(append([]string{d.URL, links.href("self")}, asked...),
		func(own string) bool { return Normal(own) == current })
	if elsewhere {
		d.Current = current
	}
	d.Prev = links.archive(d.URL)
	if d.Prev == "" && links.chained() {
		d.Prev = links.href("previous")
	}
	d.Next = links.href("next")
	switch {
	case f.Complete:
		d.Prev, d.Next, d.Current = "", "", ""
		d.Kind = Complete
	case elsewhere, f.Archive && current == "":
		d.Kind = Archive
	case d.Prev != "":
		d.Kind = Archived
	case links.paged():
		d.Kind = Paged
	}
	// A plain document has no links, so guess the next page if WordPress made it.
	if d.Kind == Plain && wordpress(f) {
		d.Next, d.Guessed = PageURL(d.URL, 2), true
	}
	return d
}

// Reached returns the Document of a document that a prev-archive link led to. It is an archive even
// if it is not marked as one (RFC 5005, section 4: it should be).
func Reached(f *feedconv.Feed, final string) Document {
	d := begin(f, final)
	d.Kind = Archive
	links := linksOf(f)
	d.Current = links.href("current")
	d.Prev = links.archive(d.URL)
	if d.Prev == "" && d.Current != "" && links.chained() {
		d.Prev = links.href("previous")
	}
	return d
}

// Page returns the Document of a document that a next link led to.
func Page(f *feedconv.Feed, final string) Document {
	d := begin(f, final)
	d.Kind, d.Next = Paged, linksOf(f).href("next")
	return d
}

func begin(f *feedconv.Feed, final string) Document {
	d := Document{URL: Normal(final)}
	// A self link to another origin would claim the place of somebody else's document (draft -05,
	// section 6).
	if self := linksOf(f).href("self"); self != "" && SameOrigin(self, d.URL) {
		d.Self = self
	}
	return d
}

// wordpress reports whether WordPress made the feed. It has pages of every feed under ?paged=2 and
// so on, but does not link to them.
func wordpress(f *feedconv.Feed) bool {
	return strings.Contains(strings.ToLower(f.Generator.Name), "wordpress")
}

// PageURL returns the URL of a page of a feed made by WordPress, "" if the URL of the feed is
// invalid.
func PageURL(feed string, page int) string {
	u, err := feedurl.Parse(feed)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("paged", strconv.Itoa(page))
	u.RawQuery = q.Encode()
	return u.String()
}

// links are the links of the head of a document.
type links []feedconv.Link

// linksOf returns the valid links, and after them the refused ones: a missing archive must be
// reported, even if its URL is invalid.
func linksOf(f *feedconv.Feed) links { return slices.Concat(links(f.Links), links(f.Refused)) }

// registered is the prefix of the name of a relation written as a URI (RFC 4287, section 4.2.7.2).
const registered = "http://www.iana.org/assignments/relation/"

// is reports whether a link has a relation.
func is(l feedconv.Link, rel string) bool {
	return strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(l.Rel), registered), rel)
}

// href returns the first link with a relation, "" if there is none.
func (l links) href(rel string) string {
	for _, link := range l {
		if is(link, rel) && strings.TrimSpace(link.URL) != "" {
			return Normal(link.URL)
		}
	}
	return ""
}

// archive returns the prev-archive link of a document, "" if there is none. An empty link is one to
// the document itself (RFC 3986, section 4.4), which is not the end of the archives.
func (l links) archive(own string) string {
	const rel = "prev-archive"
	if prev := l.href(rel); prev != "" {
		return prev
	}
	if slices.ContainsFunc(l, func(link feedconv.Link) bool { return is(link, rel) }) {
		return own
	}
	return ""
}

// paged reports whether there is a link with a relation of pages; any of them makes a page (RFC
// 5005, section 3).
func (l links) paged() bool {
	return l.href("next") != "" || l.href("previous") != "" || l.href("first") != "" || l.href("last") != ""
}

// chained reports whether a previous link may lead to an archive, as in draft -05. In pages it
// leads to newer ones.
func (l links) chained() bool {
	return l.href("next") == "" && l.href("first") == "" && l.href("last") == ""
}

// Normal returns the form of a URL for comparison and storage: without fragment, scheme and host in
// lower case. Any other URL than http and https is returned without white space.
func Normal(raw string) string {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return ""
	}
	u, err := feedurl.Parse(raw)
	if err != nil {
		return strings.Join(strings.Fields(strings.ReplaceAll(raw, "\x00", "")), "%20")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// SameOrigin reports whether headers for the URL a may be sent to the URL b.
func SameOrigin(a, b string) bool {
	return feedurl.IsHTTP(a) && feedurl.IsHTTP(b) && feedurl.SameOrigin(a, b)
}

// Check returns the reason why a link from the document at from must not be followed, or nil: a stranger
// wrote it, and it may name something that only the user may request.
func Check(from, to string) *Stop {
	const refused = "the link to it is not followed: "
	u, err := feedurl.Parse(to)
	if bad, ok := errors.AsType[*feedurl.Error](err); ok {
		if u, err := url.Parse(to); err == nil && u.Scheme != "" && !feedurl.IsHTTP(to) {
			// A user may name files and commands, a stranger may not.
			return &Stop{to, refused + "only http: and https: are followed, not " + u.Scheme + ":"}
		}
		return &Stop{to, refused + bad.Reason}
	}
	switch {
	case u.User != nil:
		return &Stop{to, refused + "it has a user name or password in it"}
	case u.Scheme == "http" && strings.HasPrefix(strings.ToLower(from), "https:"):
		return &Stop{to, refused + "it leads from https to http"}
	}
	return nil
}
