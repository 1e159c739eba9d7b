package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/internal/testkit/manual"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lektor-view": main})
}

// TestScripts runs testdata/*.txtar, one behaviour each, against the
// lektor-dir $LEKTORDIR, which the script fills.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			dir.SetEnv(env, "lektor")
			d := &dir.Dir{Path: env.Getenv("LEKTORDIR")}
			env.Setenv("PAGER", "false")
			env.Setenv("LEKTOR_PAGER", "false")
			// The hashes of the feeds that scripts use.
			for _, name := range []string{"a", "b", "c"} {
				env.Setenv(name, dir.Hash("http://"+name+".example/"))
			}
			return d.Create()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// feed ID NAME file=text… writes a feed.
			"feed": func(ts *testscript.TestScript, neg bool, args []string) {
				d := &dir.Dir{Path: ts.Getenv("LEKTORDIR")}
				_, err := d.Feed(args[0], args[1], unescape(ts, args[2:])...)
				ts.Check(err)
			},
			// entry FEEDID new|cur NAME file=text… writes an entry.
			"entry": func(ts *testscript.TestScript, neg bool, args []string) {
				d := &dir.Dir{Path: ts.Getenv("LEKTORDIR")}
				_, err := d.Entry(args[0], args[1], args[2], unescape(ts, args[3:])...)
				ts.Check(err)
			},
			"status": dir.Status,
			// clean FILE… fails if a file has what a terminal acts on.
			"clean": func(ts *testscript.TestScript, neg bool, args []string) {
				for _, file := range args {
					for _, r := range ts.ReadFile(file) {
						if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e {
							ts.Fatalf("%s has %U in it", file, r)
						}
					}
				}
			},
		},
	})
}

// unescape reads \n, \x1b and \u202e in arguments.
func unescape(ts *testscript.TestScript, args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		s, err := strconv.Unquote(`"` + arg + `"`)
		if err != nil {
			s = arg
		}
		out[i] = s
	}
	return out
}

func TestManual(t *testing.T) {
	page := filepath.Join("..", "..", "man", "lektor-view.1")
	if _, err := os.Stat(page); err != nil {
		t.Fatal(err)
	}
	manual.CheckManual(t, newApp(), page)
}
