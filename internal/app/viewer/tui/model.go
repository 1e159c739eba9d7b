package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/prompt"
	"github.com/lektordir/lektor/internal/app/viewer/tui/scene"
	"github.com/lektordir/lektor/internal/app/viewer/tui/terminal"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/lektordir"
)

// model is the parent of the parts: it routes keys and effects to them. Only the UI goroutine uses it, and that
// goroutine never waits: long work is a [tea.Cmd], and its result arrives as a message.
type model struct {
	*part.Env
	o          *Options
	browser    browser
	prompt     prompt.Prompt
	work       *work.Work
	pictures   page.Pictures
	appearance appearance
	line       commandLine
	typed      keys.Sequence
	status     part.Say // the message in the last line
	terminal   *terminal.Terminal
	program    *tea.Program // nil in tests
	clock      *drawClock
	voice      *scene.Voice // nil if the screen is drawn
	defect     *part.Defect // the panic that ended the reader; nil if none did
}

// redrawMsg asks to draw the whole screen.
type redrawMsg struct{}

func newModel(ctx context.Context, d Disk, o *Options) *model {
	m := &model{o: o, terminal: terminal.New(o.In, o.Out, o.Plain)}
	m.Env = &part.Env{Ctx: ctx, Printer: texts.New(o.Getenv), After: sendLater, KeyOf: o.Keys.Of}
	m.connect(d)
	if o.Plain {
		m.voice = &scene.Voice{Out: o.Out, Hold: scene.Hold}
	}
	if errs := slices.Concat(o.Keys.Errs, o.Look.Errs); len(errs) > 0 {
		m.status = part.Say{Text: errs[0].Error(), Bad: true}
	}
	return m
}

// connect makes the parts, and passes to each what it knows of the others.
func (m *model) connect(d Disk) {
	o, b := m.o, &m.browser
	m.work = work.New(&work.Env{Env: m.Env, Disk: d, Screen: o.Screen, Fetcher: o.Fetcher, Dir: o.Name,
		Folders: m.line.folderLines,
		Play: func(ref lektordir.Ref, path string) part.Effects {
			return b.page.Programs.Play(ref, page.FilePlayer, path)
		}})
	b.Env, b.marks, b.advance = m.Env, &m.work.Queue, o.Advance
	b.Layout = scene.Layout{Screen: o.Screen, TextMost: o.Width, Single: o.Plain, Reading: b.page.Open}
	b.tree = tree.Tree{Env: m.Env, Disk: d, Marks: b.marks, Settings: tree.Settings{Values: o.Screen, Seed: o.Random(),
		Random: o.Random},
		Closed: map[tree.ID]bool{},
		Retry:  tree.Retry}
	b.tree.Await = b.tree.AwaitChanges
	b.list = list.List{Env: m.Env, Disk: d, Tree: &b.tree, Marks: b.marks, Titles: map[part.Key]string{},
		State: list.State{Spec: list.Spec{Order: tree.ByDate}, ReadHere: map[part.Key]bool{}},
		Pane:  func() (int, bool) { return b.LinesOf(keys.ListPane), b.Focus != keys.FeedsPane }}
	b.page = page.Page{Env: m.Env, Disk: d,
		Programs: &page.Programs{Env: m.Env, Disk: d, Getenv: o.Getenv, Forbidden: o.NoCommands, Plain: o.Plain},
		Size:     func() (int, int) { return b.TextWidth(), b.LinesOf(keys.PagePane) }}
	m.pictures = page.Pictures{Env: m.Env, Disk: d, Pixels: func() (int, int) {
		width, height := m.terminal.Cell()
		return b.Width * width, (b.Height - 1) * height
	}}
	m.prompt = prompt.Prompt{Env: m.Env, Size: func() (int, int) { return b.Width, b.Lines() }}
	m.appearance = appearance{Env: m.Env, o: o, browser: b, read: d.Look}
	m.appearance.use(o.Look)
	m.line = commandLine{Env: m.Env, o: o, browser: b, prompt: &m.prompt, with: m.with}
	b.tree.Rescan(nil)
	o.Keys.Pane = func() string {
		if m.prompt.Menu != nil {
			return keys.Panes[keys.MenuPane]
		}
		return keys.Panes[b.Focus]
	}
}

// sendLater sends a message after a delay.
func sendLater(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// Init returns the command that begins to read the lektor-dir.
func (m *model) Init() tea.Cmd {
	var ask, fetch tea.Cmd
	if m.voice == nil {
		ask = m.pictures.Ask(m.o.Getenv)
	}
	if m.o.NoFetcher == nil {
		fetch = m.apply(m.work.Fetching.Start())
	}
	return part.Guarded(tea.Batch(ask, fetch, m.browser.tree.Begin(0)))
}

// Update handles a message, and then starts the jobs that the message requested.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if d, ok := msg.(*part.Defect); ok {
		m.defect = d
		return m, tea.Quit
	}
	if m.clock == nil && m.program != nil {
		m.clock = newDrawClock(m.program)
	}
	_, key := msg.(tea.KeyPressMsg)
	m.clock.wake(key)
	cmd := m.apply(m.take(msg))
	b := &m.browser
	b.follow()
	return m, part.Guarded(tea.Batch(cmd, b.marks.Begin(), b.tree.Begin(b.list.Took), b.list.Begin(), b.page.Begin(),
		b.list.ReadTitles(), m.speak(msg)))
}

// take takes a message, and returns its effects.
func (m *model) take(msg tea.Msg) part.Effects {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.browser.Width, m.browser.Height = msg.Width, msg.Height
		// When the screen becomes wider, the library's renderer copies lines into its old,
		// narrower buffer and loses track of the new columns. So the whole screen is drawn
		// again, twice, in case a slow machine was not done with the resize the first time.
		return append(m.pictures.Drop(), part.Run(m.After(6*frame, redrawMsg{})),
			part.Run(m.After(40*frame, redrawMsg{})))
	case redrawMsg:
		if !m.pictures.On {
			return part.Effects{part.Run(tea.ClearScreen)}
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.prompt.Paste(msg.Content)
	case tea.MouseMsg:
		return m.mouse(msg)
	case part.Effects:
		return msg
	case part.Then:
		return msg()
	default:
		m.pictures.Answer(msg)
	}
	return nil
}

// apply carries out effects, in order.
func (m *model) apply(effects part.Effects) tea.Cmd {
	var cmds []tea.Cmd
	for _, e := range effects {
		cmds = append(cmds, m.carryOut(e))
	}
	return tea.Batch(cmds...)
}

// carryOut carries out an effect.
func (m *model) carryOut(e any) tea.Cmd {
	b := &m.browser
	switch e := e.(type) {
	case part.Run:
		return tea.Cmd(e)
	case part.Then:
		return m.apply(e())
	case part.Say:
		if e.Text != "" {
			m.status = e
			m.prompt.Keep(e.Text)
		}
	case part.List:
		b.list.Request(e)
	case part.Do:
		return m.apply(m.do(e.Call))
	case part.Change:
		if m.work.Flags(e).Trashes() {
			b.list.Hide()
		}
	case part.Rescan:
		b.tree.Rescan(e.Feeds)
	case part.Task:
		_, begun := m.work.Tasks.Begin(e)
		return m.apply(begun)
	case part.Download:
		return m.apply(m.work.Downloads.Add(e, cmp.Or(b.list.Titles[part.KeyOf(e.Ref)], e.URLs[0])))
	case part.Exec:
		return m.run(e)
	case part.Ask:
		m.prompt.Ask(e)
	case part.Confirm:
		return m.apply(m.prompt.Confirm(e))
	case part.Menu:
		m.prompt.Menu, m.status = e.Lines, part.Say{}
	case list.NextUnread:
		return m.apply(b.nextUnread(e.By))
	case tree.Shown:
		return m.apply(b.shown(e))
	}
	return nil
}

// framesPerSecond is how often the library draws if something changed. It is the library's
// maximum: at its default of 60, a key waits up to 17 ms.
const framesPerSecond = 120

// frame is the interval between two draws.
const frame = time.Second / framesPerSecond

// key handles a pressed key.
func (m *model) key(k tea.KeyPressMsg) part.Effects {
	name := keys.KeyName(k.String())
	p := &m.prompt
	b, bound := m.o.Keys.Get(name)
	begins := func(action string) bool { return bound && b[0].Action == action }
	if name == "<esc>" {
		defer p.Listen() // it says that the keys after it are for what is below
	}
	switch {
	case name == "<C-c>":
		return part.Effects{part.Run(tea.Quit)} // always: users try ^C in a program that they do not know
	case p.Line != nil:
		return p.Type(name, k.Text)
	case begins("command") && (p.Open() || m.pictures.On || p.IsQuiet()):
		p.Clear()
		m.typed, m.status = keys.Sequence{}, part.Say{}
		return append(m.pictures.Drop(), m.line.ask(part.Given{})...)
	case p.IsQuiet():
		return p.Quiet()
	}
	m.status = part.Say{}
	if m.pictures.On && name != "<C-z>" && !begins("picture") {
		return append(m.pictures.Drop(), p.Quiet()...)
	}
	if p.Question != nil {
		return p.Answer(name)
	}
	return m.press(k)
}

// press handles a key that may be part of a key sequence or of a count.
func (m *model) press(k tea.KeyPressMsg) part.Effects {
	var own map[string]string
	if m.prompt.Menu != nil {
		own = m.prompt.Menu.Keys
	}
	switch p := m.typed.Press(m.o.Keys, own, keys.KeyName(k.String())); {
	case p.Again:
		return append(m.bound(p.Binding, p.Count), m.key(k)...)
	case p.Binding != nil:
		return m.bound(p.Binding, p.Count)
	case p.Unbound == "":
		return nil
	case m.prompt.Menu != nil:
		return m.prompt.MenuKey(keys.Call{})
	default:
		return m.Say("%s does nothing; %s shows the keys", p.Unbound, m.o.Keys.Of("help"))
	}
}

// bound does the actions of a binding.
func (m *model) bound(b keys.Binding, count int) part.Effects {
	defer func(advance bool) { m.browser.advance = advance }(m.browser.advance)
	if len(b) > 1 {
		m.browser.advance = false // one of the actions may move the cursor
	}
	var cmds []tea.Cmd
	for _, c := range b {
		c.Count = count
		switch {
		case m.prompt.IsQuiet(): // the action before closed a menu
		case m.prompt.Menu != nil && c.Action != "repeat":
			cmds = append(cmds, m.apply(m.prompt.MenuKey(c)))
		default:
			cmds = append(cmds, m.apply(m.do(c)))
		}
	}
	return part.Effects{part.Run(tea.Batch(cmds...))}
}

// mouse handles the mouse: the wheel scrolls the pane under it, a click moves the cursor, and a
// click on the line of the cursor opens it.
func (m *model) mouse(msg tea.MouseMsg) part.Effects {
	at, b := msg.Mouse(), &m.browser
	if m.prompt.Open() || m.pictures.On {
		return nil
	}
	_, click := msg.(tea.MouseClickMsg)
	wheel := map[tea.MouseButton]int{tea.MouseWheelUp: -3, tea.MouseWheelDown: 3}[at.Button]
	for _, p := range b.Panes() {
		switch row := at.Y - p.Y - 1; {
		case at.X < p.X || at.X >= p.X+p.Width || row < -1 || row >= p.Height:
		case wheel != 0 && p.Kind == keys.PagePane: // it is scrolled without the focus
			return b.scroll(wheel)
		case wheel != 0:
			b.Focus = p.Kind
			return b.move(wheel)
		case click && at.Button == tea.MouseLeft && row >= 0:
			return b.click(p, row)
		}
	}
	return nil
}

// exec returns the command that leaves the terminal to another, and does then at its end.
func (m *model) exec(c tea.ExecCommand, then func(err error) part.Effects) tea.Cmd {
	return tea.Exec(c, func(err error) tea.Msg {
		go m.Send(m.terminal.Size()) // it may have changed; in a goroutine, as the library waits for this callback
		return part.Then(func() part.Effects { return then(err) })
	})
}

// run returns the command that runs a program on the terminal.
func (m *model) run(e part.Exec) tea.Cmd {
	return m.exec(&terminal.Child{Cmd: e.Cmd, Wait: e.Wait, Terminal: m.terminal}, func(err error) (f part.Effects) {
		if err != nil {
			f = m.Fail(fmt.Errorf("%s: %w", e.Name, err))
		}
		if e.Then != nil {
			f = append(f, e.Then()...)
		}
		return f
	})
}

// suspend stops the reader until the shell resumes it.
func (m *model) suspend(part.Given) part.Effects {
	stop := m.exec(terminal.Stopping{Terminal: m.terminal}, func(err error) part.Effects { return m.Result("", err) })
	return part.Effects{part.Run(part.InOrder(m.apply(m.pictures.Drop()), stop))}
}

// quit goes back one pane; from the feeds it ends the reader.
func (m *model) quit(g part.Given) part.Effects {
	if m.browser.Focus == keys.FeedsPane {
		return m.end(g)
	}
	m.browser.page.EndSearch() // one key leaves the entry
	return m.browser.back(g)
}

// end ends the reader. If downloads are incomplete, it asks.
func (m *model) end(part.Given) part.Effects {
	quit := part.Effects{part.Run(tea.Quit)}
	if n := m.work.Downloads.Incomplete(); n > 0 {
		return part.Effects{part.Confirm{Text: m.Trf("%d downloads are not complete; end anyway?", n),
			Yes: func() part.Effects { return quit }}}
	}
	return quit
}

// browse opens the entry in the user's browser. With a count it opens the link of that
// number instead.
func (m *model) browse(g part.Given) part.Effects {
	if g.Count > 0 {
		return m.do(keys.Call{Action: "link", Count: g.Count})
	}
	return m.with(anEntry, g.Call, m.browser.page.Programs.Browse)
}

// yank copies the URL, the title or the enclosure of the entry; with a count, enclosure N.
func (m *model) yank(g part.Given) part.Effects {
	if g.Word() == "enclosure" {
		return m.with(aPage, g.Call, m.browser.page.YankEnclosure)
	}
	return m.with(anEntry, g.Call, m.browser.page.Programs.Yank)
}

// redraw draws the screen anew.
func (m *model) redraw(part.Given) part.Effects { return part.Effects{part.Run(tea.ClearScreen)} }

// reload reads everything again.
func (m *model) reload(part.Given) part.Effects {
	b := &m.browser
	b.tree.Recheck()
	b.list.Reread()
	clear(b.list.Titles)
	b.page.Reread()
	return append(m.Say("reading everything again"), m.appearance.reload()...)
}

// repeat says the line of the cursor again: as a line with --plain, else in the last line.
func (m *model) repeat(part.Given) part.Effects {
	if m.voice != nil {
		m.voice.Forget()
		return nil
	}
	s := m.scene()
	at, known := s.EntryLine(true)
	if s.Focus == keys.FeedsPane {
		at, known = s.NodeLine()
	}
	if known && m.prompt.Menu == nil {
		return part.Effects{part.Say{Text: at.String()}}
	}
	return nil
}
