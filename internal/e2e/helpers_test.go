package e2e

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// root is the directory of the module, samples that of the programs of users.
const (
	root    = "../.."
	samples = root + "/scripts"
)

func TestMain(m *testing.M) { testdir.Main(m) }

// build returns the directory of the programs. In some tests, dir is the name of a lektor-dir.
func build(t testing.TB) string {
	t.Helper()
	return testdir.Bin(t)
}
