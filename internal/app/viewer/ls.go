package viewer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// ListOptions are the options of [List].
type ListOptions struct {
	Common
	Query  []string
	All    bool   // read entries too
	Newest int    // only so many of the newest; 0 for all
	Sort   string // a key, with "-" in front the other way round; default "-date"
	Print  command.PrinterOptions
	// Width is the number of columns to fit lines to; 0 does not fit them.
	Width int
	// Number makes it the list whose numbers other commands take: that which a
	// person saw last.
	Number bool
}

// Sorts are the keys to sort by.
var Sorts = []string{"date", "delivered", "feed", "title", "author", "rank"}

// DefaultSort lists what is new first, as one reads news.
const DefaultSort = "-date"

// List prints the entries of a query, with numbers if other commands take them.
func List(ctx context.Context, o ListOptions, s *command.Streams) error {
	order, err := sortOrder(cmp.Or(o.Sort, DefaultSort))
	if err != nil {
		return err
	}
	v, err := o.open(o.Query, o.Print, s)
	if err != nil {
		return err
	}
	list, err := v.Select(ctx, entries.Selection{Query: v.query, All: o.All, Newest: o.Newest, Want: order.fields & lektordir.FieldPubDate})
	if err != nil {
		return err
	}
	if f := order.fields &^ lektordir.FieldPubDate; f != 0 {
		// Select has read the dates; what else cannot be read sorts as empty.
		if err := entries.Parallel(ctx, len(list), func(i int) { list[i].Get(f) }); err != nil {
			return err
		}
	}
	slices.SortStableFunc(list, order.compare)
	// What is shown is checked before it is numbered: no number is skipped.
	if list, err = entries.Filter(ctx, list, func(r *entries.Record) bool { return v.Usable(r.Check()) }); err != nil {
		return err
	}
	for i, r := range list {
		r.Number = i + 1
	}
	if o.Number {
		v.saveList(list)
	}
	if v.printer != nil {
		err = v.records(ctx, o.Print.Format, list)
	} else {
		err = v.printList(ctx, list, o)
	}
	if err == nil {
		v.tellIncomplete(list)
	}
	return err
}

// chunk is how many entries are read ahead of printing.
const chunk = 1024

// records prints records in a format, reading ahead on all cores.
func (v *viewer) records(ctx context.Context, format string, list []*entries.Record) error {
	need := entries.FormatFields(format)
	for part := range slices.Chunk(list, chunk) {
		if need != 0 {
			if err := entries.Parallel(ctx, len(part), func(i int) { part[i].Get(need) }); err != nil {
				return err
			}
		}
		for _, r := range part {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := v.printer.Print(r); err != nil {
				return err
			}
			r.Forget()
		}
	}
	return v.printer.Flush()
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
		o.by = textual(func(r *entries.Record) string { return strings.TrimSpace(r.Get(lektordir.FieldTitle).Title) })
	case "author":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldAuthor, true
		o.by = textual((*entries.Record).Author)
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

// byRank orders entries as the documents of their feeds do that are complete; others
// stand behind them.
func byRank(a, b *entries.Record) int {
	place := func(r *entries.Record) int { return cmp.Or(r.Rank(), math.MaxInt) }
	return cmp.Compare(place(a), place(b))
}

// tellIncomplete tells of a list of one feed that older entries are missing (RFC 5005,
// section 4.2).
func (v *viewer) tellIncomplete(list []*entries.Record) {
	for _, r := range list {
		if r.Ref.Feed != list[0].Ref.Feed {
			return
		}
	}
	if len(list) == 0 {
		return
	}
	if gap := list[0].Incomplete(); gap != "" {
		v.S.Report.Info("%s is incomplete: %s", termsafe.Brief(list[0].Feed().Title()), gap)
	}
}

// order is a key to sort by.
type order struct {
	by     func(a, b *entries.Record) int
	fields lektordir.Fields
	down   bool
	newest bool // what is equal stands newest first
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
func (v *viewer) printList(ctx context.Context, list []*entries.Record, o ListOptions) error {
	l := layout{width: o.Width, zone: v.Now.Location(), raw: o.Print.Raw}
	if o.Number {
		// Those of a list that nobody saw would be taken for those of another.
		l.number = len(strconv.Itoa(len(list)))
	}
	for _, r := range list {
		l.flags = max(l.flags, len(status(r.Ref)))
		l.feed = max(l.feed, termsafe.Width(l.clean(r.Feed().Title())))
	}
	return v.printRows(ctx, list, l)
}

// printRows prints records in rows, reading ahead on all cores.
func (v *viewer) printRows(ctx context.Context, list []*entries.Record, l layout) error {
	var b bytes.Buffer
	for part := range slices.Chunk(list, chunk) {
		titles := make([]string, len(part))
		if err := entries.Parallel(ctx, len(part), func(i int) { titles[i] = part[i].Title() }); err != nil {
			return err
		}
		for i, r := range part {
			l.row(&b, r, titles[i])
		}
		if _, err := v.S.Out.Write(b.Bytes()); err != nil {
			return err
		}
		b.Reset()
	}
	return nil
}

// layout says how wide the columns of a list are.
type layout struct {
	number, flags, feed int // widths; number 0 prints none
	width               int // of the terminal; 0 fits nothing
	zone                *time.Location
	raw                 bool
}

// Of a terminal's width the feed may take a fifth, between these.
const minFeed, maxFeed = 8, 24

// clean makes text fit for a column.
func (l layout) clean(s string) string {
	if l.raw {
		return s
	}
	return strings.TrimSpace(termsafe.Line(s))
}

// row writes an entry as one line: number, flags, date, feed, title. A narrow
// terminal loses the time, then the feed.
func (l layout) row(b *bytes.Buffer, r *entries.Record, title string) {
	var line strings.Builder
	if l.number > 0 {
		fmt.Fprintf(&line, "%*d ", l.number, r.Number)
	}
	fmt.Fprintf(&line, "%-*s ", l.flags, status(r.Ref))
	date := "2006-01-02 15:04"
	if l.width > 0 && l.width < 60 {
		date = "2006-01-02"
	}
	line.WriteString(r.Date().In(l.zone).Format(date))
	feed, width := l.clean(r.Feed().Title()), l.feed
	switch {
	case l.width == 0:
		line.WriteString("  " + termsafe.Pad(feed, width) + "  ")
	case l.width < 40:
		line.WriteString(" ")
	default:
		width = min(width, max(minFeed, min(l.width/5, maxFeed)))
		line.WriteString("  " + termsafe.Pad(feed, width) + "  ")
	}
	line.WriteString(l.clean(title))
	s := line.String()
	if l.width > 0 && !l.raw {
		s = termsafe.Truncate(s, l.width)
	}
	b.WriteString(strings.TrimRight(s, " "))
	b.WriteByte('\n')
}

// status shows what was done with an entry in few letters: N it is new, U it
// was taken but not read, then its flags but S.
func status(r lektordir.Ref) string {
	s := " "
	switch {
	case r.Place == lektordir.New:
		s = "N"
	case r.Unread():
		s = "U"
	}
	return s + strings.ReplaceAll(r.Flags(), "S", "")
}
