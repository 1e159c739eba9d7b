package sharer

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// dav is a server that supports PUT and behaves as a real server does.
type dav struct {
	*httptest.Server
	as     kindOfServer
	mu     sync.Mutex
	files  map[string]stored
	dirs   map[string]bool
	serial int
	log    []string
	// answer is called first for each request, unless it is nil. If it returns a status other
	// than 0, it has answered the request.
	answer func(w http.ResponseWriter, r *http.Request) int
	// stale is the number of coming answers that have the previous version.
	stale int
}

// stored is a document on the server, and its previous version.
type stored struct {
	body, tag string
	before    *stored
}

// kindOfServer describes the differences between servers.
type kindOfServer struct {
	name             string
	created, renewed int    // status of a PUT
	body             string // body of the response to a PUT
	tagged           bool   // the response to a PUT has an ETag
	etag             string // format of an ETag, with the version's number; "" for no ETags
	collections      bool   // WebDAV: documents are in directories, and MKCOL creates one
	slash            bool   // MKCOL needs a URL that ends with a slash
	orphaned         int    // status of a PUT into a missing directory; 0 for 409
}

var servers = []kindOfServer{
	// Apache's mod_dav answers a PUT with a page, and without an ETag.
	{name: "Apache", created: 201, renewed: 204, body: "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>201 Created</title>\n</head><body>\n", etag: `"%d-5f"`, collections: true},
	{name: "nginx", created: 201, renewed: 204, etag: `"%d"`, collections: true, slash: true, orphaned: 500},
	// Nextcloud and other servers that use sabre/dav.
	{name: "Nextcloud", created: 201, renewed: 204, tagged: true, etag: `"%d"`, collections: true},
	// An object store has no directories.
	{name: "objects", created: 200, renewed: 200, tagged: true, etag: `"%d"`},
	// A proxy that compresses makes the server's tags weak.
	{name: "weak", created: 201, renewed: 204, etag: `W/"%d"`, collections: true},
	// A script of ten lines.
	{name: "a script", created: 200, renewed: 200, body: "ok\n"},
}

// nextcloud is used by tests in which the kind of server makes no difference.
var nextcloud = servers[2]

func newDAV(t *testing.T, as kindOfServer) *dav {
	d := &dav{as: as, files: map[string]stored{}, dirs: map[string]bool{"/": true}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *dav) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := 0
	if d.answer != nil {
		status = d.answer(w, r)
	}
	if status == 0 {
		status = d.serve(w, r)
	}
	what := ""
	if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" && r.Method == http.MethodGet {
		what = " conditional"
	}
	// Log only the first letter of an endpoint's name, since the rest is random.
	dir, name := filepath.Split(r.URL.Path)
	d.log = append(d.log, fmt.Sprintf("%s %.1s/%s %d%s", r.Method, filepath.Base(dir), name, status, what))
}

func (d *dav) serve(w http.ResponseWriter, r *http.Request) int {
	user, password, _ := r.BasicAuth()
	path := strings.TrimSuffix(r.URL.Path, "/")
	status := 0
	file, there := d.files[path]
	orphan := d.as.collections && !d.dirs[filepath.Dir(path)]
	switch {
	case user != "me" || password != "s3cret":
		status = http.StatusUnauthorized
	case r.Method == "MKCOL":
		status = d.mkcol(r, path, orphan)
	case r.Method == http.MethodDelete && there:
		delete(d.files, path)
		status = http.StatusNoContent
	case r.Method == http.MethodPut:
		return d.put(w, r, orphan)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodDelete:
		status = http.StatusMethodNotAllowed
	case !there:
		status = http.StatusNotFound
	default:
		if d.stale > 0 && file.before != nil {
			d.stale--
			file = *file.before
		}
		if file.tag != "" {
			w.Header().Set("ETag", file.tag)
		}
		if status = http.StatusOK; file.tag != "" && r.Header.Get("If-None-Match") == file.tag {
			status = http.StatusNotModified
		}
	}
	w.WriteHeader(status)
	if status == http.StatusOK && r.Method == http.MethodGet {
		io.WriteString(w, file.body)
	}
	return status
}

func (d *dav) mkcol(r *http.Request, path string, orphan bool) int {
	body, _ := io.ReadAll(r.Body)
	switch {
	case !d.as.collections:
		return http.StatusNotImplemented
	case len(body) > 0:
		return http.StatusUnsupportedMediaType
	case d.dirs[path]:
		return http.StatusMethodNotAllowed
	case orphan || d.as.slash && !strings.HasSuffix(r.URL.Path, "/"):
		return http.StatusConflict
	}
	d.dirs[path] = true
	return http.StatusCreated
}

func (d *dav) put(w http.ResponseWriter, r *http.Request, orphan bool) int {
	path := r.URL.Path
	_, there := d.files[path]
	status := d.as.renewed
	switch {
	case orphan:
		status = cmp.Or(d.as.orphaned, http.StatusConflict)
	case !there:
		status = d.as.created
	}
	if status/100 == 2 {
		b, _ := io.ReadAll(r.Body)
		d.store(path, string(b))
		if d.as.tagged {
			w.Header().Set("ETag", d.files[path].tag)
		}
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		io.WriteString(w, d.as.body)
	}
	return status
}

// store puts a document there.
func (d *dav) store(path, body string) {
	next := stored{body: body}
	if d.serial++; d.as.etag != "" {
		next.tag = fmt.Sprintf(d.as.etag, d.serial)
	}
	if old, ok := d.files[path]; ok {
		old.before = nil
		next.before = &old
	}
	d.files[path] = next
}

// takeLog returns the requests since the last call.
func (d *dav) takeLog() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := strings.Join(d.log, ", ")
	d.log = nil
	return out
}

// endpoint returns the endpoint name of the machine.
func (m *machine) endpoint() string {
	m.t.Helper()
	name, err := atomicfile.Line(filepath.Join(m.Path, shareDir, endpointFile))
	if err != nil {
		m.t.Fatal(err)
	}
	return name
}

// onServer returns two machines that publish on a server and read each other.
func onServer(t *testing.T, srv *dav) (a, b *machine) {
	t.Helper()
	target := strings.Replace(srv.URL, "http://", "http://me:s3cret@", 1) + "/dav"
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	a, b = newMachine(t, c, "a", target), newMachine(t, c, "b", target)
	a.addPeer(srv, b)
	b.addPeer(srv, a)
	return a, b
}

// addPeer makes another machine a peer of m.
func (m *machine) addPeer(srv *dav, other *machine) {
	m.t.Helper()
	o := PeerOptions{Common: m.common(), Words: []string{"add", other.name, srv.URL + "/dav/" + other.endpoint()}}
	if err := Peer(m.t.Context(), o, m.streams()); err != nil {
		m.t.Fatal(err)
	}
}

// answerWith returns a handler that sends one answer to every request.
func answerWith(status int, header, body string) func(http.ResponseWriter, *http.Request) int {
	return func(w http.ResponseWriter, _ *http.Request) int {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
		return status
	}
}

// Two machines exchange over a server: documents are put there with the headers of the
// target, and requested conditionally; unchanged documents are not sent.
func TestServer(t *testing.T) {
	srv := newDAV(t, nextcloud)
	a, b := onServer(t, srv)
	name := map[*machine]string{a: a.endpoint(), b: b.endpoint()}
	if line, _ := atomicfile.Line(filepath.Join(a.Path, shareDir, targetFile)); strings.Contains(line, "s3cret") {
		t.Errorf("the file of the target holds the password: %s", line)
	}
	if fi, err := os.Stat(filepath.Join(a.Path, shareDir, headersFile)); err != nil || fi.Mode() != 0o600 {
		t.Errorf("headers: %v, %v", fi, err)
	}
	for _, m := range []*machine{a, b} {
		m.subscribe(1, "F")
		for n := range 3 {
			m.deliver(1, n)
		}
	}
	// The first machine finds no documents of the other.
	if err := Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams()); err != errRemote || !strings.Contains(a.err.String(), "published nothing yet") {
		t.Fatalf("%v, %s", err, &a.err)
	}
	a.mark(1, 0, "S", "")
	b.mark(1, 1, "F", "")
	srv.takeLog()
	rounds(1, b, a, b)
	same(t, a, b)
	if s := b.state(); !strings.Contains(s, "0000000100000000 S") || !strings.Contains(s, "0000000100000001 F") {
		t.Errorf("state: %s", s)
	}
	rounds(1, a, b)
	srv.takeLog()
	rounds(1, a, b)
	want := "GET b/subscriptions.opml 304 conditional, GET b/state.rss 304 conditional, GET a/subscriptions.opml 304 conditional, GET a/state.rss 304 conditional"
	if got := srv.takeLog(); got != want {
		t.Errorf("a sync without changes sent %s", got)
	}
	// After one change, only partial documents are transferred.
	for n := range 60 {
		a.deliver(1, 10+n)
		b.deliver(1, 10+n)
		a.mark(1, 10+n, "S", "")
	}
	rounds(2, a, b)
	srv.takeLog()
	a.mark(1, 2, "S", "")
	rounds(1, a, b)
	same(t, a, b)
	got := srv.takeLog()
	if strings.Contains(got, "state-all") || !strings.Contains(got, "PUT a/state.rss 204") || !strings.Contains(got, "GET a/state.rss 200") || strings.Contains(got, "subscriptions.opml 2") {
		t.Errorf("one change sent %s", got)
	}
	// If the server is down, the sync fails with errRemote, and the next one tries again.
	a.mark(1, 20, "F", "")
	srv.answer = answerWith(http.StatusServiceUnavailable, "", "")
	if err := Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams()); err != errRemote {
		t.Errorf("%v: %s", err, &a.err)
	}
	srv.answer = nil
	rounds(1, a, b)
	same(t, a, b)
	for _, m := range []*machine{a, b} {
		for path, file := range srv.files {
			if strings.Contains(file.body, "s3cret") {
				t.Errorf("%s of %s holds the password", path, m.name)
			}
		}
	}
	// If a peer's until date falls, because it was restored from a backup, its complete
	// document is read.
	partial := "/dav/" + name[a] + "/" + partialFile
	old := regexp.MustCompile(`since="[^"]*" until="[^"]*"`).ReplaceAllString(srv.files[partial].body, `since="Fri, 01 Jan 1999 00:00:00 GMT" until="Sat, 01 Jan 2000 00:00:00 GMT"`)
	srv.store(partial, old)
	srv.takeLog()
	rounds(1, b)
	if got := srv.takeLog(); !strings.Contains(got, "GET a/state-all.rss") {
		t.Errorf("after the until date fell, the requests are %s", got)
	}
}
