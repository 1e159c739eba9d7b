package tui

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
)

// input is unfinished input of the user.
type input struct {
	keys     string // the beginning of a key sequence, in the form of the file of keys
	count    string // digits typed before keys
	prompt   *prompt
	question *question
	menu     *menu
	history  []string // lines of the command line
	messages []string // of the last line and of fetches, newest first
	burst    *byte    // the burst whose keys do nothing; nil if keys act
	// moreActions is true while a key does several actions, one of which may move the cursor.
	moreActions bool
}

// open reports whether a prompt, a question or a menu is open.
func (in *input) open() bool { return in.prompt != nil || in.question != nil || in.menu != nil }

// prompt is a line that the user types.
type prompt struct {
	label   string
	text    []rune
	at      int                                 // the cursor
	action  string                              // action that gets the text as its word
	then    func(m *model, text string) tea.Cmd // gets the text instead of an action; nil if there is an action
	ready   func(text string) bool              // reports whether the text needs no Enter; nil if it always does
	command *commandLine                        // nil but for the command line
	before  *beforeSearch                       // for a search, which lists while the user types; else nil
}

// beforeSearch is the state that Esc restores.
type beforeSearch struct {
	query string
	focus keys.Pane
}

// maxTyped is the maximum number of characters in a prompt.
const maxTyped = 1000

// ask shows a prompt for an action.
func (m *model) ask(label, text, action string) *prompt {
	label = m.Tr(strings.TrimRight(label, " ")) + label[len(strings.TrimRight(label, " ")):]
	m.input.prompt = &prompt{label: label, text: []rune(text), at: len([]rune(text)), action: action}
	return m.input.prompt
}

// maxMessages is the maximum number of messages to show again.
const maxMessages = 200

// keep adds messages to show again, each once in a row.
func (in *input) keep(messages ...string) {
	all := slices.Compact(slices.Concat(messages, in.messages))
	in.messages = all[:min(maxMessages, len(all))]
}

// key handles a pressed key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := keys.KeyName(k.String())
	in, action := &m.input, m.o.Keys.Action(keys.KeyName(k.String()))
	if name == "<esc>" {
		defer func() { in.burst = nil }() // it says that the keys after it are for what is below
	}
	switch {
	case name == "<C-c>":
		return tea.Quit // always: users try ^C in a program that they do not know
	case in.prompt != nil:
		return m.typed(name, k.Text)
	case action == "command" && (in.open() || m.shown.on || in.burst != nil):
		*in = input{history: in.history, messages: in.messages}
		m.status = status{}
		return tea.Batch(m.dropPicture(), typeCommand(m, keys.Call{}))
	case in.burst != nil:
		return ignoreBurst(m)
	}
	m.status = status{}
	if m.shown.on && name != "<C-z>" && action != "picture" {
		return tea.Batch(m.dropPicture(), ignoreBurst(m))
	}
	if q := in.question; q != nil {
		in.question = nil
		switch name {
		case "y":
			return q.yes()
		case "n":
			return nil
		}
		return ignoreBurst(m)
	}
	return m.sequence(name, k)
}

// burstPause is the time between two keys from which on they are no burst: longer than between those
// of one write, and shorter than anyone needs to see the screen and press a key.
const burstPause = 20 * time.Millisecond

// ignoreBurst ignores the keys that follow a key, until none comes for burstPause. They were typed
// before the user saw an overlay close, or a question, and may do harm without it.
func ignoreBurst(m *model) tea.Cmd {
	b := new(byte)
	m.input.burst = b
	return m.after(burstPause, thenMsg(func(m *model) tea.Cmd {
		if m.input.burst == b {
			m.input.burst = nil
		}
		return nil
	}))
}

// sequence handles a key that may be part of a key sequence or of a count.
func (m *model) sequence(name string, k tea.KeyPressMsg) tea.Cmd {
	in, bound := &m.input, m.o.Keys
	if name == "<esc>" && (in.keys != "" || in.count != "") {
		in.keys, in.count = "", ""
		return nil
	}
	if _, isBound := bound.Get(name); in.keys == "" && !isBound && len(name) == 1 && name[0] >= '0' && name[0] <= '9' &&
		(name != "0" || in.count != "") {
		if in.count += name; len(in.count) > 6 {
			in.count = in.count[:6]
		}
		return nil
	}
	pressed := in.keys + name
	if in.menu != nil && in.menu.keys[pressed] != "" {
		return m.bound(keys.Binding{{Action: in.menu.keys[pressed]}})
	}
	if bound.Begins(pressed) {
		in.keys = pressed
		return nil
	}
	if b, ok := bound.Get(pressed); ok {
		return m.bound(b)
	}
	if b, ok := bound.Get(in.keys); ok {
		// The user meant the shorter sequence, and then this key.
		return tea.Batch(m.bound(b), m.key(k))
	}
	in.keys, in.count = "", ""
	if in.menu != nil {
		return menuKey(m, keys.Call{})
	}
	m.say("%s does nothing; %s shows the keys", pressed, bound.Of("help"))
	return nil
}

// bound does the actions of a binding.
func (m *model) bound(b keys.Binding) tea.Cmd {
	count, _ := strconv.Atoi(m.input.count)
	m.input.keys, m.input.count = "", ""
	m.input.moreActions = len(b) > 1
	defer func() { m.input.moreActions = false }()
	var cmds []tea.Cmd
	for _, c := range b {
		c.Count = count
		switch {
		case m.input.burst != nil: // the action before closed a menu
		case m.input.menu != nil:
			cmds = append(cmds, menuKey(m, c))
		default:
			cmds = append(cmds, m.do(c))
		}
	}
	return tea.Batch(cmds...)
}

// do does an action.
func (m *model) do(c keys.Call) tea.Cmd {
	if a, ok := actionOf(c.Action); ok {
		return a.do(m, c)
	}
	return nil
}

// typed handles a key in the prompt.
func (m *model) typed(name, text string) tea.Cmd {
	p := m.input.prompt
	switch name {
	case "<enter>":
		m.input.prompt = nil
		if p.then != nil {
			return p.then(m, string(p.text))
		}
		return m.do(keys.Call{Action: p.action, Words: []string{string(p.text)}})
	case "<esc>":
		m.input.prompt = nil
		if old := p.before; old != nil {
			m.browser.focus = old.focus
			if m.browser.list.query != old.query {
				m.apply(m.browser.search(old.query))
			}
		}
		return nil
	}
	if p.command != nil {
		if cmd, ok := p.command.key(m, p, name); ok {
			return cmd
		}
	}
	m.edit(func() { p.edit(name, text) })
	if p.ready != nil && p.ready(string(p.text)) {
		return m.typed("<enter>", "")
	}
	return nil
}

// paste inserts pasted text into the prompt. Without a prompt it is ignored, never taken for
// keys.
func (m *model) paste(text string) tea.Cmd {
	if p := m.input.prompt; p != nil {
		m.edit(func() { p.insert(strings.TrimSpace(text)) })
	}
	return nil
}

// edit changes the text of the prompt, and searches for it if the prompt is a search.
func (m *model) edit(change func()) {
	p := m.input.prompt
	before := string(p.text)
	change()
	if text := string(p.text); text != before && p.before != nil {
		m.browser.list.cursorToTop = true
		m.apply(m.browser.search(text))
	}
}

// edit changes the text by a key.
func (p *prompt) edit(name, text string) {
	switch name {
	case "<backspace>", "<C-h>":
		p.cut(p.at-1, p.at)
	case "<delete>", "<C-d>":
		p.cut(p.at, p.at+1)
	case "<left>", "<C-b>":
		p.at = max(0, p.at-1)
	case "<right>", "<C-f>":
		p.at = min(len(p.text), p.at+1)
	case "<home>", "<C-a>":
		p.at = 0
	case "<end>", "<C-e>":
		p.at = len(p.text)
	case "<C-u>":
		p.cut(0, p.at)
	case "<C-k>":
		p.cut(p.at, len(p.text))
	case "<C-w>":
		from := p.at
		for from > 0 && unicode.IsSpace(p.text[from-1]) {
			from--
		}
		for from > 0 && !unicode.IsSpace(p.text[from-1]) {
			from--
		}
		p.cut(from, p.at)
	default:
		p.insert(text)
	}
}

// cut removes characters from index from up to to, and moves the cursor there.
func (p *prompt) cut(from, to int) {
	from, to = max(0, from), min(to, len(p.text))
	p.text = slices.Delete(p.text, from, to)
	p.at = from
}

// insert inserts text at the cursor.
func (p *prompt) insert(text string) {
	typed := []rune(cells.Plain(text))
	if text == " " {
		typed = []rune(text)
	}
	typed = typed[:min(len(typed), max(0, maxTyped-len(p.text)))]
	p.text = slices.Insert(p.text, p.at, typed...)
	p.at += len(typed)
}

// mouse handles the mouse: the wheel scrolls the pane under it, a click moves the cursor, and a
// click on the line of the cursor opens it.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	at, b := msg.Mouse(), &m.browser
	if m.input.open() || m.shown.on {
		return nil
	}
	for _, p := range b.layout() {
		if at.X < p.x || at.X >= p.x+p.width || at.Y < p.y || at.Y > p.y+p.height {
			continue
		}
		switch msg.(type) {
		case tea.MouseWheelMsg:
			switch at.Button {
			case tea.MouseWheelUp:
				m.apply(b.wheel(p, -3))
			case tea.MouseWheelDown:
				m.apply(b.wheel(p, 3))
			}
		case tea.MouseClickMsg:
			if row := at.Y - p.y - 1; at.Button == tea.MouseLeft && row >= 0 {
				m.apply(b.click(p, row))
			}
		}
	}
	return nil
}
