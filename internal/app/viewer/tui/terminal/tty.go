// Package terminal shares the terminal, and the signals of its keys, with the commands that the reader runs.
package terminal

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// Terminal is the terminal, which the reader shares with the commands that it runs, and the signals
// that keys send.
type Terminal struct {
	in, out *os.File
	plain   bool // write no escape sequences

	ending <-chan struct{} // closed when the reader has to end; nil before HeedSignals
	lost   func()          // ends the reader, as the terminal is gone
}

func New(in, out *os.File, plain bool) *Terminal {
	return &Terminal{in: in, out: out, plain: plain, lost: func() {}}
}

// The streams that the library offers to a [tea.ExecCommand] are those of the terminal, or others that hide it.

func (*Terminal) SetStdin(io.Reader)  {}
func (*Terminal) SetStdout(io.Writer) {}
func (*Terminal) SetStderr(io.Writer) {}

// winsize returns the size of the terminal; ok is false if it is unknown.
func (t *Terminal) winsize() (ws *unix.Winsize, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ)
	return ws, err == nil && ws.Col > 0 && ws.Row > 0
}

// Cell returns the size of a character in pixels, 8 by 16 if it is unknown.
func (t *Terminal) Cell() (width, height int) {
	if ws, ok := t.winsize(); ok && ws.Xpixel > 0 && ws.Ypixel > 0 {
		return max(1, int(ws.Xpixel/ws.Col)), max(1, int(ws.Ypixel/ws.Row))
	}
	return 8, 16
}

// Size returns the size of the terminal in characters, 80 by 24 if it is unknown.
func (t *Terminal) Size() tea.WindowSizeMsg {
	if ws, ok := t.winsize(); ok {
		return tea.WindowSizeMsg{Width: int(ws.Col), Height: int(ws.Row)}
	}
	return tea.WindowSizeMsg{Width: 80, Height: 24}
}

// HeedSignals starts goroutines that end the program when ctx ends, send it suspend after SIGTSTP, and resize it after
// SIGWINCH. They have ended when leave returns. SIGTERM and SIGHUP, after the first of which ctx must end, do not kill
// the process from then on, and SIGINT does not before leave is called.
func (t *Terminal) HeedSignals(ctx context.Context, p *tea.Program, suspend tea.Msg) (leave func()) {
	ctx, t.lost = context.WithCancel(ctx)
	t.ending = ctx.Done()
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGWINCH} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT) // a second one must not kill the process before the terminal is restored
	left := make(chan struct{})
	var heeding sync.WaitGroup
	heeding.Go(func() {
		for {
			select {
			case <-left:
				return
			case s := <-signals:
				switch s { // Send blocks while a command has the terminal
				case syscall.SIGTSTP:
					p.Send(suspend)
				case syscall.SIGWINCH:
					p.Send(t.Size())
				}
			}
		}
	})
	// Kill would restore the terminal while other goroutines still use it.
	stop := context.AfterFunc(ctx, func() { p.Send(tea.QuitMsg{}) })
	return func() { stop(); close(left); heeding.Wait(); signal.Stop(interrupts) }
}
