package importfmt

import (
	"regexp"
	"strings"
	"sync"
)

// The words of a line of sfeedrc with their quotes, or a comment; and the quoted parts of a word. A quote that is not
// closed, and a backslash at the end of the line, are words.
var (
	sfeedWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`#.*|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+|\S`)
	})
	sfeedQuoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`'[^']*'|"(?:\\.|[^"\\])*"|\\.`) })
)

// Sfeed reads sfeed's file sfeedrc, a shell script, for the calls of feed in it:
//
//	feed NAME URL [BASESITEURL [ENCODING]]
//
// Nothing is run. A call must be a line of its own, as in sfeedrc.example and the output of sfeed_opml_import. A line
// that the shell would have to expand, and any other line of feeds(), becomes a note. path is the value of sfeedpath
// if no expansion is needed, else "".
func Sfeed(rc string) (lib *Library, path string) {
	lib = &Library{}
	within := "" // the function being read
	n := 0
	for line := range strings.Lines(rc) {
		n++
		words, plain := sfeedWords(line)
		if len(words) == 0 {
			continue
		}
		name, _, function := strings.Cut(words[0], "()")
		call := words[0] == "feed" && (within == "" || within == "feeds")
		switch {
		case function || len(words) > 1 && strings.HasPrefix(words[1], "()"):
			if within = name; within != "feeds" {
				lib.note(n, "the function %s is not imported", within)
			}
			if words[len(words)-1] == "}" {
				within = ""
			}
		case strings.HasPrefix(line, "}"):
			within = ""
		case strings.HasPrefix(words[0], "sfeedpath="):
			value := strings.TrimPrefix(words[0], "sfeedpath=")
			if home, ok := strings.CutPrefix(value, "$HOME/"); ok && !strings.ContainsAny(home, "$`") {
				path = "~/" + home
			} else if plain {
				path = value
			}
		case call && plain:
			lib.sfeed(n, words[1:])
		case call && strings.ContainsAny(line, "$`"):
			lib.note(n, "the shell would expand it, and it is not run: %s", strings.Join(words, " "))
		case call || within == "feeds":
			lib.note(n, "not understood, and not run: %s", strings.Join(words, " "))
		}
	}
	return lib, path
}

// sfeedWords returns the words of a line without their quotes. plain reports that the line is one command of which the
// shell expands nothing.
func sfeedWords(line string) (words []string, plain bool) {
	plain = true
	for _, w := range sfeedWord().FindAllString(line, -1) {
		if w[0] == '#' {
			break
		}
		text := sfeedQuoted().ReplaceAllStringFunc(w, func(part string) string {
			switch part[0] {
			case '\\':
				return part[1:]
			case '"':
				part = part[1 : len(part)-1]
				unescaped := strings.NewReplacer(`\\`, "", `\$`, "", "\\`", "").Replace(part)
				plain = plain && !strings.ContainsAny(unescaped, "$`")
				return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, "$", "\\`", "`").Replace(part)
			}
			return part[1 : len(part)-1]
		})
		plain = plain && !strings.ContainsAny(sfeedQuoted().ReplaceAllString(w, ""), "$`;&|<>()'\"\\")
		words = append(words, text)
	}
	return words, plain
}

// sfeed adds the feed of a call with arguments.
func (lib *Library) sfeed(line int, args []string) {
	args = append(args, "", "", "", "")
	f := Feed{Title: oneLine(args[0]), URL: args[1], Link: args[2], Key: strings.ReplaceAll(args[0], "/", "_")}
	if args[0] == "" || f.URL == "" {
		lib.note(line, "a feed has a name and a URL: feed %s", strings.TrimSpace(strings.Join(args, " ")))
		return
	}
	if args[3] != "" {
		lib.note(line, "%s: the encoding %s is not imported: lektor detects it", f.Title, args[3])
	}
	lib.add(f)
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
