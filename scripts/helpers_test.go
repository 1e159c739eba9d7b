package scripts

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) { testdir.Main(m) }

// build returns the directory of the programs, in tests where dir is that of entries.
func build(t testing.TB) string {
	t.Helper()
	return testdir.Bin(t)
}
