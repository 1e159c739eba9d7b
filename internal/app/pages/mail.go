package pages

import (
	"context"
	"slices"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/content/mailmsg"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// mailColumns returns the columns of -o: those of entries, and two for the message.
func mailColumns() []cmdline.Column[*post] {
	list := []cmdline.Column[*post]{
		{Name: "file", Verbatim: true, Get: func(p *post) any { return p.file }},
		{Name: "messageid", Get: func(p *post) any { return p.message.ID }},
	}
	for _, c := range entrystore.Columns() {
		list = append(list, cmdline.Column[*post]{
			Name: c.Name, Extra: c.Extra, Full: c.Full, Sparse: c.Sparse, Text: c.Text, Verbatim: c.Verbatim,
			Get: func(p *post) any { return c.Get(p.record) },
		})
	}
	return list
}

// mailing is a run of Mbox or Maildir.
type mailing struct {
	*run
	images bool
	ledger *mailLedger
	print  *cmdline.Printer[*post] // nil if nothing is printed
	added  int
	// step is called before each step that a kill may interrupt; for tests.
	step func()
}

// newMailing opens the lektor-dir. It leaves the ledger to the caller.
func newMailing(c Common, images bool, printing cmdline.PrinterOptions, step func(), s *cmdline.Streams) (*mailing,
	error) {
	r, err := c.open(s)
	if err != nil {
		return nil, err
	}
	r.private = true // only the user reads the mailbox
	m := &mailing{run: r, images: images, step: step}
	if step == nil {
		m.step = func() {}
	}
	if printing.Format != "" {
		m.print, err = cmdline.NewPrinter(s.Out, printing, mailColumns())
	}
	return m, err
}

// post is a message for a mailbox.
type post struct {
	record  *entrystore.Record
	version bool // another version of the entry was mailed before
	message *mailmsg.Message
	data    []byte
	file    string // path of the message, once it is there
}

// posts returns the entries of the query that are not in the ledger, oldest first; without a
// ledger, all of them. New versions of mailed entries are added to the ledger instead, unless
// their feed has on-update deliver.
func (m *mailing) posts(ctx context.Context) ([]*post, error) {
	found, err := m.selected(ctx)
	if err != nil {
		return nil, err
	}
	// Messages have the files as they are now, not what an index remembers.
	for i, r := range found {
		found[i] = m.Record(r.Ref)
	}
	versions := map[*entrystore.Record]bool{}
	if m.ledger != nil {
		found = slices.DeleteFunc(found, func(r *entrystore.Record) bool {
			known, version := m.ledger.knows(r.Ref)
			if known || !version {
				return known
			}
			on, err := schedule.OnUpdateOf(m.Dir, r.Ref.Feed)
			if err != nil {
				m.S.Report.Print(err) // the next run decides
				return true
			}
			if versions[r] = on == lektordir.UpdateAlways; !versions[r] {
				m.ledger.add(r.Ref)
			}
			return !versions[r]
		})
	}
	found, err = entrystore.Filter(ctx, found, func(r *entrystore.Record) bool {
		return m.Usable(r.Check()) && m.Usable(r.Read(lektordir.FieldPubDate))
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, entrystore.ByDate)
	list := make([]*post, len(found))
	for i, r := range found {
		list[i] = &post{record: r, version: versions[r]}
	}
	if m.ledger != nil {
		err = m.ledger.flush()
	}
	return list, err
}

// earliest is the first year of a Date field (RFC 5322, 3.3).
const earliest = 1900

// letter converts an entry that was read, for a message.
func (r *run) letter(e *entrystore.Record, images bool) *mailmsg.Entry {
	date := e.Date()
	if date.Year() < earliest {
		date = e.Ref.Delivered()
	}
	return &mailmsg.Entry{
		Ref: e.Ref, Feed: e.Feed(), Entry: entrystore.Own(e.Get(0)), Title: feedurl.RedactText(e.Title()),
		Date: date.In(r.Now.Location()), Images: images,
	}
}

// write makes the message. If the entry cannot be read, it reports the error and returns false.
func (m *mailing) write(p *post) (bool, error) {
	r := p.record
	if !m.Usable(r.Read(lektordir.AllFields)) {
		return false, nil
	}
	e := m.letter(r, m.images)
	if p.version {
		e.Version = r.Ref.Unique
	}
	p.message = e.Message()
	var err error
	p.data, err = p.message.Bytes()
	r.Forget()
	return err == nil, err
}

// done counts a message that is in its mailbox, and prints it if there is a format.
func (m *mailing) done(p *post, file string) error {
	m.added++
	if m.print == nil {
		return nil
	}
	p.file = file
	return m.print.Print(p)
}

// end flushes the printed records. Without any, it prints on a terminal how many messages were
// added.
func (m *mailing) end(where string) error {
	if m.print != nil {
		return m.print.Flush()
	}
	if m.S.ErrIsTerminal() {
		m.S.Report.Info("%s: %s added", where, humanize.Count(m.added, "message"))
	}
	return nil
}

// inBatches makes the messages in parallel and calls f for each batch of them.
func (m *mailing) inBatches(ctx context.Context, f func([]*post) error) error {
	list, err := m.posts(ctx)
	if err != nil {
		return err
	}
	bar := m.S.Report.Progress(len(list), "writing messages")
	defer bar.Done()
	for batch := range slices.Chunk(list, mailBatch) {
		usable := make([]bool, len(batch))
		g := workers.Limited(mailWriters)
		for i, p := range batch {
			g.Go(func() (err error) {
				usable[i], err = m.write(p)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var made []*post
		for i, p := range batch {
			if usable[i] {
				made = append(made, p)
			}
		}
		if err := f(made); err != nil {
			return err
		}
		for _, p := range made {
			p.data, p.file, p.message = nil, "", &mailmsg.Message{ID: p.message.ID} // the list holds all posts
		}
		bar.Add(len(batch))
	}
	return nil
}

// Messages are written and synced in batches, in parallel, so that they wait for the disk together.
const (
	mailBatch   = 128 // messages in a batch
	mailWriters = 16  // messages written at the same time
)
