package pages

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/mail"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/letter"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/spill"
	"github.com/lektordir/lektor/lektordir"
)

// DigestOptions are the options of [Digest].
type DigestOptions struct {
	Common
	Entries []string // paths or unique names; "-" stands for those on standard input
	Nul     bool     // those end in NUL
	Lines   int      // of each content
	Full    bool     // all of each content instead
	Images  bool     // show images
	Mail    string   // write a message to these addresses; "" for the HTML alone
}

// Digest writes entries as one HTML document, or as a message with it, feed by feed,
// from old to new. It marks nothing. Of no entries it makes nothing.
func Digest(ctx context.Context, o DigestOptions, s *command.Streams) error {
	var to []*mail.Address
	if o.Mail != "" {
		var err error
		if to, err = mail.ParseAddressList(o.Mail); err != nil {
			return command.Usagef("--mail %s: %v", o.Mail, err)
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
	defer list.Close()
	d := &digesting{o: letter.DigestOptions{Lines: o.Lines, Full: o.Full}, text: spill.NewPile(r.Most), html: spill.NewPile(r.Most)}
	defer d.text.Close()
	defer d.html.Close()
	for e, err := range entries.While(ctx, list.All()) {
		if err != nil {
			return err
		}
		if err := e.Read(lektordir.AllFields); err != nil {
			r.S.Report.Print(err) // the others are written, and the status tells
			continue
		}
		d.add(r.letter(e, o.Images), to != nil)
		e.Forget()
	}
	if len(d.feeds) == 0 {
		return nil
	}
	if to == nil {
		return d.writeHTML(s.Out, o.Images)
	}
	title, _, _ := letter.DigestDocument(d.html.Len(), len(d.feeds), o.Images)
	var text, html strings.Builder
	if err := cmp.Or(d.write(&text, d.text, func(f *letter.DigestFeed) string { text, _ := f.Head(); return text }), d.writeHTML(&html, o.Images)); err != nil {
		return err
	}
	m := &letter.Message{
		From: mail.Address{Name: "lektor", Address: to[0].Address}, To: to, Subject: title, Date: r.Now, Text: text.String(), HTML: html.String(),
		Fields: []letter.Field{{Name: "Auto-Submitted", Value: "auto-generated"}},
	}
	data, err := m.Bytes()
	if err == nil {
		_, err = s.Out.Write(data)
	}
	return err
}

// digesting is a digest that is made: above the entries of a feed stands how many there
// are, so it is written when all are there.
type digesting struct {
	o          letter.DigestOptions
	feeds      []*letter.DigestFeed
	last       string      // the hash of the last one
	text, html *spill.Pile // of each entry; text only for a message
}

func (d *digesting) add(e *letter.Entry, message bool) {
	if len(d.feeds) == 0 || d.last != e.Ref.Feed {
		d.feeds = append(d.feeds, &letter.DigestFeed{Feed: e.Feed})
		d.last = e.Ref.Feed
	}
	d.feeds[len(d.feeds)-1].Add(e)
	text, html := e.Digest(d.o)
	if message {
		d.text.Add([]byte(text))
	}
	d.html.Add([]byte(html))
}

// write writes the entries of a pile, and above those of a feed what head gives.
func (d *digesting) write(w io.Writer, pile *spill.Pile, head func(*letter.DigestFeed) string) error {
	feeds, left := d.feeds, 0
	for part, err := range pile.Texts() {
		if err == nil && left == 0 {
			_, err = io.WriteString(w, head(feeds[0]))
			left, feeds = feeds[0].Entries, feeds[1:]
		}
		if err == nil {
			_, err = io.WriteString(w, part)
		}
		if err != nil {
			return err
		}
		left--
	}
	return nil
}

// writeHTML writes the document.
func (d *digesting) writeHTML(w io.Writer, images bool) error {
	b := bufio.NewWriterSize(w, 64<<10)
	_, head, foot := letter.DigestDocument(d.html.Len(), len(d.feeds), images)
	_, _ = b.WriteString(head)
	err := d.write(b, d.html, func(f *letter.DigestFeed) string { _, html := f.Head(); return html })
	_, _ = b.WriteString(foot)
	return cmp.Or(err, b.Flush())
}

// named gives the entries that the user names, feed by feed.
func (r *run) named(ctx context.Context, o DigestOptions) (*entries.Collection, error) {
	titles := map[string]string{}
	return r.CollectThese(ctx, func(yield func(*entries.Record, error) bool) {
		for name, err := range command.ReadArgs(o.Entries, r.S.In, o.Nul) {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			var ref lektordir.Ref
			if err == nil {
				ref, err = r.Resolve(name, 0)
			}
			if err != nil {
				r.S.Report.Print(err) // the others are written, and the status tells
				continue
			}
			if !yield(r.Record(ref), nil) {
				return
			}
		}
	}, entries.Collecting{
		Keep: func(e *entries.Record) bool {
			err := e.Read(lektordir.FieldPubDate)
			if err != nil {
				r.S.Report.Print(err)
			}
			return err == nil
		},
		Note: func(e *entries.Record) {
			if titles[e.Ref.Feed] == "" {
				titles[e.Ref.Feed] = query.Fold(letter.FeedTitle(e.Feed()))
			}
		},
		Order: func(a, b *entries.Record) int {
			return cmp.Or(cmp.Compare(titles[a.Ref.Feed], titles[b.Ref.Feed]), cmp.Compare(a.Ref.Feed, b.Ref.Feed), entries.ByDate(a, b))
		},
	})
}
