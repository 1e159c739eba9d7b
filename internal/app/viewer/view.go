// Package viewer is the room of lektor-view: to list and show entries, and to record what
// was read. Each command is a function of options and streams that knows nothing of a
// command line. What stands alone has a package below: session, what each run begins with;
// undo, how entries are marked and removed; rules, publish, save and fullscreen, the
// commands of these names.
//
// Nothing here takes a lock. Entries may arrive, move and go while a command
// runs; what is gone when it is to be shown is left out, and what the user
// named is looked for where it is now.
package viewer

import (
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/command"
)

// viewer is one run of a command that marks or removes entries.
type viewer struct {
	*session.Session
	mover *undo.Mover
}

// moving opens the lektor-dir for a command that undo takes back by its name.
func moving(name string, c session.Common, words []string, format command.PrinterOptions, s *command.Streams) (*viewer, error) {
	v, err := c.Open(words, format, s)
	if err != nil {
		return nil, err
	}
	return &viewer{v, undo.Moving(v.Store, name)}, nil
}
