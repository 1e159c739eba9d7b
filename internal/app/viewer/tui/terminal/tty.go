// Package terminal shares the terminal, and the signals of its keys, with the commands that the reader runs.
package terminal

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// Suspend asks to stop the reader until the shell resumes it.
type Suspend struct{}

// Terminal is the terminal, which the reader shares with the commands that it runs, and the signals
// that keys send.
type Terminal struct {
	out   *os.File
	plain bool // write no escape sequences

	Signals chan os.Signal // signals that end the reader
	stops   chan os.Signal // SIGTSTP
	resizes chan os.Signal // SIGWINCH
	ending  chan struct{}  // closed when the reader has to end
	EndedBy atomic.Value   // the signal that ended it
}

func New(out *os.File, plain bool) *Terminal {
	return &Terminal{
		out: out, plain: plain, Signals: make(chan os.Signal, 16), stops: make(chan os.Signal, 1),
		resizes: make(chan os.Signal, 1),
		ending:  make(chan struct{}),
	}
}

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

// HeedSignals starts goroutines that end the program after SIGINT, SIGTERM and SIGHUP, suspend
// it after SIGTSTP, and resize it after SIGWINCH. They have ended when leave returns, and later signals
// are in t.signals.
func (t *Terminal) HeedSignals(ctx, inner context.Context, p *tea.Program) (leave func()) {
	inner, cancel := context.WithCancel(inner)
	var both sync.WaitGroup
	for s, c := range map[os.Signal]chan os.Signal{syscall.SIGINT: t.Signals, syscall.SIGTERM: t.Signals,
		syscall.SIGHUP: t.Signals, syscall.SIGTSTP: t.stops, syscall.SIGWINCH: t.resizes} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	// Send blocks while a command has the terminal, so awaitEnd needs its own goroutine.
	both.Go(func() {
		for {
			select {
			case <-t.stops:
				p.Send(Suspend{})
			case <-t.resizes:
				p.Send(t.Size())
			case <-inner.Done():
				return
			}
		}
	})
	both.Go(func() { t.awaitEnd(ctx, inner, p) })
	return func() { cancel(); both.Wait() }
}

// awaitEnd ends the program after a signal, or when ctx ends.
func (t *Terminal) awaitEnd(ctx, inner context.Context, p *tea.Program) {
	s := os.Signal(syscall.SIGTERM) // for a context that ends without a signal
	select {
	case s = <-t.Signals:
	case <-ctx.Done():
		select {
		case s = <-t.Signals:
		default:
		}
	case <-inner.Done():
		return
	}
	t.EndedBy.Store(s)
	close(t.ending)
	// Kill would restore the terminal while other goroutines still use it.
	go p.Send(tea.QuitMsg{})
}

func (t *Terminal) IgnoreSignals() {
	for _, c := range []chan os.Signal{t.Signals, t.stops, t.resizes} {
		signal.Stop(c)
	}
}
