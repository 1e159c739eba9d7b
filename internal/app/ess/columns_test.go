package ess

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/manual"
)

// The manual documents all columns of -o.
func TestManualColumns(t *testing.T) {
	manual.CheckColumns(t, "lektor-ess.1", ".It Cm nno , top , decode", documentColumns)
	manual.CheckColumns(t, "lektor-ess.1", ".It Cm poll", dueColumns)
	manual.CheckColumns(t, "lektor-ess.1", ".It Cm resolve", resolveColumns)
	manual.CheckColumns(t, "lektor-ess.1", ".It Cm discover", discoverColumns)
	manual.CheckColumns(t, "lektor-ess.1", ".It Cm checksum", checksumColumns)
	manual.CheckColumns(t, "lektor-ess.1", ".It Cm check", problemColumns)
}
