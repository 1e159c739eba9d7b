package viewer

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Screen is the terminal that output is for. The zero value is none: output for
// programs, which is neither fitted nor coloured.
type Screen struct {
	Width  int  // columns
	Height int  // lines; 0 if the terminal does not say
	Color  bool // escape sequences for colours and bold letters
}

// ScreenOf is the terminal that s.Out is.
func ScreenOf(s *command.Streams) Screen {
	if !s.OutIsTerminal() {
		return Screen{}
	}
	_, height := s.Size()
	return Screen{Width: s.Width(), Height: height, Color: s.Color()}
}

// Text is wrapped to no more columns than these, and to no fewer than least.
const defaultText, leastText = 80, 20

// TextWidth is the number of columns to wrap text to: $LEKTOR_WIDTH or 80, and no
// more than the terminal has, as a line is hard to read that is longer.
func TextWidth(s *command.Streams) int {
	width := defaultText
	if v := os.Getenv("LEKTOR_WIDTH"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < leastText {
			s.Report.Warn("LEKTOR_WIDTH is %q, which is no number of at least %d; text is wrapped to %d columns", v, leastText, width)
		} else {
			width = n
		}
	}
	if terminal, _ := s.Size(); terminal > 0 {
		width = min(width, terminal)
	}
	return width
}

// layout says how wide the columns of a list are.
type layout struct {
	number, flags, feed int // widths; number 0 prints none
	screen              Screen
	now                 time.Time // with the time zone
	current             string    // the key of the entry shown last
	raw                 bool
}

// Of a terminal's width the feed may take a fifth, between these. One that is
// narrower than withFeed has none.
const minFeed, maxFeed, withFeed = 8, 24, 50

// clean makes text fit for a column.
func (l layout) clean(s string) string {
	if l.raw {
		return s
	}
	return strings.TrimSpace(termsafe.Line(s))
}

// The styles of what stands on a terminal, as parameters of SGR (ECMA-48, 8.3.117).
const (
	plain    = ""
	bold     = "1"
	cyan     = "36"
	boldBlue = "1;34"
)

// piece is a part of a line in one style.
type piece struct{ text, style string }

// row writes an entry as one line: number, flags, date, feed, title. On a
// terminal the entry shown last has a mark in front, and what is unread a bold
// title.
func (l layout) row(b *bytes.Buffer, r *entries.Record, title string) {
	number, flags := "", fmt.Sprintf("%-*s ", l.flags, status(r.Ref))
	if l.number > 0 {
		number = fmt.Sprintf("%*d ", l.number, r.Number)
	}
	feed := l.clean(r.Feed().Title())
	title = l.clean(title)
	if l.screen.Width == 0 {
		l.write(b, []piece{{text: number + flags + r.Date().In(l.now.Location()).Format("2006-01-02 15:04") + "  " + termsafe.Pad(feed, l.feed) + "  " + title}})
		return
	}
	mark := piece{" ", plain}
	if l.current != "" && r.Key() == l.current {
		mark = piece{">", boldBlue}
	}
	line := append(make([]piece, 0, 6), mark, piece{number + flags + fmt.Sprintf("%*s  ", dateWidth, readable(r.Date(), l.now)), plain})
	if l.screen.Width >= withFeed {
		width := min(l.feed, max(minFeed, min(l.screen.Width/5, maxFeed)))
		feed = termsafe.Truncate(feed, width)
		line = append(line, piece{feed, cyan}, piece{strings.Repeat(" ", max(0, width-termsafe.Width(feed))+2), plain})
	}
	style := plain
	if r.Ref.Unread() {
		style = bold
	}
	l.write(b, append(line, piece{title, style}))
}

// write writes a line, which is fitted to the screen, if there is one, unless it
// is raw. Blanks at its end are left out.
func (l layout) write(b *bytes.Buffer, line []piece) {
	for len(line) > 0 {
		end := &line[len(line)-1]
		if end.text = strings.TrimRight(end.text, " "); end.text != "" {
			break
		}
		line = line[:len(line)-1]
	}
	left := l.screen.Width
	for _, p := range line {
		if l.screen.Width > 0 && !l.raw {
			cut := termsafe.Width(p.text) > left
			p.text = termsafe.Truncate(p.text, left)
			if left -= termsafe.Width(p.text); cut {
				left = 0
			}
		}
		if p.text == "" || p.style == plain || !l.screen.Color || l.raw {
			b.WriteString(p.text)
		} else {
			b.WriteString("\x1b[" + p.style + "m" + p.text + "\x1b[m")
		}
	}
	b.WriteByte('\n')
}

// dateWidth is that of the longest date that readable gives.
const dateWidth = len("Mon 10:05")

// readable writes a time as a person would say it on a day: the hour today, with
// the weekday in the six days before, the day of this year, and else the year.
// What is still to come has no weekday, which would be taken for the last one.
func readable(t, now time.Time) string {
	t = t.In(now.Location())
	switch days := day(now) - day(t); {
	case days == 0:
		return t.Format("15:04")
	case days > 0 && days < 7:
		return t.Format("Mon 15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan")
	}
	return t.Format("2006")
}

// day numbers the days of the calendar, of which some have 23 or 25 hours.
func day(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

// status shows what was done with an entry in few letters: N it is new, U it
// was taken but not read, then its flags but S.
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
