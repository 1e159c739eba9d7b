package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// historian has the lektor-dirs of a publisher and of a subscriber, and a server between them
// that counts requests.
type historian struct {
	t        *testing.T
	bin, www string
	server   *httptest.Server
	mu       sync.Mutex
	requests []string
}

func newHistorian(t *testing.T) *historian {
	h := &historian{t: t, bin: build(t), www: t.TempDir()}
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, r.URL.Path)
		h.mu.Unlock()
		http.FileServer(http.Dir(h.www)).ServeHTTP(w, r)
	}))
	t.Cleanup(h.server.Close)
	return h
}

// command runs a program in a lektor-dir.
func (h *historian) command(dir, stdin, name string, args ...string) string {
	h.t.Helper()
	cmd := exec.Command(filepath.Join(h.bin, name), args...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir, "TZ=UTC", "no_proxy=*", "GORACE=atexit_sleep_ms=0")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%s %q: %v\n%s", name, args, err, &stderr)
	}
	return string(out)
}

// asked returns the requests since the last call.
func (h *historian) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.requests
	h.requests = nil
	return out
}

// fields returns the fields that an entry must keep, by its id.
func (h *historian) fields(dir string) map[string]string {
	h.t.Helper()
	out := map[string]string{}
	d := json.NewDecoder(strings.NewReader(h.command(dir, "", "lektor-view", "ls", "-a", "-o", `{{json .id}}{{json (line .title)}}{{json .date}}{{json .updated}}{{json .url}}{{json .author}}{{json .categories}}{{json .content}}{{json .summary}}{{json .type}}`)))
	for d.More() {
		var f [10]any
		for i := range f {
			if err := d.Decode(&f[i]); err != nil {
				h.t.Fatal(err)
			}
		}
		out[fmt.Sprint(f[0])] = fmt.Sprint(f[1:]...)
	}
	return out
}

func (h *historian) equal(publisher, subscriber string) {
	h.t.Helper()
	want, got := h.fields(publisher), h.fields(subscriber)
	if len(want) != len(got) {
		h.t.Errorf("there are %d entries, and the subscriber has %d", len(want), len(got))
	}
	for id, w := range want {
		if got[id] != w {
			h.t.Fatalf("%s is\n%s\nand the subscriber has\n%s", id, w, got[id])
		}
	}
}

// begun is the date of entry 0. Entry 1000 is dated now, so entries after the first 1000 are new,
// as in real feeds. Entries are minutes apart, so the duration of the tests has no effect.
var begun = time.Now().Add(-1000 * time.Minute)

// document returns a feed with the entries of a range of numbers.
func document(from, to int) string {
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:feed</id><title>Origin</title><updated>2020-01-01T00:00:00Z</updated>`)
	for i := from; i < to; i++ {
		date := begun.Add(time.Duration(i) * time.Minute).UTC().Format(time.RFC3339)
		fmt.Fprintf(&b, `<entry><id>urn:x:%d</id><title>Entry %d &amp; more</title><link href="http://x.example/%d"/><author><name>Ann</name></author>
<published>%s</published><updated>%s</updated><category term="c%d"/><summary>In short, %d</summary><content type="html">&lt;p&gt;At length, %d&lt;/p&gt;</content></entry>`, i, i, i, date, date, i%7, i, i)
	}
	b.WriteString(`</feed>`)
	return b.String()
}

// TestPublishedHistory: lektor-fetch reconstructs a feed that lektor-view publishes with
// archives. It gets the same entries, with one request for each document. Later it makes one
// request in all, unless it has missed an archive.
func TestPublishedHistory(t *testing.T) {
	h := newHistorian(t)
	root := t.TempDir()
	if !strings.Contains(h.command(root, "", "lektor-fetch", "add", "--help"), "--history") {
		t.Skip("this lektor-fetch follows no archives")
	}
	publisher, subscriber, plain := filepath.Join(root, "publisher"), filepath.Join(root, "subscriber"), filepath.Join(root, "plain")
	url := h.server.URL + "/index.atom"
	publish := func() {
		t.Helper()
		h.command(publisher, "", "lektor-view", "publish", "--archive", h.www, "--per-page", "50", "--self", url)
	}
	h.command(publisher, document(0, 1000), "lektor-fetch", "deliver", "--id", "http://x.example/feed")
	publish()
	archives, err := filepath.Glob(filepath.Join(h.www, "archive-*.atom"))
	if err != nil || len(archives) != 19 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}

	h.command(subscriber, "", "lektor-fetch", "--gap", "0", "add", "--as-is", "--history", url)
	if n := len(h.asked()); n > 20 {
		t.Errorf("%d requests for 20 documents", n)
	}
	h.equal(publisher, subscriber)
	// A subscription that asks for the history later gets the same entries.
	h.command(plain, "", "lektor-fetch", "--gap", "0", "add", "--as-is", url)
	if asked := h.asked(); len(asked) != 1 {
		t.Errorf("asked for %q", asked)
	}
	h.command(plain, "", "lektor-fetch", "--gap", "0", "history", url)
	if n := len(h.asked()); n > 20 {
		t.Errorf("%d requests for 20 documents", n)
	}
	h.equal(publisher, plain)

	// Ten entries are added, and one changes: no archive is written.
	type file struct {
		text string
		when time.Time
	}
	look := func() map[string]file {
		out := map[string]file{}
		for _, path := range archives {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fi, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			out[path] = file{string(data), fi.ModTime()}
		}
		return out
	}
	before := look()
	h.command(publisher, document(1000, 1010), "lektor-fetch", "deliver", "--id", "http://x.example/feed")
	_, changed, ok := strings.Cut(h.command(publisher, "", "lektor-view", "ls", "-a", "-o", "{{.id}} {{.path}}"), "urn:x:7 ")
	if changed, _, _ = strings.Cut(changed, "\n"); !ok {
		t.Fatal("there is no such entry")
	}
	if err := os.WriteFile(filepath.Join(changed, "title"), []byte("Entry 7, corrected\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	publish()
	for path, was := range before {
		if now := look()[path]; now != was {
			t.Errorf("%s was touched", path)
		}
	}
	for _, dir := range []string{subscriber, plain} {
		titles := h.command(dir, "", "lektor-fetch", "--gap", "0", "update", "-o", "title", url)
		if n := strings.Count(titles, "\n"); n != 11 || !strings.Contains(titles, "Entry 7, corrected\n") {
			t.Errorf("the subscriber gets %d entries:\n%s", n, titles)
		}
		if asked := h.asked(); len(asked) != 1 {
			t.Errorf("asked for %q", asked)
		}
	}

	// With many more entries, there is another archive, and only that one is fetched.
	h.command(publisher, document(1010, 1100), "lektor-fetch", "deliver", "--id", "http://x.example/feed")
	publish()
	titles := h.command(subscriber, "", "lektor-fetch", "--gap", "0", "update", "-o", "title", url)
	if n := strings.Count(titles, "\n"); n != 90 {
		t.Errorf("the subscriber gets %d entries", n)
	}
	if asked := h.asked(); len(asked) != 3 { // 60 and 90 entries are two archives, and 50 entries
		t.Errorf("asked for %q", asked)
	}
}
