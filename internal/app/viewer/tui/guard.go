package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// defect is the message of a command that panicked.
type defect struct{ *workers.Panic }

func (d *defect) String() string { return termsafe.Clean(d.Error()) }

// guarded returns cmd with a panic turned into a *defect message, which ends the reader as if
// the user had quit. The library's own recovery closes the terminal while goroutines still read
// from it.
func guarded(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = &defect{workers.Caught(v)}
			}
		}()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = guarded(batch[i])
			}
		}
		return msg
	}
}

// inOrder returns a command that runs commands one after the other, each guarded.
func inOrder(cmds ...tea.Cmd) tea.Cmd {
	for i := range cmds {
		cmds[i] = guarded(cmds[i])
	}
	return tea.Sequence(cmds...)
}
