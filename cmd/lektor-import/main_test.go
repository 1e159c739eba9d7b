package main

import (
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/app/importer"
	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){"lektor-import": main})
}

func TestManual(t *testing.T) {
	app := newApp()
	manual.CheckManual(t, app)
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, importer.Readers) {
		t.Errorf("commands %q, readers %q", names, importer.Readers)
	}
}

// TestScripts runs testdata/*.txtar, with [testdir.Commands].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			testdir.SetEnv(env, "feeds")
			return nil
		},
		Cmds: testdir.Commands(nil),
	})
}
