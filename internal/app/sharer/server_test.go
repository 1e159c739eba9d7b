package sharer

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// dav is a server that takes PUT as real ones do: with basic authorization, into
// directories that are there (409 else), with an ETag for what it has, and 304 for who
// has it already.
type dav struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string
	tags  map[string]int
	dirs  map[string]bool
	log   []string
	down  bool
}

func newDAV(t *testing.T) *dav {
	d := &dav{files: map[string]string{}, tags: map[string]int{}, dirs: map[string]bool{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *dav) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	user, password, _ := r.BasicAuth()
	tag := fmt.Sprintf(`"%d"`, d.tags[r.URL.Path])
	entry := r.Method + " " + filepath.Base(r.URL.Path)
	status := 0
	switch body, ok := d.files[r.URL.Path]; {
	case d.down:
		status = http.StatusServiceUnavailable
	case user != "me" || password != "s3cret":
		status = http.StatusUnauthorized
	case r.Method == http.MethodPut && !d.dirs[filepath.Dir(r.URL.Path)]:
		status = http.StatusConflict
	case r.Method == http.MethodPut:
		b, _ := io.ReadAll(r.Body)
		d.files[r.URL.Path] = string(b)
		d.tags[r.URL.Path]++
		status = http.StatusCreated
	case r.Method != http.MethodGet:
		status = http.StatusMethodNotAllowed
	case !ok:
		status = http.StatusNotFound
	case r.Header.Get("If-None-Match") == tag:
		status = http.StatusNotModified
	default:
		w.Header().Set("ETag", tag)
		d.log = append(d.log, entry+" 200")
		io.WriteString(w, body)
		return
	}
	d.log = append(d.log, fmt.Sprintf("%s %d", entry, status))
	w.WriteHeader(status)
}

func (d *dav) took() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := strings.Join(d.log, ", ")
	d.log = nil
	return out
}

// Two machines with a server between them: documents are put there with the headers of
// the target, and asked for conditionally; what did not change is not sent.
func TestServer(t *testing.T) {
	srv := newDAV(t)
	target := strings.Replace(srv.URL, "http://", "http://me:s3cret@", 1) + "/dav"
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	a, b := newMachine(t, c, "a", target), newMachine(t, c, "b", target)
	if line, _ := atomicfile.Line(filepath.Join(a.Path, shareDir, targetFile)); strings.Contains(line, "s3cret") {
		t.Errorf("the password stands in the target: %s", line)
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
	// A server makes no directories by itself, and it is said what to do.
	err := Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams())
	if err == nil || !strings.Contains(err.Error(), "409") {
		t.Fatalf("%v", err)
	}
	name := map[*machine]string{}
	for m, other := range map[*machine]*machine{a: b, b: a} {
		name[m], _ = atomicfile.Line(filepath.Join(m.Path, shareDir, endpointFile))
		srv.dirs["/dav/"+name[m]] = true
		if err := AddPeer(t.Context(), PeerOptions{Common: other.common(), Name: m.name, Place: srv.URL + "/dav/" + name[m]}, other.streams()); err != nil {
			t.Fatal(err)
		}
	}
	// The first finds nothing of the other.
	if err := Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams()); err != remote || !strings.Contains(a.err.String(), "published nothing yet") {
		t.Fatalf("%v, %s", err, &a.err)
	}
	a.mark(1, 0, "S", "")
	b.mark(1, 1, "F", "")
	srv.took()
	rounds(1, b, a, b)
	same(t, a, b)
	if s := b.state(); !strings.Contains(s, "0000000100000000 S") || !strings.Contains(s, "0000000100000001 F") {
		t.Errorf("state: %s", s)
	}
	rounds(1, a, b)
	srv.took()
	rounds(1, a, b)
	want := "GET subscriptions.opml 304, GET state.rss 304"
	if got := srv.took(); got != want+", "+want {
		t.Errorf("unchanged, it sent %s", got)
	}
	// One change: the partial documents alone.
	for n := range 60 {
		a.deliver(1, 10+n)
		b.deliver(1, 10+n)
		a.mark(1, 10+n, "S", "")
	}
	rounds(2, a, b)
	srv.took()
	a.mark(1, 2, "S", "")
	rounds(1, a, b)
	same(t, a, b)
	got := srv.took()
	if strings.Contains(got, "state-all") || !strings.Contains(got, "PUT state.rss 201") || !strings.Contains(got, "GET state.rss 200") || strings.Contains(got, "subscriptions.opml 2") {
		t.Errorf("one change sent %s", got)
	}
	// A server that is down fails what is remote alone, and is tried again.
	a.mark(1, 20, "F", "")
	srv.down = true
	if err := Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams()); err != remote {
		t.Errorf("%v: %s", err, &a.err)
	}
	srv.down = false
	rounds(1, a, b)
	same(t, a, b)
	for _, m := range []*machine{a, b} {
		for path, body := range srv.files {
			if strings.Contains(body, "s3cret") {
				t.Errorf("%s of %s holds the password", path, m.name)
			}
		}
	}
	// A peer whose until fell, as it was restored from a backup, is read whole.
	partial := "/dav/" + name[a] + "/" + partialFile
	srv.files[partial] = strings.Replace(srv.files[partial], `until="`, `until="Sat, 01 Jan 2000 00:00:00 GMT" x="`, 1)
	srv.tags[partial]++
	srv.took()
	rounds(1, b)
	if got := srv.took(); !strings.Contains(got, "GET state-all.rss") {
		t.Errorf("an until that fell: %s", got)
	}
}
