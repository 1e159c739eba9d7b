package pages

import (
	"cmp"
	"context"
	"io"
	"net/mail"
	"slices"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/content/mailmsg"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// DigestOptions are the options of [Digest].
type DigestOptions struct {
	Common
	Entries []string // paths or unique names; "-" stands for those on standard input
	Nul     bool     // entries on standard input end in NUL
	Lines   int      // maximum lines of each content
	Full    bool     // the whole of each content, instead of Lines
	Images  bool     // show images
	Mail    string   // write a message to these addresses; "" for the HTML alone
}

// Digest writes entries as one HTML document, or as a message that contains it, feed by feed,
// oldest first. It marks nothing. Without entries it writes nothing.
func Digest(ctx context.Context, o DigestOptions, s *cmdline.Streams) error {
	var to []*mail.Address
	if o.Mail != "" {
		var err error
		if to, err = mail.ParseAddressList(o.Mail); err != nil {
			return cmdline.Usagef("--mail %s: %v", o.Mail, err)
		}
	}
	r, err := o.open(s)
	if err != nil {
		return err
	}
	list, err := r.named(ctx, o)
	if err != nil {
		return err
	}
	var digested []*mailmsg.Entry
	for _, e := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := e.Read(lektordir.AllFields); err != nil {
			r.S.Report.Print(err) // the exit status becomes 1, and the other entries are written
			continue
		}
		digested = append(digested, r.letter(e, o.Images))
	}
	if len(digested) == 0 {
		return nil
	}
	title, text, html := mailmsg.Digest(digested, mailmsg.DigestOptions{Lines: o.Lines, Full: o.Full})
	if to == nil {
		_, err := io.WriteString(s.Out, html)
		return err
	}
	m := &mailmsg.Message{
		From: mail.Address{Name: "lektor", Address: to[0].Address}, To: to, Subject: title, Date: r.Now, Text: text,
		HTML:   html,
		Fields: []mailmsg.Field{{Name: "Auto-Submitted", Value: "auto-generated"}},
	}
	data, err := m.Bytes()
	if err == nil {
		_, err = s.Out.Write(data)
	}
	return err
}

// named returns the entries that the user names, sorted by feed and date.
func (r *run) named(ctx context.Context, o DigestOptions) ([]*entrystore.Record, error) {
	refs, _, err := entrystore.Named(ctx, o.Entries, o.Nul, r.S, r.Find)
	if err != nil {
		return nil, err
	}
	list := make([]*entrystore.Record, len(refs))
	for i, ref := range refs {
		list[i] = r.Record(ref)
	}
	list, err = entrystore.Filter(ctx, list, func(e *entrystore.Record) bool {
		err := e.Read(lektordir.FieldPubDate)
		if err != nil {
			r.S.Report.Print(err)
		}
		return err == nil
	})
	titles := map[string]string{}
	for _, e := range list {
		if titles[e.Ref.Feed] == "" {
			titles[e.Ref.Feed] = query.Fold(mailmsg.FeedTitle(e.Feed()))
		}
	}
	slices.SortStableFunc(list, func(a, b *entrystore.Record) int {
		return cmp.Or(cmp.Compare(titles[a.Ref.Feed], titles[b.Ref.Feed]), cmp.Compare(a.Ref.Feed, b.Ref.Feed),
			entrystore.ByDate(a, b))
	})
	return list, err
}
