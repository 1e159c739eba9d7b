package viewer

import (
	_ "embed" // for statsTemplate
	"fmt"
	"slices"
	"text/template"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

//go:embed stats.html
var statsTemplate string

// The data of the page of statistics. The template escapes the untrusted text. Widths are in percent
// of the longest bar.
type (
	statsPage struct {
		Style     string
		Sum, Date string
		Weeks     []weekRow
		Feeds     []feedRow
	}
	weekRow struct {
		From           string // the first day
		Entries, Width int
	}
	feedRow struct {
		Title, State, Disk string
		Unread, All, Share int // Share is that of unread entries, in percent
		Width, UnreadWidth int
		Numbers            []int
		Most               int
		Span               int // width of all Bars
		Bars               []weekBar
	}
	weekBar struct{ X, Y, Height int }
)

// printStatsPage prints statistics as a page.
func printStatsPage(v *session.Session, stats []*stat, weeks int) error {
	all := sum(stats, weeks)
	page := statsPage{Style: content.StyleSheet, Sum: fmt.Sprintf("%s, %s unread; %s", humanize.Count(all.All, "entry"),
		humanize.Group(int64(all.Unread)), all), Date: v.Now.Format("2 January 2006, 15:04")}
	most := slices.Max(all.weeks)
	for i, n := range all.weeks {
		from := v.Now.AddDate(0, 0, -7*(weeks-1-i)-6).Format("2006-01-02")
		page.Weeks = append(page.Weeks, weekRow{From: from, Entries: n, Width: percent(n, most)})
	}
	longest := 0
	for _, x := range stats {
		longest = max(longest, x.All)
	}
	for _, x := range stats {
		most := slices.Max(x.weeks)
		row := feedRow{
			Title: public(x.feed.Title()), State: public(x.state(v.Now)), Disk: humanize.Bytes(x.disk),
			Unread: x.Unread, All: x.All, Share: percent(x.Unread, x.All),
			Width: percent(x.All, longest), UnreadWidth: percent(x.Unread, longest),
			Numbers: x.weeks, Most: most, Span: 10 * weeks,
		}
		for i, n := range x.weeks {
			if h := percent(n, most); h > 0 {
				row.Bars = append(row.Bars, weekBar{X: 10*i + 1, Y: 100 - h, Height: h})
			}
		}
		page.Feeds = append(page.Feeds, row)
	}
	t, err := template.New("").Parse(statsTemplate)
	if err != nil {
		return err
	}
	return t.Execute(v.S.Out, page)
}

// public returns untrusted text as a line without passwords in URLs.
func public(s string) string { return feedurl.RedactText(termsafe.Line(s)) }

// percent returns n as a percentage of all, at least 1 if n is not 0.
func percent(n, all int) int {
	if n == 0 {
		return 0
	}
	return max(1, n*100/all)
}
