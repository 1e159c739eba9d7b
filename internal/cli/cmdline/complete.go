package cmdline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// completeCommand is a hidden command, by which the scripts of shells ask for the candidates of a
// word:
//
//	PROGRAM __complete bash LINE BREAKS     the line up to the cursor, $COMP_WORDBREAKS
//	PROGRAM __complete words WORD… CURRENT  the words without quotes; CURRENT is completed
//
// It prints a candidate a line. For bash this is the text that replaces the end of the line, quoted
// like the line. Otherwise it is the whole word, a tab, and a description. Without candidates, the
// shell completes file names. Errors are not reported, since nobody would see them.
const completeCommand = "__complete"

// Candidate is a possible completion of a word of a command line.
type Candidate struct {
	Word  string
	About string // short description, or ""
	// Typed is another text with which the user may begin the word, for example without its quotes.
	// If no candidate begins with the typed text, the case of Typed is ignored. "" means only Word.
	Typed string
	// Open means that the word is not complete, so that the shell adds no space.
	Open bool
}

// Kind is the meaning of a word of a command line.
type Kind struct {
	Command string // command that the word is an argument of, or the value of a flag of; "" before the command
	Flag    string // flag that takes the value, without dashes; "" for an argument
	Name    string // the placeholder in --help, such as FEED
	Dir     string // path of the lektor-dir
	Word    string // text typed so far, without quotes
}

const completerKey = "lektor completer"

// Completing sets the function that returns the candidates for words of a kind, in a program's
// own domain. Only candidates that begin with [Kind].Word are used.
func Completing(app *cli.App, names func(Kind) []Candidate) *cli.App {
	if app.Metadata == nil {
		app.Metadata = map[string]any{}
	}
	app.Metadata[completerKey] = names
	return app
}

// complete prints the answer to a script of a shell.
func complete(app *cli.App, args []string, out io.Writer) {
	if len(args) < 2 {
		return
	}
	if args[0] != "bash" {
		for _, c := range candidates(app, args[1:]) {
			mark := ""
			if c.Open {
				mark = "\t+" // third field: the shell adds no space
			}
			fmt.Fprintf(out, "%s\t%s%s\n", c.Word, termsafe.Line(c.About), mark)
		}
		return
	}
	breaks := " \t\n\"'><=;|&(:"
	if len(args) > 2 {
		breaks = args[2]
	}
	l := splitLine(args[1], breaks, shellEscapes)
	if len(l.words) < 2 {
		return
	}
	for _, c := range candidates(app, l.words[1:]) {
		rest, ok := strings.CutPrefix(c.Word, l.before)
		if !ok {
			continue
		}
		rest = l.quote(rest)
		if l.open != 0 && strings.HasSuffix(rest, string(l.open)) {
			rest += string(l.open) // bash takes the first quote for a part of the name
		}
		if !c.Open && l.open == 0 {
			rest += " "
		}
		fmt.Fprintln(out, rest)
	}
}

// candidates returns the candidates for the last word. The words before it are a command line
// without the program's name.
func candidates(app *cli.App, words []string) []Candidate {
	p, current := parsed(app, words[:len(words)-1]), words[len(words)-1]
	if p.external {
		return nil
	}
	return begun(p.all(current), current)
}

// Line parses command lines of a program in the program itself. They are split into words as by
// [Words], and begin without the program's name.
type Line struct {
	app    *cli.App
	before []string // words before each line
}

// LineOf returns the parser of the command lines of app that begin with some words.
func LineOf(app *cli.App, before ...string) *Line { return &Line{app, before} }

// LastWord returns the byte at which the last word of a line begins, with its quotes.
func LastWord(line string) int {
	raw := splitLine(line, "", ownEscapes).raw
	return len(line) - len(raw[len(raw)-1])
}

// Complete returns the candidates for the end of a line. The Word of each is the whole line with
// the candidate.
func (l *Line) Complete(line string) []Candidate {
	t := splitLine(line, "", ownEscapes)
	from, before := LastWord(line), ""
	if t.open != 0 {
		from, before = t.quoted, t.before
	}
	var all []Candidate
	for _, c := range candidates(l.app, slices.Concat(l.before, t.words)) {
		rest, ok := strings.CutPrefix(c.Word, before)
		if !ok {
			continue
		}
		rest = t.quote(rest)
		if !c.Open {
			if t.open != 0 {
				rest += string(t.open)
			}
			rest += " "
		}
		c.Word = line[:from] + rest
		all = append(all, c)
	}
	return all
}

// Arguments returns the indexes of the words of a line that are arguments of its command, and
// the usage of the argument that can come next, "" if there is none. ok is false if there is no
// such command.
func (l *Line) Arguments(words []string) (args []int, next string, ok bool) {
	p := parsed(l.app, words)
	if usage := p.usageWords(); p.needs == nil && !p.external && len(p.words) < len(usage) {
		next = usage[len(p.words)]
	}
	return p.indexes, next, p.command.Name != ""
}

// usageWords returns the arguments in the usage of the command, without brackets.
func (p *parser) usageWords() []string {
	return strings.FieldsFunc(p.command.ArgsUsage, func(r rune) bool { return r == ' ' || r == '[' || r == ']' })
}

// all returns the candidates for a word.
func (p *parser) all(current string) (all []Candidate) {
	name, value, joined := strings.Cut(current, "=")
	switch {
	case p.needs != nil:
		return p.values(p.needs, "", current)
	case p.noFlags:
		return p.arguments(current)
	case joined && strings.HasPrefix(name, "--"):
		if f := find(p.flags(), name[2:]); f != nil && takesValue(f) {
			return p.values(f, name+"=", value)
		}
		return nil
	case strings.HasPrefix(current, "-"):
		return p.flagNames()
	case len(p.words) > 0 || len(p.command.Subcommands) == 0:
		return p.arguments(current)
	}
	for _, c := range p.command.Subcommands {
		if !c.Hidden {
			all = append(all, Candidate{Word: c.Name, About: c.Usage})
		}
	}
	return all
}

// begun returns the candidates that begin with a word as it is typed. If there are none, it ignores
// case.
func begun(all []Candidate, current string) []Candidate {
	all = slices.DeleteFunc(all, func(c Candidate) bool {
		// Names with other characters cannot be completed, since a line of a list cannot hold
		// them.
		return c.Word == "" || termsafe.Line(c.Word) != c.Word || !utf8.ValidString(c.Word)
	})
	exactly := slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool {
		return !strings.HasPrefix(c.Word, current) && (c.Typed == "" || !strings.HasPrefix(c.Typed, current))
	})
	if len(exactly) > 0 {
		return exactly
	}
	lower := strings.ToLower(current)
	return slices.DeleteFunc(all, func(c Candidate) bool {
		return c.Typed == "" || !strings.HasPrefix(strings.ToLower(c.Typed), lower)
	})
}

// names returns the candidates of the program's own domain for a kind of word.
func (p *parser) names(k Kind) []Candidate {
	names, _ := p.app.Metadata[completerKey].(func(Kind) []Candidate)
	if names == nil {
		return nil
	}
	dir, _ := ExpandHome(p.dir)
	k.Command, k.Dir = p.command.Name, cmp.Or(dir, DefaultDir())
	return names(k)
}

// flagNames returns the long names of flags.
func (p *parser) flagNames() (all []Candidate) {
	for _, f := range p.flags() {
		d, ok := f.(cli.DocGenerationFlag)
		if v, hides := f.(cli.VisibleFlag); !ok || hides && !v.IsVisible() {
			continue
		}
		for _, n := range f.Names() {
			if len(n) > 1 {
				all = append(all, Candidate{Word: "--" + n, About: strings.ReplaceAll(d.GetUsage(), "`", "")})
			}
		}
	}
	return all
}

// values returns the values of a flag, each behind prefix.
func (p *parser) values(f cli.Flag, prefix, word string) (all []Candidate) {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return nil
	}
	k := Kind{Flag: f.Names()[0], Word: word}
	// These are the placeholder, and the values that the usage lists after it: "write a feed in
	// `FORMAT`: atom, rss or json".
	_, rest, _ := strings.Cut(d.GetUsage(), "`")
	k.Name, rest, _ = strings.Cut(rest, "`")
	rest, _, _ = strings.Cut(rest, ";")
	_, list, _ := strings.Cut(rest, ": ")
	for item := range strings.SplitSeq(strings.ReplaceAll(list, " or ", ", "), ", ") {
		item, _, _ = strings.Cut(strings.TrimSpace(item), " (")
		if isWord(item) {
			all = append(all, Candidate{Word: item})
		}
	}
	all = append(all, p.names(k)...)
	for i := range all {
		all[i].Word = prefix + all[i].Word
		if all[i].Typed != "" {
			all[i].Typed = prefix + all[i].Typed
		}
	}
	return all
}

// isWord reports whether a part of a usage text is a literal value, such as rss or r2e, and not a
// number.
func isWord(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// arguments returns candidates for the next argument, by the usage of the command, which has kinds
// in capitals and literal words. The last argument of the usage may be repeated.
func (p *parser) arguments(word string) (all []Candidate) {
	fields := p.usageWords()
	if len(fields) == 0 {
		return nil
	}
	for kind := range strings.SplitSeq(fields[min(len(p.words), len(fields)-1)], "|") {
		kind = strings.TrimRight(kind, "….")
		switch {
		case kind == "" || kind[0] == '-':
		case strings.ToUpper(kind) == kind:
			all = append(all, p.names(Kind{Name: kind, Word: word})...)
		default:
			all = append(all, Candidate{Word: kind})
		}
	}
	return all
}
