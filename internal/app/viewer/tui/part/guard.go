// Package part is what all parts of the screen share.
package part

import (
	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Defect is the message of a command that panicked.
type Defect struct{ *workers.Panic }

func (d *Defect) String() string { return termsafe.Clean(d.Error()) }

// Guarded returns cmd with a panic turned into a *[Defect] message, which ends the reader as if
// the user had quit. The library's own recovery closes the terminal while goroutines still read
// from it.
func Guarded(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = &Defect{workers.Caught(v)}
			}
		}()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = Guarded(batch[i])
			}
		}
		return msg
	}
}

// InOrder returns a command that runs commands one after the other, each guarded.
func InOrder(cmds ...tea.Cmd) tea.Cmd {
	for i := range cmds {
		cmds[i] = Guarded(cmds[i])
	}
	return tea.Sequence(cmds...)
}
