package listener

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/manual"
)

// The manual documents all columns of -o.
func TestManualColumns(t *testing.T) {
	manual.CheckColumns(t, "lektor-cloudd.1", ".Ss status", statusColumns)
}
