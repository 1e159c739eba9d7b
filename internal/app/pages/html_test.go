package pages

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/content/mailmsg"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/browser"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// write writes a site of a lektor-dir.
func write(t *testing.T, d *testdir.Dir, to string) error {
	t.Helper()
	var out, messages bytes.Buffer
	o := HTMLOptions{Common: Common{Dir: d.Path, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}, Output: to, PerPage: 2}
	err := HTML(t.Context(), o, cmdline.NewStreams("lektor-pages", strings.NewReader(""), &out, &messages))
	if out.Len()+messages.Len() > 0 {
		t.Errorf("printed %s%s", &out, &messages)
	}
	return err
}

// hostile are contents that try to run scripts, to load files, or to break out of the page. %s is
// the URL of a server that records requests.
var hostile = []string{
	`<script>document.title="OWNED"; fetch("%s/script")</script>`,
	`<img src="%[1]s/img" onerror="document.title='OWNED'" srcset="%[1]s/srcset 2x"><img src=x onerror="document.title='OWNED'">`,
	`<a href="javascript:document.title='OWNED'">a</a><a href="data:text/html,<script>1</script>" ping="%s/ping">b</a>`,
	`<svg onload="document.title='OWNED'"><image href="%[1]s/svg"/><use href="%[1]s/use#a"/><style>@import url(%[1]s/import)</style></svg>`,
	`<meta http-equiv="refresh" content="0;url=%[1]s/refresh"><base href="%[1]s/"><link rel="stylesheet" href="%[1]s/css"><link rel=prefetch href="%[1]s/prefetch">`,
	`<p style="background:url(%[1]s/style)">x</p><style>body{background:url(%[1]s/sheet)}</style><table background="%[1]s/table"><tr><td>x</table>`,
	`<iframe src="%[1]s/frame"></iframe><object data="%[1]s/object"></object><embed src="%[1]s/embed"><video poster="%[1]s/poster" src="%[1]s/video" autoplay></video><audio src="%[1]s/audio" autoplay></audio>`,
	`</div></article></main></body></html><script>document.title="OWNED"</script><plaintext>`,
	`<form action="%s/form"><input autofocus onfocus="document.title='OWNED'"></form><!--><script>document.title="OWNED"</script>-->`,
	"<math><mtext><table><mglyph><style><!--</style><img title=\"--><img src=1 onerror=document.title='OWNED'>\">\x00\x1b[2J\u202e",
}

// TestInABrowser opens the site in a browser, in the widths of a phone and a desktop: the console
// stays empty, no script runs, and no other server gets a request.
func TestInABrowser(t *testing.T) {
	var mu sync.Mutex
	var requests []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.URL.Path)
	}))
	defer elsewhere.Close()
	d := testdir.New(t)
	const feed = "http://feed.example/"
	if _, err := d.Feed(feed, `Feed <script>document.title="OWNED"</script>`, "etc/link=javascript:document.title='OWNED'", `etc/categories=A"><script>document.title="OWNED"</script>`); err != nil {
		t.Fatal(err)
	}
	for n, h := range hostile {
		if strings.Contains(h, "%") {
			h = fmt.Sprintf(h, elsewhere.URL)
		}
		name := fmt.Sprintf("%d.M1P1Q%d.h", 1700000000+n, n)
		if _, err := d.Entry(feed, "new", name, fmt.Sprintf(`title=%d <img src=%s/title onerror="document.title='OWNED'">`, n, elsewhere.URL), fmt.Sprintf("id=javascript:%d", n),
			"content="+h, "type=text/html", "author=</p><script>document.title='OWNED'</script>",
			"+enclosure="+elsewhere.URL+"/enclosure.mp3\taudio/mpeg\t7", "+image="+elsewhere.URL+"/image",
			"+element=podcast:person\t<script>document.title='OWNED'</script>\thref=javascript:document.title='OWNED'\timg="+elsewhere.URL+"/person"); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "site")
	if err := write(t, d, to); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(to)))
	defer server.Close()
	pages := []string{"index.html", "feeds.html", "search/index.html"}
	names, _ := filepath.Glob(filepath.Join(to, "entry", "*.html"))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "-images.html") })
	if len(names) != len(hostile) {
		t.Fatalf("%d pages of entries", len(names))
	}
	// All pages are joined into one, to start the browser once.
	var all strings.Builder
	head := ""
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var body string
		head, body, _ = strings.Cut(string(data), "<main>")
		body, _, _ = strings.Cut(body, "</main>")
		all.WriteString(body)
	}
	if err := os.WriteFile(filepath.Join(to, "entry", "all.html"), []byte(head+"<main>"+all.String()+"</main></body></html>\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for n, page := range append(pages, "entry/all.html") {
		got, console := browser.Open(t, server.URL+"/"+page, []int{360, 1280}[n%2])
		if console != "" || strings.Contains(got, "<title>OWNED") || strings.Contains(got, "<script") || !strings.Contains(got, "</html>") {
			t.Errorf("%s: %s\n%.3000s", page, console, got)
		}
	}
	if len(requests) > 0 {
		t.Errorf("there were requests for %q", requests)
	}
}

// TestLazyImages: the page with images has a picture that is made of sources alone, and a lazy image
// once; the first page links to it.
func TestLazyImages(t *testing.T) {
	d := testdir.New(t)
	if _, err := d.Feed("http://feed.example/", "Feed"); err != nil {
		t.Fatal(err)
	}
	for n, content := range []string{
		`<p>a<picture><source srcset="/1.png 1x, /2.png 2x"></picture>`,
		`<p>a<img src="data:image/gif;base64,AAAA" data-src="/2.png"><noscript><img src="/2.png"></noscript>`,
	} {
		if _, err := d.Entry("http://feed.example/", "new", fmt.Sprintf("%d.M1P1Q%d.h", 1700000000+n, n), "title=t", "content="+content, "type=text/html"); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "site")
	if err := write(t, d, to); err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(to, "entry", "*-images.html"))
	if len(pages) != 2 {
		t.Fatalf("pages with images: %q", pages)
	}
	for _, page := range pages {
		html, err := os.ReadFile(page)
		if err != nil || strings.Count(string(html), "<img ") != 1 || !strings.Contains(string(html), `<img src="http://feed.example/2.png"`) {
			t.Errorf("%v: %s", err, html)
		}
	}
}

// TestLettersInABrowser opens mail in a browser without a content policy: no script in a message
// or a digest runs, and no request is made.
func TestLettersInABrowser(t *testing.T) {
	var requests atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer elsewhere.Close()
	var list []*mailmsg.Entry
	var all strings.Builder
	for n, h := range hostile {
		if strings.Contains(h, "%") {
			h = fmt.Sprintf(h, elsewhere.URL)
		}
		e := &mailmsg.Entry{
			Ref:  lektordir.Ref{Feed: strconv.Itoa(n), Unique: "1700000000.1.h"},
			Feed: &lektordir.Feed{ID: h, Name: h, Link: "javascript:document.title='OWNED'"},
			Entry: entrystore.Public(&lektordir.Entry{
				Title: h, ID: "javascript:1", Content: []byte(h), Type: "text/html", Author: h, Categories: []string{h},
				Enclosures: []lektordir.Enclosure{{URL: elsewhere.URL + "/enclosure.mp3", Type: h}}, Comments: "data:text/html,<script>1</script>",
			}),
			Date: time.Unix(1700000000, 0),
		}
		list = append(list, e)
		_, body, _ := strings.Cut(e.Message().HTML, "<body")
		body, _, _ = strings.Cut(body, "</body>")
		all.WriteString("<div" + body + "</div>")
	}
	_, _, page := mailmsg.Digest(list, mailmsg.DigestOptions{Full: true})
	page = strings.Replace(page, "</body>", all.String()+"</body>", 1)
	page = strings.Replace(page, "Content-Security-Policy", "X-Nothing", 1)
	if strings.Contains(page, "Content-Security-Policy") {
		t.Fatal("the page still has a policy")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			requests.Add(1)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	}))
	defer server.Close()
	got, console := browser.Open(t, server.URL+"/", 800)
	if console != "" || strings.Contains(got, "<title>OWNED") || strings.Contains(got, "<script") || strings.Count(got, "</html>") != 1 {
		t.Errorf("%s\n%.3000s", console, got)
	}
	// The browser requests an icon by itself.
	if n := requests.Load(); n > 1 {
		t.Errorf("there were %d requests", n)
	}
}

// TestStopped: a run that is stopped at any step leaves no broken links, and the next run makes the
// same site as a run that was not stopped.
func TestStopped(t *testing.T) {
	d := testdir.New(t)
	const feed = "http://feed.example/"
	if _, err := d.Feed(feed, "Feed"); err != nil {
		t.Fatal(err)
	}
	add := func(from, to int) {
		for n := from; n < to; n++ {
			if _, err := d.Entry(feed, "new", fmt.Sprintf("%d.M1P1Q%d.h", 1700000000+n, n), fmt.Sprintf("title=Entry %c%c", 'a'+n, 'b'+n), fmt.Sprintf("id=%d", n), "content=x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(0, 5)
	whole, site := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "site")
	if err := write(t, d, site); err != nil {
		t.Fatal(err)
	}
	add(5, 9)
	if err := write(t, d, whole); err != nil {
		t.Fatal(err)
	}
	for limit := 0; ; limit++ {
		now := copyOf(t, site)
		w, end := begin(t, d, now)
		ctx := &limited{Context: t.Context(), left: limit}
		err := w.build(ctx)
		end()
		links(t, now)
		if err := write(t, d, now); err != nil {
			t.Fatal(err)
		}
		if got, want := tree(t, now), tree(t, whole); got != want {
			t.Fatalf("stopped after %d: %s\nwant %s", limit, got, want)
		}
		if err == nil {
			if limit < 10 {
				t.Errorf("only %d steps", limit)
			}
			return
		}
	}
}

// limited is a context that ends after left calls of Err.
type limited struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (c *limited) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// begin does what HTML does before it writes pages.
func begin(t *testing.T, d *testdir.Dir, to string) (*site, func()) {
	t.Helper()
	o := HTMLOptions{Common: Common{Dir: d.Path, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}, Output: to, PerPage: 2, Title: "lektor"}
	r, err := o.open(cmdline.NewStreams("lektor-pages", strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}))
	if err != nil {
		t.Fatal(err)
	}
	w, unlock, err := openSite(o, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.items(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.group()
	return w, unlock
}

func copyOf(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// tree returns the path and digest of each file of a site, except the lock.
func tree(t *testing.T, site string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(site), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == lockName {
			return err
		}
		data, err := os.ReadFile(filepath.Join(site, path))
		fmt.Fprintf(&b, "%s %s\n", path, digest(string(data)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// links follows all links from the first page, and fails the test if one is broken.
func links(t *testing.T, site string) {
	t.Helper()
	seen := map[string]bool{"index.html": true}
	for todo := []string{"index.html"}; len(todo) > 0; todo = todo[1:] {
		data, err := os.ReadFile(filepath.Join(site, todo[0]))
		if err != nil {
			t.Errorf("a link is broken: %v", err)
		}
		for _, part := range strings.Split(string(data), `href="`)[1:] {
			href, _, _ := strings.Cut(part, `"`)
			if to := filepath.Join(filepath.Dir(todo[0]), href); !strings.Contains(href, ":") && !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d pages were found", len(seen))
	}
}

// TestPodcastPage: the page of a podcast has its properties. When its transcript was saved, and so the entry
// has the flag d, the page is written again.
func TestPodcastPage(t *testing.T) {
	d := testdir.New(t)
	if _, err := d.Feed("http://feed.example/", "Feed"); err != nil {
		t.Fatal(err)
	}
	const name = "1700000000.M1P1Q1.h"
	path, err := d.Entry("http://feed.example/", "cur", name+";2,", "title=Owl", "content=Text", "+duration=3723", "+element=podcast:transcript\t\turl=http://feed.example/t\ttype=text/html")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "site")
	page := func() string {
		t.Helper()
		if err := write(t, d, to); err != nil {
			t.Fatal(err)
		}
		names, _ := filepath.Glob(filepath.Join(to, "entry", "*.html"))
		data, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := page(); !strings.Contains(got, "<li>Duration: 1:02:03</li>") || !strings.Contains(got, `href="http://feed.example/t"`) || strings.Contains(got, "Said") {
		t.Errorf("%s", got)
	}
	saved := filepath.Join(t.TempDir(), "t.html")
	if err := os.WriteFile(saved, []byte("<p onclick=x>Said</p>"), 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := lektordir.Open(d.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	refs, err := l.List(t.Context(), lektordir.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := entrystore.New(l, time.Now(), cmdline.NewStreams("x", nil, io.Discard, io.Discard))
	if err := s.Record(refs[0]).SetSaved("http://feed.example/t", saved); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+"d"); err != nil {
		t.Fatal(err)
	}
	if got := page(); !strings.Contains(got, "<p>Said</p>") {
		t.Errorf("%s", got)
	}
}

// TestPageOfPodcast: the page of a feed has what only podcasts have, and follows it.
func TestPageOfPodcast(t *testing.T) {
	d := testdir.New(t)
	hash, err := d.Feed("http://feed.example/", "Cast", "etc/elements=element\tpodcast:podroll\nelement\tpodcast:podroll/podcast:remoteItem\t\tfeedUrl=http://frogs.example/\ttitle=Frogs\nelement\titunes:category\t\ttext=Leisure\nelement\titunes:category/itunes:category\t\ttext=Hobbies")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Entry("http://feed.example/", "new", "1700000000.M1P1Q1.h", "title=Owl"); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "site")
	page := func() string {
		t.Helper()
		if err := write(t, d, to); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(to, "feed", hash, "index.html"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := page(); !strings.Contains(got, "<li>Category: Leisure, Hobbies</li>") || !strings.Contains(got, `<a href="http://frogs.example/" rel="noopener noreferrer">Frogs</a>`) {
		t.Errorf("%s", got)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "src", hash, "etc/elements"), []byte("element\tpodcast:medium\tmusic\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := page(); !strings.Contains(got, "<li>Medium: music</li>") || strings.Contains(got, "Frogs") {
		t.Errorf("%s", got)
	}
}
