package tui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// openEntry opens the entry in the user's browser. With a count it opens the link of that
// number instead.
func openEntry(m *model, c keys.Call) tea.Cmd {
	if c.Count > 0 {
		return openLink(m, c)
	}
	if ref, ok := m.needEntry(); ok {
		return openURL(m, ref, "")
	}
	return nil
}

// openURL opens a URL in the user's browser; "" means the URL of the entry.
func openURL(m *model, ref lektordir.Ref, url string) tea.Cmd {
	// A browser that is started here keeps running when the reader ends.
	ctx, d, w := context.WithoutCancel(m.ctx), m.disk, &m.world
	m.say("opening %s", cmp.Or(cells.Plain(url), m.Tr("the page of the entry")))
	return func() tea.Msg {
		opened, err := d.Open(ctx, ref, url)
		return statusMsg{w.Trf("opened %s", opened), err}
	}
}

// openLink opens a link by its number. Without a number it asks for one.
func openLink(m *model, c keys.Call) tea.Cmd {
	page, n := m.needPage(c), c.Count
	switch {
	case page == nil:
		return nil
	case len(page.Links) == 0:
		m.say("the entry has no links")
		return nil
	case n == 0 && len(c.Words) == 0:
		total := len(page.Links)
		m.ask("link number: ", "", "link").ready = func(text string) bool { return complete(text, total) }
		return nil
	case n == 0:
		var err error
		if n, err = strconv.Atoi(strings.TrimSpace(c.Words[0])); err != nil {
			m.say("%s is not the number of a link", c.Words[0])
			return nil
		}
	}
	if n < 1 || n > len(page.Links) {
		m.say("there is no link %d", n)
		return nil
	}
	return openURL(m, m.browser.page.ref, page.Links[n-1])
}

// play plays an enclosure: the first, or the one of the count. The player gets the terminal,
// because audio players show their position there.
func play(m *model, c keys.Call) tea.Cmd {
	url, ok := neededEnclosure(m, c)
	if !ok {
		return nil
	}
	ctx, d, ref := m.ctx, m.disk, m.browser.page.ref
	return func() tea.Msg {
		argv, err := d.Player(ctx, ref, url)
		if err != nil {
			return statusMsg{"", err}
		}
		return startMsg{newCommand(d.Environ(ctx, ref), argv), argv[0], false}
	}
}

// startMsg asks to run a command on the terminal.
type startMsg struct {
	cmd  *exec.Cmd
	name string
	wait bool
}

// start returns the command that runs msg.cmd on the terminal.
func (m *model) start(msg startMsg) tea.Cmd {
	send, t := m.send, m.terminal
	return tea.Exec(&onTerminal{Cmd: msg.cmd, wait: msg.wait, terminal: t}, func(err error) tea.Msg {
		go send(t.size()) // the size may have changed; in a goroutine, as the library waits for this callback
		if err != nil {
			return statusMsg{"", fmt.Errorf("%s: %w", msg.name, err)}
		}
		return statusMsg{}
	})
}

// run runs the command of a key on the terminal.
func run(m *model, c keys.Call) tea.Cmd {
	wait := c.Action == "run-wait"
	return withCommand(m, c.Words, func(env, argv []string) tea.Msg {
		return startMsg{newCommand(env, argv), argv[0], wait}
	})
}

// spawn runs the command of a key in the background, and shows the first line that it prints.
func spawn(m *model, c keys.Call) tea.Cmd {
	return withCommand(m, c.Words, func(env, argv []string) tea.Msg { return inBackground(env, argv, "") })
}

// limited is a writer that keeps the first bytes. It embeds no buffer: promoted methods could
// write past the limit.
type limited struct {
	buf  bytes.Buffer
	most int // maximum number of bytes; 0 means 4096
}

func (l *limited) Write(p []byte) (int, error) {
	if free := cmp.Or(l.most, 4096) - l.buf.Len(); free > 0 {
		l.buf.Write(p[:min(free, len(p))])
	}
	return len(p), nil
}

// withCommand fills in the templates in the words of a key for the chosen entry, and calls do
// in a goroutine.
func withCommand(m *model, words []string, do func(env, argv []string) tea.Msg) tea.Cmd {
	if err := m.o.NoCommands; err != nil {
		m.fail(err)
		return nil
	}
	if tooEarly(m) {
		return nil
	}
	if _, ok := m.browser.chosen(); !ok && !slices.ContainsFunc(words,
		func(w string) bool { return strings.Contains(w, "{{") }) {
		return func() tea.Msg { return do(nil, words) } // the command needs no entry
	}
	ref, ok := m.needEntry()
	if !ok {
		return nil
	}
	ctx, d := m.ctx, m.disk
	return func() tea.Msg {
		argv, err := d.Command(ctx, ref, words)
		if err != nil {
			return statusMsg{"", err}
		}
		return do(d.Environ(ctx, ref), argv)
	}
}

// newCommand returns the command of an argument vector. A leading ~/ of the program is the
// user's home directory.
func newCommand(env, argv []string) *exec.Cmd {
	name, _ := cmdline.ExpandHome(argv[0]) // without a home, starting it fails
	cmd := exec.Command(name, argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}
