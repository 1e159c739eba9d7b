package e2e

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestUndo runs testdata/undo/*.txtar: lektor-view undo takes back what lektor-fetch has changed. The scripts have
// the commands of [testdir.Commands].
func TestUndo(t *testing.T) {
	bin := build(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/undo",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			return testdir.Fill(env)
		},
		Cmds: testdir.Commands(nil),
	})
}
