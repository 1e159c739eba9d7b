package pages

import (
	"context"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// MessageOptions are the options of [Message].
type MessageOptions struct {
	Common
	Entry  string // path or unique name
	Images bool   // the message shows images
}

// Message writes an entry as a mail message (RFC 5322). It marks nothing.
func Message(_ context.Context, o MessageOptions, s *cmdline.Streams) error {
	r, err := o.open(s)
	if err != nil {
		return err
	}
	ref, err := r.Resolve(o.Entry, 0)
	if err != nil {
		return err
	}
	e := r.Record(ref)
	if err := e.Read(lektordir.AllFields); err != nil {
		return err
	}
	data, err := r.letter(e, o.Images).Message().Bytes()
	if err == nil {
		_, err = s.Out.Write(data)
	}
	return err
}
