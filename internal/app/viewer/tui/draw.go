package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// painter draws the model.
type painter struct {
	*browser
	m    *model
	look *cells.Look
}

// View draws the screen.
func (m *model) View() tea.View {
	p := painter{&m.browser, m, m.o.Look}
	v := tea.NewView("")
	if m.voice != nil {
		return v
	}
	v.AltScreen = true
	if m.o.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	switch {
	case p.width == 0 || p.height == 0:
	case p.width < leastWidth || p.height < leastHeight:
		text := m.Trf("screen too small: %dx%d; at least %dx%d is needed", p.width, p.height, leastWidth, leastHeight)
		v.SetContent(strings.Join(firstLines(cells.BreakLines(text, p.width), p.height), "\n"))
	case m.shown.on:
		v.SetContent(strings.Repeat("\n", p.height-1) + cells.Fit(m.shown.caption, p.width))
	default:
		v.SetContent(p.screen())
		if m.input.prompt != nil {
			_, x := m.input.prompt.line(p.width)
			v.Cursor = tea.NewCursor(x, p.height-1)
		}
	}
	return v
}

func firstLines(lines []string, n int) []string { return lines[:min(len(lines), n)] }

// screen returns the lines of the screen.
func (p *painter) screen() string {
	height := p.lines()
	lines := make([]string, 0, height+2)
	if n := p.m.input.menu; n != nil {
		return strings.Join(append(p.menu(n, height), p.lastLine()), "\n")
	}
	var columns [][]string
	for _, pane := range p.layout() {
		title, body := p.column(pane)
		// The title of the pane with the focus is reversed; the others are faint too.
		s := cells.TitleStyle
		if pane.kind != p.focus {
			s = cells.TitleAway
		}
		if pane.y == 0 {
			columns = append(columns, nil)
		}
		last := &columns[len(columns)-1]
		*last = append(append(*last, p.look.Paint(s, cells.Fit(title, pane.width))), body...)
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
func (p *painter) column(at paneAt) (title string, body []string) {
	height := at.height
	switch at.kind {
	case keys.FeedsPane:
		title, body = p.feeds(at.width, height)
	case keys.ListPane:
		title, body = p.entries(at.width, height)
	default:
		title, body = p.text(at.width, height)
	}
	for len(body) < height {
		body = append(body, strings.Repeat(" ", at.width))
	}
	return title, body
}

// feeds returns the title and the lines of the first pane.
func (p *painter) feeds(width, height int) (string, []string) {
	t := &p.tree
	if p.snapshot == nil {
		return " " + p.m.Tr("feeds"), []string{cells.Fit(" "+p.m.Tr("reading…"), width)}
	}
	t.y = cells.Window(t.y, t.at, len(t.nodes), height)
	var body []string
	for i := t.y; i < min(len(t.nodes), t.y+height); i++ {
		n := t.nodes[i]
		s := cells.PlainStyle
		if n.unread > 0 {
			s = cells.UnreadText
		}
		body = append(body, p.node(n, i == t.at, s, width))
	}
	title := " " + p.m.Tr("feeds")
	if u := p.allUnread(); u > 0 {
		title += "  " + p.m.Trf("%d unread", u)
	}
	return title, body
}

// node returns the line of a node, in style s.
func (p *painter) node(n node, here bool, s cells.Style, width int) string {
	sign := " "
	switch {
	case n.kind == folderNode && p.tree.closed[n.id]:
		sign = "+"
	case n.kind == folderNode:
		sign = "-"
	case n.kind == savedNode:
		sign = "?"
	case n.paused:
		sign = "="
	}
	left := cells.CursorMark(here) + strings.Repeat(" ", min(n.depth, max(0, width/3))) + sign
	return p.cursorLine(here, keys.FeedsPane, s, left+usualNode(n, n.label(&p.m.world), width-len(left)))
}

// usualNode returns the label of a node with the number of its entries.
func usualNode(n node, label string, width int) string {
	count := ""
	switch {
	case n.err != "":
		count = "!"
	case n.flagged > 0:
		count = fmt.Sprint(n.flagged)
	case n.unread > 0:
		count = fmt.Sprint(n.unread)
	}
	free := width - len(count) - 1
	title := cells.Plain(label)
	if n.site != "" && free > 8 {
		site := cells.Plain(termsafe.Brief(n.site))
		most := min(termsafe.Width(site), free/2)
		return cells.Fit(title, free-most-1) + " " + cells.Fit(cells.Ends(site, most), most) + " " + count
	}
	return cells.Fit(title, free) + " " + count
}

// cursorLine paints a line in style s, and in the style of the cursor if here is set.
func (p *painter) cursorLine(here bool, in keys.Pane, s cells.Style, text string) string {
	switch {
	case here && p.focus == in:
		return p.look.Paint(cells.CursorHere, text)
	case here && s != cells.PlainStyle:
		// A style keeps what the one before has set and it does not mention.
		return p.look.Begin(s) + p.look.Paint(cells.CursorAway, text)
	case here:
		return p.look.Paint(cells.CursorAway, text)
	}
	return p.look.Paint(s, text)
}

// withDate and withFeed are the columns from which a list shows dates and names of feeds.
const withDate, withFeed = 28, 56

// entries returns the title and the lines of the list.
func (p *painter) entries(width, height int) (string, []string) {
	l := &p.list
	title := p.listTitle()
	switch {
	case l.err != nil:
		return title, p.message(l.err.Error(), cells.PlainStyle, width, height)
	case len(l.items) == 0 && p.snapshot != nil && l.complete:
		return title, []string{cells.Fit(" "+noEntries(p.m), width)}
	}
	l.y = cells.Window(l.y, l.at, len(l.items), height)
	var body []string
	for i := l.y; i < min(len(l.items), l.y+height); i++ {
		body = append(body, p.entry(l.items[i], i == l.at, width))
	}
	return title, body
}

// noEntries returns the text of an empty list.
func noEntries(m *model) string {
	switch l, s := &m.browser.list, m.browser.snapshot; {
	case l.query != "":
		return m.Tr("nothing matches")
	case s != nil && len(s.feeds) == 0 && m.o.NoFetcher == nil:
		return m.Trf("no feeds: %s subscribes to one", m.o.Keys.Of("subscribe"))
	case l.includesRead():
		return m.Tr("no entries")
	}
	return m.Trf("nothing unread: %s shows read entries", m.o.Keys.Of("all"))
}

// allUnread returns the number of all unread entries.
func (p *painter) allUnread() int {
	if p.snapshot == nil {
		return 0
	}
	return p.snapshot.all.Unread
}

// listName returns the name of the feed or folder that is listed.
func listName(m *model) string { return nodeName(m, m.browser.list.of) }

// nodeName returns the name of a node in the user's language, "" if there is no such node.
func nodeName(m *model, of id) string {
	if s := m.browser.snapshot; s != nil {
		if at := slices.IndexFunc(s.nodes, func(n node) bool { return n.id == of }); at >= 0 {
			return s.nodes[at].label(&m.world)
		}
	}
	return ""
}

// listTitle returns the name of the list, its query, and the position of the cursor.
func (p *painter) listTitle() string {
	l := &p.list
	title := " " + cells.Plain(listName(p.m))
	if l.query != "" {
		title += " /" + cells.Plain(l.query)
	}
	if len(l.items) > 0 {
		n := fmt.Sprint(len(l.items))
		switch {
		case p.snapshot.uncounted:
			n = ""
		case p.snapshot.partial:
			n = fmt.Sprint(p.snapshot.all.Unread)
		}
		title += fmt.Sprintf("  %d/%s", l.at+1, n)
	}
	if !l.complete {
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
func (p *painter) entry(it *item, here bool, width int) string {
	ref := p.marks.Now(it.Ref())
	flags := flagLetters(ref)
	s := cells.PlainStyle
	if ref.Unread() {
		s = cells.UnreadText
	}
	text := cells.CursorMark(here) + cells.Fit(flags, 3) + " "
	if width >= withDate {
		text += fmt.Sprintf("%*s  ", dateWidth, p.m.o.Date(it.date))
	}
	feed := ""
	if width >= withFeed && p.list.of.kind != feedNode {
		name := ""
		if f := p.snapshot.feeds[ref.Feed]; f != nil {
			name = cells.Plain(termsafe.Brief(f.Title))
		}
		feed = cells.Fit(name, max(8, min(width/5, 20))) + "  "
	}
	title := cells.Fit(p.title(keyOf(ref)), width-termsafe.Width(text)-termsafe.Width(feed))
	if here {
		return p.cursorLine(true, keys.ListPane, s, text+feed+title)
	}
	if len(flags) > 1 {
		text = p.look.Paint(cells.FlagText, text)
	}
	return text + p.look.Paint(cells.FeedStyle, feed) + p.look.Paint(s, title)
}

// flagLetters returns N for an unread entry, and its flags but S.
func flagLetters(r lektordir.Ref) string {
	s := " "
	if r.Unread() {
		s = "N"
	}
	return s + strings.ReplaceAll(r.Flags(), "S", "")
}

// dateWidth is the columns of a date.
const dateWidth = len("Mon 10:05")

// title returns the title of an entry, "…" if it is not read yet.
func (p *painter) title(k key) string {
	if row := p.m.rows[k]; row != nil {
		return row.Title
	}
	return "…"
}

// text returns the title and the lines of the open entry.
func (p *painter) text(width, height int) (string, []string) {
	r := &p.page
	title := " " + strings.TrimLeft(flagLetters(p.marks.Now(r.ref))+" ", " ") + p.title(r.key)
	switch {
	case r.err != nil:
		return title, p.message(r.err.Error(), cells.BadText, width, height)
	case !r.open():
		return " ", nil
	case r.page == nil:
		return title, []string{cells.Fit(" "+p.m.Tr("reading…"), width)}
	}
	header := max(0, slices.Index(r.lines, ""))
	var body []string
	for i := r.y; i < min(len(r.lines), r.y+height); i++ {
		s := cells.PlainStyle
		if i < header {
			s = cells.FeedStyle
		} else if isNote(r.lines[i]) {
			s = cells.LinkText
		}
		body = append(body, " "+p.marked(i, s, cells.Fit(r.lines[i], width-1)))
	}
	return title, body
}

// isNote reports whether a line is a footnote with a link.
func isNote(line string) bool {
	n, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	return ok && line[0] == '[' && strings.Trim(n, "0123456789") == "" && n != "" && strings.Contains(rest, ":")
}

// lastLine returns the last line of the screen: the prompt, else the message, else keys typed
// so far, else the position or hints.
func (p *painter) lastLine() string {
	m := p.m
	switch {
	case m.input.prompt != nil:
		return p.prompt(m.input.prompt)
	case m.input.question != nil:
		// its end says how to answer
		return cells.Fit(cells.Ends(cells.Plain(m.input.question.line(&m.world)), p.width), p.width)
	case m.status.isError:
		text := cells.Plain(m.status.text)
		if termsafe.Width(text) > p.width {
			text, _, _ = strings.Cut(text, hintMark) // the key of messages shows it
		}
		if termsafe.Width(text) > p.width && m.o.Name != "" {
			text = strings.ReplaceAll(text, m.o.Name+"/", "") // omit the path of the lektor-dir
		}
		return p.look.Paint(cells.BadText, cells.Fit(cells.Ends(text, p.width), p.width))
	case m.status.text != "":
		return cells.Fit(cells.Plain(m.status.text), p.width)
	case m.input.count != "" || m.input.keys != "":
		return cells.Fit(m.input.count+m.input.keys, p.width)
	}
	left, right := p.place(), m.o.Keys.Of("help")+" "+m.Tr("help")
	if left == "" && p.width >= 60 {
		left = p.hints()
	}
	return p.look.Paint(cells.DimText, cells.Fit(cells.Fit(cells.Plain(left), max(0, p.width-len(right)-1))+" "+right,
		p.width))
}

// place returns the position in the entry, the progress of a job, or the mode of the list.
func (p *painter) place() string {
	m, page := p.m, p.page.page
	switch {
	case m.input.menu != nil:
		return m.Tr(m.input.menu.hint)
	case p.snapshot == nil:
		return m.Trf("reading %s", m.o.Name)
	case p.focus == keys.PagePane && page != nil:
		place := m.Tr("all")
		if n := len(p.page.lines) - linesOf(p.browser, keys.PagePane); n > 0 {
			place = fmt.Sprintf("%d%%", p.page.y*100/n)
		}
		if n := len(page.Enclosures); n > 0 {
			place += ", " + m.Trf("%d enclosures", n)
		}
		if n := len(page.Pictures); n > 0 && m.shown.can() {
			place += ", " + m.Trf("%d pictures", n)
		}
		if m.tasks.Len() > 0 {
			place = m.tasks.Progress() + ", " + place
		}
		return place
	case m.tasks.Len() > 0:
		return m.tasks.Progress()
	case m.dates.progress != "":
		return m.dates.progress
	case p.list.all:
		return m.Tr("read and unread entries")
	}
	return ""
}

// hints returns the most useful keys for the current pane.
func (p *painter) hints() string {
	var hints []string
	tr := p.m.Tr
	for _, h := range []struct{ action, what string }{
		{"open", tr("open")}, {"forward", tr("read on")}, {"next-unread", tr("next unread")}, {"search", tr("search")},
		{"quit", tr("back")}, {"all", tr("all")},
	} {
		key := p.m.o.Keys.Of(h.action)
		switch {
		case key == h.action, h.action == "all" && p.list.includesRead(): // no key, or none needed
			continue
		case h.action == "quit" && p.focus == keys.FeedsPane:
			h.what = tr("end")
		}
		hints = append(hints, key+" "+h.what)
	}
	return strings.Join(hints, "  ")
}

// line returns the prompt with the end of the text that fits width columns, and the column of
// the cursor.
func (p *prompt) line(width int) (string, int) {
	label := termsafe.Width(p.label)
	from := 0
	for from < p.at && termsafe.Width(string(p.text[from:p.at])) >= width-label {
		from++
	}
	return p.label + string(p.text[from:]), label + termsafe.Width(string(p.text[from:p.at]))
}
