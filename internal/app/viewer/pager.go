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

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Pager is a program that shows text a screen at a time. The zero value means no pager.
type Pager struct {
	Command string // run by /bin/sh
	// Screen is the screen: text that fits it is printed without the pager. If it is zero, all
	// text is passed to the pager.
	Screen cmdline.Screen
}

// less exits if the text fits one screen (-F), passes colours on (-R), and leaves the text on
// the screen (-X).
const less = "less -FRX"

// PagerOf returns the pager for a screen: $LEKTOR_PAGER, else $PAGER, where an empty value means
// no pager. If neither is set, it is less for text that does not fit the screen.
func PagerOf(screen cmdline.Screen) Pager {
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

// colors reports whether the pager shows colours. less needs -R or -r for that.
func (p Pager) colors() bool {
	words := strings.Fields(p.Command)
	if len(words) == 0 || path.Base(words[0]) != "less" {
		return true
	}
	options, set := os.LookupEnv("LESS")
	if !set {
		return true // start sets LESS=FRX
	}
	for _, word := range append(words[1:], strings.Fields(options)...) {
		word = strings.ToLower(word)
		if word == "--raw-control-chars" || !strings.HasPrefix(word, "--") && strings.Contains(word, "r") {
			return true
		}
	}
	return false
}

// show calls write with a writer to the pager, or to stdout. The pager starts when the text no
// longer fits the screen, so that it does not hide an early error. show waits for it to end. If
// the user quits the pager early, the rest of the text is discarded without an error.
func (p Pager) show(s *cmdline.Streams, write func(io.Writer) error) error {
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

// pager is a writer to a pager that runs or will be started.
type pager struct {
	Pager
	s       *cmdline.Streams
	text    bytes.Buffer // what was written until the pager ended
	rows    int          // screen rows of the text
	to      io.Writer    // the pager; nil before it runs, and io.Discard after the user has quit it
	cmd     *exec.Cmd    // nil unless it runs
	in      io.Closer
	signals chan os.Signal
}

func (p *pager) Write(data []byte) (int, error) {
	text := data
	if p.to == nil || p.cmd != nil {
		p.text.Write(data)
	}
	if p.to == nil {
		if p.fits(data) {
			return len(data), nil
		}
		if err := p.start(); err != nil {
			return 0, cmdline.Hint(fmt.Errorf("pager: %w", err), pagerHint)
		}
		text = p.text.Bytes()
	}
	_, err := p.to.Write(text)
	if err != nil && p.cmd != nil {
		err = p.wait()
	}
	return len(data), err
}

// quit reports whether the user has quit the pager.
func (p *pager) quit() bool { return p.to == io.Discard }

// fits adds the rows of data, and reports whether all text fits the screen.
func (p *pager) fits(data []byte) bool {
	if p.Screen.Width == 0 {
		return false
	}
	for line := range bytes.Lines(data) {
		width := termsafe.Width(string(bytes.TrimRight(line, "\n")))
		p.rows += max(1, (width+p.Screen.Width-1)/p.Screen.Width)
	}
	return p.rows < p.Screen.Height // the prompt needs a row
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
	p.cmd, p.in, p.to = cmd, in, in
	// ^C is for the pager, which has the terminal. The first one ends ctx, and then this process
	// waits for the pager. Further ones must not kill this process.
	p.signals = make(chan os.Signal, 1)
	signal.Notify(p.signals, os.Interrupt)
	return nil
}

const pagerHint = "set $LEKTOR_PAGER or $PAGER, or use --no-pager"

// wait waits for the pager to end. If it could not be run, the text goes to stdout.
func (p *pager) wait() error {
	p.in.Close()
	err := p.cmd.Wait()
	signal.Stop(p.signals)
	p.cmd, p.to = nil, io.Discard
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (exit.ExitCode() == 126 || exit.ExitCode() == 127) {
		p.s.Report.Warn("pager: %s: %v; %s", p.Command, err, pagerHint)
		p.to = p.s.Out
		_, err = p.text.WriteTo(p.to)
		return err
	}
	return nil
}

// end waits for the pager, or prints the text if it fits the screen.
func (p *pager) end() (err error) {
	switch {
	case p.cmd != nil:
		err = p.wait()
	case p.to == nil:
		_, err = p.text.WriteTo(p.s.Out)
	}
	return err
}
