package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/internal/testkit/manual"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lektor-pages": main})
}

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }

// TestScripts runs testdata/*.txtar, with [dir.Commands].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata",
		Setup: dir.Fill,
		Cmds:  dir.Commands(nil),
	})
}
