package textfile

import (
	"bytes"
	"strings"
)

var (
	escape   = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
	unescape = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r")
)

// Escape returns text as a field of a line with tabs between fields, which can so hold any text. It writes
// a backslash, a tab, a newline and a carriage return as \\, \t, \n and \r; other characters stay. The
// output of -o tsv and the extras of an entry (lektor-dir(5)) have this form.
func Escape(s string) string { return escape.Replace(s) }

// AppendField appends text to b as a field.
func AppendField(b []byte, s string) []byte { return append(b, escape.Replace(s)...) }

// Unescape returns the text of a field. A backslash before any other character stays, since
// fields may be written by hand. Invalid UTF-8 becomes U+FFFD.
func Unescape(field []byte) string { return strings.ToValidUTF8(UnescapeName(field), "\uFFFD") }

// UnescapeName is [Unescape] for the name of a file, which may have any bytes.
func UnescapeName(field []byte) string {
	if bytes.IndexByte(field, '\\') < 0 {
		return string(field)
	}
	return unescape.Replace(string(field))
}
