package tui

import (
	"strconv"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// keysPressed are those that wait for more.
type keysPressed struct {
	keys  string // in the form of the file
	count string // digits before them
}

// prompt is a line that is typed.
type prompt struct {
	label string
	text  []rune
	at    int // the cursor
	done  func(m *model, text string) tea.Cmd
	typed func(m *model, text string) tea.Cmd // at each change; may be nil
	left  func(m *model) tea.Cmd              // it was left by Esc; may be nil
}

// maxTyped is how much can be typed.
const maxTyped = 1000

// ask begins a line.
func (m *model) ask(label, text string, done func(*model, string) tea.Cmd) *prompt {
	m.prompt = &prompt{label: label, text: []rune(text), at: len([]rune(text)), done: done}
	return m.prompt
}

// key takes a key that was pressed.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := keyName(k.String())
	switch {
	case name == "<C-c>":
		// It ends a program that a person does not know, whatever that shows.
		return tea.Quit
	case m.prompt != nil:
		return m.edit(name, k.Text)
	}
	m.said, m.bad = "", false
	if m.shown.picture != nil && name != "<C-z>" {
		// Any key takes a picture away; the key for pictures shows the next one.
		if b, ok := m.o.Keys.bound[name]; !ok || b.steps[0].action != "picture" {
			return m.dropPicture()
		}
	}
	if m.helping != nil {
		return m.helpKey(name)
	}
	p := &m.pressed
	if name == "<esc>" && (p.keys != "" || p.count != "") {
		*p = keysPressed{}
		return nil
	}
	if _, bound := m.o.Keys.bound[name]; p.keys == "" && !bound && len(name) == 1 && name[0] >= '0' && name[0] <= '9' && (name != "0" || p.count != "") {
		if p.count += name; len(p.count) > 6 {
			p.count = p.count[:6]
		}
		return nil
	}
	keys := p.keys + name
	if m.o.Keys.begins(keys) {
		p.keys = keys
		return nil
	}
	if b, ok := m.o.Keys.bound[keys]; ok {
		return m.bound(b)
	}
	if b, ok := m.o.Keys.bound[p.keys]; ok {
		// The shorter one was meant, and then this key.
		return tea.Batch(m.bound(b), m.key(k))
	}
	*p = keysPressed{}
	m.say("%s does nothing; %s shows the keys", keys, m.o.Keys.of("help"))
	return nil
}

// bound does what keys are bound to.
func (m *model) bound(b binding) tea.Cmd {
	count, _ := strconv.Atoi(m.pressed.count)
	m.pressed = keysPressed{}
	var cmds []tea.Cmd
	for _, s := range b.steps {
		if a, ok := actionOf(s.action); ok {
			cmds = append(cmds, a.do(m, count, s.words))
		}
	}
	return tea.Batch(cmds...)
}

// of gives the keys for an action, for a message.
func (k *Keys) of(action string) string {
	for _, keys := range k.order {
		if b := k.bound[keys]; len(b.steps) == 1 && b.steps[0].action == action {
			return keys
		}
	}
	return action
}

// edit takes a key while a line is typed.
func (m *model) edit(name, text string) tea.Cmd {
	p := m.prompt
	before := string(p.text)
	switch name {
	case "<enter>":
		m.prompt = nil
		return p.done(m, before)
	case "<esc>":
		m.prompt = nil
		if p.left != nil {
			return p.left(m)
		}
		return nil
	case "<backspace>", "<C-h>":
		if p.at > 0 {
			p.text = append(p.text[:p.at-1:p.at-1], p.text[p.at:]...)
			p.at--
		}
	case "<delete>", "<C-d>":
		if p.at < len(p.text) {
			p.text = append(p.text[:p.at:p.at], p.text[p.at+1:]...)
		}
	case "<left>", "<C-b>":
		p.at = max(0, p.at-1)
	case "<right>", "<C-f>":
		p.at = min(len(p.text), p.at+1)
	case "<home>", "<C-a>":
		p.at = 0
	case "<end>", "<C-e>":
		p.at = len(p.text)
	case "<C-u>":
		p.text, p.at = p.text[p.at:], 0
	case "<C-k>":
		p.text = p.text[:p.at]
	case "<C-w>":
		from := p.at
		for from > 0 && unicode.IsSpace(p.text[from-1]) {
			from--
		}
		for from > 0 && !unicode.IsSpace(p.text[from-1]) {
			from--
		}
		p.text = append(p.text[:from:from], p.text[p.at:]...)
		p.at = from
	default:
		p.insert(text)
	}
	return m.edited(before)
}

// insert puts text where the cursor is.
func (p *prompt) insert(text string) {
	typed := []rune(Plain(text))
	if text == " " {
		typed = []rune(text)
	}
	typed = typed[:min(len(typed), max(0, maxTyped-len(p.text)))]
	p.text = append(p.text[:p.at:p.at], append(typed, p.text[p.at:]...)...)
	p.at += len(typed)
}

func (m *model) edited(before string) tea.Cmd {
	p := m.prompt
	if text := string(p.text); text != before && p.typed != nil {
		return p.typed(m, text)
	}
	return nil
}

// paste takes what was pasted: text for a line that is typed, and no keys.
func (m *model) paste(text string) tea.Cmd {
	if m.prompt == nil {
		return nil
	}
	before := string(m.prompt.text)
	m.prompt.insert(strings.TrimSpace(text))
	return m.edited(before)
}

// mouse takes what the mouse did: the wheel moves what it is over, a click chooses, and
// one on what is chosen opens it.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	if m.prompt != nil || m.helping != nil || m.shown.picture != nil {
		return nil
	}
	for _, p := range m.layout() {
		if at.X < p.x || at.X >= p.x+p.width {
			continue
		}
		switch msg.(type) {
		case tea.MouseWheelMsg:
			n := 3
			if at.Button == tea.MouseWheelUp {
				n = -n
			} else if at.Button != tea.MouseWheelDown {
				return nil
			}
			if p.kind == pagePane {
				return m.scroll(n)
			}
			m.focus = p.kind
			return m.move(n)
		case tea.MouseClickMsg:
			row := at.Y - 1
			if at.Button != tea.MouseLeft || row < 0 || row >= m.room() {
				return nil
			}
			was := m.focus
			m.focus = p.kind
			switch p.kind {
			case feedsPane:
				line := m.tree.y + row
				if line == m.tree.at && was == feedsPane {
					return m.open()
				}
				return m.toNode(line)
			case listPane:
				line := m.list.y + row
				if line >= len(m.list.items) {
					return nil
				}
				if line == m.list.at && was == listPane {
					return m.open()
				}
				m.list.goTo(line)
			}
		}
	}
	return nil
}
