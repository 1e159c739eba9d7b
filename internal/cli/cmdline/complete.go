package cmdline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
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
	l := shellLine(args[1], breaks)
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
	p := newPlace(app)
	current := words[len(words)-1]
	var want cli.Flag // flag whose value comes next
	for _, w := range words[:len(words)-1] {
		if want = p.take(w, want); p.ended {
			return nil
		}
	}
	names, _ := app.Metadata[completerKey].(func(Kind) []Candidate)
	p.names = func(k Kind) []Candidate {
		k.Command, k.Dir = p.command, p.dir()
		if names == nil {
			return nil
		}
		return names(k)
	}
	return begun(p.all(want, current), current)
}

func newPlace(app *cli.App) *place {
	return &place{commands: app.Commands, flags: append([]cli.Flag{cli.VersionFlag, cli.HelpFlag}, app.Flags...),
		usage: app.ArgsUsage}
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
func LastWord(line string) int { return shellLine(line, "").start }

// Complete returns the candidates for the end of a line. The Word of each is the whole line with
// the candidate.
func (l *Line) Complete(line string) []Candidate {
	t := shellLine(line, "")
	from, before := t.start, ""
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
	p := newPlace(l.app)
	var want cli.Flag
	for i, w := range words {
		n := p.count
		if want = p.take(w, want); p.ended {
			return args, "", true
		}
		if p.count > n {
			args = append(args, i)
		}
	}
	if usage := p.usageWords(); want == nil && p.count < len(usage) {
		next = usage[p.count]
	}
	return args, next, p.command != ""
}

// usageWords returns the arguments in the usage of the command, without brackets.
func (p *place) usageWords() []string {
	return strings.FieldsFunc(p.usage, func(r rune) bool { return r == ' ' || r == '[' || r == ']' })
}

// all returns the candidates for a word. want is the flag whose value the word is, or nil.
func (p *place) all(want cli.Flag, current string) (all []Candidate) {
	name, value, joined := strings.Cut(current, "=")
	switch {
	case want != nil:
		return p.values(want, "", current)
	case p.plain:
		return p.arguments(current)
	case joined && strings.HasPrefix(name, "--"):
		if f := find(p.flags, name[2:]); f != nil && takesValue(f) {
			return p.values(f, name+"=", value)
		}
		return nil
	case strings.HasPrefix(current, "-"):
		return p.flagNames()
	case p.count > 0 || len(p.commands) == 0:
		return p.arguments(current)
	}
	for _, c := range p.commands {
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

// place is the position in a command line of the word to complete.
type place struct {
	commands []*cli.Command // commands that may come next
	command  string         // the last command so far
	flags    []cli.Flag
	usage    string // usage line of the arguments
	count    int    // number of arguments so far
	plain    bool   // after "--"
	ended    bool   // another program reads the rest
	given    string // value of --dir
	names    func(Kind) []Candidate
}

// take takes a word before the one that is completed. It is the value of want if want is not nil.
// take returns the flag whose value comes next, or nil.
func (p *place) take(w string, want cli.Flag) cli.Flag {
	name, value, joined := strings.Cut(strings.TrimLeft(w, "-"), "=")
	switch {
	case want != nil:
		p.set(want, w)
	case p.plain:
		p.count++
	case w == "--":
		p.plain = true
	case strings.HasPrefix(w, "--"), strings.HasPrefix(w, "-") && len(w) == 2:
		f := find(p.flags, name)
		if f == nil || !takesValue(f) {
			return nil
		}
		if !joined {
			return f
		}
		p.set(f, value)
	case strings.HasPrefix(w, "-") && w != "-":
		// The last of joined flags may take a value; in -ofmt it follows directly.
		for i := 1; i < len(w); i++ {
			if f := find(p.flags, w[i:i+1]); f != nil && takesValue(f) {
				if i == len(w)-1 {
					return f
				}
				return nil
			}
		}
	default:
		c := commandNamed(p.commands, w)
		if c == nil || p.count > 0 {
			p.count++
			return nil
		}
		if c.SkipFlagParsing {
			p.ended = true
			return nil
		}
		p.command = c.Name
		p.commands, p.flags, p.usage = c.Subcommands, append([]cli.Flag{cli.HelpFlag}, c.Flags...), c.ArgsUsage
	}
	return nil
}

func (p *place) set(f cli.Flag, value string) {
	if _, ok := f.(rest); ok {
		p.ended = true
	}
	if f.Names()[0] == dirFlagName {
		p.given = value
	}
}

// dir returns the lektor-dir that the command would work on.
func (p *place) dir() string {
	given, _ := ExpandHome(p.given)
	return cmp.Or(given, DefaultDir())
}

// flagNames returns the long names of flags.
func (p *place) flagNames() (all []Candidate) {
	for _, f := range p.flags {
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
func (p *place) values(f cli.Flag, prefix, word string) (all []Candidate) {
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
func (p *place) arguments(word string) (all []Candidate) {
	fields := p.usageWords()
	if len(fields) == 0 {
		return nil
	}
	for kind := range strings.SplitSeq(fields[min(p.count, len(fields)-1)], "|") {
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

// typed is the line of a shell, up to the cursor.
type typed struct {
	words  []string // without quotes; the last is the one to complete
	before string   // part of the last word that is not replaced
	open   rune     // the quote in which it ends, or 0
	start  int      // index in the line of the last word
	quoted int      // index in the line after the last quote that begins
}

// shellLine parses a line as bash does, without expansions. The shell replaces the last word from
// after the quote in which it ends, or else from after the last unquoted character of breaks.
func shellLine(line, breaks string) typed {
	var l typed
	var word strings.Builder
	begun := false
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRuneInString(line[i:])
		i += n
		switch {
		case l.open == '\'' && r == '\'', l.open == '"' && r == '"':
			l.open = 0
			continue
		case l.open == '\'':
		case r == '\\' && i < len(line):
			next, size := utf8.DecodeRuneInString(line[i:])
			if l.open == '"' && !strings.ContainsRune("$`\"\\", next) {
				break // an ordinary character
			}
			i += size
			begun = true
			word.WriteRune(next)
			continue
		case l.open == '"':
		case r == '\'' || r == '"':
			l.open, begun = r, true
			l.before, l.quoted = word.String(), i
			continue
		case unicode.IsSpace(r):
			if begun {
				l.words = append(l.words, word.String())
			}
			word.Reset()
			begun, l.before, l.start = false, "", i
			continue
		}
		begun = true
		word.WriteRune(r)
		if l.open == 0 && strings.ContainsRune(breaks, r) {
			l.before = word.String()
		}
	}
	l.words = append(l.words, word.String())
	return l
}

// quote quotes text for the end of the line, so that the shell reads exactly this text.
func (l typed) quote(text string) string {
	switch l.open {
	case '\'':
		return strings.ReplaceAll(text, `'`, `'\''`)
	case '"':
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text)
	}
	var b strings.Builder
	for i, r := range text {
		plain := unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./:@%+,=", r) ||
			r == '~' && (i > 0 || l.before != "")
		if !plain {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
