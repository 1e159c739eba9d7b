package viewer

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// ListOptions are the options of [List].
type ListOptions struct {
	session.Common
	Query  []string
	All    bool          // read entries too
	Newest int           // only this many of the newest entries; 0 means all
	Sort   string        // one of [Sorts], or "-" and one for the reverse order (default [DefaultSort])
	Random func() uint64 // returns random numbers for the key random; nil means [math/rand/v2.Uint64]
	Print  cmdline.PrinterOptions
	// Screen is the terminal that the list is printed for. If it is zero, lines are not cut and
	// dates are in full.
	Screen cmdline.Screen
	Pager  Pager // shows a list that does not fit the screen, unless Print.Raw is set
	// Number prints numbers, and saves the list so that other commands accept them as names.
	Number bool
}

// List prints the entries that match a query.
func List(ctx context.Context, o ListOptions, s *cmdline.Streams) error {
	order, err := sortOrder(cmp.Or(o.Sort, DefaultSort), o.Random)
	if err != nil {
		return err
	}
	v, err := o.Open(o.Query, o.Print, s)
	if err != nil {
		return err
	}
	if order.by == nil && !order.thread {
		order.by = byRelevance(v.Query.Words())
	}
	sel := entrystore.Selection{Query: v.Query, All: o.All, Newest: o.Newest,
		Want: order.fields & (lektordir.FieldPubDate | lektordir.FieldInReplyTo)}
	if order.best {
		sel.Newest, sel.Want = 0, order.fields
	}
	list, err := v.Select(ctx, sel)
	if err != nil {
		return err
	}
	if order.best && o.Newest > 0 {
		slices.SortStableFunc(list, order.compare)
		list = list[:min(o.Newest, len(list))]
	}
	// Select has read the dates. Other fields that cannot be read sort as empty. Unusable
	// entries are removed before entries are numbered, so that no number is skipped.
	list, err = entrystore.Filter(ctx, list, func(r *entrystore.Record) bool {
		_ = r.Read(order.fields)
		return v.Usable(r.Check())
	})
	if err != nil {
		return err
	}
	var facts overview
	if order.thread {
		if list, facts.depth, err = byThread(ctx, list, order.down); err != nil {
			return err
		}
	} else {
		slices.SortStableFunc(list, order.compare)
	}
	for i, r := range list {
		r.Number = i + 1
		facts.note(r)
	}
	if o.Number {
		v.SaveList(list)
	}
	if v.Printer != nil {
		err = printRecords(ctx, v, o.Print.Format, list)
	} else {
		err = printList(ctx, v, list, &facts, o)
	}
	if r := facts.first; err == nil && r != nil {
		// Older entries of the feed may be missing (RFC 5005, section 4.2).
		if gap := r.Incomplete(); gap != "" {
			s.Report.Info("%s is incomplete: %s", termsafe.Brief(r.Feed().Title()), gap)
		}
	}
	return err
}

// overview holds facts about a whole list that are needed to print its lines.
type overview struct {
	first *entrystore.Record // the first entry if all are of one feed; else nil
	feeds map[string]string
	flags int                        // columns of the widest flags
	depth map[*entrystore.Record]int // see [byThread]
}

func (o *overview) note(r *entrystore.Record) {
	if o.feeds == nil {
		o.feeds, o.first = map[string]string{}, r
	}
	// If src/ lacks the feed, the title comes from each entry.
	key := r.Ref.Feed + " " + r.Feed().Title()
	if _, ok := o.feeds[key]; !ok {
		o.feeds[key] = r.Feed().Title()
	}
	if o.first != nil && r.Ref.Feed != o.first.Ref.Feed {
		o.first = nil
	}
	o.flags = max(o.flags, len(status(r.Ref)))
}

// chunk is the number of entries that are read ahead of printing.
const chunk = 1024

// printRecords prints records in a format, reading ahead on all cores.
func printRecords(ctx context.Context, v *session.Session, format string, list []*entrystore.Record) error {
	n, prepare := entrystore.Ahead(format)
	for part := range slices.Chunk(list, n) {
		if err := workers.ForEach(ctx, len(part), func(i int) { prepare(part[i]) }); err != nil {
			return err
		}
		for _, r := range part {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := v.Printer.Print(r); err != nil {
				return err
			}
			r.Forget()
		}
	}
	return v.Printer.Flush()
}

// printList prints the list for a person.
func printList(ctx context.Context, v *session.Session, list []*entrystore.Record, facts *overview,
	o ListOptions) error {
	l := layout{screen: o.Screen, now: v.Now, raw: o.Print.Raw, flags: facts.flags, depth: facts.depth}
	if o.Number {
		// Only saved numbers are printed. Other numbers would refer to an older list.
		l.number = len(strconv.Itoa(len(list)))
	}
	for _, title := range facts.feeds {
		l.feed = max(l.feed, termsafe.Width(l.clean(title)))
	}
	if l.screen.Width > 0 {
		l.current = entrystore.Key(v.Current())
	}
	// The pager is not needed if the list and the prompt fit the screen.
	if o.Pager.Command == "" || o.Print.Raw || o.Screen.Height == 0 || len(list) < o.Screen.Height {
		return printRows(ctx, v.S.Out, list, l)
	}
	l.screen.Color = l.screen.Color && o.Pager.colors()
	return Pager{Command: o.Pager.Command}.show(v.S, func(w io.Writer) error { return printRows(ctx, w, list, l) })
}

// printRows prints records in rows, reading ahead on all cores.
func printRows(ctx context.Context, w io.Writer, list []*entrystore.Record, l layout) error {
	var b bytes.Buffer
	for part := range slices.Chunk(list, chunk) {
		if p, ok := w.(*pager); ok && p.quit() {
			return nil
		}
		titles := make([]string, len(part))
		if err := workers.ForEach(ctx, len(part), func(i int) { titles[i] = part[i].Title() }); err != nil {
			return err
		}
		for i, r := range part {
			l.row(&b, r, titles[i])
		}
		if _, err := w.Write(b.Bytes()); err != nil {
			return err
		}
		b.Reset()
	}
	return nil
}
