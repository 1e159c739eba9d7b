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

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// MboxOptions are the options of [Mbox].
type MboxOptions struct {
	Common
	To     string // a file that is not there yet; "-" for standard output
	Images bool   // messages show images
	Print  cmdline.PrinterOptions
}

// Mbox writes entries as a mailbox in the form mboxrd (RFC 4155 knows it as one of
// several): to standard output, or to a new file, which appears when it is whole. A file
// that exists is refused, since mail programs may be at work on it; a device or a named
// pipe is written to.
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
		return cmdline.Hint(fmt.Errorf("%s is a directory", o.To), "for a maildir, there is the command maildir")
	case err == nil && !fi.Mode().IsRegular():
		err = atomicfile.Output(o.To, write)
	default:
		err = atomicfile.CreatePrivateFrom(o.To, write)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return cmdline.Hint(fmt.Errorf("%s exists already", o.To), "name a new file; the command maildir adds to a maildir, each entry once")
	case errors.Is(err, fs.ErrNotExist):
		if _, derr := os.Stat(filepath.Dir(o.To)); derr != nil {
			return cmdline.Hint(derr, "mailboxes are made, directories for them are not")
		}
	}
	if err != nil {
		return err
	}
	for _, p := range m.written {
		if err := m.done(p, o.To); err != nil {
			return err
		}
	}
	return m.end(o.To)
}

// mailbox writes all messages, and remembers them for what is printed when they are in
// place.
func (m *mailing) mailbox(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	err := m.inBatches(ctx, func(batch []*post) error {
		for _, p := range batch {
			if _, err := out.Write(inMbox(p)); err != nil {
				return err
			}
			m.written = append(m.written, p)
		}
		return nil
	})
	return cmp.Or(err, out.Flush())
}

// inMbox returns a message as it stands in a mailbox: after a line that begins with
// "From ", and before an empty one. Lines in it that begin so, whatever number of '>'
// is before that, get one more. Flags are in the fields that mail programs have for
// them.
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

// statusOf returns the fields of the flags: R read, O not new, F flagged, D deleted.
func statusOf(r lektordir.Ref) string {
	status, x := "", ""
	if !r.Unread() {
		status += "R"
	}
	if r.Place == lektordir.Cur {
		status += "O"
	}
	for _, flag := range []struct {
		ours   byte
		theirs string
	}{{'T', "D"}, {'F', "F"}} {
		if r.HasFlag(flag.ours) {
			x += flag.theirs
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
