package htmltext

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/termsafe"
)

// wrap breaks a text at its spaces, and beside wide characters, which are
// written without spaces, into lines of at most width columns. A longer word
// has a line of its own. Width 0 or less does not break.
func wrap(text string, width int) iter.Seq[string] {
	return func(yield func(string) bool) {
		if width <= 0 {
			yield(text)
			return
		}
		var line strings.Builder
		used, gap := 0, 0 // columns in line; spaces owed before the next piece
		for rest := text; rest != ""; {
			if rest[0] == ' ' {
				gap++
				rest = rest[1:]
				continue
			}
			word := rest
			if i := strings.IndexByte(rest, ' '); i >= 0 {
				word = rest[:i]
			}
			rest = rest[len(word):]
			for word != "" {
				piece, w := cutPiece(word)
				word = word[len(piece):]
				if used > 0 && used+gap+w > width {
					if !yield(line.String()) {
						return
					}
					line.Reset()
					used, gap = 0, 0
				}
				if used == 0 {
					gap = 0
				}
				for ; gap > 0; gap-- {
					line.WriteByte(' ')
					used++
				}
				line.WriteString(piece)
				used += w
			}
		}
		yield(line.String())
	}
}

// cutPiece gives the beginning of a word up to where a line may be broken, and
// its width. That is the whole word unless it has wide characters in it.
func cutPiece(word string) (string, int) {
	ascii := true
	for i := 0; i < len(word); i++ {
		if word[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return word, len(word)
	}
	prevWide := false
	var prev rune
	for i, r := range word {
		wide := isWide(r)
		if i > 0 && (wide || prevWide) && !clings(r) && !holds(prev) {
			return word[:i], termsafe.Width(word[:i])
		}
		// What joins or modifies stays with what it belongs to.
		if r != 0x200d && !unicode.Is(unicode.M, r) {
			prevWide = wide
			prev = r
		} else if r == 0x200d {
			prev, prevWide = r, false
		}
	}
	return word, termsafe.Width(word)
}

// isWide reports whether a line may be broken before and after r: the scripts
// that are written without spaces and their punctuation.
func isWide(r rune) bool {
	switch {
	case r < 0x2e80:
		return false
	case r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xff01 && r <= 0xff60, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}

// clings reports whether r must not begin a line: closing punctuation, small
// kana, marks.
func clings(r rune) bool {
	return unicode.In(r, unicode.Pe, unicode.Pf, unicode.M) || r == 0x200d || r < utf8.RuneSelf && unicode.IsPunct(r) && !strings.ContainsRune("([{\"'#", r) ||
		strings.ContainsRune("、。，．・：；？！ー々〻ゝゞヽヾぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ…‥’”", r)
}

// holds reports whether r must not end a line: opening punctuation.
func holds(r rune) bool {
	return unicode.In(r, unicode.Ps, unicode.Pi) || r == 0x200d
}
