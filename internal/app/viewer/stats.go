package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// StatsOptions are the options of [Stats].
type StatsOptions struct {
	session.Common
	Query []string
	Weeks int // number of weeks, including this one (default [DefaultWeeks])
	Print cmdline.PrinterOptions
	HTML  bool // print a page, whatever Print is
	Width int  // columns to cut lines to; 0 does not cut them
}

// DefaultWeeks is the default of [StatsOptions].Weeks.
const DefaultWeeks = 12

// stat is the statistics of a feed.
type stat struct {
	counted
	Weeks  []int     // number of entries dated in each week, oldest week first
	newest time.Time // date of the newest entry
	dirs   []string  // directories of the feed and its entries
	Disk   int64     // bytes on the disk
	error  string    // error of the last fetch
	silent bool      // no entry in all the weeks
}

// Stats prints a line for each feed: the number of its entries, a bar with the entries of each of
// the last weeks, its size on the disk, and whether it is broken or silent.
func Stats(ctx context.Context, o StatsOptions, s *cmdline.Streams) error {
	o.Weeks = cmp.Or(o.Weeks, DefaultWeeks)
	var p *cmdline.Printer[*stat]
	var err error
	if o.Print.Format != "" {
		if p, err = cmdline.NewPrinter(s.Out, o.Print, statColumns); err != nil {
			return err
		}
	}
	v, err := o.Open(o.Query, cmdline.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	list, err := stats(ctx, v, o.Weeks)
	if err != nil {
		return err
	}
	if o.HTML {
		return printStatsPage(v, list, o.Weeks)
	}
	if p == nil {
		return printStats(v, list, o)
	}
	return errors.Join(p.PrintAll(list), p.Flush())
}

// stats returns the statistics of feeds, sorted by title.
func stats(ctx context.Context, v *session.Session, weeks int) ([]*stat, error) {
	found, err := v.Select(ctx, entrystore.Selection{Query: v.Query, All: true, Want: lektordir.FieldPubDate})
	if err != nil {
		return nil, err
	}
	byFeed := map[string]*stat{}
	statOf := func(f *lektordir.Feed) *stat {
		x := byFeed[f.Hash]
		if x == nil {
			x = &stat{counted: counted{feed: f}, Weeks: make([]int, weeks), dirs: []string{v.Dir.Join("src", f.Hash)}}
			byFeed[f.Hash] = x
		}
		return x
	}
	if v.Query.Empty() {
		feeds, err := v.Dir.Feeds()
		v.Report(err)
		for _, f := range feeds {
			statOf(f)
		}
	}
	for _, r := range found {
		x := statOf(r.Feed())
		x.count(r, v.Now)
		x.dirs = append(x.dirs, r.Path())
	}
	list := slices.SortedFunc(maps.Values(byFeed), func(a, b *stat) int {
		return cmp.Or(cmp.Compare(query.Fold(a.feed.Title()), query.Fold(b.feed.Title())),
			cmp.Compare(a.feed.Hash, b.feed.Hash))
	})
	err = workers.ForEach(ctx, len(list), func(i int) {
		x := list[i]
		x.error = schedule.LastError(v.Dir, x.feed.Hash)
		x.silent = x.newest.IsZero() || weeksAgo(x.newest, v.Now) >= weeks
		x.measure(ctx)
	})
	return list, err
}

// weeksAgo returns how many weeks ago a time is: 0 for the last seven days and for the future.
func weeksAgo(t, now time.Time) int {
	return max(0, (day(now)-day(t.In(now.Location())))/7)
}

// count adds an entry.
func (x *stat) count(r *entrystore.Record, now time.Time) {
	date := r.Date()
	x.Add(r.Ref)
	if date.After(x.newest) {
		x.newest = date
	}
	if ago, weeks := weeksAgo(date, now), len(x.Weeks); ago >= 0 && ago < weeks {
		x.Weeks[weeks-1-ago]++
	}
}

type inode struct{ dev, ino uint64 }

// measure adds up the disk blocks of the directories. Hard-linked files count once.
func (x *stat) measure(ctx context.Context) {
	counted := map[inode]bool{}
	for _, dir := range x.dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return filepath.SkipAll
			}
			var st unix.Stat_t
			if err != nil || unix.Lstat(path, &st) != nil {
				return nil // the file vanished
			}
			if id := (inode{uint64(st.Dev), uint64(st.Ino)}); !counted[id] {
				x.Disk += int64(st.Blocks) * 512
				counted[id] = st.Nlink > 1 && !e.IsDir()
			}
			return nil
		})
	}
	x.dirs = nil
}

// bars are the levels of a bar, from empty to full.
var bars = [...]string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}

// bar draws the weeks of a feed; most is the number of entries in its fullest week. A week with
// one entry is never blank.
func bar(weeks []int, most int) string {
	var b strings.Builder
	for _, n := range weeks {
		level := 0
		if n > 0 {
			level = max(1, n*(len(bars)-1)/max(1, most))
		}
		b.WriteString(bars[level])
	}
	return b.String()
}

// printStats prints statistics for a person. Bars are scaled to the fullest week of their feed,
// whose number of entries is printed beside them.
func printStats(v *session.Session, stats []*stat, o StatsOptions) error {
	all := sum(stats, o.Weeks)
	var b strings.Builder
	fmt.Fprintf(&b, "%8s %8s  %-*s %5s %10s  %s\n", "unread", "entries", max(o.Weeks, len("weeks")), "weeks", "most",
		"disk", "feed")
	for _, x := range stats {
		most := slices.Max(x.Weeks)
		line := fmt.Sprintf("%8d %8d  %s%*s %5d %10s  %s", x.Unread, x.All, bar(x.Weeks, most),
			max(0, len("weeks")-o.Weeks), "", most, humanize.Bytes(x.Disk), termsafe.Line(x.feed.Title()))
		if state := x.state(v.Now); state != "" {
			line += "  " + termsafe.Line(state)
		}
		if o.Width > 0 {
			line = termsafe.Truncate(line, o.Width)
		}
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "%8d %8d  %s\n", all.Unread, all.All, all)
	_, err := v.S.Out.Write([]byte(b.String()))
	return err
}

// state returns why the feed needs attention, as untrusted text, or "".
func (x *stat) state(now time.Time) string {
	switch {
	case x.error != "":
		return "broken: " + x.error
	case x.newest.IsZero():
		return "silent"
	case x.silent:
		return "silent since " + x.newest.In(now.Location()).Format("2006-01-02")
	}
	return ""
}

// statSum is the sum of the statistics of feeds.
type statSum struct {
	stat
	feeds, broken, silent int
}

// sum adds up the statistics of feeds.
func sum(stats []*stat, weeks int) *statSum {
	all := &statSum{feeds: len(stats)}
	all.Weeks = make([]int, weeks)
	for _, x := range stats {
		all.Plus(x.Tally)
		all.Disk += x.Disk
		for i, n := range x.Weeks {
			all.Weeks[i] += n
		}
		if x.error != "" {
			all.broken++
		} else if x.silent {
			all.silent++
		}
	}
	return all
}

func (s *statSum) String() string {
	return fmt.Sprintf("%s in all, %s; %d broken, %d silent", humanize.Count(s.feeds, "feed"), humanize.Bytes(s.Disk),
		s.broken, s.silent)
}

// statColumns are the columns of -o for stats.
var statColumns = []cmdline.Column[*stat]{
	{Name: "feed", Get: func(x *stat) any { return x.feed.Title() }},
	{Name: "unread", Get: func(x *stat) any { return x.Unread }},
	{Name: "all", Get: func(x *stat) any { return x.All }},
	{Name: "flagged", Get: func(x *stat) any { return x.Flagged }},
	{Name: "weeks", Get: func(x *stat) any { return x.Weeks }},
	{Name: "newest", Get: func(x *stat) any { return x.newest }},
	{Name: "silent", Get: func(x *stat) any { return x.silent }},
	{Name: "error", Get: func(x *stat) any { return x.error }},
	{Name: "bytes", Get: func(x *stat) any { return x.Disk }},
	{Name: "feedid", Get: func(x *stat) any { return feedurl.Public(x.feed.ID) }},
	{Name: "feedhash", Verbatim: true, Get: func(x *stat) any { return x.feed.Hash }},
}
