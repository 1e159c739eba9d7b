package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// TestSampleFeeds fetches real documents and compares what is delivered with
// an independent count over their XML and JSON.
func TestSampleFeeds(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "feeds")
	names, err := os.ReadDir(root)
	if err != nil {
		t.Skip("the sample documents are not here")
	}
	s := server.Start(t, "127.0.0.1")
	s.Serve(root)
	dir := filepath.Join(t.TempDir(), "feeds")
	var urls, pages []string
	want := map[string][]string{} // feed's hash -> titles
	for _, n := range names {
		url := s.URL("/" + n.Name())
		switch filepath.Ext(n.Name()) {
		case ".html":
			pages = append(pages, url)
			continue
		case ".opml":
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want[lektordir.FeedHash(url)] = countTitles(t, n.Name(), data)
		urls = append(urls, url)
	}
	status, _, stderr := run(t, "", append([]string{"add", "--dir", dir, "--gap", "0"}, urls...)...)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	d, err := lektordir.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	check := func() {
		t.Helper()
		refs, err := d.List(context.Background(), lektordir.ListOptions{AllVersions: true})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, ref := range refs {
			e, err := d.ReadEntry(ref, lektordir.Obligatory)
			if err != nil {
				t.Error(err)
				continue
			}
			if e.ID == "" {
				t.Errorf("%s has no id", ref.Path())
			}
			got[ref.Feed] = append(got[ref.Feed], squash(e.Title))
		}
		total = len(refs)
		for hash, titles := range want {
			slices.Sort(titles)
			slices.Sort(got[hash])
			if !slices.Equal(got[hash], titles) {
				f, _ := d.ReadFeed(hash)
				t.Errorf("%s: %d entries %.300q, want %d %.300q", f.ID, len(got[hash]), got[hash], len(titles), titles)
			}
		}
	}
	check()
	before := total
	for _, u := range urls {
		s.Forget(strings.TrimPrefix(u, s.URL("")))
	}
	if status, _, stderr := run(t, "", "update", "--dir", dir, "-a", "--gap", "0"); status != 0 || !strings.Contains(stderr, fmt.Sprintf("%d not modified; 0 new entries", len(urls))) {
		t.Errorf("update: status %d\n%s", status, stderr)
	}
	check()
	if total != before {
		t.Errorf("%d entries, then %d", before, total)
	}
	for _, r := range s.Requests("") {
		if strings.HasSuffix(r.Path, ".html") {
			continue
		}
		if r.Header.Get("If-None-Match") == "" || r.Status != http.StatusNotModified {
			t.Errorf("%s: status %d, If-None-Match %q", r.Path, r.Status, r.Header.Get("If-None-Match"))
		}
	}
	if status, _, stderr := run(t, "", append([]string{"add", "--dir", dir, "--gap", "0", "--no-fetch"}, pages...)...); status != 0 {
		t.Errorf("pages: status %d\n%s", status, stderr)
	}
	for _, url := range []string{"http://inessential.com/xml/rss.xml", "http://feedpress.me/sixcolors"} {
		if !feedfiles.Subscribed(d, lektordir.FeedHash(url)) {
			t.Errorf("not subscribed to %s", url)
		}
	}
	list := filepath.Join(root, "Subs.opml")
	if status, _, stderr := run(t, "", "import", "--dir", dir, "--no-fetch", list); status != 0 {
		t.Errorf("import: status %d\n%s", status, stderr)
	}
	data, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range outlines(t, data) {
		if !feedfiles.Subscribed(d, lektordir.FeedHash(lektordir.NormalizeID(url))) {
			t.Errorf("not subscribed to %s", url)
		}
	}
}

// outlines returns the feeds of a list.
func outlines(t *testing.T, data []byte) []string {
	var urls []string
	dec := xml.NewDecoder(bytes.NewReader(data))
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return urls
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "xmlUrl" {
					urls = append(urls, a.Value)
				}
			}
		}
	}
}

// squash normalises white space, to compare titles.
func squash(s string) string { return strings.Join(strings.Fields(s), " ") }

// countTitles returns the titles of a document's entries, without feedconv.
func countTitles(t *testing.T, name string, data []byte) []string {
	t.Helper()
	titles := []string{}
	if strings.HasSuffix(name, ".json") {
		var doc struct {
			Items []struct{ Title string }
			RSS   struct {
				Channel struct{ Item []struct{ Title string } }
			}
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, i := range append(doc.Items, doc.RSS.Channel.Item...) {
			titles = append(titles, squash(plain(i.Title)))
		}
		return titles
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.Strict = false
	dec.Entity = xml.HTMLEntity
	depth, item, inTitle := 0, 0, 0
	title := ""
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return titles
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			depth++
			switch {
			case item == 0 && (tok.Name.Local == "item" || tok.Name.Local == "entry"):
				item, title = depth, ""
			case item > 0 && depth == item+1 && tok.Name.Local == "title" && !strings.Contains(tok.Name.Space, "itunes") && !strings.Contains(tok.Name.Space, "mrss"):
				inTitle, title = depth, ""
			}
		case xml.CharData:
			if inTitle > 0 {
				title += string(tok)
			}
		case xml.EndElement:
			if depth == inTitle {
				inTitle = 0
			}
			if depth == item {
				item = 0
				titles = append(titles, squash(plain(title)))
			}
			depth--
		}
	}
}

// plain decodes the HTML that occurs in titles of the samples.
func plain(s string) string {
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&#39;", "'", "&quot;", `"`, "&#8217;", "’", "&#8220;", "“", "&#8221;", "”", "&#8216;", "‘", "&#8212;", "—", "&#8211;", "–", "&#8230;", "…", "&nbsp;", " ",
		"<em>", "", "</em>", "", "<i>", "", "</i>", "", "<b>", "", "</b>", "").Replace(s)
}

// run runs the program in this process.
func run(t testing.TB, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Setenv("no_proxy", "*")
	var out, errs bytes.Buffer
	app := newApp()
	app.Reader, app.Writer, app.ErrWriter = strings.NewReader(stdin), &out, &errs
	status = cmdline.Main(app, append([]string{"lektor-fetch"}, args...))
	return status, out.String(), errs.String()
}

// TestBadSources: among a hundred good sources are ten bad ones. The hundred are delivered, the ten
// are reported, and the memory stays small, measured in a separate process.
func TestBadSources(t *testing.T) {
	var list strings.Builder
	list.WriteString("<opml><body>")
	var good, bad []string
	for i := range 20 {
		s := server.Start(t, fmt.Sprintf("127.0.0.%d", i+2))
		for j := range 5 {
			path := fmt.Sprintf("/%d.xml", j)
			s.Handle(path, server.Doc("application/rss+xml", server.RSS(fmt.Sprintf("Good %d-%d", i, j), 0, 20)))
			good = append(good, s.URL(path))
		}
	}
	var zeros bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zeros, gzip.BestSpeed)
	io.CopyN(z, zero{}, 200<<20)
	z.Close()
	var nested strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&nested, `<a xmlns:n%d="http://n.example/%d">`, i, i)
	}
	bomb := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">`
	for i := range 10 {
		bomb += fmt.Sprintf(`<!ENTITY lol%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&lol%d;", i), 10))
	}
	bomb = strings.Replace(bomb+"]><lolz>&lol9;</lolz>", "&lol0;", "&lol;", -1)
	for path, h := range map[string]http.HandlerFunc{
		"/404":     server.Answer(404, "nothing here"),
		"/500":     server.Answer(500, "oh"),
		"/html":    server.Answer(200, "<html><head><title>A page</title></head></html>", "Content-Type: text/html"),
		"/empty":   server.Answer(200, ""),
		"/bomb":    server.Answer(200, bomb, "Content-Type: text/xml"),
		"/nested":  server.Answer(200, nested.String(), "Content-Type: text/xml"),
		"/gzip":    server.Answer(200, zeros.String(), "Content-Type: text/xml", "Content-Encoding: gzip"),
		"/endless": server.Endless("<rss><channel>", "<item><title>again</title></item>"),
		"/stalls":  server.Stall,
	} {
		// Each is on its own port, and so counts as a host.
		s := server.Start(t, "127.0.0.1")
		s.Handle(path, h)
		bad = append(bad, s.URL(path))
	}
	// An invalid name is not looked up.
	bad = append(bad, "http://unknown..host/feed")
	for _, u := range slices.Concat(bad, good) {
		fmt.Fprintf(&list, "<outline xmlUrl=%q/>", u)
	}
	h := newHostile(t)
	var dir string
	var o outcome
	for seconds := 2; ; seconds *= 2 {
		dir = filepath.Join(t.TempDir(), "feeds")
		if status, _, stderr := run(t, list.String(), "import", "--dir", dir, "--no-fetch", "-"); status != 0 {
			t.Fatal(stderr)
		}
		o = h.run(t, dir, "", "--gap", "1ms", "--timeout", fmt.Sprintf("%ds", seconds))
		// All sources but the stalled ones must arrive in time; a busy machine needs longer.
		if strings.Count(o.stderr, fmt.Sprintf(" within %ds", seconds)) <= 1 || seconds > 60 {
			break
		}
	}
	if o.status != cmdline.StatusRemote {
		t.Errorf("status %d, not 75", o.status)
	}
	if want := "110 feeds: 100 fetched, 10 failed; 2,000 new entries\n"; !strings.HasSuffix(o.stderr, want) {
		t.Errorf("the summary is not %q:\n%s", want, o.stderr)
	}
	d, err := lektordir.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range bad {
		if !strings.Contains(o.stderr, "lektor-fetch: "+u+": ") {
			t.Errorf("%s is not named:\n%s", u, o.stderr)
		}
		sub, err := subscriptions.Read(d, lektordir.FeedHash(u))
		if err != nil || !strings.Contains(sub.Error, u) {
			t.Errorf("%s: the file error holds %q, %v", u, sub.Error, err)
		}
	}
	refs, err := d.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		t.Error(err)
	}
	entries := map[string]int{}
	for _, r := range refs {
		entries[r.Feed]++
	}
	for _, u := range good {
		if n := entries[lektordir.FeedHash(u)]; n != 20 {
			t.Errorf("%s: %d entries", u, n)
		}
	}
	if problems, err := d.Check(context.Background(), false); err != nil || len(problems) > 0 {
		t.Errorf("got %v, %v; want err == nil and len(problems) == 0", problems, err)
	}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestPolite runs the fetcher every minute of a simulated clock, and checks the requests that
// servers receive.
func TestPolite(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	rss := server.RSS("Example", 0, 1)
	odd := "W/\"a\\\"b,c\xe9\""
	answer := server.Answer
	target := server.Start(t, "127.0.0.2")
	target.Handle("/new", server.Doc("", rss))
	type visit struct {
		minute int
		etag   string
	}
	var mu sync.Mutex
	visits := map[string][]visit{}
	feeds := map[string][]http.HandlerFunc{
		// The default interval is an hour.
		"/odd": {answer(200, rss, "ETag: "+odd), answer(304, "", "ETag: "+odd), answer(304, ""), answer(304, "")},
		// max-age applies to a 200 and to a 304, and stays if a 304 has none.
		"/age": {answer(200, rss, "Cache-Control: max-age=7200", `ETag: "e"`), answer(304, "", "Cache-Control: max-age=10800"), answer(304, ""), answer(304, "", "Cache-Control: max-age=60")},
		"/429": {answer(429, "", "Retry-After: 9000"), answer(200, rss), answer(200, rss)},
		"/503": {answer(503, "", "Date: Sun, 01 Mar 2026 12:00:00 GMT", "Retry-After: Sun, 01 Mar 2026 15:00:00 GMT"), answer(200, rss), answer(200, rss)},
		"/301": {answer(301, "", "Location: "+target.URL("/new"))},
		"/410": {answer(410, "")},
		"/ttl": {answer(200, strings.Replace(rss, "<item>", "<ttl>150</ttl><item>", 1))},
	}
	dir := filepath.Join(t.TempDir(), "feeds")
	if _, err := lektordir.Create(dir, nil); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for path, handlers := range feeds {
		s := server.Start(t, "127.0.0.1")
		for i, h := range handlers {
			handlers[i] = func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				visits[path] = append(visits[path], visit{int(now.Sub(start) / time.Minute), r.Header.Get("If-None-Match")})
				h(w, r)
			}
		}
		s.Handle(path, handlers...)
		urls = append(urls, s.URL(path))
	}
	if status, _, stderr := run(t, "", append([]string{"add", "--dir", dir, "--no-fetch", "--as-is"}, urls...)...); status != 0 {
		t.Fatal(stderr)
	}
	minute := func() {
		t.Helper()
		var out bytes.Buffer
		s := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &out, &out)
		err := fetcher.Update(context.Background(), fetcher.UpdateOptions{Common: fetcher.Common{Dir: dir, Options: fetcher.Options{Fetch: fetch.Config{
			Now:   func() time.Time { return now },
			Sleep: func(_ context.Context, d time.Duration) error { return nil },
		}}}}, s)
		if status := cmdline.Status(err); status == cmdline.StatusFailed || s.Report.Errors() > 0 {
			t.Fatalf("got %v: %v\n%s; want status != cmdline.StatusFailed and s.Report.Errors() <= 0", now, err, &out)
		}
	}
	for range 9*60 + 1 {
		minute()
		now = now.Add(time.Minute)
	}
	want := map[string][]visit{
		"/odd": {{0, ""}, {60, odd}, {120, odd}, {180, odd}, {240, odd}, {300, odd}, {360, odd}, {420, odd}, {480, odd}, {540, odd}},
		"/age": {{0, ""}, {120, `"e"`}, {300, `"e"`}, {480, `"e"`}, {540, `"e"`}},
		"/429": {{0, ""}, {150, ""}, {210, ""}, {270, ""}, {330, ""}, {390, ""}, {450, ""}, {510, ""}},
		"/503": {{0, ""}, {180, ""}, {240, ""}, {300, ""}, {360, ""}, {420, ""}, {480, ""}, {540, ""}},
		"/410": {{0, ""}},
		"/ttl": {{0, ""}, {150, ""}, {300, ""}, {450, ""}},
	}
	for path, v := range want {
		if !slices.Equal(visits[path], v) {
			t.Errorf("%s: visits %+v, want %+v", path, visits[path], v)
		}
	}
	if v := visits["/301"]; len(v) != 3 || v[0].minute != 0 || v[1].minute != 60 || v[2].minute != 120 {
		t.Errorf("/301: visits %+v", v)
	}
	if n := len(target.Requests("/new")); n != 10 {
		t.Errorf("%d requests of where the feed moved to", n)
	}
	// A feed that has ended is requested once a month.
	now = start.Add(30*24*time.Hour - time.Minute)
	minute()
	if n := len(visits["/410"]); n != 1 {
		t.Errorf("/410: %d visits before the month is over", n)
	}
	now = start.Add(30 * 24 * time.Hour)
	minute()
	if n := len(visits["/410"]); n != 2 {
		t.Errorf("/410: %d visits when the month is over", n)
	}
}
