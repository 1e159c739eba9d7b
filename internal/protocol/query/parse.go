package query

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth is the maximum nesting of parentheses and not:.
const maxDepth = 100

// Parse parses a query without saved queries. The error is an [*Error].
func Parse(text string) (*Query, error) { return ParseWith(text, nil) }

// ParseWith parses a query, and replaces each query:NAME by the query that saved returns. The error is
// an [*Error]; for an error in a saved query it has the name of that query and the position in it.
func ParseWith(text string, saved Saved) (*Query, error) {
	p := &parser{text: text, saved: saved, budget: new(maxSaved)}
	if err := p.valid(); err != nil {
		return nil, err
	}
	p.space()
	if p.eof() {
		return &Query{}, nil
	}
	root, err := p.all(0)
	if err != nil {
		return nil, err
	}
	return &Query{root: root, text: strings.TrimSpace(text)}, nil
}

// parser parses a query from left to right. Between calls of its methods pos is at the beginning of a
// token.
type parser struct {
	text string
	pos  int

	name   string // name of a saved query
	saved  Saved
	within []string // the saved queries that this one is a part of, and itself
	budget *int     // how many more saved queries may be included
}

// valid returns an error if the text is not valid UTF-8.
func (p *parser) valid() error {
	const never = "\xff" // in valid UTF-8
	if at := strings.Index(strings.ToValidUTF8(p.text, never), never); at >= 0 {
		return p.fail(at, "this is not UTF-8", "")
	}
	return nil
}

// all parses the rest of the text, which must not be empty.
func (p *parser) all(depth int) (node, error) {
	root, err := p.anyOf(depth)
	if err != nil {
		return nil, err
	}
	if !p.eof() {
		return nil, p.fail(p.pos, "this ) closes nothing", `to search for a parenthesis put it in quotes: ")"`)
	}
	return root, nil
}

func (p *parser) fail(at int, reason, hint string) error {
	line, column := p.place(at)
	return &Error{Name: p.name, Line: line, Column: column, Reason: reason, Hint: hint}
}

func (p *parser) eof() bool { return p.pos == len(p.text) }

func (p *parser) space() {
	rest := strings.TrimLeftFunc(p.text[p.pos:], unicode.IsSpace)
	p.pos = len(p.text) - len(rest)
}

// ends reports whether a character ends a word.
func ends(r rune) bool {
	return r == '(' || r == ')' || r == '"' || unicode.IsSpace(r)
}

// word returns the word at pos. It is empty before a quote or parenthesis.
func (p *parser) word() string {
	rest := p.text[p.pos:]
	if i := strings.IndexFunc(rest, ends); i >= 0 {
		return rest[:i]
	}
	return rest
}

// operator reports whether the next token is the operator op, also before a quote or parenthesis.
func (p *parser) operator(op string) bool {
	w := p.word()
	return w == op || w == strings.ToUpper(op)
}

func (p *parser) anyOf(depth int) (node, error) {
	var parts anyOf
	for {
		n, err := p.allOf(depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, n)
		if !p.operator("or") {
			break
		}
		p.pos += len("or")
		p.space()
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

func (p *parser) allOf(depth int) (node, error) {
	var parts allOf
	for {
		n, err := p.term(depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, n)
		p.space()
		if p.operator("and") {
			p.pos += len("and")
			p.space()
			continue
		}
		if p.eof() || p.text[p.pos] == ')' || p.operator("or") {
			break
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

func (p *parser) term(depth int) (node, error) {
	start := p.pos
	if depth > maxDepth {
		return nil, p.fail(start, fmt.Sprintf("more than %d levels of not: and parentheses", maxDepth), "")
	}
	if p.eof() {
		return nil, p.fail(start, "a term is missing at the end", "")
	}
	switch c := p.text[p.pos]; {
	case c == '(':
		return p.group(start, depth)
	case c == ')':
		return nil, p.fail(start, "a term is missing before this )", "")
	case c == '"' || c == '/':
		return p.value(&anyRule)
	case c == '-':
		return nil, p.fail(start, fmt.Sprintf("a term does not begin with -: %s", p.word()),
			fmt.Sprintf("to leave entries out write not:%s; to search for it put it in quotes",
				cmp.Or(strings.TrimLeft(p.word(), "-"), "TERM")))
	}
	w := p.word()
	switch strings.ToLower(w) {
	case "or", "and":
		return nil, p.fail(start, fmt.Sprintf("a term is missing before %q", w),
			fmt.Sprintf("to search for the word put it in quotes: \"%s\"", w))
	case "not":
		return nil, p.fail(start, fmt.Sprintf("%q by itself", w),
			fmt.Sprintf("write not: before a term, without a space; to search for the word put it in quotes: \"%s\"",
				w))
	}
	name, value, ok := cutKey(w)
	switch {
	case !ok:
		return p.value(&anyRule)
	case strings.EqualFold(name, "not"):
		return p.negated(depth)
	}
	return p.keyed(name, value, depth)
}

// group parses an expression in parentheses.
func (p *parser) group(start, depth int) (node, error) {
	p.pos++
	p.space()
	if !p.eof() && p.text[p.pos] == ')' {
		return nil, p.fail(start, "there is nothing between these parentheses",
			`to search for them put them in quotes: "()"`)
	}
	n, err := p.anyOf(depth + 1)
	if err != nil {
		return nil, err
	}
	if p.eof() {
		return nil, p.fail(start, "this ( is not closed", `to search for a parenthesis put it in quotes: "("`)
	}
	p.pos++ // the ')' at which anyOf ended
	return n, nil
}

// negated parses not: and its term.
func (p *parser) negated(depth int) (node, error) {
	p.pos += len("not:")
	if p.eof() || unicode.IsSpace(first(p.text[p.pos:])) || p.text[p.pos] == ')' {
		return nil, p.fail(p.pos, "a term is missing after not:", "write it without a space between: not:feed:lwn")
	}
	n, err := p.term(depth + 1)
	if err != nil {
		return nil, err
	}
	return negation{n}, nil
}

// keyed parses a term with a key. value is the part of the value in the same word.
func (p *parser) keyed(name, value string, depth int) (node, error) {
	start := p.pos
	var keys []key
	for i := range rules {
		if strings.EqualFold(string(rules[i].key), name) {
			p.pos += len(name) + 1
			n, err := p.value(&rules[i])
			if t, ok := n.(*term); ok && err == nil && t.key == keySaved {
				return p.include(t.value, start, depth)
			} else if ok && err == nil && t.key == keyLabel {
				return p.include(LabelPrefix+t.value, start, depth)
			}
			return n, err
		}
		keys = append(keys, rules[i].key)
	}
	hint := fmt.Sprintf("the keys are %s; to search for the text put it in quotes: \"%s:%s\"", list(keys), name, value)
	return nil, p.fail(start, fmt.Sprintf("there is no key %s:", name), hint)
}

func first(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// cutKey splits a word that begins like KEY:VALUE. A key is of ASCII letters,
// and a URL has none.
func cutKey(w string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(w, ":")
	if !ok || name == "" || strings.HasPrefix(value, "//") {
		return "", "", false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "", "", false
		}
	}
	return name, value, true
}

// value parses the value of a key at pos.
func (p *parser) value(r *rule) (node, error) {
	k, at := r.key, p.pos
	t := &term{key: k, rule: r}
	switch {
	case p.eof() || unicode.IsSpace(first(p.text[at:])) || strings.ContainsRune("()", rune(p.text[at])):
		hint := "write it without a space between"
		if !p.eof() && p.text[at] == '(' {
			hint = fmt.Sprintf("a key has one value: write (%s:a or %s:b)", k, k)
		}
		return nil, p.fail(at, fmt.Sprintf("a value is missing after %s:", k), hint)
	case p.text[at] == '"':
		s, err := p.quoted()
		if err != nil {
			return nil, err
		}
		t.value = s
	case p.text[at] == '/' && r.text:
		if err := p.regexp(t); err != nil {
			return nil, err
		}
	default:
		t.value = p.word()
		p.pos += len(t.value)
	}
	if t.re == nil && strings.TrimFunc(t.value, unicode.IsSpace) == "" {
		return nil, p.fail(at, "the quotes are empty", "")
	}
	if !p.eof() && p.text[p.pos] != ')' && !unicode.IsSpace(first(p.text[p.pos:])) {
		return nil, p.fail(p.pos, "a space is missing here",
			`a text with quotes or parentheses goes between quotes, as in "say \"yes\" (now)"`)
	}
	if t.re == nil {
		if err := p.check(t, at); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// quoted parses "…", in which \" and \\ are escapes.
func (p *parser) quoted() (string, error) {
	start := p.pos
	var b strings.Builder
	for i := start + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			p.pos = i + 1
			return b.String(), nil
		case c == '\\' && i+1 < len(p.text) && (p.text[i+1] == '"' || p.text[i+1] == '\\'):
			i++
			b.WriteByte(p.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fail(start, "this quote is not closed", `to search for a quote write "\""`)
}

// regexp parses /…/ or /…/i, in which \/ is an escape.
func (p *parser) regexp(t *term) error {
	start := p.pos
	var b strings.Builder
	for i := start + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '\\' && i+1 < len(p.text):
			// Remove only the backslash before a slash.
			if p.text[i+1] != '/' {
				b.WriteByte(c)
			}
			i++
			b.WriteByte(p.text[i])
		case c == '/':
			t.value = b.String()
			p.pos = i + 1
			if t.value == "" {
				return p.fail(start, "the regular expression is empty", "")
			}
			expr := t.value
			if flags := p.word(); flags == "i" {
				expr = "(?i)" + expr
				p.pos++
			} else if flags != "" {
				return p.fail(p.pos, fmt.Sprintf("the only flag of a regular expression is i, not %s", flags),
					`to search for a text that begins with / put it in quotes`)
			}
			re, err := regexp.Compile(expr)
			if err != nil {
				// The message of the package quotes the invalid part.
				return p.fail(start+1, strings.TrimPrefix(err.Error(), "error parsing regexp: "),
					"the syntax is that of RE2: https://github.com/google/re2/wiki/Syntax")
			}
			t.re = re
			return nil
		default:
			b.WriteByte(c)
		}
	}
	return p.fail(start, "this regular expression is not closed by /",
		`to search for a text that begins with / put it in quotes`)
}

// check completes a term that is a word or phrase.
func (p *parser) check(t *term, at int) error {
	t.needle = Fold(t.value)
	switch t.key {
	case keySaved:
		if err := CheckName(t.value); err != nil {
			return p.fail(at, err.Error(), "")
		}
	case keyIs, keyHas:
		var names []string
		for i := range t.rule.choices {
			c := &t.rule.choices[i]
			if c.name == t.needle || t.key == keyHas && c.name+"s" == t.needle {
				t.choice = c
				return nil
			}
			names = append(names, c.name)
		}
		return p.fail(at, fmt.Sprintf("there is no %s:%s", t.key, t.value),
			fmt.Sprintf("the values of %s: are %s", t.key, list(names)))
	case keyFlag:
		if err, ok := errors.AsType[*FlagError](misnamed(t.value)); ok {
			return p.fail(at, err.Message, err.Hint)
		}
		t.value = cmp.Or(flagWords[t.value], t.value)
		for _, c := range t.value {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return p.fail(at, fmt.Sprintf("%q is not a flag", c),
					"flags are ASCII letters: F flagged, S seen, T trashed, a to z your own")
			}
		}
	case keyDuration, keyEpisode, keySeason:
		var ok bool
		if t.sizes, ok = parseSizes(t.key, t.value); !ok {
			like := "2"
			if t.key == keyDuration {
				like = "30m"
			}
			return p.fail(at, fmt.Sprintf("%s: has no value %s", t.key, t.value),
				fmt.Sprintf("write %[1]s, <%[1]s or >%[1]s", like))
		}
	case keySince, keyBefore, keyOn, keyDelivery, keyRead:
		d, ok := parseDate(t.value)
		if !ok {
			return p.fail(at, fmt.Sprintf("%s is not a date", t.value),
				"write 2h, 3d, 2w, 6m (months), 1y, today, yesterday, 2026-01-31, 2026-01, 2026 or 2026-01-31T12:00:00Z")
		}
		if t.key == keyOn && d.on == nil {
			return p.fail(at, fmt.Sprintf("on: needs a day, a month or a year, not %s", t.value),
				"for a moment use since: and before:")
		}
		t.date = d
	}
	return nil
}

// list joins names as in "a, b or c".
func list[S ~string](names []S) string {
	var b strings.Builder
	for i, n := range names {
		switch {
		case i == len(names)-1 && i > 0:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(n))
	}
	return b.String()
}
