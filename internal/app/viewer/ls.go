package viewer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/command"
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
}

// Sorts are the keys to sort by.
var Sorts = []string{"date", "delivered", "feed", "title", "author"}

// DefaultSort lists what is new first, as one reads news.
const DefaultSort = "-date"

// List prints the entries of a query, and remembers them as the list whose
// numbers other commands take.
func List(ctx context.Context, o ListOptions, s *command.Streams) error {
	q, err := parseQuery(o.Query)
	if err != nil {
		return err
	}
	order, err := sortOrder(cmp.Or(o.Sort, DefaultSort))
	if err != nil {
		return err
	}
	var printer *command.Printer[*record]
	if o.Print.Format != "" {
		if printer, err = command.NewPrinter(s.Out, o.Print, columns()); err != nil {
			return err
		}
	}
	v, err := o.open(s)
	if err != nil {
		return err
	}
	sel := selection{query: q, all: o.All, newest: o.Newest, dated: order.fields&lektordir.FieldPubDate != 0}
	list, err := v.find(ctx, sel)
	if err != nil {
		return err
	}
	if f := order.fields &^ lektordir.FieldPubDate; f != 0 {
		parallel(ctx, len(list), func(i int) { list[i].read(f) })
	}
	slices.SortStableFunc(list, order.compare)
	// What is shown is checked before it is numbered: no number is skipped.
	if list, err = v.checked(ctx, list); err != nil {
		return err
	}
	saveErr := v.saveList(list)
	if printer != nil {
		err = v.print(ctx, printer, o.Print.Format, list)
	} else {
		err = v.printList(ctx, list, o)
	}
	if err == nil && saveErr != nil {
		s.Report.Warn("the numbers cannot be used, they were not saved: %v", saveErr)
	}
	return err
}

// checked leaves out what is malformed or gone.
func (v *viewer) checked(ctx context.Context, list []*record) ([]*record, error) {
	bad := make([]error, len(list))
	parallel(ctx, len(list), func(i int) { bad[i] = list[i].check() })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	i := 0
	return slices.DeleteFunc(list, func(*record) bool {
		err := bad[i]
		i++
		return !v.usable(err)
	}), nil
}

// chunk is how many entries are read ahead of printing.
const chunk = 1024

// print prints records with a printer, reading ahead on all cores.
func (v *viewer) print(ctx context.Context, p *command.Printer[*record], format string, list []*record) error {
	need := formatFields(format)
	for part := range slices.Chunk(list, chunk) {
		if need != 0 {
			parallel(ctx, len(part), func(i int) { part[i].read(need) })
		}
		for _, r := range part {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.Print(r); err != nil {
				return err
			}
			r.forget()
		}
	}
	return p.Flush()
}

// sortOrder gives a key's meaning.
func sortOrder(by string) (order, error) {
	key, down := strings.CutPrefix(by, "-")
	o := order{down: down}
	switch key {
	case "date":
		o.fields, o.by = lektordir.FieldPubDate, func(a, b *record) int { return 0 }
	case "delivered":
		o.by = func(a, b *record) int {
			return cmp.Or(a.ref.Delivered().Compare(b.ref.Delivered()), cmp.Compare(a.ref.Unique, b.ref.Unique))
		}
	case "feed":
		o.fields, o.newest = lektordir.FieldPubDate, true
		o.by = textual(func(r *record) string { return r.feed().Title() })
	case "title":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldTitle, true
		o.by = textual(func(r *record) string { return strings.TrimSpace(r.get(lektordir.FieldTitle).Title) })
	case "author":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldAuthor, true
		o.by = textual((*record).author)
	default:
		return o, &command.UsageError{
			Message: fmt.Sprintf("--sort %s: no such key", by),
			Hint:    "keys are " + strings.Join(Sorts, ", ") + ", and with - in front the other way round",
		}
	}
	return o, nil
}

// order is a key to sort by.
type order struct {
	by     func(a, b *record) int
	fields lektordir.Fields
	down   bool
	newest bool // what is equal stands newest first
}

func (o order) compare(a, b *record) int {
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
	if c = byDate(a, b); o.newest || o.down {
		c = -c
	}
	return c
}

// textual compares texts as a reader would: without case.
func textual(text func(*record) string) func(a, b *record) int {
	folded := map[*record]string{}
	fold := func(r *record) string {
		s, ok := folded[r]
		if !ok {
			s = query.Fold(text(r))
			folded[r] = s
		}
		return s
	}
	return func(a, b *record) int { return cmp.Compare(fold(a), fold(b)) }
}

// printList prints the list for a person.
func (v *viewer) printList(ctx context.Context, list []*record, o ListOptions) error {
	l := layout{number: len(strconv.Itoa(len(list))), width: o.Width, zone: v.now.Location(), raw: o.Print.Raw}
	for _, r := range list {
		l.flags = max(l.flags, len(status(r.ref)))
		l.feed = max(l.feed, termsafe.Width(l.clean(r.feed().Title())))
	}
	return v.printRows(ctx, list, l)
}

// printRows prints records in rows, reading ahead on all cores.
func (v *viewer) printRows(ctx context.Context, list []*record, l layout) error {
	var b bytes.Buffer
	for part := range slices.Chunk(list, chunk) {
		titles := make([]string, len(part))
		parallel(ctx, len(part), func(i int) { titles[i] = part[i].title() })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i, r := range part {
			l.row(&b, r, titles[i])
		}
		if _, err := v.s.Out.Write(b.Bytes()); err != nil {
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
func (l layout) row(b *bytes.Buffer, r *record, title string) {
	var line strings.Builder
	if l.number > 0 {
		fmt.Fprintf(&line, "%*d ", l.number, r.number)
	}
	fmt.Fprintf(&line, "%-*s ", l.flags, status(r.ref))
	date := "2006-01-02 15:04"
	if l.width > 0 && l.width < 60 {
		date = "2006-01-02"
	}
	line.WriteString(r.date().In(l.zone).Format(date))
	feed, width := l.clean(r.feed().Title()), l.feed
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
