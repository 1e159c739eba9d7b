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

// printStatsPage prints statistics as a page. The template escapes the untrusted text. Widths are in percent of the
// longest bar.
func printStatsPage(v *session.Session, stats []*stat, weeks int) error {
	all, longest := sum(stats, weeks), 0
	for _, x := range stats {
		longest = max(longest, x.All)
	}
	t, err := template.New("").Funcs(template.FuncMap{
		"title": func(x *stat) string { return public(x.feed.Title()) },
		"state": func(x *stat) string { return public(x.state(v.Now)) },
		"bytes": humanize.Bytes, "percent": percent, "most": slices.Max[[]int],
		"from": func(week int) string { return v.Now.AddDate(0, 0, -7*(weeks-1-week)-6).Format("2006-01-02") },
		"bar": func(week, n, most int) string {
			height := percent(n, most)
			if height == 0 {
				return ""
			}
			return fmt.Sprintf(`<rect x="%d" y="%d" width="8" height="%d"/>`, 10*week+1, 100-height, height)
		},
	}).Parse(statsTemplate)
	if err != nil {
		return err
	}
	return t.Execute(v.S.Out, map[string]any{"Style": content.StyleSheet, "Sum": fmt.Sprintf("%s, %s unread; %s",
		humanize.Count(all.All, "entry"), humanize.Group(int64(all.Unread)), all),
		"Date": v.Now.Format("2 January 2006, 15:04"), "Weeks": all.Weeks, "Span": 10 * weeks,
		"Longest": longest, "Feeds": stats})
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
