package tui

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// tty is the terminal that the reader shares with the commands that it runs, and the
// signals that come from it.
type tty struct {
	out      *os.File
	children atomic.Int32 // that have the terminal

	signals chan os.Signal // that end the reader, and SIGWINCH for settle
	stops   chan os.Signal // SIGTSTP
	resizes chan os.Signal
	settled chan struct{} // receives after SIGWINCH came by signals
	ending  chan struct{} // closed when the reader has to end
	endedBy atomic.Value  // the signal that ended it
}

func newTTY(out *os.File) *tty {
	return &tty{
		out: out, signals: make(chan os.Signal, 16), stops: make(chan os.Signal, 1), resizes: make(chan os.Signal, 1),
		settled: make(chan struct{}, 1), ending: make(chan struct{}),
	}
}

// winsize returns the size of the terminal; ok is false if it has none.
func (t *tty) winsize() (ws *unix.Winsize, ok bool) {
	if t.out == nil {
		return nil, false
	}
	ws, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ)
	return ws, err == nil && ws.Col > 0 && ws.Row > 0
}

// cell returns the size of a character in pixels.
func (t *tty) cell() (width, height int) {
	if ws, ok := t.winsize(); ok && ws.Xpixel > 0 && ws.Ypixel > 0 {
		return max(1, int(ws.Xpixel/ws.Col)), max(1, int(ws.Ypixel/ws.Row))
	}
	return 8, 16
}

// size returns the size of the terminal in characters.
func (t *tty) size() tea.WindowSizeMsg {
	if ws, ok := t.winsize(); ok {
		return tea.WindowSizeMsg{Width: int(ws.Col), Height: int(ws.Row)}
	}
	return tea.WindowSizeMsg{Width: 80, Height: 24}
}

// heedSignals ends the program by signals that mean it, and suspends it by SIGTSTP, until
// inner ends.
func (t *tty) heedSignals(ctx, inner context.Context, p *tea.Program) {
	signal.Notify(t.signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(t.signals, syscall.SIGHUP)
	}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(t.stops, syscall.SIGTSTP)
	}
	signal.Notify(t.resizes, syscall.SIGWINCH)
	// While a command has the terminal, Send waits; the end of the reader must not.
	go func() {
		for {
			select {
			case <-t.stops:
				// ^Z for a command stops the reader when the command stops.
				if t.children.Load() == 0 {
					p.Send(suspendMsg{})
				}
			case <-t.resizes:
				p.Send(t.size())
			case <-inner.Done():
				return
			}
		}
	}()
	go t.awaitEnd(ctx, inner, p)
}

// awaitEnd ends the program by a signal, or when ctx ends. ^C for a command does both, and
// means neither.
func (t *tty) awaitEnd(ctx, inner context.Context, p *tea.Program) {
	ended := ctx.Done()
	for {
		s := os.Signal(syscall.SIGTERM) // for a context that ends without a signal
		select {
		case s = <-t.signals:
		case <-ended:
			if t.children.Load() > 0 {
				ended = nil
				continue
			}
			select {
			case s = <-t.signals:
			default:
			}
		case <-inner.Done():
			return
		}
		switch {
		case s == syscall.SIGWINCH:
			select {
			case t.settled <- struct{}{}:
			default:
			}
		case s == syscall.SIGINT && t.children.Load() > 0:
			ended = nil
		default:
			t.endedBy.Store(s)
			close(t.ending)
			// Kill would give the terminal back while others still take it, and read from it.
			go p.Send(tea.QuitMsg{})
			return
		}
	}
}

func (t *tty) ignoreSignals() {
	for _, c := range []chan os.Signal{t.signals, t.stops, t.resizes} {
		signal.Stop(c)
	}
}

// settle waits until the signals that were sent before are heeded: ^C is sent to a command
// and to the reader, and may end the command first. SIGWINCH, which means nothing here, is
// delivered after them, as its number is greater.
func (t *tty) settle() {
	select {
	case <-t.settled: // of a resize before
	default:
	}
	signal.Notify(t.signals, syscall.SIGWINCH)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		return
	}
	select {
	case <-t.settled:
	case <-t.ending:
	case <-time.After(time.Second): // somebody blocks it
	}
}
