package cmdline

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Streams are the streams of a command: data on In and Out, messages through Report. Err is for
// writers that bypass Report, such as child processes.
type Streams struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Report *Reporter
}

const streamsKey = "github.com/lektordir/lektor/internal/cli/cmdline.Streams"

// NewStreams returns streams for a command with a name. Tests pass buffers.
func NewStreams(name string, in io.Reader, out, err io.Writer) *Streams {
	s := &Streams{In: in, Out: out, Err: err}
	s.Report = &Reporter{name: name, w: err, pace: 100 * time.Millisecond}
	s.Report.terminal = isTerminal(err) && os.Getenv("TERM") != "dumb"
	return s
}

// Env returns the streams of the process, for a command with a name.
func Env(name string) *Streams { return NewStreams(name, os.Stdin, os.Stdout, os.Stderr) }

// StreamsOf returns the streams of the running app; every call in one run returns the same.
func StreamsOf(c *cli.Context) *Streams {
	if s, ok := c.App.Metadata[streamsKey].(*Streams); ok {
		return s
	}
	return NewStreams(c.App.Name, c.App.Reader, c.App.Writer, c.App.ErrWriter)
}

// InFile returns In if it is a file, for a child process or a screen that reads from it directly;
// otherwise nil.
func (s *Streams) InFile() *os.File {
	in := s.In
	if r, ok := in.(*stdinReader); ok {
		in = r.Reader
	}
	f, _ := in.(*os.File)
	return f
}

// InIsTerminal reports whether In is a terminal.
func (s *Streams) InIsTerminal() bool {
	f := s.InFile()
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// OutIsTerminal reports whether Out is a terminal.
func (s *Streams) OutIsTerminal() bool { return isTerminal(s.Out) }

// ErrIsTerminal reports whether messages go to a terminal.
func (s *Streams) ErrIsTerminal() bool { return isTerminal(s.Err) }

// Width returns the width of the terminal Out in columns, and 80 if Out is not a terminal or its
// size is unknown.
func (s *Streams) Width() int {
	if w, _ := s.Size(); w > 0 {
		return w
	}
	return 80
}

// Size returns the columns and lines of the terminal Out, each 0 if Out is not a terminal or its
// size is unknown.
func (s *Streams) Size() (columns, lines int) { return size(s.Out) }

// size returns the columns and lines of the terminal w.
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

// Color reports whether output to Out may be coloured: Out is a terminal, $TERM is set and not
// dumb, and $NO_COLOR is unset or empty.
func (s *Streams) Color() bool {
	name := os.Getenv("TERM")
	return s.OutIsTerminal() && os.Getenv("NO_COLOR") == "" && name != "" && name != "dumb"
}

// OutFile returns Out if it is a file, for a child process that writes to it directly; otherwise
// nil.
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

// Output writes to the file that the user names, atomically as [atomicfile.Output] does, or to Out
// if file is "" or "-".
func (s *Streams) Output(file string, write func(io.Writer) error) error {
	if file == "" || file == "-" {
		return write(s.Out)
	}
	return atomicfile.Output(file, write)
}

// ReadFile reads a file, or In for "-", to its end, as [ReadAll] does: a file may be an endless device.
func (s *Streams) ReadFile(ctx context.Context, file string, limit int64) ([]byte, error) {
	in, name := s.In, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in, name = f, file
	} else if s.InIsTerminal() {
		s.Report.Info("reading standard input; end it with ^D")
	}
	data, err := ReadAll(ctx, in, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// Reporter writes messages for the user to stderr, one per line with the command's name in front,
// made safe for a terminal. It is safe for concurrent use. A progress bar is redrawn below each
// line.
type Reporter struct {
	name     string
	w        io.Writer
	terminal bool
	pace     time.Duration // time between two drawings of the bar

	mu       sync.Mutex
	bar      *Progress
	warnings int
	errors   int
	hinted   map[string]bool // hints that were printed
}

// Warn reports a problem that is not a failure.
func (r *Reporter) Warn(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings++
	r.line("warning: " + fmt.Sprintf(format, args...))
}

// Error reports a failure; the command continues, and [Main] ensures that it does not exit with
// status 0. If the action returns an error, that determines the status.
func (r *Reporter) Error(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors++
	r.line(fmt.Sprintf(format, args...))
}

// Warnings limits the number of similar warnings: it reports the first maxWarnings, and adds to the
// last one that there are more. It is safe for concurrent use.
type Warnings struct {
	Report *Reporter
	More   string // text added to the last warning; "" means " (there are more like this)"

	n atomic.Int64
}

// maxWarnings is the number of warnings reported.
const maxWarnings = 20

// Warn is [Reporter.Warn] for the first maxWarnings calls.
func (w *Warnings) Warn(format string, args ...any) {
	switch n := w.n.Add(1); {
	case n < maxWarnings:
		w.Report.Warn(format, args...)
	case n == maxWarnings:
		w.Report.Warn("%s", fmt.Sprintf(format, args...)+cmp.Or(w.More, " (there are more like this)"))
	}
}

// Info reports a result, such as a summary.
func (r *Reporter) Info(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(fmt.Sprintf(format, args...))
}

// Print reports err as [Main] does: joined errors one per line, each followed by its hint, but each
// hint only once. It counts them as errors. An [ExitError] without Err prints nothing.
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

// Warnings returns the number of warnings reported.
func (r *Reporter) Warnings() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.warnings
}

// Errors returns the number of errors reported.
func (r *Reporter) Errors() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors
}

// line writes one line, and redraws the bar. It removes user names and passwords from URLs, as
// messages end up in logs and mails.
func (r *Reporter) line(message string) {
	message = strings.ReplaceAll(strings.TrimSpace(message), "\n", "; ")
	if strings.Contains(message, "@") {
		message = feedurl.RedactText(message)
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

// closeBar removes a bar that an action did not remove.
func (r *Reporter) closeBar() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil {
		r.bar.clear()
		r.bar = nil
	}
}
