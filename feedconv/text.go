package feedconv

import (
	"regexp"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// PlainText returns the text of a document of a MIME type: markup removed (the
// insides of scripts and styles with it), entities decoded once, white space
// folded to single spaces, control characters dropped. Tags of blocks separate
// words, inline tags do not. Types other than HTML and XML, and the empty
// type, are text already: only white space is folded.
//
// The result is valid UTF-8. It depends on nothing but the arguments, since it
// decides whether an entry changed; it takes time linear in the length of s.
func PlainText(s, contentType string) string { return markup.Plain(s, markup.ModeOf(contentType)) }

// titleText is PlainText for a title in HTML.
func titleText(s string) string { return markup.Plain(s, markup.Title) }

// oneLine is PlainText for text without markup.
func oneLine(s string) string { return markup.Plain(s, markup.Text) }

// IsLink reports whether a reader may follow a URL or a relative reference. The scheme must be
// http, https or another harmless one (mailto, ftp, gemini and others). Parse drops all other
// links.
func IsLink(s string) bool { return markup.Link(s) != "" }

// text is a text construct of a format.
type text struct {
	value string
	mime  string // its MIME type
}

// title returns a title or a name. XHTML cannot be escaped once: its tags are markup.
func (t text) title() string {
	if textfile.BaseType(t.mime) == markup.TypeHTML {
		return titleText(t.value)
	}
	return t.plain()
}

// plain returns the construct as one line of text.
func (t text) plain() string { return PlainText(t.unwrapped().value, t.mime) }

// unwrapped returns HTML without the CDATA section around it, which the document has escaped.
func (t text) unwrapped() text {
	if markup.IsMarkup(t.mime) {
		t.value = markup.Unwrap(t.value)
	}
	return t
}

// lines returns text of several lines that a format takes for HTML unsaid, and that has no
// markup, as plain text: its line breaks mean something, as in notes and lists of
// songs, and HTML would fold them. The indentation that all lines have goes.
func (t text) lines() text {
	t = t.unwrapped()
	value := strings.TrimSpace(t.value)
	if textfile.BaseType(t.mime) != markup.TypeHTML || !strings.ContainsAny(value, "\n\r") ||
		tagLike().MatchString(value) {
		return t
	}
	var none markup.Entities
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
		lines[i] = string(none.Decode(nil, []byte(strings.TrimRight(line, " \t"))))
	}
	return text{strings.Join(lines, "\n"), markup.TypePlain}
}

// tagLike matches a tag, a comment or a CDATA section of HTML, but not an address in angle
// brackets, which people write in text.
var tagLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`</?[A-Za-z](?:[0-9A-Za-z:_-]*[0-9A-Za-z_-])?(?:[\s/][^<]*)?>|<!--|<!\[CDATA\[`)
})
