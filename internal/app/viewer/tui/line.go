package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Commands parses command lines of the program, see [cmdline.Line].
type Commands interface {
	Complete(line string) []cmdline.Candidate
	Arguments(words []string) (args []int, next string, ok bool)
}

// lineActions returns the command line, and actions on many entries.
func lineActions() []action {
	return []action{
		{"command", 0, "type an action, a command of lektor-view, or the number of a line", "", typeCommand},
		{"read-above", 0, "mark all entries above the cursor as read", "mark --set S", readAbove},
		{"read-node", 0, "mark all entries of the folder or feed as read, after a question",
			"ls -o path QUERY | mark --set S -", readNode},
		{"random-unread", 0, "to an unread entry of the list, at random", "ls --sort random", randomUnread},
		{"open-all", 0, "open the listed unread entries in the browser, after a question",
			"ls -o path QUERY | open --keep -", openAll},
	}
}

// readAbove marks the entries above the cursor of the list as read.
func readAbove(m *model, _ keys.Call) tea.Cmd {
	if m.browser.list.at == 0 {
		m.say("there are no entries above the cursor")
	} else if refs := listedUnread(m, m.browser.list.at); refs != nil {
		markRead(m, refs)
	}
	return nil
}

// readNode marks the entries of the node of the cursor as read, if the user confirms.
func readNode(m *model, _ keys.Call) tea.Cmd {
	b := &m.browser
	if b.snapshot == nil || b.snapshot.partial {
		m.say("the entries are not read yet")
		return nil
	}
	var refs []lektordir.Ref
	if b.list.of.kind == savedNode { // only the list knows the entries
		refs = listedUnread(m, len(b.list.items))
	} else {
		for _, e := range b.snapshot.entries(b.list.of, nil) {
			if m.marks.Unread(e) {
				if ref := m.marks.Now(e.Ref()); !ref.Trashed() {
					refs = append(refs, ref)
				}
			}
		}
		if len(refs) == 0 {
			m.say("these entries are read already")
		}
	}
	if len(refs) > 0 {
		confirmRead(m, refs)
	}
	return nil
}

// randomUnread moves to an unread entry of the list, or of the next feed if the list has none.
func randomUnread(m *model, _ keys.Call) tea.Cmd {
	b := &m.browser
	var unread []int
	for i, it := range b.list.items {
		if i != b.list.at && m.marks.Unread(it.Entry) {
			unread = append(unread, i)
		}
	}
	if len(unread) == 0 {
		m.apply(b.nextUnread(1))
		return nil
	}
	b.list.goTo(unread[m.o.Random()%uint64(len(unread))])
	m.apply(b.arrive())
	return nil
}

// openAll opens the unread entries of the list in the user's browser, if the user confirms.
func openAll(m *model, _ keys.Call) tea.Cmd {
	refs := listedUnread(m, len(m.browser.list.items))
	if refs == nil {
		return nil
	}
	d := m.disk
	m.input.confirm(m.Trf("open %d entries in the browser?", len(refs)), func() tea.Cmd {
		return m.tasks.Begin(m.Tr("opening"), func(ctx context.Context, progress func(string)) (string,
			error) {
			var errs []error
			for i, ref := range refs {
				if ctx.Err() != nil {
					return "", ctx.Err()
				}
				progress(fmt.Sprintf("%d/%d", i+1, len(refs)))
				// A browser that is started here keeps running when the reader ends.
				if _, err := d.Open(context.WithoutCancel(ctx), ref, ""); err != nil {
					errs = append(errs, err)
				}
			}
			if len(errs) > 0 {
				return "", errors.New(m.Trf("%d of %d entries were not opened: %s", len(errs), len(refs),
					errs[0].Error()))
			}
			return m.Trf("%d entries opened", len(refs)), nil
		}).Await
	})
	return nil
}

// commandLine is the completion and the history of the command line, or the completion of folders.
type commandLine struct {
	folders    bool   // complete names of folders with bars between them
	past       int    // lines back in the history; 0 for the line that is being typed
	typed      string // that line
	candidates []cmdline.Candidate
	at         int    // the candidate in the line
	from       int    // the byte at which the word that is completed begins
	rest       []rune // the text after it
}

// typeCommand shows the command line.
func typeCommand(m *model, _ keys.Call) tea.Cmd {
	p := m.ask(":", "", "")
	p.then, p.command = runLine, &commandLine{}
	return nil
}

// key handles the keys that complete the line, or show another of the history.
func (l *commandLine) key(m *model, p *prompt, name string) (cmd tea.Cmd, ok bool) {
	by := map[string]int{"<tab>": 1, "<S-tab>": -1}[name]
	if by == 0 {
		l.candidates = nil
	}
	back := map[string]int{"<up>": 1, "<down>": -1}[name]
	switch {
	case by != 0 && len(l.candidates) > 0:
		l.take(p, cells.Wrap(l.at+by, len(l.candidates)))
	case by != 0:
		return l.complete(m, p), true
	case back != 0 && !l.folders:
		history := m.input.history
		if l.past == 0 {
			l.typed = string(p.text)
		}
		l.past = max(0, min(l.past+back, len(history)))
		p.text = []rune(l.typed)
		if l.past > 0 {
			p.text = []rune(history[len(history)-l.past])
		}
		p.at = len(p.text)
	}
	return nil, by != 0 || back != 0
}

// take puts candidate i into the line.
func (l *commandLine) take(p *prompt, i int) {
	l.at = i
	word := []rune(l.candidates[i].Word)
	p.text, p.at = slices.Concat(word, l.rest), len(word)
}

// complete completes the line up to the cursor by actions, and by commands, whose candidates may
// come from the disk.
func (l *commandLine) complete(m *model, p *prompt) tea.Cmd {
	line := string(p.text[:p.at])
	var all []cmdline.Candidate
	add := func(before string, words ...string) {
		for _, word := range words {
			if strings.HasPrefix(before+word, line) && strings.HasPrefix(line, before) {
				all = append(all, cmdline.Candidate{Word: before + word})
			}
		}
	}
	commands, from := m.o.Commands, cmdline.LastWord(line)
	if l.folders {
		commands, from = nil, strings.LastIndex(line, "|")+1
		from += len(line[from:]) - len(strings.TrimLeft(line[from:], " "))
		for _, f := range cmp.Or(m.browser.snapshot, &snapshot{}).feeds {
			for _, name := range f.Folders {
				add(line[:from], joinWords([]string{name}))
			}
		}
	} else {
		for _, a := range actions() {
			word := a.name
			if a.words != 0 {
				word += " "
			}
			add("", word)
		}
		for _, by := range slices.Concat(entryOrders, feedOrders) {
			add("sort ", by, "-"+by)
		}
		add("theme ", cells.Themes...)
		add("layout ", cells.Layouts...)
	}
	return func() tea.Msg {
		if commands != nil {
			all = append(all, commands.Complete(line)...)
		}
		slices.SortStableFunc(all, func(a, b cmdline.Candidate) int { return strings.Compare(a.Word, b.Word) })
		all = slices.CompactFunc(all, func(a, b cmdline.Candidate) bool {
			return strings.TrimSpace(a.Word) == strings.TrimSpace(b.Word)
		})
		return thenMsg(func(m *model) tea.Cmd {
			if m.input.prompt == p && string(p.text[:p.at]) == line && len(all) > 0 {
				l.candidates, l.from, l.rest = all, from, slices.Clone(p.text[p.at:])
				l.take(p, 0)
			}
			return nil
		})
	}
}

// prompt returns the line of a prompt, with the candidates that follow the one in it.
func (p *painter) prompt(of *prompt) string {
	text, _ := of.line(p.width)
	free := p.width - termsafe.Width(text) - 3
	if of.command == nil || len(of.command.candidates) < 2 || free < 8 {
		return cells.Fit(text, p.width)
	}
	l := of.command
	var names []string
	for i := 1; i < len(l.candidates); i++ {
		names = append(names, strings.TrimSpace(l.candidates[cells.Wrap(l.at+i, len(l.candidates))].Word[l.from:]))
	}
	return text + "   " + p.look.Paint(cells.DimText, cells.Fit(cells.Plain(strings.Join(names, " ")), free))
}

// shortNames are names of actions that users of vim and newsboat know.
func shortNames(name string) string {
	switch name {
	case "q", "q!", "qa", "quit", "wq", "x":
		return "quit-now"
	case "w":
		return "save-query"
	case "h":
		return "help"
	}
	return name
}

// runLine does the actions and commands of a line, which ; separates, one after the other.
func runLine(m *model, text string) tea.Cmd {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	if h := m.input.history; len(h) == 0 || h[len(h)-1] != text {
		m.input.history = append(h, text)
	}
	if n, err := strconv.Atoi(text); err == nil {
		m.apply(m.browser.to(n - 1))
		return nil
	}
	steps, err := cmdline.Commands(text)
	if err != nil {
		m.fail(err)
		return nil
	}
	return runSteps(m, slices.DeleteFunc(steps, func(words []string) bool { return len(words) == 0 }))
}

// runSteps does actions and commands. Steps after a command wait for its end.
func runSteps(m *model, steps [][]string) tea.Cmd {
	var cmds []tea.Cmd
	for i, words := range steps {
		c := keys.Call{Action: shortNames(words[0]), Words: words[1:]}
		err := check(c)
		if err == nil {
			cmds = append(cmds, m.do(c))
			continue
		}
		cmd, rest := runCommand(m, words, err), steps[i+1:]
		if len(rest) > 0 {
			then := thenMsg(func(m *model) tea.Cmd { return runSteps(m, rest) })
			cmd = inOrder(cmd, func() tea.Msg { return then })
		}
		return tea.Batch(append(cmds, cmd)...)
	}
	return tea.Batch(cmds...)
}

// runCommand runs a command of lektor-view. Its output is shown as a menu, or on the terminal if
// the command needs it. If it takes entries and words has none, it gets the chosen one. The error
// is shown if there is no such command.
func runCommand(m *model, words []string, err error) tea.Cmd {
	if m.o.Commands == nil {
		m.fail(err)
		return nil
	}
	args, next, ok := m.o.Commands.Arguments(words)
	if !ok {
		if _, ok := actionOf(words[0]); !ok {
			err = errors.New(m.unknown(words[0]))
		}
		m.fail(err)
		return nil
	}
	words = slices.Clone(words)
	if words[0] == "tui" && m.o.Plain {
		words = append(words, "--plain")
	}
	if strings.HasPrefix(next, "ENTRY") {
		args, words = append(args, len(words)), append(words, "{{.path}}")
	}
	// Values of flags may be templates of their own, as with -o.
	templates := []string{words[0]}
	args = slices.DeleteFunc(args, func(i int) bool { return !strings.Contains(words[i], "{{") })
	for _, i := range args {
		templates = append(templates, words[i])
	}
	var ref lektordir.Ref
	if len(args) > 0 {
		if ref, ok = m.needEntry(); !ok {
			return nil
		}
	}
	d, self, name, before := m.disk, m.o.Self, ":"+words[0], m.marks.Earlier()
	argv := func(ctx context.Context) ([]string, error) {
		before()
		if len(args) > 0 {
			filled, err := d.Command(ctx, ref, templates)
			if err != nil {
				return nil, err
			}
			for n, i := range args {
				words[i] = filled[n+1]
			}
		}
		return slices.Concat(self, words), nil
	}
	if slices.Contains(m.o.OnTerminal, words[0]) {
		ctx := m.ctx
		return func() tea.Msg {
			all, err := argv(ctx)
			if err != nil {
				return statusMsg{"", err}
			}
			return startMsg{newCommand(nil, all), name, true}
		}
	}
	t := m.tasks.Begin(name, showOutput(m, name, argv))
	t.Finish = true // it may change entries
	return t.Await
}

// unknown returns the message about a word that begins no line, with what is meant here by those of newsboat.
func (w *world) unknown(word string) string {
	meant := map[string]string{
		"set":    w.Tr("type a line of etc/view/look, as theme dark"),
		"source": w.Tr("reload reads etc/view/look again"),
		"tag":    w.Tr("folders chooses a folder"),
		"goto":   w.Tr("search feed:NAME lists a feed"),
		"exec":   w.Tr("type the action without it"),
	}[word]
	if meant == "" {
		return w.Trf("there is no action or command %s", word)
	}
	return w.Trf("there is no command %s here: %s", word, meant)
}

// showOutput returns the task that runs a command without a terminal, and shows its output: a line
// in the last line of the screen, and more as a menu.
func showOutput(m *model, name string, argv func(context.Context) ([]string, error)) func(context.Context,
	func(string)) (string, error) {
	send, width := m.send, m.browser.width
	return func(ctx context.Context, _ func(string)) (string, error) {
		all, err := argv(ctx)
		if err != nil {
			return "", err
		}
		lines, err := commandOutput(ctx, all, width)
		if len(lines) > 1 {
			send(thenMsg(func(m *model) tea.Cmd {
				m.input.menu = textMenu(m, name, lines)
				return nil
			}))
		}
		switch {
		case err != nil && len(lines) > 0:
			return "", errors.New(name + ": " + lines[0])
		case err != nil:
			return "", fmt.Errorf("%s: %w", name, err)
		case len(lines) == 1:
			return lines[0], nil
		case len(lines) == 0:
			return m.Trf("%s: done", name), nil
		}
		return "", nil
	}
}

// outputBytes is how much of the output of a command is shown.
const outputBytes = 1 << 20

// commandOutput runs a command without a terminal, and returns the lines that it prints. Text is
// wrapped for a screen of this width.
func commandOutput(ctx context.Context, argv []string, width int) (lines []string, err error) {
	out := &limited{most: outputBytes}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LEKTOR_WIDTH="+strconv.Itoa(max(20, min(width-2, 80))))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keep it off the terminal
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	err = cmd.Run()
	for line := range strings.Lines(out.buf.String()) {
		lines = append(lines, cells.Plain(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  ")))
	}
	if out.buf.Len() == outputBytes {
		lines = append(lines, "…")
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines, err
}
