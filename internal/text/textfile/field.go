package textfile

import (
	"bytes"
	"strings"
)

const special = "\\\t\n\r"

// Escape returns text as a field of a line with tabs between fields, which can so hold any text. It writes
// a backslash, a tab, a newline and a carriage return as \\, \t, \n and \r; other characters stay. The
// output of -o tsv and the extras of an entry (lektor-dir(5)) have this form.
func Escape(s string) string {
	if !strings.ContainsAny(s, special) {
		return s
	}
	return string(AppendField(make([]byte, 0, len(s)+16), s))
}

// AppendField appends text to b as a field.
func AppendField(b []byte, s string) []byte {
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

// Unescape returns the text of a field. A backslash before any other character stays, since
// fields may be written by hand. Invalid UTF-8 becomes U+FFFD.
func Unescape(field []byte) string { return strings.ToValidUTF8(UnescapeName(field), "\uFFFD") }

// UnescapeName is [Unescape] for the name of a file, which may have any bytes.
func UnescapeName(field []byte) string {
	if bytes.IndexByte(field, '\\') < 0 {
		return string(field)
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
	return string(b)
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
