package sharer

import (
	"cmp"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// trySync syncs, and returns the exit status and the text on standard error, including the
// returned error and its hint.
func (m *machine) trySync() (status int, text string) {
	m.t.Helper()
	s := m.streams()
	err := Sync(m.t.Context(), SyncOptions{Common: m.common()}, s)
	if err != nil && err != error(errRemote) {
		s.Report.Print(err)
	}
	return cmdline.Status(err), m.err.String()
}

// With each kind of server, directories are created without help, and no request is made
// without need. If two machines are the same endpoint, the second to sync detects it before it
// overwrites a document, whether it is the original or the copy.
func TestServers(t *testing.T) {
	for _, as := range servers {
		t.Run(as.name, func(t *testing.T) {
			srv := newDAV(t, as)
			a, b := onServer(t, srv)
			for _, m := range []*machine{a, b} {
				m.subscribe(1, "F")
				for n := range 6 {
					m.deliver(1, n)
				}
			}
			if status, text := a.trySync(); status != 75 || !strings.Contains(text, "published nothing yet") {
				t.Fatalf("%d, %s", status, text)
			}
			a.mark(1, 0, "S", "")
			b.mark(1, 1, "F", "")
			b.subscribe(2)
			rounds(2, b, a)
			same(t, a, b)
			srv.takeLog()
			rounds(1, a, b)
			if got := srv.takeLog(); as.etag != "" && strings.Count(got, "GET ") != strings.Count(got, "304 conditional") || strings.Contains(got, "PUT") {
				t.Errorf("a sync without changes sent %s", got)
			}
			// Each of three edits arrives with few requests. This endpoint's own document is
			// requested conditionally, and not transferred.
			for n := range 3 {
				a.mark(1, 2, string("FSa"[n]), "")
				srv.takeLog()
				a.sync()
				if got := srv.takeLog(); as.etag != "" && strings.Contains(got, "GET a/state.rss 200") || strings.Contains(got, "state-all") {
					t.Errorf("an edit sent %s", got)
				}
				b.sync()
				same(t, a, b)
			}

			c := a.copied("c")
			one, two := a, c
			if as.tagged {
				one, two = c, a
			}
			one.mark(1, 3, "F", "")
			one.sync()
			two.mark(1, 4, "F", "")
			two.subscribe(7)
			srv.takeLog()
			two.syncRefused()
			if got := srv.takeLog(); strings.Contains(got, "PUT") {
				t.Errorf("it overwrote the other machine's documents: %s", got)
			}
			two.renew()
			b.addPeer(srv, two)
			two.addPeer(srv, one)
			one.addPeer(srv, two)
			rounds(1, two)
			rounds(2, b, one, two)
			same(t, a, b, c)
			if s := b.state(); !strings.Contains(s, "0000000100000003 F") || !strings.Contains(s, "0000000100000004 F") || !strings.Contains(s, feedURL(7)) {
				t.Errorf("lost: %s", s)
			}
		})
	}
}

// Errors that a server may return to a PUT: the message says what failed and what to do,
// no edit is lost, and once the server works again, the next sync succeeds.
func TestRefusedByServer(t *testing.T) {
	page := "<!doctype html>\n<html><title>Sign in</title></html>"
	for _, c := range []struct {
		name, method string // method: "" for every method
		document     string // "" for all documents
		status       int
		header, body string
		exit         int
		says         string // a regular expression
	}{
		{"password", "", "", 401, "Www-Authenticate: Basic", "", 1, `401 Unauthorized: the server requires a user and password`},
		{"not allowed", "PUT", "", 403, "", "", 1, "403 Forbidden: this machine may not write there\n.*hint: look at the permissions"},
		{"no directory, no WebDAV", "PUT MKCOL", "", 404, "", "", 1, "404 Not Found: there is no directory for it\n.*hint: make the directory http://.*/dav/a-[0-9a-f]+/ on the server"},
		{"no parent", "PUT MKCOL", "", 409, "", "", 1, "409 Conflict: there is no directory for it\n.*hint: make the directory"},
		{"no PUT", "PUT", "", 405, "Allow: GET, HEAD", "", 1, `405 Method Not Allowed: the server does not accept documents there \(PUT\)` + "\n.*hint: use the address of a WebDAV directory"},
		{"too large", "PUT", completeFile, 413, "", "", 1, "state-all.rss: the server answered 413 Request Entity Too Large: the server does not accept [0-9.,]+ bytes\n.*hint: raise its limit .nginx: client_max_body_size"},
		{"locked", "PUT", subsFile, 423, "", "", 75, "subscriptions.opml: the server answered 423 Locked: the document is locked there; the next sync tries again"},
		{"too often", "PUT", "", 429, "", "", 75, "429 Too Many Requests"},
		{"no PUT, ever", "PUT", "", 501, "", "", 1, "the server does not accept documents there"},
		{"password to read", "GET", "", 401, "Www-Authenticate: Basic", "", 1, "401 Unauthorized: this machine may not read there"},
		{"down to read", "GET", "", 503, "", "", 75, "503 Service Unavailable"},
		{"down", "", "", 503, "", "", 75, "the server answered 503 Service Unavailable\n"},
		{"full", "PUT", "", 507, "", "", 75, "507 Insufficient Storage: the server has no space left; the next sync tries again\n.*hint: free space"},
		{"a login", "PUT", "", 200, "Content-Type: text/html", page, 75, "it is a web page, perhaps one to log in, and nothing was stored\n.*hint: "},
		{"a login for all", "", "", 200, "Content-Type: text/html", page, 75, "b: subscriptions.opml: it is a web page, .*none of its items are used"},
		{"a login elsewhere", "PUT", "", 302, "Location: https://login.example/", "", 75, "redirect to \"https://login.example/\" was not followed: it leads to another server"},
		{"see other", "PUT", "", 303, "Location: /login", "", 75, "would lose the content of the request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := newDAV(t, nextcloud)
			a, b := onServer(t, srv)
			subscribeAll(1, 6, a, b)
			a.syncAnyway()
			b.syncAnyway()
			for n := range 6 { // enough for the complete document
				a.mark(1, n, "FS", "")
			}
			a.subscribe(2)
			fault := answerWith(c.status, c.header, c.body)
			srv.answer = func(w http.ResponseWriter, r *http.Request) int {
				if c.method != "" && !strings.Contains(c.method, r.Method) || c.document != "" && c.document != filepath.Base(r.URL.Path) {
					return 0
				}
				return fault(w, r)
			}
			if c.status == 404 || c.status == 409 {
				delete(srv.dirs, "/dav/"+a.endpoint())
			}
			for n := range 2 {
				if n > 0 && c.exit == 1 {
					continue
				}
				status, text := a.trySync()
				if status != c.exit || !regexp.MustCompile(c.says).MatchString(text) {
					t.Errorf("exit status %d with the message\n%s\nwant %d, %s", status, text, c.exit, c.says)
				}
				if strings.Contains(strings.ReplaceAll(text, a.endpoint(), ""), "feed") || strings.Contains(text, "s3cret") {
					t.Errorf("the message names a feed or the password: %s", text)
				}
			}
			b.syncAnyway()
			if c.document == subsFile && !strings.Contains(b.state(), "0000000100000005 FS") {
				t.Error("the marks were not published either")
			}
			srv.answer = nil
			b.mark(1, 3, "a", "")
			rounds(1, a, b, a)
			same(t, a, b)
			if s := strings.ReplaceAll(b.state(), " FSa", " FS"); strings.Count(s, " FS") != 6 || !strings.Contains(s, feedURL(2)) {
				t.Errorf("lost: %s", s)
			}
		})
	}
}

// syncAnyway syncs and ignores the result.
func (m *machine) syncAnyway() {
	m.t.Helper()
	_, _ = m.trySync()
}

// A server that asks for a pause, in its answer to GET or PUT, gets it from later runs, too.
// A pause that was recorded with a wrong clock does not last.
func TestLeftAlone(t *testing.T) {
	for _, method := range []string{"PUT", "GET"} {
		for _, status := range []int{429, 503} {
			srv := newDAV(t, nextcloud)
			a, b := onServer(t, srv)
			subscribeAll(1, 2, a, b)
			a.syncAnyway()
			rounds(1, b, a)
			a.mark(1, 0, "F", "")
			wait := answerWith(status, "Retry-After: 3600", "")
			srv.answer = func(w http.ResponseWriter, r *http.Request) int {
				if r.Method == method {
					return wait(w, r)
				}
				return 0
			}
			exit, text := a.trySync()
			if exit != 75 || !strings.Contains(text, "asks for a pause of 1h") {
				t.Errorf("%s %d: %d, %s", method, status, exit, text)
			}
			srv.answer = nil
			srv.takeLog()
			exit, text = a.trySync()
			if exit != 75 || !regexp.MustCompile(`not asked: the server asked for a pause, which ends in 5[0-9]m`).MatchString(text) {
				t.Errorf("%s %d: %d, %s", method, status, exit, text)
			}
			if got := srv.takeLog(); strings.Contains(got, method) {
				t.Errorf("%s %d: asked too soon: %s", method, status, got)
			}
			// The clock is an hour later, or was ten years ahead and is corrected.
			a.skew = map[int]time.Duration{429: time.Hour, 503: -10 * 365 * 24 * time.Hour}[status]
			a.sync()
			a.skew = 0
			b.sync()
			same(t, a, b)
			if s := b.state(); !strings.Contains(s, "0000000100000000 F") {
				t.Errorf("%s %d: lost: %s", method, status, s)
			}
		}
	}
}

// A server returns an older document for a while after a PUT, as behind a cache: no copied
// endpoint is reported, and no edit is lost or undone.
func TestStaleServer(t *testing.T) {
	for _, as := range servers {
		t.Run(as.name, func(t *testing.T) {
			srv := newDAV(t, as)
			a, b := onServer(t, srv)
			subscribeAll(1, 10, a, b)
			for range 2 {
				a.syncAnyway()
				b.syncAnyway()
			}
			for n := range 6 {
				srv.stale = n
				a.mark(1, n, "F", "")
				if n%2 == 1 {
					a.mark(1, n-1, "S", "F")
				}
				if n == 3 {
					a.subscribe(n)
				}
				rounds(1, a, b, a)
			}
			srv.stale = 0
			rounds(1, a, b, a)
			same(t, a, b)
			if s := b.state(); strings.Count(s, " F") != 3 || strings.Count(s, " S") != 3 || !strings.Contains(s, feedURL(3)) || a.conflicts()+b.conflicts() != "" {
				t.Errorf("%s\n%s", s, a.conflicts())
			}
		})
	}
}

// If the record of the publications is lost, a document at the endpoint's URL is checked
// before it is replaced.
func TestRecordLost(t *testing.T) {
	for _, as := range servers {
		srv := newDAV(t, as)
		a, b := onServer(t, srv)
		subscribeAll(1, 1, a, b)
		for range 2 {
			a.syncAnyway()
			b.syncAnyway()
		}
		if err := os.Remove(filepath.Join(a.Path, shareDir, publishedFile)); err != nil {
			t.Fatal(err)
		}
		rounds(1, a, b)
		a.mark(1, 0, "F", "")
		rounds(2, a, b)
		same(t, a, b)
		if s := b.state(); !strings.Contains(s, " F") {
			t.Errorf("%s: %s", as.name, s)
		}
		// If the server loses its documents, all of them are published again.
		clear(srv.files)
		clear(srv.dirs)
		srv.dirs["/"] = true
		a.mark(1, 0, "S", "")
		a.subscribe(3)
		status, text := a.trySync()
		if status != 75 || !strings.Contains(text, "published nothing yet") {
			t.Errorf("%s: %d, %s", as.name, status, text)
		}
		rounds(1, b, a)
		same(t, a, b)
	}
}

// The target's password is not sent to a peer's server that requires one; the error has a
// hint.
func TestPeerWithPassword(t *testing.T) {
	mine, other := newDAV(t, nextcloud), newDAV(t, nextcloud)
	a, _ := onServer(t, mine)
	var told []string
	other.answer = func(_ http.ResponseWriter, r *http.Request) int {
		told = append(told, r.Header.Get("Authorization"))
		return 0
	}
	a.addPeer(other, &machine{Dir: &testdir.Dir{Path: a.Path}, t: t, name: "elsewhere"})
	status, text := a.trySync()
	if status != 1 || !strings.Contains(text, "elsewhere: ") || !strings.Contains(text, "may not read there") || !strings.Contains(text, "hint: the headers of ") {
		t.Errorf("%d: %s", status, text)
	}
	if len(told) == 0 || cmp.Or(told...) != "" {
		t.Errorf("the other server received %q", told)
	}
}
