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

// painter paints a scene.
type painter struct {
	*Scene
	look *cells.Look
	name string // of the lektor-dir
}

// Paint returns all lines of the screen. name is that of the lektor-dir.
func (s *Scene) Paint(look *cells.Look, name string) string {
	p := &painter{s, look, name}
	switch {
	case p.Width < LeastWidth || p.Height < LeastHeight:
		text := p.Trf("screen too small: %dx%d; at least %dx%d is needed", p.Width, p.Height, LeastWidth, LeastHeight)
		return strings.Join(firstLines(cells.BreakLines(text, p.Width), p.Height), "\n")
	case p.Pictures.On:
		return strings.Repeat("\n", p.Height-1) + cells.Fit(p.Pictures.Caption, p.Width)
	}
	return p.screen()
}

func firstLines(lines []string, n int) []string { return lines[:min(len(lines), n)] }

// screen returns the lines of the screen.
func (p *painter) screen() string {
	height := p.Lines()
	lines := make([]string, 0, height+2)
	if n := p.Menu; n != nil {
		return strings.Join(append(p.menuLines(n, height), p.lastLine()), "\n")
	}
	var columns [][]string
	for _, pane := range p.Panes() {
		title, body := p.column(pane)
		// The title of the pane with the focus is reversed; the others are faint too.
		s := cells.TitleStyle
		if pane.Kind != p.Focus {
			s = cells.TitleAway
		}
		if pane.Y == 0 {
			columns = append(columns, nil)
		}
		last := &columns[len(columns)-1]
		*last = append(append(*last, p.look.Paint(s, cells.Fit(title, pane.Width))), body...)
	}
	bar := p.look.Paint(cells.DimText, "│")
	for row := range height + 1 {
		parts := make([]string, len(columns))
		for i := range columns {
			parts[i] = columns[i][row]
		}
		lines = append(lines, strings.Join(parts, bar))
	}
	return strings.Join(append(lines, p.lastLine()), "\n")
}

// column returns the title of a pane, and its lines, each padded to its width.
func (p *painter) column(at PaneAt) (title string, body []string) {
	height := at.Height
	switch at.Kind {
	case keys.FeedsPane:
		title, body = p.feedLines(at.Width)
	case keys.ListPane:
		title, body = p.entryLines(at.Width, height)
	default:
		title, body = p.pageLines(at.Width, height)
	}
	for len(body) < height {
		body = append(body, strings.Repeat(" ", at.Width))
	}
	return title, body
}

// feedLines returns the title and the lines of the first pane.
func (p *painter) feedLines(width int) (title string, body []string) {
	f := &p.Feeds
	title = " " + p.Tr("feeds")
	if p.Snapshot == nil {
		return title, []string{cells.Fit(" "+p.Tr("reading…"), width)}
	}
	for i, n := range f.Nodes {
		body = append(body, p.node(n, f.Top+i == f.At, width))
	}
	if n := p.Snapshot.All.Unread; n > 0 {
		title += "  " + p.Trf("%d unread", n)
	}
	return title, body
}

// node returns the line of a node.
func (p *painter) node(n tree.Node, here bool, width int) string {
	s := cells.PlainStyle
	if n.Unread > 0 {
		s = cells.UnreadText
	}
	left := cells.CursorMark(here) + strings.Repeat(" ", min(n.Depth, max(0, width/3))) + n.Sign()
	return p.cursorLine(here, keys.FeedsPane, s, left+n.Text(width-len(left)))
}

// cursorLine paints a line in style s, and in the style of the cursor if here is set.
func (p *painter) cursorLine(here bool, in keys.Pane, s cells.Style, text string) string {
	switch {
	case here && p.Focus == in:
		s = cells.CursorHere
	case here: // its style keeps what s has set and it does not mention
		text = p.look.Paint(cells.CursorAway, text)
	}
	return p.look.Paint(s, text)
}

// withDate and withFeed are the columns from which a list shows dates and names of feeds.
const withDate, withFeed = 28, 56

// entryLines returns the title and the lines of the list.
func (p *painter) entryLines(width, height int) (title string, body []string) {
	l := &p.List
	title = p.listTitle()
	switch {
	case l.Err != "":
		return title, p.message(l.Err, cells.PlainStyle, width, height)
	case l.Total == 0 && p.Snapshot != nil && l.Complete:
		return title, []string{cells.Fit(" "+l.Empty, width)}
	}
	for i, e := range l.Entries {
		body = append(body, p.entry(e, l.Top+i == l.At, width))
	}
	return title, body
}

// listTitle returns the name of the list, its query, and the position of the cursor.
func (p *painter) listTitle() string {
	l := &p.List
	title := " " + cells.Plain(l.Name)
	if l.Spec.Query != "" {
		title += " /" + cells.Plain(l.Spec.Query)
	}
	if l.Total > 0 {
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
func (p *painter) message(text string, s cells.Style, width, height int) (body []string) {
	for _, line := range firstLines(cells.BreakLines(text, width-2), height) {
		body = append(body, p.look.Paint(s, cells.Fit(" "+line, width)))
	}
	return body
}

// entry returns the line of an entry.
func (p *painter) entry(e list.EntryScene, here bool, width int) string {
	flags := FlagLetters(e.Ref)
	s := cells.PlainStyle
	if e.Ref.Unread() {
		s = cells.UnreadText
	}
	text := cells.CursorMark(here) + cells.Fit(flags, 3) + " "
	if width >= withDate {
		text += fmt.Sprintf("%*s  ", dateWidth, e.Date)
	}
	feed := ""
	if width >= withFeed && e.Feed != "" {
		feed = cells.Fit(cells.Plain(termsafe.Brief(e.Feed)), max(8, min(width/5, 20))) + "  "
	}
	title := cells.Fit(cmp.Or(e.Title, "…"), width-termsafe.Width(text)-termsafe.Width(feed))
	if here {
		return p.cursorLine(true, keys.ListPane, s, text+feed+title)
	}
	if len(flags) > 1 {
		text = p.look.Paint(cells.FlagText, text)
	}
	return text + p.look.Paint(cells.FeedStyle, feed) + p.look.Paint(s, title)
}

// dateWidth is the columns of a date.
const dateWidth = len("Mon 10:05")

// pageLines returns the title and the lines of the open entry.
func (p *painter) pageLines(width, height int) (string, []string) {
	r := &p.Page
	title := " " + strings.TrimLeft(r.Flags+" ", " ") + r.Title
	switch {
	case r.Err != nil:
		return title, p.message(r.Err.Error(), cells.BadText, width, height)
	case !r.Open():
		return " ", nil
	case r.Entry == nil:
		return title, []string{cells.Fit(" "+p.Tr("reading…"), width)}
	}
	header := max(0, slices.Index(r.Lines, ""))
	var body []string
	for i := r.Y; i < min(len(r.Lines), r.Y+height); i++ {
		s := cells.PlainStyle
		if i < header {
			s = cells.FeedStyle
		} else if page.IsNote(r.Lines[i]) {
			s = cells.LinkText
		}
		body = append(body, " "+p.marked(i, s, cells.Fit(r.Lines[i], width-1)))
	}
	return title, body
}

// marked returns a line of the text in a style, with the matches of a search in it reversed.
func (p *painter) marked(line int, s cells.Style, text string) string {
	matches, at := p.Page.Matches(line)
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
		b.WriteString(p.look.Paint(s, text[done:m.From]) + p.look.Paint(hit, text[m.From:m.To]))
		done = m.To
	}
	return b.String() + p.look.Paint(s, text[done:])
}

// lastLine returns the last line of the screen: the prompt, else the message, else keys typed
// so far, else the position or hints.
func (p *painter) lastLine() string {
	switch {
	case p.Prompt != nil:
		return p.promptLine()
	case p.Last.Question != "":
		return cells.Fit(cells.Ends(cells.Plain(p.Last.Question), p.Width), p.Width) // its end says how to answer
	case p.Last.Status.Bad:
		text := cells.Plain(p.Last.Status.Text)
		if termsafe.Width(text) > p.Width {
			text, _, _ = strings.Cut(text, part.HintMark) // the key of messages shows it
		}
		if termsafe.Width(text) > p.Width && p.name != "" {
			text = strings.ReplaceAll(text, p.name+"/", "") // omit the path of the lektor-dir
		}
		return p.look.Paint(cells.BadText, cells.Fit(cells.Ends(text, p.Width), p.Width))
	case p.Last.Status.Text != "":
		return cells.Fit(cells.Plain(p.Last.Status.Text), p.Width)
	case p.Last.Typed != "":
		return cells.Fit(p.Last.Typed, p.Width)
	}
	left := cells.Fit(cells.Plain(p.Last.Place), max(0, p.Width-len(p.Last.Help)-1))
	return p.look.Paint(cells.DimText, cells.Fit(left+" "+p.Last.Help, p.Width))
}

// promptLine returns the line that the user types, with the candidates that follow the one in it.
func (p *painter) promptLine() string {
	text, _ := p.Prompt.Shown(p.Width)
	free := p.Width - termsafe.Width(text) - 3
	names := p.Prompt.Others()
	if names == nil || free < 8 {
		return cells.Fit(text, p.Width)
	}
	return text + "   " + p.look.Paint(cells.DimText, cells.Fit(cells.Plain(strings.Join(names, " ")), free))
}

// menuLines returns the lines of the open menu, each padded to the width of the screen. Long lines are broken. They
// begin with the line n.Y, or with the next one from which that of the cursor is whole on the screen.
func (p *painter) menuLines(n *part.Lines, height int) []string {
	broken := func(i int) []string { return cells.BreakLines(n.Text[i], p.Width-1) }
	for i, rows := min(n.At, len(n.Text)-1), 0; i >= n.Y; i-- {
		if rows += len(broken(i)); i < n.At && rows > height {
			n.Y = i + 1
		}
	}
	lines := []string{p.look.Paint(cells.TitleStyle, cells.Fit(" "+p.Tr(n.Title), p.Width))}
	for i := n.Y; i < len(n.Text) && len(lines) <= height; i++ {
		here := n.Choose != nil && i == n.At
		for j, line := range broken(i) {
			line = cells.Fit(cells.CursorMark(here && j == 0)+line, p.Width)
			if here {
				line = p.look.Paint(cells.CursorHere, line)
			}
			lines = append(lines, line)
		}
	}
	for len(lines) <= height {
		lines = append(lines, strings.Repeat(" ", p.Width))
	}
	return lines[:height+1]
}
