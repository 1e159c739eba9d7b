package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// RemoveOptions are those of [Remove].
type RemoveOptions struct {
	Common
	Feeds         []string
	Nul           bool // what "-" reads ends with NUL
	Purge, DryRun bool
}

// Remove unsubscribes, and removes the entries of the feeds too with Purge.
func Remove(ctx context.Context, o RemoveOptions, s *command.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	r, err := o.runner(s, d, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	done, remove := "unsubscribed", func(hash, _ string) error { return feeddir.Remove(r.Writer, d, hash) }
	switch {
	case o.Purge && o.DryRun:
		done = "would be removed with its entries"
	case o.DryRun:
		done = "would be unsubscribed from"
	case o.Purge:
		r.Recover(ctx) // a purge that was interrupted
		done = "removed with its entries"
		remove = func(hash, title string) error { return r.purge(ctx, hash, title) }
	}
	// Of a feed that is not subscribed to any more its entries may be purged.
	find := &feeddir.Finder{Dir: d, All: o.Purge}
	for name, err := range command.ReadArgs(o.Feeds, s.In, o.Nul) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var hash, title string
		if err == nil {
			hash, err = find.Find(name)
		}
		if err == nil {
			title = hash
			if f, _ := d.ReadFeed(hash); f != nil {
				title = f.Title()
			}
			if !o.DryRun {
				err = remove(hash, title)
			}
		}
		if err != nil {
			s.Report.Print(entries.FeedHint(err))
			continue
		}
		s.Report.Info("%s: %s (%s)", name, done, title)
	}
	return nil
}

// purge removes a feed with its entries. One that another process has is waited
// for, which is told.
func (r *Runner) purge(ctx context.Context, hash, title string) error {
	t, err := r.Writer.Begin(hash)
	if inUse := (*lektordir.BusyError)(nil); errors.As(err, &inUse) {
		r.report.Info("%s: another process has the feed; waiting for it", title)
	} else if err == nil {
		t.Close()
	}
	return feeddir.Purge(ctx, r.Writer, r.Dir, hash)
}

// ListOptions are those of [List].
type ListOptions struct {
	Common
	Feeds    []string // none for all; "-" reads them
	Print    command.PrinterOptions
	Broken   bool   // only those whose last fetch failed
	Category string // only those in it or below; empty for all
}

// listed is a subscription in a list.
type listed struct {
	*feeddir.Subscription
	d      *lektordir.Dir
	unread map[string]int
}

var listColumns = []command.Column[*listed]{
	{Name: "path", Verbatim: true, Get: func(l *listed) any { return l.d.Join("src", l.Hash) }},
	{Name: "title", Get: func(l *listed) any { return l.Title() }},
	{Name: "url", Get: func(l *listed) any { return fetch.Public(l.URL) }},
	{Name: "unread", Get: func(l *listed) any { return l.unread[l.Hash] }},
	{Name: "categories", Get: func(l *listed) any { return l.Categories }},
	{Name: "error", Get: func(l *listed) any { return l.Error }},
	{Name: "history", Get: func(l *listed) any { return feeddir.HistoryOf(l.d, l.Hash).Summary() }},
	{Name: "hash", Extra: true, Get: func(l *listed) any { return l.Hash }},
	{Name: "id", Extra: true, Get: func(l *listed) any { return fetch.Public(l.ID) }},
	{Name: "name", Extra: true, Get: func(l *listed) any { return l.Name }},
	{Name: "alias", Extra: true, Get: func(l *listed) any { return l.Alias }},
	{Name: "link", Extra: true, Get: func(l *listed) any { return l.Link }},
	{Name: "interval", Extra: true, Get: func(l *listed) any { return l.Interval }},
	{Name: "private", Extra: true, Get: func(l *listed) any { return l.Private }},
	{Name: "checked", Extra: true, Get: func(l *listed) any { return feeddir.Checked(l.d, l.Hash) }},
	{Name: "next", Extra: true, Get: func(l *listed) any { return feeddir.Next(l.d, l.Hash) }},
}

// listFormat is what is printed unasked.
const listFormat = `{{.unread | printf "%5d"}}  {{.title | pad 30}}  {{.url}}{{if .error}}  ! {{.error}}{{end}}`

// List prints subscriptions by title.
func List(ctx context.Context, o ListOptions, s *command.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	o.Print.Format = cmp.Or(o.Print.Format, listFormat)
	p, err := command.NewPrinter(s.Out, o.Print, listColumns)
	if err != nil {
		return err
	}
	subs, bad := feeddir.List(d)
	if len(o.Feeds) > 0 {
		named, err := feeds(ctx, d, o.Feeds, o.Print.Nul, s)
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
	for _, sub := range subs {
		if o.Broken && sub.Error == "" || !feeddir.InCategory(sub.Categories, o.Category) {
			continue
		}
		if err := p.Print(&listed{sub, d, unread}); err != nil {
			return err
		}
	}
	return p.Flush()
}

// SetOptions are those of [Set].
type SetOptions struct {
	Common
	Feed          string
	Key           string   // empty for all settings
	Values        []string // lines; none to show what is set
	Unset, DryRun bool
	Force         bool // an interval of less than [feeddir.MinInterval] too
}

// Set changes or removes a setting of a feed; or shows it, or all of them.
func Set(_ context.Context, o SetOptions, s *command.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	hash, err := feeddir.Find(d, o.Feed)
	switch {
	case err != nil:
		return entries.FeedHint(err)
	case o.Key == "":
		for _, key := range feeddir.Settings {
			err = errors.Join(err, printSetting(s, d, hash, key, key+"\t"))
		}
		return err
	case !o.Unset && len(o.Values) == 0:
		return settingError(printSetting(s, d, hash, o.Key, ""))
	}
	value := strings.Join(o.Values, "\n")
	if !o.Unset {
		if o.Key == "url" {
			value, err = source(value)
		}
		if err == nil {
			err = checkSetting(o.Key, value, o.Force)
		}
		if err != nil {
			return usage(err)
		}
	}
	if o.DryRun {
		return nil
	}
	r, err := o.runner(s, d, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.Unset {
		err = feeddir.Unset(r.Writer, d, hash, o.Key)
	} else {
		err = feeddir.SetForced(r.Writer, d, hash, o.Key, value)
	}
	return settingError(entries.FeedHint(err))
}

// printSetting prints the lines of a setting, each after a prefix.
func printSetting(s *command.Streams, d *lektordir.Dir, hash, key, prefix string) error {
	v, err := feeddir.Get(d, hash, key)
	for line := range strings.SplitSeq(v, "\n") {
		if line != "" {
			fmt.Fprintf(s.Out, "%s%s\n", prefix, termsafe.Line(line))
		}
	}
	return err
}

// checkSetting tells whether a value can be set, and an interval that is too
// short be forced.
func checkSetting(key, value string, force bool) error {
	err := feeddir.Check(key, value)
	if short := (*feeddir.ShortIntervalError)(nil); errors.As(err, &short) {
		if force {
			return nil
		}
		return command.Hint(err, "--force sets it all the same")
	}
	return err
}

// settingError makes a mistyped setting a mistake in the command line.
func settingError(err error) error {
	if unknown := (*feeddir.UnknownSettingError)(nil); errors.As(err, &unknown) {
		return usage(err)
	}
	return err
}

// usage makes what is wrong with a setting a mistake in the command line.
func usage(err error) error {
	u := &command.UsageError{Message: err.Error()}
	var hint *command.HintError
	var unknown *feeddir.UnknownSettingError
	switch {
	case errors.As(err, &hint):
		u.Hint = hint.Hint
	case errors.As(err, &unknown):
		u.Hint = "lektor-fetch set FEED lists those of a feed"
	}
	return u
}

// CheckOptions are those of [Check].
type CheckOptions struct {
	Common
	Repair bool
}

// Check prints what is wrong with the lektor-dir, a line each. It is an error
// if that is more than it repaired.
func Check(ctx context.Context, o CheckOptions, s *command.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	problems, err := d.Check(ctx, o.Repair)
	left, safe := 0, false
	for _, p := range problems {
		printLine(s, p.String())
		if !p.Repaired {
			left++
		}
		safe = safe || p.Safe
	}
	if err != nil || left == 0 {
		return err
	}
	err = errors.New(units.Count(left, "problem"))
	if safe && !o.Repair {
		return command.Hint(err, "lektor-fetch check --repair mends what is safe to mend")
	}
	return err
}
