package cmdline

import (
	"fmt"
	"strings"
	"unicode"
)

// Words splits the text of a command into arguments as a shell does, but without any expansion. White
// space separates arguments. In '…' all characters are literal. In "…" a backslash escapes " and \,
// elsewhere it escapes any character.
func Words(text string) ([]string, error) {
	l := splitLine(text, "", ownEscapes)
	last := len(l.words) - 1
	if err := l.complete(); err != nil || l.raw[last] != "" {
		return l.words, err
	}
	return l.words[:last:last], nil
}

// Commands splits the text of several commands into their arguments, see [Words]. An unquoted word ;
// separates commands. There is always at least one command, and an empty command has no arguments.
func Commands(text string) ([][]string, error) {
	l, all := splitLine(text, "", ownEscapes), [][]string{nil}
	for i, word := range l.words {
		switch l.raw[i] {
		case ";":
			all = append(all, nil)
		case "": // after the last space
		default:
			all[len(all)-1] = append(all[len(all)-1], word)
		}
	}
	if err := l.complete(); err != nil {
		return nil, err
	}
	return all, nil
}

// Characters that a backslash escapes between double quotes.
const (
	ownEscapes   = `"\`
	shellEscapes = "$`\"\\"
)

// typed is a line of words, for example up to the cursor.
type typed struct {
	words   []string // without quotes; the last is the one to complete
	raw     []string // the words with their quotes; the last may be empty
	before  string   // part of the last word that is not replaced
	open    byte     // the quote in which it ends, or 0
	escaped bool     // it ends with a backslash that escapes nothing
	quoted  int      // index in the line after the last quote that begins
	escapes string   // see splitLine
}

// splitLine splits a line as a shell does, without expansions. Between double quotes a backslash escapes
// the characters of escapes. The shell replaces the last word from after the quote in which it ends,
// or else from after the last unquoted character of breaks.
func splitLine(line, breaks, escapes string) typed {
	l := typed{escapes: escapes}
	var word strings.Builder
	start := 0
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case l.open != 0 && c == l.open:
			l.open = 0
			continue
		case l.open == '\'':
		case c == '\\':
			if l.escaped = i+1 == len(line); l.escaped || l.open != 0 && strings.IndexByte(escapes, line[i+1]) < 0 {
				break // an ordinary character
			}
			i++
			word.WriteByte(line[i])
			continue
		case l.open != 0:
		case c == '\'' || c == '"':
			l.open, l.before, l.quoted = c, word.String(), i+1
			continue
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if i > start {
				l.words, l.raw = append(l.words, word.String()), append(l.raw, line[start:i])
			}
			word.Reset()
			l.before, start = "", i+1
			continue
		}
		word.WriteByte(c)
		if l.open == 0 && strings.IndexByte(breaks, c) >= 0 {
			l.before = word.String()
		}
	}
	l.words, l.raw = append(l.words, word.String()), append(l.raw, line[start:])
	return l
}

// complete returns an error if a quote is open, or if nothing follows the last backslash.
func (l typed) complete() error {
	switch {
	case l.open != 0:
		return fmt.Errorf("a %c is not closed", l.open)
	case l.escaped:
		return fmt.Errorf(`there is nothing after the last \`)
	}
	return nil
}

// quote quotes text for the end of the line, so that it is read as exactly this text.
func (l typed) quote(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch l.open {
		case '\'':
			if r == '\'' {
				b.WriteString(`'\'`) // and the quote itself
			}
		case '"':
			if strings.ContainsRune(l.escapes, r) {
				b.WriteByte('\\')
			}
		default:
			plain := unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./:@%+,=", r) ||
				r == '~' && (i > 0 || l.before != "")
			if !plain {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}
