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
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
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
	Newest int    // only so many of the newest; 0 for all
	Sort   string // a key, with "-" in front the other way round; default "-date"
	Print  command.PrinterOptions
	// Screen is the terminal that the list is for; without one lines are as long
	// as they are, and dates are for programs.
	Screen command.Screen
	Pager  Pager // shows a list that the screen does not hold, unless Raw
	// Number makes it the list whose numbers other commands take: that which a
	// person saw last.
	Number bool
}

// Sorts are the keys to sort by.
var Sorts = []string{"date", "delivered", "feed", "title", "author", "rank", "relevance"}

// DefaultSort lists what is new first, as one reads news.
const DefaultSort = "-date"

// List prints the entries of a query, with numbers if other commands take them.
func List(ctx context.Context, o ListOptions, s *command.Streams) error {
	order, err := sortOrder(cmp.Or(o.Sort, DefaultSort))
	if err != nil {
		return err
	}
	v, err := o.Open(o.Query, o.Print, s)
	if err != nil {
		return err
	}
	sel := entries.Selection{Query: v.Query, All: o.All, Newest: o.Newest, Want: order.fields & lektordir.FieldPubDate}
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
	// Select has read the dates; what else cannot be read sorts as empty. What is shown
	// is checked before it is numbered: no number is skipped.
	list, err = entries.Filter(ctx, list, func(r *entries.Record) bool {
		_ = r.Read(order.fields)
		return v.Usable(r.Check())
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, order.compare)
	var seen overview
	for i, r := range list {
		r.Number = i + 1
		seen.note(r)
	}
	if o.Number {
		v.SaveList(list)
	}
	if v.Printer != nil {
		err = printRecords(ctx, v, o.Print.Format, list)
	} else {
		err = printList(ctx, v, list, &seen, o)
	}
	if err == nil {
		tellIncomplete(v, &seen)
	}
	return err
}

// overview is what is to be known of a list before it is printed.
type overview struct {
	first *entries.Record // of one feed, as all others are; nil of several, or for none
	feeds map[string]string
	flags int // the width of these
}

func (o *overview) note(r *entries.Record) {
	if o.feeds == nil {
		o.feeds, o.first = map[string]string{}, r
	}
	// Without a feed in src/ each entry may say otherwise.
	key := r.Ref.Feed + " " + r.Feed().Title()
	if _, ok := o.feeds[key]; !ok {
		o.feeds[key] = r.Feed().Title()
	}
	if o.first != nil && r.Ref.Feed != o.first.Ref.Feed {
		o.first = nil
	}
	o.flags = max(o.flags, len(status(r.Ref)))
}

// chunk is how many entries are read ahead of printing.
const chunk = 1024

// printRecords prints records in a format, reading ahead on all cores.
func printRecords(ctx context.Context, v *session.Session, format string, list []*entries.Record) error {
	n, prepare := entries.Ahead(format)
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

// sortOrder gives a key's meaning.
func sortOrder(by string) (order, error) {
	key, down := strings.CutPrefix(by, "-")
	o := order{down: down}
	switch key {
	case "date":
		o.fields, o.by = lektordir.FieldPubDate, func(a, b *entries.Record) int { return 0 }
	case "delivered":
		o.by = func(a, b *entries.Record) int {
			return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()), cmp.Compare(a.Ref.Unique, b.Ref.Unique))
		}
	case "feed":
		o.fields, o.newest = lektordir.FieldPubDate, true
		o.by = textual(func(r *entries.Record) string { return r.Feed().Title() })
	case "title":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldTitle, true
		o.by = textual(func(r *entries.Record) string { return strings.TrimSpace(r.OwnTitle()) })
	case "author":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldAuthor, true
		o.by = textual((*entries.Record).Author)
	case "relevance":
		o.fields, o.newest, o.best = lektordir.FieldPubDate|lektordir.FieldTitle|lektordir.FieldAuthor, true, true
	case "rank":
		o.fields, o.newest, o.by = lektordir.FieldPubDate, true, byRank
	default:
		return o, &command.UsageError{
			Message: fmt.Sprintf("--sort %s: no such key", by),
			Hint:    "keys are " + strings.Join(Sorts, ", ") + ", and with - in front the other way round",
		}
	}
	return o, nil
}

// byRelevance orders entries by where the words are: what has more of them in its title
// comes first, whole words before parts of words, and then what has them in the names of
// author and feed rather than in the text alone.
func byRelevance(words []string) func(a, b *entries.Record) int {
	known := map[*entries.Record]int{}
	score := func(r *entries.Record) int {
		s, ok := known[r]
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
			known[r] = s
		}
		return s
	}
	return func(a, b *entries.Record) int { return cmp.Compare(score(b), score(a)) }
}

// byRank orders entries as the documents of their feeds do that are complete; others
// stand behind them.
func byRank(a, b *entries.Record) int {
	place := func(r *entries.Record) int { return cmp.Or(r.Rank(), math.MaxInt) }
	return cmp.Compare(place(a), place(b))
}

// tellIncomplete tells of a list of one feed that older entries are missing (RFC 5005,
// section 4.2).
func tellIncomplete(v *session.Session, seen *overview) {
	if r := seen.first; r != nil {
		if gap := r.Incomplete(); gap != "" {
			v.S.Report.Info("%s is incomplete: %s", termsafe.Brief(r.Feed().Title()), gap)
		}
	}
}

// order is a key to sort by.
type order struct {
	by     func(a, b *entries.Record) int
	fields lektordir.Fields
	down   bool
	newest bool // what is equal stands newest first
	best   bool // of a limited list, the first are kept and not the newest
}

func (o order) compare(a, b *entries.Record) int {
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
	if c = entries.ByDate(a, b); o.newest || o.down {
		c = -c
	}
	return c
}

// textual compares texts as a reader would: without case.
func textual(text func(*entries.Record) string) func(a, b *entries.Record) int {
	folded := map[*entries.Record]string{}
	fold := func(r *entries.Record) string {
		s, ok := folded[r]
		if !ok {
			s = query.Fold(text(r))
			folded[r] = s
		}
		return s
	}
	return func(a, b *entries.Record) int { return cmp.Compare(fold(a), fold(b)) }
}

// printList prints the list for a person.
func printList(ctx context.Context, v *session.Session, list []*entries.Record, seen *overview, o ListOptions) error {
	l := layout{screen: o.Screen, now: v.Now, raw: o.Print.Raw, flags: seen.flags}
	if o.Number {
		// Those of a list that nobody saw would be taken for those of another.
		l.number = len(strconv.Itoa(len(list)))
	}
	for _, title := range seen.feeds {
		l.feed = max(l.feed, termsafe.Width(l.clean(title)))
	}
	if l.screen.Width > 0 {
		l.current = entries.Key(v.Current())
	}
	// A line of the list is one of the screen, and the prompt needs another.
	if o.Pager.Command == "" || o.Print.Raw || o.Screen.Height == 0 || len(list) < o.Screen.Height {
		return printRows(ctx, v.S.Out, list, l)
	}
	l.screen.Color = l.screen.Color && o.Pager.colors()
	return Pager{Command: o.Pager.Command}.show(v.S, func(w io.Writer) error { return printRows(ctx, w, list, l) })
}

// printRows prints records in rows, reading ahead on all cores.
func printRows(ctx context.Context, w io.Writer, list []*entries.Record, l layout) error {
	var b bytes.Buffer
	for part := range slices.Chunk(list, chunk) {
		if p, ok := w.(*pager); ok && p.left {
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
