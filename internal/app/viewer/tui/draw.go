package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/humanize"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// painter draws the model.
type painter struct {
	*browser
	m *model
}

// style is how a piece of a line looks.
type style = cmdline.Style

// Styles of the full-screen reader.
const (
	plainStyle style = cmdline.Plain
	titleStyle style = "7"    // reversed: the names of panes
	cursorHere style = "7"    // the line of the cursor in the pane that has the focus
	cursorAway style = "4"    // underlined: the line of the cursor in the other panes
	unreadText style = "1"    // bold
	feedStyle  style = "36"   // cyan
	flagText   style = "33"   // yellow
	dimText    style = "2"    // faint
	badText    style = "1;31" // red
	linkText   style = "34"   // blue
)

// paint returns text in a style. With NoColor it omits colours, but not bold, faint, underlined
// and reversed.
func (p *painter) paint(s style, text string) string {
	if s == plainStyle || text == "" {
		return text
	}
	if p.m.o.NoColor {
		switch s {
		case feedStyle, flagText, linkText:
			return text
		case badText:
			s = "1"
		}
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[m"
}

// View draws the screen.
func (m *model) View() tea.View {
	p := painter{&m.browser, m}
	v := tea.NewView("")
	v.AltScreen = true
	if m.o.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	switch {
	case p.width == 0 || p.height == 0:
	case p.width < leastWidth || p.height < leastHeight:
		text := fmt.Sprintf("screen too small: %dx%d; at least %dx%d is needed", p.width, p.height, leastWidth, leastHeight)
		v.SetContent(strings.Join(firstLines(breakLines(text, p.width), p.height), "\n"))
	case m.shown.on:
		v.SetContent(strings.Repeat("\n", p.height-1) + fit(m.shown.caption, p.width))
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
	if help := p.m.input.help; help != nil {
		lines = append(lines, p.paint(titleStyle, fit(" the keys", p.width)))
		for i := range height {
			lines = append(lines, help.line(i, p.width))
		}
		return strings.Join(append(lines, p.lastLine()), "\n")
	}
	panes := p.layout()
	var head []string
	columns := make([][]string, len(panes))
	for i, pane := range panes {
		title, body := p.column(pane, height)
		// The title of the pane with the focus is reversed; the others are faint too.
		s := titleStyle
		if pane.kind != p.focus {
			s = "2;7"
		}
		head = append(head, p.paint(s, fit(title, pane.width)))
		columns[i] = body
	}
	bar := p.paint("2", "│")
	lines = append(lines, strings.Join(head, bar))
	for row := range height {
		parts := make([]string, len(panes))
		for i := range panes {
			parts[i] = columns[i][row]
		}
		lines = append(lines, strings.Join(parts, bar))
	}
	return strings.Join(append(lines, p.lastLine()), "\n")
}

// column returns the title of a pane, and its lines, each padded to its width.
func (p *painter) column(at paneAt, height int) (title string, body []string) {
	switch at.kind {
	case feedsPane:
		title, body = p.feeds(at.width, height)
	case listPane:
		title, body = p.entries(at.width, height)
	default:
		title, body = p.text(at.width, height)
	}
	for len(body) < height {
		body = append(body, strings.Repeat(" ", at.width))
	}
	return title, body
}

// cursorMark returns the first column of a line. It marks the cursor without styles, for
// example for screen readers.
func cursorMark(here bool) string {
	if here {
		return ">"
	}
	return " "
}

// feeds returns the title and the lines of the first pane.
func (p *painter) feeds(width, height int) (string, []string) {
	t := &p.tree
	if p.snapshot == nil {
		return " feeds", []string{fit(" reading…", width)}
	}
	t.y = window(t.y, t.at, len(t.nodes), height)
	var body []string
	for i := t.y; i < min(len(t.nodes), t.y+height); i++ {
		n := t.nodes[i]
		s := plainStyle
		if n.unread > 0 {
			s = unreadText
		}
		body = append(body, p.cursorLine(i == t.at, feedsPane, s, p.node(n, i == t.at, width)))
	}
	title := " feeds"
	if u := p.snapshot.all.Unread; u > 0 {
		title += fmt.Sprintf("  %d unread", u)
	}
	return title, body
}

// node returns the line of a node.
func (p *painter) node(n node, here bool, width int) string {
	sign := " "
	switch {
	case n.kind == folderNode && p.tree.closed[n.id]:
		sign = "+"
	case n.kind == folderNode:
		sign = "-"
	case n.kind == savedNode:
		sign = "?"
	}
	count := ""
	switch {
	case n.err != "":
		count = "!"
	case n.flagged > 0:
		count = fmt.Sprint(n.flagged)
	case n.unread > 0:
		count = fmt.Sprint(n.unread)
	}
	left := cursorMark(here) + strings.Repeat(" ", min(n.depth, max(0, width/3))) + sign
	free := width - len(left) - len(count) - 1
	title := Plain(termsafe.Brief(n.title))
	if n.apart != "" && free > 8 {
		apart := Plain(termsafe.Brief(n.apart))
		most := min(termsafe.Width(apart), free/2)
		return left + fit(title, free-most-1) + " " + fit(ends(apart, most), most) + " " + count
	}
	return left + fit(title, free) + " " + count
}

// cursorLine paints a line in style s, and in the style of the cursor if here is set.
func (p *painter) cursorLine(here bool, in paneKind, s style, text string) string {
	switch {
	case here && p.focus == in:
		return p.paint(cursorHere, text)
	case here && s != plainStyle:
		return p.paint(cursorAway+";"+s, text)
	case here:
		return p.paint(cursorAway, text)
	}
	return p.paint(s, text)
}

// withDate and withFeed are the columns from which a list shows dates and names of feeds.
const withDate, withFeed = 28, 56

// entries returns the title and the lines of the list.
func (p *painter) entries(width, height int) (string, []string) {
	l := &p.list
	title := p.listTitle()
	switch {
	case l.err != nil:
		return title, p.message(l.err.Error(), plainStyle, width, height)
	case len(l.items) == 0 && p.snapshot != nil && l.complete:
		text := " nothing unread"
		if l.query != "" {
			text = " nothing matches"
		} else if l.includesRead() {
			text = " no entries"
		}
		return title, []string{fit(text, width)}
	}
	l.y = window(l.y, l.at, len(l.items), height)
	var body []string
	for i := l.y; i < min(len(l.items), l.y+height); i++ {
		body = append(body, p.entry(l.items[i], i == l.at, width))
	}
	return title, body
}

// listTitle returns the name of the list, its query, and the position of the cursor.
func (p *painter) listTitle() string {
	l := &p.list
	title := " "
	if p.snapshot != nil {
		if at := slices.IndexFunc(p.snapshot.nodes, func(n node) bool { return n.id == l.of }); at >= 0 {
			title += Plain(termsafe.Brief(p.snapshot.nodes[at].title))
		}
	}
	if l.query != "" {
		title += " /" + Plain(l.query)
	}
	if len(l.items) > 0 {
		n := fmt.Sprint(len(l.items))
		switch {
		case p.snapshot.uncounted:
			n = ""
		case p.snapshot.countsOnly:
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
func (p *painter) message(text string, s style, width, height int) (body []string) {
	for _, line := range firstLines(breakLines(text, width-2), height) {
		body = append(body, p.paint(s, fit(" "+line, width)))
	}
	return body
}

// entry returns the line of an entry.
func (p *painter) entry(it *item, here bool, width int) string {
	ref := p.marks.now(*it.ref)
	flags := flagLetters(ref)
	text := cursorMark(here) + fit(flags, 3) + " "
	if width >= withDate {
		text += fmt.Sprintf("%*s  ", dateWidth, p.m.o.Date(it.date))
	}
	feed := ""
	if width >= withFeed && p.list.of.kind != feedNode {
		name := ""
		if f := p.snapshot.feeds[ref.Feed]; f != nil {
			name = Plain(termsafe.Brief(f.Title))
		}
		feed = fit(name, max(8, min(width/5, 20))) + "  "
	}
	title := fit(p.title(keyOf(ref)), width-termsafe.Width(text)-termsafe.Width(feed))
	s := plainStyle
	if ref.Unread() {
		s = unreadText
	}
	if here {
		return p.cursorLine(true, listPane, s, text+feed+title)
	}
	if len(flags) > 1 {
		text = p.paint(flagText, text)
	}
	return text + p.paint(feedStyle, feed) + p.paint(s, title)
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
	title := " " + strings.TrimLeft(flagLetters(p.marks.now(r.ref))+" ", " ") + p.title(r.key)
	switch {
	case r.err != nil:
		return title, p.message(r.err.Error(), badText, width, height)
	case !r.open():
		return " ", nil
	case r.page == nil:
		return title, []string{fit(" reading…", width)}
	}
	header := max(0, slices.Index(r.lines, ""))
	var body []string
	for i := r.y; i < min(len(r.lines), r.y+height); i++ {
		line := fit(" "+r.lines[i], width)
		if i < header {
			line = p.paint(feedStyle, line)
		} else if isNote(r.lines[i]) {
			line = p.paint(linkText, line)
		}
		body = append(body, line)
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
		text, _ := m.input.prompt.line(p.width)
		return fit(text, p.width)
	case m.status.isError:
		text := Plain(m.status.text)
		if termsafe.Width(text) > p.width && m.o.Name != "" {
			text = strings.ReplaceAll(text, m.o.Name+"/", "") // omit the path of the lektor-dir
		}
		return p.paint(badText, fit(ends(text, p.width), p.width))
	case m.status.text != "":
		return fit(Plain(m.status.text), p.width)
	case m.input.count != "" || m.input.keys != "":
		return fit(m.input.count+m.input.keys, p.width)
	}
	left, right := p.place(), m.o.Keys.of("help")+" help"
	if left == "" && p.width >= 60 {
		left = p.hints()
	}
	return p.paint(dimText, fit(fit(Plain(left), max(0, p.width-len(right)-1))+" "+right, p.width))
}

// place returns the position in the entry, the progress of a job, or the mode of the list.
func (p *painter) place() string {
	m, page := p.m, p.page.page
	switch {
	case m.input.help != nil:
		return "keys that move scroll, any other key closes help"
	case p.snapshot == nil:
		return "reading " + m.o.Name
	case p.focus == pagePane && page != nil:
		place := "all"
		if n := len(p.page.lines) - p.lines(); n > 0 {
			place = fmt.Sprintf("%d%%", p.page.y*100/n)
		}
		if n := len(page.Enclosures); n > 0 {
			place += ", " + humanize.Count(n, "enclosure")
		}
		if n := len(page.Pictures); n > 0 && m.shown.can() {
			place += ", " + humanize.Count(n, "picture")
		}
		return place
	case m.dates.progress != "":
		return m.dates.progress
	case p.list.all:
		return "read and unread entries"
	}
	return ""
}

// hints returns the most useful keys for the current pane.
func (p *painter) hints() string {
	var hints []string
	for _, h := range []struct{ action, what string }{
		{"open", "open"}, {"forward", "read on"}, {"next-unread", "next unread"}, {"search", "search"}, {"quit", "back"},
	} {
		key := p.m.o.Keys.of(h.action)
		switch {
		case key == h.action: // no key is bound to the action
			continue
		case h.action == "quit" && p.focus == feedsPane:
			h.what = "end"
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

// helpPage is the list of keys on the screen.
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
func help(m *model, _ call) tea.Cmd {
	h := &helpPage{}
	for _, keys := range m.o.Keys.order {
		b := m.o.Keys.bound[keys]
		text := b.String()
		if a, ok := actionOf(b[0].action); ok && len(b) == 1 && len(b[0].words) == 0 {
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
	m.input.help = h
	return nil
}

// key scrolls the list of keys for an action that moves. It reports whether action is one.
func (h *helpPage) key(action string, height int) bool {
	n := 0
	switch action {
	case "down", "scroll-down":
		n = 1
	case "up", "scroll-up":
		n = -1
	case "page-down", "forward", "half-down":
		n = height - 1
	case "page-up", "half-up":
		n = 1 - height
	}
	h.y = max(0, min(h.y+n, len(h.lines)-height))
	return n != 0
}
