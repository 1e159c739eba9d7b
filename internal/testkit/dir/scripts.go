package dir

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// SetEnv gives a script surroundings of its own: home, lektor-dir ($LEKTORDIR,
// a name in its working directory that does not exist yet), time zone, and no
// proxy.
func SetEnv(env *testscript.Env, dir string) {
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("LEKTORDIR", filepath.Join(env.WorkDir, dir))
	env.Setenv("XDG_DATA_HOME", "")
	env.Setenv("TZ", "UTC")
	env.Setenv("no_proxy", "*")
	// A process under the race detector sleeps for a second at its end.
	env.Setenv("GORACE", "atexit_sleep_ms=0")
}

// Status is the command
//
//	status N COMMAND…
//
// of scripts: COMMAND must end with status N.
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
