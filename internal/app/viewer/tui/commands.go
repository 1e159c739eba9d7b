package tui

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// openEntry opens the entry in the user's browser, or its link of the number.
func openEntry(m *model, c call) tea.Cmd {
	if c.count > 0 {
		return openLink(m, c)
	}
	if ref, ok := m.needEntry(); ok {
		return openURL(m, ref, "")
	}
	return nil
}

// openURL opens a URL, "" for that of the entry.
func openURL(m *model, ref lektordir.Ref, url string) tea.Cmd {
	// A browser that is started here stays when the reader ends.
	ctx, d := context.WithoutCancel(m.ctx), m.disk
	m.say("opening %s", Plain(url))
	return func() tea.Msg {
		opened, err := d.Open(ctx, ref, url)
		return statusMsg{"opened " + opened, err}
	}
}

// openLink opens a link by its number, which it asks for.
func openLink(m *model, c call) tea.Cmd {
	page, n := m.needPage(c), c.count
	switch {
	case page == nil:
		return nil
	case n == 0 && len(c.words) == 0:
		m.ask("link number: ", "", "link")
		return nil
	case n == 0:
		var err error
		if n, err = strconv.Atoi(strings.TrimSpace(c.words[0])); err != nil {
			m.say("%s is no number of a link", c.words[0])
			return nil
		}
	}
	if n < 1 || n > len(page.Links) {
		m.say("there is no link %d", n)
		return nil
	}
	return openURL(m, m.browser.page.ref, page.Links[n-1])
}

// play plays an enclosure, on the terminal, as players of sound show there where they are.
func play(m *model, c call) tea.Cmd {
	page, n := m.needPage(c), max(c.count, 1)
	switch {
	case page == nil:
		return nil
	case len(page.Enclosures) == 0:
		m.say("the entry has no enclosures")
		return nil
	case n > len(page.Enclosures):
		m.say("the entry has %s", units.Count(len(page.Enclosures), "enclosure"))
		return nil
	}
	ctx, d, ref, url := m.ctx, m.disk, m.browser.page.ref, page.Enclosures[n-1]
	return func() tea.Msg {
		argv, err := d.Player(ctx, ref, url)
		if err != nil {
			return statusMsg{"", err}
		}
		return startMsg{newCommand(d.Environ(ctx, ref), argv), argv[0], false}
	}
}

// startMsg is a command that is to have the terminal.
type startMsg struct {
	cmd  *exec.Cmd
	name string
	wait bool
}

// start hands the terminal to a command.
func (m *model) start(msg startMsg) tea.Cmd {
	send, t := m.send, m.terminal
	return tea.Exec(&onTerminal{Cmd: msg.cmd, wait: msg.wait, terminal: t}, func(err error) tea.Msg {
		go send(t.size()) // it may have changed; and the library waits for this callback
		if err != nil {
			return statusMsg{"", fmt.Errorf("%s: %w", msg.name, err)}
		}
		return statusMsg{}
	})
}

// run runs a command of the user's keys on the terminal.
func run(m *model, c call) tea.Cmd {
	wait := c.action == "run-wait"
	return withCommand(m, c.words, func(env, argv []string) tea.Msg {
		return startMsg{newCommand(env, argv), argv[0], wait}
	})
}

// spawn runs a command of the user's keys in the background.
func spawn(m *model, c call) tea.Cmd {
	return withCommand(m, c.words, func(env, argv []string) tea.Msg {
		cmd := newCommand(env, argv)
		out := &limited{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal is ours
		cmd.Stdout, cmd.Stderr = out, out
		err := cmd.Run()
		said, _, _ := strings.Cut(strings.TrimSpace(out.said.String()), "\n")
		switch {
		case err == nil:
			return statusMsg{said, nil}
		case said != "":
			err = fmt.Errorf("%w: %s", err, said)
		}
		return statusMsg{"", fmt.Errorf("%s: %w", argv[0], err)}
	})
}

// limited keeps the beginning of what is written. It has no other method that would
// write past it.
type limited struct{ said bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := 4096 - l.said.Len(); room > 0 {
		l.said.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// withCommand makes a command of the words of a key, and does something with it.
func withCommand(m *model, words []string, do func(env, argv []string) tea.Msg) tea.Cmd {
	if err := m.o.NoCommands; err != nil {
		m.fail(err)
		return nil
	}
	if _, ok := m.browser.chosen(); !ok && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{{") }) {
		return func() tea.Msg { return do(nil, words) } // it needs no entry
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

// newCommand makes a command of an argument vector. ~/ is the user's own directory.
func newCommand(env, argv []string) *exec.Cmd {
	name := argv[0]
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			name = filepath.Join(home, rest)
		}
	}
	cmd := exec.Command(name, argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}
