package fetcher

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/manual"
)

// The manual documents all columns of -o.
func TestManualColumns(t *testing.T) {
	manual.CheckColumns(t, "lektor-fetch.1", ".Ss ls", listColumns)
}
