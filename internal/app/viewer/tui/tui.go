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
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/workers"
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

	most, listed int // see budget; 0 for mostHere and mostListed
	tstp         chan os.Signal
	childs       atomic.Int32  // that have the terminal
	ending       chan struct{} // closed when a signal ends the reader
	caught       chan<- os.Signal
	settled      chan struct{} // told when SIGWINCH was caught
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

// settle returns when the signals that were sent before have been heeded. ^C reaches a
// command and us, and may have ended that before it is heard of here. What means nothing,
// and is delivered last as its number is greater, is sent behind it.
func (o *Options) settle() {
	select {
	case <-o.settled: // of a resize before
	default:
	}
	signal.Notify(o.caught, syscall.SIGWINCH)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		return
	}
	select {
	case <-o.settled:
	case <-o.ending:
	case <-time.After(time.Second): // somebody blocks it
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

// Run runs the reader until the user ends it, or the context. The terminal is left as
// it was found, also by a panic and by signals.
func Run(ctx context.Context, d Disk, o *Options) error {
	defer softly()()
	defer workers.Spare()()
	// What the first ^C ends is not what this is run by: it may be meant for a player
	// that has the terminal.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	o.ending = make(chan struct{})
	m := newModel(inner, d, o)
	// It is told of the terminal's size: looking itself, it does so in two goroutines at once
	// when a command has given the terminal back. And it is told of the sixteen colours, which
	// are all that are drawn.
	size := o.size()
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(plainWriter{o.Out}), tea.WithEnvironment(os.Environ()),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond), tea.WithWindowSize(size.Width, size.Height), tea.WithColorProfile(colorprofile.ANSI))
	// A signal ends the library as a key does. Kill would give the terminal back while
	// others still take it, and read from it.
	stop := signals(ctx, inner, p, func() { close(o.ending); go p.Send(tea.QuitMsg{}) }, o)
	defer stop()
	m.send, m.program = p.Send, p
	_, err := p.Run()
	cancel()
	if m.defect != nil && o.Out != nil {
		fmt.Fprintln(o.Out, m.defect)
	}
	switch {
	case m.defect != nil, errors.Is(err, tea.ErrProgramPanic):
		return errors.New("the reader has a defect, which it told above; the terminal is as it was")
	case stop() != nil:
		// The same signal ends the context, in this moment or in the next, unless an earlier one,
		// which was for a command, has done that.
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return command.Stopped(stop().(syscall.Signal))
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
	c := make(chan os.Signal, 16)
	o.caught, o.settled = c, make(chan struct{}, 1)
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
	// What is told to the library waits for it while a command has the terminal; so does what
	// ends it, which asks that command to end (see ending).
	go func() {
		for {
			select {
			case <-o.tstp:
				// ^Z for a command on the terminal stops us when it stops.
				if o.childs.Load() == 0 {
					p.Send(suspendMsg{})
				}
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
				if s == syscall.SIGWINCH {
					select {
					case o.settled <- struct{}{}:
					default:
					}
					continue
				}
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
				got.Store(os.Signal(syscall.SIGTERM))
				select {
				case s := <-c:
					if s != syscall.SIGWINCH {
						got.Store(s)
					}
				default:
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
