package tui

import (
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// help shows the keys by groups, first those of the present pane.
func (m *model) help(part.Given) part.Effects {
	n := &part.Lines{Title: "the keys", Hint: "keys that move scroll, any other key closes this"}
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
					(m.o.NoFetcher == nil || !needsFetcher(k.Bound[at][0])) {
					lines = append(lines, beside(cells.Plain(at.Keys), cells.Plain(m.helpText(k.Bound[at])),
						m.browser.width-1)...)
				}
			}
			if len(lines) > 1 {
				n.Text = append(append(n.Text, lines...), "")
			}
		}
	}
	source := m.Trf("Keys of your own go into %s.", m.o.KeysFile)
	if m.o.KeysSet != "" {
		source = m.Trf("These are the keys of the set %s.", m.o.KeysSet)
	}
	n.Text = append(n.Text, cells.Plain(source))
	for _, err := range slices.Concat(k.Errs, m.o.Look.Errs) {
		n.Text = append(n.Text, cells.BreakLines(cells.Plain(err.Error()), max(10, m.browser.width-2))...)
	}
	return part.Effects{part.Menu{Lines: n}}
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
func (m *model) helpText(b keys.Binding) string {
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
