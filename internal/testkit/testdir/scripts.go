package testdir

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// ScriptsMain is testscript.Main with a PATH that has no installed program of lektor. commands are
// the programs that scripts run.
func ScriptsMain(m *testing.M, commands map[string]func()) {
	show := func() {}
	if commands[filepath.Base(os.Args[0])] == nil { // this process runs the tests, and is none of the programs
		show = hideInstalled()
	}
	testscript.Main(scriptsMain{m, show}, commands)
}

type scriptsMain struct {
	*testing.M
	show func()
}

func (m scriptsMain) Run() int {
	defer m.show()
	return m.M.Run()
}

// SetEnv sets the environment of a script: home, time zone, no proxy, and $LEKTORDIR, a missing
// directory in the working directory.
func SetEnv(env *testscript.Env, dir string) {
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("LEKTORDIR", filepath.Join(env.WorkDir, dir))
	env.Setenv("XDG_DATA_HOME", "")
	env.Setenv("TZ", "UTC")
	env.Setenv("no_proxy", "*")
	// With the race detector, a process sleeps for a second at its end.
	env.Setenv("GORACE", "atexit_sleep_ms=0")
}

// Fill is [SetEnv] for scripts that fill a lektor-dir by [Commands]. The lektor-dir is empty, and
// $a, $b and $c are the hashes of the feeds http://a.example/ and so on.
func Fill(env *testscript.Env) error {
	SetEnv(env, "lektor")
	for _, name := range []string{"a", "b", "c"} {
		env.Setenv(name, Hash("http://"+name+".example/"))
	}
	return (&Dir{Path: env.Getenv("LEKTORDIR")}).Create()
}

// Command is a command of scripts.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// Commands are commands of scripts, and those of more. In their arguments \n,
// \x1b and \u202e stand for the character.
//
//	status N COMMAND…                  COMMAND must end with status N
//	feed ID NAME file=text…            write a feed
//	entry FEEDID new|cur NAME file=text…   write an entry
//	bytes FILE TEXT                    FILE must hold TEXT
//	clean FILE…                        FILE must hold nothing that a terminal acts on
func Commands(more map[string]Command) map[string]Command {
	all := map[string]Command{
		"status": Status,
		"feed": func(ts *testscript.TestScript, _ bool, args []string) {
			args = unescape(args)
			_, err := (&Dir{Path: ts.Getenv("LEKTORDIR")}).Feed(args[0], args[1], args[2:]...)
			ts.Check(err)
		},
		"entry": func(ts *testscript.TestScript, _ bool, args []string) {
			args = unescape(args)
			_, err := (&Dir{Path: ts.Getenv("LEKTORDIR")}).Entry(args[0], args[1], args[2], args[3:]...)
			ts.Check(err)
		},
		"bytes": func(ts *testscript.TestScript, _ bool, args []string) {
			if got, want := ts.ReadFile(args[0]), unescape(args)[1]; got != want {
				ts.Fatalf("%s holds %q, not %q", args[0], got, want)
			}
		},
		"clean": func(ts *testscript.TestScript, _ bool, args []string) {
			for _, file := range args {
				for _, r := range ts.ReadFile(file) {
					if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e {
						ts.Fatalf("%s has %U in it", file, r)
					}
				}
			}
		},
	}
	maps.Copy(all, more)
	return all
}

// unescape replaces \n, \x1b and \u202e by the characters.
func unescape(args []string) []string {
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

// Status is the command "status" of [Commands].
func Status(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit interface{ ExitCode() int }
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("%q: status %d, not %s", args[1:], got, args[0])
	}
}
