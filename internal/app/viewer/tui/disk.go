package tui

import (
	"context"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
)

// Disk is the lektor-dir and everything else that may take long. Its methods may be called
// concurrently; the UI goroutine never calls them. Errors are shown to the user as they are.
type Disk interface {
	tree.Disk
	list.Disk
	page.Disk
	page.Commands
	work.Disk
	// Look returns the look of the screen as the user's file has it now, with the lines that the user
	// typed after it.
	Look(ctx context.Context, typed string) (*cells.Look, error)
}
