package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){"lektor-view": main})
}

// TestScripts runs testdata/*.txtar, one behaviour each, with [testdir.Commands].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PAGER", "false")
			env.Setenv("LEKTOR_PAGER", "false")
			return testdir.Fill(env)
		},
		Cmds: testdir.Commands(nil),
	})
}

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }
