// Package viewer holds the commands of lektor-view, which list, show and mark entries. Each
// command is a function of options and streams, independent of the command line. Packages below
// are session, the setup of each run; undo, which marks and removes entries; external, which runs
// other programs; the commands rules, publish, save and fullscreen; and tui, the screen of
// fullscreen.
//
// Entries may arrive, move and vanish while a command runs, as no command locks the lektor-dir.
// An entry that vanished is omitted. An entry that the user named is looked up by its unique
// name, so it is found if it was moved.
package viewer

import (
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/undo"
)

// viewer is one run of a command that marks or removes entries.
type viewer struct {
	*session.Session
	mover *undo.Mover
}

// openUndoable opens the lektor-dir for a command that is recorded for undo under a name.
func openUndoable(name string, c session.Common, words []string, format cmdline.PrinterOptions,
	s *cmdline.Streams) (*viewer, error) {
	v, err := c.Open(words, format, s)
	if err != nil {
		return nil, err
	}
	return &viewer{v, undo.Moving(v.Store, name)}, nil
}
