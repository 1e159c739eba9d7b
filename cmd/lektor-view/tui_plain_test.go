package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/testkit/terminal"
)

// TestTUIPlain: --plain works on a terminal that can do nothing but write lines, and writes no
// escape sequence, also around commands on the terminal, a stop, and a command that is killed.
func TestTUIPlain(t *testing.T) {
	t.Parallel()
	bin, err := exec.LookPath("lektor-view")
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"q", "\x03", "TERM"} {
		d := withKeys(t, readerDir(t, end == "q"), "X run sh -c 'echo on the terminal; kill -9 $$'\n")
		tty := terminal.Open(t, 80, 24)
		before, err := term.GetState(int(tty.TTY.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		cmd := tty.Command([]string{"LEKTORDIR=" + d.Path, "TERM=dumb", "TZ=UTC", "LC_ALL=C.UTF-8", "GORACE=atexit_sleep_ms=0"}, bin, "tui", "--plain")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Await("feeds\n1 of ")
		tty.Type("j")
		tty.Await("\n2 of 7, Flagged\n")
		tty.Type("Gl")
		tty.Await("entries of Gamma\n1 of 3, unread, ")
		tty.Type("\r")
		tty.Await("Text of 9, a link[1].")
		tty.Type("X")
		tty.Await("on the terminal\n")
		tty.Await("sh: signal: killed")
		tty.Type("|wc -l\r")
		tty.Await("\n[Enter]")
		tty.Type("\r")
		tty.Await("\n[Enter]\nentry\n")
		tty.Type(":tui\r")
		tty.Until(func(seen string) bool { return strings.Count(seen, "\nfeeds\n1 of ") == 2 })
		tty.Type("q")
		tty.Until(func(seen string) bool { return strings.Count(seen, "\n[Enter]") == 2 })
		tty.Type("\r")
		tty.Until(func(seen string) bool { return strings.Count(seen, "\n[Enter]\nentry\n") == 2 })
		tty.Type("q/one\r")
		tty.Await("entries of Gamma, search one\n")
		tty.Type("qq")
		tty.Until(func(seen string) bool { return strings.Count(seen, "\nfeeds\n") == 3 })
		if end == "TERM" {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		} else {
			tty.Type(end)
		}
		if err := cmd.Wait(); (err == nil) != (end != "TERM") {
			t.Errorf("%q: %v", end, err)
		}
		if after, err := term.GetState(int(tty.TTY.Fd())); err != nil || *after != *before {
			t.Errorf("%q: the terminal is not as it was (%v)", end, err)
		}
		if seen := tty.Output(); strings.Contains(seen, "\x1b") {
			t.Errorf("an escape sequence: %q", seen)
		}
	}
}

// TestTUIGerman: texts are in the language of the environment, and fit a narrow screen.
func TestTUIGerman(t *testing.T) {
	t.Parallel()
	r := read(t, readerDir(t, false), 40, 15, "", "LC_ALL=de_DE.UTF-8")
	r.see(t, `^ Feeds +9 ungelesen`)
	r.see(t, `\? Hilfe$`)
	r.Keys("l")
	r.see(t, `^ Alle Einträge +1/9`)
	r.Keys("W")
	r.see(t, `^W bewirkt nichts; \? zeigt die Tasten`)
	r.Keys("C")
	r.see(t, `^9 Einträge in „Alle .*\(y/n\)$`)
	r.Keys("n", "A", "y")
	r.see(t, `^9 Einträge als gelesen gekennzeichnet`)
	r.Keys("Q")
	r.ended(t, 0)
}
