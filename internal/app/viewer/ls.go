package viewer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/entrystore"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// ListOptions are the options of [List].
type ListOptions struct {
	session.Common
	Query  []string
	All    bool   // read entries too
	Newest int    // only this many of the newest entries; 0 means all
	Sort   string // one of [Sorts], or "-" and one for the reverse order (default [DefaultSort])
	Print  cmdline.PrinterOptions
	// Screen is the terminal that the list is printed for. If it is zero, lines are not cut and
	// dates are in full.
	Screen cmdline.Screen
	Pager  Pager // shows a list that does not fit the screen, unless Print.Raw is set
	// Number prints numbers, and saves the list so that other commands accept them as names.
	Number bool
}

// Sorts are the keys to sort by.
var Sorts = []string{"date", "delivered", "feed", "title", "author", "rank", "relevance"}

// DefaultSort is newest first.
const DefaultSort = "-date"

// List prints the entries that match a query.
func List(ctx context.Context, o ListOptions, s *cmdline.Streams) error {
	order, err := sortOrder(cmp.Or(o.Sort, DefaultSort))
	if err != nil {
		return err
	}
	v, err := o.Open(o.Query, o.Print, s)
	if err != nil {
		return err
	}
	sel := entrystore.Selection{Query: v.Query, All: o.All, Newest: o.Newest, Want: order.fields & lektordir.FieldPubDate}
	if order.best {
		order.by = byRelevance(v.Query.Words())
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
	slices.SortStableFunc(list, order.compare)
	var facts overview
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
	if err == nil {
		reportIncomplete(v, &facts)
	}
	return err
}

// overview holds facts about a whole list that are needed to print its lines.
type overview struct {
	first *entrystore.Record // the first entry if all are of one feed; else nil
	feeds map[string]string
	flags int // columns of the widest flags
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

// sortOrder parses a sort key.
func sortOrder(by string) (order, error) {
	key, down := strings.CutPrefix(by, "-")
	o := order{down: down}
	switch key {
	case "date":
		o.fields, o.by = lektordir.FieldPubDate, func(a, b *entrystore.Record) int { return 0 }
	case "delivered":
		o.by = func(a, b *entrystore.Record) int {
			return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()), cmp.Compare(a.Ref.Unique, b.Ref.Unique))
		}
	case "feed":
		o.fields, o.newest = lektordir.FieldPubDate, true
		o.by = textual(func(r *entrystore.Record) string { return r.Feed().Title() })
	case "title":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldTitle, true
		o.by = textual(func(r *entrystore.Record) string { return strings.TrimSpace(r.OwnTitle()) })
	case "author":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldAuthor, true
		o.by = textual((*entrystore.Record).Author)
	case "relevance":
		o.fields, o.newest, o.best = lektordir.FieldPubDate|lektordir.FieldTitle|lektordir.FieldAuthor, true, true
	case "rank":
		o.fields, o.newest, o.by = lektordir.FieldPubDate, true, byRank
	default:
		return o, &cmdline.UsageError{
			Message: fmt.Sprintf("--sort %s: there is no such key", by),
			Hint:    "keys are " + strings.Join(Sorts, ", ") + "; put - in front for the reverse order",
		}
	}
	return o, nil
}

// byRelevance compares entries by the words that they have, best first. A whole word in the
// title counts 100, a part of a word in the title 10, and a match in the author or the feed's
// title 1. Matches in the text do not count.
func byRelevance(words []string) func(a, b *entrystore.Record) int {
	scores := map[*entrystore.Record]int{}
	score := func(r *entrystore.Record) int {
		s, ok := scores[r]
		if !ok {
			title, who := query.Fold(r.OwnTitle()), query.Fold(r.Author()+"\n"+r.Feed().Title())
			for _, w := range words {
				switch {
				case query.StandsAlone(title, w):
					s += 100
				case strings.Contains(title, w):
					s += 10
				case strings.Contains(who, w):
					s++
				}
			}
			scores[r] = s
		}
		return s
	}
	return func(a, b *entrystore.Record) int { return cmp.Compare(score(b), score(a)) }
}

// byRank compares entries by their position in the document of a complete feed (RFC 5005,
// section 2). Entries without a rank come last.
func byRank(a, b *entrystore.Record) int {
	place := func(r *entrystore.Record) int { return cmp.Or(r.Rank(), math.MaxInt) }
	return cmp.Compare(place(a), place(b))
}

// reportIncomplete prints a note if all entries are of one feed, and older entries of this feed
// are missing (RFC 5005, section 4.2).
func reportIncomplete(v *session.Session, facts *overview) {
	if r := facts.first; r != nil {
		if gap := r.Incomplete(); gap != "" {
			v.S.Report.Info("%s is incomplete: %s", termsafe.Brief(r.Feed().Title()), gap)
		}
	}
}

// order is a key to sort by.
type order struct {
	by     func(a, b *entrystore.Record) int
	fields lektordir.Fields
	down   bool
	newest bool // equal entries are newest first
	best   bool // Newest keeps the first entries, not the newest
}

func (o order) compare(a, b *entrystore.Record) int {
	c := o.by(a, b)
	if o.down {
		c = -c
	}
	if c != 0 {
		return c
	}
	if o.fields&lektordir.FieldPubDate == 0 {
		return 0
	}
	if c = entrystore.ByDate(a, b); o.newest || o.down {
		c = -c
	}
	return c
}

// textual compares texts without regard to case.
func textual(text func(*entrystore.Record) string) func(a, b *entrystore.Record) int {
	folded := map[*entrystore.Record]string{}
	fold := func(r *entrystore.Record) string {
		s, ok := folded[r]
		if !ok {
			s = query.Fold(text(r))
			folded[r] = s
		}
		return s
	}
	return func(a, b *entrystore.Record) int { return cmp.Compare(fold(a), fold(b)) }
}

// printList prints the list for a person.
func printList(ctx context.Context, v *session.Session, list []*entrystore.Record, facts *overview, o ListOptions) error {
	l := layout{screen: o.Screen, now: v.Now, raw: o.Print.Raw, flags: facts.flags}
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
		if p, ok := w.(*pager); ok && p.closed {
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
