package cmdline

import (
	"errors"
	"strings"
)

// Words splits the text of a command into arguments as a shell does, but without any expansion. White
// space separates arguments. In '…' all characters are literal. In "…" a backslash escapes " and \,
// elsewhere it escapes any character.
func Words(text string) ([]string, error) {
	var words []string
	if err := eachWord(text, func(word string, _ bool) { words = append(words, word) }); err != nil {
		return nil, err
	}
	return words, nil
}

// Commands splits the text of several commands into their arguments, see [Words]. An unquoted word ;
// separates commands. There is always at least one command, and an empty command has no arguments.
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

// eachWord calls yield for each word. plain reports whether no part of the word was quoted.
func eachWord(text string, yield func(word string, plain bool)) error {
	var b strings.Builder
	open, plain := false, true // open: b is a word, even if it is empty
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
