package ess

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/markup"
)

const (
	// MaxField is the maximum length of a field, in bytes, and of a URL as [EscapeURL]
	// writes it, so that others can read what is accepted here.
	MaxField = 8 << 10

	// Milliseconds is the smallest build time that is read as milliseconds, as in the
	// examples of the specification. As seconds, it would be the year 5138.
	Milliseconds = 100_000_000_000
)

// Kind is the kind of a document, which its content determines. Several URLs make an NNO.
// Several pairs after a single URL make an ESS. Otherwise it is an NNO if the comma after
// the build time ends the line or another comma follows, and an ESS if the URL follows.
type Kind uint8

const (
	ESS Kind = iota
	NNO
)

func (k Kind) String() string { return [...]string{"ESS", "NNO"}[k] }

// Document is a decoded document.
type Document struct {
	Build time.Time // whole minute, in UTC
	Kind  Kind      // ESS or NNO
	// URL is the URL of the feed of an ESS, "" if there is none. An NNO has one if several
	// pairs follow its first URL, as in an ESS.
	URL     string
	Entries []FeedEntry // in the order of the document
}

// Warning is a defect of a document, with its place.
type Warning struct {
	Line  int // from 1
	Field int // from 1, counted through the whole document
	Text  string
}

func (w Warning) String() string {
	return fmt.Sprintf("line %d, field %d: %s", w.Line, w.Field, w.Text)
}

// BuildError is the error for a document that does not begin with a build time: it is
// neither ESS nor NNO.
type BuildError struct {
	Line  int
	Found string // beginning of the field, "" if there is none
}

func (e *BuildError) Error() string {
	if e.Found == "" {
		return "it is empty, and has no build time"
	}
	return fmt.Sprintf("line %d: it begins with %s, not with a build time", e.Line, strconv.Quote(e.Found))
}

// Decode decodes a document tolerantly, as described in ess(5), "What a reader accepts". It
// calls warn, which may be nil, for each defect that was repaired or skipped, in the order
// of the document. The error is a [*BuildError].
func Decode(b []byte, warn func(Warning)) (*Document, error) {
	return (&decoder{scanner: scanner{b: b, line: 1, at: 1}, report: warn}).decode()
}

// DecodeStrict decodes a document as [Decode] does, and also warns of everything that a
// strict writer would not write.
func DecodeStrict(b []byte, warn func(Warning)) (*Document, error) {
	return (&decoder{scanner: scanner{b: b, line: 1, at: 1}, report: warn, strict: true}).decode()
}

// decoder decodes one document.
type decoder struct {
	scanner
	report func(Warning) // may be nil
	strict bool
	doc    Document

	build int64 // minute
	mark  bool  // the comma after the build time indicates an NNO

	urls int // number of URLs
	url  candidate

	pending struct { // minutes without their checksum
		set         bool
		n           int64
		absurd      bool
		line, field int
	}
}

// scanner splits a document into fields.
type scanner struct {
	b      []byte // the document
	pos    int    // offset of the next field
	line   int    // line of the next field
	at     int    // line of the current field
	fields int    // number of fields read
	comma  bool   // a comma ended the field
}

// candidate is the URL of the entries that follow.
type candidate struct {
	text        []byte // grows while the next fields may belong to the URL
	size        int    // length as EscapeURL writes it
	drop        bool   // the URL is too long; its entries are skipped
	feed        string // the URL, after its first entry
	pairs       int    // number of its entries, with dropped ones
	empties     int    // number of empty fields directly after it
	line, field int    // place of its beginning
}

func (d *decoder) decode() (*Document, error) {
	d.doc.Entries = make([]FeedEntry, 0, min(bytes.Count(d.b, []byte(","))/2, DefaultTop))
	if err := d.buildTime(); err != nil {
		return nil, err
	}
	for f, ok := d.field(); ok; f, ok = d.field() {
		n, isNumber, huge := number(f)
		switch {
		case len(f) > MaxField:
			d.tooLong(f)
		case len(f) == 0:
			d.empty()
		case isNumber:
			d.value(f, n, huge)
		case markup.HasScheme(f):
			d.newURL(f)
		default:
			d.text(f)
		}
	}
	d.end()
	return &d.doc, nil
}

// buildTime reads the first field, and whether the next one indicates an NNO.
func (d *decoder) buildTime() error {
	const mark = "\xef\xbb\xbf"
	if bytes.HasPrefix(d.b, []byte(mark)) {
		d.pos = len(mark)
		if d.strict {
			d.warnAt(1, 1, "a byte order mark precedes the document")
		}
	}
	f, ok := d.field()
	if !ok {
		return &BuildError{Line: d.at}
	}
	n, isNumber, huge := number(f)
	if !isNumber || huge || n < 60 || n/1000 >= Milliseconds { // no build time is in the first minute of 1970
		found := excerpt(f)
		if found == "" {
			found = ","
		}
		return &BuildError{Line: d.at, Found: found}
	}
	d.checkPlain(f)
	if n >= Milliseconds {
		if d.strict {
			d.warn("the build time is in milliseconds, not in seconds")
		}
		n /= 1000
	}
	if d.strict && n%60 != 0 {
		d.warn("the build time is not a multiple of 60")
	}
	d.build = n / 60
	d.doc.Build = Time(d.build)
	if d.comma {
		line := d.line
		second := d.skipComma()
		d.mark = second || d.pos == len(d.b) || d.line > line
	}
	return nil
}

// field returns the next field, without white space around it. Fields end at a comma or a
// line break. A comma beside a line break does not make another field, and empty lines are
// skipped.
func (s *scanner) field() ([]byte, bool) {
	if !s.skip() {
		return nil, false
	}
	s.fields++
	s.at = s.line
	start := s.pos
	for s.pos < len(s.b) && s.b[s.pos] != ',' && s.b[s.pos] != '\n' && s.b[s.pos] != '\r' {
		s.pos++
	}
	f := s.b[start:s.pos]
	for len(f) > 0 && f[len(f)-1] <= ' ' {
		f = f[:len(f)-1]
	}
	s.comma = s.skipComma()
	return f, true
}

// skip skips white space. It reports false at the end of the document.
func (s *scanner) skip() bool {
	for ; s.pos < len(s.b) && s.b[s.pos] <= ' '; s.pos++ {
		if s.b[s.pos] == '\n' {
			s.line++
		}
	}
	return s.pos < len(s.b)
}

// skipComma skips white space and one comma, and reports whether there was a comma.
func (s *scanner) skipComma() bool {
	comma := s.skip() && s.b[s.pos] == ','
	if comma {
		s.pos++
	}
	return comma
}

// value handles a number: minutes, or the checksum of an entry.
func (d *decoder) value(f []byte, n int64, huge bool) {
	if d.urls == 0 {
		d.warn("%s comes before any URL; dropped", excerpt(f))
		return
	}
	d.warnEmpty()
	d.checkPlain(f)
	if !d.pending.set {
		d.pending.set, d.pending.n, d.pending.absurd = true, n, huge || d.build-n < firstMinute ||
			d.build-n > lastMinute
		d.pending.line, d.pending.field = d.at, d.fields
		return
	}
	d.pending.set = false
	if d.url.pairs++; d.url.pairs == 1 {
		d.url.feed = string(d.url.text)
	}
	if d.pending.absurd {
		d.warnAt(d.pending.line, d.pending.field, "the minutes are out of range; the entry is dropped")
		return
	}
	if huge || n < 0 || n > 256 {
		d.warn("the checksum %s is not in 0 to 256", excerpt(f))
	} else if n == 256 && d.strict {
		d.warn("the checksum 256 must be written 0")
	}
	if d.url.drop {
		return
	}
	e := FeedEntry{d.url.feed, Entry{d.build - d.pending.n, uint8(n)}}
	if d.strict {
		d.checkOrder(e)
	}
	d.doc.Entries = append(d.doc.Entries, e)
}

// checkOrder warns of an entry that is not in the order of a strict writer.
func (d *decoder) checkOrder(e FeedEntry) {
	warn := func(text string) { d.warnAt(d.pending.line, d.pending.field, "%s", text) }
	if d.urls > 1 && d.url.pairs > 1 {
		warn("the entry has no URL of its own, which an NNO requires")
	}
	if len(d.doc.Entries) == 0 {
		return
	}
	last := d.doc.Entries[len(d.doc.Entries)-1]
	switch {
	case e.Minute > last.Minute:
		warn("the entry is newer than the one before it")
	case e.Compare(last) < 0:
		warn("the entry comes before the one before it, which has the same minute")
	}
}

// checkPlain warns of a number in another form than that of a strict writer.
func (d *decoder) checkPlain(f []byte) {
	if d.strict && (f[0] == '+' || len(f) > 1 && (f[0] == '0' || f[0] == '-' && f[1] == '0')) {
		d.warn("%s is not written as a plain number", excerpt(f))
	}
}

// newURL handles a URL.
func (d *decoder) newURL(f []byte) {
	d.beginURL()
	if d.url.size = len(EscapeURL(string(f))); d.url.size > MaxField {
		d.dropURL()
		return
	}
	d.url.text = append(d.url.text, f...)
	if d.strict {
		d.checkEscaped(f)
		low := bytes.ToLower(f)
		if !bytes.HasPrefix(low, []byte("http://")) && !bytes.HasPrefix(low, []byte("https://")) {
			d.warn("the URL is neither http nor https")
		}
	}
}

func (d *decoder) beginURL() {
	d.dropMinutes()
	switch {
	case d.urls > 0 && d.url.pairs == 0:
		d.warnAt(d.url.line, d.url.field, "no entry follows the URL")
	case d.urls == 1 && d.url.pairs > 1:
		d.doc.URL = d.url.feed
		if d.strict {
			d.warnAt(d.url.line, d.url.field,
				"several entries follow the URL, as in an ESS, but it is not the only URL")
		}
	}
	d.urls++
	d.url = candidate{text: d.url.text[:0], line: d.at, field: d.fields}
}

// tooLong handles a field that is too long. If it is a URL or a part of one, the entries
// after it must not be added to the previous URL.
func (d *decoder) tooLong(f []byte) {
	switch {
	case markup.HasScheme(f[:MaxField]):
		d.beginURL()
	case d.urls == 0 || d.url.pairs > 0 || d.pending.set:
		d.warn("the field is too long; dropped")
		return
	}
	d.dropURL()
}

// dropURL skips the URL and its entries.
func (d *decoder) dropURL() {
	if !d.url.drop {
		d.warn("the URL is too long; dropped with its entries")
	}
	d.url.drop, d.url.text = true, d.url.text[:0]
}

// checkEscaped warns of characters that a URL must not contain.
func (d *decoder) checkEscaped(f []byte) {
	if s := string(f); s != EscapeURL(s) || !utf8.Valid(f) {
		d.warn("the URL has characters that must be percent-encoded")
	}
}

// text handles a field that is neither a number nor a URL.
func (d *decoder) text(f []byte) {
	if d.urls == 0 || d.url.pairs > 0 || d.pending.set {
		d.warn("%s is neither a number nor a URL; dropped", excerpt(f))
		return
	}
	// The field is the rest of a URL with a comma.
	d.url.size += 3*(d.url.empties+1) + len(EscapeURL(string(f))) // each comma is %2C
	commas := d.url.empties + 1
	d.url.empties = 0
	if d.url.drop || d.url.size > MaxField {
		d.dropURL()
		return
	}
	d.url.text = append(append(d.url.text, strings.Repeat(",", commas)...), f...)
	if d.strict {
		d.warn("the comma in the URL must be written %%2C")
		d.checkEscaped(f)
	}
}

func (d *decoder) empty() {
	if d.urls > 0 && d.url.pairs == 0 && !d.pending.set && len(d.url.text)+d.url.empties < MaxField {
		d.url.empties++ // perhaps two commas in a URL
		return
	}
	d.warn("the field is empty; dropped")
}

// warnEmpty warns of empty fields after the URL that do not belong to it.
func (d *decoder) warnEmpty() {
	if d.url.empties > 0 {
		d.warnAt(d.url.line, d.url.field+1, "the field is empty; dropped")
		d.url.empties = 0
	}
}

// dropMinutes warns of minutes without a checksum.
func (d *decoder) dropMinutes() {
	if d.pending.set {
		d.warnAt(d.pending.line, d.pending.field, "no checksum follows the minutes; dropped")
		d.pending.set = false
	}
}

// end sets the kind of the document.
func (d *decoder) end() {
	d.warnEmpty()
	d.dropMinutes()
	if (d.urls > 1 || d.urls == 1 && d.mark) && d.url.pairs == 0 {
		d.warnAt(d.url.line, d.url.field, "no entry follows the URL")
	}
	if d.urls > 1 || d.mark && d.url.pairs < 2 {
		d.doc.Kind = NNO
		return
	}
	d.doc.URL = string(d.url.text)
	if d.urls == 0 && d.strict {
		d.warnAt(1, 2, "there is no URL")
	}
}

func (d *decoder) warn(format string, args ...any) { d.warnAt(d.at, d.fields, format, args...) }

func (d *decoder) warnAt(line, field int, format string, args ...any) {
	if d.report != nil {
		d.report(Warning{Line: line, Field: field, Text: fmt.Sprintf(format, args...)})
	}
}

// number parses an integer with an optional sign. huge is true for a number that is out of
// range for any field.
func number(f []byte) (n int64, ok, huge bool) {
	if len(f) == 0 || f[0] > '9' || len(bytes.Trim(f[1:], "0123456789")) > 0 {
		return 0, false, false
	}
	n, err := strconv.ParseInt(string(f), 10, 64)
	return n, !errors.Is(err, strconv.ErrSyntax), n >= 1e18 || n <= -1e18
}

// excerpt returns the beginning of a field for a message.
func excerpt(f []byte) string {
	return humanize.Cut(strings.ToValidUTF8(string(f), "\uFFFD"), 60)
}
