package tui

import (
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/termsafe"
)

// defect is a panic of what runs beside the screen.
type defect struct {
	value any
	stack []byte
}

func (d *defect) String() string {
	return termsafe.Clean(fmt.Sprintf("%v\n\n%s", d.value, d.stack))
}

// guarded makes a defect of a command one that ends the reader as its user would. The
// library's own way out closes the terminal under whoever still reads from it.
func guarded(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = &defect{v, debug.Stack()}
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
