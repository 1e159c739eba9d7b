package htmltext

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// wrap breaks text into lines of at most width columns, at spaces and where the line breaking
// algorithm of Unicode (UAX #14) allows it. A longer word has a line of its own. With width 0 or
// less, lines are not broken.
func wrap(text string, width int) iter.Seq[string] {
	return func(yield func(string) bool) {
		if width <= 0 {
			yield(text)
			return
		}
		start, end, used := 0, 0, 0 // the line is text[start:end]
		for end < len(text) {
			next := len(text) - len(strings.TrimLeft(text[end:], " "))
			word, _, _ := strings.Cut(text[next:], " ")
			if word == "" {
				break
			}
			for piece := range pieces(word) {
				w := termsafe.Width(piece)
				switch gap := next - end; {
				case start == end:
					start, used = next, w
				case used+gap+w > width:
					if !yield(text[start:end]) {
						return
					}
					start, used = next, w
				default:
					used += gap + w
				}
				end = next + len(piece)
				next = end
			}
		}
		yield(text[start:end])
	}
}

// pieces returns the parts of a word between which a line may be broken. It returns the whole word, so
// that URLs can be copied, unless the word has characters of scripts that are written without spaces.
func pieces(word string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if strings.IndexFunc(word, beyondAlphabets) < 0 {
			yield(word)
			return
		}
		start, state := 0, -1
		for rest := word; rest != ""; {
			_, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
			at := len(word) - len(rest)
			before, _ := utf8.DecodeLastRuneInString(word[:at])
			after, _ := utf8.DecodeRuneInString(rest)
			if rest == "" || beyondAlphabets(before) || beyondAlphabets(after) {
				if !yield(word[start:at]) {
					return
				}
				start = at
			}
		}
	}
}

func beyondAlphabets(r rune) bool { return r >= 0x2000 }
