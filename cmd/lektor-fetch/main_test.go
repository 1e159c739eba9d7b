package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){
		"lektor-fetch": func() {
			os.Exit(cmdline.Main(newApp(), append([]string{"lektor-fetch"}, os.Args[1:]...)))
		},
		"measure": measure,
	})
}

// servers holds the server of each running script, by its working directory.
var servers sync.Map

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }

// Each setting is in the help of set, and an item of the manual. The help omits the origin, which no user needs.
func TestManualSettings(t *testing.T) {
	page, err := os.ReadFile("../../man/lektor-fetch.1")
	if err != nil {
		t.Fatal(err)
	}
	_, items, _ := strings.Cut(string(page), "\n.It Cm error\n") // those before are columns
	help := strings.FieldsFunc(setCommand().Description, func(r rune) bool { return strings.ContainsRune(" ,.\n", r) })
	for _, name := range settings.Names {
		if !strings.Contains(items, "\n.It Cm "+name+"\n") {
			t.Errorf("lektor-fetch(1) has no item %s", name)
		}
		if name != "origin" && !slices.Contains(help, name) {
			t.Errorf("the help of set lacks %s", name)
		}
	}
}

// TestScripts runs testdata/*.txtar. Besides the commands of testscript there
// are
//
//	status N COMMAND…   COMMAND must end with status N
//	serve               serve $WORK/www from now on at $URL
//	requests PATH LINE… the requests for PATH since the last time must be LINE…,
//	                    each a status and, after it, the If-None-Match if any,
//	                    for which * stands, too
//	interrupt SIGNAL WORD…  lektor-fetch WORD… reads a list or a document whose
//	                    beginning is $WORK/half when SIGNAL comes; its status
//	                    must be that of a command that was stopped
//	new TITLE…          new/ must hold entries with these titles, in any order
//	cur TITLE…          and so cur/
//	take TITLE          do as a viewer does: take the entry to cur/, as read
//	drop TITLE          do as a viewer does: remove the entry from new/
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			testdir.SetEnv(env, "feeds")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": testdir.Status,
			"serve": func(ts *testscript.TestScript, neg bool, args []string) {
				s, err := server.New("127.0.0.1")
				ts.Check(err)
				ts.Defer(s.Close)
				s.Serve(ts.MkAbs("www"))
				servers.Store(ts.Getenv("WORK"), s)
				ts.Setenv("URL", s.URL(""))
			},
			"requests": func(ts *testscript.TestScript, neg bool, args []string) {
				v, _ := servers.Load(ts.Getenv("WORK"))
				s := v.(*server.Server)
				got := []string{}
				for _, r := range s.Requests(args[0]) {
					line := fmt.Sprint(r.Status)
					if v := r.Header.Get("If-None-Match"); v != "" {
						if i := len(got) + 1; i < len(args) && args[i] == line+" *" {
							v = "*"
						}
						line += " " + v
					}
					got = append(got, line)
				}
				s.Forget(args[0])
				if !slices.Equal(got, args[1:]) {
					ts.Fatalf("requests for %s: %q, not %q", args[0], got, args[1:])
				}
			},
			"interrupt": interrupt,
			"new":       func(ts *testscript.TestScript, neg bool, args []string) { titles(ts, lektordir.New, args) },
			"cur":       func(ts *testscript.TestScript, neg bool, args []string) { titles(ts, lektordir.Cur, args) },
			"take": func(ts *testscript.TestScript, neg bool, args []string) {
				d, ref := find(ts, args[0])
				_, err := d.SetFlags(ref, "S", "")
				ts.Check(err)
			},
			"drop": func(ts *testscript.TestScript, neg bool, args []string) {
				d, ref := find(ts, args[0])
				ts.Check(d.Remove(ref))
			},
		},
	})
}

// entriesIn returns the titles of the entries in a place, by entry.
func entriesIn(ts *testscript.TestScript, place lektordir.Place) (*lektordir.Dir, map[lektordir.Ref]string) {
	d, err := lektordir.Open(ts.Getenv("LEKTORDIR"), nil)
	ts.Check(err)
	refs, err := d.List(context.Background(), lektordir.ListOptions{AllVersions: true})
	ts.Check(err)
	out := map[lektordir.Ref]string{}
	for _, ref := range refs {
		if ref.Place == place {
			e, err := d.ReadEntry(ref, lektordir.Obligatory)
			ts.Check(err)
			out[ref] = e.Title
		}
	}
	return d, out
}

func titles(ts *testscript.TestScript, place lektordir.Place, want []string) {
	_, found := entriesIn(ts, place)
	got := []string{}
	for _, t := range found {
		got = append(got, t)
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		ts.Fatalf("%s/ holds %q, not %q", place, got, want)
	}
}

func find(ts *testscript.TestScript, title string) (*lektordir.Dir, lektordir.Ref) {
	d, found := entriesIn(ts, lektordir.New)
	for ref, t := range found {
		if t == title {
			return d, ref
		}
	}
	ts.Fatalf("no entry %q in new/", title)
	return nil, lektordir.Ref{}
}

// interrupt implements the script command interrupt.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	if signal.Ignored(sig) {
		return // under nohup it stays so, and nothing ends the read
	}
	dirs := filepath.SplitList(ts.Getenv("PATH"))
	cmd := exec.Command(filepath.Join(dirs[0], "lektor-fetch"), args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "LEKTORDIR", "no_proxy"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	in, err := cmd.StdinPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	// Write more than a pipe holds: when the write returns, the program has read the beginning.
	_, err = io.WriteString(in, ts.ReadFile("half")+strings.Repeat("\n", 200_000))
	ts.Check(err)
	ts.Check(cmd.Process.Signal(sig))
	cmd.Wait()
	in.Close()
	if got := cmd.ProcessState.ExitCode(); got != 128+int(sig) {
		ts.Fatalf("status %d after %v", got, sig)
	}
}
