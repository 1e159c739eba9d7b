package cmdline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// ReadArgs yields the entries or feeds named by a command's arguments. For "-" it yields the
// items in the input, one per line, or separated by NUL if nul is set. Items are yielded as they
// arrive, and may be of any length. Empty items are skipped, and one carriage return at the end
// of a line is dropped, unless nul is set. A read error is yielded last, with an empty string.
func ReadArgs(args []string, in io.Reader, nul bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			if arg != "-" {
				if !yield(arg, nil) {
					return
				}
				continue
			}
			if !readList(in, nul, yield) {
				return
			}
		}
	}
}

func readList(in io.Reader, nul bool, yield func(string, error) bool) bool {
	end := byte('\n')
	if nul {
		end = 0
	}
	r := bufio.NewReader(in)
	for {
		item, err := r.ReadString(end)
		if err != nil && err != io.EOF {
			// Drop an incomplete item.
			return yield("", fmt.Errorf("standard input: %w", err))
		}
		item = strings.TrimSuffix(item, string(end))
		if !nul {
			item = strings.TrimSuffix(item, "\r")
		}
		if item != "" && !yield(item, nil) {
			return false
		}
		if err != nil {
			return true
		}
	}
}

// NulFlag returns the flag -0 for commands that use [ReadArgs].
func NulFlag() cli.Flag {
	return &cli.BoolFlag{Name: "null", Aliases: []string{"0"},
		Usage: "standard input (-) is separated by NUL, not by newlines"}
}

// Nul returns the value of [NulFlag].
func Nul(c *cli.Context) bool { return c.Bool("null") }

// RawFlag returns the flag --raw of commands that print text of feeds; see [Flags.Printing].
func RawFlag() cli.Flag {
	return &cli.BoolFlag{Name: "raw", Usage: "print text as it is, even if it could harm a terminal"}
}

// DryRunFlag returns the flag --dry-run of a command that prints what would be done, or does something instead.
func DryRunFlag(instead ...string) cli.Flag {
	return &cli.BoolFlag{Name: "dry-run",
		Usage: "change nothing; " + append(instead, "print what would be done")[0]}
}

// numbers is the marker that [NumericArgs] adds to a command's flags.
type numbers struct{ cli.StringFlag }

func (*numbers) Names() []string { return nil }
func (*numbers) IsVisible() bool { return false }

// NumericArgs returns a marker for the flags of a command whose arguments may begin with a minus
// and a digit, such as the range -5. It is not a flag itself.
func NumericArgs() cli.Flag { return &numbers{cli.StringFlag{Hidden: true}} }

// rest is a flag that takes all words after it.
type rest struct{ *cli.StringSliceFlag }

// RestFlag returns a flag that ends the command line: its value and all words after it are the
// command line of another program. The value is a list.
func RestFlag(name, usage string) cli.Flag {
	return rest{&cli.StringSliceFlag{Name: name, Usage: usage, KeepSpace: true}}
}

// Prepare adds the flags and settings of [Main] to every command of the app. Tests call it to
// inspect them. It may be called twice.
func Prepare(app *cli.App) {
	app.DisableSliceFlagSeparator = true
	app.HideHelpCommand = true
	app.UseShortOptionHandling = false // the parser does that
	app.ExitErrHandler = func(*cli.Context, error) {}
	app.OnUsageError = usageError
	if app.Version == "" {
		app.Version = Version()
	}
	cli.VersionPrinter = func(c *cli.Context) {
		fmt.Fprintln(c.App.Writer, c.App.Name, c.App.Version)
	}
	cli.FlagStringer = flagHelp
	cli.HelpPrinter = printHelp
	withDir := find(app.Flags, dirFlagName) != nil
	var each func([]*cli.Command)
	each = func(commands []*cli.Command) {
		for _, c := range commands {
			c.HideHelpCommand = true
			c.UseShortOptionHandling = false
			c.OnUsageError = usageError
			if withDir && find(c.Flags, dirFlagName) == nil {
				c.Flags = append(c.Flags, DirFlag())
			}
			each(c.Subcommands)
		}
	}
	each(app.Commands)
}

// flagHelp returns the line of a flag in --help: its names, short ones first, with the placeholder
// from its usage, and its default unless that is empty or 0.
func flagHelp(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	usage, placeholder := d.GetUsage(), ""
	if before, rest, ok := strings.Cut(usage, "`"); ok {
		if name, after, ok := strings.Cut(rest, "`"); ok {
			placeholder, usage = name, before+name+after
		}
	}
	var names []string
	for _, n := range f.Names() {
		names = append(names, dashed(n))
	}
	slices.SortStableFunc(names, func(a, b string) int { return min(len(a), 3) - min(len(b), 3) })
	text := strings.Join(names, ", ")
	if d.TakesValue() {
		text += " " + cmp.Or(placeholder, "VALUE")
	}
	text += "\t" + usage
	switch def := d.GetDefaultText(); {
	case !d.TakesValue() || def == "" || def == "0" || def == "0s" || strings.Contains(usage, "default"):
	default:
		text += " (default: " + def + ")"
	}
	return text
}

// usageError turns an error of the flag package into a [UsageError]. The package rejects values only.
func usageError(c *cli.Context, err error, _ bool) error {
	var value, name string
	if n, _ := fmt.Sscanf(err.Error(), "invalid value %q for flag -%s", &value, &name); n < 2 {
		_, _ = fmt.Sscanf(err.Error(), "invalid boolean value %q for -%s", &value, &name)
	}
	name = strings.TrimSuffix(name, ":")
	kind := "true or false"
	switch find(c.Command.Flags, name).(type) {
	case *cli.IntFlag, *cli.Int64Flag:
		kind = "a whole number such as 20"
	case *cli.DurationFlag:
		kind = "a time such as 30s, 5m or 1h"
	}
	return &UsageError{Message: fmt.Sprintf("%s %s: it is %s", dashed(name), value, kind), Hint: "see " +
		c.Command.HelpName + " --help"}
}

// find returns the flag of that name or alias.
func find(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// dashed returns a flag's name with its dashes.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// arrange parses the command line by the rules of [Main] and returns it in a form that cli cannot
// misread: one flag per argument, values joined by "=", and "--" before the arguments. cli itself
// would take -first for --first, treat a mistyped subcommand as an argument, and silently pass
// flags after an argument to the action as arguments.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{app.Name}
	}
	p := newParser(app, args[1:])
	for len(p.args) > 0 {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	out := slices.Concat(args[:1], p.out)
	if p.given[cli.HelpFlag] || p.given[cli.VersionFlag] { // cli takes arguments for help topics
		return out, nil
	}
	for _, f := range p.flags() {
		r, ok := f.(cli.RequiredFlag)
		d, _ := f.(cli.DocGenerationFlag)
		if ok && r.IsRequired() && !p.given[f] && !slices.ContainsFunc(d.GetEnvVars(), isSet) {
			return nil, p.fail("", "%s is needed", dashed(f.Names()[0]))
		}
	}
	if p.command.Action == nil && len(p.command.Subcommands) > 0 {
		return nil, p.fail("", "a command is missing")
	}
	if p.words != nil {
		out = append(append(out, "--"), p.words...)
	}
	return out, nil
}

// isSet reports whether an environment variable is set.
func isSet(variable string) bool {
	_, ok := os.LookupEnv(variable)
	return ok
}

// parser parses a command line. Flags may follow arguments, unless $POSIXLY_CORRECT is set, as
// with the GNU tools. After an error, the next word can be parsed: completion ignores errors.
type parser struct {
	app   *cli.App
	args  []string // words not parsed yet
	total int      // number of words

	out      []string // parsed words, without the arguments
	words    []string // arguments; nil until the first of them, or "--"
	indexes  []int    // of the arguments in the line
	given    map[cli.Flag]bool
	dir      string   // value of --dir
	needs    cli.Flag // the last word, whose value is missing
	noFlags  bool     // after "--"
	external bool     // another program reads the rest

	command *cli.Command // named so far, at first the flags and commands of the app
	path    string       // its words
}

func newParser(app *cli.App, args []string) *parser {
	return &parser{
		app: app, args: args, total: len(args), given: map[cli.Flag]bool{}, path: app.Name,
		command: &cli.Command{Subcommands: app.Commands, Flags: append([]cli.Flag{cli.VersionFlag}, app.Flags...),
			Action: app.Action, ArgsUsage: app.ArgsUsage},
	}
}

// parsed returns the parser of a line that may have errors, such as one that is being typed.
func parsed(app *cli.App, args []string) *parser {
	p := newParser(app, args)
	for len(p.args) > 0 {
		_ = p.next()
	}
	return p
}

// flags returns the flags of the command.
func (p *parser) flags() []cli.Flag { return append([]cli.Flag{cli.HelpFlag}, p.command.Flags...) }

// fail returns a usage error.
func (p *parser) fail(hint, format string, a ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, a...), Hint: cmp.Or(hint, "see "+p.path+" --help")}
}

// shift returns the next word.
func (p *parser) shift() string {
	arg := p.args[0]
	p.args = p.args[1:]
	return arg
}

// next parses a word, with the value that follows it.
func (p *parser) next() error {
	arg := p.shift()
	switch {
	case arg == "--":
		var err error
		if p.words == nil && len(p.args) > 0 {
			err = p.unknownCommand(p.args[0])
		}
		p.noFlags, p.words = true, append([]string{}, p.words...)
		for len(p.args) > 0 {
			p.argument(p.shift())
		}
		return err
	case arg == "-" || !strings.HasPrefix(arg, "-") || numeric(p.command.Flags, arg):
		return p.word(arg)
	case len(p.words) > 0 && isSet("POSIXLY_CORRECT"):
		return p.fail(fmt.Sprintf("flags come before arguments; if %s is not a flag, put -- before it", arg),
			"%s after the argument %s", arg, p.words[len(p.words)-1])
	case strings.HasPrefix(arg, "--"):
		return p.long(arg[2:])
	}
	return p.short(arg)
}

// argument adds an argument.
func (p *parser) argument(word string) {
	p.words = append(p.words, word)
	p.indexes = append(p.indexes, p.total-len(p.args)-1)
}

// word parses a word that is not a flag: the name of a command, or an argument.
func (p *parser) word(arg string) (err error) {
	commands := p.command.Subcommands
	switch c := commandNamed(commands, arg); {
	case p.words != nil:
	case c != nil:
		p.out = append(p.out, arg)
		p.command, p.path = c, p.path+" "+c.Name
		if c.SkipFlagParsing { // another program reads the rest, see [External]
			p.args, p.external = nil, true
		}
		return nil
	case arg == "help" && len(commands) > 0: // many users try "program help x" first
		for ; len(p.args) > 0; commands = c.Subcommands {
			if c = commandNamed(commands, p.shift()); c == nil {
				break
			}
			p.out = append(p.out, c.Name)
		}
		p.args, p.out, p.given[cli.HelpFlag] = nil, append(p.out, "--help"), true
		return nil
	default:
		err = p.unknownCommand(arg)
	}
	p.argument(arg)
	return err
}

// flag adds a flag that was written as name. If joined is set, value was joined to it; otherwise
// the next word is the value of a flag that takes one.
func (p *parser) flag(f cli.Flag, name, value string, joined bool) error {
	if takesValue(f) && !joined {
		if len(p.args) == 0 {
			p.needs = f
			return p.fail("", "%s needs a value", name)
		}
		value, joined = p.shift(), true
	}
	p.given[f] = true
	p.out = append(p.out, written(f, value, joined))
	if f.Names()[0] == dirFlagName {
		p.dir = value
	}
	if _, ok := f.(rest); ok {
		p.external = true
		for len(p.args) > 0 {
			p.out = append(p.out, written(f, p.shift(), true))
		}
	}
	return nil
}

// long parses --name or --name=value, without the dashes.
func (p *parser) long(arg string) error {
	name, value, joined := strings.Cut(arg, "=")
	f := find(p.flags(), name)
	if f == nil {
		hint := ""
		var names []string
		for _, f := range p.flags() {
			names = append(names, slices.DeleteFunc(f.Names(), func(n string) bool { return len(n) == 1 })...)
		}
		if s := nearest(names, name); s != "" {
			hint = "did you mean --" + s + "? see " + p.path + " --help"
		}
		return p.fail(cmp.Or(hint, p.afterArguments("--"+name)), "unknown flag --%s", name)
	}
	return p.flag(f, "--"+name, value, joined)
}

// afterArguments returns the hint for an unknown flag after arguments, where it may be an argument,
// such as the flag of a filter.
func (p *parser) afterArguments(arg string) string {
	if len(p.words) == 0 {
		return ""
	}
	return "if " + arg + " is not a flag, put -- before the arguments; see " + p.path + " --help"
}

// short parses -a, -abc, -n5 or -o=path.
func (p *parser) short(arg string) error {
	for rest := arg[1:]; rest != ""; {
		name := string([]rune(rest)[:1])
		rest = rest[len(name):]
		f := find(p.flags(), name)
		if f == nil {
			hint := ""
			if find(p.flags(), strings.TrimLeft(arg, "-")) != nil {
				hint = "did you mean -" + arg + "?"
			}
			if arg == "-"+name {
				return p.fail(cmp.Or(hint, p.afterArguments(arg)), "unknown flag -%s", name)
			}
			return p.fail(cmp.Or(hint, p.afterArguments(arg)), "unknown flag -%s in %s", name, arg)
		}
		value, joined := "", rest != "" && takesValue(f)
		if joined {
			value, rest = strings.TrimPrefix(rest, "="), ""
		}
		if err := p.flag(f, "-"+name, value, joined); err != nil {
			return err
		}
	}
	return nil
}

// written returns a flag under its first name, so that "-o tsv --format json" is one flag set
// twice, and the last value is used.
func written(f cli.Flag, value string, joined bool) string {
	s := "--" + f.Names()[0]
	if joined {
		s += "=" + value
	}
	return s
}

// unknownCommand returns an error if a command with subcommands, which takes no arguments, has none
// of that name.
func (p *parser) unknownCommand(arg string) error {
	if len(p.command.Subcommands) == 0 || commandNamed(p.command.Subcommands, arg) != nil {
		return nil
	}
	var names []string
	for _, c := range p.command.Subcommands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	hint := "the commands are " + strings.Join(names, ", ") + ";"
	if s := cmp.Or(meant(p.app.Name, arg), nearest(names, arg)); s != "" {
		hint = "did you mean " + s + "?"
	}
	return p.fail(hint+" see "+p.app.Name+" --help", "unknown command %s", arg)
}

// nearest returns the name most similar to typed, "" if none is similar enough.
func nearest(names []string, typed string) string {
	// The threshold is just below the similarity of "remove" and "rm".
	best, likeness := "", 0.799
	for _, name := range names {
		if l := smetrics.JaroWinkler(name, typed, 0.7, 4); l > likeness {
			best, likeness = name, l
		}
	}
	return best
}

func commandNamed(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// numeric reports whether arg is a number or range that begins with a minus, for a command that
// takes such arguments.
func numeric(flags []cli.Flag, arg string) bool {
	if len(arg) < 2 || arg[0] != '-' || arg[1] < '0' || arg[1] > '9' || find(flags, arg[1:2]) != nil {
		return false
	}
	return slices.ContainsFunc(flags, func(f cli.Flag) bool {
		_, ok := f.(*numbers)
		return ok
	})
}

// NeedArgs returns a [UsageError] if there is no argument; what names the missing argument.
func NeedArgs(c *cli.Context, what string) error {
	if !c.Args().Present() {
		return &UsageError{Message: what + " is missing", Hint: "see " + c.Command.HelpName + " --help"}
	}
	return nil
}
