// Package tui is the full-screen reader of lektor-view: panes, keys and drawing. It uses the
// lektor-dir only through the interface [Disk], and only in background goroutines, so that a
// slow disk never delays a key.
//
// The library is bubbletea. One goroutine owns the model and handles one message after the
// other; long work is a command, which returns a message. docs/tui.md explains the choice of
// the library, and how browser, marks and jobs work together.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/files/workers"
)

// Options are the options of the reader.
type Options struct {
	In, Out *os.File // the terminal
	Name    string   // name of the lektor-dir, for messages
	Keys    *keys.Keys
	// KeysFile is the user's file of keys, and KeysSet the set that is used in its place; "" if none is.
	KeysFile, KeysSet string
	// NoCommands is the reason why keys must not run commands; nil means that they may.
	NoCommands error
	// Fetcher is the path of lektor-fetch. NoFetcher is the reason why there is none, else nil.
	Fetcher   string
	NoFetcher error
	Width     int // maximum columns of text
	// Plain writes lines of text without escape sequences, and draws no screen.
	Plain   bool
	NoColor bool // use bold, faint and reversed, but no colours
	Mouse   bool
	Advance bool           // move to the next entry after marking one
	Look    *cells.Look    // the look of the screen
	Screen  *values.Values // the settings of the screen that were remembered
	// Date formats a date for the list.
	Date func(time.Time) string
	// Commands parses command lines of lektor-view, and Self is the words before them: the path of the
	// program, and the lektor-dir. OnTerminal are the names of the commands that need the terminal.
	Commands   Commands
	Self       []string
	OnTerminal []string
	Random     func() uint64
	Getenv     func(string) string
	// Report reports what is still being changed after the screen is gone.
	Report *cmdline.Reporter
}

// Disk is the lektor-dir and everything else that may take long. Its methods may be called
// concurrently; the UI goroutine never calls them. Errors are shown to the user as they are.
type Disk interface {
	tree.Disk
	list.Disk
	page.Disk
	work.Disk
	// Look returns the look of the screen as the user's file has it now, with the lines that the user
	// typed after it.
	Look(ctx context.Context, typed string) (*cells.Look, error)
}

// Run runs the reader until the user or ctx ends it; the first signal must end ctx with the cause
// [cmdline.Stopped], which Run returns then. It restores the terminal, also after a panic or a signal. Then it makes
// the changes that the user requested and that are not made yet, unless ^C ends that.
func Run(ctx context.Context, d Disk, o *Options) error {
	defer workers.Spare()()
	// ^C ends ctx, but may be meant for a player that has the terminal. So the model uses inner,
	// which ends when Run returns.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	m := newModel(inner, d, o)
	t := m.terminal
	// The size is an option because the library would read it in two goroutines at once when a
	// command has ended, which is a race. The default theme has the sixteen colours that every terminal has.
	size := t.Size()
	out := io.Writer(struct{ io.Writer }{o.Out}) // hides that it is a terminal
	if o.Plain {
		out = io.Discard // the voice of the model writes
	}
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(out), tea.WithEnvironment(os.Environ()),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond), tea.WithWindowSize(size.Width, size.Height),
		tea.WithColorProfile(max(colorprofile.ANSI, colorprofile.Env(os.Environ()))))
	leave := t.HeedSignals(ctx, p, part.Then(func() part.Effects { return m.suspend(part.Given{}) }))
	m.Send, m.program = p.Send, p
	_, err := p.Run()
	leave()
	m.voice.End()
	if d := m.work.Drain(ctx, o.Report, cancel); d != nil {
		m.defect = d
	}
	cancel()
	m.work.Tasks.Wait()
	if m.defect != nil && o.Out != nil {
		fmt.Fprintln(o.Out, m.defect)
	}
	switch {
	case m.defect != nil, errors.Is(err, tea.ErrProgramPanic):
		return errors.New("the reader crashed because of a defect, see above; please report it")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO):
		return nil // the terminal is gone
	case err != nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}
