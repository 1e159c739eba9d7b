package importfmt

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/lektordir/lektor/internal/humanize"
	"github.com/lektordir/lektor/internal/query"
)

// Newsboat reads newsboat's file urls, a line for a feed: its URL, exec: with a command
// or filter: with a command and a URL; or query: with a name and an expression of its
// filter language. Tags follow, of which ~ begins a title, and ! alone says that the
// list does not show the feed. A token may stand in double quotes; # begins a comment.
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
		note := func(format string, a ...any) {
			lib.Notes = append(lib.Notes, fmt.Sprintf("line %d: ", n)+fmt.Sprintf(format, a...))
		}
		url, tags := tokens[0], tokens[1:]
		switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
		case "query":
			lib.query(rest, note)
		case "filter":
			command, target, ok := strings.Cut(rest, ":")
			if !ok || command == "" || target == "" {
				note("a filter: has a command, and after another colon a URL")
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
			if f.Title == "" { // newsboat, too, takes the first
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

// tokens splits a line as newsboat does: within double quotes a backslash makes what
// follows it plain, but for n, r and t; elsewhere it is plain itself.
func tokens(line string) (out []string) {
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			return out
		}
		if line[0] != '"' {
			end := strings.IndexAny(line, " \t\r\n")
			if end < 0 {
				end = len(line)
			}
			out = append(out, line[:end])
			line = line[end:]
			continue
		}
		var b strings.Builder
		i := 1
		for ; i < len(line) && line[i] != '"'; i++ {
			c := line[i]
			if c == '\\' && i+1 < len(line) {
				i++
				switch c = line[i]; c {
				case 'n':
					c = '\n'
				case 'r':
					c = '\r'
				case 't':
					c = '\t'
				}
			}
			b.WriteByte(c)
		}
		out = append(out, b.String())
		line = line[min(i+1, len(line)):]
	}
}

// query adds a saved query, NAME:EXPRESSION. A name stands in quotes of its own if it
// has a colon.
func (l *Library) query(text string, note func(string, ...any)) {
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
		note("a query: has a name, and after another colon an expression")
		return
	}
	q := Query{Name: QueryName(name)}
	if q.Name != name {
		note("the query %q is called %q here", name, q.Name)
	}
	q.Text, q.Err = Translate(expr)
	l.Queries = append(l.Queries, q)
}

// QueryName makes a name that a saved query can have.
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

// Config is what of newsboat's configuration concerns who moves.
type Config struct {
	Cache string   // the file of its database, "" for the usual place; may begin with "~/"
	Rules []Rule   // of its killfile, lines "ignore-article"
	Notes []string // remarks on settings that are not taken over
}

// Rule says which entries the user wants never to see.
type Rule struct {
	Source string // as the user wrote it
	// Feed is the URL of the feed for which it is, as the list has it, "" for all.
	Feed  string
	Query string // in the language of lektor-query(7), where Err is nil
	Err   error  // why it cannot be said in it
}

// NewsboatConfig reads newsboat's file config.
func NewsboatConfig(config string) (c Config) {
	keys := 0
	for line := range strings.Lines(config) {
		t := tokens(strings.TrimRight(line, "\r\n"))
		if len(t) < 2 {
			continue
		}
		switch t[0] {
		case "cache-file":
			c.Cache = t[1]
		case "urls-source":
			if t[1] != "local" {
				c.Notes = append(c.Notes, "it has its feeds from "+t[1]+", and of these nothing is known here: export them there as OPML")
			}
		case "ignore-article":
			c.Rules = append(c.Rules, ignored(oneLine(line), t[1:]))
		case "bind-key", "bind", "macro":
			keys++
		case "include":
			c.Notes = append(c.Notes, "include "+t[1]+": only the file config itself is read")
		}
	}
	if keys > 0 {
		c.Notes = append(c.Notes, humanize.Count(keys, "line")+" bind-key and macro not taken over: keys are set in etc/view/keys, see lektor-view-tui(1)")
	}
	return c
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
		r.Err = errors.New("feeds are not named by regular expressions here")
		return r
	case words[0] != "*":
		r.Feed = words[0]
	}
	r.Query, r.Err = Translate(words[1])
	return r
}
