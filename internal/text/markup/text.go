package markup

import (
	"strings"

	"github.com/lektordir/lektor/internal/text/textfile"
)

// MIME types of text.
const (
	TypePlain = "text/plain"
	TypeHTML  = "text/html"
	TypeXHTML = "application/xhtml+xml"
)

// Clean makes s a string as feedconv documents it: line ends become newlines, other control
// characters are dropped.
func Clean(s string) string {
	control := func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' }
	if !strings.ContainsFunc(s, control) {
		return s
	}
	s = lineEnds.Replace(s)
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, s)
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// CleanLine is Clean for strings of one line: identifiers, URLs, dates.
func CleanLine(s string) string {
	s = strings.TrimSpace(Clean(s))
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", "", "\t", "").Replace(s)
}

// IsMarkup reports whether a media type is one of HTML or XML.
func IsMarkup(contentType string) bool {
	t := textfile.BaseType(contentType)
	return strings.HasSuffix(t, "html") || strings.HasSuffix(t, "xml")
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;")

// EscapeText escapes text for an element that holds HTML.
func EscapeText(s string) string { return htmlEscapes.Replace(s) }

// AsHTML returns text of any type as HTML.
func AsHTML(s, contentType string) string {
	if IsMarkup(contentType) {
		return s
	}
	return strings.ReplaceAll(EscapeText(s), "\n", "<br>\n")
}
