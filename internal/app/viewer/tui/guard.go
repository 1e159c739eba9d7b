package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

type defect = part.Defect

func guarded(cmd tea.Cmd) tea.Cmd { return part.Guarded(cmd) }

func inOrder(cmds ...tea.Cmd) tea.Cmd { return part.InOrder(cmds...) }
