// Package session is the setup of a run of a command of lektor-view: the lektor-dir, the query and
// the format. It also resolves the names and numbers of entries.
package session

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
)

// Common are the options of every command.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock. Its location is the time zone of days and of printed times. nil means
	// time.Now.
	Now func() time.Time
	// Terminal names the terminal that numbers belong to, see [Terminal].
	Terminal string
	// Index are the options of the index, see package index.
	Index index.Options
}

// Session is one run of a command.
type Session struct {
	*entrystore.Store
	Clock   func() time.Time
	Query   *query.Query
	Printer *cmdline.Printer[*entrystore.Record] // nil if no format is set

	terminal string
}

// Open parses the query and the format of a command, and opens the lektor-dir.
func (c Common) Open(words []string, format cmdline.PrinterOptions, s *cmdline.Streams) (*Session, error) {
	v := &Session{Clock: c.Now, terminal: c.Terminal}
	if v.Clock == nil {
		v.Clock = time.Now
	}
	var err error
	if v.Query, err = entrystore.ParseQuery(c.Dir, words); err != nil {
		return nil, err
	}
	if format.Format != "" {
		if v.Printer, err = cmdline.NewPrinter(s.Out, format, entrystore.Columns()); err != nil {
			return nil, err
		}
	}
	if v.Store, _, err = index.Open(c.Dir, v.Clock, s, c.Index); err == nil {
		v.Numbers = true
	}
	return v, err
}

// Terminal returns a name of the terminal of this process: the device number, in hexadecimal, of the first standard
// stream that is a terminal, or "none".
func Terminal() string {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		var st unix.Stat_t
		if term.IsTerminal(int(f.Fd())) && unix.Fstat(int(f.Fd()), &st) == nil {
			return strconv.FormatUint(uint64(st.Rdev), 16)
		}
	}
	return "none"
}
