package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// drawerFiles are the files that hold the state of a feed, with $ for its hash, and the files of
// the whole lektor-dir that concern feeds. The files of a row are always read one after the
// other, and are tested together.
var drawerFiles = []string{
	"src/$/id", "src/$/etc/elements", "src/$/name src/$/etc/link src/$/etc/generator src/$/etc/categories src/$/etc/view/alias",
	"src/$/etc/fetch/url", "src/$/etc/fetch/interval", "src/$/etc/fetch/on-update", "src/$/etc/fetch/headers", "src/$/etc/fetch/filter src/$/etc/fetch/private",
	"src/$/etc/fetch/etag src/$/etc/fetch/modified src/$/etc/fetch/final", "src/$/etc/fetch/from src/$/etc/fetch/gone src/$/etc/fetch/moved", "src/$/etc/fetch/body",
	"src/$/etc/fetch/status src/$/etc/fetch/error src/$/etc/fetch/failures src/$/etc/fetch/max-age src/$/etc/fetch/ttl src/$/etc/fetch/update-interval " +
		"src/$/etc/fetch/skip-hours src/$/etc/fetch/skip-days src/$/etc/fetch/live",
	"src/$/etc/fetch/checked src/$/etc/fetch/next", "src/$/etc/fetch/seen",
	"src/$/etc/ess/link", "src/$/etc/ess/nno src/$/etc/ess/size src/$/etc/ess/handled", "src/$/etc/ess/url", "src/$/etc/ess/etag src/$/etc/ess/failures",
	"src/$/etc/push/cloud src/$/etc/push/hub src/$/etc/push/self src/$/etc/cloudd/topic",
	"etc/fetch/due/$ etc/fetch/taken/$", "etc/fetch/opml",
}

// plants are objects to put in the place of such a file. To read the pipe would wait for a
// writer. A file with a hole of 1 GB takes no space on the disk.
var plants = map[string]func(path string) error{
	"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o666) },
	"directory": func(path string) error { return os.Mkdir(path, 0o777) },
	"1 GB": func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(1<<30), f.Close())
	},
}

// TestDrawerHangsNothing: whatever is in the place of a file of a feed's state, no command waits
// for it, reads all of it, or crashes. The tests of the commands check the effect on the feed.
func TestDrawerHangsNothing(t *testing.T) {
	bin := build(t)
	s := server.Start(t, "127.0.0.1")
	for _, name := range []string{"a", "b"} {
		s.Handle("/"+name, server.Doc("application/rss+xml", strings.Replace(server.RSS(name, 1, 3), "<description>",
			`<link xmlns="http://www.w3.org/2005/Atom" rel="alternate" type="application/ess" href="`+s.URL("/ess")+`"/><description>`, 1)))
	}
	url := s.URL("/a")
	s.Handle("/ess", server.Doc("application/ess", "1700000000,"+url))
	hash := lektordir.FeedHash(url)
	template := filepath.Join(t.TempDir(), "feeds")
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte(`<opml version="2.0"><body><outline xmlUrl="`+url+`" category="x"/></body></opml>`), 0o666); err != nil {
		t.Fatal(err)
	}
	// run returns the output of a command. It fails the test if the command waits, crashes, or
	// takes as much memory as the file is large.
	run := func(t *testing.T, dir string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+dir, "no_proxy=*", "GOGC=")
		cmd.Stdin = strings.NewReader(server.RSS("a", 3, 3))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		switch {
		case ctx.Err() != nil:
			t.Errorf("%q waits: %s", args, out.String())
		case strings.Contains(out.String(), "goroutine "), err != nil && cmd.ProcessState.ExitCode() < 0:
			t.Errorf("%q: %v: %s", args, err, out.String())
		case usage != nil && usage.Maxrss > 500<<10:
			t.Errorf("%q takes %d MB", args, usage.Maxrss>>10)
		}
		return out.String()
	}
	for _, args := range [][]string{
		{"lektor-fetch", "add", "--gap", "0", "--alias", "A", url, s.URL("/b")},
		{"lektor-fetch", "import", "--no-fetch", list},
	} {
		if out := run(t, template, args...); strings.Contains(out, "failed") {
			t.Fatal(out)
		}
	}
	commands := [][]string{
		{"lektor-fetch", "ls"}, {"lektor-fetch", "ls", "-o", "json"}, {"lektor-fetch", "export"}, {"lektor-fetch", "check"},
		{"lektor-fetch", "set", url}, {"lektor-fetch", "update", "--dry-run"},
		{"lektor-view", "ls"}, {"lektor-view", "show", "1"}, {"lektor-view", "count"}, {"lektor-view", "digest", "--keep"}, {"lektor-view", "publish"},
		{"lektor-ess", "build"}, {"lektor-ess", "nno"}, {"lektor-ess", "poll", "--gap", "0"}, {"lektor-ess", "resolve", s.URL("/ess")},
		{"lektor-ess", "publish", filepath.Join(t.TempDir(), "ess")}, {"lektor-cloudd", "status"},
		{"lektor-fetch", "update", "--gap", "0", "-a"}, {"lektor-fetch", "set", url, "interval", "2h"}, {"lektor-fetch", "add", "--gap", "0", url},
		{"lektor-fetch", "import", "--no-fetch", list}, {"lektor-fetch", "deliver", "--id", url}, {"lektor-fetch", "put", "--feed-id", url, "--id", "urn:x:1"},
		{"lektor-fetch", "check", "--repair"}, {"lektor-view", "next"}, {"lektor-fetch", "rm", url}, {"lektor-fetch", "rm", "--purge", url},
	}
	for _, row := range drawerFiles {
		t.Run(strings.ReplaceAll(strings.Fields(row)[0], "/", "-"), func(t *testing.T) {
			t.Parallel()
			for what, plant := range plants {
				dir := filepath.Join(t.TempDir(), what)
				if out, err := exec.Command("cp", "-a", template, dir).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				for path := range strings.FieldsSeq(strings.ReplaceAll(row, "$", hash)) {
					target := filepath.Join(dir, path)
					if err := errors.Join(os.RemoveAll(target), os.MkdirAll(filepath.Dir(target), 0o777), plant(target)); err != nil {
						t.Fatal(err)
					}
				}
				for _, args := range commands {
					run(t, dir, args...)
				}
				if t.Failed() {
					t.Fatalf("with a %s in the place of %s", what, row)
				}
			}
		})
	}
}
