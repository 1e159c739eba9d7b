package part

import (
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// Key identifies an entry, whatever its flags are.
type Key = catalog.ID

// KeyOf returns the key of an entry.
func KeyOf(r lektordir.Ref) Key { return catalog.IDOf(r) }
