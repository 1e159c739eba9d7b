package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){"lektor-pages": main})
}

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }

// TestScripts runs testdata/*.txtar, with [testdir.Commands].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata",
		Setup: testdir.Fill,
		Cmds:  testdir.Commands(nil),
	})
}
