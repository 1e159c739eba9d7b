// Package htmltext makes the content of an entry readable on a terminal: HTML
// as wrapped text with the links as footnotes, plain text as it is, and of what
// is no text a line that says what it is.
//
// It works on the tokens of golang.org/x/net/html, not on a tree: the time it
// takes is linear and its memory small whatever the markup, elements may be
// nested as deep as a stranger likes, and text is shown where it stands even if
// the tags around it make no sense. Libraries that turn HTML into Markdown or
// text were no help here: they build the tree, escape what looks like markup,
// and leave the wrapping, which has to know quotes and lists from text that
// merely looks like them, to the caller.
package htmltext

import (
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/termsafe"
)

// maxContent is how much of a content is made readable. It is far more than
// anybody reads; what is cut off is announced.
const maxContent = 32 << 20

// Options say how to lay a content out.
type Options struct {
	// Width is the number of columns to wrap to; 0 does not wrap. A word that
	// is longer, such as a URL, is left whole, for the terminal's own line
	// breaks do not get in the way when it is copied.
	Width int
	// Base is the URL that relative links are resolved against, or "".
	Base string
	// Bare leaves out what is not the author's text: footnotes and their
	// numbers, underlines and rules.
	Bare bool
}

// Render returns content of a MIME type as text, cleaned by termsafe, in lines that end in newlines. It
// drops only markup, scripts and styles. The empty type means text/plain.
func Render(content []byte, mimeType string, o Options) string {
	return Lay(content, mimeType, o).Text
}

// Document is a content that was made readable.
type Document struct {
	Text string // the result of [Render]
	// Links are the URLs of the footnotes in the order of their numbers, from 1, cleaned
	// as the text is; Pictures those of images, in theirs, each once.
	Links, Pictures []string
}

// Lay is [Render] for who follows links, too.
func Lay(content []byte, mimeType string, o Options) Document {
	var d Document
	cut := 0
	if len(content) > maxContent {
		cut = len(content) - maxContent
		content = content[:maxContent]
	}
	switch KindOf(mimeType, content) {
	case HTML:
		r := &renderer{lines: lines{o: o}, footnotes: newFootnotes(o)}
		r.html(content, 0)
		d = Document{Text: r.finish(), Links: r.urls, Pictures: r.pictures}
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

// excerptBytes is how much of a content is looked at for one line of it.
const excerptBytes = 8 << 10

// Excerpt returns the beginning of content as one line of at most width columns.
func Excerpt(content []byte, mimeType string, width int) string {
	if len(content) > excerptBytes {
		// Not in the middle of a character, which would look binary.
		end := excerptBytes
		for end > excerptBytes-utf8.UTFMax && !utf8.RuneStart(content[end]) {
			end--
		}
		content = content[:end]
	}
	line := Render(content, mimeType, Options{Bare: true})
	return termsafe.Truncate(strings.Join(strings.Fields(line), " "), width)
}

// Kind says how a content is to be read.
type Kind uint8

// The kinds: text as it stands, markup, and what is no text.
const (
	Plain Kind = iota
	HTML
	Binary
)

// KindOf decides how to show a content. A text type with bytes in it that no
// text has is binary; an unknown type whose bytes are all text is text.
func KindOf(mimeType string, content []byte) Kind {
	switch t := media(mimeType); {
	case t == "text/html", t == "application/xhtml+xml",
		// The names Atom has for them; fetchers written in a hurry keep them.
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

// media returns a MIME type in lower case without its parameters.
func media(mimeType string) string {
	t, _, _ := strings.Cut(mimeType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// hasControls reports whether bytes stand in content that no text has. An
// escape character is left to termsafe: coloured text is text.
func hasControls(content []byte) bool {
	for _, c := range content {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != '\b' && c != 0x1b {
			return true
		}
	}
	return false
}

// describe says in a line what a content is that cannot be shown.
func describe(content []byte, mimeType string, more int) string {
	what := "data of no known type"
	if t := media(mimeType); t != "" {
		what = t
		if full, params, err := mime.ParseMediaType(mimeType); err == nil && params["name"] != "" {
			what = full + " " + params["name"]
		}
	}
	return fmt.Sprintf("[%s, %s: not text, not shown]\n", termsafe.Line(what), size(len(content)+more))
}

func size(n int) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%d MB", (n+500_000)/1_000_000)
}

// plainText wraps the lines that are too long, each at its own indentation, and
// leaves the others as they are.
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

// columns is the width of a line in which tabs go on to the next eighth column.
func columns(line string) int {
	return termsafe.Width(expandTabs(line))
}

// expandTabs replaces tabs by the spaces that a terminal shows for them.
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
