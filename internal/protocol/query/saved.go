package query

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Saved returns the text of a saved query. If its error is an [*Error], the Reason and the Hint are
// used for the error of the whole query. For a name that begins with [LabelPrefix], it returns the term
// flag: of the flag that has the rest of the name as its label.
type Saved func(name string) (text string, err error)

// LabelPrefix begins a name that is not that of a saved query, which has no slash.
const LabelPrefix = string(keyLabel) + "/"

// maxSaved is the maximum number of saved queries included in one query, counting nested ones: a
// dozen small queries can include each other thousands of times.
const maxSaved = 1000

// maxName is the maximum length of the name of a saved query in bytes, that of a file name.
const maxName = 255

// CheckName returns an error if a saved query cannot have this name. It is the name of a file, and
// must fit into one line.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a saved query has a name")
	case len(name) > maxName:
		return fmt.Errorf("the name of a saved query has at most %d bytes", maxName)
	case !utf8.ValidString(name):
		return errors.New("the name of a saved query is UTF-8")
	case strings.ContainsRune(name, '/'):
		return errors.New("a saved query has no / in its name")
	case strings.IndexFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) >= 0:
		return errors.New("a saved query has no control characters in its name")
	case strings.TrimFunc(name, unicode.IsSpace) != name:
		return errors.New("the name of a saved query does not begin or end with a space")
	case name[0] == '.':
		return errors.New("the name of a saved query does not begin with a dot")
	case name[len(name)-1] == '~':
		return errors.New("the name of a saved query does not end with ~, as the names of editors' backups do")
	}
	return nil
}

// terms blanks out the lines of a saved query that begin with #, so that other text keeps its
// position.
func terms(text string) string {
	if !strings.Contains(text, "#") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
			continue
		}
		for _, r := range line {
			if r != '\n' {
				r = ' '
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// SavedTerm returns the term query:NAME.
func SavedTerm(name string) string {
	return string(keySaved) + ":" + Value(name)
}

// include parses the saved query that is named at byte at.
func (p *parser) include(name string, at, depth int) (node, error) {
	switch {
	case p.saved == nil:
		return nil, p.fail(at, "saved queries cannot be used here", "")
	case slices.Contains(p.within, name):
		chain := append(slices.Clone(p.within[slices.Index(p.within, name):]), name)
		return nil, p.fail(at, fmt.Sprintf("the saved query %s is a part of itself (%s)", name,
			strings.Join(chain, " has ")), "take it out of one of them")
	case *p.budget == 0:
		return nil, p.fail(at, fmt.Sprintf("more than %d saved queries within each other", maxSaved), "")
	}
	*p.budget--
	text, err := p.saved(name)
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			return nil, p.fail(at, e.Reason, e.Hint)
		}
		return nil, p.fail(at, err.Error(), "")
	}
	sub := &parser{text: text, name: name, saved: p.saved, within: append(slices.Clone(p.within), name),
		budget: p.budget}
	if err := sub.valid(); err != nil {
		return nil, err
	}
	sub.text = terms(text)
	sub.space()
	if sub.eof() {
		return nil, p.fail(at, fmt.Sprintf("the saved query %s is empty", name), "")
	}
	// The depth goes on from that of the term, so that maxDepth limits the sum.
	return sub.all(depth + 1)
}

// place returns the line and the column of a byte, from 1. The line is 0 if there is only one.
func (p *parser) place(at int) (line, column int) {
	before := p.text[:min(at, len(p.text))]
	if p.name != "" && strings.Contains(strings.TrimSpace(p.text), "\n") {
		line = strings.Count(before, "\n") + 1
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	return line, utf8.RuneCountInString(before) + 1
}

// where returns the name of the query with the error, and the position in it.
func (e *Error) where() string {
	what := "query"
	if e.Name != "" {
		what = "saved query " + e.Name
	}
	if e.Line > 0 {
		what += fmt.Sprintf(", line %d", e.Line)
	}
	return fmt.Sprintf("%s, column %d", what, cmp.Or(e.Column, 1))
}

// Keys returns the keys of terms, and the values of keys that have only a few, in the order of
// messages.
func Keys() (keys []string, values map[string][]string) {
	values = map[string][]string{}
	for _, r := range rules {
		keys = append(keys, string(r.key))
		for _, c := range r.choices {
			values[string(r.key)] = append(values[string(r.key)], c.name)
		}
	}
	return append(keys, "not"), values
}

// Value returns text as the value of a term, quoted if necessary.
func Value(text string) string {
	if text != "" && text[0] != '/' && strings.IndexFunc(text, ends) < 0 {
		return text
	}
	return Quote(text)
}

// Quote returns text as a phrase.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(text) + `"`
}
