package undo

// For tests.
const (
	Dir         = undoDir
	MaxCommands = maxCommands
)

// Limit sets the size of the journal of a command.
func (m *Mover) Limit(bytes int64) { m.journal.max = bytes }
