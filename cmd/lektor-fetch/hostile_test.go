package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// full makes documents as large as the limits let through, and not an eighth
// of that; see TestHostile.
var full = flag.Bool("full", false, "hostile documents of full size, and all planted links; takes minutes")

const (
	// hostileMemory is what no document, page or list may cost, in MiB.
	hostileMemory = 256
	// hostileDeadline is when a child is killed: far later than any of its own
	// deadlines, for machines that have much else to do.
	hostileDeadline = 5 * time.Minute
	// busy is --timeout for exchanges that are to end by another limit, on such machines.
	busy = "4m"
)

// measure is a command of the test program: it runs another, kills it at the
// deadline, and writes its peak memory in KiB into the file $MEASURED. It does
// so in a process of its own, since what a process takes counts from what its
// parent had when it was started (Linux), and the parent here makes bombs.
func measure() {
	ctx, cancel := context.WithTimeout(context.Background(), hostileDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(255)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		kib := usage.Maxrss
		if runtime.GOOS == "darwin" {
			kib /= 1024
		}
		if err := os.WriteFile(os.Getenv("MEASURED"), []byte(strconv.FormatInt(kib, 10)), 0o666); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(cmd.ProcessState.ExitCode()) // -1, which is 255, for a signal
}

// hostile runs the real program.
type hostile struct{ program string }

func newHostile(t *testing.T) *hostile {
	t.Helper()
	bin := t.TempDir()
	if err := testdir.Programs(bin, "lektor-fetch"); err != nil {
		t.Fatal(err)
	}
	return &hostile{filepath.Join(bin, "lektor-fetch")}
}

// outcome is the result of a child process.
type outcome struct {
	status         int
	stdout, stderr string
	mib            int64
	elapsed        time.Duration
}

// run runs the program on a lektor-dir. The test fails if the program takes too
// much memory or does not end.
func (h *hostile) run(t *testing.T, dir, stdin string, args ...string) outcome {
	t.Helper()
	measured := filepath.Join(t.TempDir(), "measured")
	cmd := exec.Command("measure", append([]string{h.program}, args...)...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir, "MEASURED="+measured, "GORACE=atexit_sleep_ms=0", "no_proxy=*", "GOMEMLIMIT=", "GOGC=")
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), elapsed: time.Since(begin)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		o.status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if kib, err := os.ReadFile(measured); err == nil {
		n, _ := strconv.ParseInt(string(kib), 10, 64)
		o.mib = n >> 10
	}
	if o.mib > hostileMemory {
		t.Errorf("it took %d MiB", o.mib)
	}
	if o.status == 255 || o.elapsed >= hostileDeadline {
		t.Errorf("it was killed after %v", o.elapsed)
	}
	if len(o.stderr) > 32<<10 {
		t.Errorf("%d bytes of messages", len(o.stderr))
	}
	t.Logf("%s: status %d, %.1f s, %d MiB\n%.1000s", strings.Join(args, " "), o.status, o.elapsed.Seconds(), o.mib, o.stderr)
	return o
}

// subscribed creates a lektor-dir with one feed.
func subscribed(t *testing.T, dir, url string) {
	t.Helper()
	d, err := lektordir.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := feedfiles.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := subscriptions.Add(w, d, &subscriptions.Subscription{ID: url}, subscriptions.AddOptions{}); err != nil {
		t.Fatal(err)
	}
}

// delivered counts the entries in new/.
func delivered(t *testing.T, dir string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "new", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// repeated responds with before, n times again, and after.
func repeated(before, again string, n int, after string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, h := range header {
			k, v, _ := strings.Cut(h, ": ")
			w.Header().Set(k, v)
		}
		writeRepeated(w, before, again, n, after)
	}
}

func writeRepeated(w io.Writer, before, again string, n int, after string) {
	if _, err := io.WriteString(w, before); err != nil {
		return
	}
	many := max(1, min(n, 64<<10/len(again)))
	chunk := strings.Repeat(again, many)
	for ; n > 0; n -= many {
		if _, err := io.WriteString(w, chunk[:min(n, many)*len(again)]); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, after)
}

// encoded responds with a document in codings.
func encoded(codings string, document func(w io.Writer)) http.HandlerFunc {
	body := sync.OnceValue(func() []byte {
		var b bytes.Buffer
		var out io.Writer = &b
		var stages []io.Closer
		all := strings.Split(codings, ", ")
		for i := len(all) - 1; i >= 0; i-- {
			var z io.WriteCloser
			switch all[i] {
			case "gzip":
				z, _ = gzip.NewWriterLevel(out, gzip.BestSpeed)
			case "br":
				z = brotli.NewWriterLevel(out, brotli.BestSpeed)
			case "zstd":
				z, _ = zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
			}
			stages = append(stages, z)
			out = z
		}
		document(out)
		for i := len(stages) - 1; i >= 0; i-- {
			_ = stages[i].Close()
		}
		return b.Bytes()
	})
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", codings)
		_, _ = w.Write(body())
	}
}

// undeclared removes the Content-Encoding of a response.
func undeclared(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h(undeclaredWriter{w}, r) }
}

type undeclaredWriter struct{ http.ResponseWriter }

func (w undeclaredWriter) Write(b []byte) (int, error) {
	w.Header().Del("Content-Encoding")
	return w.ResponseWriter.Write(b)
}

// hostileServer serves hostile responses on 127.0.0.1, each below its own path.
type hostileServer struct {
	*httptest.Server
	mux *http.ServeMux
}

func newHostileServer(t *testing.T) *hostileServer {
	t.Helper()
	s := &hostileServer{mux: http.NewServeMux()}
	s.Server = httptest.NewServer(s.mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// serve serves h from now on, and returns its URL.
func (s *hostileServer) serve(h http.HandlerFunc) string {
	n := fmt.Sprintf("/%d/", hostileCount.Add(1))
	s.mux.HandleFunc(n, h)
	return s.URL + n
}

var hostileCount atomic.Int64

// raw takes over the connection after the request, for responses that net/http would not send.
// write returns false after the client has closed the connection.
func raw(answer func(write func(string) bool, done <-chan struct{})) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		// Read to notice that the client has closed the connection; it sends nothing more.
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = io.Copy(io.Discard, conn)
		}()
		answer(func(s string) bool {
			_, err := io.WriteString(conn, s)
			return err == nil
		}, gone)
	}
}

// trickle responds in pieces, with a delay between them.
func trickle(between time.Duration, before, again string, n int, after string) http.HandlerFunc {
	return raw(func(write func(string) bool, gone <-chan struct{}) {
		tick := time.NewTicker(between)
		defer tick.Stop()
		write(before)
		for left := n; left != 0; left-- {
			select {
			case <-tick.C:
			case <-gone:
				return
			}
			if !write(again) {
				return
			}
		}
		write(after)
	})
}

// redirects responds with n redirects in a row, then with a document.
func redirects(n int, document string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		dir, last := path.Split(r.URL.Path)
		i, _ := strconv.Atoi(last)
		if i == n {
			_, _ = io.WriteString(w, document)
			return
		}
		http.Redirect(w, r, fmt.Sprint(dir, i+1), http.StatusFound)
	}
}

const (
	rssHead  = `<rss version="2.0" xmlns:x="urn:x"><channel><title>t</title>`
	rssTail  = `</channel></rss>`
	item     = `<item><title>one</title>` // not closed
	okHeader = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n"
)

// small is a document of one entry.
const small = rssHead + item + `</item>` + rssTail

// hostileItems writes a feed of n entries with the usual fields, each of about
// size bytes.
func hostileItems(w io.Writer, n, size int) {
	b := bufio.NewWriter(w)
	defer b.Flush()
	b.WriteString(rssHead)
	text := strings.Repeat("text of an entry ", max(0, size-220)/17)
	for i := range n {
		fmt.Fprintf(b, `<item><title>Entry %d</title><link>http://example.com/%[1]d</link><guid>http://example.com/%[1]d</guid>`+
			`<pubDate>Thu, 01 Jan 2004 19:48:21 GMT</pubDate><category>a</category><description>%s</description></item>`, i, text)
	}
	b.WriteString(rssTail)
}

// A bomb is a response that is made to cost much, with the expected result.
type bomb struct {
	name   string
	answer http.HandlerFunc
	url    string   // instead of answer: another source
	flags  []string // to begin with
	// says is in the error, or if there are entries in the warning. flag raises the limit, and is
	// in the same message.
	says, flag string
	// entries is the number of entries that can be delivered nevertheless: then the status is 0,
	// otherwise 75.
	entries int
	// fine is a large harmless document (nil: the same), which is received whole with the raised
	// flags, and refused without them.
	fine   http.HandlerFunc
	raised []string
	whole  int
}

// TestHostile runs the real program on hostile input. Each time the program ends in time, uses less
// than 256 MiB, and names the limit that was exceeded.
//
// feedconv and internal/http/fetch test most of these cases in detail; this table covers them all, from
// the network to the directory. Documents have an eighth of the size that the limits allow. For
// the full size, run
//
//	go test ./cmd/lektor-fetch -run Hostile -full
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes many seconds")
	}
	h, s := newHostile(t), newHostileServer(t)
	t.Run("answers", func(t *testing.T) { testHostileAnswers(t, h, s) })
	t.Run("together", func(t *testing.T) { testHostileTogether(t, h, s) })
	t.Run("lists", func(t *testing.T) { testHostileLists(t, h) })
	t.Run("pages", func(t *testing.T) { testHostilePages(t, h, s) })
	t.Run("mended", func(t *testing.T) { testMendedDocuments(t, h, s) })
	t.Run("large", func(t *testing.T) { testLargeFeed(t, h) })
}

// testHostileTogether fetches many large documents at the same time: the memory limit is for the
// whole process.
func testHostileTogether(t *testing.T, h *hostile, s *hostileServer) {
	const size = 16<<20 - 4096
	dir := filepath.Join(t.TempDir(), "feeds")
	answers := []http.HandlerFunc{
		repeated(rssHead+item+"<description>", "a &lt;b ", size/8-100, "</description></item>"+rssTail),
		repeated(rssHead+item+"<description>", "caf\xe9 \xe8\xe9", size/7-100, "</description></item>"+rssTail),
	}
	n := 6
	if *full {
		n = 20
	}
	for i := range n {
		subscribed(t, dir, s.serve(answers[i%len(answers)]))
	}
	if o := h.run(t, dir, "", "-a", "-j", "20", "--per-host", "20", "--gap", "0", "--timeout", busy); o.status != 0 || delivered(t, dir) != n {
		t.Errorf("status %d, %d entries", o.status, delivered(t, dir))
	}
}

// testHostileAnswers fetches feeds. stderr and the file error of the feed name the exceeded limit
// and the flag that raises it. With the flag, a document that is only large is delivered.
func testHostileAnswers(t *testing.T, h *hostile, s *hostileServer) {
	size := 1 << 20
	if *full {
		size = 16<<20 - 1
	}
	fill := func(before, again, after string) http.HandlerFunc {
		return repeated(before, again, (size-len(before)-len(after))/len(again), after)
	}
	doc := func(text string) http.HandlerFunc { return repeated(text, " ", 0, "") }
	large := func(n, size int) func(io.Writer) { return func(w io.Writer) { hostileItems(w, n, size) } }
	plainly := func(write func(io.Writer)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { write(w) }
	}
	zeros := func(n int64) func(io.Writer) {
		return func(w io.Writer) { _, _ = io.CopyN(w, zero{}, n) }
	}
	const mib = 1 << 20
	bombSize := int64(20 * mib) // a little more than is let through
	if *full {
		bombSize = 1024 * mib
	}
	// 20 MB in a hundred entries, refused by the default limits.
	big := large(100, 200_000)
	bytesRaised := []string{"--max-bytes", "33554432", "--max-decoded", "33554432"}
	decodedRaised := []string{"--max-decoded", "33554432"}
	// A terabyte in zstd blocks that repeat one byte.
	zstdFrame := "\x28\xb5\x2f\xfd\x00\x58" + "\x02\x00\x10 " // 2 MiB of window, a block of 128 KiB of spaces
	var declarations, attributes, names, entities strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&declarations, ` xmlns:n%d="http://n.example/%[1]d"`, i)
	}
	var nested strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&nested, `<n%d:a xmlns:n%[1]d="http://n.example/%[1]d">`, i)
	}
	for i := range size / 25 {
		fmt.Fprintf(&attributes, ` attribute-%08d=''`, i)
		fmt.Fprintf(&names, `<x:element-%08d/>`, i)
	}
	entities.WriteString(`<!DOCTYPE rss [<!ENTITY l0 "lol">`)
	for i := range 10 {
		fmt.Fprintf(&entities, `<!ENTITY l%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&l%d;", i), 10))
	}
	entities.WriteString(`]>` + rssHead + `<item><title>&l9;</title></item>` + rssTail)

	bombs := []bomb{
		// Documents: those of the table in FEEDCONV, and similar ones.
		{name: "two million elements under a default namespace", answer: repeated(rssHead+item+`<a xmlns="urn:x">`, "<a>", 2_000_000, ""), says: "elements deep"},
		{name: "nested elements, closed", answer: func(w http.ResponseWriter, r *http.Request) {
			writeRepeated(w, rssHead+item, "<x:a>", size/12, "")
			writeRepeated(w, "", "</x:a>", size/12, "</item>"+rssTail)
		}, says: "elements deep", entries: 1},
		{name: "nested elements with namespaces of their own", answer: doc(rssHead + item + nested.String()), says: "elements deep"},
		{name: "the same namespace declared on each level", answer: fill(rssHead+item, `<b:a xmlns:b="urn:y">`, ""), says: "elements deep"},
		{name: "2000 declarations and 20,000 children", answer: repeated(`<rss version="2.0"`+declarations.String()+"><channel><title>t</title>"+item, "<n1:a/>", 20_000, "</item>"+rssTail), says: "more than 256 attributes", entries: 1},
		{name: "a million levels of an extension", answer: repeated(rssHead+item, "<x:y>", 1_000_000, ""), says: "elements deep"},
		{name: "100 MB in one element", answer: repeated(rssHead+item+"<description>", "a ", 50_000_000, "</description></item>"+rssTail), says: "more than 16777216 bytes transferred", flag: "max-bytes",
			fine: repeated(rssHead+item+"<description>", "a ", 10_000_000, "</description></item>"+rssTail), raised: bytesRaised, whole: 1},
		{name: "a million items", answer: repeated(rssHead, "<item><title>t</title></item>", 1_000_000, rssTail), says: "more than 16777216 bytes transferred", flag: "max-bytes"},
		{name: "items without anything", answer: fill(rssHead+item+"</item>", "<item/>", rssTail), says: "more than 20000 entries", flag: "max-entries", entries: 1},
		{name: "entries without anything", answer: fill(`<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><id>1</id><title>one</title></entry>`, "<entry/>", "</feed>"), says: "more than 20000 entries", flag: "max-entries", entries: 1},
		{name: "more entries than are taken", answer: plainly(large(300, 500)), flags: []string{"--max-entries", "100"}, says: "more than 100 entries", flag: "max-entries", entries: 100,
			raised: []string{"--max-entries", "300"}, whole: 300},
		{name: "attributes", answer: doc(rssHead + item + "<x:y" + attributes.String() + "/></item>" + rssTail), says: "more than 256 attributes", entries: 1},
		{name: "one attribute", answer: fill(rssHead+item+"<x:y a='", "a", "'/></item>"+rssTail), entries: 1},
		{name: "names", answer: doc(rssHead + item + names.String() + "</item>" + rssTail), says: "different element names", entries: 1},
		{name: "children", answer: fill(rssHead+item, "<x:y/>", "</item>"+rssTail), entries: 1},
		{name: "categories", answer: fill(rssHead+item, "<category>a</category>", "</item>"+rssTail), entries: 1},
		{name: "enclosures", answer: fill(rssHead+item, "<enclosure url='a'/>", "</item>"+rssTail), entries: 1},
		{name: "title of an entry", answer: fill(rssHead+"<item><title>", "a ", "</title></item>"+rssTail), entries: 1},
		{name: "title of a feed", answer: fill("<rss><channel><title>", "a ", "</title>"+item+"</item>"+rssTail), entries: 1},
		{name: "guid", answer: fill(rssHead+item+"<guid>", "a", "</guid></item>"+rssTail), entries: 1},
		{name: "escaped tags that are not closed", answer: fill(rssHead+item+"<description>", "&lt;a ", "</description></item>"+rssTail), entries: 1},
		{name: "escaped nested tags", answer: fill(rssHead+item+"<description>", "&lt;div>", "</description></item>"+rssTail), entries: 1},
		{name: "escaped relative links", answer: fill(rssHead+item+"<description>", "&lt;a href=x>", "</description></item>"+rssTail), entries: 1},
		{name: "XHTML nested", answer: fill(`<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><title>one</title><id>1</id><content type="xhtml">`, "<b>", "</content></entry></feed>"), entries: 1},
		{name: "CDATA sections", answer: fill(rssHead+item+"<description>", "<![CDATA[a]]>", "</description></item>"+rssTail), entries: 1},
		{name: "ampersands", answer: fill(rssHead+item+"<description>", "&", "</description></item>"+rssTail), entries: 1},
		{name: "less-than signs", answer: fill(rssHead+item+"<description>", "<", "</description></item>"+rssTail), says: "<", entries: 1},
		{name: "comments that are not closed", answer: fill(rssHead+item, "<!--", "</item>"+rssTail), says: "a comment is not closed", entries: 1},
		{name: "end tags of nothing", answer: fill(rssHead+item, "</x>", "</item>"+rssTail), says: "nothing open", entries: 1},
		{name: "control characters", answer: fill(rssHead+item+"<description>", "\x01", "</description></item>"+rssTail), says: "control characters", entries: 1},
		{name: "before the root", answer: fill("", "<a>", small), says: "was skipped", entries: 1},
		{name: "no root", answer: fill("<html>", "<a>", ""), says: "not a feed"},
		{name: "entity expansion", answer: doc(entities.String()), entries: 1},
		{name: "one entity again and again", answer: fill(`<!DOCTYPE rss [<!ENTITY a "`+strings.Repeat("x", 1000)+`">]>`+rssHead+item+"<description>", "&a;", "</description></item>"+rssTail), entries: 1},
		{name: "entity declarations", answer: fill(`<!DOCTYPE rss [`, "<!ENTITY a 'b'>", `]>`+small), entries: 1},
		{name: "JSON arrays in arrays", answer: fill(`{"items":[{"id":1},`, "[", ""), says: "cut off", entries: 1},
		{name: "JSON objects in objects", answer: fill(`{"items":[{"id":1},`, `{"a":`, ""), says: "cut off", entries: 1},
		{name: "JSON number", answer: fill(`{"items":[{"title":"one","id":`, "1", "}]}"), entries: 1},
		{name: "JSON exponent", answer: doc(`{"items":[{"title":"one","id":1e999999999}]}`), entries: 1},
		{name: "JSON string", answer: fill(`{"items":[{"id":1,"content_text":"`, "a", `"}]}`), entries: 1},
		{name: "JSON backslashes", answer: fill(`{"items":[{"id":1,"content_text":"`, `\\`, `"}]}`), entries: 1},
		{name: "JSON member name", answer: fill(`{"items":[{"id":1,"`, "a", `":1}]}`), entries: 1},
		{name: "JSON members", answer: fill(`{"items":[{"id":1`, `,"title":"a"`, `}]}`), entries: 1},
		{name: "JSON items", answer: fill(`{"items":[{"id":1}`, `,{}`, `]}`), says: "20000 entries", flag: "max-entries", entries: 1},
		{name: "JSON, no feed", answer: fill(`[`, `[`, ``), says: "malformed JSON, and not a feed"},

		// Codings.
		{name: "gzip", answer: encoded("gzip", zeros(bombSize)), says: "more than 16777216 bytes after decompression", flag: "max-decoded", fine: encoded("gzip", big), raised: decodedRaised, whole: 100},
		{name: "br", answer: encoded("br", zeros(bombSize)), says: "more than 16777216 bytes after decompression", flag: "max-decoded", fine: encoded("br", big), raised: decodedRaised, whole: 100},
		{name: "zstd", answer: encoded("zstd", zeros(bombSize)), says: "more than 16777216 bytes after decompression", flag: "max-decoded", fine: encoded("zstd", big), raised: decodedRaised, whole: 100},
		{name: "zstd, a block again and again", answer: repeated(zstdFrame, zstdFrame[6:], 1_000_000, "", "Content-Encoding: zstd"), says: "more than 16777216 bytes after decompression", flag: "max-decoded"},
		{name: "zstd, a window of 2 GiB", answer: repeated("\x28\xb5\x2f\xfd\x00\xa8\x03\x00\x00a", " ", 0, "", "Content-Encoding: zstd"), says: "window"},
		{name: "zstd, a window of 2 TiB", answer: repeated("\x28\xb5\x2f\xfd\x00\xf8\x03\x00\x00a", " ", 0, "", "Content-Encoding: zstd"), says: "window"},
		{name: "zstd, a frame said to be of 2 GiB", answer: repeated("\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x80\x03\x00\x00a", " ", 0, "", "Content-Encoding: zstd"), says: "window"},
		{name: "gzip in gzip", answer: encoded("gzip, gzip", zeros(bombSize)), says: "more than 16777216 bytes after decompression", flag: "max-decoded", fine: encoded("gzip, gzip", big), raised: decodedRaised, whole: 100},
		{name: "four codings", answer: encoded("gzip, gzip, gzip, gzip", zeros(1)), says: "too many codings"},
		{name: "gzip that nobody declared", answer: undeclared(encoded("gzip", zeros(bombSize))), says: "more than 16777216 bytes after decompression", flag: "max-decoded",
			fine: undeclared(encoded("gzip", big)), raised: decodedRaised, whole: 100},

		// Responses that never end, or end late.
		{name: "endless, chunked", answer: repeated(rssHead, item, 1<<40, ""), says: "more than 16777216 bytes transferred", flag: "max-bytes", fine: plainly(big), raised: bytesRaised, whole: 100},
		{name: "endless, to the end of the connection", answer: raw(func(write func(string) bool, _ <-chan struct{}) {
			write(okHeader + "Connection: close\r\n\r\n" + rssHead)
			for write(strings.Repeat(item, 1000)) {
			}
		}), says: "more than 16777216 bytes transferred", flag: "max-bytes"},
		{name: "said to be of a terabyte", answer: repeated(rssHead, item, 1<<40, "", "Content-Length: 1099511627776"), says: "more than 16777216 bytes transferred", flag: "max-bytes"},
		{name: "body of a byte now and then", answer: trickle(100*time.Millisecond, okHeader+"Connection: close\r\n\r\n", " ", -1, ""), flags: []string{"--timeout", "1s"}, says: "bytes of the response within 1s", flag: "timeout",
			fine: trickle(300*time.Millisecond, okHeader+"Connection: close\r\n\r\n"+rssHead, item+"</item>", 5, rssTail), raised: []string{"--timeout", "60s"}, whole: 1},
		{name: "header of a line now and then", answer: trickle(100*time.Millisecond, okHeader, "X: y\r\n", -1, ""), flags: []string{"--timeout", "1s"}, says: "no answer within 1s", flag: "timeout",
			fine: trickle(300*time.Millisecond, okHeader+"Connection: close\r\n", "X: y\r\n", 5, "\r\n"+small), raised: []string{"--timeout", "60s"}, whole: 1},
		{name: "nothing", answer: trickle(time.Hour, "", "", -1, ""), flags: []string{"--timeout", "1s"}, says: "no answer within 1s", flag: "timeout"},
		{name: "100 Continue for ever", answer: raw(func(write func(string) bool, _ <-chan struct{}) {
			for write(strings.Repeat("HTTP/1.1 100 Continue\r\nX: y\r\n\r\n", 1000)) {
			}
		}), says: "bytes of response header", flag: "max-header"},
		{name: "header line of 10 MB", answer: raw(func(write func(string) bool, _ <-chan struct{}) {
			write(okHeader + "X: " + strings.Repeat("x", 10*mib) + "\r\n\r\n")
		}), says: "more than 262144 bytes of response header", flag: "max-header",
			fine: raw(func(write func(string) bool, _ <-chan struct{}) {
				write(okHeader + "Connection: close\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n" + small)
			}), raised: []string{"--max-header", "1000000"}, whole: 1},
		{name: "header lines of 10 MB", answer: raw(func(write func(string) bool, _ <-chan struct{}) {
			write(okHeader + strings.Repeat("X: xxxxx\r\n", mib) + "\r\n")
		}), says: "more than 262144 bytes of response header", flag: "max-header",
			fine: raw(func(write func(string) bool, _ <-chan struct{}) {
				write(okHeader + "Connection: close\r\n" + strings.Repeat("X: xxxxx\r\n", 30<<10) + "\r\n" + small)
			}), raised: []string{"--max-header", "1000000"}, whole: 1},
		{name: "chunk extensions", answer: raw(func(write func(string) bool, _ <-chan struct{}) {
			write(okHeader + "Transfer-Encoding: chunked\r\n\r\n")
			for write(strings.Repeat("1;"+strings.Repeat("x", 2000)+"\r\n \r\n", 100)) {
			}
		}), says: "not a feed"},
		{name: "trailer", answer: raw(func(write func(string) bool, _ <-chan struct{}) {
			write(okHeader + "Transfer-Encoding: chunked\r\n\r\n0\r\n")
			for write(strings.Repeat("X: y\r\n", 1000)) {
			}
		}), says: "trailer"},
		{name: "redirects without end", answer: redirects(-1, ""), says: "more than 10 redirects", flag: "max-redirects", fine: redirects(15, small), raised: []string{"--max-redirects", "20"}, whole: 1},
		{name: "redirect loop", answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, says: "it is a redirect loop"},
		{name: "redirect to a long URL", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "gopher://"+strings.Repeat("x", 200<<10))
			w.WriteHeader(http.StatusFound)
		}, says: "only http and https are followed"},
		{name: "redirect to a page of a long URL", answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Location", "?"+strings.Repeat("x", 200<<10))
			w.WriteHeader(http.StatusFound)
		}, says: "404 Not Found"},
		{name: "a coding of a long name", answer: repeated("a", " ", 0, "", "Content-Encoding: "+strings.Repeat("x", 200<<10)), says: "cannot be decoded"},
		{name: "a status line of 200 kB", answer: raw(func(write func(string) bool, _ <-chan struct{}) { write(strings.Repeat("x", 200<<10) + "\r\n\r\n") }), says: "malformed HTTP response"},
		{name: "a page with a long title", answer: fill("<html><title>", "a", "</title></html>"), says: "not a feed"},

		// Other sources.
		{name: "command that does not stop", url: "exec:yes", says: "more than 16777216 bytes of output", flag: "max-bytes"},
		{name: "command that does not end", url: "exec:while :; do sleep 1; done", flags: []string{"--timeout", "1s"}, says: "did not end within 1s", flag: "timeout"},
	}
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			fetch := func(dir, url string, flags []string) (o outcome, failed string) {
				t.Helper()
				if _, err := os.Stat(dir); err != nil {
					subscribed(t, dir, url)
				}
				o = h.run(t, dir, "", append([]string{"-a", "--gap", "0", "--timeout", busy}, flags...)...)
				text, err := os.ReadFile(filepath.Join(dir, "src", lektordir.FeedHash(url), "etc", "fetch", "error"))
				if err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
				return o, string(text)
			}
			refused := func(o outcome, failed string) {
				t.Helper()
				for where, text := range map[string]string{"stderr": o.stderr, "error": failed} {
					if !strings.Contains(text, b.says) {
						t.Errorf("%s: it does not say %q: %.1000q", where, b.says, text)
					}
					if b.flag != "" && !strings.Contains(text, "--"+b.flag+" raises the limit") {
						t.Errorf("%s: it does not tell of --%s: %.1000q", where, b.flag, text)
					}
				}
				if o.status != cmdline.StatusRemote {
					t.Errorf("status %d", o.status)
				}
			}
			dir := filepath.Join(t.TempDir(), "feeds")
			url := b.url
			if url == "" {
				url = s.serve(b.answer)
			}
			o, failed := fetch(dir, url, b.flags)
			if b.entries == 0 {
				refused(o, failed)
			} else {
				if o.status != 0 || failed != "" {
					t.Errorf("status %d, error %q", o.status, failed)
				}
				if !strings.Contains(o.stderr, b.says) || b.flag != "" && !strings.Contains(o.stderr, "--"+b.flag+" raises the limit") {
					t.Errorf("it does not say %q and --%s: %.1000q", b.says, b.flag, o.stderr)
				}
			}
			if n := delivered(t, dir); n != b.entries {
				t.Errorf("%d entries, not %d", n, b.entries)
			}
			if b.raised == nil {
				return
			}
			if b.fine != nil {
				dir = filepath.Join(t.TempDir(), "fine")
				url = s.serve(b.fine)
				refused(fetch(dir, url, b.flags))
			}
			if o, failed := fetch(dir, url, b.raised); o.status != 0 || failed != "" || strings.Contains(o.stderr, "warning") {
				t.Errorf("raised: status %d, error %q", o.status, failed)
			}
			if n := delivered(t, dir); n != b.whole {
				t.Errorf("raised: %d entries, not %d", n, b.whole)
			}
		})
	}
}

// testHostileLists imports hostile lists.
func testHostileLists(t *testing.T, h *hostile) {
	list := func(before, again string, n int, after string) string {
		var b strings.Builder
		writeRepeated(&b, before, again, n, after)
		return b.String()
	}
	const head, tail = `<opml version="2.0"><body>`, `</body></opml>`
	outlines := func(n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, `<outline text="%d" xmlUrl="http://example.com/%[1]d"/>`, i)
		}
		b.WriteString(tail)
		return b.String()
	}
	part := func(n int) int {
		if *full {
			return n
		}
		return n / 8
	}
	var manyFolders strings.Builder
	manyFolders.WriteString(head)
	for i := range part(60_000) {
		fmt.Fprintf(&manyFolders, "<outline text='%d'><outline xmlUrl='http://example.com/'/></outline>", i)
	}
	manyFolders.WriteString(tail)
	for _, c := range []struct{ name, list, says string }{
		{"nested", list(head, `<outline text="a">`, 500_000, ""), "nested deeper than 64 levels"},
		{"nested a little too deep, closed", list(head, `<outline text="a">`, 70, strings.Repeat("</outline>", 70)+tail), "nested deeper than 64 levels"},
		{"a million outlines", list(head, `<outline/>`, 1_000_000, tail), "more than 200000 elements"},
		{"too long", list(head, "<!-- -->", 2_200_000, tail), "more than 16777216 bytes"},
		{"not OPML", list("<rss>", "<a>", 50, ""), "no <opml> and no <outline>"},
		{"attributes", list(head+"<outline xmlUrl='http://example.com/' ", "a='' ", part(1_000_000), "/>"+tail), ""},
		{"a huge attribute", list(head+"<outline xmlUrl='http://example.com/' title='", "title ", part(1_200_000), "'/>"+tail), ""},
		{"a huge URL", list(head+"<outline xmlUrl='http://example.com/", "a", 65_000, "'/><outline xmlUrl='http://example.com/"+strings.Repeat("b", part(15_000_000))+"'/>"+tail), ""},
		{"references", list(head+"<outline xmlUrl='http://example.com/' text='", "&amp;", part(3_000_000), "'/>"+tail), ""},
		{"less-than signs", list(head, "<", 150_000, "<outline xmlUrl='http://example.com/'/>"+tail), ""},
		{"a folder in a folder again and again", list(head, strings.Repeat("<outline text='a'>", 50)+"<outline xmlUrl='http://example.com/'/>"+strings.Repeat("</outline>", 50), part(1_000), tail), ""},
		{"a folder of a long name", list(head+"<outline text='"+strings.Repeat("a", part(6_000_000))+"'>", "<outline text='b'><outline xmlUrl='http://example.com/'/></outline>", part(50_000), "</outline>"+tail), ""},
		{"a feed in many folders", manyFolders.String(), ""},
		{"elements in the root and before it", list("", "<!-- -->", part(60_000), list("<opml><head/>", "<x/>", part(60_000), list("<body>", "<y/>", part(60_000), "<outline xmlUrl='http://example.com/'/></body></opml>"))), ""},
		{"large", outlines(part(100_000)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			dir, file := filepath.Join(tmp, "feeds"), filepath.Join(tmp, "list")
			if err := os.WriteFile(file, []byte(c.list), 0o666); err != nil {
				t.Fatal(err)
			}
			args := []string{"import", "--no-fetch", file}
			if c.name == "large" {
				args[1] = "--dry-run" // subscribing to that many takes a while
			}
			o := h.run(t, dir, "", args...)
			if c.says != "" {
				if o.status != cmdline.StatusFailed || c.name != "too long" && !strings.Contains(o.stderr, file+": not OPML: ") || !strings.Contains(o.stderr, c.says) {
					t.Errorf("status %d, and it does not say %q:\n%.1000s", o.status, c.says, o.stderr)
				}
				return
			}
			if n := strings.Count(c.list, "xmlUrl"); o.status != 0 || c.name == "large" && !strings.Contains(o.stderr, humanize.Count(part(100_000), "feed")+" would be subscribed to") || n == 0 {
				t.Errorf("status %d:\n%.1000s", o.status, o.stderr)
			}
			if c.name == "large" {
				return
			}
			// It can be imported again, written, and read.
			if o := h.run(t, dir, "", args...); o.status != 0 {
				t.Errorf("again: status %d", o.status)
			}
			if o := h.run(t, dir, "", "export", "--output", filepath.Join(tmp, "export")); o.status != 0 {
				t.Errorf("export: status %d", o.status)
			}
			if o := h.run(t, filepath.Join(tmp, "again"), "", "import", "--no-fetch", filepath.Join(tmp, "export")); o.status != 0 || !strings.Contains(o.stderr, "1 feed subscribed") {
				t.Errorf("the export cannot be imported: status %d", o.status)
			}
		})
	}
	t.Run("a device without an end", func(t *testing.T) {
		if o := h.run(t, filepath.Join(t.TempDir(), "feeds"), "", "import", "/dev/zero"); o.status != cmdline.StatusFailed || !strings.Contains(o.stderr, "more than 16777216 bytes") {
			t.Errorf("status %d", o.status)
		}
	})
}

// testHostilePages looks for feeds in pages with too many links, and in malformed pages.
func testHostilePages(t *testing.T, h *hostile, s *hostileServer) {
	const head = "<!DOCTYPE html><html><head><title>A page</title>"
	links := func(format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			b := bufio.NewWriter(w)
			defer b.Flush()
			b.WriteString(head)
			for i := range 100_000 {
				fmt.Fprintf(b, format, i)
			}
		}
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		flags  []string
		status int
		says   string
	}{
		{"100,000 feeds", links("<link rel=alternate type=application/rss+xml href=/%d>"), nil, 1, "a page that links to 1,000 feeds"},
		{"100,000 feeds, the first", links("<link rel=alternate type=application/rss+xml href=/%d>"), []string{"--first", "--no-fetch"}, 0, "/0: subscribed"},
		{"100,000 links", links("<a href=/%d.xml>a feed</a>"), nil, 1, "a page that links to 1,000 feeds"},
		{"100,000 links to nothing", links("<a href=/%d>a page</a>"), nil, 1, "it links to no feed"},
		{"the same feed", repeated(head, "<link rel=alternate type=application/rss+xml href=/a>", 100_000, ""), []string{"--no-fetch"}, 0, "/a: subscribed"},
		{"nested elements", repeated(head, "<div>", 2_000_000, ""), nil, 1, "it links to no feed"},
		{"attributes", repeated(head+"<link rel=alternate type=application/rss+xml href=/a ", "a ", 5_000_000, ">"), nil, 1, "it links to no feed"},
		{"a huge URL", repeated(head+"<link rel=alternate type=application/rss+xml href=/", "a", 500_000, ">"), nil, 1, "it links to no feed"},
		{"huge titles", links("<link rel=alternate type=application/rss+xml href=/%d title='" + strings.Repeat("title ", 10) + "'>"), nil, 1, "a page that links to 1,000 feeds"},
		{"a comment that is not closed", repeated(head+"<!--", "a", 15_000_000, ""), nil, 1, "it links to no feed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "feeds")
			o := h.run(t, dir, "", append(append([]string{"add", "--gap", "0", "--timeout", busy}, c.flags...), s.serve(c.answer))...)
			if o.status != c.status || !strings.Contains(o.stderr, c.says) {
				t.Errorf("status %d, and it does not say %q:\n%.1000s", o.status, c.says, o.stderr)
			}
		})
	}
}

// testLargeFeed: after the limit named in the warning is raised, a feed of many entries is
// delivered whole, even from a server with 304 responses.
func testLargeFeed(t *testing.T, h *hostile) {
	n, first, limit := 600, 200, []string{"--max-entries", "200"}
	if *full {
		n, first, limit = 100_000, 20_000, nil
	}
	var doc bytes.Buffer
	hostileItems(&doc, n, 300)
	s := server.Start(t, "127.0.0.1")
	s.Handle("/feed", server.Doc("application/rss+xml", doc.String()))
	dir := filepath.Join(t.TempDir(), "feeds")
	subscribed(t, dir, s.URL("/feed"))
	fetch := func(flags ...string) outcome {
		t.Helper()
		// The deadline for bombs does not apply: this run has real work.
		return h.run(t, dir, "", append([]string{"-a", "--gap", "0", "--timeout", busy, "--max-bytes", "67108864", "--max-decoded", "67108864"}, flags...)...)
	}
	if o := fetch(limit...); o.status != 0 || !strings.Contains(o.stderr, fmt.Sprintf("more than %d entries; the rest was left out; --max-entries raises the limit", first)) || delivered(t, dir) != first {
		t.Errorf("status %d, %d entries", o.status, delivered(t, dir))
	}
	// The next fetch with the same limit gets 304, and delivers no more entries.
	if o := fetch(limit...); o.status != 0 || !strings.Contains(o.stderr, "1 not modified") || delivered(t, dir) != first {
		t.Errorf("again: status %d, %d entries", o.status, delivered(t, dir))
	}
	for _, news := range []string{fmt.Sprintf("; %s\n", humanize.Count(n-first, "new entry")), "1 not modified; 0 new entries\n"} {
		if o := fetch("--max-entries", "200000"); o.status != 0 || strings.Contains(o.stderr, "warning") || !strings.HasSuffix(o.stderr, news) || delivered(t, dir) != n {
			t.Errorf("raised: status %d, %d entries, and it does not say %q", o.status, delivered(t, dir), news)
		}
	}
}

// testMendedDocuments fetches the small documents of FEEDCONV's table, which
// a strict XML parser rejects: every readable entry is delivered.
func testMendedDocuments(t *testing.T, h *hostile, s *hostileServer) {
	const entries = "<item><title>one</title></item><item><title>two</title></item>"
	utf16 := func(text string) string {
		b := []byte("\xff\xfe")
		for _, c := range []byte(text) {
			b = append(b, c, 0)
		}
		return string(b)
	}
	two := rssHead + entries + rssTail
	in := func(text string) string {
		return rssHead + "<item><title>one</title><description>" + text + "</description></item><item><title>two</title></item>" + rssTail
	}
	for _, c := range []struct {
		name, document string
		entries        int
		says           string // in the error, for none
	}{
		{"a reference to a control character", in("a&#8;b"), 2, ""},
		{"U+FFFE", in("a\uFFFEb"), 2, ""},
		{"invalid UTF-8", in("a\xc3(b"), 2, ""},
		{"windows-1252 declared as UTF-8", `<?xml version="1.0" encoding="UTF-8"?>` + in("a\x93b\x94"), 2, ""},
		{"latin-1 undeclared", in("caf\xe9"), 2, ""},
		{"UTF-16 with BOM", utf16(two), 2, ""},
		{"unknown charset", `<?xml version="1.0" encoding="x-none"?>` + two, 2, ""},
		{"XML 1.1", `<?xml version="1.1"?>` + two, 2, ""},
		{"JSON with BOM", "\ufeff" + `{"items":[{"id":1},{"id":2}]}`, 2, ""},
		{"truncated inside an entry", rssHead + entries + "<item><title>thr", 2, ""},
		{"truncated in CDATA", rssHead + entries + "<item><title><![CDATA[thr", 2, ""},
		{"end tags missing", rssHead + entries, 2, ""},
		{"junk before the root", "<br />\n<b>Warning</b>: mysql_connect()" + two, 2, ""},
		{"the root past byte 4096", "<!-- " + strings.Repeat("x", 5000) + " -->" + two, 2, ""},
		{"a bare less-than sign", in("a < b"), 2, ""},
		{"an attribute without quotes", strings.Replace(two, `"2.0"`, `2.0`, 1), 2, ""},
		{"-- in a comment", "<!-- a -- b -->" + two, 2, ""},
		{"a name that is none", in("<1abc>"), 2, ""},
		{"a stray end tag in an item", rssHead + "<item></x><title>one</title></item><item><title>two</title></item>" + rssTail, 2, ""},
		{"Atom in an unknown namespace", `<feed xmlns="http://example.com/"><title>t</title><entry><id>1</id></entry><entry><id>2</id></entry></feed>`, 2, ""},
		{"an error in JSON", `{"error":"no such feed"}`, 0, "JSON, but no feed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := s.serve(repeated(c.document, " ", 0, "", "Content-Type: application/octet-stream"))
			dir := filepath.Join(t.TempDir(), "feeds")
			o := h.run(t, dir, "", "add", "--gap", "0", url)
			if n := delivered(t, dir); n != c.entries || (o.status == 0) != (n > 0) || !strings.Contains(o.stderr, c.says) {
				t.Errorf("status %d, %d entries", o.status, n)
			}
		})
	}
}
