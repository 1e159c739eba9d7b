// Package tsv escapes fields of lines with tabs between them, so that a field can
// hold any text and a line stays a line: a backslash, a tab, a newline and a carriage
// return are written \\, \t, \n and \r, and nothing else is changed. It is the form
// of -o tsv and of the extras of an entry (lektor-dir(5)).
package tsv

import (
	"bytes"
	"strings"
)

const special = "\\\t\n\r"

// Escape makes text a field.
func Escape(s string) string {
	if !strings.ContainsAny(s, special) {
		return s
	}
	return string(Append(make([]byte, 0, len(s)+16), s))
}

// Append appends text to b as a field.
func Append(b []byte, s string) []byte {
	for {
		i := strings.IndexAny(s, special)
		if i < 0 {
			return append(b, s...)
		}
		b = append(b, s[:i]...)
		switch s[i] {
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', '\\')
		}
		s = s[i+1:]
	}
}

// Unescape returns the text of a field. A backslash that begins none of the four is
// itself, as who writes a field by hand will not always think of it. The text is
// valid UTF-8, whatever wrote the field: what is not becomes U+FFFD.
func Unescape(field []byte) string {
	if bytes.IndexByte(field, '\\') < 0 {
		return strings.ToValidUTF8(string(field), "\uFFFD")
	}
	b := make([]byte, 0, len(field))
	for i := 0; i < len(field); i++ {
		c := field[i]
		if c == '\\' && i+1 < len(field) {
			if plain, ok := escaped(field[i+1]); ok {
				c = plain
				i++
			}
		}
		b = append(b, c)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// escaped returns the character that c stands for after a backslash.
func escaped(c byte) (byte, bool) {
	switch c {
	case 't':
		return '\t', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case '\\':
		return '\\', true
	}
	return 0, false
}
