package termsafe

import (
	"strings"
	"unicode/utf8"
)

// maxBrief is how many bytes of a text [Brief] keeps.
const maxBrief = 1000

// Brief is what a message or a file of one line may hold of a stranger's text:
// [Line] without space around it, and of that no more than 1000 bytes.
func Brief(s string) string {
	// What is cleaned is rarely longer than it was, and what is longer than
	// this by far need not be looked at.
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
