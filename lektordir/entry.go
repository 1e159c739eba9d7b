package lektordir

import (
	"errors"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// Entry is what an entry's directory holds (specification, "Entries").
type Entry struct {
	// Obligatory. Title may be empty (a micro-post). Content is byte for byte.
	Title   string
	ID      string
	Content []byte

	Author  string    // names and addresses, as "Name <mail>", separated by ", "
	PubDate time.Time // UTC; zero when there is none or it could not be read
	Type    string    // MIME type of Content; "" means text/plain

	// Extras, in etc/. Those that are not known are empty.
	Link       string    // when it is not the id
	Updated    time.Time // when that is not PubDate
	Summary    string
	Enclosures []Enclosure
	Categories []string
	Comments   string // URL
	PubDateRaw string // the date as found, when it could not be read
	Replaces   string // unique name of the older version this one replaced

	Image        string   // URL
	Language     string   // a tag of BCP 47
	Contributors []string // each as Author has it
	Source       Source   // the feed that the entry was taken from
	Duration     time.Duration
	Episode      int // from 1, as Season; 0 when there is none
	Season       int
}

// Source is the feed that an entry was taken from by the one that it came with. What
// is unknown is empty.
type Source struct {
	ID, Title string
	Link      string // URL of its page
	URL       string // of the feed document
}

// Enclosure is a file that belongs to an entry; Length is in bytes, -1 when
// unknown.
type Enclosure struct {
	URL, Type string
	Length    int64
}

// URL is where the entry can be read: the extra link, else an id that is an
// http or https URL, else "".
func (e *Entry) URL() string {
	if e.Link != "" {
		return e.Link
	}
	if strings.HasPrefix(e.ID, "http://") || strings.HasPrefix(e.ID, "https://") {
		return e.ID
	}
	return ""
}

// Fields selects what [Dir.ReadEntry] reads; each costs a file.
type Fields uint32

// The fields of an entry.
const (
	FieldTitle Fields = 1 << iota
	FieldID
	FieldContent
	FieldFeed // only that it is there
	FieldAuthor
	FieldPubDate
	FieldType
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

	// Obligatory are the fields without which an entry is malformed.
	Obligatory = FieldTitle | FieldID | FieldContent | FieldFeed
	AllFields  = FieldSeason<<1 - 1
)

// file is a file of an entry, and the value of the [Entry] that it holds.
type file struct {
	field Fields
	name  string              // relative to the entry
	value func(e *Entry) any  // a pointer to it, nil for none
	line  func(string) string // makes text fit for the file
}

// files are all that there can be, those in etc/ last: the one list of the fields
// of an entry.
var files = []file{
	{FieldTitle, "title", func(e *Entry) any { return &e.Title }, oneLine},
	{FieldID, "id", func(e *Entry) any { return &e.ID }, oneLine},
	{FieldContent, "content", func(e *Entry) any { return &e.Content }, nil},
	{FieldFeed, "feed", nil, nil},
	{FieldAuthor, "author", func(e *Entry) any { return &e.Author }, oneLine},
	{FieldPubDate, "pubdate", func(e *Entry) any { return &e.PubDate }, nil},
	{FieldType, "type", func(e *Entry) any { return &e.Type }, oneLine},
	{FieldLink, "etc/link", func(e *Entry) any { return &e.Link }, oneLine},
	{FieldUpdated, "etc/updated", func(e *Entry) any { return &e.Updated }, nil},
	{FieldSummary, "etc/summary", func(e *Entry) any { return &e.Summary }, clean},
	{FieldEnclosures, "etc/enclosures", func(e *Entry) any { return &e.Enclosures }, oneField},
	{FieldCategories, "etc/categories", func(e *Entry) any { return &e.Categories }, oneLine},
	{FieldComments, "etc/comments", func(e *Entry) any { return &e.Comments }, oneLine},
	{FieldPubDateRaw, "etc/pubdate-raw", func(e *Entry) any { return &e.PubDateRaw }, oneLine},
	{FieldReplaces, "etc/replaces", func(e *Entry) any { return &e.Replaces }, oneLine},
	{FieldImage, "etc/image", func(e *Entry) any { return &e.Image }, oneLine},
	{FieldLanguage, "etc/language", func(e *Entry) any { return &e.Language }, oneLine},
	{FieldContributors, "etc/contributors", func(e *Entry) any { return &e.Contributors }, oneLine},
	{FieldSource, "etc/source", func(e *Entry) any { return &e.Source }, oneField},
	{FieldDuration, "etc/duration", func(e *Entry) any { return &e.Duration }, nil},
	{FieldEpisode, "etc/episode", func(e *Entry) any { return &e.Episode }, nil},
	{FieldSeason, "etc/season", func(e *Entry) any { return &e.Season }, nil},
}

// Merge takes the fields that are selected over from another.
func (e *Entry) Merge(from *Entry, fields Fields) {
	for _, f := range files {
		if fields&f.field == 0 || f.value == nil {
			continue
		}
		switch to := f.value(e).(type) {
		case *string:
			*to = *f.value(from).(*string)
		case *[]byte:
			*to = *f.value(from).(*[]byte)
		case *time.Time:
			*to = *f.value(from).(*time.Time)
		case *[]string:
			*to = *f.value(from).(*[]string)
		case *[]Enclosure:
			*to = *f.value(from).(*[]Enclosure)
		case *Source:
			*to = *f.value(from).(*Source)
		case *time.Duration:
			*to = *f.value(from).(*time.Duration)
		case *int:
			*to = *f.value(from).(*int)
		}
	}
}

// parse takes a value from the data of the file.
func (f *file) parse(e *Entry, data []byte) {
	switch to := f.value(e).(type) {
	case *string:
		*to = line(data)
	case *[]byte:
		*to = data
	case *time.Time:
		*to = parseTime(line(data))
	case *[]string:
		*to = lines(line(data))
	case *[]Enclosure:
		*to = parseEnclosures(line(data))
	case *Source:
		parts := append(strings.Split(line(data), "\t"), "", "", "")
		*to = Source{ID: parts[0], Title: parts[1], Link: parts[2], URL: parts[3]}
	case *time.Duration:
		*to = time.Duration(number(data)) * time.Second
	case *int:
		*to = number(data)
	}
}

// format gives the data of the file; nil where there is none to be.
func (f *file) format(e *Entry) []byte {
	text := ""
	switch v := f.value(e).(type) {
	case *[]byte:
		return content(*v, e.Type)
	case *string:
		text = f.line(*v)
	case *time.Time:
		if !v.IsZero() {
			text = v.UTC().Format(time.RFC3339)
		}
	case *[]string:
		all := make([]string, 0, len(*v))
		for _, s := range *v {
			if s = f.line(s); s != "" {
				all = append(all, s)
			}
		}
		text = strings.Join(all, "\n")
	case *[]Enclosure:
		all := make([]string, len(*v))
		for i, enc := range *v {
			length := ""
			if enc.Length >= 0 {
				length = strconv.FormatInt(enc.Length, 10)
			}
			all[i] = f.line(enc.URL) + "\t" + f.line(enc.Type) + "\t" + length
		}
		text = strings.Join(all, "\n")
	case *Source:
		if *v != (Source{}) {
			text = strings.Join([]string{f.line(v.ID), f.line(v.Title), f.line(v.Link), f.line(v.URL)}, "\t")
		}
	case *time.Duration:
		text = positive(int(*v / time.Second))
	case *int:
		text = positive(*v)
	}
	if text == "" && f.field&Obligatory == 0 {
		return nil
	}
	return append([]byte(text), '\n')
}

// number reads a number that is not negative; what makes no sense is 0.
func number(data []byte) int {
	n, err := strconv.ParseUint(strings.TrimSpace(line(data)), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// positive writes a number, "" for 0 and less.
func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// stored yields the files that delivery makes of an entry, but for the link feed:
// names and data. What another file says already is left out.
func (e *Entry) stored() iter.Seq2[string, []byte] {
	want := AllFields &^ FieldFeed
	if oneLine(e.Type) == "text/plain" {
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
			f := &files[i]
			if want&f.field == 0 {
				continue
			}
			if data := f.format(e); (data != nil || f.field&Obligatory != 0) && !yield(f.name, data) {
				return
			}
		}
	}
}

// ReadEntry reads fields of an entry. When the entry is gone, moved by a viewer
// or removed, the error is fs.ErrNotExist; when an obligatory file that was
// asked for is missing it is a [*MalformedError], and the entry is returned as
// far as it could be read.
func (d *Dir) ReadEntry(r Ref, want Fields) (*Entry, error) {
	e := &Entry{}
	base := d.Abs(r)
	var bad error
	for i := range files {
		f := &files[i]
		if want&f.field == 0 {
			continue
		}
		var data []byte
		var err error
		if f.value != nil {
			data, err = readFile(base + "/" + f.name)
		} else {
			// A link that leads nowhere still says which feed it is, by its name.
			_, err = os.Lstat(base + "/" + f.name)
		}
		switch {
		case err == nil && f.value != nil:
			f.parse(e, data)
		case err == nil:
		case !isNotExist(err):
			bad = errors.Join(bad, err)
		case f.field&Obligatory != 0:
			bad = errors.Join(bad, missing(r, f.name))
		}
	}
	if bad != nil {
		if _, err := os.Lstat(base); err != nil {
			return nil, err
		}
	}
	return e, bad
}

// missing tells that an entry lacks an obligatory file.
func missing(r Ref, name string) *MalformedError {
	what := "it has no file " + name
	if name == "feed" {
		what = "it has no feed"
	}
	return &MalformedError{Path: r.Path(), Reason: what}
}

func parseEnclosures(s string) []Enclosure {
	var encs []Enclosure
	for _, l := range lines(s) {
		f := strings.Split(l, "\t")
		enc := Enclosure{URL: f[0], Length: -1}
		if len(f) > 1 {
			enc.Type = f[1]
		}
		if len(f) > 2 {
			if n, err := strconv.ParseInt(f[2], 10, 64); err == nil && n >= 0 {
				enc.Length = n
			}
		}
		encs = append(encs, enc)
	}
	return encs
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

// maxFile is the largest file that is read into memory. No fetcher of ours
// writes one that long; the bound is against what others may have put there.
const maxFile = 256 << 20

// readFile reads a file of an entry or a feed.
func readFile(path string) ([]byte, error) { return atomicfile.Read(path, maxFile) }

func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
