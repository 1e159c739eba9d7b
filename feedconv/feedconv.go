// Package feedconv turns feed documents as they are found into feeds and
// entries, and entries back into feed documents. It knows formats only: no
// disk, no network.
//
// Reading has three stages. Tidy makes one clean, bounded document of the
// bytes received; gofeed maps it; finish sets each field by rules
// that are the same for every format. A document that had to be mended is
// read as far as it can be and says so in [Feed.Warnings]. See [Parse] for
// reading, [EncodeAtom], [EncodeRSS] and [EncodeJSON] for writing, [Extension]
// for what other vocabularies say, and [PlainText] for what entries say without
// their markup.
//
// gofeed has no place for some of a document in XML, which finish takes from tidy's tree:
// extensions, in their order and with the namespaces of their attributes; attributes of a
// feed and of an entry, rdf:about and xml:lang too (but that of an Atom feed); the types
// of Atom's titles, subtitles, summaries and rights; all authors of an RSS item but one;
// and the URL that a relative guid stands for. Long contents and summaries of entries go
// around gofeed, which returns them unchanged but slowly. JSON is read without it.
//
// All functions are safe for concurrent use. Nothing in a document makes them
// panic, hang, or take more than a small multiple of [Options.MaxBytes]. A program
// that reads many documents at once bounds how many of them are big.
package feedconv

import (
	"fmt"
	"strings"
	"time"
)

// Options say where a document came from and what it may cost. The zero value
// reads a document of unknown origin under the default limits.
type Options struct {
	// URL is where the document was found after redirects; relative
	// references are resolved against it.
	URL string
	// ContentType, ContentLocation and ContentLanguage are the values of the
	// HTTP header fields of these names, empty when absent.
	ContentType, ContentLocation, ContentLanguage string
	// MaxBytes limits the document, before and after decompression.
	MaxBytes int64
	// MaxEntries limits the entries taken; those beyond it are left out with
	// a warning.
	MaxEntries int

	reading *reading
}

// Format names the format of a document.
type Format string

// The formats that [Parse] reads.
const (
	RSS09           Format = "rss0.9x"  // RSS 0.90 to 0.94, and RSS without a version
	RSS10           Format = "rss1.0"   // RDF Site Summary
	RSS20           Format = "rss2.0"   //
	Atom03          Format = "atom0.3"  //
	Atom10          Format = "atom1.0"  // RFC 4287
	JSONFeed        Format = "jsonfeed" // JSON Feed 1.0 and 1.1
	RSSInJSON       Format = "rssinjson"
	ActivityStreams Format = "activitystreams" // 1.0 and 2.0 collections
)

// Feed is a feed document. Lists other than Entries hold at most 1000 elements
// in a feed and in each entry. Strings are valid UTF-8 without NUL and C0 controls
// other than tab and newline. URLs are absolute wherever a base was known.
//
//rules:allow a record
type Feed struct {
	Format Format
	// ID is the feed's own identifier (Atom id, rdf:about), byte for byte as
	// found, empty where the format has none. It is not a lektor feed id.
	ID          string
	Title       string // plain text, one line
	Description string // plain text
	Link        string // the page the feed belongs to
	Language    string // RFC 5646
	Image       string // URL
	Copyright   string // plain text
	Generator   Generator
	Authors     []Person
	Categories  []string
	Updated     time.Time // zero when unknown
	Published   time.Time // zero when unknown

	// Links holds every atom:link of the feed (not of its entries), and the
	// links of other formats that mean the same: JSON Feed's next_url and
	// feed_url become rel "next" and "self", its WebSub hubs rel "hub".
	Links []Link
	// Refused holds the links that are none of Links since no reader may follow them
	// (see [IsLink]) or since they are empty. They show that something is missing.
	Refused []Link
	// Clouds holds <cloud> and <source:cloud> elements, rssCloud hubs of a
	// JSON Feed among them.
	Clouds []Cloud

	// TTL is RSS ttl (0 when absent); UpdateInterval is the syndication
	// module's updatePeriod divided by updateFrequency (0 when absent).
	TTL, UpdateInterval time.Duration
	// SkipHours are hours of the day in GMT, 0 to 23; SkipDays days of the week.
	SkipHours []int
	SkipDays  []time.Weekday

	// Complete and Archive are true if fh:complete or fh:archive (RFC 5005,
	// sections 2 and 4) stand in the document; Expired is JSON Feed's.
	Complete, Archive, Expired bool

	// Truncated is true if the document ends too early: there were more
	// entries, or the end of the last. A fetcher that keeps the validators of
	// such a document does not get the rest.
	Truncated bool

	// Attributes are those of other vocabularies on the element of the feed,
	// and Extensions the elements, in their order; see [Extension].
	Attributes []Attribute
	Extensions []Extension

	Entries []Entry

	// Warnings says what was mended or left out, in the order of the document.
	Warnings []Warning
}

// Entry is one entry of a feed. Strings are as in [Feed].
//
//rules:allow a record
type Entry struct {
	// ID identifies the entry: the guid, Atom id, JSON id or rdf:about as
	// found, else its link, else "urn:sha256:" and a digest of title, date
	// and content. Never empty. lektordir.Dir.Deliver wants GUID, not ID.
	ID string
	// GUID is the identifier as found, byte for byte, or empty when ID was
	// made from the link or a digest. Set lektordir.Entry.ID to it, empty or not:
	// entries without one are known by their link or text.
	GUID string
	// Link is the entry's page, empty when there is none.
	Link  string
	Title string // plain text, one line; empty for micro-posts
	// Content is as found, not sanitised, with the URLs in HTML made
	// absolute. ContentType is its MIME type: text/html, text/plain,
	// application/xhtml+xml or what the document says of it.
	Content, ContentType string
	// Summary is set when the document has one apart from the content, of
	// type SummaryType.
	Summary, SummaryType string
	Authors              []Person
	// Contributors are persons who took part but are no authors (RFC 4287,
	// section 4.2.3; dc:contributor).
	Contributors []Person
	// Published and Updated are in UTC; each stands in for the other where
	// one is missing, and both are zero where neither could be read.
	Published, Updated time.Time
	// PublishedRaw is the date as written, set only when it could not be read.
	PublishedRaw string
	Categories   []string
	// Terms are those of Categories of which more is known than a name, one for a name.
	Terms      []Category
	Enclosures []Enclosure
	Comments   string // URL of the page of comments
	Image      string // URL
	Language   string
	// Duration, Episode and Season are those of the iTunes module, for podcasts;
	// 0 when unknown. Durations are in whole seconds.
	Duration        time.Duration
	Episode, Season int
	// Source is the feed that the entry was taken from, in a feed made of
	// others; nil when the entry does not say so. Its unknown fields
	// are empty.
	Source *Source
	// Links are the links of other relations than those above: related, via, license ….
	Links  []Link
	Rights string // plain text
	// Attributes and Extensions are as in [Feed].
	Attributes []Attribute
	Extensions []Extension
	// Earlier is the entry as an earlier version of this package read it, nil where
	// that is the same: GUID, ID, Link, Title, Content, ContentType and the dates. A
	// program that knows entries by these knows one by its earlier reading, too, so
	// that a mended reading makes nothing new of it.
	Earlier *Entry
}

// Source is the feed that an entry comes from (RFC 4287, section 4.2.11, and
// the source element of RSS 2.0).
type Source struct {
	ID      string
	Title   string // plain text, one line
	URL     string // URL of the feed document, empty when it has none
	Link    string // the page that the feed belongs to
	Updated time.Time

	Description, Copyright string // plain text
	Image                  string // URL
	Authors                []Person
}

// empty reports whether nothing is known of the feed.
func (s *Source) empty() bool {
	return s.ID+s.Title+s.URL+s.Link+s.Description+s.Copyright+s.Image == "" && s.Updated.IsZero() && len(s.Authors) == 0
}

// Generator is the program that made a feed.
type Generator struct{ Name, URL, Version string }

// String returns the generator as "Name Version (URL)", or what is known of these. It is
// one line.
func (g Generator) String() string {
	s := strings.TrimSpace(g.Name + " " + g.Version)
	switch {
	case g.URL == "":
		return s
	case s == "":
		return g.URL
	}
	return s + " (" + g.URL + ")"
}

// Category is a category of an entry. Name is what [Entry.Categories] has for it; Label
// or Term is set if the document has another text for people or for programs.
type Category struct{ Name, Scheme, Label, Term string }

// Person is an author.
type Person struct{ Name, Email, URL string }

// String returns the person as "Name <mail>", or what is known of these. It is
// one line.
func (p Person) String() string {
	switch {
	case p.Name != "" && p.Email != "":
		return fmt.Sprintf("%s <%s>", p.Name, p.Email)
	case p.Name != "":
		return p.Name
	case p.Email != "":
		return fmt.Sprintf("<%s>", p.Email)
	}
	return p.URL
}

// Link is an atom:link of a feed (RFC 4287, section 4.2.7), Rel "alternate"
// when the element has none.
type Link struct{ Rel, Href, Type, Title string }

// Cloud is an RSS cloud element, its attributes as found (rssCloud walkthrough,
// "The cloud element"). Port is 0 when it is absent or no number.
type Cloud struct {
	Domain            string
	Port              int
	Path              string
	RegisterProcedure string
	Protocol          string
}

// Enclosure is a file that belongs to an entry. Length is in bytes, -1 when
// unknown.
type Enclosure struct {
	URL, Type string
	Length    int64
}

// Warning is what was mended in a document, or left out of it. Line is
// counted from 1, 0 when the place is not known.
type Warning struct {
	Line int
	Text string
	// Limit names the field of [Options] by which something was left out that
	// may be had by raising it, "MaxEntries"; else it is empty.
	Limit string
}

func (w Warning) String() string {
	if w.Line == 0 {
		return w.Text
	}
	return fmt.Sprintf("line %d: %s", w.Line, w.Text)
}

// NotFeedError is returned for a document that is no feed, and names what it
// is.
type NotFeedError struct {
	// What is a short noun phrase: "an HTML page titled \"Example\"", "an
	// empty document", "JSON, but no feed".
	What string
	// HTML is true for an HTML page, in which a feed may be discovered.
	HTML bool
}

func (e *NotFeedError) Error() string { return "not a feed: it is " + e.What }

// LimitError is returned for a document that passes a limit, and names it.
type LimitError struct {
	Limit string // "bytes", "bytes after decompression"
	Max   int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the document has more than %d %s", e.Max, e.Limit)
}

// errCutOff is the error for a document that ends too early, in which a limit
// may have left out what is lost.
func errCutOff(lost string) error {
	what := "a document that is cut off before its first entry"
	if lost != "" {
		what += " (" + lost + ")"
	}
	return &NotFeedError{What: what}
}
