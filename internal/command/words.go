package command

import (
	"errors"
	"strings"
)

// Words splits the text of a command into its arguments as a shell would, but for
// everything that a shell expands: white space separates, '…' is as it stands, in "…"
// a backslash goes before " and \, and elsewhere before any character. No argument is
// ever made of more than what stands there.
func Words(text string) ([]string, error) {
	var words []string
	var b strings.Builder
	open := false // b is a word, perhaps an empty one
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			if open {
				words = append(words, b.String())
				b.Reset()
				open = false
			}
			continue
		case '\'':
			n := strings.IndexByte(text[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("a ' is not closed")
			}
			b.WriteString(text[i+1 : i+1+n])
			i += n + 1
		case '"':
			for i++; ; i++ {
				if i >= len(text) {
					return nil, errors.New(`a " is not closed`)
				}
				if text[i] == '"' {
					break
				}
				if text[i] == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\') {
					i++
				}
				b.WriteByte(text[i])
			}
		case '\\':
			if i++; i == len(text) {
				return nil, errors.New(`there is nothing after the last \`)
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
		open = true
	}
	if open {
		words = append(words, b.String())
	}
	return words, nil
}
