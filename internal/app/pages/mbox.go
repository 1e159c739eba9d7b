package pages

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// MboxOptions are the options of [Mbox].
type MboxOptions struct {
	Common
	To     string // a file that does not exist yet; "-" for standard output
	Images bool   // messages show images
	Print  cmdline.PrinterOptions
}

// Mbox writes entries as a mailbox in the form mboxrd, one of the variants that RFC 4155
// mentions: to standard output, or to a new file, which appears when it is complete. It refuses a
// file that exists, since a mail program may be using it, unless it is a device or a named pipe.
func Mbox(ctx context.Context, o MboxOptions, s *cmdline.Streams) error {
	m, err := newMailing(o.Common, o.Images, o.Print, nil, s)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return m.mailbox(ctx, w) }
	if o.To == "-" {
		return write(s.Out)
	}
	fi, err := os.Stat(o.To)
	switch {
	case err == nil && fi.IsDir():
		return cmdline.Hint(fmt.Errorf("%s is a directory", o.To), "to add to a maildir, use the command maildir")
	case err == nil && !fi.Mode().IsRegular():
		err = atomicfile.Output(o.To, write)
	default:
		err = atomicfile.CreatePrivateFrom(o.To, write)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return cmdline.Hint(fmt.Errorf("%s exists already", o.To),
			"name a new file; the command maildir adds to a maildir, each entry once")
	case errors.Is(err, fs.ErrNotExist):
		if _, derr := os.Stat(filepath.Dir(o.To)); derr != nil {
			return cmdline.Hint(derr, "make the directory first")
		}
	}
	if err != nil {
		return err
	}
	for _, p := range m.pending {
		if err := m.done(p, o.To); err != nil {
			return err
		}
	}
	return m.end(o.To)
}

// mailbox writes all messages, and adds them to m.pending, to be printed when the mailbox is in
// place.
func (m *mailing) mailbox(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	err := m.inBatches(ctx, func(batch []*post) error {
		for _, p := range batch {
			if _, err := out.Write(inMbox(p)); err != nil {
				return err
			}
			m.pending = append(m.pending, p)
		}
		return nil
	})
	return cmp.Or(err, out.Flush())
}

// inMbox returns a message in the form of mboxrd: a line that begins with "From ", the message,
// and an empty line. Lines of the message that begin with "From ", or with one or more '>' and
// "From ", get another '>'. Flags are in the header fields Status and X-Status.
func inMbox(p *post) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "From %s %s\n", p.message.From.Address, p.record.Ref.Delivered().UTC().Format(time.ANSIC))
	b.WriteString(statusOf(p.record.Ref))
	for line := range bytes.Lines(p.data) {
		if bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From ")) {
			b.WriteByte('>')
		}
		b.Write(line)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// statusOf returns the header fields for flags: R is read, O not new, F flagged, D deleted.
func statusOf(r lektordir.Ref) string {
	status, x := "", ""
	if !r.Unread() {
		status += "R"
	}
	if r.Place == lektordir.Cur {
		status += "O"
	}
	for _, flag := range []struct {
		pagePaths byte
		letter    string
	}{{'T', "D"}, {'F', "F"}} {
		if r.HasFlag(flag.pagePaths) {
			x += flag.letter
		}
	}
	text := ""
	if status != "" {
		text += "Status: " + status + "\n"
	}
	if x != "" {
		text += "X-Status: " + x + "\n"
	}
	return text
}
