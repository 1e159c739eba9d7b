package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){"lektor-article": main})
}

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }

// TestScripts runs testdata/*.txtar; "status N COMMAND…" is that of [testdir.Status].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: func(env *testscript.Env) error {
		testdir.SetEnv(env, "feeds")
		return nil
	}, Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": testdir.Status}})
}
