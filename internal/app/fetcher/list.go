package fetcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// ListOptions are the options of [List].
type ListOptions struct {
	Common
	Feeds    []string // if empty, all feeds; "-" reads a list
	Print    cmdline.PrinterOptions
	Screen   cmdline.Screen // screen that the list is for, unless Print has a format
	Broken   bool           // list only feeds whose last fetch failed
	Category string         // list only feeds in it or below; "": all
	All      bool           // also list feeds that are not subscribed to
}

// listed is a subscription in the list.
type listed struct {
	*subscriptions.Subscription
	d      *lektordir.Dir
	unread map[string]int
}

// shown returns the title for a person. The mark of a paused feed comes first, as a long title is truncated.
func (l *listed) shown() string {
	if l.Paused {
		return "(paused) " + l.Title()
	}
	return l.Title()
}

// podcast returns the properties that only podcasts have, as lines.
func (l *listed) podcast() any {
	var lines []string
	for _, f := range entrystore.FeedFields(l.d.FeedOf(lektordir.Ref{Feed: l.Hash})) {
		lines = append(lines, f.Name+": "+f.Value())
	}
	return lines
}

var listColumns = []cmdline.Column[*listed]{
	{Name: "path", Verbatim: true, Get: func(l *listed) any { return l.d.Join("src", l.Hash) }},
	{Name: "title", Get: func(l *listed) any { return l.Title() }},
	{Name: "url", Get: func(l *listed) any { return feedurl.Public(l.URL) }},
	{Name: "unread", Get: func(l *listed) any { return l.unread[l.Hash] }},
	{Name: "categories", Get: func(l *listed) any { return l.Categories }},
	{Name: "error", Get: func(l *listed) any { return l.Error }},
	{Name: "history", Get: func(l *listed) any { return history.Of(l.d, l.Hash).Summary() }},
	{Name: "hash", Extra: true, Get: func(l *listed) any { return l.Hash }},
	{Name: "id", Extra: true, Get: func(l *listed) any { return feedurl.Public(l.ID) }},
	{Name: "name", Extra: true, Get: func(l *listed) any { return l.Name }},
	{Name: "alias", Extra: true, Get: func(l *listed) any { return l.Alias }},
	{Name: "link", Extra: true, Get: func(l *listed) any { return l.Link }},
	{Name: "generator", Extra: true, Get: func(l *listed) any { return l.Generator }},
	{Name: "podcast", Extra: true, Get: (*listed).podcast},
	{Name: "interval", Extra: true, Get: func(l *listed) any { return l.Interval }},
	{Name: "private", Extra: true, Get: func(l *listed) any { return l.Private }},
	{Name: "paused", Extra: true, Get: func(l *listed) any { return l.Paused }},
	{Name: "checked", Extra: true, Get: func(l *listed) any { return schedule.Checked(l.d, l.Hash) }},
	{Name: "next", Extra: true, Get: func(l *listed) any { return schedule.Next(l.d, l.Hash) }},
}

// List prints the subscriptions, sorted by title.
func List(ctx context.Context, o ListOptions, s *cmdline.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	var p *cmdline.Printer[*listed]
	if o.Print.Format != "" {
		if p, err = cmdline.NewPrinter(s.Out, o.Print, listColumns); err != nil {
			return err
		}
	}
	list := subscriptions.List
	if o.All {
		list = subscriptions.ListAll
	}
	subs, bad := list(d)
	if len(o.Feeds) > 0 {
		named, _, err := entrystore.Named(ctx, o.Feeds, o.Print.Nul, s, entrystore.Finding(d, o.All))
		if err != nil {
			return err
		}
		subs = slices.DeleteFunc(subs,
			func(s *subscriptions.Subscription) bool { return !slices.Contains(named, s.Hash) })
	}
	refs, err := d.List(ctx, lektordir.ListOptions{SkipTrashed: true})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range humanize.Errors(errors.Join(bad, err)) {
		s.Report.Warn("%v", err)
	}
	unread := map[string]int{}
	for _, ref := range refs {
		if ref.Unread() {
			unread[ref.Feed]++
		}
	}
	slices.SortStableFunc(subs, (*subscriptions.Subscription).Compare)
	var shown []*listed
	for _, sub := range subs {
		if o.Broken && sub.Error == "" || !settings.InCategory(sub.Categories, o.Category) {
			continue
		}
		l := &listed{sub, d, unread}
		if p == nil {
			shown = append(shown, l)
		} else if err := p.Print(l); err != nil {
			return err
		}
	}
	if p != nil {
		return p.Flush()
	}
	_, err = s.Out.Write(rows(shown, o))
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
		o.Screen = cmdline.Screen{}
	}
	number, title, broken := 1, 0, false
	for _, l := range list {
		number = max(number, len(strconv.Itoa(l.unread[l.Hash])))
		title = max(title, termsafe.Width(clean(l.shown())))
		broken = broken || l.Error != ""
	}
	title = min(title, max(minTitle, o.Screen.Width*2/5))
	var b bytes.Buffer
	for _, l := range list {
		text, url, failed := clean(l.shown()), clean(feedurl.Public(l.URL)), clean(l.Error)
		style := cmdline.Plain
		if l.unread[l.Hash] > 0 {
			style = cmdline.Bold
		}
		name := cmdline.Piece{Text: text, Style: style}
		count := cmdline.Piece{Text: fmt.Sprintf("%*d  ", number, l.unread[l.Hash])}
		switch {
		case o.Screen.Width == 0:
			line := fmt.Sprintf("%5d  %s%s  %s", l.unread[l.Hash], text,
				strings.Repeat(" ", max(0, minTitle-termsafe.Width(text))), url)
			if failed != "" {
				line += "  ! " + failed
			}
			o.Screen.Line(&b, cmdline.Piece{Text: line})
		case o.Screen.Width < withURL:
			mark := cmdline.Piece{}
			switch {
			case failed != "":
				mark = cmdline.Piece{Text: "! ", Style: cmdline.Failed}
			case broken:
				mark.Text = "  "
			}
			o.Screen.Line(&b, count, mark, name)
		default:
			name.Text = termsafe.Truncate(text, title)
			blank := cmdline.Piece{Text: strings.Repeat(" ", max(0, title-termsafe.Width(name.Text))+2)}
			last := cmdline.Piece{Text: url, Style: cmdline.Feed}
			if failed != "" {
				// The error is more useful than the end of the URL, and mostly names the URL.
				if !strings.Contains(failed, url) {
					failed += "  " + url
				}
				last = cmdline.Piece{Text: "! " + failed, Style: cmdline.Failed}
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
