package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// menu is a list over the whole screen, for example the keys or the links of an entry.
type menu struct {
	title string
	lines []string
	hint  string // for the last line
	at, y int    // the cursor, and the first line on the screen
	wrap  bool   // break lines that are wider than the screen, instead of cutting them off
	// keys are actions of this menu by their keys; others have the keys of the user.
	keys map[string]string
	live func() []string // if not nil, it makes the lines anew, see refresh
	// choose does an action on the line of the cursor. It reports whether the action belongs to
	// the menu; the menu stays open unless choose closes it. If choose is nil, the lines are only
	// text without a cursor.
	// If the menu is live, at can be beyond the last line, as keys may come faster than draws.
	choose func(m *model, c keys.Call, at int) (cmd tea.Cmd, ok bool)
}

// refresh makes the lines of a live menu anew.
func (n *menu) refresh() {
	if n.live != nil {
		n.lines = n.live()
		n.at = max(0, min(n.at, len(n.lines)-1))
	}
}

// onOpen returns the function choose of a menu that open closes. Then do is called with the line of
// the cursor.
func onOpen(do func(m *model, at int) tea.Cmd) func(*model, keys.Call, int) (tea.Cmd, bool) {
	return func(m *model, c keys.Call, at int) (tea.Cmd, bool) {
		if c.Action != "open" {
			return nil, false
		}
		m.input.menu = nil
		return do(m, at), true
	}
}

// moves returns the number of lines by which an action moves in a menu, 0 if it does not move.
func (n *menu) moves(c keys.Call, height int) int {
	count := max(c.Count, 1)
	switch c.Action {
	case "down", "scroll-down":
		return count
	case "up", "scroll-up":
		return -count
	case "page-down", "forward", "half-down":
		return height - 1
	case "page-up", "half-up":
		return 1 - height
	case "top":
		return -len(n.lines)
	case "bottom":
		return len(n.lines)
	}
	return 0
}

// menuKey does an action in the menu that is open. Actions that do not belong to the menu close it.
func menuKey(m *model, c keys.Call) tea.Cmd {
	if c.Action == "repeat" {
		return repeat(m, c)
	}
	n, height := m.input.menu, m.browser.lines()
	by := n.moves(c, height)
	switch {
	case by != 0 && n.choose == nil:
		n.y = max(0, min(n.y+by, len(n.lines)-height))
		return nil
	case by != 0:
		n.at = max(0, min(n.at+by, len(n.lines)-1))
		return nil
	case n.choose != nil && (n.at < len(n.lines) || n.live != nil):
		if cmd, ok := n.choose(m, c, n.at); ok {
			return cmd
		}
	}
	m.input.menu = nil
	return ignoreBurst(m)
}

// menu returns the lines of the open menu, each padded to the width of the screen.
func (p *painter) menu(n *menu, height int) []string {
	n.refresh()
	if n.choose != nil {
		n.y = cells.Window(n.y, n.at, len(n.lines), height)
	}
	lines := []string{p.look.Paint(cells.TitleStyle, cells.Fit(" "+p.m.Tr(n.title), p.width))}
	if n.wrap {
		return append(lines, p.wrapped(n, height)...)
	}
	for i := n.y; i < n.y+height; i++ {
		switch {
		case i >= len(n.lines):
			lines = append(lines, strings.Repeat(" ", p.width))
		case n.choose == nil:
			lines = append(lines, cells.Fit(" "+n.lines[i], p.width))
		case i == n.at:
			lines = append(lines, p.look.Paint(cells.CursorHere, cells.Fit(cells.CursorMark(true)+n.lines[i], p.width)))
		default:
			lines = append(lines, cells.Fit(cells.CursorMark(false)+n.lines[i], p.width))
		}
	}
	return lines
}

// wrapped returns the lines of a menu that breaks long lines: from the line n.y, or from the next
// one from which the line of the cursor is whole on the screen.
func (p *painter) wrapped(n *menu, height int) (rows []string) {
	for i := min(n.at, len(n.lines)-1); i >= n.y; i-- {
		lines := cells.BreakLines(n.lines[i], p.width-1)
		if i < n.at && len(lines)+len(rows) > height {
			n.y = i + 1
			break
		}
		rows = append(rows, lines...)
	}
	rows = nil
	for i := n.y; i < len(n.lines) && len(rows) < height; i++ {
		for j, line := range cells.BreakLines(n.lines[i], p.width-1) {
			line = cells.Fit(cells.CursorMark(i == n.at && j == 0)+line, p.width)
			if i == n.at {
				line = p.look.Paint(cells.CursorHere, line)
			}
			rows = append(rows, line)
		}
	}
	for len(rows) < height {
		rows = append(rows, strings.Repeat(" ", p.width))
	}
	return rows[:height]
}

// help shows the keys by groups, first those of the present pane.
func help(m *model, _ keys.Call) tea.Cmd {
	n := &menu{title: "the keys", hint: "keys that move scroll, any other key closes this"}
	k := m.o.Keys
	here := k.Here()
	for _, pane := range append([]string{here, ""},
		slices.DeleteFunc(slices.Clone(keys.Panes), func(s string) bool { return s == here })...) {
		for _, g := range groups() {
			title := m.Tr(g.title)
			if pane != "" {
				title = m.Trf("only in: %s", pane) + ", " + title
			}
			lines := []string{title + ":"}
			for _, at := range k.Order {
				does := func(a action) bool { return a.name == k.Bound[at][0].Action }
				if at.Pane == pane && slices.ContainsFunc(g.actions, does) &&
					(m.o.NoFetcher == nil || !needsFetcher(k.Bound[at][0].Action)) {
					lines = append(lines, beside(cells.Plain(at.Keys), cells.Plain(helpText(m, k.Bound[at])),
						m.browser.width-1)...)
				}
			}
			if len(lines) > 1 {
				n.lines = append(append(n.lines, lines...), "")
			}
		}
	}
	source := m.Trf("Keys of your own go into %s.", m.o.KeysFile)
	if m.o.KeysSet != "" {
		source = m.Trf("These are the keys of the set %s.", m.o.KeysSet)
	}
	n.lines = append(n.lines, cells.Plain(source))
	for _, err := range slices.Concat(k.Errs, m.o.Look.Errs) {
		n.lines = append(n.lines, cells.BreakLines(cells.Plain(err.Error()), max(10, m.browser.width-2))...)
	}
	m.input.menu = n
	return nil
}

// messages shows the messages of the last line, and those of fetches, as a whole.
func messages(m *model, _ keys.Call) tea.Cmd {
	if len(m.input.messages) == 0 {
		m.say("there were no messages")
		return nil
	}
	m.input.menu = textMenu(m, m.Tr("messages, the newest first"), m.input.messages)
	return nil
}

// textMenu returns a menu of a text, without a cursor.
func textMenu(m *model, title string, text []string) *menu {
	n := &menu{title: title, hint: "keys that move scroll, any other key closes this"}
	for _, line := range text {
		n.lines = append(n.lines, cells.BreakLines(line, max(10, m.browser.width-2))...)
	}
	return n
}

// keyColumns are the columns of the keys in help.
const keyColumns = 12

// beside returns lines of at most width columns with keys, and a text to the right of them. A word
// may be wider.
func beside(keys, text string, width int) (lines []string) {
	line, empty := termsafe.Pad(keys, keyColumns), true
	for word := range strings.FieldsSeq(text) {
		if !empty && termsafe.Width(line)+1+termsafe.Width(word) > width {
			lines = append(lines, line)
			line = strings.Repeat(" ", keyColumns)
		}
		line, empty = line+" "+word, false
	}
	return append(lines, line)
}

// helpText returns what a binding does.
func helpText(m *model, b keys.Binding) string {
	a, ok := actionOf(b[0].Action)
	if !ok || len(b) > 1 || len(b[0].Words) > 0 {
		return b.String()
	}
	text := m.Tr(a.help)
	if a.command != "" {
		text += "  (" + a.command + ")"
	}
	return text
}

// question asks the user to confirm something.
type question struct {
	text string
	yes  func() tea.Cmd // does it
}

// line returns the question for the last line.
func (q *question) line(w *world) string { return w.Tr(q.text) + " (y/n) " }

// confirm asks a question that y answers with yes, and any other key with no.
func (in *input) confirm(text string, yes func() tea.Cmd) {
	in.question = &question{text, yes}
}
