// Package textfile makes text valid for files: UTF-8 without NUL, one line for a file of one line, and
// fields between tabs.
package textfile

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Clean returns text as valid UTF-8 without NUL.
func Clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// Content is [Clean] for content that is text. It returns other content, and valid text,
// unchanged.
func Content(b []byte, mimeType string) []byte {
	if !IsText(mimeType) || utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		return b
	}
	return []byte(Clean(string(b)))
}

// BaseType returns a MIME type in lower case, without parameters.
func BaseType(mimeType string) string {
	t, _, _ := strings.Cut(strings.ToLower(mimeType), ";")
	return strings.TrimSpace(t)
}

// IsText reports whether content of a MIME type is text. A type without a slash, such as
// an empty one, is text.
func IsText(mimeType string) bool {
	group, name, ok := strings.Cut(BaseType(mimeType), "/")
	return !ok || group == "text" || group == "message" ||
		name == "xml" || name == "json" || strings.HasSuffix(name, "+xml") || strings.HasSuffix(name, "+json")
}

// OneLine is [Clean] for a file of a single line.
func OneLine(s string) string {
	s = Clean(s)
	if strings.ContainsAny(s, "\r\n") {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\r' || r == '\n' }), " ")
	}
	return s
}

// OneField is [OneLine] for text without tabs, such as an address or a type.
func OneField(s string) string { return strings.ReplaceAll(OneLine(s), "\t", " ") }

// Line returns the text of a file: valid UTF-8, without the last newline.
func Line(data []byte) string {
	s := strings.TrimSuffix(string(data), "\n")
	return strings.ToValidUTF8(s, "\uFFFD")
}
