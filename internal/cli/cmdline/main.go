// Package cmdline holds the conventions of all of lektor's commands: the syntax of flags and
// arguments, errors, warnings and progress, the formats of records, and the exit status. So cmd/*
// contains only the differences between commands.
//
// A command's main is
//
//	func main() { os.Exit(cmdline.Main(newApp(), os.Args)) }
//
// and an action reads its flags, then calls a function that is independent of the command line:
//
//	Action: func(c *cli.Context) error {
//		return update(c.Context, options{dir: cmdline.Dir(c), all: c.Bool("all")}, cmdline.StreamsOf(c))
//	}
//
// This package and cmd/* are the only ones that import urfave/cli.
package cmdline

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// Exit statuses. If a signal stops a command, its status is 128 plus the number of the signal. If
// the reader of its output goes away, the status is 141, as for SIGPIPE.
const (
	StatusDone   = 0  // everything was done
	StatusFailed = 1  // a local failure, or a failure of an item that the user named
	StatusUsage  = 2  // the command line is wrong
	StatusRemote = 75 // only remote failures, of items that the user did not name: try again later
)

// Main runs app with args, which begin with the program's name, and returns the exit status for
// os.Exit.
//
// It prepares the app first. Slice flags do not split at commas. All commands have --help (-h), and
// the program has --version (-v). If the app has [DirFlag], every subcommand takes it too. Then Main
// parses the command line. "--" ends the flags, and "-" is an argument. Flags may follow arguments,
// unless $POSIXLY_CORRECT is set. Short flags may be joined (-as, -n5), and long flags have two
// dashes. A mistake is a [UsageError]: a line on stderr with a hint, and status 2.
//
// The context of the action ends at SIGINT, SIGTERM or SIGHUP, or when stdout has no reader any more.
// A second signal kills the process. After the first, all reads of standard input fail, also a read
// that is blocked. If an action returns nil after a signal, the status is 0: some actions end this
// way.
//
// Main prints the error of the action, joined errors one a line. The error determines the status,
// see [Status]. If the action returns nil, but has reported errors with [Reporter.Error], or if its
// output could not be written, the status is 1. Panics are not caught.
func Main(app *cli.App, args []string) int {
	app.Name = called(app.Name, args)
	Prepare(app)
	app.Reader = cmp.Or[io.Reader](app.Reader, os.Stdin)
	app.Writer = cmp.Or[io.Writer](app.Writer, os.Stdout)
	app.ErrWriter = cmp.Or[io.Writer](app.ErrWriter, os.Stderr)
	if len(args) > 1 && args[1] == completeCommand {
		complete(app, args[2:], app.Writer)
		return StatusDone
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	handleSent, stop := watchSignals(cancel)
	defer stop()
	ctx = context.WithValue(ctx, signalsKey{}, handleSent)

	out := &output{Writer: app.Writer, broken: func() { cancel(errPipe) }}
	app.Writer = out
	streams := NewStreams(app.Name, NewReader(ctx, app.Reader), out, app.ErrWriter)
	if app.Metadata == nil {
		app.Metadata = map[string]any{}
	}
	app.Metadata[streamsKey] = streams

	args, err := arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	streams.Report.closeBar()

	cause := context.Cause(ctx)
	var sig signalError
	stopped := errors.Is(err, context.Canceled) || errors.Is(err, cause) && cause != nil
	switch {
	case out.pipe(), errors.Is(err, errPipe):
		return 128 + int(syscall.SIGPIPE)
	case errors.As(err, &sig), stopped && errors.As(cause, &sig):
		return 128 + int(sig.Signal)
	case err == nil && out.err != nil:
		err = fmt.Errorf("standard output: %w", out.err)
	}
	streams.Report.Print(err)
	if status := Status(err); status != 0 {
		return status
	}
	if streams.Report.Errors() > 0 {
		return StatusFailed
	}
	return StatusDone
}

// signalError is the cause of a context that a signal ended, and the error of [Stopped].
type signalError struct{ syscall.Signal }

// Stopped returns the error of an action that a signal stopped, even if the context did not end by
// this signal. The status is 128 plus the number of the signal; nothing is printed.
func Stopped(s syscall.Signal) error { return signalError{s} }

func (e signalError) Error() string { return "stopped by signal: " + e.Signal.String() }

// errPipe is the cause of a context that ended because the reader of stdout closed it.
var errPipe = errors.New("nobody reads the output any more")

// signalsKey is the key of the function handleSent in the context, see [watchSignals].
type signalsKey struct{}

// watchSignals ends the context at the first SIGINT, SIGTERM or SIGHUP. Then it stops catching them,
// so that a second one kills the process. If SIGHUP is ignored, as by nohup, it stays ignored.
// SIGPIPE is caught and dropped, not ignored: a pager or a filter command would inherit an ignored
// signal.
//
// handleSent returns when signals that were sent before have ended the context. To find out, it sends
// SIGWINCH, which has no effect. The kernel and the runtime deliver the pending signal with the
// lowest number first, and SIGWINCH has a higher number than the other signals.
func watchSignals(cancel context.CancelCauseFunc) (handleSent, stop func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	done, ended, handled := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-c:
				if s != syscall.SIGWINCH {
					signal.Stop(c)
					cancel(signalError{s.(syscall.Signal)})
					return
				}
				select {
				case handled <- struct{}{}:
				default:
				}
			case <-done:
				return
			}
		}
	}()
	handleSent = func() {
		signal.Notify(c, syscall.SIGWINCH)
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			return
		}
		select {
		case <-handled:
		case <-ended:
		case <-time.After(time.Second): // SIGWINCH is blocked
		}
	}
	return handleSent, func() {
		signal.Stop(c)
		signal.Stop(pipe)
		close(done)
	}
}

// output is stdout. It keeps the first error of a write, so that "no space left" is not lost if
// an action ignores it, and calls broken if that error is a closed pipe.
type output struct {
	io.Writer
	err    error
	broken func()
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = err
		if o.pipe() {
			o.broken()
		}
	}
	return n, err
}

func (o *output) pipe() bool { return errors.Is(o.err, syscall.EPIPE) }

// DirFlag returns the flag --dir of every command that works on a lektor-dir.
// It belongs in the app's own flags; [Main] lets the subcommands take it too.
func DirFlag() cli.Flag {
	return &cli.StringFlag{
		Name:  dirFlagName,
		Usage: "work on the lektor-dir `DIR` (default: $LEKTORDIR, else $XDG_DATA_HOME/lektor, else ~/.local/share/lektor)",
	}
}

const dirFlagName = "dir"

// Dir returns the lektor-dir of a command: --dir (of the subcommand or before it), else $LEKTORDIR,
// else $XDG_DATA_HOME/lektor, else ~/.local/share/lektor. It may not exist. It is empty only for a
// user without a home directory.
func Dir(c *cli.Context) string {
	for _, ctx := range c.Lineage() {
		if dir := ctx.String(dirFlagName); dir != "" {
			return dir
		}
	}
	return DefaultDir()
}

// DefaultDir returns [Dir] without the flag --dir.
func DefaultDir() string {
	if dir := os.Getenv("LEKTORDIR"); dir != "" {
		return dir
	}
	base := BaseDir("XDG_DATA_HOME", ".local/share")
	if base == "" {
		u, err := user.Current()
		if err != nil || u.HomeDir == "" {
			return ""
		}
		base = filepath.Join(u.HomeDir, ".local/share")
	}
	return filepath.Join(base, "lektor")
}

// BaseDir returns the directory in an environment variable of the XDG Base Directory Specification.
// If the variable is unset, or a relative path, which the specification ignores, BaseDir returns
// otherwise, a path relative to the home directory; "" if $HOME is unset.
func BaseDir(variable, otherwise string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, otherwise)
}

//go:embed VERSION
var version string

// Version returns the version of the program. If it was built in a checkout, a plus sign and the
// revision follow, with ".dirty" if files had been changed.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return withRevision(strings.TrimSpace(version), info)
}

func withRevision(version string, info *debug.BuildInfo) string {
	if info == nil {
		return version
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision == "" {
		return version
	}
	version += "+" + revision[:min(12, len(revision))]
	if settings["vcs.modified"] == "true" {
		version += ".dirty"
	}
	return version
}
