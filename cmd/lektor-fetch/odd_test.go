package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// odd is a lektor-dir with two feeds. The feed named odd has two entries in new/ and one in cur/,
// all extras, and a defect in its files. The server has another entry for each feed.
type odd struct {
	server   *server.Server
	dir      string
	id, hash string
	other    string // hash of the other feed
	unread   []string
	read     string
	wide     bool // the lektor-dir is odd, not the feed
}

// newOdd creates an odd in a directory.
func newOdd(t *testing.T, dir string) *odd {
	t.Helper()
	o := &odd{server: server.Start(t, "127.0.0.1"), dir: dir}
	o.id = o.server.URL("/odd")
	o.hash, o.other = lektordir.FeedHash(o.id), lektordir.FeedHash(o.server.URL("/other"))
	o.serve(3)
	for _, args := range [][]string{
		{"add", "--gap", "0", "--alias", "Odd", "--category", "a", "--interval", "1h", o.id},
		{"add", "--gap", "0", o.server.URL("/other")},
		{"set", o.id, "headers", "X-A: b"},
		{"update", "--gap", "0", "-a"},
	} {
		if status, said := o.fetch(t, "", args...); status != 0 {
			t.Fatalf("got %q: %d\n%s; want status == 0", args, status, said)
		}
	}
	if status, said := o.view(func(ctx context.Context, c session.Common, s *cmdline.Streams) error {
		return viewer.List(ctx, viewer.ListOptions{Common: c, Sort: viewer.DefaultSort}, s)
	}); status != 0 {
		t.Fatal(said)
	}
	d, err := lektordir.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	refs, err := d.List(t.Context(), lektordir.ListOptions{Feeds: []string{o.hash}})
	if err != nil || len(refs) != 3 {
		t.Fatal(refs, err)
	}
	ref, err := d.SetFlags(refs[0], "S", "")
	if err != nil {
		t.Fatal(err)
	}
	o.read = ref.Path()
	for _, r := range refs[1:] {
		o.unread = append(o.unread, r.Path())
	}
	for _, path := range []string{"etc/fetch/due", "etc/fetch/taken"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	o.serve(4)
	return o
}

// serve serves both feeds with n entries, of which the last changes.
func (o *odd) serve(n int) {
	for _, name := range []string{"odd", "other"} {
		doc := server.RSS(name, 1, n)
		doc = strings.Replace(doc, "<link>http://example.com/</link>", `<link>http://example.com/</link><cloud domain="c.example" port="80" path="/p" registerProcedure="" protocol="http-post"/>`+
			`<link xmlns="http://www.w3.org/2005/Atom" rel="alternate" type="application/ess" href="http://example.com/ess"/>`, 1)
		doc = strings.Replace(doc, "text 3<", fmt.Sprintf("text 3, and %d<", n), 1)
		o.server.Handle("/"+name, server.Doc("application/rss+xml", doc))
	}
}

// fetch runs lektor-fetch in this process.
func (o *odd) fetch(t *testing.T, stdin string, args ...string) (status int, said string) {
	var out bytes.Buffer
	app := newApp()
	app.Reader, app.Writer, app.ErrWriter = strings.NewReader(stdin), &out, &out
	status = cmdline.Main(app, append([]string{"lektor-fetch", "--dir", o.dir}, args...))
	return status, out.String()
}

// view runs a command of lektor-view in this process.
func (o *odd) view(f func(context.Context, session.Common, *cmdline.Streams) error) (status int, said string) {
	var out bytes.Buffer
	s := cmdline.NewStreams("lektor-view", strings.NewReader(""), &out, &out)
	err := f(context.Background(), session.Common{Dir: o.dir, Terminal: "none"}, s)
	s.Report.Print(err)
	status = cmdline.Status(err)
	if status == 0 && s.Report.Errors() > 0 {
		status = 1
	}
	return status, out.String()
}

// watch runs lektor-fetch watch until the expected result or message appears.
func (o *odd) watch(t *testing.T, until func(said string) bool) (status int, said string) {
	t.Helper()
	var out syncBuffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &out, &out)
	done := make(chan error)
	go func() {
		wo := fetcher.WatchOptions{Common: fetcher.Common{Dir: o.dir, Options: fetcher.Options{Jobs: 4}}}
		wo.Fetch.PerHost = 4
		done <- fetcher.Watch(ctx, wo, s)
	}()
	deadline := time.Now().Add(time.Minute)
	for !until(out.String()) {
		select {
		case err := <-done:
			s.Report.Print(err)
			return cmdline.Status(err), out.String()
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Errorf("watch goes on: %s", out.String())
			break
		}
	}
	cancel()
	err := <-done
	s.Report.Print(err)
	return cmdline.Status(err), out.String()
}

// entries counts the entries of the other feed.
func (o *odd) entries() int {
	names, _ := filepath.Glob(filepath.Join(o.dir, "new", o.other, "*"))
	return len(names)
}

// commands returns the commands that may write. Each returns its exit status and its messages.
func (o *odd) commands(t *testing.T) map[string]func() (int, string) {
	doc := server.RSS("odd", 3, 3)
	fetch := func(stdin string, args ...string) func() (int, string) {
		return func() (int, string) { return o.fetch(t, stdin, args...) }
	}
	view := func(f func(context.Context, session.Common, *cmdline.Streams) error) func() (int, string) {
		return func() (int, string) { return o.view(f) }
	}
	names := session.Names{Args: append([]string{o.read}, o.unread...)}
	return map[string]func() (int, string){
		"update": fetch("", "update", "-a", "--gap", "0"),
		"update, failed": func() (int, string) {
			o.server.Handle("/odd", server.Answer(500, ""))
			return o.fetch(t, "", "update", "-a", "--gap", "0")
		},
		"update, same": func() (int, string) { o.serve(3); return o.fetch(t, "", "update", "-a", "--gap", "0") },
		"deliver":      fetch(doc, "deliver", "--id", o.id),
		"put":          fetch("text", "put", "--feed-id", o.id, "--feed-name", "Named anew", "--id", "urn:x:1", "--title", "Put"),
		"add":          fetch("", "add", "--gap", "0", "--alias", "Other", "--category", "b", "--interval", "2h", o.id),
		"add again": func() (int, string) {
			// Unsubscribe by hand, if possible.
			if fi, err := os.Lstat(filepath.Join(o.dir, "src", o.hash, "etc/fetch/url")); err == nil && (fi.Mode()&fs.ModeSymlink != 0 || !o.behind("etc/fetch")) {
				os.Remove(filepath.Join(o.dir, "src", o.hash, "etc/fetch/url"))
			}
			return o.fetch(t, "", "add", "--gap", "0", "--alias", "Other", "--category", "b", "--interval", "2h", o.id)
		},
		"import":         fetch(`<opml version="2.0"><body><outline type="rss" text="Odd" category="/x" title="Other" xmlUrl="`+o.id+`"/></body></opml>`, "import", "-"),
		"rm":             fetch("", "rm", o.id),
		"rm --purge":     fetch("", "rm", "--purge", o.id),
		"set url":        fetch("", "set", o.id, "url", o.id+"?2"),
		"set alias":      fetch("", "set", o.id, "alias", "Another"),
		"set interval":   fetch("", "set", o.id, "interval", "3h"),
		"set categories": fetch("", "set", o.id, "categories", "c", "d"),
		"set headers":    fetch("", "set", o.id, "headers", "X-B: c"),
		"unset alias":    fetch("", "set", "--unset", o.id, "alias"),
		"unset interval": fetch("", "set", "--unset", o.id, "interval"),
		"check":          fetch("", "check", "--repair"),
		"watch": func() (int, string) {
			n := o.entries()
			for _, h := range []string{o.hash, o.other} {
				// Write no marker if the directory of markers is a symbolic link.
				due := filepath.Join(o.dir, "etc/fetch/due")
				if fi, err := os.Lstat(due); err == nil && fi.IsDir() && !o.wide {
					if _, err := os.Lstat(filepath.Join(due, h)); err != nil {
						os.WriteFile(filepath.Join(due, h), nil, 0o666)
					}
				}
				os.Remove(filepath.Join(o.dir, "src", o.other, "etc/fetch/next"))
			}
			return o.watch(t, func(said string) bool { return o.entries() > n || o.wide && strings.Contains(said, "link") })
		},
		"mark": view(func(ctx context.Context, c session.Common, s *cmdline.Streams) error {
			return viewer.Mark(ctx, viewer.MarkOptions{Common: c, Names: names, Set: "F"}, s)
		}),
		"view rm": view(func(ctx context.Context, c session.Common, s *cmdline.Streams) error {
			return viewer.Remove(ctx, viewer.RemoveOptions{Common: c, Names: names}, s)
		}),
		"ls": view(func(ctx context.Context, c session.Common, s *cmdline.Streams) error {
			return viewer.List(ctx, viewer.ListOptions{Common: c, Sort: viewer.DefaultSort, All: true}, s)
		}),
		"next": view(func(ctx context.Context, c session.Common, s *cmdline.Streams) error {
			return viewer.Next(ctx, viewer.ShowOptions{Common: c, Mark: true}, s)
		}),
		"digest": view(func(ctx context.Context, c session.Common, s *cmdline.Streams) error {
			return viewer.Digest(ctx, viewer.DigestOptions{Common: c, Lines: 1}, s)
		}),
	}
}

// behind reports whether a directory of the odd feed is a link, or below one.
func (o *odd) behind(rel string) bool {
	path := filepath.Join(o.dir, "src", o.hash)
	for _, part := range append([]string{""}, strings.Split(rel, "/")...) {
		path = filepath.Join(path, part)
		if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// If a symbolic link replaces any file or directory of the lektor-dir, no file outside is written,
// changed, deleted or created by any command, and the other feed is fetched.
func TestPlantedLinks(t *testing.T) {
	template := newOdd(t, filepath.Join(quickDir(t), "feeds"))
	for i, plant := range []string{
		"tmp/$", "new/$", "cur/$", "src/$", "src/$/etc", "src/$/etc/fetch", "src/$/etc/view", "src/$/etc/push", "src/$/etc/ess", "src/$/etc/history",
		"etc/fetch", "etc/fetch/due", "etc/fetch/taken", "etc/fetch/lock", "etc/fetch/spool", "etc/view", "etc/view/undo",
		"src/$/id", "src/$/name", "src/$/etc/link", "src/$/etc/generator", "src/$/etc/categories", "src/$/etc/view/alias", "src/$/etc/push/cloud", "src/$/etc/ess/link",
		"src/$/etc/fetch/seen", "src/$/etc/fetch/url", "src/$/etc/fetch/etag", "src/$/etc/fetch/status", "src/$/etc/fetch/error", "src/$/etc/fetch/interval",
		"src/$/etc/fetch/headers", "src/$/etc/fetch/checked", "src/$/etc/fetch/next", "src/$/etc/fetch/body",
		"src/$/etc/history/archives", "src/$/etc/history/kind", "src/$/etc/history/complete", "src/$/etc/history/incomplete",
		"etc/fetch/lock/$", "etc/fetch/due/$", "etc/fetch/taken/$", "etc/view/list", "etc/view/current",
	} {
		for j, what := range []string{"theirs", "ours", "nothing"} {
			t.Run(strings.ReplaceAll(plant, "/", ".")+", "+what, func(t *testing.T) {
				for k, name := range slices.Sorted(maps.Keys(template.commands(t))) {
					if !*full && (i+j+k)%3 != 0 {
						continue // each command meets a link in each place, of one kind
					}
					switch name {
					case "mark", "view rm", "ls", "next", "digest":
						if plant != "cur/$" && plant != "new/$" && plant != "tmp/$" && !strings.HasPrefix(plant, "etc/view") {
							continue // not their business
						}
					case "watch", "add", "import":
						if strings.HasPrefix(plant, "src/$/etc/fetch/") {
							continue // as update, and as add again
						}
					}
					o := *template
					o.wide = strings.HasPrefix(plant, "etc/fetch") && !strings.HasSuffix(plant, "$") && plant != "etc/fetch/spool" // no archives here
					o.dir = filepath.Join(quickDir(t), "feeds")
					if err := copyTree(template.dir, o.dir); err != nil {
						t.Fatal(err)
					}
					outside := filepath.Join(quickDir(t), "outside")
					if !o.plant(t, plant, what, outside) {
						continue
					}
					o.serve(4)
					before, count := snapshot(t, filepath.Dir(outside)), o.entries()
					status, said := o.commands(t)[name]()
					if after := snapshot(t, filepath.Dir(outside)); !slices.Equal(before, after) {
						t.Errorf("%s: outside was\n%s\nand is\n%s\nstatus %d: %s", name, strings.Join(before, "\n"), strings.Join(after, "\n"), status, said)
					}
					if name == "update" || name == "update, failed" || name == "watch" {
						switch {
						case o.wide && !strings.Contains(said, "it is a link"):
							t.Errorf("%s: it does not say why: %d %s", name, status, said)
						case !o.wide && o.entries() <= count:
							t.Errorf("%s: the other feed was not fetched; status %d: %s", name, status, said)
						}
					}
					t.Logf("%s: %d %s", name, status, strings.ReplaceAll(said, "\n", "\n\t"))
				}
			})
		}
	}
}

// plant replaces a path ($ is the odd feed) by a link to the outside: to the moved original (ours),
// to a foreign file (theirs), or to nothing. It returns false if the combination makes no sense.
func (o *odd) plant(t *testing.T, rel, what, outside string) bool {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(o.dir, strings.ReplaceAll(rel, "$", o.hash))
	if strings.HasPrefix(rel, "etc/view/") {
		found, _ := filepath.Glob(path + ".*")
		if len(found) == 1 {
			path = found[0]
		}
	}
	fi, err := os.Lstat(path)
	dir := err == nil && fi.IsDir()
	switch {
	case what == "ours" && err != nil:
		return false
	case what == "ours":
		must(copyTree(path, outside))
	case what == "theirs" && dir:
		// Names that lektor would write or remove.
		for _, name := range []string{"precious", "url", "seen", "id", "name", "etag", "alias", "list", "interval", "next", "link", "cloud", "due/x", "fetch/url", o.hash, ".url1234567890123456"} {
			name = filepath.Join(outside, name)
			must(os.MkdirAll(filepath.Dir(name), 0o777))
			must(os.WriteFile(name, []byte("precious\n"), 0o666))
		}
	case what == "theirs":
		must(os.WriteFile(outside, []byte("precious\n"), 0o666))
	}
	must(os.RemoveAll(path))
	must(os.MkdirAll(filepath.Dir(path), 0o777))
	must(os.Symlink(outside, path))
	return true
}

// If a directory vanishes during a fetch, only its own feed fails, or the directory is created
// again. The other feed is fetched, and nothing is half done.
func TestVanishing(t *testing.T) {
	for _, gone := range []string{"src/$", "src/$/etc", "src/$/etc/fetch", "src/$/etc/fetch/url", "src/$/id", "new/$", "tmp/$", "cur/$", "etc/fetch/lock", "etc"} {
		for _, answer := range []string{"changed", "same", "failed"} {
			t.Run(strings.ReplaceAll(gone, "/", ".")+", "+answer, func(t *testing.T) {
				o := newOdd(t, filepath.Join(quickDir(t), "feeds"))
				path := filepath.Join(o.dir, strings.ReplaceAll(gone, "$", o.hash))
				doc := server.Answer(http.StatusNotModified, "")
				switch answer {
				case "changed":
					doc = server.Doc("application/rss+xml", server.RSS("odd", 1, 4))
				case "failed":
					doc = server.Answer(http.StatusInternalServerError, "")
				}
				hook := func(w http.ResponseWriter, r *http.Request) {
					if err := os.RemoveAll(path); err != nil {
						t.Error(err)
					}
					doc(w, r)
				}
				o.server.Handle("/odd", hook)
				n := o.entries()
				status, said := o.fetch(t, "", "update", "-a", "--gap", "0")
				if o.entries() <= n {
					t.Errorf("the other feed was not fetched: %d %s", status, said)
				}
				left, _ := filepath.Glob(filepath.Join(o.dir, "tmp/*/*"))
				if len(left) > 0 {
					t.Errorf("left: %q", left)
				}
				own, _ := filepath.Glob(filepath.Join(o.dir, "new", o.hash, "*4Q*"))
				_, err := os.Stat(filepath.Join(o.dir, "src", o.hash, "etc/fetch/seen"))
				if err != nil && status == 0 && gone != "src/$/etc/fetch/url" {
					t.Errorf("the feed's journal is gone, and nobody was told: %s %q", said, own)
				}
				if status != 0 && !strings.Contains(said, o.id) {
					t.Errorf("it does not say which feed failed: %s", said)
				}
				t.Logf("%d %s", status, said)
				// Fetch again, with the remaining files.
				o.serve(5)
				if status, said := o.fetch(t, "", "update", "-a", "--gap", "0"); status != 0 {
					t.Logf("again: %d %s", status, said)
				}
				if strings.HasPrefix(gone, "src/") {
					return
				}
				if status, said := o.fetch(t, "", "check"); status != 0 {
					t.Errorf("check: %s", said)
				}
			})
		}
	}
}
