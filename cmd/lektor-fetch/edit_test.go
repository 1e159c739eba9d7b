package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestEditAsks: edit asks on the terminal before it unsubscribes, and ^C at the question stops it.
func TestEditAsks(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := testdir.Programs(bin, "lektor-fetch"); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(bin, "lektor-fetch")
	env := []string{"LEKTORDIR=" + filepath.Join(bin, "feeds"), "TMPDIR=" + t.TempDir(), "VISUAL=sed -i -e /feed.xml/d"}
	run := func(args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	run("add", "--no-fetch", "--as-is", "http://127.0.0.1/feed.xml")
	for _, tc := range []struct {
		keys string
		code int
		left string
	}{
		{"n\r", 1, "http://127.0.0.1/feed.xml\n"},
		{"\x03", 130, "http://127.0.0.1/feed.xml\n"},
		{"y\r", 0, ""},
	} {
		tty := terminal.Open(t, 80, 24)
		cmd := tty.Command(env, program, "edit")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Await("unsubscribe from 1 feed? y or n")
		tty.Type(tc.keys)
		_ = cmd.Wait() // the status is compared
		if code, left := cmd.ProcessState.ExitCode(), run("ls", "-o", "url"); code != tc.code || left != tc.left {
			t.Errorf("%q: status %d, subscribed to %q; %s", tc.keys, code, left, tty.Output())
		}
	}
}
