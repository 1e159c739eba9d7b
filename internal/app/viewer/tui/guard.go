package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/workers"
)

// defect is a panic of what runs beside the screen.
type defect struct{ *workers.Panic }

func (d *defect) String() string { return termsafe.Clean(d.Error()) }

// guarded makes a defect of a command one that ends the reader as its user would. The
// library's own way out closes the terminal while others still read from it.
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

// inOrder does one command after the other, each guarded.
func inOrder(cmds ...tea.Cmd) tea.Cmd {
	for i := range cmds {
		cmds[i] = guarded(cmds[i])
	}
	return tea.Sequence(cmds...)
}
