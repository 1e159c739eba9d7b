// Package tui is the full-screen reader of lektor-view: panes, keys and drawing. It
// knows the lektor-dir by the interface [Disk] alone, and calls that only in goroutines
// of their own: whatever the disk does, a key is answered.
//
// The library is bubbletea. One goroutine has the model and takes one message after
// the other; what takes long is a command, which ends in a message. docs/tui.md tells
// why it is this library, and how lists, marks and arrivals go together.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/lektordir/lektor/internal/crew"
	"golang.org/x/sys/unix"
)

// Options say how the reader is.
type Options struct {
	In, Out *os.File // the terminal
	Name    string   // of the lektor-dir, for messages
	Keys    *Keys
	// KeysFile says, in a line, where the keys come from.
	KeysFile string
	// NoCommands is why keys may not run commands; nil lets them.
	NoCommands error
	Width      int  // of text, at most
	NoColor    bool // styles, but no colours
	Mouse      bool
	Advance    bool // to the next entry after one was marked
	// Date writes a date as a list has it.
	Date func(time.Time) string
	// Getenv gives a variable; nil stands for [os.Getenv].
	Getenv func(string) string

	tstp   chan os.Signal
	childs atomic.Int32 // that have the terminal
}

func (o *Options) date(t time.Time) string {
	if o.Date == nil {
		return t.Format("2006-01-02")
	}
	return o.Date(t)
}

func (o *Options) env(name string) string {
	if o.Getenv == nil {
		return os.Getenv(name)
	}
	return o.Getenv(name)
}

// exec makes a command of an argument vector.
func (o *Options) exec(env, argv []string) *exec.Cmd { return newCommand(env, argv) }

// child is told when a command has the terminal.
func (o *Options) child(runs bool) {
	if runs {
		o.childs.Add(1)
	} else {
		o.childs.Add(-1)
	}
}

// cell is the size of a character in points, which pictures are made to fit.
func (o *Options) cell() (width, height int) {
	width, height = 8, 16
	if o.Out == nil {
		return width, height
	}
	if ws, err := unix.IoctlGetWinsize(int(o.Out.Fd()), unix.TIOCGWINSZ); err == nil && ws.Xpixel > 0 && ws.Ypixel > 0 && ws.Col > 0 && ws.Row > 0 {
		width, height = max(1, int(ws.Xpixel/ws.Col)), max(1, int(ws.Ypixel/ws.Row))
	}
	return width, height
}

// size is that of the terminal.
func (o *Options) size() tea.WindowSizeMsg {
	if o.Out != nil {
		if ws, err := unix.IoctlGetWinsize(int(o.Out.Fd()), unix.TIOCGWINSZ); err == nil && ws.Col > 0 && ws.Row > 0 {
			return tea.WindowSizeMsg{Width: int(ws.Col), Height: int(ws.Row)}
		}
	}
	return tea.WindowSizeMsg{Width: 80, Height: 24}
}

// plainWriter is a file of which the library does not see that it is a terminal.
type plainWriter struct{ io.Writer }

// stopping stops the process until the shell lets it go on, while the terminal is as
// that left it.
type stopping struct{ o *Options }

func (stopping) SetStdin(io.Reader)  {}
func (stopping) SetStdout(io.Writer) {}
func (stopping) SetStderr(io.Writer) {}

// Run stops all of what the shell started as one, as the terminal would. It takes
// SIGSTOP for that: the Go runtime swallows SIGTSTP once somebody was notified of it.
func (s stopping) Run() error {
	if leader, err := unix.Getsid(0); err != nil || leader == unix.Getpgrp() {
		return errors.New("there is no shell that could resume it")
	}
	goes := make(chan os.Signal, 1)
	signal.Notify(goes, syscall.SIGCONT)
	defer signal.Stop(goes)
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-goes:
	case <-time.After(time.Second):
	}
	return nil
}

// softLimit is the memory beyond which it is collected more often.
const softLimit = 150 << 20

// Run runs the reader until the user ends it, or the context. The terminal is left as
// it was found, also by a panic and by signals.
func Run(ctx context.Context, d Disk, o *Options) error {
	// A hundred thousand entries take 60 MB; what is made anew with each list need not
	// double that before it is collected.
	if os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(softLimit))
	}
	defer crew.Spare()()
	// What the first ^C ends is not what this is run by: it may be meant for a player
	// that has the terminal.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	m := newModel(inner, d, o)
	// The library is ended by its context: Kill would give the terminal back beside the
	// goroutine that is still taking it.
	screen, end := context.WithCancel(context.Background())
	defer end()
	// It is told of the terminal's size: looking itself, it does so in two goroutines at once
	// when a command has given the terminal back. And it is told of the sixteen colours, which
	// are all that are drawn.
	size := o.size()
	p := tea.NewProgram(m, tea.WithContext(screen), tea.WithInput(o.In), tea.WithOutput(plainWriter{o.Out}), tea.WithEnvironment(os.Environ()),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond), tea.WithWindowSize(size.Width, size.Height), tea.WithColorProfile(colorprofile.ANSI))
	stop := signals(ctx, inner, p, end, o)
	defer stop()
	m.send = p.Send
	_, err := p.Run()
	cancel()
	if m.defect != nil && o.Out != nil {
		fmt.Fprintln(o.Out, m.defect)
	}
	switch {
	case m.defect != nil, errors.Is(err, tea.ErrProgramPanic):
		return errors.New("the reader has a defect, which it told above; the terminal is as it was")
	case errors.Is(err, tea.ErrProgramKilled) && stop() != nil:
		// The same signal ends the context, in this moment or in the next.
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO):
		return nil // the terminal has gone
	case err != nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// signals ends the program by signals that mean it, and suspends it by the one that asks
// for that. stop gives them back, and tells which signal it was.
func signals(ctx, inner context.Context, p *tea.Program, end func(), o *Options) (stop func() os.Signal) {
	var got atomic.Value
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	o.tstp = make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(o.tstp, syscall.SIGTSTP)
	}
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH)
	done := make(chan struct{})
	// What is told to the library waits for it while a command has the terminal; what ends
	// it does not.
	go func() {
		for {
			select {
			case <-o.tstp:
				p.Send(suspendMsg{})
			case <-winch:
				p.Send(o.size())
			case <-inner.Done():
				return
			}
		}
	}()
	go func() {
		// A context that ends without a signal, as a test's, ends it too.
		ended := ctx.Done()
		for {
			select {
			case s := <-c:
				if s == syscall.SIGINT && o.childs.Load() > 0 {
					ended = nil
					continue
				}
				got.Store(s)
				end()
				return
			case <-ended:
				if o.childs.Load() > 0 {
					ended = nil // it was ^C, for the child
					continue
				}
				select {
				case s := <-c:
					got.Store(s)
				default:
					got.Store(os.Signal(syscall.SIGTERM))
				}
				end()
				return
			case <-inner.Done():
				return
			case <-done:
				return
			}
		}
	}()
	var once atomic.Bool
	return func() os.Signal {
		if once.CompareAndSwap(false, true) {
			close(done)
			signal.Stop(c)
			signal.Stop(o.tstp)
			signal.Stop(winch)
		}
		s, _ := got.Load().(os.Signal)
		return s
	}
}
