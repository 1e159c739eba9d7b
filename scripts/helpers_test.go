package scripts

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/dir"
)

func TestMain(m *testing.M) { dir.Main(m) }

// build returns the directory of the programs, in tests where dir is that of entries.
func build(t testing.TB) string {
	t.Helper()
	return dir.Bin(t)
}
