// Package session is one run of a command of lektor-view: its lektor-dir, query and
// format, and which entries the user means by numbers and names.
package session

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/index"
	"github.com/lektordir/lektor/internal/query"
)

// Common are the options of every command.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock; its location is the time zone of days and of what is
	// shown. The default is time.Now.
	Now func() time.Time
	// Terminal names the terminal that numbers belong to, see [Terminal].
	Terminal string
	// Index is how the index is kept that answers queries, see package index.
	Index index.Options
}

// Session is one run of a command.
type Session struct {
	*entries.Store
	Clock   func() time.Time
	Query   *query.Query
	Printer *command.Printer[*entries.Record] // nil unless a format was asked for

	terminal string
}

// Open reads the query and the format of a command, and opens the lektor-dir.
func (c Common) Open(words []string, format command.PrinterOptions, s *command.Streams) (*Session, error) {
	v := &Session{Clock: c.Now, terminal: c.Terminal}
	if v.Clock == nil {
		v.Clock = time.Now
	}
	var err error
	if v.Query, err = entries.ParseQuery(c.Dir, words); err != nil {
		return nil, err
	}
	if format.Format != "" {
		if v.Printer, err = command.NewPrinter(s.Out, format, entries.Columns()); err != nil {
			return nil, err
		}
	}
	v.Store, _, err = index.Open(c.Dir, v.Clock, s, c.Index)
	return v, err
}

// Terminal names the terminal of this process, so that each has a list of its
// own: the device behind one of the standard streams, or "none".
func Terminal() string {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if name := terminalOf(f); name != "" {
			return name
		}
	}
	return "none"
}

// terminalOf names the terminal that a file is by its device number, "" if it
// is none.
func terminalOf(f *os.File) string {
	if !term.IsTerminal(int(f.Fd())) {
		return ""
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(st.Rdev), 16)
}
