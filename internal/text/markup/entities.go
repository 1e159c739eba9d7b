// Package markup reads the text of XML and HTML: references to characters, text without
// its tags, and URLs.
package markup

import (
	"bytes"
	"errors"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// windows1252 maps U+0080 to U+009F to the characters of windows-1252: feeds with these code points
// were written in windows-1252.
func windows1252(r rune) rune {
	if r < 0x80 || r >= 0xA0 {
		return r
	}
	return charmap.Windows1252.DecodeByte(byte(r))
}

// suspect marks bytes that may start a character to be replaced: C0 controls, CR, U+0080 to U+009F,
// U+FFFE and U+FFFF.
var suspect = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = c != '\t' && c != '\n'
	}
	t[0xC2], t[0xEF] = true, true
	return
}()

// CleanChars drops C0 controls, reads C1 controls as windows-1252, replaces U+FFFE and U+FFFF, and
// makes LF of CR LF and CR. Text without these is returned as it is. mended is the number of
// characters that were corrected, without line ends, and first is the position of the first of
// them.
func CleanChars(text []byte) (clean []byte, mended, first int) {
	var out []byte
	start := 0
	for i := 0; i < len(text); {
		if !suspect[text[i]] {
			i++
			continue
		}
		r, n, counts := mendChar(text[i:])
		if n == 0 {
			i++
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(text)+len(text)/16)
		}
		out = append(out, text[start:i]...)
		if counts {
			if mended == 0 {
				first = i
			}
			mended++
		}
		if r >= 0 {
			out = utf8.AppendRune(out, r)
		}
		i += n
		start = i
	}
	if start == 0 {
		return text, 0, 0
	}
	return append(out, text[start:]...), mended, first
}

// mendChar looks at the character that b starts with. n is its length, 0 when
// it is fine; r what replaces it, -1 when it is dropped.
func mendChar(b []byte) (r rune, n int, counts bool) {
	switch c := b[0]; {
	case c == '\r':
		if len(b) > 1 && b[1] == '\n' {
			return -1, 1, false
		}
		return '\n', 1, false
	case c < 0x20:
		return -1, 1, true
	case c == 0xC2 && len(b) > 1 && b[1] < 0xA0:
		return windows1252(rune(b[1])), 2, true
	case c == 0xEF && len(b) > 2 && b[1] == 0xBF && b[2] >= 0xBE:
		return utf8.RuneError, 3, true
	}
	return 0, 0, false
}

// maxEntityName is the length of the longest entity of HTML, with room.
const maxEntityName = 40

// Entities are the entities that the internal subset of a DOCTYPE defines. Values contain no markup
// and no references, so nothing expands twice. All expansions together are limited to left bytes.
type Entities struct {
	values map[string]string
	left   int
}

const (
	maxEntities      = 64
	maxEntityValue   = 1024
	maxEntityExpands = 1 << 20
)

// Define defines an entity. As XML requires, the first definition of a name counts.
func (e *Entities) Define(name, value []byte) {
	if len(e.values) >= maxEntities || len(name) == 0 || len(name) > maxEntityName ||
		len(value) > maxEntityValue || bytes.ContainsAny(value, "<%") {
		return
	}
	switch string(name) {
	case "amp", "lt", "gt", "quot", "apos":
		return
	}
	if bytes.IndexByte(value, '&') >= 0 {
		// Only character references are resolved in a value: references to entities could nest.
		var none Entities
		value = none.Decode(nil, value)
		if bytes.ContainsAny(value, "&<%") {
			return
		}
	}
	if e.values == nil {
		e.values = make(map[string]string)
		e.left = maxEntityExpands
	}
	if _, ok := e.values[string(name)]; !ok {
		e.values[string(name)] = string(value)
	}
}

// Decode appends src to dst with its references resolved: those of XML, of
// HTML and of the DOCTYPE, if they end in a semicolon. Everything else that
// starts with & is text. src holds no control characters ([CleanChars]).
func (e *Entities) Decode(dst, src []byte) []byte {
	for {
		i := bytes.IndexByte(src, '&')
		if i < 0 {
			return append(dst, src...)
		}
		dst = append(dst, src[:i]...)
		src = src[i:]
		var n int
		if dst, n = e.reference(dst, src); n == 0 {
			dst = append(dst, '&')
			n = 1
		}
		src = src[n:]
	}
}

// DecodeAttr decodes an attribute's value. Literal white space becomes spaces, as XML requires.
func (e *Entities) DecodeAttr(val []byte) []byte {
	if bytes.IndexByte(val, '\n') >= 0 || bytes.IndexByte(val, '\t') >= 0 {
		val = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\t' {
				return ' '
			}
			return r
		}, val)
	}
	if bytes.IndexByte(val, '&') < 0 {
		return val
	}
	return e.Decode(make([]byte, 0, len(val)), val)
}

// reference appends the text of the reference at the start of s and returns the length of the
// reference, 0 if s does not start with one.
func (e *Entities) reference(dst, s []byte) ([]byte, int) {
	end := bytes.IndexByte(s[:min(len(s), maxEntityName+2)], ';')
	if end < 2 {
		return dst, 0
	}
	name := s[1:end]
	if name[0] == '#' {
		r, ok := charReference(name[1:])
		if !ok {
			return dst, 0
		}
		if r >= 0 && (r != '\r' || !lineFeed(s[end+1:])) {
			if r == '\r' {
				r = '\n'
			}
			dst = utf8.AppendRune(dst, r)
		}
		return dst, end + 1
	}
	if value := common(name); value != "" {
		return append(dst, value...), end + 1
	}
	if !isEntityName(name) {
		return dst, 0
	}
	if v, ok := e.values[string(name)]; ok {
		if len(v) > e.left {
			return dst, 0
		}
		e.left -= len(v)
		return append(dst, v...), end + 1
	}
	// html.UnescapeString also resolves prefixes without a semicolon. Ignore such a result: it is
	// not the entity that was written.
	span := string(s[:end+1])
	dec := html.UnescapeString(span)
	if dec == span || dec == html.UnescapeString(span[:end])+";" {
		return dst, 0
	}
	return append(dst, dec...), end + 1
}

// common returns the text of an entity of XML, or of the most common one of HTML, or "". A switch
// is faster than a map; texts consist of these to a tenth.
func common(name []byte) string {
	switch string(name) {
	case "lt":
		return "<"
	case "gt":
		return ">"
	case "amp":
		return "&"
	case "quot":
		return `"`
	case "apos":
		return "'"
	case "nbsp":
		return "\u00a0"
	}
	return ""
}

// lineFeed reports whether rest begins with a line feed, as such or as a reference: a
// carriage return before it is a part of the same line end.
func lineFeed(rest []byte) bool {
	digits, ok := bytes.CutPrefix(rest, []byte("&#"))
	if !ok {
		return bytes.HasPrefix(rest, []byte("\n"))
	}
	r, ok := charReference(digits[:max(bytes.IndexByte(digits, ';'), 0)])
	return ok && r == '\n'
}

func isEntityName(name []byte) bool {
	for _, c := range name {
		if c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' && c != '_' || c > 'z' && c < 0x80 {
			return false
		}
	}
	return true
}

// charReference reads the digits of a character reference. The rune is -1 for
// a C0 control, which is dropped.
func charReference(digits []byte) (r rune, ok bool) {
	base := 10
	if len(digits) > 0 && digits[0]|0x20 == 'x' {
		base, digits = 16, digits[1:]
	}
	n, err := strconv.ParseUint(string(digits), base, 31)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	r = rune(n) // out of range, the largest there is
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return r, true
	case r < 0x20:
		return -1, true
	case r > utf8.MaxRune, r >= 0xD800 && r < 0xE000, r == 0xFFFE, r == 0xFFFF:
		return utf8.RuneError, true
	}
	return windows1252(r), true
}

// IsSpace reports whether c is white space of XML or HTML.
func IsSpace(c byte) bool { return strings.IndexByte(Spaces, c) >= 0 }

// Spaces are the characters of white space in XML and HTML.
const Spaces = " \n\t\r\f"

// Until returns the index in s, from i on, of the first byte that is in stops, or len(s).
func Until[T string | []byte](s T, i int, stops string) int {
	for i < len(s) && strings.IndexByte(stops, s[i]) < 0 {
		i++
	}
	return i
}

// Blank reports whether b holds only white space and NULs.
func Blank(b []byte) bool {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\n', '\r', 0, '\v', '\f':
		default:
			return len(bytes.TrimFunc(b[i:], func(r rune) bool {
				return unicode.IsSpace(r) || r == 0 || r == 0xFEFF
			})) == 0
		}
	}
	return true
}

// SkipSpace returns the index in s, from i on, of the first byte that is not white space.
func SkipSpace[T string | []byte](s T, i int) int {
	for i < len(s) && IsSpace(s[i]) {
		i++
	}
	return i
}

// Ends are end marks that do not occur in the rest of a text. They let a scanner search to the end
// of the text in vain only once for each mark, which keeps it linear.
type Ends []string

// Index returns the index in s of the first end, or -1. s is the rest of the text; each call must
// pass the same rest or a shorter one.
func (e *Ends) Index(s, end string) int {
	if e.Lack(end) {
		return -1
	}
	n := strings.Index(s, end)
	if n < 0 {
		*e = append(*e, end)
	}
	return n
}

// IndexBytes is Index for bytes.
func (e *Ends) IndexBytes(s []byte, end string) int {
	if e.Lack(end) {
		return -1
	}
	n := bytes.Index(s, []byte(end))
	if n < 0 {
		*e = append(*e, end)
	}
	return n
}

// Lack reports whether a search for end has failed.
func (e *Ends) Lack(end string) bool { return slices.Contains(*e, end) }
