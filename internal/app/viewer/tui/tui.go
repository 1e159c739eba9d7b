// Package tui is the full-screen reader of lektor-view: panes, keys and drawing. It
// knows the lektor-dir by the interface [Disk] alone, and calls that only in goroutines
// of their own: whatever the disk does, a key is answered.
//
// The library is bubbletea. One goroutine has the model and takes one message after
// the other; work that takes long is a command, which ends in a message. docs/tui.md says
// why it is this library, and how browser, marks and jobs go together.
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

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/workers"
)

// Options are the options of the reader.
type Options struct {
	In, Out *os.File // the terminal
	Name    string   // of the lektor-dir, for messages
	Keys    *Keys
	// KeysFile is a line that says where the keys come from.
	KeysFile string
	// NoCommands is the reason why keys may not run commands; nil means that they may.
	NoCommands error
	Width      int  // of text, at most
	NoColor    bool // styles, but no colours
	Mouse      bool
	Advance    bool // to the next entry after one was marked
	// Date writes a date as a list has it; nil means year, month and day.
	Date func(time.Time) string
	// Getenv looks up an environment variable; nil means [os.Getenv].
	Getenv func(string) string
}

// plainWriter is a file that the library does not recognize as a terminal.
type plainWriter struct{ io.Writer }

// Run runs the reader until the user ends it, or the context. The terminal is left as
// it was found, also by a panic and by signals.
func Run(ctx context.Context, d Disk, o *Options) error {
	defer workers.Spare()()
	// The first ^C ends ctx, but may be meant for a player that has the terminal.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	m := newModel(inner, d, o)
	t := m.terminal
	// The library is told the size of the terminal: looking itself, it does so in two
	// goroutines at once when a command has given the terminal back. And it is told to use the
	// sixteen colours, as no others are drawn.
	size := t.size()
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(plainWriter{o.Out}), tea.WithEnvironment(os.Environ()),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond), tea.WithWindowSize(size.Width, size.Height), tea.WithColorProfile(colorprofile.ANSI))
	t.heedSignals(ctx, inner, p)
	defer t.ignoreSignals()
	m.send, m.program = p.Send, p
	_, err := p.Run()
	cancel()
	t.ignoreSignals()
	if m.defect != nil && o.Out != nil {
		fmt.Fprintln(o.Out, m.defect)
	}
	switch s, ended := t.endedBy.Load().(syscall.Signal); {
	case m.defect != nil, errors.Is(err, tea.ErrProgramPanic):
		return errors.New("the reader has a defect, see above; the terminal is as it was")
	case ended:
		// The same signal ends the context, now or in a moment, unless an earlier one, which was
		// for a command, has done that.
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return command.Stopped(s)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO):
		return nil // the terminal has gone
	case err != nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}
