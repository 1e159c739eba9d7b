package viewer

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// DefaultText is the default number of columns to wrap text to, and leastText the minimum.
const DefaultText, leastText = 80, 20

// TextWidth returns the number of columns to wrap text to: $LEKTOR_WIDTH or 80, and at most
// those of the terminal.
func TextWidth(s *cmdline.Streams) int {
	width := DefaultText
	if v := os.Getenv("LEKTOR_WIDTH"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < leastText {
			s.Report.Warn("LEKTOR_WIDTH is %q, not a number of at least %d; text is wrapped to %d columns", v,
				leastText, width)
		} else {
			width = n
		}
	}
	if terminal, _ := s.Size(); terminal > 0 {
		width = min(width, terminal)
	}
	return width
}

// layout is how the lines of a list are printed.
type layout struct {
	number, flags, feed int // widths; number 0 prints none
	screen              cmdline.Screen
	now                 time.Time // with the time zone
	current             string    // the key of the entry shown last
	raw                 bool
	depth               map[*entrystore.Record]int // of replies
}

// On a terminal the feed takes a fifth of the width, but at least minFeed and at most maxFeed
// columns. A terminal narrower than withFeed shows no feeds. In a pipe names are not cut off, and
// are padded to at most maxFeed columns.
const minFeed, maxFeed, withFeed = 8, 24, 50

// maxDepth is the depth from which replies are not indented further.
const maxDepth = 8

// clean makes text safe for a column, unless raw is set.
func (l layout) clean(s string) string {
	if l.raw {
		return s
	}
	return strings.TrimSpace(termsafe.Line(s))
}

// row writes an entry as one line: number, flags, date, feed, title. On a terminal the current
// entry is marked with ">", and titles of unread entries are bold.
func (l layout) row(b *bytes.Buffer, r *entrystore.Record, title string) {
	number, flags := "", fmt.Sprintf("%-*s ", l.flags, status(r.Ref))
	if l.number > 0 {
		number = fmt.Sprintf("%*d ", l.number, r.Number)
	}
	feed := l.clean(r.Feed().Title())
	title = strings.Repeat("  ", min(l.depth[r], maxDepth)) + l.clean(title)
	if l.screen.Width == 0 {
		date := r.Date().In(l.now.Location()).Format("2006-01-02 15:04")
		blank := strings.Repeat(" ", max(0, min(l.feed, maxFeed)-termsafe.Width(feed))+2)
		l.screen.Line(b, cmdline.Piece{Text: number + flags + date + "  " + feed + blank + title})
		return
	}
	mark := cmdline.Piece{Text: " "}
	if l.current != "" && r.Key() == l.current {
		mark = cmdline.Piece{Text: ">", Style: cmdline.Current}
	}
	date := fmt.Sprintf("%*s  ", dateWidth, Readable(r.Date(), l.now))
	line := append(make([]cmdline.Piece, 0, 6), mark, cmdline.Piece{Text: number + flags + date})
	if l.screen.Width >= withFeed {
		width := min(l.feed, max(minFeed, min(l.screen.Width/5, maxFeed)))
		feed = termsafe.Truncate(feed, width)
		blank := strings.Repeat(" ", max(0, width-termsafe.Width(feed))+2)
		line = append(line, cmdline.Piece{Text: feed, Style: cmdline.Feed}, cmdline.Piece{Text: blank})
	}
	style := cmdline.Plain
	if r.Ref.Unread() {
		style = cmdline.Bold
	}
	screen := l.screen
	if l.raw {
		screen = cmdline.Screen{}
	}
	screen.Line(b, append(line, cmdline.Piece{Text: title, Style: style})...)
}

// dateWidth is the columns of the longest date that Readable returns.
const dateWidth = len("Mon 10:05")

// Readable formats a time for a person: 15:04 today, Mon 15:04 in the six days before, 2 Jan in
// this year, and else Jan 2006. A future time has no weekday, which would be read as a past
// day.
func Readable(t, now time.Time) string {
	t = t.In(now.Location())
	switch days := day(now) - day(t); {
	case days == 0:
		return t.Format("15:04")
	case days > 0 && days < 7:
		return t.Format("Mon 15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan")
	}
	return t.Format("Jan 2006")
}

// day returns the number of a calendar day. Differences are right even if a day has 23 or 25
// hours.
func day(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

// status returns N if the entry is in new/, U if it is unread in cur/, then its flags without S.
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
