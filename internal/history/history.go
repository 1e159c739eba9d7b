// Package history decides how the documents of one feed hang together (RFC 5005,
// and draft-nottingham-atompub-feed-history before it): what a document is, which
// one comes next, where a walk through them ends, and which of several versions of
// an entry counts. It asks for nothing and writes nothing: documents come as
// [feedconv.Feed], what was had before as a [Record], and what is to be done goes
// back as a URL or a reason.
//
// A feed is one of these:
//
//   - complete: its document has all entries there are (RFC 5005, section 2);
//   - archived: its subscription document, which is the one that changes, leads by
//     prev-archive to archive documents, which do not (section 4);
//   - paged: its documents lead from one to the next and change all the while
//     (section 3);
//   - plain: nothing is said.
//
// What a feed is that is several of these at once, the RFC leaves open. Here
// fh:complete on the document that is subscribed to wins over every link, and means
// nothing on one that was reached as an archive; of archives and pages, archives
// are walked, and pages on request.
package history

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feedurl"
)

// Kind is what a document is.
type Kind string

// The kinds. Their text is what is kept and shown of them.
const (
	Plain    Kind = ""
	Complete Kind = "complete" // all entries of the feed
	Archived Kind = "archived" // the subscription document of a feed that has archives
	Archive  Kind = "archive"  // an archive document
	Paged    Kind = "paged"    // a page
)

// Document is what a feed document says of others. URLs are as [Normal] makes
// them, but for those that are none; "" stands for a link that is not there.
type Document struct {
	Kind Kind
	URL  string // its own, which its links are judged from
	// Prev is the archive before this document, Next the next page.
	Prev, Next string
	// Guessed tells that no link says so, and Next is where the generator of the
	// feed usually has its next page.
	Guessed bool
	// Current is the subscription document that this one is an archive of, where
	// that is another one.
	Current string
	// Self is what the document calls itself, if it may: a URL of its own origin.
	Self string
}

// Subscribed reads a document as one that is subscribed to. final is where it came
// from after redirects, and asked are the URLs by which it is known otherwise.
func Subscribed(f *feedconv.Feed, final string, asked ...string) Document {
	d := begin(f, final)
	own := append([]string{d.URL}, asked...)
	links := linksOf(f)
	own = append(own, links.href("self"))
	current := links.href("current")
	elsewhere := current != ""
	for _, u := range own {
		elsewhere = elsewhere && Normal(u) != current
	}
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
	// Nothing is linked: not an archive either.
	if d.Kind == Plain && wordpress(f) {
		d.Next, d.Guessed = PageURL(d.URL, 2), true
	}
	return d
}

// Reached reads a document that the prev-archive of another one led to. Whether it
// says that it is an archive does not matter (RFC 5005, section 4: it should); it
// is read as one.
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

// Page reads a document that the next of another one led to.
func Page(f *feedconv.Feed, final string) Document {
	d := begin(f, final)
	d.Kind, d.Next = Paged, linksOf(f).href("next")
	return d
}

func begin(f *feedconv.Feed, final string) Document {
	d := Document{URL: Normal(final)}
	// Of another origin it would be a claim to the place of somebody else's
	// document (draft -05, section 6).
	if self := linksOf(f).href("self"); self != "" && SameOrigin(self, d.URL) {
		d.Self = self
	}
	return d
}

// wordpress tells whether a feed was made by WordPress, which has pages of every
// feed under ?paged=2 and so on, and links to none of them.
func wordpress(f *feedconv.Feed) bool {
	return strings.Contains(strings.ToLower(f.Generator.Name), "wordpress")
}

// PageURL gives the URL of a page of a feed made by WordPress, "" where there is
// none.
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

// links are those of the head of a document, by relation.
type links []feedconv.Link

// linksOf gives the links that may be followed, and behind them the others: that an
// archive is missing is to be told, whatever its URL is.
func linksOf(f *feedconv.Feed) links { return slices.Concat(links(f.Links), links(f.Refused)) }

// registered is what stands before the name of a relation that is written in full
// (RFC 4287, section 4.2.7.2).
const registered = "http://www.iana.org/assignments/relation/"

// is reports whether a link has a relation.
func is(l feedconv.Link, rel string) bool {
	return strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(l.Rel), registered), rel)
}

// href returns the first link of a relation, "" for none.
func (l links) href(rel string) string {
	for _, link := range l {
		if is(link, rel) && strings.TrimSpace(link.Href) != "" {
			return Normal(link.Href)
		}
	}
	return ""
}

// archive returns the link prev-archive of a document, "" for none. An empty one leads to
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

// paged tells whether one of the relations of pages is there; any of them makes a
// page (RFC 5005, section 3).
func (l links) paged() bool {
	return l.href("next") != "" || l.href("previous") != "" || l.href("first") != "" || l.href("last") != ""
}

// chained tells whether previous, if it is there, may lead to an archive, as it did
// in draft -05. Pages lead by it to newer ones.
func (l links) chained() bool {
	return l.href("next") == "" && l.href("first") == "" && l.href("last") == ""
}

// Normal gives the form of a URL in which it is compared and kept: without
// fragment, scheme and host in lower case. What is no http or https URL stays as
// it is, but fits in a field.
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

// SameOrigin tells whether what belongs to the URL a may be sent to the URL b.
func SameOrigin(a, b string) bool {
	return feedurl.IsHTTP(a) && feedurl.IsHTTP(b) && feedurl.SameOrigin(a, b)
}

// LinkError is a link that is not followed.
type LinkError struct{ URL, Reason string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s: %s", feedurl.Brief(feedurl.Public(e.URL)), e.Reason)
}

// Check is the error for a link that is not followed from a document: a stranger
// wrote it, and it may name what only the user may ask for. The document is at the
// URL from.
func Check(from, to string) error {
	u, err := feedurl.Parse(to)
	var bad *feedurl.Error
	switch {
	case errors.As(err, &bad):
		reason := bad.Reason
		if u, err := url.Parse(to); err == nil && u.Scheme != "" && !feedurl.IsHTTP(to) {
			// A user may name files and commands, and no stranger may.
			reason = "only http: and https: are followed, not " + u.Scheme + ":"
		}
		return &LinkError{to, "the link to it is not followed: " + reason}
	case err != nil:
		return &LinkError{to, "the link to it is not followed: " + err.Error()}
	case u.User != nil:
		return &LinkError{to, "the link to it is not followed: it has a user name or password in it"}
	case u.Scheme == "http" && strings.HasPrefix(strings.ToLower(from), "https:"):
		return &LinkError{to, "the link to it is not followed: it leads from https to http"}
	}
	return nil
}
