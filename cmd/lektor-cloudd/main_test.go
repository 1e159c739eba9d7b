package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lektordir/lektor/internal/testkit/hub"
	"github.com/lektordir/lektor/internal/testkit/manual"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	testdir.ScriptsMain(m, map[string]func(){"lektor-cloudd": main})
}

func TestManual(t *testing.T) { manual.CheckManual(t, newApp()) }

// TestScripts runs testdata/*.txtar. Besides the commands of testscript there
// are
//
//	status N COMMAND…      COMMAND must end with status N
//	hub                    start a hub; $HUBPORT is its port
//	freeport               set $PORT to a free port
//	serve FILE…            serve the files, with variables expanded, at $URL
//	feed ID FILE=TEXT…     subscribe to a feed, with files in src/$feed; \t is a tab
//	await STATE ID         wait until the feed's registration has the state
//	await answer URL       wait until there is an answer at URL
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			testdir.SetEnv(env, "feeds")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": testdir.Status,
			"hub": func(ts *testscript.TestScript, neg bool, args []string) {
				h := &hub.Hub{}
				s := httptest.NewServer(h)
				ts.Defer(func() { s.Close(); h.Wait() })
				u, err := url.Parse(s.URL)
				ts.Check(err)
				ts.Setenv("HUBPORT", u.Port())
			},
			"freeport": func(ts *testscript.TestScript, neg bool, args []string) {
				port, free, err := server.Port(true)
				ts.Check(err)
				ts.Defer(free)
				ts.Setenv("PORT", fmt.Sprint(port))
			},
			"serve": func(ts *testscript.TestScript, neg bool, args []string) {
				s, err := server.New("127.0.0.1")
				ts.Check(err)
				ts.Defer(s.Close)
				for _, name := range args {
					s.Handle("/"+name, server.Doc("", strings.ReplaceAll(ts.ReadFile(name), "$HUBPORT", ts.Getenv("HUBPORT"))))
				}
				ts.Setenv("URL", s.URL(""))
			},
			"feed": func(ts *testscript.TestScript, neg bool, args []string) {
				d := &testdir.Dir{Path: ts.Getenv("LEKTORDIR")}
				files := []string{"etc/fetch/url=" + args[0]}
				for _, f := range args[1:] {
					files = append(files, strings.ReplaceAll(f, `\t`, "\t"))
				}
				_, err := d.Feed(args[0], "A feed", files...)
				ts.Check(err)
			},
			"await": func(ts *testscript.TestScript, neg bool, args []string) {
				ok := func() bool {
					if args[0] == "answer" {
						resp, err := http.Get(args[1])
						if err == nil {
							resp.Body.Close()
						}
						return err == nil
					}
					b, _ := os.ReadFile(filepath.Join(ts.Getenv("LEKTORDIR"), "src", testdir.Hash(args[1]), "etc/cloudd/state"))
					return strings.TrimSpace(string(b)) == args[0]
				}
				for end := time.Now().Add(time.Minute); !ok(); {
					if time.Now().After(end) {
						ts.Fatalf("waited in vain for: %q", args)
					}
					poll := time.NewTimer(5 * time.Millisecond)
					<-poll.C
				}
			},
		},
	})
}
