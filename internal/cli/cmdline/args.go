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
	app.UseShortOptionHandling = false // arrange does that
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
//
// Flags may follow arguments, unless $POSIXLY_CORRECT is set.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{app.Name}
	}
	l := &line{
		app: app, out: args[:1:1], args: args[1:], path: app.Name, commands: app.Commands, action: app.Action != nil,
		flags: append([]cli.Flag{cli.VersionFlag, cli.HelpFlag}, app.Flags...), given: map[cli.Flag]bool{},
	}
	// Like the GNU tools.
	_, strict := os.LookupEnv("POSIXLY_CORRECT")
	for len(l.args) > 0 {
		arg := l.args[0]
		l.args = l.args[1:]
		var err error
		switch {
		case arg == "--":
			if l.words == nil {
				err = l.unknownCommand(l.args)
			}
			l.arguments(l.args...)
			l.args = nil
		case arg == "-" || !strings.HasPrefix(arg, "-") || numeric(l.flags, arg):
			err = l.word(arg)
		case strict && len(l.words) > 0:
			err = l.fail(fmt.Sprintf("flags come before arguments; if %s is not a flag, put -- before it", arg),
				"%s after the argument %s", arg, l.words[len(l.words)-1])
		case strings.HasPrefix(arg, "--"):
			err = l.long(arg[2:])
		default:
			err = l.short(arg)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := l.required(); err != nil {
		return nil, err
	}
	if !l.action && len(l.commands) > 0 && !l.helps() {
		return nil, l.fail("", "a command is missing")
	}
	if l.words != nil && !l.helps() { // cli takes arguments for help topics
		l.out = append(append(l.out, "--"), l.words...)
	}
	return l.out, nil
}

// line is a command line while it is parsed.
type line struct {
	app  *cli.App
	args []string // words not parsed yet
	out  []string // parsed words, without the arguments
	// words are the arguments; nil until the first of them, or "--".
	words []string

	// The command named so far:
	path     string
	commands []*cli.Command // its subcommands
	flags    []cli.Flag
	action   bool // it has an action of its own
	given    map[cli.Flag]bool
}

// fail returns a usage error.
func (l *line) fail(hint, format string, a ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, a...), Hint: cmp.Or(hint, "see "+l.path+" --help")}
}

// helps reports whether help or the version was requested.
func (l *line) helps() bool { return l.given[cli.HelpFlag] || l.given[cli.VersionFlag] }

// required returns an error if a required flag of the command is missing.
func (l *line) required() error {
	for _, f := range l.flags {
		if r, ok := f.(cli.RequiredFlag); ok && r.IsRequired() && !l.given[f] && !l.helps() && !fromEnv(f) {
			return l.fail("", "%s is needed", dashed(f.Names()[0]))
		}
	}
	return nil
}

// arguments appends arguments. Without words, it ends the flags only.
func (l *line) arguments(words ...string) {
	if l.words == nil {
		l.words = []string{}
	}
	l.words = append(l.words, words...)
}

// word parses a word that is not a flag: the name of a command, or an argument.
func (l *line) word(arg string) error {
	if l.words != nil {
		l.arguments(arg)
		return nil
	}
	// Many users try "program help x" first.
	if arg == "help" && commandNamed(l.commands, "help") == nil && len(l.commands) > 0 {
		l.out, l.args = helpFor(l.out, l.commands, l.args), nil
		l.given[cli.HelpFlag] = true
		return nil
	}
	if c := commandNamed(l.commands, arg); c != nil {
		if err := l.required(); err != nil {
			return err
		}
		l.out = append(l.out, arg)
		l.path += " " + c.Name
		if c.SkipFlagParsing {
			l.args, l.action = nil, true // another program reads the rest, see [External]
			return nil
		}
		l.commands, l.flags, l.action = c.Subcommands, append([]cli.Flag{cli.HelpFlag}, c.Flags...), c.Action != nil
		return nil
	}
	if err := l.unknownCommand([]string{arg}); err != nil {
		return err
	}
	l.arguments(arg)
	return nil
}

// flag adds a flag that was written as name. If joined is set, value was joined to it; otherwise
// the next word is the value of a flag that takes one.
func (l *line) flag(f cli.Flag, name, value string, joined bool) error {
	if takesValue(f) && !joined {
		if len(l.args) == 0 {
			return l.fail("", "%s needs a value", name)
		}
		value, l.args, joined = l.args[0], l.args[1:], true
	}
	l.given[f] = true
	l.out = append(l.out, written(f, value, joined))
	if _, ok := f.(rest); ok {
		for _, word := range l.args {
			l.out = append(l.out, written(f, word, true))
		}
		l.args = nil
	}
	return nil
}

// long parses --name or --name=value, without the dashes.
func (l *line) long(arg string) error {
	name, value, joined := strings.Cut(arg, "=")
	f := find(l.flags, name)
	if f == nil {
		hint := ""
		if s := nearest(longNames(l.flags), name); s != "" {
			hint = "did you mean --" + s + "? see " + l.path + " --help"
		}
		return l.fail(cmp.Or(hint, l.afterArguments("--"+name)), "unknown flag --%s", name)
	}
	return l.flag(f, "--"+name, value, joined)
}

// afterArguments returns the hint for an unknown flag after arguments, where it may be an argument,
// such as the flag of a filter.
func (l *line) afterArguments(arg string) string {
	if len(l.words) == 0 {
		return ""
	}
	return "if " + arg + " is not a flag, put -- before the arguments; see " + l.path + " --help"
}

// short parses -a, -abc, -n5 or -o=path.
func (l *line) short(arg string) error {
	for rest := arg[1:]; rest != ""; {
		name := string([]rune(rest)[:1])
		rest = rest[len(name):]
		f := find(l.flags, name)
		if f == nil {
			hint := ""
			if find(l.flags, strings.TrimLeft(arg, "-")) != nil {
				hint = "did you mean -" + arg + "?"
			}
			if arg == "-"+name {
				return l.fail(cmp.Or(hint, l.afterArguments(arg)), "unknown flag -%s", name)
			}
			return l.fail(cmp.Or(hint, l.afterArguments(arg)), "unknown flag -%s in %s", name, arg)
		}
		value, joined := "", rest != "" && takesValue(f)
		if joined {
			value, rest = strings.TrimPrefix(rest, "="), ""
		}
		if err := l.flag(f, "-"+name, value, joined); err != nil {
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

// unknownCommand returns an error if args begin with the name of a command that does not exist. A
// command with subcommands takes no other arguments.
func (l *line) unknownCommand(args []string) error {
	if len(l.commands) == 0 || len(args) == 0 || commandNamed(l.commands, args[0]) != nil {
		return nil
	}
	var names []string
	for _, c := range l.commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	hint := "the commands are " + strings.Join(names, ", ") + ";"
	if s := cmp.Or(meant(l.app.Name, args[0]), nearest(names, args[0])); s != "" {
		hint = "did you mean " + s + "?"
	}
	return l.fail(hint+" see "+l.app.Name+" --help", "unknown command %s", args[0])
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

// longNames returns the names of flags that take two dashes.
func longNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, n)
			}
		}
	}
	return names
}

func commandNamed(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// helpFor returns the command line that shows the help of the command that args name.
func helpFor(out []string, commands []*cli.Command, args []string) []string {
	for _, arg := range args {
		c := commandNamed(commands, arg)
		if c == nil {
			break
		}
		out = append(out, c.Name)
		commands = c.Subcommands
	}
	return append(out, "--help")
}

// numeric reports whether arg is a number or range that begins with a minus, for a command that
// takes such arguments.
func numeric(flags []cli.Flag, arg string) bool {
	if len(arg) < 2 || arg[0] != '-' || arg[1] < '0' || arg[1] > '9' || find(flags, arg[1:2]) != nil {
		return false
	}
	for _, f := range flags {
		if _, ok := f.(*numbers); ok {
			return true
		}
	}
	return false
}

func fromEnv(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return false
	}
	for _, name := range d.GetEnvVars() {
		if _, ok := os.LookupEnv(name); ok {
			return true
		}
	}
	return false
}

// NoArgs returns a [UsageError] if the command was given arguments.
func NoArgs(c *cli.Context) error {
	if c.Args().Present() {
		return &UsageError{
			Message: fmt.Sprintf("unexpected argument %s", c.Args().First()),
			Hint:    "see " + c.Command.HelpName + " --help",
		}
	}
	return nil
}

// NeedArgs returns a [UsageError] if there is no argument; what names the missing argument.
func NeedArgs(c *cli.Context, what string) error {
	if !c.Args().Present() {
		return &UsageError{Message: what + " is missing", Hint: "see " + c.Command.HelpName + " --help"}
	}
	return nil
}
