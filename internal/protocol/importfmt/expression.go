package importfmt

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

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
	text, err := p.all(0)
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("%q is not understood", p.rest)
	}
	if err != nil {
		return "", err
	}
	_, err = query.Parse(text)
	return text, err
}

// expression is the unread rest of an expression.
type expression struct{ rest string }

// next reads a token, and returns it and its groups, nil if the next token is another.
func (p *expression) next(token string) []string {
	found := regexp.MustCompile(`^\s*` + token).FindStringSubmatch(p.rest)
	if found != nil {
		p.rest = p.rest[len(found[0]):]
	}
	return found
}

// all reads comparisons and parentheses with "and" and "or" between them. As in newsboat, both have the same
// precedence and group to the right.
func (p *expression) all(depth int) (text string, err error) {
	switch {
	case depth > 100:
		return "", errors.New("it is nested too deeply")
	case p.next(`\(`) == nil:
		text, err = p.one()
	default:
		if text, err = p.all(depth + 1); err == nil && p.next(`\)`) == nil {
			err = errors.New("a parenthesis is not closed")
		}
	}
	op := p.next(`(and|or)\b`)
	if err != nil || op == nil {
		return text, err
	}
	right, err := p.all(depth + 1)
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

// one reads a comparison.
func (p *expression) one() (string, error) {
	c := p.next(`(\w+)\s*(!?)(==?|=?~|[<>]=?|#|between\b)\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([\w:-]+))`)
	if c == nil {
		return "", fmt.Errorf("%q is not understood", p.rest)
	}
	op := strings.NewReplacer("==", "=", "=~", "~").Replace(c[3])
	value := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`).Replace(c[4] + c[5] + c[6])
	text, err := comparison(c[1], op, value)
	switch positive, not := strings.CutPrefix(text, "not:"); {
	case err != nil:
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(c[0]), err)
	case c[2] == "":
		return text, nil
	case not:
		return positive, nil
	}
	opposite := map[string]string{"is:read": "is:unread", "is:unread": "is:read"}[text]
	return cmp.Or(opposite, "not:"+group(group(text, " since:"), " or ")), nil
}

// keys has the key in lektor-query(7) of each attribute that is text.
var keys = map[string]string{"title": "title", "author": "author", "content": "text", "guid": "id", "link": "link",
	"feedtitle": "feed"}

// equivalents are the terms for comparisons that are not of texts, ages or tags. Regular expressions of newsboat ignore
// case.
var equivalents = []struct{ comparison, terms string }{
	{`unread=yes`, "is:unread"},
	{`unread=no`, "is:read"},
	{`(?i:flags~f)`, "flag:f or is:flagged"},
	{`(?i:flags~([a-z]))`, "flag:$1"},
	{`(title|author|content|link)=`, "not:has:$1"},
	{`(enclosure)_(?:url|type)=`, "not:has:$1"},
	{`enclosure_type~[\^./*]*(audio|video|image)[\^./*]*`, "has:$1"},
}

// comparison returns the terms for a comparison. The operator is =, ~, #, <, <=, >, >= or between.
func comparison(attribute, op, value string) (string, error) {
	for _, e := range equivalents {
		if re := regexp.MustCompile("^" + e.comparison + "$"); re.MatchString(attribute + op + value) {
			return strings.ToLower(re.ReplaceAllString(attribute+op+value, e.terms)), nil
		}
	}
	key := keys[attribute]
	quoted := strings.ReplaceAll(regexp.QuoteMeta(value), "/", `\/`) // case counts
	switch days := age(op, value); {
	case attribute == "age" && days != "":
		return days, nil
	case attribute == "flags" && (op == "#" || op == "=") && len(value) == 1: // which compare all flags as one word
		return "", fmt.Errorf("it asks for entries with this flag and no other; in lektor-query(7), "+
			"flag:%s asks for all with it", strings.ToLower(value))
	case attribute == "tags" && op == "#":
		return "folder:" + query.Quote(tagFolder(value)), nil
	case attribute == "rssurl" && op == "=" && strings.Contains(value, "://"):
		return "feed:" + query.Quote(value), nil
	case key == "" || value == "":
	case op == "~":
		re, err := slashed(value)
		return key + ":" + re, err
	case op == "#" && !strings.Contains(value, " "): // a word between spaces
		return key + ":/(^| )" + quoted + "( |$)/", nil
	case op == "=" && attribute != "content":
		return key + ":/^" + quoted + "$/", nil
	}
	return "", errors.New("it has no equivalent in lektor-query(7)")
}

// age returns the terms for a comparison of the age of an entry, which newsboat counts in whole days,
// "" if there are none.
func age(op, value string) string {
	const both = "before:%[1]dd since:%[2]dd" // the first day, and the one after the last
	terms := map[string]string{"<": "since:%[1]dd", "<=": "since:%[2]dd", ">": "before:%[2]dd", ">=": "before:%[1]dd",
		"=": both, "between": both}[op]
	low, high, isRange := strings.Cut(value, ":")
	from, err := strconv.ParseUint(low, 10, 20)
	to, err2 := strconv.ParseUint(cmp.Or(high, low), 10, 20)
	if terms == "" || cmp.Or(err, err2) != nil || isRange != (op == "between") {
		return ""
	}
	return strings.TrimPrefix(fmt.Sprintf(terms, min(from, to), max(from, to)+1), "before:0d ")
}

// slashed returns an extended regular expression of POSIX, with the additions of the GNU library, as
// one of lektor-query(7) that ignores case. The error names a part that means something else in RE2,
// for example a backslash in a class, which is a plain character in POSIX.
func slashed(posix string) (string, error) {
	var err error
	pieces := regexp.MustCompile(`(?s)\\.?|\[\^?\]?(\[:\w+:\]|[^]])*\]|[(*+?}][*+?]|.`)
	foreign := regexp.MustCompile(`(?s)^(\\([^bBwWsS[:punct:]]|['\x60])?|\[.*(\\|\[[.=]).*|[(*+?}][*+?])$`)
	text := pieces.ReplaceAllStringFunc(posix, func(piece string) string {
		switch {
		case piece == `\<`, piece == `\>`: // the ends of a word
			return `\b`
		case foreign.MatchString(piece):
			err = fmt.Errorf("%s in a regular expression has no equivalent in RE2", piece)
		case piece[0] != '\\':
			piece = strings.ReplaceAll(piece, "/", `\/`)
		}
		return piece
	})
	if _, compiles := regexp.Compile(text); err == nil && compiles != nil {
		err = fmt.Errorf("the regular expression has no equivalent in RE2: %w", compiles)
	}
	return "/" + text + "/i", err
}
