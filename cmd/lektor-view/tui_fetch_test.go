package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// fetcherDir makes a lektor-dir with readerDir's feeds, and returns a server, the environment of a
// reader that finds lektor-fetch, and a function that runs lektor-fetch.
func fetcherDir(t *testing.T) (d *testdir.Dir, s *server.Server, env []string, fetch func(args ...string) string) {
	t.Helper()
	s = server.Start(t, "127.0.0.1")
	bin := t.TempDir()
	if err := testdir.Programs(bin, "lektor-fetch"); err != nil {
		t.Fatal(err)
	}
	d = readerDir(t, false)
	env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "no_proxy=*"}
	return d, s, env, func(args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "lektor-fetch"), args...)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+d.Path, "no_proxy=*")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
}

// TestTUIFetch: keys fetch a feed, a folder and all feeds, and the end of the reader ends the
// fetch.
func TestTUIFetch(t *testing.T) {
	t.Parallel()
	d, s, env, fetch := fetcherDir(t)
	s.Handle("/a", server.Doc("application/rss+xml", server.RSS("Zeta", 0, 1)), server.Doc("application/rss+xml", server.RSS("Zeta", 0, 2)), server.Stall)
	s.Handle("/b", server.Answer(404, ""))
	fetch("add", "--as-is", "--no-fetch", "--category", "Shelf", "--alias", "Zeta", s.URL("/a"))
	r := read(t, d, 100, 20, "", env...)
	r.see(t, `Zeta`)
	r.Keys("G", "F")
	r.see(t, `^you are subscribed to none`)
	r.Keys("k", "F")
	r.see(t, `^1 feed: 1 fetched; 1 new entry`)
	r.see(t, `Zeta +1`)
	fetch("add", "--as-is", "--no-fetch", s.URL("/b"))
	r.Keys("U")
	r.see(t, `^2 feeds: 1 fetched, 1 failed; 1 new entry; .*ge: all messages`)
	r.see(t, `Zeta +2`)
	r.Keys("g", "e")
	r.see(t, `/b: the server answered 404 Not Found`)
	r.Keys("q")
	r.gone(t, `messages, the newest first`)
	// The folder of the feed has one feed, whose server does not answer.
	r.Keys("g", "f")
	r.see(t, `fetching`)
	r.Until("the request", func([]string) bool { return len(s.Requests("/a")) >= 2 })
	r.Keys("Q")
	r.ended(t, 0)
	fetch("set", "Zeta", "interval", "2h") // fails if the feed is locked
	found, err := filepath.Glob(filepath.Join(d.Path, "tmp", "*", "*"))
	if err != nil || len(found) > 0 {
		t.Errorf("the fetch that was ended left %q, %v", found, err)
	}
}

// TestTUIWithoutFetcher: without lektor-fetch a message says so, and help does not list its keys.
func TestTUIWithoutFetcher(t *testing.T) {
	t.Parallel()
	r := read(t, readerDir(t, false), 100, 60, "", "PATH="+os.Getenv("PATH"))
	r.see(t, `three 2`)
	r.Keys("F")
	r.see(t, `^this needs lektor-fetch`)
	r.Keys("?")
	r.see(t, `the keys`)
	r.gone(t, `fetch all feeds`)
}

// TestTUISubscriptions: the reader subscribes by the URL of a page, changes a setting,
// unsubscribes, takes that back, and edits the list in an editor.
func TestTUISubscriptions(t *testing.T) {
	t.Parallel()
	d, s, env, fetch := fetcherDir(t)
	s.Handle("/", server.Doc("text/html", `<link rel=alternate type="application/rss+xml" title=One href=/one><link rel=alternate type="application/rss+xml" title=Two href=/two>`))
	s.Handle("/one", server.Doc("application/rss+xml", server.RSS("Yota", 0, 1)))
	s.Handle("/two", server.Doc("application/rss+xml", server.RSS("Zeta", 0, 1)))
	r := read(t, d, 100, 20, "", append(env, `VISUAL=sed -i -e s/~Yota/~Omega/`)...)
	r.see(t, `Gamma +3`)
	r.Keys("+")
	r.see(t, `subscribe to the URL`)
	r.Type(s.URL("/"))
	r.Keys("Enter")
	r.see(t, `folders, with`)
	r.Type("Shelf")
	r.Keys("Enter")
	r.see(t, `the page has several feeds`)
	r.see(t, `/two .Zeta|/two .Two`)
	r.Keys("Enter")
	r.see(t, `/one: subscribed`)
	r.see(t, `Yota +1`)
	r.Keys("/")
	r.Type("feed:Yota")
	r.Keys("Enter")
	r.see(t, `/feed:Yota +1/1`)
	r.Keys("e")
	r.see(t, `categories  Shelf`)
	r.Keys("Enter")
	r.see(t, `your name for the feed`)
	r.Type("Kappa")
	r.Keys("Enter")
	r.see(t, `^changed; u undoes it`)
	r.see(t, `Kappa +1`)
	r.Keys(":")
	r.Type("mark --set F 1700000009.1.h")
	r.Keys("Enter")
	r.place(t, 9, "cur;2,F")
	r.see(t, `^/`) // the command has ended, and printed the path
	r.Keys("u")    // the mark, which is later than the name
	r.place(t, 9, "cur;2,")
	fetch("set", "Kappa", "headers", "X-Key: secret")
	r.Keys("e")
	r.see(t, `headers  .hidden.`)
	r.Keys("G", "Enter", "y")
	r.see(t, `^unsubscribed; u undoes it`)
	if got := fetch("ls", "-o", "url"); got != "" {
		t.Errorf("subscribed to %q", got)
	}
	r.Keys("u")
	r.see(t, `rm of .*: 1 subscription taken back`)
	if got := fetch("set", "Kappa", "headers"); got != "X-Key: secret\n" {
		t.Errorf("headers %q", got)
	}
	r.Keys("u") // the headers of lektor-fetch
	r.see(t, `set of .*: 1 setting taken back`)
	if got := fetch("set", "Kappa", "headers"); got != "" {
		t.Errorf("headers %q", got)
	}
	r.Keys("u")
	r.gone(t, `Kappa`)
	r.Keys("E")
	r.see(t, `Enter`)
	r.Keys("Enter")
	r.see(t, `Omega +1`)
	r.Keys("Q")
	r.ended(t, 0)
}

// TestTUIUndoSubscribe: undo ends the subscription that the reader began, and not one whose URL
// differs in the password only.
func TestTUIUndoSubscribe(t *testing.T) {
	t.Parallel()
	d, s, env, fetch := fetcherDir(t)
	s.Handle("/one", server.Doc("application/rss+xml", server.RSS("Yota", 0, 1)))
	fetch("add", "--as-is", "--no-fetch", "--alias", "Mine", s.URL("/one"))
	r := read(t, d, 100, 20, "", env...)
	r.see(t, `Gamma +3`)
	r.Keys("+")
	r.see(t, `subscribe to the URL`)
	r.Type(strings.Replace(s.URL("/one"), "//", "//kim:secret@", 1))
	r.Keys("Enter")
	r.see(t, `folders, with`)
	r.Keys("Enter")
	r.see(t, `/one: subscribed \(Yota\)`)
	r.gone(t, `secret`)
	r.Keys("u")
	r.see(t, `add of .*: 1 subscription taken back`)
	if got := fetch("ls", "-o", "alias"); got != "Mine\n" {
		t.Errorf("subscribed to %q", got)
	}
	r.Keys("Q")
	r.ended(t, 0)
}

// TestTUIFetchKilled: a message says that lektor-fetch was killed, also if it has said something.
func TestTUIFetchKilled(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	script := "#!/bin/sh\necho 'lektor-fetch: a warning' >&2\nkill -9 $$\n"
	if err := os.WriteFile(filepath.Join(bin, "lektor-fetch"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := read(t, readerDir(t, false), 100, 20, "", "PATH="+bin+":"+os.Getenv("PATH"))
	r.see(t, `Gamma +3`)
	r.Keys("U")
	r.see(t, `lektor-fetch: signal: killed`)
	r.Keys("g", "e")
	r.see(t, `a warning`)
	r.Keys("q")
	r.gone(t, `messages, the newest first`)
	r.Keys("Q")
	r.ended(t, 0)
}
