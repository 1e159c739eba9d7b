package main

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){"lektor-serve": main})
}

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }

// TestScripts runs testdata/*.txtar, with [testdir.Commands] and
//
//	login NAME PASSWORD CLIENT      logs in, and sets $token and $dir
//	[!] check                       checks the token
func TestScripts(t *testing.T) {
	open := func(ts *testscript.TestScript) *accounts.Accounts {
		a, err := accounts.Open(filepath.Join(ts.Getenv("XDG_STATE_HOME"), "lektor-serve"), nil)
		ts.Check(err)
		return a
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			return testdir.Fill(env)
		},
		Cmds: testdir.Commands(map[string]func(*testscript.TestScript, bool, []string){
			"login": func(ts *testscript.TestScript, neg bool, args []string) {
				token, u, err := open(ts).Login(t.Context(), args[0], args[1], args[2], netip.MustParseAddr("127.0.0.1"))
				if neg != errors.Is(err, accounts.ErrDenied) || !neg && err != nil {
					ts.Fatalf("login: %v", err)
				}
				ts.Setenv("token", token)
				ts.Setenv("dir", u.Dir)
			},
			"check": func(ts *testscript.TestScript, neg bool, args []string) {
				if _, err := open(ts).Check(ts.Getenv("token")); neg != errors.Is(err, accounts.ErrDenied) || !neg && err != nil {
					ts.Fatalf("check: %v", err)
				}
			},
		}),
	})
}

// A password that is typed is not shown, and after ^C the terminal shows again what is typed.
func TestPasswdOnTerminal(t *testing.T) {
	d := testdir.New(t)
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	run := func(first, second string) (tty *terminal.Terminal, status int) {
		t.Helper()
		tty = terminal.Open(t, 80, 24)
		cmd := tty.Command(nil, filepath.Join(testdir.Bin(t), "lektor-serve"), "passwd", "--state", state, "--dir", d.Path, "ann")
		cmd.Stdin = tty.TTY
		mode := func() term.State {
			s, err := term.GetState(int(tty.TTY.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			return *s
		}
		before := mode()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Await("Password: ")
		if mode() == before {
			t.Error("the terminal echoes at a prompt")
		}
		tty.Type(first)
		if second != "" {
			tty.Await("Once more: ")
			tty.Type(second)
		}
		_ = cmd.Wait()
		if mode() != before {
			t.Error("the terminal is not as before")
		}
		return tty, cmd.ProcessState.ExitCode()
	}
	tty, status := run("a secret word\r", "another word\r")
	if got := tty.Output(); status != 1 || strings.Contains(got, "word\r") || !strings.Contains(got, "the passwords differ") {
		t.Errorf("status %d, and the terminal shows %q", status, got)
	}
	tty, status = run("\x03", "")
	if got := tty.Output(); status != 130 {
		t.Errorf("status %d after ^C, and the terminal shows %q", status, got)
	}
	tty, status = run("\x1c\x1a\x03", "") // ^\ and ^Z are no characters of a password
	if got := tty.Output(); status != 130 {
		t.Errorf("status %d after ^\\, ^Z and ^C, and the terminal shows %q", status, got)
	}
	if _, err := os.Stat(filepath.Join(state, "users")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there are users: %v", err)
	}
	tty, status = run("a secret word\r", "a secret word\r")
	if got := tty.Output(); status != 0 || strings.Contains(got, "secret") {
		t.Errorf("status %d, and the terminal shows %q", status, got)
	}
	a, err := accounts.Open(state, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Login(t.Context(), "ann", "a secret word", "", netip.Addr{}); err != nil {
		t.Error(err)
	}
}
