package fetcher

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// ListOptions are the options of [List].
type ListOptions struct {
	Common
	Feeds    []string // if empty, all feeds; "-" reads a list
	Print    command.PrinterOptions
	Screen   command.Screen // screen that the list is for, unless Print has a format
	Broken   bool           // list only feeds whose last fetch failed
	Category string         // list only feeds in it or below; "": all
}

// listed is a subscription in the list.
type listed struct {
	*feeddir.Subscription
	d      *lektordir.Dir
	unread map[string]int
}

var listColumns = []command.Column[*listed]{
	{Name: "path", Verbatim: true, Get: func(l *listed) any { return l.d.Join("src", l.Hash) }},
	{Name: "title", Get: func(l *listed) any { return l.Title() }},
	{Name: "url", Get: func(l *listed) any { return feedurl.Public(l.URL) }},
	{Name: "unread", Get: func(l *listed) any { return l.unread[l.Hash] }},
	{Name: "categories", Get: func(l *listed) any { return l.Categories }},
	{Name: "error", Get: func(l *listed) any { return l.Error }},
	{Name: "history", Get: func(l *listed) any { return feeddir.HistoryOf(l.d, l.Hash).Summary() }},
	{Name: "hash", Extra: true, Get: func(l *listed) any { return l.Hash }},
	{Name: "id", Extra: true, Get: func(l *listed) any { return feedurl.Public(l.ID) }},
	{Name: "name", Extra: true, Get: func(l *listed) any { return l.Name }},
	{Name: "alias", Extra: true, Get: func(l *listed) any { return l.Alias }},
	{Name: "link", Extra: true, Get: func(l *listed) any { return l.Link }},
	{Name: "generator", Extra: true, Get: func(l *listed) any { return l.Generator }},
	{Name: "interval", Extra: true, Get: func(l *listed) any { return l.Interval }},
	{Name: "private", Extra: true, Get: func(l *listed) any { return l.Private }},
	{Name: "checked", Extra: true, Get: func(l *listed) any { return feeddir.Checked(l.d, l.Hash) }},
	{Name: "next", Extra: true, Get: func(l *listed) any { return feeddir.Next(l.d, l.Hash) }},
}

// List prints the subscriptions, sorted by title.
func List(ctx context.Context, o ListOptions, s *command.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	var p *command.Printer[*listed]
	if o.Print.Format != "" {
		if p, err = command.NewPrinter(s.Out, o.Print, listColumns); err != nil {
			return err
		}
	}
	subs, bad := feeddir.List(d)
	if len(o.Feeds) > 0 {
		named, _, err := entries.Feeds(ctx, o.Feeds, o.Print.Nul, s, entries.Finding(d, false))
		if err != nil {
			return err
		}
		subs = slices.DeleteFunc(subs, func(s *feeddir.Subscription) bool { return !slices.Contains(named, s.Hash) })
	}
	refs, err := d.List(ctx, lektordir.ListOptions{SkipTrashed: true})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range joined.Errors(errors.Join(bad, err)) {
		s.Report.Warn("%v", err)
	}
	unread := map[string]int{}
	for _, ref := range refs {
		if ref.Unread() {
			unread[ref.Feed]++
		}
	}
	slices.SortStableFunc(subs, func(a, b *feeddir.Subscription) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title()), strings.ToLower(b.Title())), strings.Compare(a.URL, b.URL))
	})
	var list []*listed
	for _, sub := range subs {
		if o.Broken && sub.Error == "" || !feeddir.InCategory(sub.Categories, o.Category) {
			continue
		}
		l := &listed{sub, d, unread}
		if p == nil {
			list = append(list, l)
		} else if err := p.Print(l); err != nil {
			return err
		}
	}
	if p != nil {
		return p.Flush()
	}
	_, err = s.Out.Write(rows(list, o))
	return err
}

// A screen narrower than withURL columns shows the title and a mark for feeds that failed. The
// title takes minTitle columns, or two fifths of a wider screen. In a pipe it is padded to
// minTitle.
const withURL, minTitle = 60, 30

// rows returns the list for a person: number of unread entries, title, URL and error. Lines are
// truncated for a screen only.
func rows(list []*listed, o ListOptions) []byte {
	clean := termsafe.Line
	if o.Print.Raw {
		clean = func(s string) string { return s }
		o.Screen = command.Screen{}
	}
	number, title, broken := 1, 0, false
	for _, l := range list {
		number = max(number, len(strconv.Itoa(l.unread[l.Hash])))
		title = max(title, termsafe.Width(clean(l.Title())))
		broken = broken || l.Error != ""
	}
	title = min(title, max(minTitle, o.Screen.Width*2/5))
	var b bytes.Buffer
	for _, l := range list {
		text, url, failed := clean(l.Title()), clean(feedurl.Public(l.URL)), clean(l.Error)
		style := command.Plain
		if l.unread[l.Hash] > 0 {
			style = command.Bold
		}
		name := command.Piece{Text: text, Style: style}
		count := command.Piece{Text: fmt.Sprintf("%*d  ", number, l.unread[l.Hash])}
		switch {
		case o.Screen.Width == 0:
			line := fmt.Sprintf("%5d  %s%s  %s", l.unread[l.Hash], text, strings.Repeat(" ", max(0, minTitle-termsafe.Width(text))), url)
			if failed != "" {
				line += "  ! " + failed
			}
			o.Screen.Line(&b, command.Piece{Text: line})
		case o.Screen.Width < withURL:
			mark := command.Piece{}
			switch {
			case failed != "":
				mark = command.Piece{Text: "! ", Style: command.Failed}
			case broken:
				mark.Text = "  "
			}
			o.Screen.Line(&b, count, mark, name)
		default:
			name.Text = termsafe.Truncate(text, title)
			blank := command.Piece{Text: strings.Repeat(" ", max(0, title-termsafe.Width(name.Text))+2)}
			last := command.Piece{Text: url, Style: command.Feed}
			if failed != "" {
				// The error is more useful than the end of the URL, and mostly names the URL.
				if !strings.Contains(failed, url) {
					failed += "  " + url
				}
				last = command.Piece{Text: "! " + failed, Style: command.Failed}
			}
			o.Screen.Line(&b, count, name, blank, last)
		}
		if o.Print.Nul {
			b.Truncate(b.Len() - 1)
			b.WriteByte(0)
		}
	}
	return b.Bytes()
}
