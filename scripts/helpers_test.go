package scripts

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) { testdir.Main(m) }

// build returns the directory of the programs. In some tests, dir is the name of a lektor-dir.
func build(t testing.TB) string {
	t.Helper()
	return testdir.Bin(t)
}
