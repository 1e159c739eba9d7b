package importfmt

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// Translate translates an expression of newsboat's filter language into the language of
// lektor-query(7): comparisons of the attributes that lektor has, joined by "and" and "or". The error
// names the part that cannot be translated; Translate never leaves a part out, as that would be
// another query.
//
// Newsboat shows read entries with a query, too, and lektor's viewers unread ones
// unless a query says otherwise; Translate leaves this to the viewer.
func Translate(expr string) (string, error) {
	p := &expression{rest: expr}
	text, err := p.all()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("%q is not understood", p.rest)
	}
	if err != nil {
		return "", err
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

// next reads a token, and returns it and its groups, nil if the next token is another.
func (p *expression) next(token string) []string {
	found := regexp.MustCompile(`^\s*` + token).FindStringSubmatch(p.rest)
	if found != nil {
		p.rest = p.rest[len(found[0]):]
	}
	return found
}

// all reads comparisons with "and" and "or" between them. As in newsboat, both have the same
// precedence and group to the right.
func (p *expression) all() (string, error) {
	if p.depth++; p.depth > 100 {
		return "", errors.New("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	text, err := p.one()
	op := p.next(`(and|or)\b`)
	if err != nil || op == nil {
		return text, err
	}
	right, err := p.all()
	if op[1] == "or" {
		return text + " or " + right, err
	}
	return group(text, " or ") + " " + group(right, " or "), err
}

// group puts terms into parentheses if they may have a separator between them.
func group(text, separator string) string {
	if strings.Contains(text, separator) {
		return "(" + text + ")"
	}
	return text
}

// one reads a comparison or an expression in parentheses.
func (p *expression) one() (string, error) {
	if p.next(`\(`) != nil {
		text, err := p.all()
		if err == nil && p.next(`\)`) == nil {
			err = errors.New("a parenthesis is not closed")
		}
		return text, err
	}
	c := p.next(`(\w+)\s*(==?|!=|[=!]~|[<>]=?|!?#|between\b)\s*` +
		`(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([\w:-]+))`)
	if c == nil {
		return "", fmt.Errorf("%q is not understood", p.rest)
	}
	op, negated := strings.CutPrefix(c[2], "!")
	op = strings.NewReplacer("==", "=", "=~", "~").Replace(op)
	value := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(c[3]) +
		strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(c[4]) + c[5]
	text, err := comparison(c[1], op, value)
	switch rest, not := strings.CutPrefix(text, "not:"); {
	case err != nil:
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(c[0]), err)
	case !negated:
		return text, nil
	case not:
		return rest, nil
	case text == "is:read":
		return "is:unread", nil
	case text == "is:unread":
		return "is:read", nil
	}
	return "not:" + group(group(text, " since:"), " or "), nil
}

// texts has the key in lektor-query(7) of each attribute that is text, and its name behind "has:".
var texts = map[string]struct{ key, has string }{
	"title": {"title", "title"}, "author": {"author", "author"}, "content": {"text", "content"}, "guid": {"id", ""},
	"link": {"link", "link"}, "feedtitle": {"feed", ""}, "enclosure_url": {"", "enclosure"},
	"enclosure_type": {"", "enclosure"},
}

// comparison returns the terms for a comparison. The operator is =, ~, #, <, <=, >, >= or between.
func comparison(attribute, op, value string) (term string, err error) {
	switch attribute {
	case "unread":
		if op == "=" {
			term = map[string]string{"yes": "is:unread", "no": "is:read"}[value]
		}
	case "tags":
		if op == "#" {
			term = "folder:" + quote(tagFolder(value))
		}
	case "rssurl":
		if op == "=" && strings.Contains(value, "://") {
			term = "feed:" + quote(value)
		}
	case "flags":
		term, err = flag(op, strings.ToLower(value))
	case "age":
		term = age(op, value)
	default:
		term, err = textual(attribute, op, value)
	}
	if term == "" && err == nil {
		err = errors.New("it has no equivalent in lektor-query(7)")
	}
	return term, err
}

// flag returns the terms for a comparison of flags with one letter, "" if there are none. In newsboat,
// the flags of an entry are one word, which # compares as a whole, and regular expressions ignore case.
func flag(op, letter string) (string, error) {
	switch {
	case len(letter) != 1 || letter < "a" || letter > "z":
	case op == "#" || op == "=":
		return "", fmt.Errorf("it asks for entries with this flag and no other; in lektor-query(7), flag:%s asks for all with it", letter)
	case op == "~" && letter == "f":
		return "flag:f or is:flagged", nil
	case op == "~":
		return "flag:" + letter, nil
	}
	return "", nil
}

// textual returns the term for a comparison of a text, "" if there is none.
func textual(attribute, op, value string) (string, error) {
	text := texts[attribute]
	kind := strings.Trim(value, "^./*")
	quoted := strings.ReplaceAll(regexp.QuoteMeta(value), "/", `\/`) // case counts
	switch {
	case op == "=" && value == "" && text.has != "":
		return "not:has:" + text.has, nil
	case attribute == "enclosure_type" && op == "~" && (kind == "audio" || kind == "video" || kind == "image"):
		return "has:" + kind, nil
	case text.key == "":
	case op == "~":
		re, err := slashed(value)
		return text.key + ":" + re, err
	case op == "#" && value != "" && !strings.Contains(value, " "): // a word between spaces
		return text.key + ":/(^| )" + quoted + "( |$)/", nil
	case op == "=" && value != "" && attribute != "content":
		return text.key + ":/^" + quoted + "$/", nil
	}
	return "", nil
}

// age returns the terms for a comparison of the age of an entry, which newsboat counts in whole days,
// "" if there are none.
func age(op, value string) string {
	low, high, isRange := strings.Cut(value, ":")
	if !isRange {
		high = low
	}
	const most = 20 // bits
	from, err1 := strconv.ParseUint(low, 10, most)
	to, err2 := strconv.ParseUint(high, 10, most)
	from, to = min(from, to), max(from, to)
	switch {
	case err1 != nil || err2 != nil || isRange != (op == "between"):
	case op == "<":
		return fmt.Sprintf("since:%dd", from)
	case op == ">":
		return fmt.Sprintf("before:%dd", from+1)
	case op == ">=":
		return fmt.Sprintf("before:%dd", from)
	case op == "<=", (op == "=" || isRange) && from == 0:
		return fmt.Sprintf("since:%dd", to+1)
	case op == "=" || isRange:
		return fmt.Sprintf("before:%dd since:%dd", from, to+1)
	}
	return ""
}

// quote returns s as a phrase of lektor-query(7).
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// tagFolder returns the folder for a tag: "a/b" is the folder b in a.
func tagFolder(tag string) string { return opml.JoinPath(strings.Split(oneLine(tag), "/")) }

// slashed returns an extended regular expression of POSIX, with the additions of the GNU library, as
// one of lektor-query(7) that ignores case. The error names a part that means something else in RE2,
// for example a backslash in a class, which is a plain character in POSIX.
func slashed(posix string) (string, error) {
	var err error
	pieces := regexp.MustCompile(`(?s)\\.?|\[\^?\]?(\[:\w+:\]|[^]])*\]|[(*+?}][*+?]|.`)
	text := pieces.ReplaceAllStringFunc(posix, func(piece string) string {
		escape, isEscape := strings.CutPrefix(piece, `\`)
		switch {
		case isEscape && strings.Contains("<>", escape) && escape != "": // the ends of a word
			return `\b`
		case isEscape && strings.Contains("bBwWsS!\"#$%&()*+,-./:;=?@[\\]^_{|}~", escape) && escape != "":
			return piece
		case isEscape, len(piece) > 2 && (strings.Contains(piece, `\`) || strings.Contains(piece[1:], "[.") ||
			strings.Contains(piece[1:], "[=")), len(piece) == 2 && strings.Contains("*+?", piece[1:]):
			err = fmt.Errorf("%s in a regular expression has no equivalent in RE2", piece)
		}
		return strings.ReplaceAll(piece, "/", `\/`)
	})
	if _, compiles := regexp.Compile(text); err == nil && compiles != nil {
		err = fmt.Errorf("the regular expression has no equivalent in RE2: %w", compiles)
	}
	return "/" + text + "/i", err
}
