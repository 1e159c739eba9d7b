package feedconv

import (
	"bytes"
	"errors"
	"html"
	"strconv"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// windows1252 maps U+0080 to U+009F, which in a feed were meant to be what
// windows-1252 has in their place.
func windows1252(r rune) rune {
	if r < 0x80 || r >= 0xA0 {
		return r
	}
	return charmap.Windows1252.DecodeByte(byte(r))
}

// suspect marks bytes that may start a character that must not stay: C0
// controls, CR, U+0080 to U+009F, U+FFFE and U+FFFF.
var suspect = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = c != '\t' && c != '\n'
	}
	t[0xC2], t[0xEF] = true, true
	return
}()

// cleanChars drops C0 controls, reads C1 controls as windows-1252, replaces
// U+FFFE and U+FFFF, and makes LF of CR LF and CR. Text without these is
// returned as it is. It says how many characters were mended, line ends not
// counted, and where the first of them stood.
func cleanChars(text []byte) (clean []byte, mended, first int) {
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

// entitySet is what the internal subset of a DOCTYPE defines. Its values hold
// no markup and no references, so that nothing can be made to expand twice,
// and together they may expand to no more than left bytes.
type entitySet struct {
	values map[string]string
	left   int
}

const (
	maxEntities      = 64
	maxEntityValue   = 1024
	maxEntityExpands = 1 << 20
)

// define keeps the first definition of a name, as XML says.
func (e *entitySet) define(name, value []byte) {
	if len(e.values) >= maxEntities || len(name) == 0 || len(name) > maxEntityName ||
		len(value) > maxEntityValue || bytes.ContainsAny(value, "<%") {
		return
	}
	switch string(name) {
	case "amp", "lt", "gt", "quot", "apos":
		return
	}
	if bytes.IndexByte(value, '&') >= 0 {
		// Character references are characters; anything else could nest.
		var none entitySet
		value = none.decode(nil, value)
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

// decode appends src to dst with its references resolved: those of XML, of
// HTML and of the DOCTYPE, if they end in a semicolon. Everything else that
// starts with & is text. src holds no control characters (cleanChars).
func (e *entitySet) decode(dst, src []byte) []byte {
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

// reference appends what the reference at the start of s stands for and gives
// its length, 0 when it is none.
func (e *entitySet) reference(dst, s []byte) ([]byte, int) {
	end := bytes.IndexByte(s[:min(len(s), maxEntityName+2)], ';')
	if end < 2 {
		return dst, 0
	}
	name := s[1:end]
	switch string(name) {
	case "amp":
		return append(dst, '&'), end + 1
	case "lt":
		return append(dst, '<'), end + 1
	case "gt":
		return append(dst, '>'), end + 1
	case "quot":
		return append(dst, '"'), end + 1
	case "apos":
		return append(dst, '\''), end + 1
	case "nbsp":
		return append(dst, "\u00a0"...), end + 1
	}
	if name[0] == '#' {
		r, ok := charReference(name[1:])
		switch {
		case !ok:
			return dst, 0
		case r == '\r':
			// A line end written out; its LF may follow in either form.
			rest := s[end+1:]
			if len(rest) == 0 || rest[0] != '\n' && rest[0] != '&' {
				dst = append(dst, '\n')
			} else if rest[0] == '&' {
				if next, n := e.reference(nil, rest); n == 0 || string(next) != "\n" {
					dst = append(dst, '\n')
				}
			}
		case r >= 0:
			dst = utf8.AppendRune(dst, r)
		}
		return dst, end + 1
	}
	for _, c := range name {
		if c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' && c != '_' || c > 'z' && c < 0x80 {
			return dst, 0
		}
	}
	if v, ok := e.values[string(name)]; ok {
		if len(v) > e.left {
			return dst, 0
		}
		e.left -= len(v)
		return append(dst, v...), end + 1
	}
	// html.UnescapeString also resolves prefixes without a semicolon; what it
	// does without ours is not the entity that was written.
	span := string(s[:end+1])
	dec := html.UnescapeString(span)
	if dec == span || dec == html.UnescapeString(span[:end])+";" {
		return dst, 0
	}
	return append(dst, dec...), end + 1
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

// doctype reads the document type declaration that s starts with, "<!DOCTYPE",
// keeps its internal entities and gives its length. External ones are never
// looked at.
func (e *entitySet) doctype(s []byte) int {
	i := len("<!DOCTYPE")
	subset := false
	for i < len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\'':
			j := bytes.IndexByte(s[i+1:], c)
			if j < 0 || !subset && bytes.IndexByte(s[i+1:i+1+j], '>') >= 0 {
				// An unclosed quote must not swallow the document.
				return pastTag(s, i)
			}
			i += j + 2
		case c == '[' && !subset:
			subset = true
			i++
		case c == ']' && subset:
			subset = false
			i++
		case c == '>' && !subset:
			return i + 1
		case c == '<' && !subset:
			return i
		case c == '<' && bytes.HasPrefix(s[i:], []byte("<!--")):
			n := bytes.Index(s[i:], []byte("-->"))
			if n < 0 {
				return pastTag(s, i)
			}
			i += n + 3
		case c == '<' && bytes.HasPrefix(s[i:], []byte("<!ENTITY")):
			i += e.entityDecl(s[i:])
		case c == '<' && i+1 < len(s) && s[i+1] != '!' && s[i+1] != '?':
			return i // the subset was never closed
		default:
			i++
		}
	}
	return len(s)
}

// entityDecl reads an entity declaration up to, not including, its end.
func (e *entitySet) entityDecl(s []byte) int {
	i := len("<!ENTITY")
	space := func() {
		for i < len(s) && isSpace(s[i]) {
			i++
		}
	}
	space()
	start := i
	for i < len(s) && !isSpace(s[i]) && s[i] != '>' && s[i] != '<' && s[i] != '"' && s[i] != '\'' {
		i++
	}
	name := s[start:i]
	space()
	if i < len(s) && (s[i] == '"' || s[i] == '\'') && string(name) != "%" {
		if j := bytes.IndexByte(s[i+1:], s[i]); j >= 0 {
			e.define(name, s[i+1:i+1+j])
			return i + j + 2
		}
	}
	return i
}

// pastTag gives the place behind the next > in s from i on, or the end.
func pastTag(s []byte, i int) int {
	if j := bytes.IndexByte(s[i:], '>'); j >= 0 {
		return i + j + 1
	}
	return len(s)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }
