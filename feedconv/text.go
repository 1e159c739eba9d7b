package feedconv

import (
	"strings"

	"github.com/lektordir/lektor/internal/lazy"
)

// text is a text construct as a format gives it.
type text struct {
	value string
	mime  string // its MIME type
}

const (
	typePlain = "text/plain"
	typeHTML  = "text/html"
	typeXHTML = "application/xhtml+xml"
)

// plain returns the construct as one line of text.
func (t text) plain() string { return titleText(t.value, isMarkup(t.mime)) }

// clean keeps the promise of [Feed] about strings: line ends become newlines,
// other control characters are dropped.
func clean(s string) string {
	i := 0
	for i < len(s) && (s[i] >= 0x20 || s[i] == '\n' || s[i] == '\t') {
		i++
	}
	if i == len(s) {
		return s
	}
	out := make([]byte, i, len(s))
	copy(out, s)
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x20 || c == '\n' || c == '\t':
			out = append(out, c)
		case c == '\r':
			if i+1 == len(s) || s[i+1] != '\n' {
				out = append(out, '\n')
			}
		}
	}
	return string(out)
}

// cleanLine is clean for what is one line: identifiers, URLs, dates.
func cleanLine(s string) string {
	s = strings.TrimSpace(clean(s))
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", "", "\t", "").Replace(s)
}

// mimeType returns a media type without parameters, in lower case.
func mimeType(s string) string {
	if i := strings.IndexByte(s, ';'); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSpace(s))
}

// lines returns text of several lines that a format takes for HTML unsaid, and that has no
// markup, as plain text: its line breaks mean something, as in notes and lists of
// songs, and HTML would fold them. The indentation that all lines have goes.
func (t text) lines() text {
	value := strings.TrimSpace(t.value)
	if mimeType(t.mime) != typeHTML || !strings.ContainsAny(value, "\n\r") || tagLike().MatchString(value) {
		return t
	}
	var none entitySet
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(value), "\n")
	indent := len(value)
	for _, line := range lines[1:] {
		if text := strings.TrimLeft(line, " \t"); text != "" {
			indent = min(indent, len(line)-len(text))
		}
	}
	for i, line := range lines {
		if i > 0 {
			line = line[min(indent, len(line)):]
		}
		lines[i] = string(none.decode(nil, []byte(strings.TrimRight(line, " \t"))))
	}
	return text{strings.Join(lines, "\n"), typePlain}
}

// tagLike matches what HTML takes for a tag, a comment or a CDATA section, but for
// addresses between angle brackets, which people write in text.
var tagLike = lazy.Regexp(`</?[A-Za-z](?:[0-9A-Za-z:_-]*[0-9A-Za-z_-])?(?:[\s/][^<]*)?>|<!--|<!\[CDATA\[`)

func isMarkup(contentType string) bool {
	t := mimeType(contentType)
	return strings.HasSuffix(t, "html") || strings.HasSuffix(t, "xml")
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;")

// htmlText escapes text for an element that holds HTML.
func htmlText(s string) string { return htmlEscapes.Replace(s) }

// asHTML returns text of any type as HTML.
func asHTML(s, contentType string) string {
	if isMarkup(contentType) {
		return s
	}
	return strings.ReplaceAll(htmlText(s), "\n", "<br>\n")
}
