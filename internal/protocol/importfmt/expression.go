package importfmt

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// Translate translates an expression of newsboat's filter language into the language of
// lektor-query(7). The error names the part that cannot be translated; Translate never leaves a
// part out, as that would be another query.
//
// Newsboat shows read entries with a query, too, and lektor's viewers unread ones
// unless a query says otherwise; Translate leaves this to the viewer.
func Translate(expr string) (string, error) {
	p := &expression{rest: expr}
	text, _, err := p.all()
	if err != nil {
		return "", err
	}
	if p.space(); p.rest != "" {
		return "", fmt.Errorf("%q is not understood", p.rest)
	}
	if _, err := query.Parse(text); err != nil {
		return "", fmt.Errorf("the translation %s is not a valid query: %w", text, err)
	}
	return text, nil
}

// expression is the unread rest of an expression.
type expression struct {
	rest  string
	depth int
}

func (p *expression) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// word reads the word w if it is next, and reports whether it was.
func (p *expression) word(w string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, w)
	if !ok || rest != "" && isWord(rest[0]) && isWord(w[0]) {
		return false
	}
	p.rest = rest
	return true
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// all reads comparisons with "and" and "or" between them. As in newsboat, both have the same
// precedence and group to the right. joins is the outermost operator, "" for a single term.
func (p *expression) all() (text, joins string, err error) {
	if p.depth++; p.depth > 100 {
		return "", "", errors.New("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	left, leftJoins, err := p.one()
	if err != nil {
		return "", "", err
	}
	for _, op := range []string{"and", "or"} {
		if !p.word(op) {
			continue
		}
		right, rightJoins, err := p.all()
		if err != nil {
			return "", "", err
		}
		if op == "and" {
			return group(left, leftJoins, "or") + " " + group(right, rightJoins, "or"), op, nil
		}
		return left + " or " + right, op, nil
	}
	return left, leftJoins, nil
}

// group puts a query into parentheses if its outermost operator is less.
func group(text, joins, less string) string {
	if joins == less {
		return "(" + text + ")"
	}
	return text
}

// one reads a comparison or an expression in parentheses.
func (p *expression) one() (text, joins string, err error) {
	if p.word("(") {
		text, joins, err = p.all()
		if err == nil && !p.word(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return text, joins, err
	}
	p.space()
	n := 0
	for n < len(p.rest) && isWord(p.rest[n]) {
		n++
	}
	attribute := p.rest[:n]
	p.rest = p.rest[n:]
	if attribute == "" {
		return "", "", fmt.Errorf("an attribute is missing before %q", p.rest)
	}
	for _, op := range []string{"==", "!=", "=~", "!~", "<=", ">=", "!#", "=", "<", ">", "#", "between"} {
		if !p.word(op) {
			continue
		}
		value, err := p.value()
		if err != nil {
			return "", "", err
		}
		if op == "==" {
			op = "="
		}
		text, joins, err = comparison(attribute, op, value)
		if err != nil {
			err = fmt.Errorf("%s %s %s: %w", attribute, op, value, err)
		}
		return text, joins, err
	}
	return "", "", fmt.Errorf("%s is not compared with anything", attribute)
}

// value reads a string in quotes, a number, or two with a colon.
func (p *expression) value() (string, error) {
	p.space()
	if p.rest == "" {
		return "", errors.New("a value is missing at the end")
	}
	if quote := p.rest[0]; quote == '"' || quote == '\'' {
		var b strings.Builder
		for i := 1; i < len(p.rest); i++ {
			switch c := p.rest[i]; {
			case c == quote:
				p.rest = p.rest[i+1:]
				return b.String(), nil
			case c == '\\' && i+1 < len(p.rest) && (p.rest[i+1] == quote || p.rest[i+1] == '\\'):
				i++
				b.WriteByte(p.rest[i])
			default:
				b.WriteByte(c)
			}
		}
		return "", errors.New("a quote is not closed")
	}
	n := 0
	for n < len(p.rest) && (isWord(p.rest[n]) || p.rest[n] == '-' || p.rest[n] == ':') {
		n++
	}
	v := p.rest[:n]
	p.rest = p.rest[n:]
	if v == "" {
		return "", fmt.Errorf("a value is missing before %q", p.rest)
	}
	return v, nil
}

// texts maps attributes that are text to keys of lektor-query(7).
var texts = map[string]string{
	"title": "title", "author": "author", "content": "text", "guid": "id", "link": "link", "feedtitle": "feed",
}

// hasKeys are the attributes in texts for which lektor-query(7) has "has:".
var hasKeys = []string{"title", "author", "content", "link"}

var (
	errNone  = errors.New("the attribute has no equivalent in lektor-query(7)")
	errOp    = errors.New("the operator or value has no equivalent in lektor-query(7)")
	errRegex = errors.New("the regular expression has no equivalent in RE2")
)

// comparisons translates the attributes that are not in texts. joins is "and" or "or" if the result
// has several terms joined by that word.
var comparisons = map[string]func(op, value string) (text, joins string, err error){
	"unread":         unread,
	"tags":           tags,
	"flags":          flags,
	"age":            age,
	"rssurl":         rssurl,
	"enclosure_type": func(op, value string) (string, string, error) { return enclosure("enclosure_type", op, value) },
	"enclosure_url":  func(op, value string) (string, string, error) { return enclosure("enclosure_url", op, value) },
}

// comparison returns one comparison of newsboat's in the language of lektor-query(7).
func comparison(attribute, op, value string) (text, joins string, err error) {
	if compare := comparisons[attribute]; compare != nil {
		return compare(op, value)
	}
	key, ok := texts[attribute]
	if !ok {
		return "", "", errNone
	}
	negated, quoted := strings.HasPrefix(op, "!"), strings.ReplaceAll(regexp.QuoteMeta(value), "/", `\/`)
	switch op {
	case "=~", "!~":
		re, err := RE2(value)
		if err != nil {
			return "", "", err
		}
		return negate(key+":"+slashed(re), negated), "", nil
	case "#", "!#":
		// A word between spaces; case counts.
		if value != "" && !strings.Contains(value, " ") {
			return negate(key+`:/(^| )`+quoted+`( |$)/`, negated), "", nil
		}
	case "=", "!=":
		if value == "" && slices.Contains(hasKeys, attribute) {
			return negate("has:"+attribute, !negated), "", nil
		}
		// The whole text; case counts.
		if value != "" && attribute != "content" {
			return negate(key+":/^"+quoted+"$/", negated), "", nil
		}
	}
	return "", "", errOp
}

func unread(op, value string) (text, joins string, err error) {
	if op != "=" && op != "!=" || value != "yes" && value != "no" {
		return "", "", errOp
	}
	if (op == "=") == (value == "yes") {
		return "is:unread", "", nil
	}
	return "is:read", "", nil
}

func tags(op, value string) (text, joins string, err error) {
	if op != "#" && op != "!#" {
		return "", "", errOp
	}
	return negate("folder:"+quote(tagFolder(value)), op == "!#"), "", nil
}

func rssurl(op, value string) (text, joins string, err error) {
	if op != "=" && op != "!=" || !strings.Contains(value, "://") {
		return "", "", errOp
	}
	return negate("feed:"+quote(value), op == "!="), "", nil
}

// flags translates a comparison of flags: # and =~ with one letter, or with a class of letters.
func flags(op, value string) (text, joins string, err error) {
	letters, one := value, false
	if op == "=~" || op == "!~" {
		if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") && !strings.ContainsAny(value, "^-") {
			letters, one = strings.Trim(value, "[]"), true
		} else if len(value) > 1 {
			return "", "", errOp
		}
	} else if op != "#" && op != "!#" || len(value) > 1 {
		return "", "", errOp
	}
	if letters == "" || strings.Trim(letters, "Fabcdefghijklmnopqrstuvwxyz") != "" {
		return "", "", errors.New("only F and small letters are flags")
	}
	var terms []string
	for _, c := range letters {
		if c == 'F' {
			terms = append(terms, "is:flagged")
		} else {
			terms = append(terms, "flag:"+string(c))
		}
	}
	text = strings.Join(terms, " or ")
	if one && len(terms) > 1 {
		if op == "!~" {
			return "not:(" + text + ")", "", nil
		}
		return text, "or", nil
	}
	return negate(text, strings.HasPrefix(op, "!")), "", nil
}

// age translates a comparison of the age of an entry, which newsboat counts in whole days.
func age(op, value string) (text, joins string, err error) {
	low, high, ok := strings.Cut(value, ":")
	from, err1 := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	if op != "between" && (ok || err1 != nil) || op == "between" && (!ok || err1 != nil || err2 != nil) || from < 0 ||
		to < 0 || max(from, to) > 1e6 {
		return "", "", errOp
	}
	since := func(days int) string { return fmt.Sprintf("since:%dd", days) }
	before := func(days int) string { return fmt.Sprintf("before:%dd", days) }
	between := func(from, to int) string {
		if from == 0 {
			return since(to + 1)
		}
		return before(from) + " " + since(to+1)
	}
	switch op {
	case "<":
		return since(from), "", nil
	case "<=":
		return since(from + 1), "", nil
	case ">":
		return before(from + 1), "", nil
	case ">=":
		return before(from), "", nil
	case "=":
		return between(from, from), "and", nil
	case "!=":
		return "not:(" + between(from, from) + ")", "", nil
	case "between":
		return between(min(from, to), max(from, to)), "and", nil
	}
	return "", "", errOp
}

// enclosure translates a comparison of the type or the URL of an enclosure.
func enclosure(attribute, op, value string) (text, joins string, err error) {
	kind := strings.ToLower(strings.Trim(strings.TrimPrefix(value, "^"), "./*"))
	switch {
	case (op == "=" || op == "!=") && value == "":
		return negate("has:enclosure", op == "="), "", nil
	case (op == "=~" || op == "!~") && (value == "." || value == ".+"):
		return negate("has:enclosure", op == "!~"), "", nil
	case attribute == "enclosure_type" && (op == "=~" || op == "!~") &&
		(kind == "audio" || kind == "video" || kind == "image"):
		return negate("has:"+kind, op == "!~"), "", nil
	}
	return "", "", errNone
}

func negate(term string, not bool) string {
	if not {
		return "not:" + term
	}
	return term
}

// quote returns s as a phrase of lektor-query(7).
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// tagFolder returns the folder for a tag: "a/b" is the folder b in a.
func tagFolder(tag string) string { return opml.JoinPath(strings.Split(oneLine(tag), "/")) }

// slashed returns a regular expression as a term that ignores case.
func slashed(re string) string {
	var b strings.Builder
	for i := 0; i < len(re); i++ {
		if re[i] == '\\' && i+1 < len(re) {
			b.WriteString(re[i : i+2])
			i++
			continue
		}
		if re[i] == '/' {
			b.WriteByte('\\')
		}
		b.WriteByte(re[i])
	}
	return "/" + b.String() + "/i"
}

// RE2 translates an extended regular expression of POSIX, with the additions of the GNU library,
// into one of RE2. In a POSIX class a backslash is a plain character; "\<" and "\>" are the
// beginning and end of a word; there are no lazy quantifiers, and no groups that begin with a
// question mark.
func RE2(posix string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(posix); i++ {
		c := posix[i]
		switch {
		case c == '\\':
			if i++; i == len(posix) {
				return "", fmt.Errorf("%w: a backslash at its end", errRegex)
			}
			text, err := escaped(posix[i])
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		case c == '[':
			end := classEnd(posix, i)
			if end < 0 || strings.Contains(posix[i+1:end], "[.") || strings.Contains(posix[i+1:end], "[=") {
				return "", fmt.Errorf("%w: %s", errRegex, posix[i:])
			}
			b.WriteString(class(posix[i:end]))
			i = end - 1
		case strings.IndexByte("*+?}", c) >= 0 && i+1 < len(posix) && strings.IndexByte("*+?", posix[i+1]) >= 0,
			c == '(' && i+1 < len(posix) && strings.IndexByte("*+?", posix[i+1]) >= 0:
			return "", fmt.Errorf("%w: %s", errRegex, posix[i:i+2])
		default:
			b.WriteByte(c)
		}
	}
	if _, err := regexp.Compile(b.String()); err != nil {
		return "", fmt.Errorf("%w: %w", errRegex, err)
	}
	return b.String(), nil
}

// escaped returns the RE2 form of an escaped byte.
func escaped(c byte) (string, error) {
	switch {
	case c == '<', c == '>':
		return `\b`, nil
	case c == '`':
		return `\A`, nil
	case c == '\'':
		return `\z`, nil
	case strings.IndexByte("bBwWsS", c) >= 0:
		return `\` + string(c), nil
	case c >= '1' && c <= '9':
		return "", fmt.Errorf("%w: \\%c", errRegex, c)
	case c >= 0x80 || isWord(c): // plain
		return string([]byte{c}), nil
	}
	return `\` + string(c), nil
}

// classEnd returns the index behind a class that begins at i, or -1.
func classEnd(re string, i int) int {
	at := i + 1
	if at < len(re) && re[at] == '^' {
		at++
	}
	if at < len(re) && re[at] == ']' {
		at++ // the first one is plain
	}
	for at < len(re) && re[at] != ']' {
		if strings.HasPrefix(re[at:], "[:") {
			n := strings.Index(re[at:], ":]")
			if n < 0 {
				return -1
			}
			at += n + 1
		}
		at++
	}
	if at >= len(re) {
		return -1
	}
	return at + 1
}

// class writes a class of POSIX, with its brackets, for RE2.
func class(text string) string {
	inner := text[1 : len(text)-1]
	var b strings.Builder
	b.WriteByte('[')
	if rest, ok := strings.CutPrefix(inner, "^"); ok {
		b.WriteByte('^')
		inner = rest
	}
	for i := 0; i < len(inner); i++ {
		if strings.HasPrefix(inner[i:], "[:") {
			n := strings.Index(inner[i:], ":]") + 2
			b.WriteString(inner[i : i+n])
			i += n - 1
			continue
		}
		if strings.IndexByte(`\[]^`, inner[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(inner[i])
	}
	b.WriteByte(']')
	return b.String()
}
