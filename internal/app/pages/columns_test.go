package pages

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/manual"
)

// The manual documents all columns of -o that entries do not have.
func TestManualColumns(t *testing.T) {
	manual.CheckColumns(t, "lektor-pages.1", ".Ss maildir Ar DIR", mailColumns()[:2])
}
