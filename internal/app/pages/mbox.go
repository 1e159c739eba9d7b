package pages

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// MboxOptions are the options of [Mbox].
type MboxOptions struct {
	Common
	Images bool // messages show images
}

// Mbox writes entries to standard output as a mailbox in the form mboxrd, one of the variants that
// RFC 4155 mentions.
func Mbox(ctx context.Context, o MboxOptions, s *cmdline.Streams) error {
	m, err := newMailing(o.Common, o.Images, cmdline.PrinterOptions{}, nil, s)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(s.Out, 64<<10)
	err = m.inBatches(ctx, func(batch []*post) error {
		for _, p := range batch {
			if _, err := out.Write(inMbox(p)); err != nil {
				return err
			}
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
	for _, flag := range []string{"TD", "FF"} { // of the entry, and of the message
		if r.HasFlag(flag[0]) {
			x += flag[1:]
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
