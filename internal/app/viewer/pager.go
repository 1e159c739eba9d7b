package viewer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/termsafe"
)

// Pager is a program that shows text a screen at a time. The zero value is none.
type Pager struct {
	Command string // run by /bin/sh
	// Screen holds text that needs no pager; the zero value holds none.
	Screen command.Screen
}

// less ends by itself when all fits the screen, leaves the text there, and passes
// colours on.
const less = "less -FRX"

// PagerOf is the pager for a screen: that of $LEKTOR_PAGER or $PAGER, none if the
// first of them that is set is empty, and where neither is, less for what does not
// fit.
func PagerOf(screen command.Screen) Pager {
	if screen.Width == 0 {
		return Pager{}
	}
	for _, name := range []string{"LEKTOR_PAGER", "PAGER"} {
		if v, ok := os.LookupEnv(name); ok {
			return Pager{Command: v}
		}
	}
	if _, err := exec.LookPath("less"); err != nil || screen.Height == 0 || os.Getenv("TERM") == "dumb" {
		return Pager{}
	}
	return Pager{Command: less, Screen: screen}
}

// colors reports whether colours get through to the screen: less needs to be told.
func (p Pager) colors() bool {
	words := strings.Fields(p.Command)
	if len(words) == 0 || path.Base(words[0]) != "less" {
		return true
	}
	options, set := os.LookupEnv("LESS")
	if !set {
		return true // see start
	}
	for _, word := range append(words[1:], strings.Fields(options)...) {
		word = strings.ToLower(word)
		if word == "--raw-control-chars" || !strings.HasPrefix(word, "--") && strings.Contains(word, "r") {
			return true
		}
	}
	return false
}

// show gives write a writer: the pager's standard input, or stdout. The pager
// is started with the first byte that the screen does not hold, so that an error
// does not flash by, and is waited for. A reader who leaves it early has seen what
// he wanted.
func (p Pager) show(s *command.Streams, write func(io.Writer) error) error {
	if p.Command == "" {
		return write(s.Out)
	}
	run := &pager{Pager: p, s: s}
	err := write(run)
	if cerr := run.end(); err == nil {
		err = cerr
	}
	return err
}

// pager is a pager that runs, or will when there is enough to show.
type pager struct {
	Pager
	s       *command.Streams
	held    bytes.Buffer // what nobody may have seen yet
	rows    int          // of the screen that held takes
	cmd     *exec.Cmd
	in      io.WriteCloser
	signals chan os.Signal
	passed  int  // bytes that it took
	left    bool // it reads no more
	plain   bool // there is none, text goes to stdout
}

// pipeSize is more than a pipe holds: what is beyond it has been read.
const pipeSize = 1 << 20

func (p *pager) Write(data []byte) (int, error) {
	switch {
	case p.plain:
		return p.s.Out.Write(data)
	case p.left:
		return len(data), nil
	case p.cmd == nil:
		p.held.Write(data)
		if p.fits(data) {
			return len(data), nil
		}
		if err := p.start(); err != nil {
			return len(data), p.instead(err)
		}
		return len(data), p.pass(p.held.Bytes())
	}
	if p.passed <= pipeSize {
		p.held.Write(data)
	}
	return len(data), p.pass(data)
}

// fits reports whether the screen holds what is held, of which the last came just
// now.
func (p *pager) fits(data []byte) bool {
	if p.Screen.Width == 0 {
		return false
	}
	for line := range bytes.Lines(data) {
		width := termsafe.Width(string(bytes.TrimRight(line, "\n")))
		p.rows += max(1, (width+p.Screen.Width-1)/p.Screen.Width)
	}
	return p.rows < p.Screen.Height // the prompt needs one
}

// start runs the pager.
func (p *pager) start() error {
	cmd := exec.Command("/bin/sh", "-c", p.Command)
	cmd.Stdout, cmd.Stderr = p.s.Out, p.s.Err
	if f := p.s.OutFile(); f != nil {
		cmd.Stdout = f
	}
	if _, set := os.LookupEnv("LESS"); !set {
		cmd.Env = append(os.Environ(), "LESS=FRX") // as git sets it
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	p.cmd, p.in = cmd, in
	// ^C is for the pager, which has the terminal, as often as it is pressed: what
	// ends at the first waits for the pager, and a second does not kill it.
	p.signals = make(chan os.Signal, 1)
	signal.Notify(p.signals, os.Interrupt)
	return nil
}

// pass writes to the pager. It has left when it does not take it.
func (p *pager) pass(data []byte) error {
	n, err := p.in.Write(data)
	if p.passed += n; p.passed > pipeSize {
		p.held = bytes.Buffer{}
	}
	if err == nil {
		return nil
	}
	p.left = true
	return p.wait()
}

// wait waits for the pager to end.
func (p *pager) wait() error {
	p.in.Close()
	err := p.cmd.Wait()
	signal.Stop(p.signals)
	p.cmd, p.left = nil, true
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (exit.ExitCode() == 126 || exit.ExitCode() == 127) {
		return p.instead(err)
	}
	return nil
}

// instead shows the text without a pager that could not be run.
func (p *pager) instead(err error) error {
	err = fmt.Errorf("pager: %s: %w", p.Command, err)
	const hint = "set $LEKTOR_PAGER or $PAGER, or use --no-pager"
	if p.passed > pipeSize {
		return command.Hint(err, hint) // it ran, and failed later
	}
	p.s.Report.Warn("%v; %s", err, hint)
	p.plain = true
	_, werr := p.s.Out.Write(p.held.Bytes())
	p.held = bytes.Buffer{}
	return werr
}

// end waits for the pager, or prints what the screen holds.
func (p *pager) end() error {
	switch {
	case p.cmd != nil:
		return p.wait()
	case !p.left && !p.plain && p.held.Len() > 0:
		_, err := p.s.Out.Write(p.held.Bytes())
		return err
	}
	return nil
}
