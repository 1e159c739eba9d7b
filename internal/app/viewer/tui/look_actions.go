package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// lookActions returns the actions on the look of the screen, and the menus of folders and queries.
func lookActions() []action {
	return []action{
		{"wider", 0, "make this pane larger, by N steps", "", resizePane(1)},
		{"narrower", 0, "make this pane smaller, by N steps", "", resizePane(-1)},
		{"layout", 1, "the next layout: auto, two, three or stacked", "", nextLayout},
		{"theme", 1, "the next theme: default, dark or light", "", nextTheme},
		{"color", variadic, "set a color for now, as a line of etc/view/look", "", typeLook},
		{"folders", 0, "choose a folder from a menu", "ls folder:NAME",
			func(m *model, _ keys.Call) tea.Cmd { return chooseNode(m, folderNode, &menu{title: "the folders"}) }},
		{"queries", 0, "choose a saved query from a menu", "ls query:NAME",
			func(m *model, _ keys.Call) tea.Cmd {
				return chooseNode(m, savedNode, &menu{title: "the saved queries"})
			}},
	}
}

// chooseNode opens a menu of the nodes of a kind, in which open lists the entries of one.
func chooseNode(m *model, kind nodeKind, n *menu) tea.Cmd {
	var found []node
	if s := m.browser.snapshot; s != nil {
		found = slices.DeleteFunc(slices.Clone(s.nodes), func(n node) bool { return n.kind != kind })
	}
	if len(found) == 0 {
		m.say("%s: there are none", m.Tr(n.title))
		return nil
	}
	for _, node := range found {
		n.lines = append(n.lines, strings.Repeat("  ", node.depth)+cells.Plain(termsafe.Brief(node.title)))
	}
	n.choose = onOpen(func(m *model, at int) tea.Cmd {
		reveal(&m.browser, found[at].id)
		m.apply(m.browser.choose(found[at].id))
		m.browser.focus = keys.ListPane
		return nil
	})
	m.input.menu = n
	n.hint = m.Trf("%s lists the entries, other keys close the menu", m.o.Keys.Of("open"))
	return nil
}

// reveal opens a folder, or the folders that hide a feed.
func reveal(b *browser, of id) {
	path := of.in
	if of.kind == folderNode {
		path = of.name
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		delete(b.tree.closed, id{kind: folderNode, name: strings.Join(parts[:i+1], "/")})
	}
	b.arrangeTree()
}

// themeSetting is the name of the theme in the settings of the screen.
const themeSetting = "theme"

// nameOf returns the word of c, or the name after the present one. ok is false if there is no such name.
func nameOf(m *model, c keys.Call, names []string, now string) (name string, ok bool) {
	name = names[cells.Wrap(slices.Index(names, now)+1, len(names))]
	if len(c.Words) > 0 {
		name = c.Words[0]
	}
	if ok = slices.Contains(names, name); !ok {
		m.say("there is no %s %s; there are %s", c.Action, name, strings.Join(names, ", "))
	}
	return name, ok
}

// nextTheme changes to the theme that the word of c names, or to the next.
func nextTheme(m *model, c keys.Call) tea.Cmd {
	if m.o.NoColor {
		m.say("there are no themes without colours")
		return nil
	}
	look := m.o.Look
	name, ok := nameOf(m, c, cells.Themes, look.Theme)
	if !ok {
		return nil
	}
	look.Use(name, false)
	m.say("theme: %s", look.Theme)
	saveSetting(m, themeSetting, look.Theme)
	return nil
}

// typeLook adds a line to that of the look, until the reader ends.
func typeLook(m *model, c keys.Call) tea.Cmd {
	line := c.Action + " " + strings.Join(c.Words, " ")
	if err := new(cells.Look).Line(line); err != nil {
		m.fail(err)
		return nil
	}
	m.o.typed += "\n" + line
	return readLook(m)
}

// readLook returns the command that reads the file of the look again.
func readLook(m *model) tea.Cmd {
	ctx, d, typed := m.ctx, m.disk, m.o.typed
	return func() tea.Msg {
		look, err := d.Look(ctx, typed)
		return thenMsg(func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			m.o.Look = look
			look.Use(m.o.Screen.Get(themeSetting), m.o.NoColor)
			m.browser.shape = newShape(m.o.Screen, look.Layout)
			if len(look.Errs) > 0 {
				m.fail(look.Errs[0])
			}
			return nil
		})
	}
}
