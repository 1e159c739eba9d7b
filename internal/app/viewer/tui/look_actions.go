package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/termsafe"
)

// lookActions returns the actions on the look of the screen, and the menus of folders and queries.
func lookActions() []action {
	return []action{
		{"wider", 0, "make this pane larger, by N steps", "", resizePane(1)},
		{"narrower", 0, "make this pane smaller, by N steps", "", resizePane(-1)},
		{"layout", 0, "the next layout: auto, two, three or stacked", "", nextLayout},
		{"theme", 0, "the next theme: default, dark or light", "", nextTheme},
		{"folders", 0, "choose a folder from a menu", "ls folder:NAME", func(m *model, _ call) tea.Cmd {
			if !chooseNode(m, folderNode, &menu{title: "the folders"}) {
				m.say("there are no folders")
			}
			return nil
		}},
		{"queries", 0, "choose a saved query from a menu", "ls query:NAME", func(m *model, _ call) tea.Cmd {
			if !chooseNode(m, savedNode, &menu{title: "the saved queries"}) {
				m.say("there are no saved queries")
			}
			return nil
		}},
	}
}

// chooseNode opens a menu of the nodes of a kind, in which open lists the entries of one. It
// reports false if there are none.
func chooseNode(m *model, kind nodeKind, n *menu) bool {
	var found []node
	if s := m.browser.snapshot; s != nil {
		found = slices.DeleteFunc(slices.Clone(s.nodes), func(n node) bool { return n.kind != kind })
	}
	if len(found) == 0 {
		return false
	}
	for _, node := range found {
		n.lines = append(n.lines, strings.Repeat("  ", node.depth)+Plain(termsafe.Brief(node.title)))
	}
	n.choose = onOpen(func(m *model, at int) tea.Cmd {
		reveal(&m.browser, found[at].id)
		m.apply(m.browser.choose(found[at].id))
		m.browser.focus = listPane
		return nil
	})
	m.input.menu = n
	n.hint = m.trf("%s lists the entries, other keys close the menu", m.o.Keys.of("open"))
	return true
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

// nextTheme changes to the next theme.
func nextTheme(m *model, _ call) tea.Cmd {
	if m.o.NoColor {
		m.say("there are no themes without colours")
		return nil
	}
	look := m.o.Look
	look.use(themes[wrap(slices.Index(themes, look.theme)+1, len(themes))], false)
	m.say("theme: %s", look.theme)
	saveSetting(m, themeSetting, look.theme)
	return nil
}

// readLook returns the command that reads the file of the look again.
func readLook(m *model) tea.Cmd {
	ctx, d := m.ctx, m.disk
	return func() tea.Msg {
		look, err := d.Look(ctx)
		return thenMsg(func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			m.o.Look = look
			look.use(m.o.Screen.Get(themeSetting), m.o.NoColor)
			m.browser.shape = newShape(m.o.Screen, look.layout)
			clear(m.rows)
			if len(look.Errs) > 0 {
				m.fail(look.Errs[0])
			}
			return nil
		})
	}
}
