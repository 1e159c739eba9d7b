// Package htmltext converts the content of an entry to text for a terminal. HTML becomes wrapped
// text with the links as footnotes. Plain text stays as it is. For other content, the result is a
// line with its type and size.
//
// The package works on the tokens of golang.org/x/net/html, not on a tree. So time is linear and
// memory small for any markup, elements may be nested to any depth, and text is shown where it
// stands even if the tags around it are wrong. Libraries that convert HTML to Markdown or text do
// not fit: they build the tree, escape text that looks like markup, and leave wrapping to the
// caller, who can no longer distinguish quotes and lists from text that looks like them.
package htmltext

import (
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// maxContent is the number of bytes of a content that are converted, far more than anybody reads.
// A line reports how many bytes were cut off.
const maxContent = 32 << 20

// Options are the options of [Render] and [Lay].
type Options struct {
	// Width is the number of columns to wrap to; 0 does not wrap. A longer word, such as a URL,
	// is not broken, so that it can be copied.
	Width int
	// Base is the base URL of relative links, or "".
	Base string
	// Bare leaves out everything that is not the author's text: footnotes and their numbers,
	// underlines and rules.
	Bare bool
}

// Render returns content of a MIME type as text, cleaned by termsafe, in lines that end in newlines. It
// drops only markup, scripts and styles. The empty type means text/plain.
func Render(content []byte, mimeType string, o Options) string {
	return Lay(content, mimeType, o).Text
}

// Document is the result of [Lay].
type Document struct {
	Text string // the result of [Render]
	// Links are the URLs of the footnotes in the order of their numbers, from 1. Pictures are the
	// URLs of the images, in their order, each once. All are cleaned like the text.
	Links, Pictures []string
}

// Lay is [Render] for callers that need links and pictures, too.
func Lay(content []byte, mimeType string, o Options) Document {
	var d Document
	cut := 0
	if len(content) > maxContent {
		cut = len(content) - maxContent
		content = content[:maxContent]
	}
	switch KindOf(mimeType, content) {
	case HTML:
		r := &renderer{out: lines{o: o}, notes: newFootnotes(o)}
		r.html(Shown(content))
		d = Document{Text: r.finish(), Links: r.notes.urls, Pictures: r.notes.pictures}
	case Plain:
		d.Text = plainText(content, o)
	default:
		d.Text = describe(content, mimeType, cut)
		cut = 0
	}
	if cut > 0 {
		d.Text += fmt.Sprintf("\n[%d more bytes are not shown]\n", cut)
	}
	return d
}

// Text returns content as plain text without wrapping, for searches. It returns "" if the content is not
// text.
func Text(content []byte, mimeType string) string {
	if KindOf(mimeType, content) == Binary {
		return ""
	}
	return Render(content, mimeType, Options{Bare: true})
}

// excerptBytes is the number of bytes of a content that Excerpt reads.
const excerptBytes = 8 << 10

// Excerpt returns the beginning of content as one line of at most width columns.
func Excerpt(content []byte, mimeType string, width int) string {
	if len(content) > excerptBytes {
		// Do not cut a character, since the text would look binary.
		end := excerptBytes
		for end > excerptBytes-utf8.UTFMax && !utf8.RuneStart(content[end]) {
			end--
		}
		content = content[:end]
	}
	line := Render(content, mimeType, Options{Bare: true})
	return termsafe.Truncate(strings.Join(strings.Fields(line), " "), width)
}

// Kind is the kind of a content.
type Kind uint8

// The kinds: plain text, markup, and content that is not text.
const (
	Plain Kind = iota
	HTML
	Binary
)

// KindOf returns the kind of a content. A text type with control characters is binary. An unknown
// type without them is text.
func KindOf(mimeType string, content []byte) Kind {
	switch t := textfile.BaseType(mimeType); {
	case t == "text/html", t == "application/xhtml+xml",
		// These are the names in Atom; some fetchers do not convert them.
		t == "html", t == "xhtml":
		return HTML
	case t == "", t == "text", strings.HasPrefix(t, "text/"):
		if hasControls(content) {
			return Binary
		}
		return Plain
	}
	if !utf8.Valid(content) || hasControls(content) {
		return Binary
	}
	return Plain
}

// hasControls reports whether content has control characters that no text has. Escape is not one
// of them, since coloured text is text; termsafe removes it.
func hasControls(content []byte) bool {
	for _, c := range content {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != '\b' && c != 0x1b {
			return true
		}
	}
	return false
}

// describe returns a line with the type and the size of a content that is not shown.
func describe(content []byte, mimeType string, more int) string {
	what := "data of no known type"
	if t := textfile.BaseType(mimeType); t != "" {
		what = t
		if full, params, err := mime.ParseMediaType(mimeType); err == nil && params["name"] != "" {
			what = full + " " + params["name"]
		}
	}
	return fmt.Sprintf("[%s, %s: not text, not shown]\n", termsafe.Line(what), humanize.Bytes(int64(len(content)+more)))
}

// plainText wraps lines that are too long, each at its own indentation, and leaves the others
// unchanged.
func plainText(content []byte, o Options) string {
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	text = strings.NewReplacer("\r", "\n", "\f", "\n").Replace(text)
	text = strings.TrimRight(termsafe.Clean(text), " \t\n")
	if text == "" {
		return ""
	}
	if o.Width <= 0 {
		return text + "\n"
	}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t")
		if len(line) <= o.Width && !strings.Contains(line, "\t") || columns(line) <= o.Width {
			b.WriteString(line)
			b.WriteByte('\n')
			continue
		}
		body := strings.TrimLeft(line, " \t")
		indent := strings.ReplaceAll(line[:len(line)-len(body)], "\t", "        ")
		if len(indent) > o.Width/2 {
			indent = indent[:o.Width/2]
		}
		for l := range wrap(body, o.Width-len(indent)) {
			b.WriteString(indent)
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// columns returns the width of a line with tab stops every eight columns.
func columns(line string) int {
	return termsafe.Width(expandTabs(line))
}

// expandTabs replaces tabs by spaces, with tab stops every eight columns.
func expandTabs(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	col := 0
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			n := 8 - col%8
			b.WriteString("        "[:n])
			col += n
		}
		b.WriteString(part)
		col += termsafe.Width(part)
	}
	return b.String()
}
