// Package viewer is the room of lektor-view: to select entries, list and
// show them, and to record what was read. Each command is a function of
// options and streams that knows nothing of a command line.
//
// Nothing here takes a lock. Entries may arrive, move and go while a command
// runs; what is gone when it is to be shown is left out, and what the user
// named is looked for where it is now.
package viewer

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/index"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/units"
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

// viewer is one run of a command.
type viewer struct {
	*entries.Store
	clock    func() time.Time
	terminal string
	query    *query.Query
	printer  *command.Printer[*entries.Record] // nil unless a format was asked for
	journal  *journal                          // of what is moved; nil for a command that moves nothing
	failures failures
}

// open reads the query and the format of a command, and opens the lektor-dir.
func (c Common) open(words []string, format command.PrinterOptions, s *command.Streams) (*viewer, error) {
	v := &viewer{clock: c.Now, terminal: c.Terminal}
	if v.clock == nil {
		v.clock = time.Now
	}
	var err error
	if v.query, err = entries.ParseQuery(c.Dir, words); err != nil {
		return nil, err
	}
	if format.Format != "" {
		if v.printer, err = command.NewPrinter(s.Out, format, entries.Columns()); err != nil {
			return nil, err
		}
	}
	v.Store, _, err = index.Open(c.Dir, v.clock, s, c.Index)
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

// oneCause are errors that all entries meet which are to be moved.
var oneCause = []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EPERM}

// failures count entries that could not be moved for a cause that was told.
type failures map[syscall.Errno]int

// failed reports that an entry could not be moved. What all meet, as on a disk that
// is read-only, is told of the first, and of the others by [viewer.tellFailed].
func (v *viewer) failed(err error) {
	for _, errno := range oneCause {
		if !errors.Is(err, errno) {
			continue
		}
		if v.failures == nil {
			v.failures = failures{}
		}
		if v.failures[errno]++; v.failures[errno] > 1 {
			return
		}
	}
	v.S.Report.Print(err)
}

// tellFailed tells of how many entries besides the first nothing was said.
func (v *viewer) tellFailed() {
	for _, errno := range oneCause {
		if n := v.failures[errno] - 1; n > 0 {
			v.S.Report.Error("%s could not be moved: %v", units.Count(n, "more entry"), errno)
		}
	}
	v.failures = nil
}
