package cmdline

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
	if err := eachWord(text, func(word string, _ bool) { words = append(words, word) }); err != nil {
		return nil, err
	}
	return words, nil
}

// Commands splits the text of several commands, between which stands a ; that is a word
// of its own and not quoted, into their arguments, see [Words]. There is always one; what
// stands between nothing and nothing is a command without arguments.
func Commands(text string) ([][]string, error) {
	all := [][]string{nil}
	err := eachWord(text, func(word string, plain bool) {
		if plain && word == ";" {
			all = append(all, nil)
			return
		}
		all[len(all)-1] = append(all[len(all)-1], word)
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// eachWord calls yield for each word, which is plain if nothing of it was quoted.
func eachWord(text string, yield func(word string, plain bool)) error {
	var b strings.Builder
	open, plain := false, true // b is a word, perhaps an empty one
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			if open {
				yield(b.String(), plain)
				b.Reset()
				open, plain = false, true
			}
			continue
		case '\'':
			plain = false
			n := strings.IndexByte(text[i+1:], '\'')
			if n < 0 {
				return errors.New("a ' is not closed")
			}
			b.WriteString(text[i+1 : i+1+n])
			i += n + 1
		case '"':
			plain = false
			for i++; ; i++ {
				if i >= len(text) {
					return errors.New(`a " is not closed`)
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
			plain = false
			if i++; i == len(text) {
				return errors.New(`there is nothing after the last \`)
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
		open = true
	}
	if open {
		yield(b.String(), plain)
	}
	return nil
}
