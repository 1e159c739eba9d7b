package viewer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// CountOptions are the options of [Count].
type CountOptions struct {
	Common
	Query []string
	Feeds bool // a line for every feed
	Print command.PrinterOptions
}

// counted is the number of entries of a feed, or of all.
type counted struct {
	feed        *lektordir.Feed // nil for all
	unread, all int
	flagged     int
}

// Count prints how many entries of a query are unread, and how many there are.
func Count(ctx context.Context, o CountOptions, s *command.Streams) error {
	var p *command.Printer[*counted]
	var err error
	if o.Print.Format != "" {
		if p, err = command.NewPrinter(s.Out, o.Print, countColumns()); err != nil {
			return err
		}
	}
	v, err := o.open(o.Query, command.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	found, err := v.Select(ctx, entries.Selection{Query: v.query, All: true})
	if err != nil {
		return err
	}
	total := &counted{}
	var counts []*counted
	if o.Feeds {
		of := map[string]*counted{}
		// A feed without entries counts, too, unless only some are asked for.
		if v.query.Empty() {
			feeds, err := v.Dir.Feeds()
			v.Report(err)
			for _, f := range feeds {
				of[f.Hash] = &counted{feed: f}
			}
		}
		for _, r := range found {
			c := of[r.Ref.Feed]
			if c == nil {
				c = &counted{feed: r.Feed()}
				of[r.Ref.Feed] = c
			}
			c.add(r.Ref)
		}
		for _, c := range of {
			counts = append(counts, c)
		}
		slices.SortFunc(counts, func(a, b *counted) int {
			return cmp.Or(cmp.Compare(query.Fold(a.feed.Title()), query.Fold(b.feed.Title())), cmp.Compare(a.feed.Hash, b.feed.Hash))
		})
	} else {
		for _, r := range found {
			total.add(r.Ref)
		}
		counts = append(counts, total)
	}
	for _, c := range counts {
		switch {
		case p != nil:
			err = p.Print(c)
		case c.feed == nil:
			_, err = fmt.Fprintf(s.Out, "%d unread of %d\n", c.unread, c.all)
		default:
			_, err = fmt.Fprintf(s.Out, "%6d %6d  %s\n", c.unread, c.all, termsafe.Line(c.feed.Title()))
		}
		if err != nil {
			return err
		}
	}
	if p != nil {
		return p.Flush()
	}
	return nil
}

func (c *counted) add(r lektordir.Ref) {
	c.all++
	if r.Unread() {
		c.unread++
	}
	if r.HasFlag('F') {
		c.flagged++
	}
}

// countColumns are what -o can print of a count.
func countColumns() []command.Column[*counted] {
	type C = *counted
	feed := func(get func(*lektordir.Feed) string) func(C) any {
		return func(c C) any {
			if c.feed == nil {
				return ""
			}
			return get(c.feed)
		}
	}
	return []command.Column[C]{
		{Name: "unread", Get: func(c C) any { return c.unread }},
		{Name: "all", Get: func(c C) any { return c.all }},
		{Name: "flagged", Get: func(c C) any { return c.flagged }},
		{Name: "feed", Get: feed((*lektordir.Feed).Title)},
		{Name: "feedid", Get: feed(func(f *lektordir.Feed) string { return fetch.Public(f.ID) })},
		{Name: "feedhash", Verbatim: true, Get: feed(func(f *lektordir.Feed) string { return f.Hash })},
	}
}
