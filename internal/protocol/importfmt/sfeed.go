package importfmt

import (
	"fmt"
	"strings"
)

// Sfeed reads sfeed's file sfeedrc, a shell script, for the calls of feed in it:
//
//	feed NAME URL [BASESITEURL [ENCODING]]
//
// Nothing is run. A call whose words the shell would have to expand, and any other command in
// feeds(), becomes a note. path is the value of sfeedpath if no expansion is needed, else "".
func Sfeed(rc string) (lib *Library, path string) {
	lib = &Library{}
	sh := &script{text: rc, line: 1}
	within := "" // the function being read
	own := map[string]bool{}
	for c := range sh.commands() {
		note := func(format string, a ...any) {
			lib.Notes = append(lib.Notes, fmt.Sprintf("line %d: ", c.line)+fmt.Sprintf(format, a...))
		}
		switch first := c.words[0].text; {
		case c.function:
			within = first
			if within != "feeds" && !own[within] {
				own[within] = true
				note("the function %s is not imported", first)
			}
		case first == "}" && len(c.words) == 1:
			within = ""
		case strings.HasPrefix(first, "sfeedpath="):
			value := strings.TrimPrefix(first, "sfeedpath=")
			if home, ok := strings.CutPrefix(value, "$HOME/"); ok && !strings.ContainsAny(home, "$`") {
				path = "~/" + home
			} else if !c.words[0].expands {
				path = value
			}
		case first == "feed" && within != "" && within != "feeds":
		case first == "feed":
			f, err := sfeedFeed(c.words[1:])
			if err != "" {
				note("%s: %s", err, c.String())
				continue
			}
			if len(c.words) > 4 && c.words[4].text != "" {
				note("%s: the encoding %s is not imported: lektor detects it", f.Title, c.words[4].text)
			}
			lib.add(f)
		case within == "feeds":
			note("not understood, and not run: %s", c.String())
		}
	}
	return lib, path
}

// sfeedFeed returns the feed of a call.
func sfeedFeed(args []word) (f Feed, err string) {
	for _, w := range args {
		if w.expands {
			return f, "the shell would expand it, and it is not run"
		}
	}
	if len(args) < 2 || args[0].text == "" || args[1].text == "" {
		return f, "a feed has a name and a URL"
	}
	f = Feed{Title: oneLine(args[0].text), URL: args[1].text, Key: strings.ReplaceAll(args[0].text, "/", "_")}
	if len(args) > 2 {
		f.Link = args[2].text
	}
	return f, ""
}

// SfeedItems reads a file of sfeed(5), lines of fields with tabs between them, as
// entries of a feed; read reports whether sfeed_curses has a URL in its list of read
// entries.
func SfeedItems(feed, data string, read func(url string) bool) (items []Item) {
	for line := range strings.Lines(data) {
		// Time, title, link, content, its type, id, author, enclosure, categories.
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) < 6 {
			continue
		}
		i := Item{Feed: feed, Title: f[1], URL: f[2], ID: f[5], Date: unix(f[0])}
		url := i.URL
		if url == "" && len(f) > 7 {
			url = f[7]
		}
		if i.Read = url != "" && read(url); !i.Read {
			f = append(f, "", "", "")
			i.Text = &Text{Author: sfeedText(f[6]), Content: sfeedText(f[3]), Plain: f[4] != "html",
				Categories: strings.FieldsFunc(f[8], func(r rune) bool { return r == '|' })}
			if f[7] != "" {
				i.Text.Enclosures = []Enclosure{{URL: f[7], Length: -1}}
			}
		}
		items = append(items, i)
	}
	return items
}

// sfeedText reads a field in which newlines, tabs and backslashes are escaped.
func sfeedText(field string) string {
	if !strings.Contains(field, `\`) {
		return field
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(field)
}

// script is a shell script, which is read and never run.
type script struct {
	text string
	line int
}

// word is a word of a script: its text without quotes, and whether the shell would expand it.
type word struct {
	text    string
	expands bool
}

// simple is a simple command, or the beginning of a function.
type simple struct {
	line     int
	words    []word
	function bool
}

func (c simple) String() string {
	var all []string
	for _, w := range c.words {
		all = append(all, w.text)
	}
	return strings.Join(all, " ")
}

// commands returns the commands of a script one by one, whatever is around them. The
// braces of a function differ from those of a group by their depth.
func (s *script) commands() func(yield func(simple) bool) {
	return func(yield func(simple) bool) {
		depth := 0
		for s.text != "" {
			c := s.command()
			if len(c.words) == 0 {
				continue
			}
			switch {
			case c.function:
			case c.words[0].text == "{":
				if depth++; len(c.words) == 1 {
					continue
				}
				c.words = c.words[1:]
			case c.words[0].text == "}":
				if depth--; depth > 0 {
					continue
				}
			}
			if !yield(c) {
				return
			}
		}
	}
}

// command reads up to the end of a command: a newline or one of ; & |, a brace, or the
// parentheses of a function.
func (s *script) command() (c simple) {
	c.line = s.line
	var heredocs []string
	for {
		s.text = strings.TrimLeft(s.text, " \t\r")
		if s.text == "" {
			return c
		}
		if rest, ok := strings.CutPrefix(s.text, "\\\n"); ok {
			s.text = rest
			s.line++
			continue
		}
		switch ch := s.text[0]; {
		case ch == '#':
			n := strings.IndexByte(s.text, '\n')
			if n < 0 {
				n = len(s.text)
			}
			s.text = s.text[n:]
		case ch == '\n':
			s.text = s.text[1:]
			s.line++
			for _, mark := range heredocs {
				s.skipTo(mark)
			}
			return c
		case ch == '(' && strings.HasPrefix(strings.TrimLeft(s.text[1:], " \t"), ")") && len(c.words) == 1:
			s.text = s.text[strings.IndexByte(s.text, ')')+1:]
			c.function = true
			return c
		case strings.IndexByte(";&|()", ch) >= 0:
			s.text = s.text[1:]
			if len(c.words) > 0 {
				return c
			}
			c.line = s.line
		case strings.HasPrefix(s.text, "<<"):
			s.text = strings.TrimLeft(s.text[2:], "- \t")
			heredocs = append(heredocs, s.word().text)
		case ch == '<' || ch == '>':
			s.text = s.text[1:]
		default:
			w := s.word()
			if len(c.words) == 0 && (w.text == "then" || w.text == "do" || w.text == "else") {
				continue // the rest is a command
			}
			c.words = append(c.words, w)
			if len(c.words) == 1 && (w.text == "{" || w.text == "}") {
				return c
			}
		}
	}
}

// skipTo skips the lines of a here-document, up to the line that ends it.
func (s *script) skipTo(mark string) {
	for s.text != "" {
		line, rest, _ := strings.Cut(s.text, "\n")
		s.text = rest
		s.line++
		if strings.TrimLeft(line, "\t") == mark {
			return
		}
	}
}

// word reads a word. The next character must not be a space.
func (s *script) word() (w word) {
	var b strings.Builder
	quote := byte(0)
	i := 0
loop:
	for ; i < len(s.text); i++ {
		c := s.text[i]
		if c == '\n' {
			if quote == 0 {
				break
			}
			s.line++
		}
		switch {
		case quote == '\'':
			if c == quote {
				quote = 0
				continue
			}
		case c == '\\' && i+1 < len(s.text):
			n := s.text[i+1]
			if quote == '"' && strings.IndexByte("$`\"\\\n", n) < 0 {
				break // it is plain
			}
			if i++; n == '\n' {
				s.line++
				continue
			}
			c = n
		case c == '"':
			quote ^= '"'
			continue
		case c == '$' || c == '`':
			w.expands = true
		case quote == '"':
		case c == '\'':
			quote = c
			continue
		case strings.IndexByte(" \t\r;&|()<>", c) >= 0:
			break loop
		case strings.IndexByte("*?[~", c) >= 0:
			// A question mark does not count as a pattern: URLs often have one.
			w.expands = w.expands || c == '~' && i == 0
		}
		b.WriteByte(c)
	}
	s.text = s.text[min(i, len(s.text)):]
	w.text = b.String()
	return w
}
