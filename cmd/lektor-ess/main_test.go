package main

import (
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/server"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lektor-ess": main})
}

func TestManual(t *testing.T) {
	app := newApp()
	command.Prepare(app)
	manual.CheckManual(t, app, "../../man/lektor-ess.1")
}

// TestScripts runs testdata/*.txtar against the lektor-dir $LEKTORDIR, which
// the script fills. Besides the commands of testscript there are
//
//	status N COMMAND…           COMMAND must end with status N
//	feed ID NAME file=text…     write a feed
//	entry ID new|cur NAME file=text…   write an entry
//	bytes FILE TEXT             FILE must hold TEXT, with \n and \x1b
//	serve PATH FILE [TYPE]      serve FILE at $URL/PATH from now on
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			dir.SetEnv(env, "lektor")
			d := &dir.Dir{Path: env.Getenv("LEKTORDIR")}
			for _, name := range []string{"a", "b", "c"} {
				env.Setenv(name, dir.Hash("http://"+name+".example/"))
			}
			s, err := server.New("127.0.0.1")
			if err != nil {
				return err
			}
			env.Defer(s.Close)
			env.Setenv("URL", s.URL(""))
			env.Values["server"] = s
			return d.Create()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": dir.Status,
			"feed": func(ts *testscript.TestScript, neg bool, args []string) {
				d := &dir.Dir{Path: ts.Getenv("LEKTORDIR")}
				_, err := d.Feed(args[0], unescape(args[1]), unescapes(args[2:])...)
				ts.Check(err)
			},
			"entry": func(ts *testscript.TestScript, neg bool, args []string) {
				d := &dir.Dir{Path: ts.Getenv("LEKTORDIR")}
				_, err := d.Entry(args[0], args[1], args[2], unescapes(args[3:])...)
				ts.Check(err)
			},
			"bytes": func(ts *testscript.TestScript, neg bool, args []string) {
				if got, want := ts.ReadFile(args[0]), unescape(args[1]); got != want {
					ts.Fatalf("%s holds %q, not %q", args[0], got, want)
				}
			},
			"serve": func(ts *testscript.TestScript, neg bool, args []string) {
				s := ts.Value("server").(*server.Server)
				s.Handle("/"+args[0], server.Doc(append(args, "")[2], ts.ReadFile(args[1])))
			},
		},
	})
}

// unescape reads \n, \x1b and \u202e.
func unescape(arg string) string {
	if s, err := strconv.Unquote(`"` + arg + `"`); err == nil {
		return s
	}
	return arg
}

func unescapes(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = unescape(arg)
	}
	return out
}
