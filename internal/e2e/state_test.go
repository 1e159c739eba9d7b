package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The private files of each program, as testdata/versions/VERSION.state.tar.gz holds them:
//
//	a b        two lektor-dirs that share the directory shared; a has the journal of undo,
//	           rules that have run, and a feed whose archives it has
//	publisher  a lektor-dir that publishes to www/h with archives
//	mail       the maildir of a, from which one message was deleted
//	hub        a hub with a subscriber of each protocol, an interrupted round and a late ping
//	www        what the server of the feeds has
//	was        what the programs printed of it
//
// Programs of a version in BIN write them with
//
//	LEKTOR_PROGRAMS=BIN LEKTOR_MAKE_STATE=$PWD/VERSION.state.tar.gz go test -run TestState ./internal/e2e
//
// The addresses are in the files, so the server and the hub are always at these two.
const (
	stateServer = "127.83.24.5:18324"
	stateHub    = "127.83.24.5:18325"
	stateSite   = "http://" + stateServer
)

// stateHouse is a directory with these files, and the programs and the server that work on it.
type stateHouse struct {
	t    *testing.T
	bin  string
	root string

	mu    sync.Mutex
	calls map[string]int    // notifications by path; requests of documents by path
	fail  map[string]bool   // paths that are answered with 503
	body  map[string]string // body of the last notification, by path
}

// serveState serves the feeds in www, and answers for subscribers below /cb/.
func serveState(t *testing.T, h *stateHouse) {
	t.Helper()
	var l net.Listener
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if l, err = net.Listen("tcp", stateServer); !errors.Is(err, syscall.EADDRINUSE) { // by another run of this test
			break
		}
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skip("needs all addresses of 127.0.0.0/8: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if c := r.FormValue("hub.challenge") + r.FormValue("challenge"); r.Method == http.MethodGet && c != "" {
			io.WriteString(w, c)
			return
		}
		h.mu.Lock()
		h.calls[r.URL.Path]++
		h.body[r.URL.Path] = string(body)
		fail := h.fail[r.URL.Path]
		h.mu.Unlock()
		switch {
		case fail:
			w.WriteHeader(http.StatusServiceUnavailable)
		case !strings.HasPrefix(r.URL.Path, "/cb/"):
			http.ServeFile(w, r, filepath.Join(h.root, "www", filepath.FromSlash(path.Clean(r.URL.Path))))
		}
	})}}
	s.Start()
	t.Cleanup(s.Close)
}

// called returns the number of requests of each path since the last call.
func (h *stateHouse) called(prefix string) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for p, n := range h.calls {
		if strings.HasPrefix(p, prefix) {
			out[p] = n
		}
	}
	h.calls = map[string]int{}
	return out
}

// refuse sets the paths that are answered with 503.
func (h *stateHouse) refuse(paths ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = map[string]bool{}
	for _, p := range paths {
		h.fail[p] = true
	}
}

func (h *stateHouse) file(elem ...string) string {
	return filepath.Join(append([]string{h.root}, elem...)...)
}

// on runs a program in a lektor-dir and returns its output. The exit status must be 0.
func (h *stateHouse) on(dir, stdin, program string, args ...string) string {
	h.t.Helper()
	cmd := exec.Command(filepath.Join(h.bin, program), args...)
	cmd.Dir = h.root
	cmd.Env = append(os.Environ(), "LEKTORDIR="+h.file(dir), "XDG_CACHE_HOME="+h.file("cache"), "TZ=UTC", "no_proxy=*", "GORACE=atexit_sleep_ms=0")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%s %q in %s: %v\n%s", program, args, dir, err, &stderr)
	}
	return string(out)
}

func (h *stateHouse) fetch(dir string, args ...string) string {
	h.t.Helper()
	return h.on(dir, "", "lektor-fetch", append([]string{"--gap", "0", "--allow", "127.83.24.5"}, args...)...)
}

func (h *stateHouse) sync(dir string) {
	h.t.Helper()
	h.on(dir, "", "lektor-share", "sync", "-q", "--allow", "127.0.0.0/8")
}

// listed returns the ids and flags of all entries, sorted.
func (h *stateHouse) listed(dir string) string {
	h.t.Helper()
	return sorted(h.on(dir, "", "lektor-view", "ls", "-a", "-o", "{{.id}} {{.flags}}", "is:trashed or not:is:trashed"))
}

func sorted(lines string) string {
	return strings.Join(slices.Sorted(strings.Lines(lines)), "")
}

// mark runs a command of lektor-view on the entries with these ids.
func (h *stateHouse) mark(dir string, ids []string, args ...string) {
	h.t.Helper()
	var paths strings.Builder
	for _, id := range ids {
		p := h.on(dir, "", "lektor-view", "ls", "-a", "-o", "{{.path}}", "id:"+id)
		if strings.Count(p, "\n") != 1 {
			h.t.Fatalf("the entry %s of %s is %q", id, dir, p)
		}
		paths.WriteString(p)
	}
	h.on(dir, paths.String(), "lektor-view", append(args, "-")...)
}

func (h *stateHouse) write(text string, elem ...string) {
	h.t.Helper()
	writeFile(h.t, h.file(elem...), text)
}

func (h *stateHouse) same(what, got, want string) {
	h.t.Helper()
	if got != want {
		h.t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// stateFeed returns a document with the entries of a range of numbers. Odd entries have the
// category plants.
func stateFeed(name string, from, to int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<rss version=\"2.0\"><channel><title>Feed %s</title>", name)
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `<item><title>Entry %s%d</title><guid isPermaLink="false">urn:%[1]s:%[2]d</guid><link>http://x.example/%[1]s%[2]d</link>`+
			`<pubDate>%[3]s</pubDate><description>Text %[2]d</description>%[4]s</item>`, name, i,
			time.Date(2026, 11, 1, i, 0, 0, 0, time.UTC).Format(time.RFC1123), []string{"", "<category>plants</category>"}[i%2])
	}
	return b.String() + "</channel></rss>"
}

// startHub runs the hub until it answers; stop kills it at once.
func (h *stateHouse) startHub() (stop func()) {
	h.t.Helper()
	cmd := exec.Command(filepath.Join(h.bin, "lektor-cloudd"), "hub", "--listen", stateHub, "--public-url", "http://"+stateHub,
		"--state", h.file("hub"), "--htpasswd", h.file("users"), "--allow-feeds", "127.0.0.0/8", "--allow-callbacks", "127.0.0.0/8")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := false
	stop = func() {
		if !ended {
			cmd.Process.Kill()
			cmd.Wait()
		}
		ended = true
	}
	h.t.Cleanup(stop)
	h.await("the hub to answer", func() bool {
		resp, err := http.Get("http://" + stateHub + "/")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return stop
}

func (h *stateHouse) await(what string, is func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(h.file("hub", "log"))
			h.t.Fatalf("waited 30s for %s; the log of the hub:\n%s", what, log)
		}
	}
}

func (h *stateHouse) post(to string, form ...string) {
	h.t.Helper()
	q := url.Values{}
	for i := 0; i < len(form); i += 2 {
		q.Set(form[i], form[i+1])
	}
	resp, err := http.PostForm("http://"+stateHub+to, q)
	if err != nil {
		h.t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode >= 300 || strings.Contains(string(text), `success="false"`) {
		h.t.Fatalf("got %s %q: %s %s; want resp.StatusCode < 300 and !strings.Contains(string(text), `success=\"false\"`)", to, form, resp.Status, text)
	}
}

func (h *stateHouse) count(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[path]
}

// make writes the directory.
func (h *stateHouse) make() {
	h.write(stateFeed("a", 0, 8), "www", "a.xml")
	h.write(stateFeed("b", 0, 5), "www", "b.xml")
	h.on("publisher", stateFeed("h", 0, 95), "lektor-fetch", "deliver", "--id", "urn:h")
	h.on("publisher", "", "lektor-view", "publish", "--archive", h.file("www", "h"), "--per-page", "10", "--self", stateSite+"/h/index.atom")
	h.fetch("a", "add", "--as-is", stateSite+"/a.xml")
	h.fetch("a", "add", "--as-is", stateSite+"/b.xml")
	h.fetch("a", "add", "--as-is", "--history", stateSite+"/h/index.atom")
	h.write("category:plants -> flag k\n", "a", "etc", "view", "rules")
	h.on("a", "", "lektor-view", "rules", "apply")
	h.on("a", "", "lektor-pages", "maildir", "--query", "id:/^urn:[ab]:/", h.file("mail"))
	gone := glob(h.t, h.root, "mail", "[nc]*", "*")
	if len(gone) != 13 {
		h.t.Fatalf("%d messages, want 13", len(gone))
	}
	if err := os.Remove(gone[0]); err != nil {
		h.t.Fatal(err)
	}

	for _, m := range []string{"a", "b"} {
		h.on(m, "", "lektor-share", "init", "--name", m, h.file("shared"))
		h.sync(m)
	}
	h.fetch("b", "update", "-a")
	h.fetch("b", "history", stateSite+"/h/index.atom")
	h.mark("a", []string{"urn:a:0", "urn:a:2"}, "mark", "--set", "S")
	for _, m := range []string{"a", "b"} { // concurrently, which makes a conflict
		h.fetch(m, "set", stateSite+"/b.xml", "alias", "As "+m+" has it")
	}
	for _, m := range []string{"a", "b", "a"} {
		h.sync(m)
	}
	h.write(h.on("a", "", "lektor-share", "conflicts", "-o", "item,kind,ours,theirs"), "was", "conflicts")
	if read(h.t, h.root, "was", "conflicts") == "" {
		h.t.Fatal("there is no conflict")
	}
	h.mark("b", []string{"urn:b:4"}, "mark", "--set", "z") // published, and not read by a
	h.sync("b")
	h.mark("b", []string{"urn:b:2"}, "mark", "--set", "F") // not yet published
	for i, command := range [][]string{{"mark", "--set", "F"}, {"mark", "--set", "S"}, {"rm"}} {
		h.write(h.listed("a"), "was", fmt.Sprint("before", i))
		h.mark("a", []string{fmt.Sprint("urn:h:", 10+i), fmt.Sprint("urn:b:", i), "urn:a:4"}, command...)
	}
	h.write(h.listed("a"), "was", "a")
	h.write(h.listed("b"), "was", "b")

	h.write("bull:$2a$04$6pXfRRhBEqxtahKzfgT8x.S.YY2PXnDxYAsl0BAoyjNHNXfpFXVp6\n", "users")
	stop := h.startHub()
	cmd := exec.Command(filepath.Join(h.bin, "lektor-cloudd"), "save", "--allow", "127.0.0.0/8", "--cloud", "http://"+stateHub+"/RPC2", "--user", "bull", h.file("www", "b.xml"))
	cmd.Env = append(os.Environ(), "LEKTOR_CLOUD_PASSWORD=secret", "LEKTORDIR="+h.file("a"))
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("save: %v\n%s", err, out)
	}
	host, port, _ := net.SplitHostPort(stateServer)
	for _, cb := range []string{"/cb/rest", "/cb/deaf"} {
		h.post("/pleaseNotify", "url1", stateSite+"/a.xml", "domain", host, "port", port, "path", cb, "protocol", "http-post")
	}
	for _, feed := range []string{"a", "b"} {
		h.post("/websub", "hub.mode", "subscribe", "hub.topic", stateSite+"/"+feed+".xml", "hub.callback", stateSite+"/cb/websub/"+feed, "hub.secret", "secret")
	}
	h.await("four subscriptions", func() bool { return len(glob(h.t, h.root, "hub", "feeds", "*", "*", "subs", "*")) == 4 })
	h.refuse("/cb/deaf", "/b.xml")
	h.write(stateFeed("a", 0, 9), "www", "a.xml")
	h.post("/ping", "url", stateSite+"/a.xml")
	h.post("/websub", "hub.mode", "publish", "hub.url", stateSite+"/b.xml")
	h.await("a round and a ping to be left", func() bool {
		return h.count("/cb/rest") == 1 && h.count("/cb/websub/a") == 1 && h.count("/cb/deaf") == 1 && h.count("/b.xml") > 0 &&
			strings.Contains(read(h.t, h.root, "hub", "log"), "/b.xml") && strings.Contains(read(h.t, h.root, "hub", "jobs"), "\tping\t")
	})
	time.Sleep(time.Second) // the results of the attempts are on the disk
	stop()
}

// TestState: current programs continue with the private files of an older version. Nothing is
// done twice, and nothing is lost.
func TestState(t *testing.T) {
	bin := build(t)
	// run is a subtest with a fresh copy of the directory.
	run := func(t *testing.T, name, archive string, f func(h *stateHouse)) {
		t.Run(name, func(t *testing.T) {
			h := &stateHouse{t: t, bin: bin, root: t.TempDir(), calls: map[string]int{}, fail: map[string]bool{}, body: map[string]string{}}
			serveState(t, h)
			if archive != "" {
				unpackState(t, archive, h.root)
				for _, m := range []string{"a", "b"} { // the copied lektor-dir has another inode number
					h.write(h.file("shared")+"\n", m, "etc", "share", "target")
					for _, f := range glob(t, h.file(m), "etc", "view", "undo", "0.*") {
						if err := os.Rename(f, filepath.Join(filepath.Dir(f), fmt.Sprint(os.Getuid(), filepath.Ext(f)))); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			f(h)
		})
	}
	if to := os.Getenv("LEKTOR_MAKE_STATE"); to != "" {
		run(t, "make", "", func(h *stateHouse) {
			h.make()
			packState(t, h.root, to)
		})
		return
	}
	archives, err := filepath.Glob("testdata/versions/*.state.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("archives of states: %q, error %v; want at least one", archives, err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".state.tar.gz"), func(t *testing.T) {
			run(t, "as it was", archive, func(h *stateHouse) {
				for _, dir := range []string{"a", "b"} {
					h.same("the entries of "+dir, h.listed(dir), read(t, h.root, "was", dir))
					h.same("check of "+dir, h.fetch(dir, "check"), "")
				}
			})
			run(t, "undo", archive, stateUndo)
			run(t, "rules", archive, stateRules)
			run(t, "mail", archive, stateMail)
			run(t, "archives", archive, stateArchives)
			run(t, "publisher", archive, statePublisher)
			run(t, "share", archive, stateShare)
			run(t, "hub", archive, stateHubs)
		})
	}
}

func stateUndo(h *stateHouse) {
	for i := 2; i >= 0; i-- {
		if n := strings.Count(h.on("a", "", "lektor-view", "undo"), "\n"); n != 3 {
			h.t.Errorf("undo took back %d entries of 'before%d', want 3", n, i)
		}
		h.same("after undo", h.listed("a"), read(h.t, h.root, "was", fmt.Sprint("before", i)))
	}
}

func stateRules(h *stateHouse) {
	h.write("has:link or not:has:link -> trash\n", "a", "etc", "view", "rules")
	h.same("rules for what they looked at", h.on("a", "", "lektor-view", "rules", "apply"), "")
	h.same("entries after rules", h.listed("a"), read(h.t, h.root, "was", "a"))
	h.on("a", stateFeed("a", 0, 10), "lektor-fetch", "deliver", "--id", stateSite+"/a.xml")
	if n := strings.Count(h.on("a", "", "lektor-view", "rules", "apply"), "\n"); n != 2 {
		h.t.Errorf("rules were for %d arrivals, want 2", n)
	}
}

func stateMail(h *stateHouse) {
	mail := func() string {
		return h.on("a", "", "lektor-pages", "maildir", "--query", "id:/^urn:[ab]:/", "-o", "title", h.file("mail"))
	}
	h.same("mailed again", mail(), "")
	h.on("a", stateFeed("b", 0, 6), "lektor-fetch", "deliver", "--id", stateSite+"/b.xml")
	h.same("mailed of a new entry", mail(), "Entry b5\n")
	if n := len(glob(h.t, h.root, "mail", "[nc]*", "*")); n != 13 {
		h.t.Errorf("%d messages, want 13", n)
	}
}

func stateArchives(h *stateHouse) {
	h.on("publisher", stateFeed("h", 90, 98), "lektor-fetch", "deliver", "--id", "urn:h")
	h.on("publisher", "", "lektor-view", "publish", "--archive", h.file("www", "h"), "--per-page", "10", "--self", stateSite+"/h/index.atom")
	if n := strings.Count(h.fetch("a", "update", "-o", "title", stateSite+"/h/index.atom"), "\n"); n != 3 {
		h.t.Errorf("%d new entries, want 3", n)
	}
	h.fetch("a", "history", stateSite+"/h/index.atom")
	for p, n := range h.called("/h/archive") {
		h.t.Errorf("%s was fetched %d times, want none", p, n)
	}
	if n := strings.Count(h.listed("a"), "urn:h:"); n != 98 {
		h.t.Errorf("%d entries with archives, want 98", n)
	}
}

func statePublisher(h *stateHouse) {
	next := regexp.MustCompile(`\s*<link rel="next-archive"[^>]*>`)
	texts := func() map[string]string {
		out := map[string]string{}
		for _, f := range glob(h.t, h.root, "www", "h", "archive-*") {
			out[filepath.Base(f)] = next.ReplaceAllString(read(h.t, f), "")
		}
		return out
	}
	was := texts()
	h.on("publisher", stateFeed("h", 90, 115), "lektor-fetch", "deliver", "--id", "urn:h")
	h.on("publisher", "", "lektor-view", "publish", "--archive", h.file("www", "h"), "--per-page", "10", "--self", stateSite+"/h/index.atom")
	now := texts()
	if len(now) <= len(was) {
		h.t.Errorf("%d archives, want more than %d", len(now), len(was))
	}
	seen := map[string]int{}
	for name, text := range now {
		if w, ok := was[name]; ok && w != text {
			h.t.Errorf("the archive %s changed", name)
		}
		for _, id := range regexp.MustCompile(`<id>(urn:h:\d+)</id>`).FindAllString(text, -1) {
			seen[id]++
		}
	}
	for id, n := range seen {
		if n != 1 {
			h.t.Errorf("%s is in %d archives, want 1", id, n)
		}
	}
	h.fetch("a", "history", stateSite+"/h/index.atom")
	if n := strings.Count(h.listed("a"), "urn:h:"); n != 115 {
		h.t.Errorf("the subscriber has %d entries, want 115", n)
	}
}

func stateShare(h *stateHouse) {
	marks := func(dir string) map[string]string {
		out := map[string]string{}
		for line := range strings.Lines(h.listed(dir)) {
			id, flags, _ := strings.Cut(strings.TrimSpace(line), " ")
			out[id] = flags
		}
		return out
	}
	want := marks("a") // including the changes made on b
	want["urn:b:4"], want["urn:b:2"] = merged(want["urn:b:4"], "z"), merged(want["urn:b:2"], "F")
	for range 2 {
		for _, m := range []string{"a", "b"} {
			h.sync(m)
		}
	}
	for _, m := range []string{"a", "b"} {
		if got := marks(m); !maps.Equal(got, want) {
			h.t.Errorf("the marks of %s are\n%v, want\n%v", m, got, want)
		}
		for _, doc := range glob(h.t, h.root, "shared", "*", "*.*") {
			if got := h.on(m, "", "lektor-share", "check", doc); !strings.HasSuffix(got, " 0 problems\n") {
				h.t.Errorf("check: %s", got)
			}
			ids := regexp.MustCompile(`<sx:sync id="([^"]*)"`).FindAllString(read(h.t, doc), -1)
			if slices.Sort(ids); len(slices.Compact(slices.Clone(ids))) != len(ids) {
				h.t.Errorf("%s has an item twice", doc)
			}
		}
		h.same("conflicts", h.on(m, "", "lektor-share", "conflicts", "-o", "item,kind"), h.firstFields())
	}
	h.same("subscriptions of b", h.fetch("b", "export"), h.fetch("a", "export"))
	h.on("a", "", "lektor-share", "resolve", "--all", "theirs")
	for _, m := range []string{"a", "b", "a"} {
		h.sync(m)
	}
	for _, m := range []string{"a", "b"} {
		h.same("conflicts after resolve", h.on(m, "", "lektor-share", "conflicts"), "")
	}
	before := h.documents()
	for _, m := range []string{"a", "b"} {
		h.sync(m)
	}
	if !maps.Equal(h.documents(), before) {
		h.t.Error("a sync with nothing to do published another document")
	}
}

// firstFields returns item and kind of each conflict of the older version.
func (h *stateHouse) firstFields() string {
	var b strings.Builder
	for line := range strings.Lines(read(h.t, h.root, "was", "conflicts")) {
		f := strings.SplitN(line, "\t", 3)
		b.WriteString(f[0] + "\t" + f[1] + "\n")
	}
	return b.String()
}

func (h *stateHouse) documents() map[string]string {
	out := map[string]string{}
	for _, doc := range glob(h.t, h.root, "shared", "*", "*") {
		out[doc] = read(h.t, doc)
	}
	return out
}

// merged returns flags with one more, sorted.
func merged(flags, more string) string {
	all := slices.Sorted(slices.Values([]rune(flags + more)))
	return string(slices.Compact(all))
}

func stateHubs(h *stateHouse) {
	expires := regexp.MustCompile(`(?m)^expires\t.*$`)
	subs := glob(h.t, h.root, "hub", "feeds", "*", "*", "subs", "*")
	for _, f := range subs { // leases have expired since; a user may edit them
		text := expires.ReplaceAllString(read(h.t, f), "expires\t"+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	h.write(stateFeed("b", 0, 6), "www", "b.xml")
	stop := h.startHub()
	h.await("the retry and the late ping", func() bool { return h.count("/cb/deaf") > 0 && h.count("/cb/websub/b") > 0 })
	time.Sleep(300 * time.Millisecond) // during which no other subscriber is notified
	h.notified(map[string]int{"/cb/deaf": 1, "/cb/websub/b": 1})
	if !strings.Contains(h.body["/cb/websub/b"], "urn:b:5") {
		h.t.Errorf("the subscriber got %q, want the document of now", h.body["/cb/websub/b"])
	}
	h.write(stateFeed("a", 0, 10), "www", "a.xml")
	h.post("/ping", "url", stateSite+"/a.xml")
	h.await("the round", func() bool { return h.count("/cb/deaf") > 0 && h.count("/cb/rest") > 0 && h.count("/cb/websub/a") > 0 })
	h.notified(map[string]int{"/cb/deaf": 1, "/cb/rest": 1, "/cb/websub/a": 1})
	resp, err := http.Get("http://" + stateHub + "/feeds/bull/rss.xml")
	if err != nil {
		h.t.Fatal(err)
	}
	stored, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(stored), "urn:b:4") {
		h.t.Errorf("the stored feed is %s %q", resp.Status, stored)
	}
	stop()
	if n := len(glob(h.t, h.root, "hub", "feeds", "*", "*", "subs", "*")); n != len(subs) || n != 4 {
		h.t.Errorf("%d subscriptions, want %d", n, 4)
	}
}

// notified compares the notifications since the last call.
func (h *stateHouse) notified(want map[string]int) {
	h.t.Helper()
	if got := h.called("/cb/"); !maps.Equal(got, want) {
		h.t.Errorf("notified: %v, want %v", got, want)
	}
}

// packState writes a directory as an archive with the times of its files, without files that can
// be made again.
func packState(t *testing.T, root, archive string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(root, "cache")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.AddFS(os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(archive, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// unpackState writes the files, links and times of an archive below root.
func unpackState(t *testing.T, archive, root string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	type stamp struct {
		name string
		when time.Time
	}
	var stamps []stamp // set last, as a file changes the time of its directory
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, filepath.FromSlash(head.Name))
		switch head.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, head.FileInfo().Mode().Perm())
		case tar.TypeSymlink:
			err = os.Symlink(head.Linkname, name)
		default:
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, data, head.FileInfo().Mode().Perm())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag != tar.TypeSymlink {
			stamps = append(stamps, stamp{name, head.ModTime})
		}
	}
	for _, s := range slices.Backward(stamps) {
		if err := os.Chtimes(s.name, s.when, s.when); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}
