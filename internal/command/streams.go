package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/redact"
	"github.com/lektordir/lektor/internal/termsafe"
)

// Streams is where a command reads and writes: data on In and Out, messages
// through Report. Err is for what writes there itself, such as a child.
type Streams struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Report *Reporter
}

const streamsKey = "github.com/lektordir/lektor/internal/command.Streams"

// NewStreams returns streams for a command of that name; a test passes buffers.
func NewStreams(name string, in io.Reader, out, err io.Writer) *Streams {
	s := &Streams{In: in, Out: out, Err: err}
	s.Report = &Reporter{name: name, w: err, pace: 100 * time.Millisecond}
	s.Report.terminal = isTerminal(err) && os.Getenv("TERM") != "dumb"
	return s
}

// Env returns the streams of the process, for a command of that name.
func Env(name string) *Streams { return NewStreams(name, os.Stdin, os.Stdout, os.Stderr) }

// StreamsOf returns the streams of the app that runs; every call in one run
// returns the same.
func StreamsOf(c *cli.Context) *Streams {
	if s, ok := c.App.Metadata[streamsKey].(*Streams); ok {
		return s
	}
	return NewStreams(c.App.Name, c.App.Reader, c.App.Writer, c.App.ErrWriter)
}

// InFile returns the file that In is, for a child process or a screen to read from
// directly, or nil.
func (s *Streams) InFile() *os.File {
	in := s.In
	if r, ok := in.(*reader); ok {
		in = r.Reader
	}
	f, _ := in.(*os.File)
	return f
}

// InIsTerminal reports whether a person types what is read.
func (s *Streams) InIsTerminal() bool {
	f := s.InFile()
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// OutIsTerminal reports whether a person sees what is written to Out.
func (s *Streams) OutIsTerminal() bool { return isTerminal(s.Out) }

// ErrIsTerminal reports whether a person sees the messages.
func (s *Streams) ErrIsTerminal() bool { return isTerminal(s.Err) }

// Width returns the number of columns of the terminal that Out is, and 80
// where it is none or will not say.
func (s *Streams) Width() int {
	if w, _ := s.Size(); w > 0 {
		return w
	}
	return 80
}

// Size returns the columns and lines of the terminal that Out is, each 0 where it
// is none or will not say.
func (s *Streams) Size() (columns, lines int) { return size(s.Out) }

// size returns the columns and lines of the terminal that w is.
func size(w io.Writer) (columns, lines int) {
	f := fileOf(w)
	if f == nil {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, lines
}

// Color reports whether Out may be coloured: it is a terminal that is not dumb
// and has a name, and $NO_COLOR is unset or empty.
func (s *Streams) Color() bool {
	name := os.Getenv("TERM")
	return s.OutIsTerminal() && os.Getenv("NO_COLOR") == "" && name != "" && name != "dumb"
}

// OutFile returns the file that Out is, for a child process to write to
// directly, or nil.
func (s *Streams) OutFile() *os.File { return fileOf(s.Out) }

func fileOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *output:
		return fileOf(w.Writer)
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f := fileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Output writes what a command makes to the file that the user names, all of it or
// nothing as [atomicfile.Output] does, or, named "" or "-", to Out.
func (s *Streams) Output(file string, write func(io.Writer) error) error {
	if file == "" || file == "-" {
		return write(s.Out)
	}
	return atomicfile.Output(file, write)
}

// Reporter writes messages for the user on stderr, each on a line that begins
// with the command's name, cleaned of what strangers may have put into it. It
// is safe for concurrent use, and a progress bar makes way for every line.
type Reporter struct {
	name     string
	w        io.Writer
	terminal bool
	pace     time.Duration // between two drawings of the bar

	mu       sync.Mutex
	bar      *bar
	warnings int
	errors   int
	hinted   map[string]bool // hints that were given
}

// Warn reports something that the user should know and that is not a failure.
func (r *Reporter) Warn(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings++
	r.line("warning: " + fmt.Sprintf(format, args...))
}

// Error reports a failure; the command goes on, and [Main] makes sure that it
// does not end with status 0. An action that returns an error of its own
// decides the status.
func (r *Reporter) Error(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors++
	r.line(fmt.Sprintf(format, args...))
}

// Warnings warns of something of which there may be many: the first twenty are
// told, the last of them with a word that there are more. It is safe for
// concurrent use.
type Warnings struct {
	Report *Reporter
	More   string // that word; default " (there are more like this)"

	n atomic.Int64
}

// maxWarnings is how many are told.
const maxWarnings = 20

// Warn is [Reporter.Warn], so many times.
func (w *Warnings) Warn(format string, args ...any) {
	switch n := w.n.Add(1); {
	case n < maxWarnings:
		w.Report.Warn(format, args...)
	case n == maxWarnings:
		w.Report.Warn("%s", fmt.Sprintf(format, args...)+cmp.Or(w.More, " (there are more like this)"))
	}
}

// Info reports what was done, such as a summary.
func (r *Reporter) Info(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(fmt.Sprintf(format, args...))
}

// Print reports err as [Main] does: joined errors one a line, each followed by
// its hint, each of which is said once. It counts them as errors. An error without words of its own
// ([ExitError] without Err) prints nothing.
func (r *Reporter) Print(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range split(err) {
		r.errors++
		r.line(err.Error())
		if hint := hintOf(err); hint != "" && !r.hinted[hint] {
			if r.hinted == nil {
				r.hinted = map[string]bool{}
			}
			r.hinted[hint] = true
			r.line("hint: " + hint)
		}
	}
}

// Warnings returns how many warnings were reported.
func (r *Reporter) Warnings() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.warnings
}

// Errors returns how many errors were reported.
func (r *Reporter) Errors() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors
}

// line writes one line, between two drawings of the bar. Users and passwords are
// left out of URLs: messages land in logs and mails, whoever wrote the URL.
func (r *Reporter) line(message string) {
	message = strings.ReplaceAll(strings.TrimSpace(message), "\n", "; ")
	if strings.Contains(message, "@") {
		message = redact.Text(message)
	}
	text := r.name + ": " + termsafe.Line(message) + "\n"
	if r.bar == nil {
		io.WriteString(r.w, text)
		return
	}
	r.bar.clear()
	io.WriteString(r.w, text)
	r.bar.draw()
}

// closeBar takes a bar off the screen that an action left there.
func (r *Reporter) closeBar() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil {
		r.bar.clear()
		r.bar = nil
	}
}

// Progress shows how far long work is, on a terminal; elsewhere it does
// nothing. It is safe for concurrent use. A nil *Progress does nothing either.
type Progress struct {
	r   *Reporter
	bar *bar
}

// Progress begins a bar of total steps with a description in front of it, or
// nothing at all where stderr is no terminal. There is one bar at a time. Call
// [Progress.Done] at the end; what ends early is cleaned up by [Main].
func (r *Reporter) Progress(total int, description string) *Progress {
	if total <= 0 {
		return nil
	}
	return r.begin(total, description)
}

// Counter is [Reporter.Progress] for work of which nobody knows how many steps it has: it
// shows how many are done.
func (r *Reporter) Counter(description string) *Progress { return r.begin(-1, description) }

func (r *Reporter) begin(total int, description string) *Progress {
	if !r.terminal {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil {
		return nil
	}
	r.bar = newBar(r.w, r.pace, total, description)
	r.bar.draw()
	return &Progress{r: r, bar: r.bar}
}

// do calls f while the bar is still the one that is shown.
func (p *Progress) do(f func()) {
	if p == nil {
		return
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.r.bar == p.bar {
		f()
	}
}

// Add counts n steps as done.
func (p *Progress) Add(n int) { p.do(func() { p.bar.add(n) }) }

// Done takes the bar off the screen.
func (p *Progress) Done() {
	p.do(func() {
		p.bar.clear()
		p.r.bar = nil
	})
}
