package cmdline

import (
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/text/humanize"
)

// Flags is the command line from which the options of a command are made. It keeps the first error,
// and [Run] ends the command with that.
type Flags struct {
	*cli.Context
	err error
}

// Run returns the action of a command: it makes the options and calls do with them. args names the
// required arguments, "" for none. A command whose usage names no arguments takes none.
func Run[O any](do func(context.Context, O, *Streams) error, args string, options func(*Flags) O) cli.ActionFunc {
	return func(c *cli.Context) error {
		if args != "" {
			if err := NeedArgs(c, args); err != nil {
				return err
			}
		}
		f := &Flags{Context: c}
		o := options(f)
		if strings.TrimSpace(c.Command.ArgsUsage) == "" && c.Args().Present() {
			f.Fail(&UsageError{Message: "unexpected argument " + c.Args().First(),
				Hint: "see " + c.Command.HelpName + " --help"})
		}
		if f.err != nil {
			return f.err
		}
		return do(c.Context, o, StreamsOf(c))
	}
}

// Fail records the first error that is not nil.
func (f *Flags) Fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// Words returns the arguments.
func (f *Flags) Words() []string { return f.Args().Slice() }

// Streams returns the streams of the app.
func (f *Flags) Streams() *Streams { return StreamsOf(f.Context) }

// Given returns the context in which a flag was set: the command's own, else the program's, as in
// "lektor-fetch --gap 0 update".
func (f *Flags) Given(name string) *cli.Context {
	for _, c := range f.Lineage() {
		if c.Command != nil && c.IsSet(name) {
			return c
		}
	}
	return f.Context
}

// Number returns the value of a flag that is a whole number from least to most; a most of 0 means
// no limit.
func (f *Flags) Number(name string, least, most int) int {
	n := f.Given(name).Int(name)
	switch {
	case most > 0 && (n < least || n > most):
		f.Fail(Usagef("--%s %d: it is a number from %d to %d", name, n, least, most))
	case n < least:
		f.Fail(Usagef("--%s %d: it is a number of at least %d", name, n, least))
	}
	return n
}

// Bytes returns the value of a flag that is a limit in bytes.
func (f *Flags) Bytes(name string) int64 {
	n := f.Given(name).Int64(name)
	if n < 1 {
		f.Fail(Usagef("--%s %d: it is a number of bytes, at least 1", name, n))
	}
	return n
}

// Size returns the value of a flag that is a limit in bytes, with an optional unit; see
// [humanize.ParseSize].
func (f *Flags) Size(name string) int64 {
	n, err := humanize.ParseSize(f.Given(name).String(name))
	if err != nil {
		f.Fail(Usagef("--%s: %w", name, err))
	}
	return n
}

// Printing returns the values of the flags -o, --raw and --print0.
func (f *Flags) Printing() PrinterOptions {
	return PrinterOptions{Format: OutputFormat(f.Context), Nul: f.Bool("print0"), Raw: f.Bool("raw")}
}

// Time returns the value of a flag that is a duration.
func (f *Flags) Time(name string) time.Duration {
	d := f.Given(name).Duration(name)
	if d < 0 {
		f.Fail(Usagef("--%s %v: it is a time such as 30s", name, d))
	}
	return d
}
