package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// shelf returns a lektor-dir of forty entries, of which the first is long, and an environment
// without settings for pagers and colours.
func shelf(t *testing.T) (d *testdir.Dir, env []string) {
	t.Helper()
	d = testdir.New(t)
	if _, err := d.Feed("http://a.example/", "Alpha"); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		text := "content=" + strings.Repeat("a word\n\n", 100)
		if _, err := d.Entry("http://a.example/", "new", fmt.Sprintf("17000000%02d.1.h", i), fmt.Sprintf("title=Entry %d.", i), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"LEKTOR_PAGER", "PAGER", "LESS", "NO_COLOR", "LEKTOR_WIDTH"} {
		t.Setenv(name, "") // restores it after the test
		os.Unsetenv(name)
	}
	return d, []string{"LEKTORDIR=" + d.Path, "TERM=xterm", "TZ=UTC", "LC_ALL=C.UTF-8", "GORACE=atexit_sleep_ms=0", "LESSHISTFILE=-", "LESSSECURE=1"}
}

// unread returns the number of entries in new/.
func unread(t *testing.T, d *testdir.Dir) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.Path, "new", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// waits reports whether less has drawn its prompt.
func waits(seen string) bool {
	prompt := seen[strings.LastIndexByte(seen, '\n')+1:]
	return strings.Contains(prompt, ":") || strings.Contains(prompt, "END")
}

// TestLess: without a setting for the pager, a long list and a long text are shown in less, with
// colours. less keeps running after ^C.
func TestLess(t *testing.T) {
	if _, err := exec.LookPath("less"); err != nil {
		t.Skip(err)
	}
	d, env := shelf(t)
	for _, tc := range []struct {
		args           []string
		first, not     string // text on the screen, and text that is not there
		interrupts     int    // how often ^C is typed
		key, then      string // typed after that, and seen then
		unread, status int
	}{
		{[]string{"ls"}, "Entry 39.", "Entry 10.", 2, " ", "Entry 28.", 40, 0},
		{[]string{"ls"}, "\x1b[36mAlpha\x1b[m", "Entry 10.", 0, "G", "Entry 0.", 40, 0},
		{[]string{"show", "--mark", "$"}, "Title: Entry 0.", "\x1b[36m", 2, "G", "(END)", 39, 0},
		{[]string{"next"}, "Title: Entry ", "\x1b[36m", 1, "", "", 38, 0},
	} {
		tty := terminal.Open(t, 80, 10)
		cmd := tty.Command(env, "lektor-view", tc.args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		tty.Await(tc.first)
		tty.Until(waits)
		if seen := tty.Seen(); strings.Contains(seen, tc.not) {
			t.Errorf("%q: more than a screen:\n%q", tc.args, seen)
		}
		for range tc.interrupts {
			before := len(tty.Seen())
			tty.Type("\x03")
			tty.Until(func(seen string) bool { return len(seen) > before }) // less rings the bell
		}
		if tc.key != "" {
			tty.Press(tc.key, func() bool { return strings.Contains(tty.Seen(), tc.then) })
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var err error
		tty.Press("q", func() bool {
			select {
			case err = <-ended:
				return true
			default:
				return false
			}
		})
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = nil
		}
		if got := cmd.ProcessState.ExitCode(); err != nil || got != tc.status {
			t.Errorf("%q: status %d, %v:\n%q", tc.args, got, err, tty.Output())
		}
		if got := unread(t, d); got != tc.unread {
			t.Errorf("%q: %d entries are unread, not %d", tc.args, got, tc.unread)
		}
	}
}

// TestWithoutLess: text that fits the screen, and text without a pager, is printed at once.
func TestWithoutLess(t *testing.T) {
	_, env := shelf(t)
	for _, tc := range []struct {
		lines int
		env   string
		args  []string
		want  int // lines
	}{
		{10, "", []string{"ls", "-n", "9"}, 9},
		{41, "", []string{"ls"}, 40},
		{10, "", []string{"ls", "--no-pager"}, 40},
		{10, "LEKTOR_PAGER=", []string{"ls"}, 40},
		{10, "PAGER=", []string{"ls"}, 40},
		{10, "PAGER=cat", []string{"ls"}, 40},
		{10, "TERM=dumb", []string{"ls"}, 40},
		{0, "", []string{"ls"}, 40},
		{10, "", []string{"ls", "-o", "title"}, 40},
		{10, "", []string{"show", "--no-pager", "$"}, 204},
	} {
		tty := terminal.Open(t, 80, tc.lines)
		cmd := tty.Command(append(env, tc.env), "lektor-view", tc.args...)
		if err := cmd.Run(); err != nil {
			t.Errorf("%q: %v", tc.args, err)
		}
		out := tty.Output()
		if got := strings.Count(out, "\n"); got != tc.want {
			t.Errorf("%q with %q on %d lines: %d lines\n%s", tc.args, tc.env, tc.lines, got, out)
		}
		if colored := strings.Contains(out, "\x1b["); colored != (tc.args[0] == "ls" && tc.env != "TERM=dumb" && tc.args[len(tc.args)-1] != "title") {
			t.Errorf("%q with %q: coloured is %v", tc.args, tc.env, colored)
		}
	}
}
