package importfmt

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// Newsboat reads newsboat's file urls, a line for a feed: its URL, exec: with a command or filter:
// with a command and a URL; or query: with a name and an expression of its filter language. Tags
// follow: a tag that begins with ~ is the title, and the tag ! hides the feed. A token may stand in
// double quotes; # begins a comment.
func Newsboat(urls string) *Library {
	lib := &Library{}
	n := 0
	for line := range strings.Lines(urls) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		tokens := tokens(line)
		if len(tokens) == 0 {
			continue
		}
		url, tags := tokens[0], tokens[1:]
		switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
		case "query":
			lib.query(n, rest)
		case "filter":
			command, target, ok := strings.Cut(rest, ":")
			if !ok || command == "" || target == "" {
				lib.note(n, "filter: must be followed by a command, a colon and a URL")
				continue
			}
			lib.tagged(Feed{URL: target, Filter: command, Key: url}, tags)
		default:
			lib.tagged(Feed{URL: url, Key: url}, tags)
		}
	}
	return lib
}

// tagged adds a feed with newsboat's tags.
func (l *Library) tagged(f Feed, tags []string) {
	for _, t := range tags {
		switch {
		case strings.HasPrefix(t, "~"):
			if f.Title == "" { // the first counts, as in newsboat
				f.Title = oneLine(t[1:])
			}
		case t == "!":
		default:
			if c := tagFolder(t); c != "" {
				f.Categories = append(f.Categories, c)
			}
		}
	}
	l.add(f)
}

// tagFolder returns the folder for a tag: "a/b" is the folder b in a.
func tagFolder(tag string) string { return opml.JoinPath(strings.Split(oneLine(tag), "/")) }

// newsboatToken matches a token in double quotes, of which the last may be missing, another token, or a comment.
var newsboatToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)#.*|"((?:\\.|[^"\\])*)\\?"?|[^ \t\r\n"][^ \t\r\n]*`)
})

// tokens splits a line as newsboat does. Within double quotes a backslash escapes the next
// character, and \n, \r and \t are control characters; outside quotes a backslash is a plain
// character.
func tokens(line string) (out []string) {
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\`, "")
	for _, m := range newsboatToken().FindAllStringSubmatch(line, -1) {
		switch m[0][0] {
		case '#':
			return out
		case '"':
			out = append(out, unescape.Replace(m[1]))
		default:
			out = append(out, m[0])
		}
	}
	return out
}

// query adds a saved query, NAME:EXPRESSION. A name stands in quotes of its own if it
// has a colon.
func (l *Library) query(line int, text string) {
	name, expr := "", ""
	if strings.HasPrefix(text, `"`) {
		parts := strings.SplitN(text[1:], `"`, 2)
		if len(parts) == 2 {
			name, expr = parts[0], strings.TrimPrefix(parts[1], ":")
		}
	} else {
		name, expr, _ = strings.Cut(text, ":")
	}
	if name == "" || strings.TrimSpace(expr) == "" {
		l.note(line, "query: must be followed by a name, a colon and an expression")
		return
	}
	q := Query{Name: QueryName(name)}
	if q.Name != name {
		l.note(line, "the query %q is saved as %q", name, q.Name)
	}
	q.Text, q.Err = Translate(expr)
	l.Queries = append(l.Queries, q)
}

// QueryName returns a valid name of a saved query.
func QueryName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '/':
			return '-'
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.TrimRight(strings.TrimLeft(strings.TrimSpace(name), ". "), "~ ")
	for len(name) > 200 {
		r := []rune(name)
		name = strings.TrimSpace(string(r[:len(r)-1]))
	}
	if query.CheckName(name) != nil {
		return "query"
	}
	return name
}

// Rule selects entries that the user never wants to see.
type Rule struct {
	Source string // as the user wrote it
	// Feed is the URL of the feed to which the rule applies, as in the list of feeds, "" for all
	// feeds.
	Feed  string
	Query string // in the language of lektor-query(7), if Err is nil
	Err   error  // why the query cannot be translated
}

// NewsboatConfig adds the rules of the killfile in newsboat's file config, lines "ignore-article", and
// notes on settings that are not imported. It returns the file of newsboat's database, which may begin
// with "~/", or "" for the usual place.
func (l *Library) NewsboatConfig(config string) (cache string) {
	for line := range strings.Lines(config) {
		t := tokens(strings.TrimRight(line, "\r\n"))
		if len(t) < 2 {
			continue
		}
		switch t[0] {
		case "cache-file":
			cache = t[1]
		case "urls-source":
			if t[1] != "local" {
				l.Notes = append(l.Notes,
					"its feeds come from "+t[1]+" and cannot be read here: export them from there as OPML, and import this")
			}
		case "ignore-article":
			l.Rules = append(l.Rules, ignored(oneLine(line), t[1:]))
		case "include":
			l.Notes = append(l.Notes, "include "+t[1]+": only the file config itself is read")
		}
	}
	return cache
}

// ignored makes a rule of the words of ignore-article: "*" or the URL of a feed, and an
// expression of the filter language.
func ignored(source string, words []string) Rule {
	r := Rule{Source: source}
	switch {
	case len(words) < 2:
		r.Err = errors.New("it has no expression")
		return r
	case strings.HasPrefix(words[0], "regex:"):
		r.Err = errors.New("a regular expression cannot select feeds")
		return r
	case words[0] != "*":
		r.Feed = words[0]
	}
	r.Query, r.Err = Translate(words[1])
	return r
}
