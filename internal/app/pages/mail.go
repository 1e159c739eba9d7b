package pages

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/letter"
	"github.com/lektordir/lektor/internal/redact"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// mailed is an entry that was put into a mailbox.
type mailed struct {
	*entries.Record
	file string // of the mailbox or the message
	id   string // of the message
}

// mailColumns are what -o can print of it: what it can print of entries, and two more.
func mailColumns() []command.Column[*mailed] {
	list := []command.Column[*mailed]{
		{Name: "file", Verbatim: true, Get: func(m *mailed) any { return m.file }},
		{Name: "messageid", Get: func(m *mailed) any { return m.id }},
	}
	for _, c := range entries.Columns() {
		list = append(list, command.Column[*mailed]{
			Name: c.Name, Extra: c.Extra, Full: c.Full, Sparse: c.Sparse, Text: c.Text, Verbatim: c.Verbatim,
			Get: func(m *mailed) any { return c.Get(m.Record) },
		})
	}
	return list
}

// mailing is a run of Mbox or Maildir.
type mailing struct {
	*run
	images bool
	ledger *mailLedger
	print  *command.Printer[*mailed] // nil for nothing
	added  int
	// written are the messages of a mailbox that is not in place yet.
	written []*post
	// step is told before each step that a kill may fall on; for tests.
	step func()
}

// newMailing opens the lektor-dir. The ledger is for whoever has one.
func newMailing(c Common, images bool, printing command.PrinterOptions, step func(), s *command.Streams) (*mailing, error) {
	r, err := c.open(s)
	if err != nil {
		return nil, err
	}
	// A mailbox is the user's own, as the lektor-dir is.
	r.private = true
	m := &mailing{run: r, images: images, step: step}
	if step == nil {
		m.step = func() {}
	}
	if printing.Format != "" {
		m.print, err = command.NewPrinter(s.Out, printing, mailColumns())
	}
	return m, err
}

// post is a message that is to be put into a mailbox.
type post struct {
	record  *entries.Record
	message *letter.Message
	data    []byte
}

// posts gives what is to be mailed of the query, from old to new; without a ledger, all
// of it. What the ledger does not know and is not to be mailed, it knows then. A record
// has a mark if there is a message of another version of the entry.
func (m *mailing) posts(ctx context.Context) (*entries.Collection, error) {
	c := entries.Collecting{Order: entries.ByDate, Keep: func(r *entries.Record) bool {
		r.Anew()
		return m.Usable(r.Check()) && m.Usable(r.Read(lektordir.FieldPubDate))
	}}
	if m.ledger != nil {
		deliver := map[string]bool{} // by feed, whether versions are wanted
		unknown := map[string]bool{} // feeds of which that cannot be read
		c.First = func(r *entries.Record) bool {
			known, later := m.ledger.knows(r.Ref)
			if known || !later {
				return !known
			}
			wanted, ok := deliver[r.Ref.Feed]
			if unknown[r.Ref.Feed] {
				return false
			}
			if !ok {
				on, err := feeddir.OnUpdateOf(m.Dir, r.Ref.Feed)
				if err != nil {
					// The next run asks again.
					m.S.Report.Print(err)
					unknown[r.Ref.Feed] = true
					return false
				}
				wanted = on == "deliver"
				deliver[r.Ref.Feed] = wanted
			}
			if r.Mark = wanted; !wanted {
				m.ledger.add(r.Ref)
			}
			return wanted
		}
	}
	list, err := m.collect(ctx, 0, c)
	if err == nil && m.ledger != nil {
		m.ledger.asked = true
		if err = m.ledger.flush(); err != nil {
			list.Close()
		}
	}
	return list, err
}

// earliest is a date that mail programs can read (RFC 5322, 3.3).
const earliest = 1900

// letter gives an entry that was read as messages are made of it.
func (r *run) letter(e *entries.Record, images bool) *letter.Entry {
	date := e.Date()
	if date.Year() < earliest {
		date = e.Ref.Delivered()
	}
	return &letter.Entry{
		Ref: e.Ref, Feed: e.Feed(), Entry: entries.Own(e.Get(0)), Title: redact.Text(e.Title()), Date: date.In(r.Now.Location()), Images: images,
	}
}

// write makes the message; false says that the entry cannot be read, which was told.
func (m *mailing) write(p *post) (bool, error) {
	r := p.record
	if !m.Usable(r.Read(lektordir.AllFields)) {
		return false, nil
	}
	e := m.letter(r, m.images)
	if r.Mark {
		e.Version = r.Ref.Unique
	}
	p.message = e.Message()
	var err error
	p.data, err = p.message.Bytes()
	r.Forget()
	return err == nil, err
}

// done tells that a message is in a mailbox.
func (m *mailing) done(p *post, file string) error {
	m.added++
	if m.print == nil {
		return nil
	}
	return m.print.Print(&mailed{Record: p.record, file: file, id: p.message.ID})
}

// end flushes what was printed, and tells a person how many messages there are now.
func (m *mailing) end(where string) error {
	if m.print != nil {
		return m.print.Flush()
	}
	if m.S.ErrIsTerminal() {
		m.S.Report.Info("%s: %s added", where, units.Count(m.added, "message"))
	}
	return nil
}

// inBatches calls f for batches of the messages that are to be put into a mailbox, which
// are made in parallel.
func (m *mailing) inBatches(ctx context.Context, f func([]*post) error) error {
	list, err := m.posts(ctx)
	if err != nil {
		return err
	}
	defer list.Close()
	bar := m.S.Report.Progress(list.Len(), "writing messages")
	defer bar.Done()
	for records, err := range entries.InParts(list.All(), mailBatch) {
		if err != nil {
			return err
		}
		batch := make([]*post, len(records))
		var g errgroup.Group
		g.SetLimit(mailWriters)
		for i, r := range records {
			g.Go(func() error {
				p := &post{record: r}
				usable, err := m.write(p)
				if usable {
					batch[i] = p
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f(slices.DeleteFunc(batch, func(p *post) bool { return p == nil })); err != nil {
			return err
		}
		bar.Add(len(records))
	}
	return nil
}

// So many messages are on the way at once, and so many are written at a time: who
// waits for the disk together waits once.
const (
	mailBatch   = 128
	mailWriters = 16
)
