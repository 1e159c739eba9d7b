// Package cells knows how text looks on the screen: how wide it is, which characters all terminals draw in
// the same way, and the styles that the user has chosen.
package cells

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/text/unicode/norm"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// maxMarks is the number of accents that a letter keeps. Languages need two or three; a
// larger number would be drawn into the lines above.
const maxMarks = 3

// Plain returns untrusted text as one line of characters that have the same width in all
// terminals. A character whose width the terminal and the reader disagree on would shift the
// rest of the line and break the panes to its right. So joiners and variation selectors of
// emoji are removed, flags become their two letters, and each letter keeps at most maxMarks
// accents.
func Plain(s string) string {
	s = strings.ToValidUTF8(termsafe.Line(s), "\uFFFD")
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return plain(s)
		}
	}
	return s
}

func plain(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	marks, base := 0, false
	for _, r := range norm.NFC.String(s) { // compose syllables and accents to one character each
		switch {
		case r < utf8.RuneSelf:
			marks, base = 0, r > ' '
		case r == 0xa0 || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x1680:
			r, marks, base = ' ', 0, false
		case r >= 0x1f1e6 && r <= 0x1f1ff: // letters of flags
			r, marks, base = 'A'+r-0x1f1e6, 0, true
		case r >= 0x1f3fb && r <= 0x1f3ff, // colours of skin
			r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff, // parts of Korean syllables
			unicode.In(r, unicode.Cf, unicode.Me, unicode.Variation_Selector,
				unicode.Other_Default_Ignorable_Code_Point):
			continue
		case unicode.Is(unicode.Mn, r):
			if marks++; !base || marks > maxMarks || termsafe.Width(string(r)) > 0 {
				continue
			}
		case !unicode.IsGraphic(r): // private use, or of a later version of Unicode
			r, marks, base = utf8.RuneError, 0, true
		case termsafe.Width(string(r)) == 0:
			continue
		default:
			marks, base = 0, true
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Fit cuts or pads plain text to exactly width columns.
func Fit(s string, width int) string { return termsafe.Pad(s, width) }

// Ends shortens plain text to at most width columns. It cuts out the middle, because errors
// end with their reason.
func Ends(s string, width int) string {
	if len(s) <= width || termsafe.Width(s) <= width || width < 3 {
		return s
	}
	tail := (width - 1) / 2
	return termsafe.Truncate(s, width-tail) + ansi.TruncateLeftWc(s, termsafe.Width(s)-tail, "")
}

// BreakLines makes each line of text plain, and breaks lines longer than width columns.
func BreakLines(text string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		line = Plain(strings.ReplaceAll(line, "\t", "    "))
		out = append(out, strings.Split(ansi.HardwrapWc(line, width, true), "\n")...)
	}
	return out
}

// Window returns the index of the first visible line in a pane of the given height: y, or the
// nearest index with which line at is visible. n is the number of all lines.
func Window(y, at, n, height int) int {
	y = max(min(y, at), at-height+1)
	return max(0, min(y, n-height))
}

// Wrap returns an index of n lines, the last before the first.
func Wrap(i, n int) int { return (i%n + n) % n }

// CursorMark is the first column of a line by whether the cursor is on it. It marks the cursor without styles, for
// example for screen readers.
var CursorMark = map[bool]string{true: ">", false: " "}
