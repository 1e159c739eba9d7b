package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// quits are the ways to end the reader: keys, and a signal after them.
var quits = []struct {
	name, keys string
	signal     syscall.Signal
	status     int
}{
	{"quit-now", "Q", 0, 0},
	{"quit", "qqq", 0, 0},
	{"interrupt", "\x03", 0, 0},
	{"SIGINT", "", syscall.SIGINT, 130},
	{"SIGTERM", "", syscall.SIGTERM, 143},
	{"SIGHUP", "", syscall.SIGHUP, 129},
	{"closed terminal", "", 0, 129},
}

// stack makes a lektor-dir of n unread entries.
func stack(t testing.TB, n int) *testdir.Dir {
	t.Helper()
	d := testdir.New(t)
	if _, err := d.Feed("http://a.example/", "Alpha"); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := d.Entry("http://a.example/", "new", fmt.Sprintf("17000%05d.1.h", i), fmt.Sprintf("title=Entry %d.", i)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// states returns how many entries of a lektor-dir have each place and flags.
func states(t testing.TB, d *testdir.Dir) map[string]int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.Path, "[nc][eu][wr]", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, path := range found {
		_, info, _ := strings.Cut(filepath.Base(path), ";")
		n[strings.TrimSuffix(filepath.Base(filepath.Dir(filepath.Dir(path)))+";"+info, ";")]++
	}
	return n
}

// begun starts a reader, and waits until its list is complete: then the pane shows where the cursor is
// among all n, and a key that needs that works.
func begun(t *testing.T, d *testdir.Dir, n int, env ...string) (*terminal.Terminal, *exec.Cmd, string) {
	t.Helper()
	tty := terminal.Open(t, 100, 20)
	errs := filepath.Join(t.TempDir(), "err")
	file, err := os.Create(errs)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := tty.Command(append([]string{"LEKTORDIR=" + d.Path, "TERM=xterm", "TZ=UTC", "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}, env...), "lektor-view", "tui", "--plain")
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	tty.Await("All")
	// C asks when all entries are known, and A works when the list is complete.
	tty.Press("C", func() bool { return strings.Contains(tty.Seen(), "as read?") })
	tty.Type("n")
	tty.Type("l")
	tty.Await("1 of " + fmt.Sprint(n))
	return tty, cmd, errs
}

// TestTUIQuits: each change that is typed before the end of the reader is on the disk when it has
// ended, however it ends.
func TestTUIQuits(t *testing.T) {
	for _, q := range quits {
		for _, n := range []int{1, 100} {
			for _, c := range []struct{ name, keys, want, want100 string }{ // states with one entry, and with 100
				{"read-all", "Ay", "map[cur;2,S:1]", "map[cur;2,S:100]"},
				{"flags", "mjmjmjmjmjm", "map[cur;2,:1]", "map[cur;2,F:6 new:94]"},
				{"node", "Cy", "map[cur;2,S:1]", "map[cur;2,S:100]"},
				{"undone", "mAyu", "map[cur;2,F:1]", "map[cur;2,:99 cur;2,F:1]"},
				{"trash", "ddd", "map[cur;2,T:1]", "map[cur;2,T:3 new:97]"},
				{"opened", "\r", "map[cur;2,S:1]", "map[cur;2,S:1 new:99]"},
				{"line", ":mark --set F\r", "map[cur;2,F:1]", "map[cur;2,F:1 new:99]"},
			} {
				if n == 1 && q.name != "quit-now" {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %d", q.name, c.name, n), func(t *testing.T) {
					t.Parallel()
					d := stack(t, n)
					tty, cmd, errs := begun(t, d, n)
					if c.name == "opened" && q.keys == "qqq" {
						q.keys = "qqqq"
					}
					quit(t, tty, cmd, c.keys+q.keys, q.name, q.signal, q.status)
					want := c.want
					if n == 100 {
						want = c.want100
					}
					if got := fmt.Sprint(states(t, d)); got != want {
						messages, _ := os.ReadFile(errs)
						t.Errorf("got %s, want %s; messages: %s, screen:\n%q", got, want, messages, tty.Seen())
					}
				})
			}
		}
	}
}

// quit types keys, and ends the reader.
func quit(t *testing.T, tty *terminal.Terminal, cmd *exec.Cmd, keys, name string, signal syscall.Signal, status int) {
	t.Helper()
	tty.Type(keys)
	if signal != 0 || name == "closed terminal" {
		// The reader has handled the keys when it answers this one.
		tty.Type("Z")
		tty.Await("Z does nothing")
		if signal == 0 {
			tty.Hangup()
		} else if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the reader does not end:\n%s", tty.Seen())
	}
	if got := cmd.ProcessState.ExitCode(); got != status && name != "closed terminal" {
		t.Errorf("status %d, want %d", got, status)
	}
}
