package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	By    string // one of [Groups], for a line of each; "" for one of all
	Print command.PrinterOptions
	// Total adds a line of all to those of several, for a person.
	Total bool
}

// Groups are what entries can be counted by.
var Groups = []string{"folder", "feed", "author", "day", "query"}

// counted is the number of entries of a feed, of another group, or of all.
type counted struct {
	feed *lektordir.Feed // of a group by feed
	key  string          // what orders groups
	name string          // of a group, "" for those that have none
	entries.Tally
}

// Count prints how many entries of a query are unread, and how many there are.
func Count(ctx context.Context, o CountOptions, s *command.Streams) error {
	if o.By != "" && !slices.Contains(Groups, o.By) {
		return &command.UsageError{
			Message: fmt.Sprintf("--by %s: entries are not counted by that", o.By),
			Hint:    "count by one of " + strings.Join(Groups, ", "),
		}
	}
	var p *command.Printer[*counted]
	var err error
	if o.Print.Format != "" {
		if p, err = command.NewPrinter(s.Out, o.Print, countColumns(o.By)); err != nil {
			return err
		}
	}
	v, err := o.open(o.Query, command.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	var want lektordir.Fields
	switch o.By {
	case "author":
		want = lektordir.FieldAuthor
	case "day":
		want = lektordir.FieldPubDate
	}
	var counts []*counted
	var total *counted
	if o.By != "query" || o.Total {
		if counts, total, err = v.counts(ctx, o.By, want); err != nil {
			return err
		}
	}
	if o.By == "query" {
		if counts, err = v.countSaved(ctx, o.Query); err != nil {
			return err
		}
	}
	if p != nil {
		return errors.Join(p.PrintAll(counts), p.Flush())
	}
	if o.By == "" {
		_, err := fmt.Fprintf(s.Out, "%d unread of %d\n", counts[0].Unread, counts[0].All)
		return err
	}
	if o.Total && len(counts) > 1 {
		counts = append(counts, total)
	}
	for _, c := range counts {
		name := cmp.Or(strings.TrimSpace(termsafe.Line(c.name)), "(no "+o.By+")")
		if _, err := fmt.Fprintf(s.Out, "%6d %6d  %s\n", c.Unread, c.All, name); err != nil {
			return err
		}
	}
	return nil
}

// named gives the authors of an entry by their names, without the addresses between
// angle brackets of those who have one: a feed mostly gives both, and now and then
// leaves the address out.
func named(authors string) string {
	var names []string
	for a := range strings.SplitSeq(authors, ",") {
		a = strings.TrimSpace(a)
		if name, address, ok := strings.Cut(a, "<"); ok && strings.HasSuffix(address, ">") {
			a = cmp.Or(strings.TrimSpace(name), a)
		}
		names = append(names, a)
	}
	return strings.Join(names, ", ")
}

// counts counts the entries of the query, in the order in which the groups are printed:
// by name, days the newest first, and what has none last; and all of them together.
func (v *viewer) counts(ctx context.Context, by string, want lektordir.Fields) (counts []*counted, total *counted, err error) {
	total = &counted{name: "in all"}
	groups := map[string]*counted{}
	group := func(id, key, name string) *counted {
		c := groups[id]
		if c == nil {
			c = &counted{key: key, name: name}
			groups[id] = c
		}
		c.name = min(c.name, name) // of several spellings always the same
		return c
	}
	feed := func(f *lektordir.Feed) *counted {
		c := group(f.Hash, query.Fold(f.Title()), f.Title())
		c.feed = f
		return c
	}
	in := map[string]map[string]string{} // folders of feeds
	foldersOf := func(hash string) map[string]string {
		folders, known := in[hash]
		if !known {
			folders = entries.FoldersAbove(v.Folders(hash))
			in[hash] = folders
		}
		return folders
	}
	add := func(hash string, f func() *lektordir.Feed, t entries.Tally) {
		total.Plus(t)
		switch by {
		case "feed":
			feed(f()).Plus(t)
		case "folder":
			for key, name := range foldersOf(hash) {
				group(key, key, name).Plus(t)
			}
			if len(foldersOf(hash)) == 0 {
				group("", "", "").Plus(t)
			}
		}
	}
	if v.query.Empty() && want == 0 {
		whole, err := v.countWhole(ctx, by, add, func(f *lektordir.Feed) {
			if by == "feed" {
				feed(f)
				return
			}
			for key, name := range foldersOf(f.Hash) {
				group(key, key, name)
			}
		})
		if whole || err != nil {
			return sortCounts(groups, total, by), total, err
		}
	}
	found, err := v.Select(ctx, entries.Selection{Query: v.query, All: true, Want: want})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range found {
		var t entries.Tally
		t.Add(r.Ref)
		add(r.Ref.Feed, r.Feed, t)
		switch by {
		case "author":
			name := named(r.Author())
			key := query.Fold(name)
			group(key, key, name).Plus(t)
		case "day":
			day := r.Date().In(v.Now.Location()).Format("2006-01-02")
			group(day, day, day).Plus(t)
		}
	}
	return sortCounts(groups, total, by), total, nil
}

// countWhole counts feeds as a whole, for which no entry has to be looked at. What has
// no entries counts, too: each feed is told to has. It reports false where entries are
// of feeds that only they themselves know.
func (v *viewer) countWhole(ctx context.Context, by string, add func(hash string, f func() *lektordir.Feed, t entries.Tally), has func(*lektordir.Feed)) (bool, error) {
	known := map[string]*lektordir.Feed{}
	if by == "feed" || by == "folder" {
		feeds, err := v.Dir.Feeds()
		v.Report(err)
		for _, f := range feeds {
			known[f.Hash] = f
			has(f)
		}
	}
	tallies, err := v.Tallies(ctx)
	if err != nil {
		return false, err
	}
	for hash := range tallies {
		if by == "feed" && known[hash] == nil {
			return false, nil
		}
	}
	for hash, t := range tallies {
		add(hash, func() *lektordir.Feed { return known[hash] }, t)
	}
	return true, nil
}

// sortCounts orders groups by name, days the newest first, and what has none last.
func sortCounts(groups map[string]*counted, total *counted, by string) []*counted {
	if by == "" {
		return []*counted{total}
	}
	counts := make([]*counted, 0, len(groups))
	for _, c := range groups {
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b *counted) int {
		if (a.name == "") != (b.name == "") {
			if a.name == "" {
				return 1
			}
			return -1
		}
		c := cmp.Compare(a.key, b.key)
		if by == "day" {
			return -c
		}
		if a.feed != nil && b.feed != nil {
			return cmp.Or(c, cmp.Compare(a.feed.Hash, b.feed.Hash))
		}
		return cmp.Or(c, cmp.Compare(a.name, b.name))
	})
	return counts
}

// countSaved counts the entries of each saved query that match the words as well.
func (v *viewer) countSaved(ctx context.Context, words []string) ([]*counted, error) {
	saved, err := entries.SavedQueries(v.Dir.Path())
	if err != nil {
		return nil, err
	}
	var counts []*counted
	for _, q := range saved {
		if q.Err != nil {
			v.S.Report.Print(q.Err)
			continue
		}
		if !v.query.Empty() {
			both := append([]string{q.Query.String(), "("}, words...)
			if q.Query, err = entries.ParseQuery(v.Dir.Path(), append(both, ")")); err != nil {
				return nil, err
			}
		}
		c := &counted{name: q.Name}
		found, err := v.Select(ctx, entries.Selection{Query: q.Query, All: true})
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			c.Add(r.Ref)
		}
		counts = append(counts, c)
	}
	return counts, nil
}

// countColumns are what -o can print of a count: the numbers, and what they are of.
func countColumns(by string) []command.Column[*counted] {
	type C = *counted
	columns := []command.Column[C]{
		{Name: "unread", Get: func(c C) any { return c.Unread }},
		{Name: "all", Get: func(c C) any { return c.All }},
		{Name: "flagged", Get: func(c C) any { return c.Flagged }},
	}
	if by != "" && by != "feed" {
		return append(columns, command.Column[C]{Name: by, Get: func(c C) any { return c.name }})
	}
	feed := func(get func(*lektordir.Feed) string) func(C) any {
		return func(c C) any {
			if c.feed == nil {
				return ""
			}
			return get(c.feed)
		}
	}
	return append(columns,
		command.Column[C]{Name: "feed", Get: feed((*lektordir.Feed).Title)},
		command.Column[C]{Name: "feedid", Get: feed(func(f *lektordir.Feed) string { return fetch.Public(f.ID) })},
		command.Column[C]{Name: "feedhash", Verbatim: true, Get: feed(func(f *lektordir.Feed) string { return f.Hash })},
	)
}
