package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){"lektor-ess": main})
}

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }

// TestScripts runs testdata/*.txtar, with [testdir.Commands] and
//
//	serve PATH FILE [TYPE]      serve FILE at $URL/PATH from now on
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			s, err := server.New("127.0.0.1")
			if err != nil {
				return err
			}
			env.Defer(s.Close)
			env.Setenv("URL", s.URL(""))
			env.Values["server"] = s
			return testdir.Fill(env)
		},
		Cmds: testdir.Commands(map[string]testdir.Command{
			"serve": func(ts *testscript.TestScript, _ bool, args []string) {
				s := ts.Value("server").(*server.Server)
				s.Handle("/"+args[0], server.Doc(append(args, "")[2], ts.ReadFile(args[1])))
			},
		}),
	})
}
