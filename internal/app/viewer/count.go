package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// CountOptions are the options of [Count].
type CountOptions struct {
	session.Common
	Query []string
	By    string // one of [Groups], for a line for each group; "" for a single line
	Print cmdline.PrinterOptions
	// Total adds a line with the sum to the lines of two or more groups, if they are printed for a person.
	Total bool
}

// Groups are the valid values of [CountOptions].By.
var Groups = []string{"folder", "feed", "author", "day", "query"}

// counted is the number of entries in a group, or in all.
type counted struct {
	feed *lektordir.Feed // nil unless groups are feeds
	key  string          // sort key of the group
	name string          // name of the group; "" for entries without an author, folder or feed name
	entrystore.Tally
}

// Count prints the number of unread entries and of all entries that match a query.
func Count(ctx context.Context, o CountOptions, s *cmdline.Streams) error {
	if o.By != "" && !slices.Contains(Groups, o.By) {
		return &cmdline.UsageError{
			Message: fmt.Sprintf("--by %s: cannot count by that", o.By),
			Hint:    "count by one of " + strings.Join(Groups, ", "),
		}
	}
	var p *cmdline.Printer[*counted]
	var err error
	if o.Print.Format != "" {
		if p, err = cmdline.NewPrinter(s.Out, o.Print, countColumns(o.By)); err != nil {
			return err
		}
	}
	v, err := o.Open(o.Query, cmdline.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	c := &counting{Session: v, by: o.By, groups: map[string]*counted{}, total: &counted{name: "in all"}}
	var counts []*counted
	if o.By != "query" || o.Total {
		if err := c.count(ctx); err != nil {
			return err
		}
		counts = c.sorted()
	}
	if o.By == "query" {
		if counts, err = countSaved(ctx, v, o.Query); err != nil {
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
		counts = append(counts, c.total)
	}
	for _, c := range counts {
		name := cmp.Or(strings.TrimSpace(termsafe.Line(c.name)), "(no "+o.By+")")
		if _, err := fmt.Fprintf(s.Out, "%6d %6d  %s\n", c.Unread, c.All, name); err != nil {
			return err
		}
	}
	return nil
}

// named removes the addresses in angle brackets from a list of authors, unless an author has
// no name. Many feeds include the address in most entries but not in all.
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

// counting is a run of [Count].
type counting struct {
	*session.Session
	by     string
	groups map[string]*counted // by feed hash or folded name
	total  *counted
	above  workers.Cache[map[string]string] // results of [counting.folders] by feed hash
}

// count counts the entries of the query.
func (c *counting) count(ctx context.Context) error {
	want := map[string]lektordir.Fields{"author": lektordir.FieldAuthor, "day": lektordir.FieldPubDate}[c.by]
	if c.Query.Empty() && want == 0 {
		if whole, err := c.countWhole(ctx); whole || err != nil {
			return err
		}
	}
	found, err := c.Select(ctx, entrystore.Selection{Query: c.Query, All: true, Want: want})
	if err != nil {
		return err
	}
	for _, r := range found {
		var t entrystore.Tally
		t.Add(r.Ref)
		switch c.by {
		case "author":
			c.name(named(r.Author())).Plus(t)
		case "day":
			c.name(r.Date().In(c.Now.Location()).Format("2006-01-02")).Plus(t)
		case "feed":
			c.feed(r.Feed()).Plus(t)
		}
		c.add(r.Ref.Feed, t)
	}
	return nil
}

// countWhole counts all entries without reading them. Feeds without entries have groups too. It
// reports false if entries have to be read, because src/ lacks a feed that groups need.
func (c *counting) countWhole(ctx context.Context) (bool, error) {
	byHash := map[string]*lektordir.Feed{}
	if c.by == "feed" || c.by == "folder" {
		feeds, err := c.Dir.Feeds()
		c.Report(err)
		for _, f := range feeds {
			byHash[f.Hash] = f
			if c.by == "feed" {
				c.feed(f)
				continue
			}
			for key, name := range c.folders(f.Hash) {
				c.group(key, key, name)
			}
		}
	}
	tallies, err := c.Tallies(ctx)
	if err != nil {
		return false, err
	}
	for hash := range tallies {
		if c.by == "feed" && byHash[hash] == nil {
			return false, nil
		}
	}
	for hash, t := range tallies {
		if c.by == "feed" {
			c.feed(byHash[hash]).Plus(t)
		}
		c.add(hash, t)
	}
	return true, nil
}

// add adds the tally of a feed to the total, and to its folders if groups are folders.
func (c *counting) add(hash string, t entrystore.Tally) {
	c.total.Plus(t)
	if c.by != "folder" {
		return
	}
	for key, name := range c.folders(hash) {
		c.group(key, key, name).Plus(t)
	}
	if len(c.folders(hash)) == 0 {
		c.group("", "", "").Plus(t)
	}
}

// group returns the group of an id, and makes it if it does not exist.
func (c *counting) group(id, key, name string) *counted {
	g := c.groups[id]
	if g == nil {
		g = &counted{key: key, name: name}
		c.groups[id] = g
	}
	g.name = min(g.name, name) // the same spelling in any order of entries
	return g
}

// name returns the group of a name.
func (c *counting) name(name string) *counted {
	key := query.Fold(name)
	return c.group(key, key, name)
}

// feed returns the group of a feed.
func (c *counting) feed(f *lektordir.Feed) *counted {
	g := c.group(f.Hash, query.Fold(f.Title()), f.Title())
	g.feed = f
	return g
}

// folders returns the folders of a feed and their parents: names by folded path.
func (c *counting) folders(hash string) map[string]string {
	return c.above.Of(hash, func() map[string]string { return entrystore.FoldersAbove(c.Folders(hash)) })
}

// sorted returns the groups by name, days newest first. The group without a name is last.
func (c *counting) sorted() []*counted {
	if c.by == "" {
		return []*counted{c.total}
	}
	return slices.SortedFunc(maps.Values(c.groups), func(a, b *counted) int {
		if (a.name == "") != (b.name == "") {
			if a.name == "" {
				return 1
			}
			return -1
		}
		order := cmp.Compare(a.key, b.key)
		if c.by == "day" {
			return -order
		}
		if a.feed != nil && b.feed != nil {
			return cmp.Or(order, cmp.Compare(a.feed.Hash, b.feed.Hash))
		}
		return cmp.Or(order, cmp.Compare(a.name, b.name))
	})
}

// countSaved counts for each saved query the entries that match it and the words.
func countSaved(ctx context.Context, v *session.Session, words []string) ([]*counted, error) {
	saved, err := entrystore.SavedQueries(v.Dir.Path())
	if err != nil {
		return nil, err
	}
	var counts []*counted
	for _, q := range saved {
		if q.Err != nil {
			v.S.Report.Print(q.Err)
			continue
		}
		if !v.Query.Empty() {
			both := append([]string{q.Query.String(), "("}, words...)
			if q.Query, err = entrystore.ParseQuery(v.Dir.Path(), append(both, ")")); err != nil {
				return nil, err
			}
		}
		c := &counted{name: q.Name}
		found, err := v.Select(ctx, entrystore.Selection{Query: q.Query, All: true})
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

// countColumns returns the columns of -o for groups of a kind.
func countColumns(by string) []cmdline.Column[*counted] {
	type C = *counted
	columns := []cmdline.Column[C]{
		{Name: "unread", Get: func(c C) any { return c.Unread }},
		{Name: "all", Get: func(c C) any { return c.All }},
		{Name: "flagged", Get: func(c C) any { return c.Flagged }},
	}
	if by != "" && by != "feed" {
		return append(columns, cmdline.Column[C]{Name: by, Get: func(c C) any { return c.name }})
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
		cmdline.Column[C]{Name: "feed", Get: feed((*lektordir.Feed).Title)},
		cmdline.Column[C]{Name: "feedid", Get: feed(func(f *lektordir.Feed) string { return feedurl.Public(f.ID) })},
		cmdline.Column[C]{Name: "feedhash", Verbatim: true,
			Get: feed(func(f *lektordir.Feed) string { return f.Hash })},
	)
}
