package ess

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of a [Decoder].
const (
	// MaxField is the longest field that is read, in bytes, and the longest URL
	// as [EscapeURL] writes it: others must be able to read what is read here.
	MaxField = 8 << 10
	// bufSize is what is held of a document that is read from a reader.
	bufSize = 64 << 10

	// Milliseconds is where build times in milliseconds begin, as on the page's
	// own examples: as seconds it would be the year 5138, which in milliseconds
	// is none, either.
	Milliseconds = 100_000_000_000
)

// Kind is what a document is, which it says itself: several URLs make an NNO,
// several pairs after its one URL an ESS; else it is an NNO where the comma after
// the build time ends the line, or another follows it, and an ESS where the URL
// does.
type Kind uint8

const (
	ESS Kind = iota
	NNO
)

func (k Kind) String() string { return [...]string{"ESS", "NNO"}[k] }

// Warning tells what is wrong in a document, and where.
type Warning struct {
	Line  int // from 1
	Field int // from 1, counted through the document
	Text  string
}

func (w Warning) String() string {
	return fmt.Sprintf("line %d, field %d: %s", w.Line, w.Field, w.Text)
}

// BuildError is returned for a document that does not begin with a build time:
// it is neither ESS nor NNO.
type BuildError struct {
	Line  int
	Found string // the beginning of the field, or "" when there is none
}

func (e *BuildError) Error() string {
	if e.Found == "" {
		return "it is empty, and has no build time"
	}
	return fmt.Sprintf("line %d: it begins with %s, not with a build time", e.Line, strconv.Quote(e.Found))
}

// Decoder reads ESS and NNO documents in one pass, tolerantly; ess(5), "What a
// reader accepts", says how. It allocates nothing for an entry, and nothing for
// a document once it was used for one.
//
// The zero value is ready for Reset or ResetBytes. A Decoder is not safe for
// concurrent use.
type Decoder struct {
	// Warn is told of what is wrong and was mended or left out, in the order
	// of the document. May be nil.
	Warn func(Warning)
	// Strict makes Warn hear of everything that a strict writer would not have
	// written, too.
	Strict bool

	r      io.Reader // nil when all of the document is in buf
	own    []byte    // the buffer for r
	buf    []byte
	pos    int
	err    error
	kept   []byte // a field, while the buffer is filled
	head   []byte // of the last field that was too long
	line   int
	at     int // line of the field
	fields int

	build  int64 // minute
	mark   bool  // the comma after the build time is that of an NNO
	url    []byte
	size   int  // of the URL, as EscapeURL writes it; -1 while it is not counted
	urls   int  // how many there were
	pairs  int  // of this URL
	total  int  // pairs of all
	commas bool // there was a raw comma in the URL
	drop   bool // the URL is too long, and its entries are dropped
	first  struct{ line, field int }

	minute int64
	sum    uint8

	pending struct { // minutes that wait for their checksum
		set         bool
		n           int64
		absurd      bool
		line, field int
	}
	empties int // empty fields right after the URL
	last    int64
	lastURL []byte
	lastSum uint8
	any     bool
}

// Reset begins a document that is read from r, of any length, with a buffer of
// fixed size.
func (d *Decoder) Reset(r io.Reader) {
	if d.own == nil {
		d.own = make([]byte, bufSize)
	}
	d.reset(d.own[:0])
	d.r = r
}

// ResetBytes begins a document that is in memory. It is not changed, and must
// not be while it is decoded.
func (d *Decoder) ResetBytes(b []byte) { d.reset(b) }

func (d *Decoder) reset(b []byte) {
	*d = Decoder{
		Warn: d.Warn, Strict: d.Strict, own: d.own, kept: d.kept, head: d.head, url: d.url[:0], lastURL: d.lastURL, buf: b, line: 1, at: 1,
	}
}

// Begin reads the build time. The error is a [*BuildError], or that of the
// reader.
func (d *Decoder) Begin() error {
	for len(d.buf)-d.pos < 3 && d.fill() {
		continue
	}
	if bytes.HasPrefix(d.buf[d.pos:], []byte("\xef\xbb\xbf")) {
		d.pos += 3
		if d.Strict {
			d.fields = 1
			d.warn("a byte order mark stands before the document")
			d.fields = 0
		}
	}
	var f []byte
	long := false
	ok := d.skip()
	if ok {
		d.fields, d.at = 1, d.line
		f, long = d.scan()
	}
	switch {
	case d.err != nil:
		return d.err
	case !ok:
		return &BuildError{Line: d.at}
	case long:
		return &BuildError{Line: d.at, Found: excerpt(d.head)}
	case len(f) == 0:
		return &BuildError{Line: d.at, Found: ","}
	}
	n, isNumber, huge := number(f)
	if !isNumber || huge {
		return &BuildError{Line: d.at, Found: excerpt(f)}
	}
	d.plain(f)
	if n < 60 {
		// No build time is in the first minute of 1970.
		return &BuildError{Line: d.at, Found: excerpt(f)}
	}
	if n >= Milliseconds {
		if n/1000 >= Milliseconds {
			return &BuildError{Line: d.at, Found: excerpt(f)}
		}
		if d.Strict {
			d.warn("the build time is in milliseconds, not in seconds")
		}
		n /= 1000
	}
	if d.Strict && n%60 != 0 {
		d.warn("the build time is no multiple of 60")
	}
	d.build = n / 60
	d.mark = d.pos > 0 && d.buf[d.pos-1] == ',' && d.marked()
	return d.err
}

// marked passes what follows the comma after the build time, and reports whether
// it is what makes an NNO.
func (d *Decoder) marked() bool {
	line := d.line
	if !d.skip() {
		return true
	}
	if d.buf[d.pos] == ',' {
		d.pos++
		return true
	}
	return d.line > line
}

// Kind is what the document is, after Next has returned false.
func (d *Decoder) Kind() Kind {
	if d.urls > 1 || d.mark && (d.urls == 0 || d.total < 2) {
		return NNO
	}
	return ESS
}

// Build gives the build time, a whole minute, in UTC.
func (d *Decoder) Build() time.Time { return Time(d.build) }

// URLs counts the URLs so far, those without an entry included.
func (d *Decoder) URLs() int { return d.urls }

// Next finds the next entry, and reports false at the end of the document.
func (d *Decoder) Next() bool {
	if d.urls > 0 && d.empties == 0 && !d.pending.set && !d.drop && !d.Strict && d.quick() {
		return true
	}
	for {
		f, ok := d.field()
		if !ok {
			d.end()
			return false
		}
		if len(f) == 0 {
			d.empty()
			continue
		}
		n, isNumber, huge := number(f)
		switch {
		case isNumber:
			if d.value(f, n, huge) {
				return true
			}
		case hasScheme(f):
			d.begin(f)
		default:
			d.text(f)
		}
	}
}

// quick reads a pair that is written as a strict writer does, and nothing
// else: then it leaves everything as it was.
func (d *Decoder) quick() bool {
	b, p, line := d.buf, d.pos, d.line
	for p < len(b) && b[p] <= ' ' {
		if b[p] == '\n' {
			line++
		}
		p++
	}
	start, n := p, 0
	for p < len(b) && b[p]-'0' < 10 {
		n = n*10 + int(b[p]-'0')
		p++
	}
	if k := p - start; k == 0 || k > 8 || p >= len(b) || b[p] != ',' {
		return false
	}
	p++
	start = p
	sum := 0
	for p < len(b) && b[p]-'0' < 10 {
		sum = sum*10 + int(b[p]-'0')
		p++
	}
	if k := p - start; k == 0 || k > 3 || p >= len(b) || b[p] != ',' || sum > 256 {
		return false
	}
	d.pos, d.line = p+1, line
	d.fields += 2
	d.pairs++
	d.total++
	d.minute, d.sum = d.build-int64(n), uint8(sum)
	return true
}

// value takes a number, and reports whether it completes an entry.
func (d *Decoder) value(f []byte, n int64, huge bool) bool {
	if d.urls == 0 {
		d.warn("%s stands before any URL; dropped", excerpt(f))
		return false
	}
	if d.empties > 0 {
		d.warnEmpty()
	}
	d.plain(f)
	if !d.pending.set {
		d.pending.set, d.pending.n, d.pending.absurd = true, n, huge || d.build-n < firstMinute || d.build-n > lastMinute
		d.pending.line, d.pending.field = d.at, d.fields
		return false
	}
	d.pending.set = false
	if d.pending.absurd {
		d.warnAt(d.pending.line, d.pending.field, "the minutes make no sense; the entry is dropped")
		return false
	}
	if huge || n < 0 || n > 256 {
		d.warn("the checksum %s is not in 0 to 256", excerpt(f))
	} else if n == 256 && d.Strict {
		d.warn("the checksum 256 must be written 0")
	}
	d.pairs++
	d.total++
	if d.drop {
		return false
	}
	d.minute, d.sum = d.build-d.pending.n, uint8(n)
	if d.Strict {
		if d.urls > 1 && d.pairs > 1 {
			d.warnAt(d.pending.line, d.pending.field, "the entry has no URL of its own, as those of an NNO have")
		}
		c := bytes.Compare(d.url, d.lastURL)
		switch {
		case d.any && d.minute > d.last:
			d.warnAt(d.pending.line, d.pending.field, "the entry is newer than the one before it")
		case d.any && d.minute == d.last && (c < 0 || c == 0 && d.sum < d.lastSum):
			d.warnAt(d.pending.line, d.pending.field, "the entry comes before the one before it, which has the same minute")
		}
		d.any, d.last, d.lastSum = true, d.minute, d.sum
		d.lastURL = append(d.lastURL[:0], d.url...)
	}
	return true
}

// plain tells of a number that is not written as a strict writer does.
func (d *Decoder) plain(f []byte) {
	if d.Strict && (f[0] == '+' || len(f) > 1 && (f[0] == '0' || f[0] == '-' && f[1] == '0')) {
		d.warn("%s is not written as a plain number", excerpt(f))
	}
}

// begin takes a URL.
func (d *Decoder) begin(f []byte) {
	d.beginURL()
	d.size = -1
	if len(f) > MaxField/3 { // where each byte may become three
		d.size = escapedLen(f)
	}
	if d.size > MaxField {
		d.noURL()
		return
	}
	d.url = append(d.url[:0], f...)
	if d.Strict {
		d.escaped(f)
		low := bytes.ToLower(f)
		if !bytes.HasPrefix(low, []byte("http://")) && !bytes.HasPrefix(low, []byte("https://")) {
			d.warn("the URL is neither http nor https")
		}
	}
}

func (d *Decoder) beginURL() {
	d.dangling()
	switch {
	case d.urls > 0 && d.pairs == 0:
		d.warnAt(d.first.line, d.first.field, "no entry follows the URL")
	case d.urls == 1 && d.pairs > 1 && d.Strict:
		d.warnAt(d.first.line, d.first.field, "several entries follow the URL, as in an ESS, but it is not the only one")
	}
	d.urls++
	d.pairs, d.commas, d.drop, d.empties = 0, false, false, 0
	d.first.line, d.first.field = d.at, d.fields
}

// tooLong takes a field that is too long. What follows a URL that is dropped
// must not count for the URL before it.
func (d *Decoder) tooLong() {
	switch {
	case hasScheme(d.head):
		d.beginURL()
	case d.urls == 0 || d.pairs > 0 || d.pending.set:
		d.warn("the field is too long; dropped")
		return
	}
	d.noURL()
}

// noURL drops the URL, and the entries that follow it.
func (d *Decoder) noURL() {
	if !d.drop {
		d.warn("the URL is too long; dropped with its entries")
	}
	d.drop, d.url = true, d.url[:0]
}

// escapedLen is the length of EscapeURL(url).
func escapedLen(url []byte) int {
	size := len(url)
	for len(url) > 0 {
		r, n := utf8.DecodeRune(url)
		if special(r) && (r != utf8.RuneError || n == 1) {
			size += 2 * n
		}
		url = url[n:]
	}
	return size
}

// escaped tells of characters that a URL must not have.
func (d *Decoder) escaped(f []byte) {
	if s := string(f); s != EscapeURL(s) || !utf8.Valid(f) {
		d.warn("the URL has characters in it that must be percent-encoded")
	}
}

// text takes a field that is neither a number nor a URL.
func (d *Decoder) text(f []byte) {
	if d.urls == 0 || d.pairs > 0 || d.pending.set {
		d.warn("%s is neither a number nor a URL; dropped", excerpt(f))
		return
	}
	// A URL with a raw comma in it.
	if d.size < 0 {
		d.size = escapedLen(d.url)
	}
	d.size += 3*(d.empties+1) + escapedLen(f) // each comma is %2C
	for range d.empties {
		d.url = append(d.url, ',')
	}
	d.empties, d.commas = 0, true
	if d.drop || d.size > MaxField {
		d.noURL()
		return
	}
	d.url = append(append(d.url, ','), f...)
	if d.Strict {
		d.warn("the comma in the URL must be written %%2C")
		d.escaped(f)
	}
}

func (d *Decoder) empty() {
	if d.urls > 0 && d.pairs == 0 && !d.pending.set && len(d.url)+d.empties < MaxField {
		d.empties++ // perhaps two commas in a URL
		return
	}
	d.warn("the field is empty; dropped")
}

func (d *Decoder) warnEmpty() {
	d.warnAt(d.first.line, d.first.field+1, "the field is empty; dropped")
	d.empties = 0
}

func (d *Decoder) dangling() {
	if d.pending.set {
		d.warnAt(d.pending.line, d.pending.field, "no checksum follows the minutes; dropped")
		d.pending.set = false
	}
}

func (d *Decoder) end() {
	if d.err != nil {
		return
	}
	if d.empties > 0 {
		d.warnEmpty()
	}
	d.dangling()
	if (d.urls > 1 || d.urls == 1 && d.mark) && d.pairs == 0 {
		d.warnAt(d.first.line, d.first.field, "no entry follows the URL")
		d.pairs = 1 // say it once
	}
}

func (d *Decoder) warn(format string, args ...any) { d.warnAt(d.at, d.fields, format, args...) }

func (d *Decoder) warnAt(line, field int, format string, args ...any) {
	if d.Warn != nil {
		d.Warn(Warning{Line: line, Field: field, Text: fmt.Sprintf(format, args...)})
	}
}

// field gives the next field without white space around it. Fields end at a
// comma or at the end of a line; a comma beside the end of a line makes no field
// of its own, and empty lines are none. The field is valid until the next call.
func (d *Decoder) field() ([]byte, bool) {
	for d.skip() {
		d.fields++
		d.at = d.line
		f, long := d.scan()
		if d.err != nil {
			return nil, false
		}
		if !long {
			return f, true
		}
		d.tooLong()
	}
	return nil, false
}

// scan gives the field that begins here, and reports whether it was too long;
// then head is its beginning.
func (d *Decoder) scan() (f []byte, long bool) {
	scanned := 0
	check := func(f []byte) bool {
		if !long && len(f) > MaxField {
			d.head = append(d.head[:0], f[:MaxField]...)
			long = true
		}
		return long
	}
	for {
		rest := d.buf[d.pos:]
		if i := bytes.IndexAny(rest[scanned:], ",\n\r"); i >= 0 {
			i += scanned
			d.pos += i
			f = trimRight(rest[:i])
			if rest[i] == ',' {
				d.pos++
				return f, check(f)
			}
			if check(f) {
				f = nil
			}
			return d.endOfLine(f), long
		}
		if scanned = len(rest); scanned > bufSize/2 && d.r != nil {
			check(rest)
			d.pos, scanned = len(d.buf), 0
		}
		if !d.fill() {
			f = trimRight(d.buf[d.pos:]) // filling may have moved it
			d.pos = len(d.buf)
			return f, check(f)
		}
	}
}

// endOfLine passes white space, and a comma behind it. The field is kept where
// filling the buffer does not overwrite it.
func (d *Decoder) endOfLine(f []byte) []byte {
	for {
		for ; d.pos < len(d.buf) && d.buf[d.pos] <= ' '; d.pos++ {
			if d.buf[d.pos] == '\n' {
				d.line++
			}
		}
		if d.pos < len(d.buf) {
			if d.buf[d.pos] == ',' {
				d.pos++
			}
			return f
		}
		if d.r == nil {
			return f
		}
		d.kept = append(d.kept[:0], f...)
		f = d.kept
		if !d.fill() {
			return f
		}
	}
}

func trimRight(f []byte) []byte {
	for len(f) > 0 && f[len(f)-1] <= ' ' {
		f = f[:len(f)-1]
	}
	return f
}

// skip passes white space, and reports false at the end of the document.
func (d *Decoder) skip() bool {
	for {
		for d.pos < len(d.buf) {
			c := d.buf[d.pos]
			if c > ' ' {
				return true
			}
			if c == '\n' {
				d.line++
			}
			d.pos++
		}
		if !d.fill() {
			return false
		}
	}
}

// fill reads more of the document into the buffer, and reports false at its
// end.
func (d *Decoder) fill() bool {
	if d.r == nil || d.err != nil {
		return false
	}
	n := copy(d.own, d.buf[d.pos:])
	d.buf, d.pos = d.own[:n], 0
	for range 100 {
		m, err := d.r.Read(d.own[n:])
		d.buf = d.own[:n+m]
		if err != nil {
			if err != io.EOF {
				d.err = err
			}
			d.r = nil
			return m > 0
		}
		if m > 0 {
			return true
		}
	}
	d.err = io.ErrNoProgress
	return false
}

// number reads a whole number with an optional sign; huge is one that no field
// can mean.
func number(f []byte) (n int64, ok, huge bool) {
	neg := false
	if len(f) > 0 && (f[0] == '-' || f[0] == '+') {
		neg = f[0] == '-'
		f = f[1:]
	}
	if len(f) == 0 {
		return 0, false, false
	}
	for _, c := range f {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		if n < 1e17 {
			n = n*10 + int64(c-'0')
		} else {
			huge = true
		}
	}
	if neg {
		n = -n
	}
	return n, true, huge
}

// excerpt gives the beginning of a field for a message.
func excerpt(f []byte) string {
	if len(f) > 60 {
		f = append(bytes.Clone(f[:60]), "…"...)
	}
	return strings.ToValidUTF8(string(f), "\uFFFD")
}

// Document is a decoded document.
type Document struct {
	Build   time.Time // a whole minute, in UTC
	Kind    Kind      // ESS or NNO
	URL     string    // of the feed, for ESS; "" when there is none
	Entries []FeedEntry
}

// Decode reads a document that is in memory, whole; warn may be nil. The error is
// a [*BuildError].
func Decode(b []byte, warn func(Warning)) (*Document, error) {
	d := Decoder{Warn: warn}
	d.ResetBytes(b)
	return d.Decode()
}

// Decode reads the document that the decoder was reset to, whole. The error is a [*BuildError], or that of the reader;
// what was read until then is returned with it.
func (d *Decoder) Decode() (*Document, error) {
	if err := d.Begin(); err != nil {
		return nil, err
	}
	doc := &Document{Build: d.Build()}
	url := ""
	for d.Next() {
		if url != string(d.url) {
			url = string(d.url)
		}
		doc.Entries = append(doc.Entries, FeedEntry{url, Entry{d.minute, d.sum}})
	}
	if doc.Kind = d.Kind(); doc.Kind == ESS {
		doc.URL = string(d.url)
	}
	return doc, d.err
}
