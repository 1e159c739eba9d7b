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

// browser opens the entry, or one of its links.
func (m *model) browser(n int) tea.Cmd {
	if n > 0 {
		return m.link(n, nil)
	}
	return m.onChosen(func(ref lektordir.Ref) tea.Cmd { return m.openURL(ref, "") })
}

// openURL opens a URL, "" for that of the entry.
func (m *model) openURL(ref lektordir.Ref, url string) tea.Cmd {
	// A browser that was started here stays when the reader ends.
	ctx, d := context.WithoutCancel(m.ctx), m.disk
	m.say("opening %s", Plain(url))
	return func() tea.Msg {
		opened, err := d.Open(ctx, ref, url)
		return saidMsg{"opened " + opened, err}
	}
}

// link opens a link by its number, which it asks for.
func (m *model) link(n int, words []string) tea.Cmd {
	return m.onPage(func(p *Page, ref lektordir.Ref) tea.Cmd {
		if n == 0 && len(words) == 0 {
			m.ask("link number: ", "", func(m *model, text string) tea.Cmd { return m.link(0, []string{text}) })
			return nil
		}
		n := n
		if n == 0 {
			var err error
			if n, err = strconv.Atoi(strings.TrimSpace(words[0])); err != nil {
				m.say("%s is no number of a link", words[0])
				return nil
			}
		}
		if n < 1 || n > len(p.Links) {
			m.say("there is no link %d", n)
			return nil
		}
		return m.openURL(ref, p.Links[n-1])
	})
}

// play plays an enclosure, on the terminal, as players of sound show there where they are.
func (m *model) play(n int) tea.Cmd {
	return m.onPage(func(p *Page, ref lektordir.Ref) tea.Cmd {
		switch {
		case len(p.Enclosures) == 0:
			m.say("the entry has no enclosures")
			return nil
		case n > len(p.Enclosures):
			m.say("the entry has %s", units.Count(len(p.Enclosures), "enclosure"))
			return nil
		}
		ctx, d, url, exe := m.ctx, m.disk, p.Enclosures[n-1], m.o.exec
		return func() tea.Msg {
			argv, err := d.Player(ctx, ref, url)
			if err != nil {
				return saidMsg{"", err}
			}
			return startMsg{exe(d.Environ(ctx, ref), argv), argv[0], false}
		}
	})
}

// startMsg is a command that is to have the terminal.
type startMsg struct {
	cmd  *exec.Cmd
	name string
	wait bool
}

// start gives the terminal to a command.
func (m *model) start(msg startMsg) tea.Cmd {
	var c tea.ExecCommand = &onTerminal{Cmd: msg.cmd, wait: msg.wait, o: m.o}
	send, o := m.send, m.o
	return tea.Exec(c, func(err error) tea.Msg {
		go send(o.size()) // it may be another one; and the library waits for this
		if err != nil {
			return saidMsg{"", fmt.Errorf("%s: %w", msg.name, err)}
		}
		return saidMsg{}
	})
}

// run runs a command of the user's keys on the terminal; spawn in the background.
func (m *model) run(words []string, wait bool) tea.Cmd {
	return m.withCommand(words, func(ctx context.Context, env, argv []string) tea.Msg {
		return startMsg{m.o.exec(env, argv), argv[0], wait}
	})
}

func (m *model) spawn(words []string) tea.Cmd {
	exe := m.o.exec
	return m.withCommand(words, func(ctx context.Context, env, argv []string) tea.Msg {
		cmd := exe(env, argv)
		out := &limited{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal is ours
		cmd.Stdout, cmd.Stderr = out, out
		err := cmd.Run()
		said, _, _ := strings.Cut(strings.TrimSpace(out.said.String()), "\n")
		if err != nil {
			if said != "" {
				err = fmt.Errorf("%w: %s", err, said)
			}
			return saidMsg{"", fmt.Errorf("%s: %w", argv[0], err)}
		}
		return saidMsg{said, nil}
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

// withCommand makes a command of the words of a key.
func (m *model) withCommand(words []string, do func(ctx context.Context, env, argv []string) tea.Msg) tea.Cmd {
	if err := m.o.NoCommands; err != nil {
		m.fail(err)
		return nil
	}
	ctx, d := m.ctx, m.disk
	_, chosen := m.chosen()
	if !chosen && len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{{") }) {
		return func() tea.Msg { return do(ctx, nil, words) } // it needs no entry
	}
	return m.onChosen(func(ref lektordir.Ref) tea.Cmd {
		return func() tea.Msg {
			argv, err := d.Command(ctx, ref, words)
			if err != nil {
				return saidMsg{"", err}
			}
			return do(ctx, d.Environ(ctx, ref), argv)
		}
	})
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
