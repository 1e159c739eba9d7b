package sharer

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/manual"
)

// The manual documents all columns of -o.
func TestManualColumns(t *testing.T) {
	manual.CheckColumns(t, "lektor-share.1", ".Ss status", peerColumns)
	manual.CheckColumns(t, "lektor-share.1", ".Ss conflicts", conflictColumns)
}
