package save

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
	"github.com/lektordir/lektor/lektordir"
)

// saveOptions returns the options of a test.
func saveOptions(path, to string) Options {
	return Options{
		Common: session.Common{Dir: path, Now: func() time.Time { return viewdir.Now }, Terminal: "test"},
		To:     to, Query: []string{"has:enclosure"}, Fetch: fetch.Config{Gap: -1},
	}
}

// TestSaveProcess is not a test, but the process that other tests kill.
func TestSaveProcess(t *testing.T) {
	path, to := os.Getenv("LEKTOR_TEST_SAVE"), os.Getenv("LEKTOR_TEST_SAVE_TO")
	if path == "" {
		t.Skip("TestSaveKilled runs it")
	}
	s := cmdline.NewStreams("lektor-view", nil, os.Stdout, os.Stderr)
	if err := Save(context.Background(), saveOptions(path, to), s); err != nil || s.Report.Errors() > 0 {
		t.Fatal(err)
	}
}

// parking serves files, and stops in the middle of one until the test continues it.
type parking struct {
	mu     sync.Mutex
	files  map[string][]byte
	park   string // path of the file to stop in
	parked chan bool
	let    chan bool
	ranges map[string][]string
	served map[string]int
	odd    map[string]string // by path: one of oddities
}

// oddities are ways in which servers answer a request for the rest of a file.
var oddities = []string{"", "ignores ranges", "416", "changed", "changed, and knows no If-Range", "breaks off", "another range", "another total", "no validator", "weak validator", "a range of nothing"}

// misbehaves answers a request for a file in an odd way, and reports whether it did.
func (p *parking) misbehaves(w http.ResponseWriter, r *http.Request, data []byte) bool {
	p.mu.Lock()
	odd, asked := p.odd[r.URL.Path], len(p.ranges[r.URL.Path])
	p.mu.Unlock()
	half := len(data) / 2
	part := func(from, total int, tag string, body []byte) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+len(body)-1, total))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(body)
	}
	ranged := r.Header.Get("Range") != ""
	switch odd {
	case "ignores ranges":
		w.Write(data)
		return true
	case "416":
		if ranged {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		}
		return ranged
	case "changed":
		w.Header().Set("ETag", `"another"`)
	case "changed, and knows no If-Range":
		if ranged {
			part(half, len(data), `"another"`, bytes.Repeat([]byte("x"), len(data)-half))
		}
		return ranged
	case "breaks off":
		if asked == 2 && ranged { // the first request that is not parked
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", half, len(data)-1, len(data)))
			w.Header().Set("Content-Length", fmt.Sprint(len(data)-half))
			w.WriteHeader(http.StatusPartialContent)
			w.Write(data[half : half+1000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	case "another range":
		if ranged {
			part(0, len(data), `"`+r.URL.Path+`"`, data[:100])
		}
		return ranged
	case "another total":
		if ranged {
			part(half, len(data)+7, `"`+r.URL.Path+`"`, data[half:])
		}
		return ranged
	case "no validator":
		w.Header().Del("ETag")
	case "weak validator":
		w.Header().Set("ETag", `W/"x"`)
	case "a range of nothing":
		if ranged {
			w.Header().Set("Content-Range", "bytes */*")
			w.WriteHeader(http.StatusPartialContent)
		}
		return ranged
	}
	return false
}

func (p *parking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	data, park := p.files[r.URL.Path], p.park == r.URL.Path
	p.ranges[r.URL.Path] = append(p.ranges[r.URL.Path], r.Header.Get("Range"))
	p.mu.Unlock()
	if w.Header().Set("ETag", `"`+r.URL.Path+`"`); p.odd[r.URL.Path] == "no validator" {
		w.Header().Del("ETag")
	} else if p.odd[r.URL.Path] == "weak validator" {
		w.Header().Set("ETag", `W/"x"`)
	}
	if park {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		p.parked <- true
		<-p.let
		panic(http.ErrAbortHandler)
	}
	if p.misbehaves(w, r, data) {
		return
	}
	counted := &countingWriter{ResponseWriter: w}
	http.ServeContent(counted, r, "", time.Time{}, bytes.NewReader(data))
	p.mu.Lock()
	p.served[r.URL.Path] += counted.n
	p.mu.Unlock()
}

type countingWriter struct {
	http.ResponseWriter
	n int
}

func (c *countingWriter) Write(b []byte) (int, error) {
	c.n += len(b)
	return c.ResponseWriter.Write(b)
}

// TestSaveKilled: after a kill in the middle of each of 20 enclosures, all files are complete,
// none exists twice, and received bytes are not requested again.
func TestSaveKilled(t *testing.T) { testSaveKilled(t, nil) }

// TestSaveKilledOddly is TestSaveKilled with servers that answer requests for the rest in odd ways.
func TestSaveKilledOddly(t *testing.T) { testSaveKilled(t, oddities) }

func testSaveKilled(t *testing.T, odd []string) {
	p := &parking{files: map[string][]byte{}, parked: make(chan bool), let: make(chan bool), ranges: map[string][]string{}, served: map[string]int{}, odd: map[string]string{}}
	server := httptest.NewServer(p)
	defer server.Close()
	f := newFixture(t)
	feed := server.URL + "/feed"
	if _, err := f.Feed(feed, "Cast"); err != nil {
		t.Fatal(err)
	}
	const n = 20
	paths := make([]string, n)
	for i := range n {
		paths[i] = fmt.Sprintf("/%d.mp3", i)
		if odd != nil {
			p.odd[paths[i]] = odd[i%len(odd)]
		}
		p.files[paths[i]] = bytes.Repeat([]byte(fmt.Sprintf("%02d-", i)), 100_000)
		// Many entries have the same title and day.
		if _, err := f.Entry(feed, "new", testdir.Unique(1700000000+int64(i), i), fmt.Sprint("title=Part ", i%3), "+enclosure="+server.URL+paths[i]+"\taudio/mpeg\t1"); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "saved [*]")
	start := func() (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestSaveProcess$")
		cmd.Env = append(os.Environ(), "LEKTOR_TEST_SAVE="+f.Path, "LEKTOR_TEST_SAVE_TO="+to, "TZ=UTC", "GORACE=atexit_sleep_ms=0")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &output
	}
	for i := range n {
		p.mu.Lock()
		p.park = paths[i]
		p.mu.Unlock()
		cmd, output := start()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-p.parked:
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, output)
		}
		// Wait until the file has all bytes that were sent.
		half := int64(len(p.files[paths[i]]) / 2)
		for end := time.Now().Add(time.Minute); ; {
			names, _ := os.ReadDir(filepath.Join(to, "Cast"))
			if slices.ContainsFunc(names, func(e os.DirEntry) bool {
				fi, err := e.Info()
				return strings.HasSuffix(e.Name(), ".part") && err == nil && fi.Size() == half
			}) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("nothing came")
			}
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-ended
		p.let <- true
	}
	p.mu.Lock()
	p.park = ""
	p.mu.Unlock()
	for range 2 {
		cmd, output := start()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	server.Close() // wait until all sent bytes are counted
	found, err := os.ReadDir(filepath.Join(to, "Cast"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, data := range p.files {
		left[string(data)] = true
	}
	for _, e := range found {
		data, err := os.ReadFile(filepath.Join(to, "Cast", e.Name()))
		if err != nil || !left[string(data)] || !strings.HasPrefix(e.Name(), "2023-11-15 Part ") || !strings.HasSuffix(e.Name(), ".mp3") {
			t.Errorf("%s has %d bytes: %v", e.Name(), len(data), err)
		}
		delete(left, string(data))
	}
	if len(found) != n || len(left) > 0 {
		t.Errorf("%d files, %d are missing", len(found), len(left))
	}
	for path, ranges := range p.ranges {
		size := len(p.files[path])
		if odd != nil {
			// With a strong validator the rest was requested, after at most three requests in all.
			seen := slices.Contains(ranges, fmt.Sprintf("bytes=%d-", size/2))
			if none := strings.HasSuffix(p.odd[path], "validator"); seen == none || len(ranges) > 3 {
				t.Errorf("%s, which %s: asked for %q", path, p.odd[path], ranges)
			}
			continue
		}
		if want := []string{"", fmt.Sprintf("bytes=%d-", size/2)}; !slices.Equal(ranges, want) || p.served[path] != size-size/2 {
			t.Errorf("%s: asked for %q, and was sent %d of %d", path, ranges, p.served[path], size)
		}
	}
	all, err := testdir.Entries(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Place != "cur" || e.Flags != "2,d" {
			t.Errorf("%s is %s %s", e.Unique, e.Place, e.Flags)
		}
	}
}

// TestSaveStates: Save continues from each state that a kill between the last byte and the flag
// can leave.
func TestSaveStates(t *testing.T) {
	const text = "the whole file"
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}))
	defer server.Close()
	for name, tc := range map[string]struct {
		spoil string // shell command in the directory of the feed; F is the file, S its state
		asked int
		want  string
	}{
		"nothing was lost":           {`:`, 0, "2023-11-15 One.mp3"},
		"it has both names":          {`ln "$F" "$S.part"`, 0, "2023-11-15 One.mp3"},
		"it has only its first name": {`mv "$F" "$S.part"`, 0, "2023-11-15 One.mp3"},
		"another has its name":       {`mv "$F" "$S.part"; echo another >"$F"`, 0, "2023-11-15 One (2).mp3 2023-11-15 One.mp3"},
		"it was thrown away":         {`rm "$F"`, 1, "2023-11-15 One.mp3"},
		"nothing is known of it":     {`mv "$F" "$S.part"; rm "$S"`, 1, "2023-11-15 One.mp3"},
		"the power failed":           {`mv "$F" "$S.part"; sed 's/^boot.*/boot	other/' "$S" >x; mv x "$S"`, 1, "2023-11-15 One.mp3"},
		"half a line is known":       {`mv "$F" "$S.part"; printf 'validator' >"$S"`, 1, "2023-11-15 One.mp3"},
		"a link is in its place":     {`rm "$F"; ln -s /etc/passwd "$S.part"`, 0, ""},
	} {
		f := newFixture(t)
		feed := server.URL + "/feed"
		if _, err := f.Feed(feed, "Cast"); err != nil {
			t.Fatal(err)
		}
		// A second enclosure fails, so that the entry gets no flag.
		if _, err := f.Entry(feed, "new", "1700000001.1.h", "title=One", "+enclosure="+server.URL+"/1.mp3\taudio/mpeg\t", "+enclosure=http://127.0.0.1:1/2.mp3\taudio/mpeg\t"); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		o := saveOptions(f.Path, to)
		_ = Save(t.Context(), o, f.Streams(""))
		cmd := exec.Command("sh", "-euc", `F=$(echo 2023*); S=$(grep -l 1.mp3 .lektor-*); `+tc.spoil)
		cmd.Dir = filepath.Join(to, "Cast")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		asked = 0
		for range 2 {
			_ = Save(t.Context(), o, f.Streams(""))
		}
		found, err := filepath.Glob(filepath.Join(to, "Cast", "2023*"))
		if err != nil {
			t.Fatal(err)
		}
		whole := 0
		for i, path := range found {
			if data, _ := os.ReadFile(path); string(data) == text {
				whole++
			}
			found[i] = filepath.Base(path)
		}
		if got := strings.Join(found, " "); got != tc.want || asked != tc.asked || tc.want != "" && whole != 1 {
			t.Errorf("%s: %s, %d of them whole, after %d requests\n%s", name, got, whole, asked, &f.Err)
		}
	}
}

// TestSaveLeftovers: only old downloads and old temporary files are removed.
func TestSaveLeftovers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("x")) }))
	defer server.Close()
	f := newFixture(t)
	feed := server.URL + "/feed"
	if _, err := f.Feed(feed, "Cast"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Entry(feed, "new", "1700000001.1.h", "title=One", "+enclosure="+server.URL+"/1.mp3\taudio/mpeg\t"); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	stays := map[string]bool{}
	for name, gone := range map[string]bool{
		".lektor-0123456789abcdef": true, ".lektor-0123456789abcdef.part": true, "..lektor-0123456789abcdef123456": true,
		".lektor-mine": false, "..lektor-mine": false, "..lektor-0123456789abcdefx": false, ".lektor-0123456789abcdef0": false, "old.mp3": false,
	} {
		for age, old := range map[string]time.Time{"": viewdir.Now.Add(-leftovers - time.Hour), "young": viewdir.Now.Add(-time.Hour)} {
			path := filepath.Join(to, "Cast", name)
			if age == "young" {
				path = strings.ReplaceAll(path, "0123456789", "9876543210")
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
			stays[filepath.Base(path)] = stays[filepath.Base(path)] || !gone || age == "young"
		}
	}
	if err := Save(t.Context(), saveOptions(f.Path, to), f.Streams("")); err != nil {
		t.Fatal(err)
	}
	for name, want := range stays {
		if _, err := os.Lstat(filepath.Join(to, "Cast", name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fullFile is a file on a disk that is full after some bytes.
type fullFile struct {
	*os.File
	room int
}

func (f *fullFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b[:min(f.room, len(b))])
	if f.room -= n; n < len(b) && err == nil {
		err = &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return n, err
}

// TestSaveFullDisk: a full disk is reported once and ends the run. The next run continues the
// download.
func TestSaveFullDisk(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range"))
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("the whole file"))
	}))
	defer server.Close()
	f := newFixture(t)
	feed := server.URL + "/feed"
	if _, err := f.Feed(feed, "Cast"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := f.Entry(feed, "new", fmt.Sprintf("170000000%d.1.h", i), fmt.Sprintf("+enclosure=%s/%d.mp3\taudio/mpeg\t", server.URL, i)); err != nil {
			t.Fatal(err)
		}
	}
	o := saveOptions(f.Path, t.TempDir())
	o.writer = func(f *os.File, _ int64) io.Writer { return &fullFile{f, 9} }
	err := Save(t.Context(), o, f.Streams(""))
	if !errors.Is(err, syscall.ENOSPC) || f.Err.Len() > 0 || !slices.Equal(asked, []string{""}) {
		t.Errorf("%v, %s, asked for %q", err, &f.Err, asked)
	}
	o.writer = nil
	if err := Save(t.Context(), o, f.Streams("")); err != nil || !slices.Equal(asked, []string{"", "bytes=9-", "", ""}) || strings.Count(f.Out.String(), "\n") != 3 {
		t.Errorf("%v, %s, asked for %q", err, &f.Err, asked)
	}
}

// TestSaveRemote: a failure of a server has its own exit status, so that a timer tries again.
func TestSaveRemote(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	f := newFixture(t)
	feed := server.URL + "/feed"
	if _, err := f.Feed(feed, "Cast"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Entry(feed, "new", "1700000001.1.h", "+enclosure="+server.URL+"/1.mp3\taudio/mpeg\t"); err != nil {
		t.Fatal(err)
	}
	o := saveOptions(f.Path, t.TempDir())
	err := Save(t.Context(), o, f.Streams(""))
	if cmdline.Status(err) != cmdline.StatusRemote || !strings.HasSuffix(f.Err.String(), "/1.mp3: the server answered 404 Not Found: the file was not saved\n") {
		t.Errorf("%v, %s", err, &f.Err)
	}
	left, _ := os.ReadDir(filepath.Join(o.To, "Cast"))
	if len(left) != 1 || strings.HasSuffix(left[0].Name(), ".part") { // the state, with the time of the next try
		t.Errorf("%v is left", left)
	}
	// If the user names the entry, the failure counts as the user's.
	o.Query, o.Args = nil, []string{"1700000001.1.h"}
	s := f.Streams("")
	if err := Save(t.Context(), o, s); err != nil || s.Report.Errors() != 1 {
		t.Errorf("%v, %s", err, &f.Err)
	}
}

// TestSaveNames: feeds with the same name have separate directories.
func TestSaveNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.URL.Path)) }))
	defer server.Close()
	f := newFixture(t)
	for i, name := range []string{"News/Today", "news-today", "Other"} {
		feed := fmt.Sprint(server.URL, "/feed", i)
		if _, err := f.Feed(feed, name); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Entry(feed, "new", fmt.Sprintf("170000000%d.1.h", i), "title=../A", "pubdate=2026-01-02T00:00:00Z", fmt.Sprintf("+enclosure=%s/%d\taudio/mpeg\t", server.URL, i)); err != nil {
			t.Fatal(err)
		}
	}
	o := saveOptions(f.Path, filepath.Join(t.TempDir(), "a", "b"))
	if err := Save(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	var got []string
	_ = filepath.Walk(o.To, func(path string, fi os.FileInfo, err error) error {
		if err == nil && !fi.IsDir() {
			data, _ := os.ReadFile(path)
			got = append(got, strings.TrimPrefix(path, o.To)+" "+string(data))
		}
		return err
	})
	hash := func(i int) string { return testdir.Hash(fmt.Sprint(server.URL, "/feed", i))[:8] }
	want := []string{
		"/News-Today " + hash(0) + "/2026-01-02 ..-A.mp3 /0", "/Other/2026-01-02 ..-A.mp3 /2", "/news-today " + hash(1) + "/2026-01-02 ..-A.mp3 /1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestFileName(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-02 A title":   "2026-01-02 A title.mp3",
		"a/b\\c:d|e":           "a-b-c-d-e.mp3",
		`now? "yes" <no> *`:    "now_ _yes_ _no_ _.mp3",
		"..":                   "_.mp3",
		"../../etc/passwd":     "etc-passwd.mp3",
		"-rf":                  "rf.mp3",
		"~/.ssh":               "ssh.mp3",
		"":                     "_.mp3",
		" \t\n":                "_.mp3",
		"a\x00b\x1b[2J\u202ec": "ab[2Jc.mp3",
		"console":              "console.mp3",
		"dots...":              "dots.mp3",
		"Größe  und\nMaß":      "Größe und Maß.mp3",
	} {
		if got := fileName(text, ".mp3", maxFileName); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
	long := fileName(strings.Repeat("ä€😀", 100), " (12).mp3", maxFileName)
	if len(long) > 255 || len(long) < 245 || !utf8.ValidString(long) || !strings.HasSuffix(long, " (12).mp3") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("a/b")
	f.Add("..\x00con.")
	f.Fuzz(func(t *testing.T, text string) {
		name := fileName(text, ".mp3", 60)
		stem := strings.TrimSuffix(name, ".mp3")
		if len(name) > 61 || stem == "" || !utf8.ValidString(name) || strings.ContainsAny(name, "/\\\x00\n\"<>|?*:") || strings.ContainsAny(name[:1], ".-~ ") || stem != strings.TrimRight(stem, ". ") {
			t.Fatalf("%q: %q", text, name)
		}
	})
}

func TestExtension(t *testing.T) {
	for e, want := range map[lektordir.Enclosure]string{
		{URL: "http://x/a.MP3?x=.exe"}:                         ".mp3",
		{URL: "http://x/a", Type: "audio/mpeg; charset=x"}:     ".mp3",
		{URL: "http://x/a.b/c", Type: "video/mp4"}:             ".mp4",
		{URL: "http://x/a.%2F..%2Fx", Type: "application/pdf"}: ".pdf",
		{URL: "http://x/a.verylongextension"}:                  "",
		{URL: "http://x/.mp3/"}:                                "",
	} {
		if got := extension(e); got != want {
			t.Errorf("%+v: %q, not %q", e, got, want)
		}
	}
}
