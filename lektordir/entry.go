package lektordir

import (
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/text/textfile"
)

// Entry holds the values in an entry's directory; see lektor-dir(5). Unknown values are zero.
//
//rules:allow a record
type Entry struct {
	// Title is obligatory, but may be empty.
	Title string
	// ID is the guid of the entry in its feed. If [Dir.Deliver] is passed an empty ID, it
	// identifies the entry by its link or its text, and writes as its ID the link, or
	// "urn:sha256:" and a digest.
	ID string
	// Content is kept byte for byte, but delivery makes text valid UTF-8 without NUL.
	Content []byte

	Author  string    // "Name <mail>", several separated by ", "
	PubDate time.Time // in UTC
	Type    string    // MIME type of Content; "" means text/plain

	// FeedContent is the content that the feed has, if Content is the article of the entry's
	// page. FullText has the URL of that page and the type of FeedContent.
	FeedContent []byte

	// The other fields are stored in the file extras.

	Link       string    // URL of the entry's page, if that is not ID
	Updated    time.Time // if it is not PubDate
	Summary    string
	Enclosures []Enclosure
	Categories []string
	Comments   string // URL
	PubDateRaw string // the date in the feed, if it could not be parsed
	Replaces   string // unique name of the older version that this one replaced

	Image        string   // URL
	Language     string   // a tag of BCP 47
	Contributors []string // each "Name <mail>"
	Source       Source   // the feed that the entry was taken from
	Duration     time.Duration
	Episode      int // from 1; 0 means none
	Season       int // from 1; 0 means none
	FullText     FullText
	// People holds the authors if there are several, or if more is known than a name and a
	// mail address, and likewise the contributors. Author and Contributors hold the same
	// persons as text. People also holds all authors of the source.
	People []Person
	// Relations holds the links that have no field of their own.
	Relations []Relation
	Rights    string // the terms of use, as text
	// Terms holds further values of those Categories that have any.
	Terms []Category
	// InReplyTo holds what the entry replies to.
	InReplyTo []ReplyTo
	// Elements holds what only podcasts have, such as transcripts and chapters.
	Elements Elements
}

// Element is an element of a vocabulary for podcasts. Name has the usual prefix, as in
// podcast:transcript. An element inside another follows that, and its name has both names:
// podcast:podroll/podcast:remoteItem.
type Element struct {
	Name, Text string
	Attributes []Attribute
}

// Attribute is an attribute of an [Element].
type Attribute struct{ Name, Value string }

// Get returns the value of an attribute, or "".
func (e *Element) Get(attribute string) string {
	for _, a := range e.Attributes {
		if a.Name == attribute {
			return a.Value
		}
	}
	return ""
}

// Elements is a list of elements in the order of the document.
type Elements []Element

// Named yields the elements with a name, each with the elements inside.
func (l Elements) Named(name string) iter.Seq2[*Element, Elements] {
	return func(yield func(*Element, Elements) bool) {
		for i := 0; i < len(l); i++ {
			if l[i].Name != name {
				continue
			}
			e, begin := &l[i], i+1
			for i+1 < len(l) && strings.HasPrefix(l[i+1].Name, name+"/") {
				i++
			}
			if !yield(e, l[begin:i+1]) {
				return
			}
		}
	}
}

// Names of elements.
const (
	LiveItem    = "podcast:liveItem" // only of an entry that is broadcast live
	Transcript  = "podcast:transcript"
	Chapters    = "podcast:chapters" // has the URL of a document
	ChapterList = "psc:chapters"     // holds the chapters
)

// Live returns the element with the name LiveItem. It has the attributes status (pending, live or
// ended), start and end.
func (l Elements) Live() *Element { return l.First(LiveItem) }

// First returns the first element with a name, an empty one without any.
func (l Elements) First(name string) *Element {
	for e := range l.Named(name) {
		return e
	}
	return &Element{}
}

// ReplyTo is an entry, or another resource, that an entry replies to. Ref is its guid or another
// unique id, and never empty. URL is that of its page, Type the MIME type of the page, and Source
// the URL of a document that has the entry. Unknown values are "".
type ReplyTo struct{ Ref, URL, Type, Source string }

// Category holds further values of a category. Name is its name in [Entry.Categories]. Label
// and Term are set if the feed has another text for people or for programs.
type Category struct{ Name, Scheme, Label, Term string }

// Relation is a link of an entry. Rel is its relation, such as related, via or license.
type Relation struct{ Rel, URL, Type, Title string }

// Person is an author or contributor of an entry.
type Person struct {
	Role             string // RoleAuthor, RoleContributor or RoleSource; other programs may write others
	Name, Email, URL string
}

// The roles of persons.
const (
	RoleAuthor      = "author"
	RoleContributor = "contributor"
	RoleSource      = "source" // an author of the source
)

// FullText describes the content of an entry if that is the article of its page. The zero value
// means that the feed has the content.
type FullText struct {
	URL  string // URL of the page
	Type string // MIME type of FeedContent; "" means text/plain
}

// Source is the feed in which an entry was first published, if that is another one. Unknown
// values are zero.
type Source struct {
	ID, Title string
	Link      string // URL of its page
	URL       string // URL of the feed document

	Updated     time.Time
	Copyright   string // one line
	Image       string // URL
	Description string // one line
}

// Enclosure is a file that belongs to an entry.
type Enclosure struct {
	URL, Type string
	Length    int64 // in bytes; -1 means unknown, 0 that the file is empty
}

// URL returns the URL of the entry's page: Link, or ID if that is an http or https URL, or "".
func (e *Entry) URL() string {
	if e.Link != "" {
		return e.Link
	}
	if strings.HasPrefix(e.ID, "http://") || strings.HasPrefix(e.ID, "https://") {
		return e.ID
	}
	return ""
}

// Fields is a set of fields of an [Entry], for example those that [Dir.ReadEntry] reads. Each
// field of [Extras] is a part of one file, each other field a file of its own.
type Fields uint32

// The fields of an entry.
const (
	FieldTitle Fields = 1 << iota
	FieldID
	FieldContent
	FieldFeed // the link to the feed; ReadEntry only checks that it exists
	FieldAuthor
	FieldPubDate
	FieldType
	FieldFeedContent // implies FieldFullText
	FieldLink
	FieldUpdated
	FieldSummary
	FieldEnclosures
	FieldCategories
	FieldComments
	FieldPubDateRaw
	FieldReplaces
	FieldImage
	FieldLanguage
	FieldContributors
	FieldSource
	FieldDuration
	FieldEpisode
	FieldSeason
	FieldFullText
	FieldPeople
	FieldRelations
	FieldRights
	FieldTerms
	FieldInReplyTo
	FieldElements

	// Obligatory is the fields without which an entry is malformed.
	Obligatory = FieldTitle | FieldID | FieldContent | FieldFeed
	AllFields  = FieldElements<<1 - 1
	// Extras is the fields that are stored in the file extras.
	Extras = AllFields &^ (FieldFeedContent<<1 - 1)
)

// value describes how a field of an [Entry] is stored.
type value struct {
	field Fields
	name  string              // name of the file or the extra
	of    func(e *Entry) any  // returns a pointer to the field of e; nil if it has none
	line  func(string) string // makes text fit for the file
	least int                 // number of fields that a line of extras has, even if they are empty
}

// files lists the fields that have a file of their own; extras lists the others.
var files = []value{
	{field: FieldTitle, name: "title", of: func(e *Entry) any { return &e.Title }, line: textfile.OneLine},
	{field: FieldID, name: "id", of: func(e *Entry) any { return &e.ID }, line: textfile.OneLine},
	{field: FieldContent, name: "content", of: func(e *Entry) any { return &e.Content }},
	{field: FieldFeed, name: "feed"},
	{field: FieldAuthor, name: "author", of: func(e *Entry) any { return &e.Author }, line: textfile.OneLine},
	{field: FieldPubDate, name: "pubdate", of: func(e *Entry) any { return &e.PubDate }},
	{field: FieldType, name: "type", of: func(e *Entry) any { return &e.Type }, line: textfile.OneLine},
}

// feedContent is the file feed-content, which an entry has only if FullText is set.
var feedContent = value{field: FieldFeedContent, name: "feed-content", of: func(e *Entry) any { return &e.FeedContent }}

// Merge copies fields from another entry.
func (e *Entry) Merge(from *Entry, fields Fields) {
	for _, table := range [][]value{files, {feedContent}, extras} {
		for i := range table {
			if v := &table[i]; fields&v.field != 0 && v.of != nil {
				reflect.ValueOf(v.of(e)).Elem().Set(reflect.ValueOf(v.of(from)).Elem())
			}
		}
	}
}

// parse sets the field of e from the data of its file.
func (v *value) parse(e *Entry, data []byte) {
	if to, ok := v.of(e).(*[]byte); ok {
		*to = data
		return
	}
	parseText(v.of(e), textfile.Line(data))
}

// format returns the data of the file for the field of e, or nil if none is written.
func (v *value) format(e *Entry) []byte {
	if of, ok := v.of(e).(*[]byte); ok {
		return textfile.Content(*of, e.Type)
	}
	text := v.text(v.of(e))
	if text == "" && v.field&Obligatory == 0 {
		return nil
	}
	return append([]byte(text), '\n')
}

// Files yields the names and the data of the files that delivery writes for an entry, except
// the link feed. It omits a Type of text/plain, a Link equal to ID, and an Updated equal to
// PubDate.
func (e *Entry) Files() iter.Seq2[string, []byte] {
	want := AllFields &^ FieldFeed
	if textfile.OneLine(e.Type) == "text/plain" {
		want &^= FieldType
	}
	if e.Link == e.ID {
		want &^= FieldLink
	}
	if e.Updated.Equal(e.PubDate) {
		want &^= FieldUpdated
	}
	return func(yield func(string, []byte) bool) {
		for i := range files {
			v := &files[i]
			if want&v.field == 0 {
				continue
			}
			if data := v.format(e); (data != nil || v.field&Obligatory != 0) && !yield(v.name, data) {
				return
			}
		}
		if e.FullText.URL != "" && !yield(feedContent.name, textfile.Content(e.FeedContent, e.FullText.Type)) {
			return
		}
		if data := e.formatExtras(want); data != nil {
			yield(extrasFile.name, data)
		}
	}
}

// filesOf yields either the obligatory or the optional files of the fields. Obligatory files
// are read last: if they exist, the entry has not moved, so an optional file that was not found
// does not exist.
func (want Fields) filesOf(obligatory bool) iter.Seq[*value] {
	return func(yield func(*value) bool) {
		for i := range files {
			if v := &files[i]; want&v.field != 0 && v.field&Obligatory != 0 == obligatory && !yield(v) {
				return
			}
		}
	}
}

// parseTime parses RFC 3339 and the variants that shell scripts write by date(1), which have a
// space instead of the T, or no zone. It returns the zero time for any other text.
func parseTime(s string) time.Time {
	s = strings.TrimSpace(s)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
		"2006-01-02 15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// formatTime formats a time as RFC 3339 in UTC, or as "" if it is zero.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
