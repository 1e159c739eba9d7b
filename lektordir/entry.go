package lektordir

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/atomicfile"
	"golang.org/x/sys/unix"
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
	Link       string // when it is not the id
	Updated    time.Time
	Summary    string
	Enclosures []Enclosure
	Categories []string
	Comments   string // URL
	PubDateRaw string // the date as found, when it could not be read
	Replaces   string // unique name of the older version this one replaced
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

	// Obligatory are the fields without which an entry is malformed.
	Obligatory = FieldTitle | FieldID | FieldContent | FieldFeed
	AllFields  = FieldReplaces<<1 - 1
	extras     = AllFields &^ (Obligatory | FieldAuthor | FieldPubDate | FieldType)
)

// ReadEntry reads fields of an entry. When the entry is gone, moved by a viewer
// or removed, the error is fs.ErrNotExist; when an obligatory file that was
// asked for is missing it is a [*MalformedError], and the entry is returned as
// far as it could be read.
func (d *Dir) ReadEntry(r Ref, want Fields) (*Entry, error) {
	e := &Entry{}
	base := d.Abs(r)
	var bad error
	get := func(f Fields, name string, set func(string)) {
		if want&f == 0 {
			return
		}
		data, err := readFile(base + "/" + name)
		switch {
		case err == nil:
			set(line(data))
		case !isNotExist(err):
			bad = errors.Join(bad, err)
		case f&Obligatory != 0:
			bad = errors.Join(bad, &MalformedError{Path: r.Path(), Reason: "it has no file " + name})
		}
	}
	str := func(p *string) func(string) { return func(s string) { *p = s } }
	when := func(p *time.Time) func(string) { return func(s string) { *p = parseTime(s) } }
	get(FieldTitle, "title", str(&e.Title))
	get(FieldID, "id", str(&e.ID))
	get(FieldAuthor, "author", str(&e.Author))
	get(FieldPubDate, "pubdate", when(&e.PubDate))
	get(FieldType, "type", str(&e.Type))
	if want&FieldContent != 0 {
		data, err := readFile(base + "/content")
		switch {
		case err == nil:
			e.Content = data
		case !isNotExist(err):
			bad = errors.Join(bad, err)
		default:
			bad = errors.Join(bad, &MalformedError{Path: r.Path(), Reason: "it has no file content"})
		}
	}
	if want&FieldFeed != 0 {
		// A link that leads nowhere still says which feed it is, by its name.
		if _, err := os.Lstat(base + "/feed"); err != nil {
			bad = errors.Join(bad, &MalformedError{Path: r.Path(), Reason: "it has no feed"})
		}
	}
	if want&extras != 0 {
		get(FieldLink, "etc/link", str(&e.Link))
		get(FieldUpdated, "etc/updated", when(&e.Updated))
		get(FieldSummary, "etc/summary", str(&e.Summary))
		get(FieldEnclosures, "etc/enclosures", func(s string) { e.Enclosures = parseEnclosures(s) })
		get(FieldCategories, "etc/categories", func(s string) { e.Categories = lines(s) })
		get(FieldComments, "etc/comments", str(&e.Comments))
		get(FieldPubDateRaw, "etc/pubdate-raw", str(&e.PubDateRaw))
		get(FieldReplaces, "etc/replaces", str(&e.Replaces))
	}
	if bad != nil {
		if _, err := os.Lstat(base); err != nil {
			return nil, err
		}
	}
	return e, bad
}

// entryFile is a file of an entry and what it holds.
type entryFile struct {
	name string // relative to the entry
	data []byte
}

// files gives the files of the entry as delivery writes them, without the link
// feed; the names in etc/ come last.
func (e *Entry) files() []entryFile {
	fs := make([]entryFile, 0, 12)
	add := func(name, value string) {
		if value != "" {
			fs = append(fs, entryFile{name, append([]byte(value), '\n')})
		}
	}
	when := func(name string, t time.Time) {
		if !t.IsZero() {
			add(name, t.UTC().Format(time.RFC3339))
		}
	}
	fs = append(fs,
		entryFile{"title", []byte(oneLine(e.Title) + "\n")},
		entryFile{"id", []byte(oneLine(e.ID) + "\n")},
		entryFile{"content", content(e.Content, e.Type)})
	add("author", oneLine(e.Author))
	when("pubdate", e.PubDate)
	if t := oneLine(e.Type); t != "text/plain" {
		add("type", t)
	}
	if e.Link != e.ID {
		add("etc/link", oneLine(e.Link))
	}
	when("etc/updated", e.Updated)
	add("etc/summary", clean(e.Summary))
	if len(e.Enclosures) > 0 {
		var b strings.Builder
		for _, enc := range e.Enclosures {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(oneField(enc.URL) + "\t" + oneField(enc.Type) + "\t")
			if enc.Length >= 0 {
				b.WriteString(strconv.FormatInt(enc.Length, 10))
			}
		}
		add("etc/enclosures", b.String())
	}
	if len(e.Categories) > 0 {
		cats := make([]string, 0, len(e.Categories))
		for _, c := range e.Categories {
			if c = oneLine(c); c != "" {
				cats = append(cats, c)
			}
		}
		add("etc/categories", strings.Join(cats, "\n"))
	}
	add("etc/comments", oneLine(e.Comments))
	add("etc/pubdate-raw", oneLine(e.PubDateRaw))
	add("etc/replaces", oneLine(e.Replaces))
	return fs
}

// clean makes text fit for a file: valid UTF-8 without NUL.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// content is clean for content that is text, and the same bytes when they are
// fit or no text.
func content(b []byte, mimeType string) []byte {
	if !IsText(mimeType) || utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		return b
	}
	return []byte(clean(string(b)))
}

// IsText reports whether content of a MIME type is text, as it is without a
// type. Of other types, such as images, each byte counts.
func IsText(mimeType string) bool {
	t, _, _ := strings.Cut(strings.ToLower(mimeType), ";")
	t = strings.TrimSpace(t)
	group, name, ok := strings.Cut(t, "/")
	return !ok || group == "text" || group == "message" ||
		name == "xml" || name == "json" || strings.HasSuffix(name, "+xml") || strings.HasSuffix(name, "+json")
}

// oneLine is clean for a file of a single line.
func oneLine(s string) string {
	s = clean(s)
	if strings.ContainsAny(s, "\r\n") {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\r' || r == '\n' }), " ")
	}
	return s
}

// oneField is oneLine for a field between tabs.
func oneField(s string) string { return strings.ReplaceAll(oneLine(s), "\t", " ") }

// line is the text of a file: without the one newline that ends it, and valid
// UTF-8 whatever wrote it.
func line(data []byte) string {
	s := strings.TrimSuffix(string(data), "\n")
	return strings.ToValidUTF8(s, "\uFFFD")
}

// lines splits text into its lines, leaving out empty ones.
func lines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
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
