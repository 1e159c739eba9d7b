// Package termsafe makes untrusted text safe to print. The title of a feed may contain escape
// sequences that change the title of a window or rewrite the line above. It may contain
// bidirectional controls that make one address look like another. All such text goes through this
// package before it reaches a terminal, a pipe or a log.
//
// These characters are removed: C0 controls except newline and tab, DEL, U+0080–9F, bidirectional
// overrides and isolates (U+202A–E, U+2066–9), and the line and paragraph separators U+2028/9.
// U+FEFF is removed too, since inside a text it is only a left-over byte order mark. Invalid
// UTF-8 becomes U+FFFD: a lone 0x9B is an escape introducer to some terminals.
//
// Marks that right-to-left text needs and that cannot reorder the text around them (U+200E,
// U+200F, U+061C) stay, and so do the joiners of emoji.
package termsafe

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// unsafe reports whether r, outside of tab and newline, must not be printed.
func unsafe(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r < 0x2028:
		return false
	case r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}

// Unsafe reports whether [Clean] would change s.
func Unsafe(s string) bool { return dirty(s, false) }

// dirty reports whether cleaning would change s.
func dirty(s string, line bool) bool {
	for _, r := range s {
		if unsafe(r) && (line || r != '\n' && r != '\t') {
			return true
		}
	}
	return !utf8.ValidString(s)
}

// Clean removes characters that are harmful on a terminal, and replaces invalid UTF-8 by U+FFFD.
// Newlines and tabs stay. Clean text is returned unchanged, without an allocation.
func Clean(s string) string { return clean(s, false) }

// Line is [Clean] for a field on one line: a run of newlines, carriage returns, tabs and line
// separators becomes one space, and is removed at the ends.
func Line(s string) string { return clean(s, true) }

// Squeeze is [Line] with each run of spaces replaced by one space, and none at the ends.
func Squeeze(s string) string { return strings.Join(strings.Fields(Line(s)), " ") }

func clean(s string, line bool) string {
	if !dirty(s, line) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	gap := false // a space is pending before the next character
	for _, r := range s {
		switch {
		case line && breaks(r):
			gap = true
			continue
		case r == '\n', r == '\t':
		case unsafe(r):
			continue
		}
		if gap {
			gap = false
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
		}
		b.WriteRune(r) // an invalid byte is decoded as U+FFFD, and written as that
	}
	return b.String()
}

// breaks reports whether r separates words when text is put on one line.
func breaks(r rune) bool { return strings.ContainsRune("\n\r\t\v\f\u0085\u2028\u2029", r) }

// widths counts columns like most terminals. It ignores the locale, since output must not depend
// on it.
var widths = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// Width returns the number of terminal columns of s, which must be clean and one line.
func Width(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return widths.StringWidth(s)
		}
	}
	return len(s)
}

// Truncate cuts s to at most width columns. If text was cut off, the last column is an ellipsis.
// A character keeps its accents.
func Truncate(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if len(s) <= width || Width(s) <= width {
		return s
	}
	return widths.Truncate(s, width, "…")
}

// Pad returns s truncated or filled with spaces to exactly width columns.
func Pad(s string, width int) string {
	s = Truncate(s, width)
	if n := width - Width(s); n > 0 {
		s += strings.Repeat(" ", n)
	}
	return s
}

// maxBrief is the maximum length of the result of [Brief], in bytes.
const maxBrief = 1000

// Brief shortens untrusted text for a message or a file of one line: [Line] without space at the
// ends, and at most 1000 bytes.
func Brief(s string) string {
	// Cleaning rarely makes a text longer, so a longer part is not needed.
	if len(s) > 4*maxBrief {
		s = s[:4*maxBrief]
	}
	s = strings.TrimSpace(Line(s))
	if len(s) <= maxBrief {
		return s
	}
	return strings.TrimRight(strings.ToValidUTF8(s[:maxBrief], ""), " ")
}

// XML replaces characters that a terminal acts on by numeric references: C1 controls,
// bidirectional overrides and isolates, and line separators. The document has the same content,
// and is safe to print. These characters must be only in text and in attribute values, not in
// CDATA.
func XML(doc []byte) []byte { return refer(doc, "&#x%X;") }

// JSON is [XML] for JSON documents. It uses the escapes of strings.
func JSON(doc []byte) []byte { return refer(doc, `\u%04x`) }

func refer(doc []byte, format string) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(doc); {
		if doc[i] < utf8.RuneSelf && doc[i] != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(doc[i:])
		// The byte order mark stays, since a document may begin with it.
		if unsafe(r) && r != 0xfeff {
			out = fmt.Appendf(append(out, doc[done:i]...), format, r)
			done = i + n
		}
		i += n
	}
	if out == nil {
		return doc
	}
	return append(out, doc[done:]...)
}
