package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// On less than this there is nothing to be seen.
const leastWidth, leastHeight = 20, 5

// paneAt is a pane on the screen.
type paneAt struct {
	kind     paneKind
	x, width int
}

// A text that is read wants so many columns before there is room for a pane beside it.
const wantText, wantList = 64, 30

// layout says which panes are to be seen, from left to right, with a column between
// them. The one that has the focus always is.
func (m *model) layout() []paneAt {
	w := m.width
	feeds := max(16, min(w/4, 34))
	switch {
	case m.zoom || w < 60:
	case m.focus != pagePane && (m.page.key == (key{}) || w < feeds+wantList+wantText+2):
		return []paneAt{{feedsPane, 0, feeds}, {listPane, feeds + 1, w - feeds - 1}}
	case w >= feeds+wantList+wantText+2:
		list := max(wantList, min((w-feeds)*2/5, 70))
		return []paneAt{{feedsPane, 0, feeds}, {listPane, feeds + 1, list}, {pagePane, feeds + list + 2, w - feeds - list - 2}}
	case w >= wantList+wantText+1:
		return []paneAt{{listPane, 0, wantList}, {pagePane, wantList + 1, w - wantList - 1}}
	}
	return []paneAt{{m.focus, 0, w}}
}

// room is how many lines a pane has.
func (m *model) room() int { return max(1, m.height-2) }

// textWidth is how many columns the text of an entry has, 0 where it is not to be seen.
func (m *model) textWidth() int {
	for _, p := range m.layout() {
		if p.kind == pagePane {
			return max(10, min(p.width-2, m.o.Width))
		}
	}
	return 0
}

// style is how a piece of a line looks.
type style = command.Style

// The styles there are, beside those of the plain list.
const (
	plainStyle style = command.Plain
	titleStyle style = "7"    // reversed: the names of panes
	cursorHere style = "7"    // the line of the cursor in the pane that has the focus
	cursorAway style = "4"    // and in the others: underlined
	unreadText style = "1"    // bold
	feedText   style = "36"   // cyan
	flagText   style = "33"   // yellow
	dimText    style = "2"    // faint
	badText    style = "1;31" // red
	linkText   style = "34"   // blue
)

// paint gives a text in a style. Without colours the styles that are none stay.
func (m *model) paint(s style, text string) string {
	if s == plainStyle || text == "" {
		return text
	}
	if m.o.NoColor {
		switch s {
		case feedText, flagText, linkText:
			return text
		case badText:
			s = "1"
		}
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[m"
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.o.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	switch {
	case m.width == 0 || m.height == 0:
	case m.width < leastWidth || m.height < leastHeight:
		text := fmt.Sprintf("too small: %dx%d, not %dx%d", leastWidth, leastHeight, m.width, m.height)
		v.SetContent(strings.Join(firstLines(breakLines(text, m.width), m.height), "\n"))
	case m.shown.picture != nil:
		v.SetContent(strings.Repeat("\n", m.height-1) + fit(m.shown.caption, m.width))
	default:
		v.SetContent(m.screen())
		if m.prompt != nil {
			_, x := m.promptLine()
			v.Cursor = tea.NewCursor(x, m.height-1)
		}
	}
	return v
}

func firstLines(lines []string, n int) []string { return lines[:min(len(lines), n)] }

// screen gives all lines.
func (m *model) screen() string {
	room := m.room()
	lines := make([]string, 0, room+2)
	if m.helping != nil {
		lines = append(lines, m.paint(titleStyle, fit(" the keys", m.width)))
		for i := range room {
			lines = append(lines, m.helping.line(i, m.width))
		}
		return strings.Join(append(lines, m.lastLine()), "\n")
	}
	panes := m.layout()
	var head []string
	columns := make([][]string, len(panes))
	for i, p := range panes {
		title, body := m.draw(p, room)
		// In one pane reversed letters say where one is; of several the others are faint.
		s := titleStyle
		if p.kind != m.focus {
			s = "2;7"
		}
		head = append(head, m.paint(s, fit(title, p.width)))
		columns[i] = body
	}
	lines = append(lines, strings.Join(head, m.paint("2", "│")))
	bar := m.paint("2", "│")
	for row := range room {
		parts := make([]string, len(panes))
		for i := range panes {
			parts[i] = columns[i][row]
		}
		lines = append(lines, strings.Join(parts, bar))
	}
	return strings.Join(append(lines, m.lastLine()), "\n")
}

// draw gives the title of a pane, and its lines, each as wide as it is.
func (m *model) draw(p paneAt, room int) (title string, body []string) {
	switch p.kind {
	case feedsPane:
		title, body = m.drawTree(p.width, room)
	case listPane:
		title, body = m.drawList(p.width, room)
	default:
		title, body = m.drawPage(p.width, room)
	}
	for len(body) < room {
		body = append(body, strings.Repeat(" ", p.width))
	}
	return title, body
}

// mark is what stands before a line: where the cursor is, also for who sees no styles.
func cursorMark(here bool) string {
	if here {
		return ">"
	}
	return " "
}

// drawTree draws the folders and feeds.
func (m *model) drawTree(width, room int) (string, []string) {
	t := &m.tree
	if m.shelf == nil {
		return " feeds", []string{fit(" reading…", width)}
	}
	t.y = window(t.y, t.at, len(t.nodes), room)
	var body []string
	for i := t.y; i < min(len(t.nodes), t.y+room); i++ {
		n := t.nodes[i]
		sign := " "
		switch {
		case n.kind == folderNode && t.closed[n.id]:
			sign = "+"
		case n.kind == folderNode:
			sign = "-"
		case n.kind == savedNode:
			sign = "?"
		}
		count := ""
		switch {
		case n.bad != "":
			count = "!"
		case n.kind == flaggedNode && n.any > 0:
			count = fmt.Sprint(n.any)
		case n.counts && n.unread > 0:
			count = fmt.Sprint(n.unread)
		}
		depth := min(n.depth, max(0, width/3))
		left := cursorMark(i == t.at) + strings.Repeat(" ", depth) + sign
		room := width - len(left) - len(count) - 1
		name := fit(Plain(termsafe.Brief(n.title)), room)
		if n.apart != "" && room > 8 {
			apart := Plain(termsafe.Brief(n.apart))
			most := min(termsafe.Width(apart), room/2)
			name = fit(Plain(termsafe.Brief(n.title)), room-most-1) + " " + fit(ends(apart, most), most)
		}
		s := plainStyle
		if n.unread > 0 {
			s = unreadText
		}
		body = append(body, m.cursorLine(i == t.at, feedsPane, s, left+name+" "+count))
	}
	title := " feeds"
	if u := m.shelf.all.Unread; u > 0 {
		title += fmt.Sprintf("  %d unread", u)
	}
	return title, body
}

// cursorLine paints a line, that of the cursor as a whole.
func (m *model) cursorLine(here bool, in paneKind, s style, text string) string {
	switch {
	case here && m.focus == in:
		return m.paint(cursorHere, text)
	case here && s != plainStyle:
		return m.paint(cursorAway+";"+s, text)
	case here:
		return m.paint(cursorAway, text)
	}
	return m.paint(s, text)
}

// What a list has beside titles takes room that it must have.
const withDate, withFeed = 28, 56

// drawList draws the entries.
func (m *model) drawList(width, room int) (string, []string) {
	l := &m.list
	title := " " + Plain(termsafe.Brief(m.titleOf(l.of)))
	if l.query != "" {
		title += " /" + Plain(l.query)
	}
	if len(l.items) > 0 {
		n := fmt.Sprint(len(l.items))
		switch {
		case m.shelf.uncounted:
			n = ""
		case m.shelf.bare:
			n = fmt.Sprint(m.shelf.all.Unread)
		}
		title += fmt.Sprintf("  %d/%s", l.at+1, n)
	}
	if l.busy {
		title += " …"
	}
	switch {
	case l.err != nil:
		var body []string
		for _, line := range firstLines(breakLines(l.err.Error(), width-2), room) {
			body = append(body, fit(" "+line, width))
		}
		return title, body
	case len(l.items) == 0 && m.shelf != nil && !l.busy:
		text := " nothing unread"
		if l.query != "" {
			text = " nothing matches"
		} else if l.all || l.of.kind == flaggedNode {
			text = " no entries"
		}
		return title, []string{fit(text, width)}
	}
	l.keepOnScreen(room)
	var body []string
	for i := l.y; i < min(len(l.items), l.y+room); i++ {
		it := l.items[i]
		row, known := m.rows[keyOf(it.ref)]
		if !known {
			row.Title = "…"
		}
		flags := status(it.ref)
		text := cursorMark(i == l.at) + fit(flags, 3) + " "
		if width >= withDate {
			text += fmt.Sprintf("%*s  ", dateWidth, m.o.date(it.date))
		}
		feed := ""
		if width >= withFeed && l.of.kind != feedNode {
			n := max(8, min(width/5, 20))
			name := ""
			if f := m.shelf.feeds[it.ref.Feed]; f != nil {
				name = Plain(termsafe.Brief(f.Title))
			}
			feed = fit(name, n) + "  "
		}
		rest := width - termsafe.Width(text) - termsafe.Width(feed)
		s := plainStyle
		if it.ref.Unread() {
			s = unreadText
		}
		if i == l.at {
			body = append(body, m.cursorLine(true, listPane, s, text+feed+fit(row.Title, rest)))
			continue
		}
		if len(flags) > 1 {
			text = m.paint(flagText, text)
		}
		body = append(body, text+m.paint(feedText, feed)+m.paint(s, fit(row.Title, rest)))
	}
	return title, body
}

// status shows what was done with an entry: N it is unread, then its flags but S.
func status(r lektordir.Ref) string {
	s := " "
	if r.Unread() {
		s = "N"
	}
	return s + strings.ReplaceAll(r.Flags(), "S", "")
}

// dateWidth is that of the longest date.
const dateWidth = len("Mon 10:05")

// titleOf names what a list is of.
func (m *model) titleOf(of id) string {
	if m.shelf != nil {
		for _, n := range m.shelf.nodes {
			if n.id == of {
				return n.title
			}
		}
	}
	return ""
}

// drawPage draws the entry that is read.
func (m *model) drawPage(width, room int) (string, []string) {
	p := &m.page
	row := m.rows[p.key]
	title := " " + strings.TrimLeft(status(p.ref)+" ", " ") + row.Title
	var body []string
	switch {
	case p.err != nil:
		for _, line := range firstLines(breakLines(p.err.Error(), width-2), room) {
			body = append(body, m.paint(badText, fit(" "+line, width)))
		}
		return title, body
	case p.key == (key{}):
		return " ", nil
	case p.page == nil:
		return title, []string{fit(" reading…", width)}
	}
	header := 0
	for i, line := range p.lines {
		if line == "" {
			header = i
			break
		}
	}
	for i := p.y; i < min(len(p.lines), p.y+room); i++ {
		line := fit(" "+p.lines[i], width)
		if i < header {
			line = m.paint(feedText, line)
		} else if isNote(p.lines[i]) {
			line = m.paint(linkText, line)
		}
		body = append(body, line)
	}
	return title, body
}

// isNote tells whether a line is a footnote with a link.
func isNote(line string) bool {
	n, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	return ok && line[0] == '[' && strings.Trim(n, "0123456789") == "" && n != "" && strings.Contains(rest, ":")
}

// lastLine is the message, or what is typed, or where one is.
func (m *model) lastLine() string {
	if m.prompt != nil {
		text, _ := m.promptLine()
		return fit(text, m.width)
	}
	if m.said != "" {
		s, text := plainStyle, Plain(m.said)
		if m.bad {
			if s = badText; termsafe.Width(text) > m.width && m.o.Name != "" {
				text = strings.ReplaceAll(text, m.o.Name+"/", "") // the path of the lektor-dir goes first
			}
			text = ends(text, m.width)
		}
		return m.paint(s, fit(text, m.width))
	}
	if m.pressed != (keysPressed{}) {
		return fit(m.pressed.count+m.pressed.keys, m.width)
	}
	left := ""
	switch {
	case m.helping != nil:
		left = "any key but those that move ends this"
	case m.shelf == nil:
		left = "reading " + m.o.Name
	case m.focus == pagePane && m.page.page != nil:
		left = "all"
		if n := len(m.page.lines) - m.room(); n > 0 {
			left = fmt.Sprintf("%d%%", m.page.y*100/n)
		}
		if n := len(m.page.page.Enclosures); n > 0 {
			left += ", " + units.Count(n, "enclosure")
		}
		if n := len(m.page.page.Pictures); n > 0 && m.shown.can() {
			left += ", " + units.Count(n, "picture")
		}
	case m.learned != "":
		left = m.learned
	case m.list.all:
		left = "read entries, too"
	}
	right := m.o.Keys.of("help") + " help"
	if left == "" && m.width >= 60 {
		left = m.hints()
	}
	return m.paint(dimText, fit(fit(Plain(left), max(0, m.width-len(right)-1))+" "+right, m.width))
}

// hints are the keys that lead on from where one is.
func (m *model) hints() string {
	var hints []string
	for _, h := range []struct{ action, what string }{
		{"open", "open"}, {"forward", "read on"}, {"next-unread", "next unread"}, {"search", "search"}, {"quit", "back"},
	} {
		key := m.o.Keys.of(h.action)
		switch {
		case key == h.action: // none
			continue
		case h.action == "quit" && m.focus == feedsPane:
			h.what = "end"
		}
		hints = append(hints, key+" "+h.what)
	}
	return strings.Join(hints, "  ")
}

// promptLine gives the line that is typed, as far as it can be seen, and the column of
// the cursor.
func (m *model) promptLine() (string, int) {
	p := m.prompt
	room := m.width - termsafe.Width(p.label) - 1
	from := 0
	for from < p.at && termsafe.Width(string(p.text[from:p.at])) > room {
		from++
	}
	return p.label + string(p.text[from:]), termsafe.Width(p.label) + termsafe.Width(string(p.text[from:p.at]))
}

// helpPage is the list of keys.
type helpPage struct {
	lines []string
	y     int
}

func (h *helpPage) line(row, width int) string {
	if h.y+row < len(h.lines) {
		return fit(h.lines[h.y+row], width)
	}
	return strings.Repeat(" ", width)
}

// help shows the keys.
func (m *model) help() tea.Cmd {
	h := &helpPage{}
	for _, keys := range m.o.Keys.order {
		b := m.o.Keys.bound[keys]
		text := b.String()
		if a, ok := actionOf(b.steps[0].action); ok && len(b.steps) == 1 && len(b.steps[0].words) == 0 {
			text = a.help
			if a.command != "" {
				text += "  (" + a.command + ")"
			}
		}
		h.lines = append(h.lines, " "+termsafe.Pad(Plain(keys), 12)+" "+Plain(text))
	}
	h.lines = append(h.lines, "", " "+m.o.KeysFile)
	for _, err := range m.o.Keys.Errs {
		h.lines = append(h.lines, " "+Plain(err.Error()))
	}
	m.helping = h
	return nil
}

// helpKey moves the list of keys, or ends it.
func (m *model) helpKey(name string) tea.Cmd {
	n := 0
	if b, ok := m.o.Keys.bound[name]; ok {
		switch b.steps[0].action {
		case "down", "scroll-down":
			n = 1
		case "up", "scroll-up":
			n = -1
		case "page-down", "forward", "half-down":
			n = m.room() - 1
		case "page-up", "half-up":
			n = 1 - m.room()
		}
	}
	if n == 0 {
		m.helping = nil
		return nil
	}
	h := m.helping
	h.y = max(0, min(h.y+n, len(h.lines)-m.room()))
	return nil
}
