package feedconv

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// bigDocument is the size in bytes from which on a document waits for a
// [Limiter].
const bigDocument = 1 << 20

// Limiter bounds how many documents of more than a megabyte are parsed at the
// same time by all calls that share it, so that a program with many connections
// needs the memory of a few big documents, not of all that come at once. Smaller
// documents do not wait. [Options] without one
// wait for nothing. A Limiter is safe for concurrent use.
type Limiter struct{ big chan struct{} }

// NewLimiter gives a limiter for n big documents at a time, at least one.
func NewLimiter(n int) *Limiter { return &Limiter{make(chan struct{}, max(n, 1))} }

// wait waits until a big document may be parsed, and gives what ends it.
func (l *Limiter) wait() (done func()) {
	if l == nil {
		return func() {}
	}
	l.big <- struct{}{}
	return func() { <-l.big }
}

// Parse reads a feed document to its end and gives the feed and its entries,
// in the order of the document.
//
// The error is a [*LimitError] for a document that is too large, a
// [*NotFeedError] for one that is no feed, or what reading r returned. A
// document that had to be mended is no error: see [Feed.Warnings]. A feed
// without entries is one that truly has none.
func Parse(r io.Reader, opts Options) (*Feed, error) {
	limit := opts.maxBytes()
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	return ParseBytes(raw, opts)
}

// ParseBytes is [Parse] for a document that is in memory. It neither changes
// b nor keeps a reference to it.
func ParseBytes(b []byte, opts Options) (f *Feed, err error) {
	if limit := opts.maxBytes(); int64(len(b)) > limit {
		return nil, &LimitError{Limit: "bytes", Max: limit}
	}
	// The last guard, for mistakes in this package and in gofeed: whoever
	// fetches a thousand feeds must not lose them to one document.
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("the document could not be read: %v", p)
		}
	}()

	alone := len(b) > bigDocument || isGzip(b)
	if alone {
		defer opts.Limiter.wait()()
	}
	opts.reading = &reading{}
	text, warnings, err := decodeBytes(b, opts)
	if err != nil {
		return nil, err
	}
	if !alone && len(text) > bigDocument {
		defer opts.Limiter.wait()()
	}

	f, err = parseText(text, opts)
	if err != nil {
		return nil, err
	}
	f.Warnings = append(warnings, f.Warnings...)
	if opts.reading.differs {
		f.readEarlier(b, opts)
	}
	return f, nil
}

// reading says how a document is read: by all rules, or as the first versions of this
// package did, for [Entry.Earlier]. A nil reading is by all rules.
type reading struct {
	first   bool
	differs bool // a rule applies that the first versions did not have
}

// newer reports whether a rule holds that the first versions of this package did not
// have. It is asked where the rule makes a difference.
func (r *reading) newer() bool {
	if r == nil {
		return true
	}
	r.differs = true
	return !r.first
}

// readEarlier sets what the entries were for the first versions of this package.
func (f *Feed) readEarlier(b []byte, opts Options) {
	opts.reading = &reading{first: true}
	text, _, err := decodeBytes(b, opts)
	if err != nil {
		return
	}
	before, err := parseText(text, opts)
	if err != nil || len(before.Entries) != len(f.Entries) {
		return
	}
	for i := range f.Entries {
		f.Entries[i].Earlier = before.Entries[i].earlier(&f.Entries[i])
	}
}

// earlier returns what identifies an entry and shows a change of it, or nil where that
// is the same in another reading.
func (e *Entry) earlier(other *Entry) *Entry {
	if e.GUID == other.GUID && e.ID == other.ID && e.Link == other.Link && e.Title == other.Title &&
		e.Content == other.Content && e.ContentType == other.ContentType &&
		e.Published.Equal(other.Published) && e.Updated.Equal(other.Updated) && e.PublishedRaw == other.PublishedRaw {
		return nil
	}
	return &Entry{
		GUID: e.GUID, ID: e.ID, Link: e.Link, Title: e.Title, Content: e.Content, ContentType: e.ContentType,
		Published: e.Published, Updated: e.Updated, PublishedRaw: e.PublishedRaw,
	}
}

// isGzip tells compressed documents, whose size is known only when they have
// been read.
func isGzip(b []byte) bool { return len(b) > 1 && b[0] == 0x1f && b[1] == 0x8b }

// parseText parses a document in UTF-8.
func parseText(text []byte, opts Options) (*Feed, error) {
	if value, prefix := unwrapJSON(text); value != nil {
		// Behind something else it may be no JSON, but junk before a feed.
		if f, err := parseJSON(value, opts); prefix == 0 || err == nil {
			return f.behind(text[:prefix]), err
		}
	}
	doc, err := tidyXML(text, opts)
	if err != nil {
		return nil, err
	}
	f, err := parseXML(doc, opts)
	if err != nil {
		return nil, err
	}
	if err := checkEmpty(f, doc); err != nil {
		return nil, err
	}
	f.Truncated = doc.cut
	f.Warnings = append(doc.warnings, f.Warnings...)
	return f, nil
}

// behind says of a feed that something stands before it.
func (f *Feed) behind(prefix []byte) *Feed {
	if f == nil || len(prefix) == 0 {
		return f
	}
	lines := bytes.Count(prefix, []byte{'\n'})
	for i := range f.Warnings {
		if f.Warnings[i].Line > 0 {
			f.Warnings[i].Line += lines
		}
	}
	f.Warnings = slices.Insert(f.Warnings, 0, Warning{Line: 1, Text: "what stands before the feed was skipped"})
	return f
}

// checkEmpty refuses a document without entries that is no empty feed either: a
// program that took it for one would not look again until it changes.
func checkEmpty(f *Feed, doc *tidied) error {
	switch {
	case len(f.Entries) > 0:
	case doc.cut:
		return errCutOff(doc.lost)
	case doc.head || doc.entries > 0:
	case doc.root == "feed":
		return &NotFeedError{What: "a <feed> element with nothing in it"}
	default:
		return &NotFeedError{What: "an <" + doc.root + "> element without a channel"}
	}
	return nil
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

func (o Options) maxBytes() int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return DefaultMaxBytes
}

func (o Options) maxEntries() int {
	if o.MaxEntries > 0 {
		return o.MaxEntries
	}
	return DefaultMaxEntries
}

// leftOut is the warning for entries beyond the limit.
func leftOut(f *Feed, limit int) {
	f.warn("only the first %d entries were taken", limit)
	f.Warnings[len(f.Warnings)-1].Limit = "MaxEntries"
}

func (f *Feed) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, Warning{Text: fmt.Sprintf(format, args...)})
}

// warnOnce is warn for what is said once of a document.
func (f *Feed) warnOnce(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(f.Warnings, func(w Warning) bool { return w.Text == text }) {
		f.warn("%s", text)
	}
}

// mimeType gives a media type without parameters, in lower case.
func mimeType(s string) string {
	if i := strings.IndexByte(s, ';'); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSpace(s))
}
