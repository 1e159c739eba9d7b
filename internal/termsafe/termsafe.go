// Package termsafe makes text from strangers fit to be printed. A feed's title
// may hold escape sequences that retitle a window or rewrite the line above,
// and bidirectional controls that make one address look like another; where
// such text reaches a terminal, a pipe or a log it goes through here first.
//
// These are taken out: C0 controls but newline and tab, DEL, U+0080–9F,
// bidirectional overrides and isolates (U+202A–E, U+2066–9), the line and
// paragraph separators U+2028/9, and U+FEFF, which inside a text is only ever
// a byte order mark that was left behind. Bytes that are not UTF-8 become
// U+FFFD: a lone 0x9B is an escape introducer to some terminals.
//
// Marks that right-to-left text needs and that cannot reorder what surrounds
// them (U+200E, U+200F, U+061C) stay, and so do the joiners of emoji.
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

// Unsafe reports whether s holds something that [Clean] would change.
func Unsafe(s string) bool { return dirty(s, false) >= 0 }

// dirty returns the offset of the first byte that cleaning changes, or -1.
func dirty(s string, line bool) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				if line || c != '\n' && c != '\t' {
					return i
				}
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || unsafe(r) {
			return i
		}
		i += n
	}
	return -1
}

// Clean returns s without what does harm on a terminal, and with U+FFFD for
// bytes that are not UTF-8. Newlines and tabs stay. Text that is clean already
// is returned as it is, without an allocation.
func Clean(s string) string { return clean(s, false) }

// Line is [Clean] for a field that must stay on one line: a run of newlines,
// carriage returns, tabs and line separators becomes one space, and none
// remains at either end.
func Line(s string) string { return clean(s, true) }

// Squeeze is [Line] with one space where there are several, and none at the ends.
func Squeeze(s string) string { return strings.Join(strings.Fields(Line(s)), " ") }

func clean(s string, line bool) string {
	first := dirty(s, line)
	if first < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:first])
	gap := false // a space is owed before the next character
	for i := first; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
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
		b.WriteRune(r) // an invalid byte decodes to, and is written as, U+FFFD
	}
	return b.String()
}

// breaks reports whether r separates words in a text that is put on one line.
func breaks(r rune) bool {
	switch r {
	case '\n', '\r', '\t', '\v', '\f', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// widths counts as most terminals do, whatever the locale of the moment: what
// is printed must not depend on it.
var widths = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// Width returns the number of terminal columns that s takes. It counts the
// characters of one line; clean the text first.
func Width(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return widths.StringWidth(s)
		}
	}
	return len(s)
}

// Truncate shortens s to at most width columns, the last one an ellipsis when
// something was cut off. It never splits a character from its accents.
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

// maxBrief is how many bytes of a text [Brief] keeps.
const maxBrief = 1000

// Brief is what a message or a file of one line may hold of a stranger's text:
// [Line] without space around it, and of that no more than 1000 bytes.
func Brief(s string) string {
	// Cleaning rarely makes a text longer, and the end of a much longer one need not be
	// looked at.
	if len(s) > 4*maxBrief {
		s = s[:4*maxBrief]
	}
	s = strings.TrimSpace(Line(s))
	if len(s) <= maxBrief {
		return s
	}
	n := maxBrief
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], " ")
}

// XML returns an XML document in which characters that a terminal acts on, C1
// controls, bidirectional overrides and isolates, and the separators of lines,
// are numeric references: it says the same, and may be looked at. They must stand
// in text and in values of attributes alone, and not in CDATA.
func XML(doc []byte) []byte { return refer(doc, "&#x%X;") }

// JSON is [XML] for a JSON document, whose strings have escapes for them.
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
		// Not the byte order mark, which may begin a document.
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
