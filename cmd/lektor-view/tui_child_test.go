package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// withKeys writes a file of keys into a lektor-dir.
func withKeys(t *testing.T, d *testdir.Dir, keys string) *testdir.Dir {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(d.Path, "etc/view"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "etc/view/keys"), []byte(keys), 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

// child waits until the command of a key has written its process id to the file child in the
// reader's home, and returns it.
func (r *reader) child(t *testing.T) int {
	t.Helper()
	pid := 0
	r.Until("a child", func([]string) bool {
		data, _ := os.ReadFile(filepath.Join(r.home, "child"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return strings.HasSuffix(string(data), "\n") && pid > 0
	})
	if err := os.Remove(filepath.Join(r.home, "child")); err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestTUIChildKeys: ^Z stops a command on the terminal together with the reader, since only the
// shell can continue them. ^C is sent to the command. Text that is typed while the reader waits
// for Enter counts as Enter.
func TestTUIChildKeys(t *testing.T) {
	t.Parallel()
	r := read(t, withKeys(t, readerDir(t, false), `X run sh -c 'echo $$ >"$HOME/child"; exec sleep 1000'
Y run-wait sh -c 'echo $$ >"$HOME/child"; exec sleep 1000'
`), 80, 24, "")
	r.see(t, `Gamma +3`)
	r.Keys("l", "X")
	pid := r.child(t)
	for i := range 2 {
		r.Keys("C-z")
		r.Await("STOPPED " + strconv.Itoa(i+1))
		r.Keys("Enter") // the shell's fg
		r.Until("the command goes on", func([]string) bool {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			return err != nil || !strings.Contains(string(stat), ") T ")
		})
	}
	r.Keys("C-c")
	r.see(t, `sh: signal: interrupt`)
	r.see(t, `>N .*three 2`)

	r.Keys("Y")
	r.child(t)
	r.Keys("C-c")
	r.Await("[Enter]")
	r.Keys("C-z")
	r.Await("STOPPED 3")
	r.Keys("Enter")
	r.Until("asked again", func(lines []string) bool { return strings.Count(strings.Join(lines, "\n"), "[Enter]") == 2 })
	r.Keys("C-c")
	r.see(t, `>N .*three 2`)
	r.Keys("Q")
	r.ended(t, 0)
}

// TestTUIChildBackground: a command that is put into the background with the reader leaves the terminal to the shell,
// also when it ends there. Back in the foreground, it gets the terminal as soon as it reads it. If the terminal goes
// meanwhile, the reader ends.
func TestTUIChildBackground(t *testing.T) {
	t.Parallel()
	r := read(t, withKeys(t, readerDir(t, false), `X run sh -c 'echo $$ >"$HOME/child"; read l; echo "GOT $l"; read l'
Y run sh -c 'echo $$ >"$HOME/child"; exec sleep 1000'
`), 80, 24, "")
	r.see(t, `Gamma +3`)
	// background begins the command of a key, puts it into the background, and types a line to the shell.
	stops := 0
	background := func(key, line string, end bool) {
		t.Helper()
		r.Keys(key)
		pid := r.child(t)
		r.Keys("C-z")
		stops++
		r.Await("STOPPED " + strconv.Itoa(stops))
		r.Type("bg")
		r.Keys("Enter")
		if end {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		r.Type(line)
		r.Keys("Enter")
		r.Await("TYPED " + line)
	}
	r.Keys("l")
	background("X", "to the shell", false)
	r.Keys("Enter") // fg
	r.Type("to the command")
	r.Keys("Enter")
	r.Await("GOT to the command")
	r.Keys("Enter")
	r.see(t, `>N .*three 2`)

	background("Y", "again", true)
	r.Keys("Enter") // fg
	r.see(t, `>N .*three 2`)

	background("Y", "last", true)
	server, err := strconv.Atoi(r.Tell("#{pid}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil { // the terminal is gone
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for err := error(nil); err == nil; _, err = os.Readlink("/proc/" + strings.TrimSpace(r.file(t, "pid")) + "/exe") {
		if time.Now().After(deadline) {
			t.Fatal("the reader runs without its terminal")
		}
	}
}

// TestTUIChildDies: if a command is killed before it restores the terminal, the reader restores
// the modes of the terminal and its foreground process group.
func TestTUIChildDies(t *testing.T) {
	t.Parallel()
	r := read(t, withKeys(t, readerDir(t, false), `X run-wait sh -c 'stty raw -echo; printf "\033[?1003h\033[?25l"; kill -9 $$'
Y run sh -c 'set -m; kill -9 $$'
`), 80, 24, "")
	r.see(t, `Gamma +3`)
	r.Keys("l", "X")
	r.Await("signal: killed")
	r.Await("[Enter]")
	if got := r.Tell("#{mouse_any_flag}"); got != "0" {
		t.Errorf("the mouse modes of the killed command are still set")
	}
	r.Keys("Enter")
	r.see(t, `>N .*three 2`)
	r.Keys("Y")
	r.see(t, `sh: signal: killed`)
	r.Keys("j")
	r.see(t, `>N .*three 1`)
	r.Keys("Q")
	r.ended(t, 0)
}

// TestTUIChildEnded: a signal that ends the reader first ends the command on the terminal. This
// also holds if the command ignores ^C, and after a ^C that was for the command.
func TestTUIChildEnded(t *testing.T) {
	t.Parallel()
	r := read(t, withKeys(t, readerDir(t, false), `X run sh -c 'trap : INT; echo $$ >"$HOME/child"; while :; do sleep 2; done'
`), 80, 24, "")
	r.see(t, `Gamma +3`)
	r.Keys("l", "X")
	pid := r.child(t)
	r.Keys("C-c", "C-c")
	kill(t, r, syscall.SIGTERM)
	r.ended(t, 143)
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the command still runs")
	}
}
