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

// Saved gives the text of a saved query. Its error tells why there is none; of an
// [*Error] the Reason and the Hint are told, and the place is that of the name.
type Saved func(name string) (text string, err error)

// maxSaved bounds how many saved queries may stand in one query, those in others
// counted: a dozen small ones can name each other thousands of times.
const maxSaved = 1000

// maxName is the longest name of a saved query in bytes, which is that of a file.
const maxName = 255

// CheckName is the error for a name that a saved query cannot have: it is that of a
// file that a person made, and stands in a line.
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
		return errors.New("what ends with ~ is an editor's copy, and no saved query")
	}
	return nil
}

// terms is the text of a saved query as it is in its file, which may have several lines,
// without those that begin with #. The places of what is left stay the same.
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

// ParseSaved reads the saved query of a name, as [ParseWith] does where query: names
// it. The error is an [*Error].
func ParseSaved(name string, saved Saved) (*Query, error) {
	p := &parser{saved: saved, left: new(int)}
	*p.left = maxSaved
	if err := CheckName(name); err != nil {
		return nil, p.fail(0, err.Error(), "")
	}
	root, err := p.include(name, 0, 0)
	if err != nil {
		return nil, err
	}
	return &Query{root: root, text: SavedTerm(name)}, nil
}

// SavedTerm is the term of a query that stands for the saved query of a name.
func SavedTerm(name string) string {
	return string(keySaved) + ":" + Value(name)
}

// include reads a saved query that is named at a place.
func (p *parser) include(name string, at, depth int) (node, error) {
	switch {
	case p.saved == nil:
		return nil, p.fail(at, "saved queries cannot be used here", "")
	case slices.Contains(p.within, name):
		chain := append(slices.Clone(p.within[slices.Index(p.within, name):]), name)
		return nil, p.fail(at, fmt.Sprintf("the saved query %s is a part of itself (%s)", name, strings.Join(chain, " has ")), "take it out of one of them")
	case *p.left == 0:
		return nil, p.fail(at, fmt.Sprintf("more than %d saved queries within each other", maxSaved), "")
	}
	*p.left--
	text, err := p.saved(name)
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			return nil, p.fail(at, e.Reason, e.Hint)
		}
		return nil, p.fail(at, err.Error(), "")
	}
	sub := &parser{text: text, name: name, saved: p.saved, within: append(slices.Clone(p.within), name), left: p.left}
	if err := sub.valid(); err != nil {
		return nil, err
	}
	sub.text = terms(text)
	sub.space()
	if sub.eof() {
		return nil, p.fail(at, fmt.Sprintf("the saved query %s is empty", name), "")
	}
	// Its depth is added to that of the place, so that they are bounded together.
	return sub.all(depth + 1)
}

// place gives the line, 0 where there is but one, and the column of a place, both from 1.
func (p *parser) place(at int) (line, column int) {
	before := p.text[:min(at, len(p.text))]
	if p.name != "" && strings.Contains(strings.TrimSpace(p.text), "\n") {
		line = strings.Count(before, "\n") + 1
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	return line, utf8.RuneCountInString(before) + 1
}

// where says in which query a mistake is, and at which place of it.
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

// Keys gives the keys of terms, and of those with a few values their values, in the
// order in which messages list them.
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

// Value writes text as the value of a term, in quotes if it needs them.
func Value(text string) string {
	if text != "" && text[0] != '/' && strings.IndexFunc(text, ends) < 0 {
		return text
	}
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(text) + `"`
}
