//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
	feedserver "github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// server serves the feeds, each in two versions.
type server struct {
	*httptest.Server
	version atomic.Int32
}

func serve() *server {
	s := &server{}
	s.version.Store(1)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); ok {
			s.other(w, r, kind, name)
			return
		}
		feedserver.Doc("", document(r.URL.Path, int(s.version.Load())))(w, r)
	}))
	return s
}

// other serves the pages and enclosures of entries. Pages exist from the second version of the
// feeds on.
func (s *server) other(w http.ResponseWriter, r *http.Request, kind, name string) {
	switch {
	case kind == "page" && s.version.Load() == 1:
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	case kind == "page":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<nav>Home</nav><article><p>The page of %s.</p><p>%s</p></article>", name,
			strings.Repeat("Text, and more of it than the feed has. ", 30))
	default:
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(enclosure(name)))
	}
}

// enclosure returns the content of an enclosure.
func enclosure(name string) string { return strings.Repeat(name+"-", 60_000) }

// document returns a feed. In the second version one entry has changed, one is gone and two are
// new.
func document(path string, version int) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		`<rss version="2.0"><channel><title>Feed %s, version %d</title><link>http://feed.example%s</link><description>A feed</description>`, path, version, path)
	item := func(n int, title string) {
		fmt.Fprintf(&b,
			`<item><title>%s</title><guid isPermaLink="false">%s-%d</guid><link>http://feed.example%s/%d</link>`+
				`<pubDate>Mon, 0%d Jun 2026 10:00:00 GMT</pubDate><category>a</category><description>%s %s</description></item>`,
			title, path, n, path, n, n, title, strings.Repeat("text ", 40))
	}
	if version == 2 {
		item(5, "Fifth")
		item(4, "Fourth")
		item(2, "Second, changed")
	} else {
		item(2, "Second")
		item(3, "Third")
	}
	item(1, "First")
	b.WriteString(`</channel></rss>`)
	return b.String()
}

// A scenario is a lektor-dir and a command with which faults are tested.
//
//rules:allow a row of a table
type scenario struct {
	name string
	// subscriptions; of three, the first has on-update unread, the second deliver, the third is fetched
	// for the first time
	feeds int
	stdin string
	// command returns the command line to run, and to run again after a fault.
	command func(e *env, dir string) []string
	// more prepares further parts of the lektor-dir.
	more func(e *env, dir string)
	// viewer means that the command is no fetcher: it recovers nothing and keeps no state.
	viewer bool
	// finds means that the viewer itself finds the remaining work.
	finds bool
	// due are feeds that the command subscribes to. A later fetch fetches them when they are due.
	due []int
	// repeated means that the journal has every line many times.
	repeated bool
	// list means that the command changes the subscriptions.
	list bool
	// once means that the command ends the subscription to the first feed, and fails if it runs
	// again after that.
	once bool
	// undo means that the command takes back the last command. After a power cut, fewer lines of
	// the journal than renames may exist, so that undo cannot continue.
	undo bool
	// purge means that the command removes the first feed with all its entries. Afterwards the
	// feed is added again in any case.
	purge bool
	// pages means that entries get the articles of their pages.
	pages bool
	// saves are the names of the enclosures that the command saves below [savedIn].
	saves []string
	// shares means that the command follows another machine, whose documents are in [meeting].
	shares bool
}

// env is the environment of all scenarios.
type env struct {
	fetch, view, share string
	work               string
	place              string          // working directory of the programs
	volume             *gluster.Volume // the GlusterFS volume of place, or nil
	server             *server
	serial             atomic.Int64
}

func newEnv(work string) (*env, error) {
	e := &env{fetch: filepath.Join(work, "lektor-fetch"), view: filepath.Join(work, "lektor-view"),
		share: filepath.Join(work, "lektor-share"), work: work, place: work, server: serve()}
	return e, testdir.Programs(work, "lektor-fetch", "lektor-view", "lektor-share", "lektor-article", "lektor-serve")
}

func (e *env) url(i int) string { return fmt.Sprintf("%s/%d", e.server.URL, i) }

// list returns a list of subscriptions.
func (e *env) list(feeds ...int) string {
	var b strings.Builder
	b.WriteString(`<opml version="2.0"><body>`)
	for _, i := range feeds {
		fmt.Fprintf(&b, `<outline type="rss" text="Feed" xmlUrl="%s"/>`, e.url(i))
	}
	b.WriteString(`</body></opml>`)
	return b.String()
}

func (e *env) update(*env, string) []string {
	return []string{e.fetch, "update", "-a", "-o", "path", "--gap", "1ms", "--per-host", "4"}
}

// purge removes the first feed, and add subscribes to it.
func (e *env) purge(*env, string) []string { return []string{e.fetch, "rm", "--purge", e.url(0)} }
func (e *env) add(*env, string) []string   { return []string{e.fetch, "add", e.url(0)} }

func feedHash(id string) string { return testdir.Hash(id) }

// run runs a command without faults.
func (e *env) run(ctx context.Context, dir, stdin string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return err
}

// scenarios returns all scenarios.
//
//rules:allow a table
func scenarios(e *env) []scenario {
	entries := func(dir string) []string {
		var paths []string
		for _, x := range read(dir) {
			paths = append(paths, x.Unique)
		}
		slices.Sort(paths)
		return paths
	}
	return []scenario{
		{name: "fetch, a few", feeds: 1, command: e.update},
		{name: "fetch, many", feeds: 5, command: e.update},
		{name: "deliver", feeds: 1, stdin: document("/0", 2), command: func(e *env, _ string) []string {
			return []string{e.fetch, "deliver", "-o", "path", "--id", e.url(0)}
		}},
		{name: "put", feeds: 1, stdin: "text", command: func(e *env, _ string) []string {
			return []string{e.fetch, "put", "--feed-id", "urn:x:notes", "--id", "urn:x:1", "--title", "A note",
				"--date", "@1780000000"}
		}},
		{name: "compaction", feeds: 1, repeated: true, command: e.update, more: func(e *env, dir string) {
			path := filepath.Join(dir, "src", feedHash(e.url(0)), "etc/fetch/seen")
			must.Do(os.WriteFile(path, bytes.Repeat(must.Get(os.ReadFile(path)), 300), 0o666))
		}},
		{name: "recovery", feeds: 1, command: e.update, more: interrupt(e.update, func(o op, _ int) bool {
			return o.Kind == "rename" && (strings.HasPrefix(o.From, "tmp/") || strings.HasPrefix(o.From, "new/"))
		})},
		{name: "recovery of a recorded replacement", feeds: 1, command: e.update,
			more: interrupt(e.update, func(o op, _ int) bool {
				return o.Kind == "write" && strings.HasSuffix(o.Path, ";replaces")
			})},
		{name: "recovery of two versions", feeds: 1, command: e.update,
			more: interrupt(e.update, func(o op, _ int) bool {
				return o.Kind == "rename" && strings.HasSuffix(o.Path, ";gone,R")
			})},
		{name: "recovery of a replacement", feeds: 1, command: e.update,
			more: interrupt(e.update, func(_ op, put int) bool {
				return put > 0
			})},
		{name: "recovery of an older program's replacement", feeds: 1, command: e.update, more: putAside(e)},
		{name: "add", feeds: 1, list: true, due: []int{2}, command: func(e *env, _ string) []string {
			return []string{e.fetch, "add", e.url(2)}
		}},
		{name: "purge, then add", feeds: 1, purge: true, command: e.purge},
		{name: "add after a killed purge", feeds: 1, due: []int{0}, command: e.add,
			more: interrupt(e.purge, func(o op, _ int) bool {
				return o.Kind == "unlink" && strings.HasPrefix(o.Path, "src/")
			})},
		{name: "set", feeds: 1, list: true, command: func(e *env, _ string) []string {
			return []string{e.fetch, "set", e.url(0), "interval", "4h"}
		}},
		{name: "import", feeds: 1, list: true, due: []int{2}, stdin: e.list(0, 2),
			command: func(e *env, _ string) []string {
				return []string{e.fetch, "import", "-"}
			}},
		{name: "mark", feeds: 3, viewer: true, command: func(e *env, dir string) []string {
			return append([]string{e.view, "mark", "--set", "S"}, entries(dir)...)
		}},
		{name: "rm", feeds: 3, viewer: true, command: func(e *env, dir string) []string {
			return append([]string{e.view, "rm", "--now"}, entries(dir)...)
		}},
		{name: "expire", feeds: 3, viewer: true, finds: true, more: func(e *env, dir string) {
			// One entry of each feed was trashed, the other is read or unread.
			must.Do(e.run(context.Background(), dir, "", append([]string{e.view, "rm"}, entries(dir)[1:]...)...))
		}, command: func(e *env, _ string) []string {
			return []string{e.view, "expire", "--read", "now", "--trashed", "now"}
		}},
		{name: "rules", feeds: 3, viewer: true, finds: true, more: func(e *env, dir string) {
			path := filepath.Join(dir, "etc/view/rules")
			must.Do(os.MkdirAll(filepath.Dir(path), 0o755))
			must.Do(os.WriteFile(path,
				[]byte("title:second -> read, flag Fz, run true\ntitle:second -> run test -n {{.path}}\nnot:title:second -> trash\n"), 0o644))
		}, command: func(e *env, _ string) []string { return []string{e.view, "rules", "apply"} }},
		{name: "undo", feeds: 1, viewer: true, undo: true, more: func(e *env, dir string) {
			must.Do(e.run(context.Background(), dir, "", append([]string{e.view, "rm"}, entries(dir)...)...))
		}, command: func(e *env, _ string) []string { return []string{e.view, "undo"} }},
		{name: "save", feeds: 1, viewer: true, finds: true, saves: []string{"1", "2", "3"},
			more: func(e *env, dir string) {
				for _, name := range []string{"1", "2", "3"} {
					must.Do(e.run(context.Background(), dir, "text", e.fetch, "put", "--feed-id", "urn:x:cast", "--id",
						"urn:x:"+name, "--title", "Part", "--date", "@1780000000",
						"--enclosure", e.server.URL+"/enclosure/"+name+" audio/mpeg"))
				}
			}, command: func(e *env, dir string) []string {
				return []string{e.view, "save", "--gap", "1ms", "--allow", "127.0.0.0/8", "--query", "has:enclosure",
					filepath.Join(dir, savedIn)}
			}},
		{name: "full text", feeds: 1, pages: true, more: func(e *env, dir string) {
			run := func(argv ...string) {
				must.Do(e.run(context.Background(), dir, "", append([]string{e.fetch}, argv...)...))
			}
			run("set", e.url(0), "filter", "sed 's,http://feed.example,"+e.server.URL+"/page,g'")
			run("set", e.url(0), "fulltext", "on")
			// These entries were delivered without their pages, which exist now.
			run("update", "--fulltext", "--gap", "1ms", e.url(0))
		}, command: func(e *env, _ string) []string {
			return []string{e.fetch, "update", "--gap", "1ms", "--per-host", "4", e.url(0)}
		}},
		{name: "share sync", feeds: 2, shares: true, more: sharing, command: syncShared},
	}
}

// listScenarios returns further scenarios that change the subscriptions.
func listScenarios(e *env) []scenario {
	set := func(args ...string) func(*env, string) []string {
		return func(e *env, _ string) []string { return append([]string{e.fetch, "set"}, args...) }
	}
	given := func(e *env, dir string) {
		for _, setting := range [][]string{
			{"alias", "An alias"}, {"categories", "one", "two"}, {"interval", "3h"}, {"headers", "X-Test: one"},
		} {
			must.Do(e.run(context.Background(), dir, "", append([]string{e.fetch, "set", e.url(0)}, setting...)...))
		}
	}
	u := e.url(0)
	return []scenario{
		{name: "set alias", feeds: 1, list: true, command: set(u, "alias", "An alias")},
		{name: "set categories", feeds: 1, list: true, command: set(u, "categories", "three", "four"), more: given},
		{name: "set headers", feeds: 1, list: true, command: set(u, "headers", "X-Test: two")},
		{name: "set url", feeds: 1, list: true, command: set(u, "url", e.url(3))},
		{name: "unset interval", feeds: 1, list: true, command: set("--unset", u, "interval"), more: given},
		{name: "unset alias", feeds: 1, list: true, command: set("--unset", u, "alias"), more: given},
		{name: "unset categories", feeds: 1, list: true, command: set("--unset", u, "categories"), more: given},
		{name: "rm of a feed", feeds: 2, list: true, once: true, more: given, command: func(e *env, _ string) []string {
			return []string{e.fetch, "rm", u}
		}},
	}
}

// interrupt prepares a lektor-dir by a command that is killed before the first call for which
// when returns true. put is the number of renames before that put an old version aside.
func interrupt(command func(*env, string) []string, when func(o op, put int) bool) func(e *env, dir string) {
	return func(e *env, dir string) {
		e.server.version.Store(2)
		put := 0
		o := must.Get(supervise(context.Background(), dir, false, "", func(_ int, o op) verdict {
			v := verdict{kill: when(o, put)}
			if o.Kind == "rename" && strings.Contains(o.Path, ";gone") {
				put++
			}
			return v
		}, command(e, dir)...))
		if o.status != -1 {
			must.Fail("there was nothing to interrupt")
		}
	}
}

// putAside prepares a lektor-dir in which a replacement is staged and in the journal. The old
// version is put aside without a record, as after a kill of an older program.
func putAside(e *env) func(e *env, dir string) {
	killAtRecord := interrupt(e.update, func(o op, _ int) bool {
		return o.Kind == "create" &&
			strings.HasSuffix(o.Path, ";replaces")
	})
	return func(e *env, path string) {
		killAtRecord(e, path)
		put := 0
		for _, path := range must.Get(filepath.Glob(filepath.Join(path, "tmp/*/*/extras"))) {
			_, old := testdir.TakeReplaces(string(must.Get(os.ReadFile(path))))
			if old == "" {
				continue
			}
			tmp := filepath.Dir(filepath.Dir(path))
			must.Do(os.Rename(filepath.Join(tmp, "../../new", filepath.Base(tmp), old),
				filepath.Join(tmp, old+";gone,R")))
			put++
		}
		if put == 0 {
			must.Fail("there was nothing to put aside")
		}
	}
}

// prepare makes the initial lektor-dir of a scenario.
func (e *env) prepare(ctx context.Context, s scenario, dir string) {
	e.server.version.Store(1)
	defer e.server.version.Store(2)
	must.Do(os.MkdirAll(dir, 0o777))
	fetched := []string{e.fetch, "update", "--gap", "1ms", "--per-host", "4"}
	var feeds []int
	for i := range s.feeds {
		feeds = append(feeds, i)
		if i%3 != 2 {
			fetched = append(fetched, e.url(i))
		}
	}
	must.Do(e.run(ctx, dir, e.list(feeds...), e.fetch, "import", "-"))
	must.Do(e.run(ctx, dir, "", fetched...))
	for i := range s.feeds {
		if i%3 == 1 {
			must.Do(e.run(ctx, dir, "", e.fetch, "set", e.url(i), "on-update", "deliver"))
		}
	}
	for _, x := range read(dir) {
		switch {
		case x.Files["title"] == "Third\n", x.Files["title"] == "Second\n" && x.Feed == feedHash(e.url(1)):
			must.Do(e.run(ctx, dir, "", e.view, "mark", "--set", "S", x.Unique))
		case x.Files["title"] == "First\n":
			must.Do(e.run(ctx, dir, "", e.view, "rm", "--now", x.Unique))
		}
	}
	if s.more != nil {
		s.more(e, dir)
	}
}

// entry is an entry of a lektor-dir, read without the code of lektor.
type entry struct{ testdir.Entry }

// key identifies an entry by everything except its name.
func (x *entry) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s/%s", x.Place, x.Feed, x.Flags)
	for _, name := range slices.Sorted(maps.Keys(x.Files)) {
		data := x.Files[name]
		if name == "extras" {
			var replaces string
			if data, replaces = testdir.TakeReplaces(data); replaces != "" {
				fmt.Fprintf(&b, " replaces=%q", lektordir.Ref{Unique: replaces}.Identity())
			}
			if data == "" {
				continue
			}
		}
		fmt.Fprintf(&b, " %s=%q", name, data)
	}
	return b.String()
}

// id identifies an entry in all its versions.
func (x *entry) id() string { return x.Feed + " " + strings.TrimSpace(x.Files["id"]) }

func (x *entry) String() string {
	return fmt.Sprintf("%s/%s/%s%s %q", x.Place, x.Feed, x.Unique, x.Flags, x.Files["title"])
}

// read reads all entries of a lektor-dir without the code of lektor.
func read(path string) []*entry {
	var all []*entry
	for _, e := range must.Get(testdir.Entries(path)) {
		all = append(all, &entry{*e})
	}
	return all
}

func counted(all []*entry) map[string]int {
	n := map[string]int{}
	for _, x := range all {
		n[x.key()]++
	}
	return n
}

// differ returns the differences of two sets of entries.
func differ(got, want map[string]int) error {
	var bad []error
	for k, n := range want {
		if got[k] < n {
			bad = append(bad, fmt.Errorf("missing (%d of %d): %.300s", got[k], n, k))
		}
	}
	for k, n := range got {
		if n > want[k] {
			bad = append(bad, fmt.Errorf("too many (%d, not %d): %.300s", n, want[k], k))
		}
	}
	return errors.Join(bad...)
}

// state reads all other files in src/ and etc/, except journals and times.
func state(path string) map[string]string {
	all := map[string]string{}
	for _, top := range []string{"src", "etc"} {
		for name, data := range must.Get(testdir.Files(filepath.Join(path, top))) {
			switch name = top + "/" + name; {
			case filepath.Base(name) == "seen", strings.HasPrefix(name, "etc/view/"), name == "etc/fetch/date":
			case strings.HasSuffix(name, "/etc/fetch/properties"): // not synced; without it, entries are read
			case strings.HasSuffix(name, "/etc/fetch/origin"):
				all[name] = "" // it names a peer by its path, or after a kill only says that it was one
			case strings.HasPrefix(name, "etc/fetch/lock/"):
				all[name] = "" // its size is that of the journal
			case strings.HasPrefix(name, "etc/fetch/pages/"): // a cache; its effect on entries is checked
			case strings.HasPrefix(name, "etc/share/"), strings.HasPrefix(name, meeting+"/"):
				if data, ok := timeless(name, data); ok {
					all[name] = data
				}
			case filepath.Base(name) == "status" && data == "304\n":
				all[name] = "200\n" // both values are valid
			default:
				all[name] = data
			}
		}
	}
	documents(all, path)
	return all
}

func differState(got, want map[string]string) error {
	var bad []error
	for name, data := range want {
		// Readers remove the newline, which a power cut may have lost.
		if g, ok := got[name]; !ok || g != data && g+"\n" != data {
			bad = append(bad, fmt.Errorf("%s is %q (there: %v), not %q", name, g, ok, data))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			// A temporary file of a kill, see package atomicfile.
			if strings.HasPrefix(filepath.Base(name), ".") {
				continue
			}
			bad = append(bad, fmt.Errorf("%s is left", name))
		}
	}
	return errors.Join(bad...)
}

// journals counts, for each feed, the lines of each identity and version.
func journals(dir string) map[string]int {
	n := map[string]int{}
	for hash, lines := range readJournals(dir) {
		for _, l := range lines {
			n["src/"+hash+" "+l.identity+" "+l.content]++
		}
	}
	return n
}

// copyTree copies a lektor-dir with its times.
func copyTree(from, to string) { readVolume(from).write(to) }

// errnos are the errors that calls return.
var errnos = []unix.Errno{unix.ENOSPC, unix.EIO, unix.EDQUOT, unix.EACCES, unix.EMFILE}
