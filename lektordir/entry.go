package lektordir

import (
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/textfile"
)

// Entry holds the values in an entry's directory (specification, "Entries").
//
//rules:allow a record
type Entry struct {
	// Obligatory. Title may be empty (a micro-post). Content is byte for byte.
	Title string
	// ID is the guid of the entry as its feed has it. To [Dir.Deliver], an empty ID means that the
	// feed has none: then the entry is known by its link or its text, and what Deliver writes as
	// its ID is the link, or "urn:sha256:" and a digest.
	ID      string
	Content []byte

	Author  string    // names and addresses, as "Name <mail>", separated by ", "
	PubDate time.Time // UTC; zero if missing or unreadable
	Type    string    // MIME type of Content; "" means text/plain

	// FeedContent is the feed's own content, byte for byte, if Content is another text;
	// FullText has the URL of that text and the type of FeedContent.
	FeedContent []byte

	// Extras, in the file of that name. Unknown values are empty.
	Link       string    // if it is not the id
	Updated    time.Time // if it is not PubDate
	Summary    string
	Enclosures []Enclosure
	Categories []string
	Comments   string // URL
	PubDateRaw string // the date as found, if it could not be parsed
	Replaces   string // unique name of the older version this one replaced

	Image        string   // URL
	Language     string   // a tag of BCP 47
	Contributors []string // each in the form of Author
	Source       Source   // the feed that the entry was taken from
	Duration     time.Duration
	Episode      int // from 1, as Season; 0 means none
	Season       int
	FullText     FullText
	// People holds the authors and contributors that have more than a name, or that are
	// several; Author and Contributors hold them as text. It also holds all authors of
	// the source.
	People []Person
	// Relations holds the links whose relation has no extra of its own.
	Relations []Relation
	Rights    string // the terms of use, as text
	// Terms holds the categories that have a scheme, label or term besides the name.
	Terms []Category
}

// Category is a category of an entry. Name is its name in [Entry.Categories]; Label
// or Term is set if the feed has another text for people or for programs.
type Category struct{ Name, Scheme, Label, Term string }

// Relation is a link of an entry: related, via, license ….
type Relation struct{ Rel, URL, Type, Title string }

// Person is an author or contributor of an entry.
type Person struct {
	Role             string // RoleAuthor, RoleContributor, RoleSource, or what others write
	Name, Email, URL string
}

// The roles of persons.
const (
	RoleAuthor      = "author"
	RoleContributor = "contributor"
	RoleSource      = "source" // an author of the source
)

// FullText describes the content of an entry that is not the feed's, but the article of its
// page. The zero value means that the content is the feed's.
type FullText struct {
	URL  string // URL of the page
	Type string // MIME type of FeedContent; "" means text/plain
}

// Source is the feed that an entry was first published in, if its feed took it from there.
// Unknown values are empty.
type Source struct {
	ID, Title string
	Link      string // URL of its page
	URL       string // URL of the feed document

	Updated                time.Time
	Description, Copyright string // one line each
	Image                  string // URL
}

// Enclosure is a file that belongs to an entry.
type Enclosure struct {
	URL, Type string
	Length    int64 // in bytes; -1 means unknown, 0 that the file is empty
}

// URL returns the address of the entry's page: the extra link, else an id that is an http or
// https URL, else "".
func (e *Entry) URL() string {
	if e.Link != "" {
		return e.Link
	}
	if strings.HasPrefix(e.ID, "http://") || strings.HasPrefix(e.ID, "https://") {
		return e.ID
	}
	return ""
}

// Fields selects the values that [Dir.ReadEntry] reads. Each value is in a file of its own,
// except for the extras, which are in one file.
type Fields uint32

// The fields of an entry.
const (
	FieldTitle Fields = 1 << iota
	FieldID
	FieldContent
	FieldFeed // only checks that it exists
	FieldAuthor
	FieldPubDate
	FieldType
	FieldFeedContent // exists only with FieldFullText
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
	FieldTerms // which has FieldCategories with it

	// Obligatory are the fields without which an entry is malformed.
	Obligatory = FieldTitle | FieldID | FieldContent | FieldFeed
	AllFields  = FieldTerms<<1 - 1
	// Extras are the fields that are in the file extras.
	Extras = AllFields &^ (FieldFeedContent<<1 - 1)
)

// value is a value of an [Entry], and how it is stored.
type value struct {
	field Fields
	name  string              // name of the file or the extra
	of    func(e *Entry) any  // a pointer to it, nil for none
	line  func(string) string // makes text fit for the file
}

// files are the files of an entry that the specification knows; with extras the one
// list of the fields of an entry.
var files = []value{
	{field: FieldTitle, name: "title", of: func(e *Entry) any { return &e.Title }, line: textfile.OneLine},
	{field: FieldID, name: "id", of: func(e *Entry) any { return &e.ID }, line: textfile.OneLine},
	{field: FieldContent, name: "content", of: func(e *Entry) any { return &e.Content }},
	{field: FieldFeed, name: "feed"},
	{field: FieldAuthor, name: "author", of: func(e *Entry) any { return &e.Author }, line: textfile.OneLine},
	{field: FieldPubDate, name: "pubdate", of: func(e *Entry) any { return &e.PubDate }},
	{field: FieldType, name: "type", of: func(e *Entry) any { return &e.Type }, line: textfile.OneLine},
}

// feedContent is a file that an entry has only if its extras set FullText.
var feedContent = value{field: FieldFeedContent, name: "feed-content", of: func(e *Entry) any { return &e.FeedContent }}

// Merge sets the selected fields to those of another entry.
func (e *Entry) Merge(from *Entry, fields Fields) {
	for _, table := range [][]value{files, {feedContent}, extras} {
		for i := range table {
			if v := &table[i]; fields&v.field != 0 && v.of != nil {
				reflect.ValueOf(v.of(e)).Elem().Set(reflect.ValueOf(v.of(from)).Elem())
			}
		}
	}
}

// parse sets the value from the data of its file.
func (v *value) parse(e *Entry, data []byte) {
	switch to := v.of(e).(type) {
	case *string:
		*to = textfile.Line(data)
	case *[]byte:
		*to = data
	case *time.Time:
		*to = parseTime(textfile.Line(data))
	}
}

// format returns the data of the file, or nil for no file.
func (v *value) format(e *Entry) []byte {
	text := ""
	switch of := v.of(e).(type) {
	case *[]byte:
		return textfile.Content(*of, e.Type)
	case *string:
		text = v.line(*of)
	case *time.Time:
		text = formatTime(*of)
	}
	if text == "" && v.field&Obligatory == 0 {
		return nil
	}
	return append([]byte(text), '\n')
}

// Files yields the names and the data of the files that delivery writes for an entry, except
// the link feed. It omits a value that another file has already.
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

// filesOf yields the files that have the fields, either the obligatory or the optional ones.
// Obligatory files are read last: if they exist, the entry was not moved meanwhile, so an
// optional file that was not found does not exist.
func (want Fields) filesOf(obligatory bool) iter.Seq[*value] {
	return func(yield func(*value) bool) {
		for i := range files {
			if v := &files[i]; want&v.field != 0 && v.field&Obligatory != 0 == obligatory && !yield(v) {
				return
			}
		}
	}
}

// parseTime reads RFC 3339, and the forms of it that a shell script writes with
// date(1): a space for the T, no zone.
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

// formatTime writes RFC 3339 in UTC, "" for no time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
