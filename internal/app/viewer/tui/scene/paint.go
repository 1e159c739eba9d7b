package scene

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Paint returns all lines of the screen.
func (s *Scene) Paint() string {
	switch {
	case s.Width < LeastWidth || s.Height < LeastHeight:
		text := s.Trf("screen too small: %dx%d; at least %dx%d is needed", s.Width, s.Height, LeastWidth, LeastHeight)
		return strings.Join(firstLines(cells.BreakLines(text, s.Width), s.Height), "\n")
	case s.Pictures.On:
		return strings.Repeat("\n", s.Height-1) + cells.Fit(s.Pictures.Caption, s.Width)
	}
	return s.screen()
}

func firstLines(lines []string, n int) []string { return lines[:min(len(lines), n)] }

// screen returns the lines of the screen.
func (s *Scene) screen() string {
	height := s.Lines()
	lines := make([]string, 0, height+2)
	if n := s.Menu; n != nil {
		return strings.Join(append(s.menuLines(n, height), s.lastLine()), "\n")
	}
	var columns [][]string
	for _, pane := range s.Panes() {
		title, body := s.column(pane)
		// The title of the pane with the focus is reversed; the others are faint too.
		style := cells.TitleStyle
		if pane.Kind != s.Focus {
			style = cells.TitleAway
		}
		if pane.Y == 0 {
			columns = append(columns, nil)
		}
		last := &columns[len(columns)-1]
		*last = append(append(*last, s.Look.Paint(style, cells.Fit(title, pane.Width))), body...)
	}
	bar := s.Look.Paint(cells.DimText, "│")
	for row := range height + 1 {
		parts := make([]string, len(columns))
		for i := range columns {
			parts[i] = columns[i][row]
		}
		lines = append(lines, strings.Join(parts, bar))
	}
	return strings.Join(append(lines, s.lastLine()), "\n")
}

// column returns the title of a pane, and its lines, each padded to its width.
func (s *Scene) column(at PaneAt) (title string, body []string) {
	height := at.Height
	switch at.Kind {
	case keys.FeedsPane:
		title, body = s.feedLines(at.Width, height)
	case keys.ListPane:
		title, body = s.entryLines(at.Width, height)
	default:
		title, body = s.pageLines(at.Width, height)
	}
	for len(body) < height {
		body = append(body, strings.Repeat(" ", at.Width))
	}
	return title, body
}

// feedLines returns the title and the lines of the first pane.
func (s *Scene) feedLines(width, height int) (title string, body []string) {
	f := s.Feeds
	title = " " + s.Tr("feeds")
	if s.Feeds.Snapshot == nil {
		return title, []string{cells.Fit(" "+s.Tr("reading…"), width)}
	}
	for i := f.Y; i < min(len(f.Nodes), f.Y+height); i++ {
		body = append(body, s.node(f.Nodes[i], i == f.At, width))
	}
	if n := s.Feeds.Snapshot.All.Unread; n > 0 {
		title += "  " + s.Trf("%d unread", n)
	}
	return title, body
}

// node returns the line of a node.
func (s *Scene) node(n tree.Node, here bool, width int) string {
	style := cells.PlainStyle
	if n.Unread > 0 {
		style = cells.UnreadText
	}
	left := cells.CursorMark[here] + strings.Repeat(" ", min(n.Depth, max(0, width/3))) + n.Sign()
	return s.cursorLine(here, keys.FeedsPane, style, left+n.Text(width-len(left)))
}

// cursorLine paints a line in a style, and in the style of the cursor if here is set.
func (s *Scene) cursorLine(here bool, in keys.Pane, style cells.Style, text string) string {
	switch {
	case here && s.Focus == in:
		style = cells.CursorHere
	case here: // CursorAway keeps what style has set and it does not mention
		text = s.Look.Paint(cells.CursorAway, text)
	}
	return s.Look.Paint(style, text)
}

// withDate and withFeed are the columns from which a list shows dates and names of feeds.
const withDate, withFeed = 28, 56

// entryLines returns the title and the lines of the list.
func (s *Scene) entryLines(width, height int) (title string, body []string) {
	l := &s.List
	title = s.listTitle()
	switch {
	case l.Err != nil:
		return title, s.message(l.Err.Error(), cells.PlainStyle, width, height)
	case len(l.Items) == 0 && s.Feeds.Snapshot != nil && l.Complete:
		return title, []string{cells.Fit(" "+l.Empty, width)}
	}
	for i, e := range l.Entries {
		body = append(body, s.entry(e, l.Y+i == l.At, width))
	}
	return title, body
}

// listTitle returns the name of the list, its query, and the position of the cursor.
func (s *Scene) listTitle() string {
	l := &s.List
	title := " " + cells.Plain(l.Name)
	if l.Spec.Query != "" {
		title += " /" + cells.Plain(l.Spec.Query)
	}
	if len(l.Items) > 0 {
		title += fmt.Sprintf("  %d/", l.At+1)
		if l.Count > 0 {
			title += fmt.Sprint(l.Count)
		}
	}
	if !l.Complete {
		title += " …"
	}
	return title
}

// message returns the lines of a message in a pane.
func (s *Scene) message(text string, style cells.Style, width, height int) (body []string) {
	for _, line := range firstLines(cells.BreakLines(text, width-2), height) {
		body = append(body, s.Look.Paint(style, cells.Fit(" "+line, width)))
	}
	return body
}

// entry returns the line of an entry.
func (s *Scene) entry(e list.EntryScene, here bool, width int) string {
	flags := FlagLetters(e.Ref)
	style := cells.PlainStyle
	if e.Ref.Unread() {
		style = cells.UnreadText
	}
	text := cells.CursorMark[here] + cells.Fit(flags, 3) + " "
	if width >= withDate {
		text += fmt.Sprintf("%*s  ", dateWidth, e.Date)
	}
	feed := ""
	if width >= withFeed && e.Feed != "" {
		feed = cells.Fit(cells.Plain(termsafe.Brief(e.Feed)), max(8, min(width/5, 20))) + "  "
	}
	title := cells.Fit(cmp.Or(e.Title, "…"), width-termsafe.Width(text)-termsafe.Width(feed))
	if here {
		return s.cursorLine(true, keys.ListPane, style, text+feed+title)
	}
	if len(flags) > 1 {
		text = s.Look.Paint(cells.FlagText, text)
	}
	return text + s.Look.Paint(cells.FeedStyle, feed) + s.Look.Paint(style, title)
}

// dateWidth is the columns of a date.
const dateWidth = len("Mon 10:05")

// pageLines returns the title and the lines of the open entry.
func (s *Scene) pageLines(width, height int) (string, []string) {
	r, title := s.Page, " "+s.PageTitle
	switch {
	case r.Err != nil:
		return title, s.message(r.Err.Error(), cells.BadText, width, height)
	case !r.Open():
		return " ", nil
	case r.Entry == nil:
		return title, []string{cells.Fit(" "+s.Tr("reading…"), width)}
	}
	header := max(0, slices.Index(r.Lines, ""))
	var body []string
	for i := r.Y; i < min(len(r.Lines), r.Y+height); i++ {
		style := cells.PlainStyle
		if i < header {
			style = cells.FeedStyle
		} else if page.IsNote(r.Lines[i]) {
			style = cells.LinkText
		}
		body = append(body, " "+s.marked(i, style, cells.Fit(r.Lines[i], width-1)))
	}
	return title, body
}

// marked returns a line of the text in a style, with the matches of a search in it reversed.
func (s *Scene) marked(line int, style cells.Style, text string) string {
	matches, at := s.Page.Matches(line)
	var b strings.Builder
	done := 0
	for i, m := range matches {
		if m.To > len(text) {
			break // cut off
		}
		hit := cells.MatchText
		if i == at {
			hit = cells.MatchHere // bold, too
		}
		b.WriteString(s.Look.Paint(style, text[done:m.From]) + s.Look.Paint(hit, text[m.From:m.To]))
		done = m.To
	}
	return b.String() + s.Look.Paint(style, text[done:])
}

// lastLine returns the last line of the screen: the prompt, else the message, else keys typed
// so far, else the position or hints.
func (s *Scene) lastLine() string {
	switch {
	case s.Prompt != nil:
		return s.promptLine()
	case s.Last.Question != "":
		return cells.Fit(cells.Ends(cells.Plain(s.Last.Question), s.Width), s.Width) // its end says how to answer
	case s.Last.Status.Bad:
		text := cells.Plain(s.Last.Status.Text)
		if termsafe.Width(text) > s.Width {
			text, _, _ = strings.Cut(text, part.HintMark) // the key of messages shows it
		}
		if termsafe.Width(text) > s.Width && s.Dir != "" {
			text = strings.ReplaceAll(text, s.Dir+"/", "") // omit the path of the lektor-dir
		}
		return s.Look.Paint(cells.BadText, cells.Fit(cells.Ends(text, s.Width), s.Width))
	case s.Last.Status.Text != "":
		return cells.Fit(cells.Plain(s.Last.Status.Text), s.Width)
	case s.Last.Typed != "":
		return cells.Fit(s.Last.Typed, s.Width)
	}
	left := cells.Fit(cells.Plain(s.Last.Place), max(0, s.Width-len(s.Last.Help)-1))
	return s.Look.Paint(cells.DimText, cells.Fit(left+" "+s.Last.Help, s.Width))
}

// promptLine returns the line that the user types, with the candidates that follow the one in it.
func (s *Scene) promptLine() string {
	text, _ := s.Prompt.Shown(s.Width)
	free := s.Width - termsafe.Width(text) - 3
	names := s.Prompt.Others()
	if names == nil || free < 8 {
		return cells.Fit(text, s.Width)
	}
	return text + "   " + s.Look.Paint(cells.DimText, cells.Fit(cells.Plain(strings.Join(names, " ")), free))
}

// menuLines returns the lines of the open menu, each padded to the width of the screen. Long lines are broken. They
// begin with the line n.Y, or with the next one from which that of the cursor is whole on the screen.
func (s *Scene) menuLines(n *part.Lines, height int) []string {
	broken := func(i int) []string { return cells.BreakLines(n.Text[i], s.Width-1) }
	for i, rows := min(n.At, len(n.Text)-1), 0; i >= n.Y; i-- {
		if rows += len(broken(i)); i < n.At && rows > height {
			n.Y = i + 1
		}
	}
	lines := []string{s.Look.Paint(cells.TitleStyle, cells.Fit(" "+s.Tr(n.Title), s.Width))}
	for i := n.Y; i < len(n.Text) && len(lines) <= height; i++ {
		here := n.Choose != nil && i == n.At
		for j, line := range broken(i) {
			line = cells.Fit(cells.CursorMark[here && j == 0]+line, s.Width)
			if here {
				line = s.Look.Paint(cells.CursorHere, line)
			}
			lines = append(lines, line)
		}
	}
	for len(lines) <= height {
		lines = append(lines, strings.Repeat(" ", s.Width))
	}
	return lines[:height+1]
}
