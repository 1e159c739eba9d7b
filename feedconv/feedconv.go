// Package feedconv turns feed documents as they are found into feeds and
// entries, and entries back into feed documents. It knows formats only: no
// disk, no network.
//
// Reading has three stages. Tidy makes one clean, bounded document of the bytes received; gofeed
// maps it; finish sets each field by rules that are the same for every format. A malformed document
// is read as far as possible, and [Feed.Warnings] lists its faults. See [Parse] for reading,
// [EncodeAtom], [EncodeRSS] and [EncodeJSON] for writing, [Extension] for what other vocabularies
// say, and [PlainText] for what entries say without their markup.
//
// gofeed maps the elements of RSS and Atom themselves. Modules, dates, contents, extensions, and the
// elements of Atom that may stand in RSS, too, are read from tidy's tree. JSON is read without gofeed.
//
// All functions are safe for concurrent use. No document makes them panic, hang, or use more memory
// than a small multiple of [Options.MaxBytes]. A program that reads many documents concurrently
// must limit the number of big ones.
package feedconv

import (
	"fmt"
	"strings"
	"time"
)

// Options are the origin of a document and the limits for reading it. The zero value means an
// unknown origin and the default limits.
type Options struct {
	// URL is the URL of the document after redirects; relative references are resolved against it,
	// but those in content as [Entry] says.
	URL string
	// ContentType, ContentLocation and ContentLanguage are the values of the
	// HTTP header fields of these names, empty when absent.
	ContentType, ContentLocation, ContentLanguage string
	// MaxBytes is the maximum size of the document in bytes, before and after decompression.
	MaxBytes int64
	// MaxEntries is the maximum number of entries; further entries are left out with a warning.
	MaxEntries int
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

// Feed is a feed document. Lists other than Entries hold at most 1000 elements in a feed and in
// each entry. Strings are valid UTF-8 without NUL and C0 controls other than tab and newline. URLs
// are absolute if a base URL is known.
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
	PubDate     time.Time // zero when unknown

	// Links holds every atom:link of the feed (not of its entries), and the
	// links of other formats that mean the same: JSON Feed's next_url and
	// feed_url become rel "next" and "self", its WebSub hubs rel "hub".
	Links []Link
	// Refused holds the links that are not in Links, because they are empty or because a reader
	// must not follow them (see [IsLink]).
	Refused []Link
	// Clouds holds <cloud> and <source:cloud> elements, and the rssCloud hubs of a JSON Feed.
	Clouds []Cloud

	// TTL is RSS ttl (0 when absent); UpdateInterval is the syndication
	// module's updatePeriod divided by updateFrequency (0 when absent).
	TTL, UpdateInterval time.Duration
	// SkipHours are hours of the day in GMT, 0 to 23; SkipDays days of the week.
	SkipHours []int
	SkipDays  []time.Weekday

	// Complete and Archive are true if the document contains fh:complete or fh:archive (RFC 5005,
	// sections 2 and 4). Expired is the member of that name of JSON Feed.
	Complete, Archive, Expired bool

	// Truncated is true if the document is cut off: further entries, or the end of the last one,
	// may be missing. A fetcher must not store the validators (ETag, Last-Modified) of such a
	// document, or it will never receive the rest.
	Truncated bool

	// Attributes are the attributes from other vocabularies on the feed's element. Extensions are
	// the elements from other vocabularies, in the order of the document; see [Extension].
	Attributes []Attribute
	Extensions []Extension

	Entries []Entry

	// Warnings lists the faults that were corrected and the parts that were left out, in the order
	// of the document.
	Warnings []Warning
}

// Entry is one entry of a feed. Strings are as in [Feed].
//
//rules:allow a record
type Entry struct {
	// ID identifies the entry: the guid, Atom id, JSON id or rdf:about as found, else its link,
	// else "urn:sha256:" and a digest of title, date and content. Never empty. Pass GUID, not ID,
	// to lektordir.Dir.Deliver.
	ID string
	// GUID is the identifier as found, byte for byte, or empty when ID was
	// made from the link or a digest. Set lektordir.Entry.ID to it, empty or not:
	// entries without one are known by their link or text.
	GUID string
	// Link is the URL of the entry's page, empty if the entry has none.
	Link  string
	Title string // plain text, one line; empty for micro-posts
	// Content is as found, not sanitised, with the URLs in HTML made absolute. Their base is
	// xml:base, a <base> in the HTML, Link if it is on the host of the feed or of its site, the
	// site, or the URL of the document. Type is its MIME type: text/html, text/plain,
	// application/xhtml+xml or another that the document states.
	Content, Type string
	// Summary is set if the document has a summary that differs from the content. SummaryType is
	// its MIME type.
	Summary, SummaryType string
	Authors              []Person
	// Contributors are persons who contributed but are not authors (RFC 4287, section 4.2.3;
	// dc:contributor).
	Contributors []Person
	// PubDate and Updated are in UTC. If one is missing, it is set to the other; if neither could
	// be read, both are zero.
	PubDate, Updated time.Time
	// PubDateRaw is the date as written, set only if the date could not be read.
	PubDateRaw string
	Categories []string
	// Terms holds the categories that have more than a name, at most one for each name.
	Terms      []Category
	Enclosures []Enclosure
	Comments   string // URL of the page of comments
	// InReplyTo holds what the entry replies to (RFC 4685, section 3).
	InReplyTo []ReplyTo
	Image     string // URL
	Language  string
	// Duration, Episode and Season are from the iTunes module, for podcasts; 0 if unknown.
	// Durations are in whole seconds.
	Duration        time.Duration
	Episode, Season int
	// Source is the feed from which an aggregated entry was copied; nil if the entry names none.
	// Unknown fields are empty.
	Source *Source
	// Links are the links whose relation has no field above: related, via, license ….
	Links  []Link
	Rights string // plain text
	// Attributes and Extensions are as in [Feed].
	Attributes []Attribute
	Extensions []Extension
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

// empty reports whether all fields are empty.
func (s *Source) empty() bool {
	return s.ID+s.Title+s.URL+s.Link+s.Description+s.Copyright+s.Image == "" && s.Updated.IsZero() &&
		len(s.Authors) == 0
}

// ReplyTo is an entry, or another resource, that an entry replies to. Ref is its ID, byte for byte as
// found, and never empty. The others are empty if they are unknown: URL is the URL of its page or
// document, Type the MIME type of that, and Source the URL of a feed or entry document that has it.
type ReplyTo struct {
	Ref    string `json:"id"`
	URL    string `json:"url,omitempty"`
	Type   string `json:"mime_type,omitempty"`
	Source string `json:"source,omitempty"`
}

// Generator is the program that made a feed.
type Generator struct{ Name, URL, Version string }

// String returns the generator as "Name Version (URL)", without the parts that are unknown. The
// result is one line.
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

// Category is a category of an entry. Name is its string in [Entry.Categories]. Label is set if the
// document has another text for people, Term if it has another text for programs.
type Category struct {
	Name   string `json:"name"`
	Scheme string `json:"scheme,omitempty"`
	Label  string `json:"label,omitempty"`
	Term   string `json:"term,omitempty"`
}

// Person is an author.
type Person struct{ Name, Email, URL string }

// String returns the person as "Name <mail>", without the part that is unknown. The result is one
// line.
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

// Link is an atom:link (RFC 4287, section 4.2.7). Rel is "alternate" if the element has no rel.
type Link struct {
	Rel   string `json:"rel"`
	URL   string `json:"url"`
	Type  string `json:"mime_type,omitempty"`
	Title string `json:"title,omitempty"`
}

// Cloud is an RSS cloud element, its attributes as found (rssCloud walkthrough, "The cloud
// element"). Port is 0 if it is absent or not a number.
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

// Warning describes a fault that was corrected in a document, or a part that was left out. Line
// counts from 1; 0 means that the place is unknown.
type Warning struct {
	Line int
	Text string
	// Limit names the field of [Options] whose limit left something out ("MaxEntries"), else it is
	// empty.
	Limit string
}

func (w Warning) String() string {
	if w.Line == 0 {
		return w.Text
	}
	return fmt.Sprintf("line %d: %s", w.Line, w.Text)
}

// NotFeedError is the error for a document that is not a feed. It describes the document.
type NotFeedError struct {
	// What is a short noun phrase: "an HTML page titled \"Example\"", "an
	// empty document", "JSON, but no feed".
	What string
	// HTML is true for an HTML page, which may link to a feed.
	HTML bool
}

func (e *NotFeedError) Error() string { return "not a feed: it is " + e.What }

// LimitError is the error for a document that exceeds a limit.
type LimitError struct {
	Limit string // "bytes", "bytes after decompression"
	Max   int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the document has more than %d %s", e.Max, e.Limit)
}

// errCutOff returns the error for a document that is cut off before its first entry. lost, if not
// empty, says what a limit left out.
func errCutOff(lost string) error {
	what := "a document that is cut off before its first entry"
	if lost != "" {
		what += " (" + lost + ")"
	}
	return &NotFeedError{What: what}
}
