package ess

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// begin is the time at the beginning of a test.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bench is a lektor-dir, a server and a clock.
type bench struct {
	t         testing.TB
	dir       string
	now       time.Time
	s         *server.Server
	forgotten int // number of forgotten requests
}

// forget forgets the requests so far.
func (b *bench) forget() { b.forgotten = len(b.s.Requests("")) }

// requests lists the requests since forget, for a path, or all for "".
func (b *bench) requests(path string) []server.Request {
	return slices.DeleteFunc(b.s.Requests("")[b.forgotten:], func(r server.Request) bool { return path != "" && r.Path != path })
}

func newBench(t testing.TB) *bench {
	s := server.Start(t, "127.0.0.1")
	return &bench{t: t, dir: testdir.New(t).Path, now: begin, s: s}
}

func (b *bench) common() Common {
	return Common{Dir: b.dir, Now: func() time.Time { return b.now }, Fetch: b.fetch()}
}

func (b *bench) fetch() fetch.Config {
	return fetch.Config{PerHost: 8, Now: func() time.Time { return b.now }, Sleep: func(ctx context.Context, d time.Duration) error { return ctx.Err() }}
}

// streams returns streams, and buffers with their output.
func streams(in string) (s *cmdline.Streams, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return cmdline.NewStreams("lektor-ess", strings.NewReader(in), out, err), out, err
}

// poll polls, and returns the summary.
func (b *bench) poll(o PollOptions) (stdout, stderr string) {
	b.t.Helper()
	o.Common = b.common()
	o.N = max(o.N, 1)
	s, out, err := streams("")
	if e := Poll(b.t.Context(), o, s); e != nil {
		b.t.Fatalf("got %v\n%s; want e == nil", e, err)
	}
	return out.String(), err.String()
}

// update fetches as lektor-fetch does.
func (b *bench) update(sel fetcher.Selection, f func(*fetcher.Runner)) fetcher.Summary {
	b.t.Helper()
	d, err := lektordir.Open(b.dir, &lektordir.Options{Now: func() time.Time { return b.now }, Host: "host"})
	if err != nil {
		b.t.Fatal(err)
	}
	s, _, msg := streams("")
	r, err := fetcher.New(d, s.Report, fetcher.Options{Jobs: 8, Fetch: b.fetch()})
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	if f != nil {
		f(r)
		return fetcher.Summary{}
	}
	sum, err := r.Update(b.t.Context(), sel)
	if err != nil || msg.Len() > 0 {
		b.t.Fatalf("got %v\n%s; want err == nil and msg.Len() == 0", err, msg)
	}
	return sum
}

// markers lists the due markers.
func (b *bench) markers() []string {
	names, _ := filepath.Glob(filepath.Join(b.dir, "etc/fetch/due/*"))
	for i, n := range names {
		names[i] = filepath.Base(n)
	}
	return names
}

// feed returns a feed document with n entries, newest first.
func feed(self, essURL string, n int, newest time.Time, title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>%s</title><link>%s</link><description>d</description>`, title, self)
	if essURL != "" {
		fmt.Fprintf(&b, `<atom:link rel="alternate" type="application/ess" href="%s"/>`, essURL)
	}
	for i := range n {
		fmt.Fprintf(&b, "<item><title>%s %d</title><guid isPermaLink=\"false\">%s-%d</guid><pubDate>%s</pubDate><description>%s</description></item>",
			title, n-i, title, n-i, newest.Add(-time.Duration(i)*time.Hour).Format(time.RFC1123Z), strings.Repeat("word ", 1200))
	}
	b.WriteString("</channel></rss>")
	return b.String()
}

// essOf returns the ESS document of a feed document.
func essOf(t testing.TB, url, doc string, at time.Time) string {
	s, out, _ := streams(doc)
	if err := Build(t.Context(), BuildOptions{Common: Common{At: at}, FromDocument: true, URL: url, N: 100}, s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPollFetchesWhatQualifies polls 400 feeds with ESS and fetches the due ones: exactly the
// 4 feeds with new entries.
func TestPollFetchesWhatQualifies(t *testing.T) {
	// Each feed costs disk and time; the test needs only the ratio.
	feeds, news, stale, entries := 400, 4, 4, 2
	b := newBench(t)
	path := func(i int) string { return fmt.Sprintf("/%d.xml", i) }
	essPath := func(i int) string { return fmt.Sprintf("/%d.ess", i) }
	full := 0 // bytes of all feeds
	put := func(i int, doc string, at time.Time) {
		full += len(doc)
		b.s.Handle(path(i), server.Doc("application/rss+xml", doc))
		b.s.Handle(essPath(i), server.Doc("application/ess", essOf(t, b.s.URL(path(i)), doc, at)))
	}
	title := func(i int) string { return fmt.Sprintf("Feed%d", i) }
	newest := func(i int) time.Time { return begin.Add(-time.Duration(i) * time.Minute) }
	for i := range feeds {
		put(i, feed(b.s.URL(path(i)), b.s.URL(essPath(i)), entries, newest(i), title(i)), begin)
	}
	d := &testdir.Dir{Path: b.dir}
	for i := range feeds {
		if _, err := d.Feed(b.s.URL(path(i)), title(i), "etc/fetch/url="+b.s.URL(path(i))); err != nil {
			t.Fatal(err)
		}
	}
	if sum := b.update(fetcher.Selection{Reason: fetcher.Forced}, nil); sum.New != feeds*entries {
		t.Fatalf("got %v; want sum.New == feeds * entries", sum)
	}
	// At the first poll, all entries are held already.
	if _, msg := b.poll(PollOptions{N: 100}); len(b.markers()) != 0 || !strings.Contains(msg, "0 due") {
		t.Fatalf("%d due; %s", len(b.markers()), msg)
	}

	// A quarter of an hour later, some feeds have new entries, and others have changed without
	// an entry that is new enough.
	b.now = begin.Add(15 * time.Minute)
	var want []string
	full = 0
	for i := range feeds {
		switch url := b.s.URL(path(i)); {
		case i%(feeds/news) == 7:
			doc := feed(url, b.s.URL(essPath(i)), entries+1, b.now.Add(-time.Duration(i%10)*time.Minute), title(i))
			put(i, doc, b.now)
			want = append(want, path(i))
		case i%(feeds/stale) == 3:
			// Add an old entry that the feed lacked before.
			doc := strings.Replace(feed(url, b.s.URL(essPath(i)), entries, newest(i), title(i)), "<item>", "<item><title>late</title><guid>late</guid><pubDate>"+begin.AddDate(0, -1, 0).Format(time.RFC1123Z)+"</pubDate></item><item>", 1)
			put(i, doc, b.now)
		default:
			full += len(feed(url, b.s.URL(essPath(i)), entries, newest(i), title(i)))
		}
	}
	b.forget()
	_, msg := b.poll(PollOptions{N: 100})
	if len(b.markers()) != news || !strings.Contains(msg, fmt.Sprintf("; %d due", news)) {
		t.Fatalf("%d due; %s", len(b.markers()), msg)
	}
	sum := b.update(fetcher.Selection{}, nil)
	// Fetching all feeds brings no other entries.
	var fetched []string
	spent := 0
	for _, r := range b.requests("") {
		if strings.HasSuffix(r.Path, ".xml") {
			fetched = append(fetched, r.Path)
		}
	}
	slices.Sort(fetched)
	slices.Sort(want)
	if !slices.Equal(fetched, want) || sum.Fetched != news || sum.New < news {
		t.Fatalf("fetched %v, want %v; %v", fetched, want, sum)
	}
	spent = b.transferred(func(path string) int { return len(b.get(path)) })
	t.Logf("%d feeds: %d bytes instead of %d, %d times fewer", feeds, spent, full, full/spent)
	if full < 50*spent {
		t.Errorf("%d bytes instead of %d: only %d times fewer", spent, full, full/spent)
	}
	polled := b.newest(100)
	b.update(fetcher.Selection{Reason: fetcher.Forced}, nil)
	if all := b.newest(100); !slices.Equal(polled, all) {
		t.Errorf("the newest entries differ from those after fetching all feeds:\n%v\n%v", polled, all)
	}
	// At another poll, no feed is due, and all answers are 304.
	b.forget()
	b.poll(PollOptions{N: 100})
	for _, r := range b.requests("") {
		if r.Status != http.StatusNotModified {
			t.Fatalf("got %s: %d; want r.Status == http.StatusNotModified", r.Path, r.Status)
		}
	}
	if m := b.markers(); len(m) > 0 {
		t.Errorf("due: %v", m)
	}
}

// get asks the server for a document.
func (b *bench) get(path string) string {
	resp, err := http.Get(b.s.URL(path))
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		b.t.Fatal(err)
	}
	return body.String()
}

// transferred adds up the bodies that the server has sent.
func (b *bench) transferred(length func(path string) int) int {
	n := 0
	for _, r := range b.requests("") {
		if r.Status == http.StatusOK {
			n += length(r.Path)
		}
	}
	return n
}

// newest lists the newest entries of the lektor-dir.
func (b *bench) newest(n int) []string {
	b.t.Helper()
	s, out, _ := streams("")
	if err := MakeNNO(b.t.Context(), NNOOptions{Common: b.common(), N: n, Print: cmdline.PrinterOptions{Format: "{{.date}} {{.url}} {{.checksum}}"}}, s); err != nil {
		b.t.Fatal(err)
	}
	return strings.Split(out.String(), "\n")
}

// subscribed subscribes to a feed with an ESS document, and adds entries.
func (b *bench) subscribed(name string, titles ...string) (url, hash string) {
	b.t.Helper()
	url = b.s.URL("/" + name + ".xml")
	d := &testdir.Dir{Path: b.dir}
	hash, err := d.Feed(url, name, "etc/fetch/url="+url, "etc/ess/link="+b.s.URL("/"+name+".ess"))
	if err != nil {
		b.t.Fatal(err)
	}
	for i, title := range titles {
		at := begin.Add(-time.Duration(i) * time.Hour)
		if _, err := d.Entry(url, "new", testdir.Unique(at.Unix(), i+1), "title="+title, "pubdate="+at.Format(time.RFC3339)); err != nil {
			b.t.Fatal(err)
		}
	}
	return url, hash
}

// serve serves an ESS document of entries, given as minutes before begin and
// titles.
func (b *bench) serve(name string, entries ...any) {
	var e []ess.Entry
	for i := 0; i < len(entries); i += 2 {
		e = append(e, ess.Entry{Minute: ess.Minute(begin) - int64(entries[i].(int)), Sum: ess.Checksum(entries[i+1].(string))})
	}
	b.s.Handle("/"+name+".ess", server.Doc("application/ess", string(ess.AppendESS(nil, b.now, b.s.URL("/"+name+".xml"), e))))
}

func TestPollQualification(t *testing.T) {
	for name, tc := range map[string]struct {
		n       int
		entries []any
		due     bool
	}{
		"all held":                      {100, []any{0, "one", 60, "two"}, false},
		"a new one":                     {100, []any{-5, "three", 0, "one", 60, "two"}, true},
		"another title":                 {100, []any{0, "uno", 60, "two"}, true},
		"N not full":                    {100, []any{0, "one", 60, "two", 99999, "old"}, true},
		"too old for N":                 {2, []any{0, "one", 60, "two", 99999, "old"}, false},
		"as old as the oldest":          {2, []any{0, "one", 60, "two", 60, "other"}, false},
		"between":                       {2, []any{0, "one", 59, "other", 60, "two"}, true},
		"twins, one held":               {100, []any{0, "one", 0, "one", 60, "two"}, true},
		"in the future":                 {2, []any{-99999, "soon"}, true},
		"nothing at all":                {1, nil, false},
		"newer than one, not the other": {1, []any{30, "between"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			_, hash := b.subscribed("f", "one", "two")
			b.serve("f", tc.entries...)
			b.poll(PollOptions{N: tc.n})
			if got := slices.Contains(b.markers(), hash); got != tc.due {
				t.Errorf("due: %v", got)
			}
		})
	}
}

// TestPollDeletedEntry checks that entries that the user deleted make a feed due at most once.
func TestPollDeletedEntry(t *testing.T) {
	b := newBench(t)
	_, hash := b.subscribed("f", "one", "two")
	marker := filepath.Join(b.dir, "etc/fetch/due", hash)
	b.serve("f", 0, "one", 60, "two")
	b.poll(PollOptions{N: 100})
	if err := os.RemoveAll(filepath.Join(b.dir, "new", hash)); err != nil {
		t.Fatal(err)
	}
	b.serve("f", 0, "one", 60, "two", 120, "three") // a change, so that the document is compared
	b.poll(PollOptions{N: 100})
	if err := os.Remove(marker); err != nil {
		t.Fatal("three is new: ", err)
	}
	b.serve("f", 0, "one", 120, "three")
	b.poll(PollOptions{N: 100})
	if len(b.markers()) > 0 {
		t.Error("the feed is due again without a new entry")
	}
	// The handled entries are recorded as an ESS document.
	doc, err := os.ReadFile(filepath.Join(b.dir, "src", hash, "etc/ess/handled"))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := ess.Decode(doc, nil); err != nil || len(d.Entries) != 2 {
		t.Errorf("got %s, %v; want err == nil and len(d.Entries) == 2", doc, err)
	}
}

// TestPollTwins checks that the second of two equal entries is new once.
func TestPollTwins(t *testing.T) {
	b := newBench(t)
	_, hash := b.subscribed("f", "one")
	for i, want := range []int{0, 1, 1, 0} {
		e := []any{0, "one"}
		for range i {
			e = append(e, 0, "one")
		}
		if i == 3 {
			e = e[:6] // as before, with another build time
			b.now = b.now.Add(time.Hour)
		}
		b.serve("f", e...)
		b.poll(PollOptions{N: 100})
		if len(b.markers()) != want {
			t.Errorf("got %d: %v; want len(b.markers()) == want", i, b.markers())
		}
		os.Remove(filepath.Join(b.dir, "etc/fetch/due", hash))
	}
}

// TestPollVersionsAreOne checks that two versions of an entry count as one entry.
func TestPollVersionsAreOne(t *testing.T) {
	b := newBench(t)
	url, _ := b.subscribed("f")
	d := &testdir.Dir{Path: b.dir}
	for i := range 2 {
		name := fmt.Sprintf("%d.M1P1Q1I00000000000000aa.host", begin.Unix()+int64(i))
		if _, err := d.Entry(url, "new", name, "title=one", "content="+name, "pubdate="+begin.Format(time.RFC3339)); err != nil {
			t.Fatal(err)
		}
	}
	b.serve("f", 0, "one", 0, "one")
	b.poll(PollOptions{N: 100})
	if len(b.markers()) != 1 {
		t.Errorf("got %v; want len(b.markers()) == 1", b.markers())
	}
}

func TestPollConditional(t *testing.T) {
	b := newBench(t)
	b.subscribed("f", "one")
	b.serve("f", 0, "one")
	b.poll(PollOptions{N: 100})
	b.poll(PollOptions{N: 100})
	r := b.requests("/f.ess")
	if len(r) != 2 || r[1].Status != http.StatusNotModified || len(b.requests("")) != 2 {
		t.Errorf("got %+v; want len(r) == 2 and r[1].Status == http.StatusNotModified and len(b.requests(\"\")) == 2", b.requests(""))
	}
}

func TestPollPrintsInstead(t *testing.T) {
	b := newBench(t)
	url, _ := b.subscribed("f", "one")
	b.subscribed("g", "one")
	b.serve("f", -1, "new")
	b.serve("g", 0, "one")
	out, _ := b.poll(PollOptions{N: 100, Print: cmdline.PrinterOptions{Format: "url"}})
	if out != url+"\n" || len(b.markers()) > 0 {
		t.Errorf("got %q, %v; want out == url + \"\\n\" and len(b.markers()) == 0", out, b.markers())
	}
}

func TestPollDryRun(t *testing.T) {
	b := newBench(t)
	_, hash := b.subscribed("f", "one")
	b.serve("f", -1, "new")
	for range 2 {
		_, msg := b.poll(PollOptions{N: 100, DryRun: true})
		if len(b.markers()) > 0 || !strings.Contains(msg, "f.xml would be due") {
			t.Errorf("got %v %s; want len(b.markers()) == 0 and strings.Contains(msg, \"f.xml would be due\")", b.markers(), msg)
		}
	}
	names, _ := os.ReadDir(filepath.Join(b.dir, "src", hash, "etc/ess"))
	if len(names) != 1 {
		t.Errorf("got %v; want len(names) == 1", names)
	}
}

// TestPollGoesThroughNoLink checks that nothing is written through a symbolic link in the
// place of a feed's directory, and that other feeds are polled.
func TestPollGoesThroughNoLink(t *testing.T) {
	b := newBench(t)
	url, bad := b.subscribed("f", "one")
	_, good := b.subscribed("g", "one")
	b.serve("f", -1, "new")
	b.serve("g", -1, "new")
	outside := t.TempDir()
	dir := filepath.Join(b.dir, "src", bad, "etc/ess")
	link, err := os.ReadFile(filepath.Join(dir, "link"))
	if err == nil {
		err = os.WriteFile(filepath.Join(outside, "link"), link, 0o666)
	}
	if err := errors.Join(err, os.RemoveAll(dir), os.Symlink(outside, dir)); err != nil {
		t.Fatal(err)
	}
	s, _, msg := streams("")
	if err := Poll(t.Context(), PollOptions{Common: b.common(), N: 100}, s); err == nil || !strings.Contains(msg.String(), "src/"+bad+"/etc/ess") {
		t.Errorf("got %v: %s; want err != nil and strings.Contains(msg.String(), \"src/\"+bad+\"/etc/ess\")", err, msg)
	}
	if !slices.Equal(b.markers(), []string{good}) {
		t.Errorf("due: %v", b.markers())
	}
	// An NNO does not cause writing through the link either.
	nno := ess.AppendNNO(nil, b.now, []ess.FeedEntry{{Feed: url, Entry: ess.Entry{Minute: ess.Minute(begin) + 2, Sum: 9}}})
	b.s.Handle("/all.nno", server.Doc("application/nno", string(nno)))
	s, _, msg = streams("")
	if err := Poll(t.Context(), PollOptions{Common: b.common(), N: 100, Feeds: []string{b.s.URL("/all.nno")}}, s); err == nil || !strings.Contains(msg.String(), "src/"+bad+"/etc/ess") {
		t.Errorf("got %v: %s; want err != nil and strings.Contains(msg.String(), \"src/\"+bad+\"/etc/ess\")", err, msg)
	}
	if names, _ := os.ReadDir(outside); len(names) != 1 {
		t.Errorf("files were written outside: %v", names)
	}
}

// TestPollFailures checks that a document that cannot be fetched is reported, that others are
// polled, and that the next poll does not request it at once.
func TestPollFailures(t *testing.T) {
	b := newBench(t)
	b.subscribed("f", "one")
	_, good := b.subscribed("g", "one")
	b.s.Handle("/f.ess", server.Answer(503, "busy"))
	b.serve("g", -1, "new")
	s, _, msg := streams("")
	err := Poll(t.Context(), PollOptions{Common: b.common(), N: 100}, s)
	if cmdline.Status(err) != cmdline.StatusRemote || !slices.Equal(b.markers(), []string{good}) || !strings.Contains(msg.String(), "503") {
		t.Errorf("%v, %v, %s", err, b.markers(), msg)
	}
	b.forget()
	if _, msg := b.poll(PollOptions{N: 100}); len(b.requests("/f.ess")) > 0 || !strings.Contains(msg, "1 postponed") {
		t.Errorf("got %v %s; want len(b.requests(\"/f.ess\")) <= 0 and strings.Contains(msg, \"1 postponed\")", b.requests(""), msg)
	}
	// If the feed is named, its document is requested, and a failure makes the command fail.
	s, _, _ = streams("")
	err = Poll(t.Context(), PollOptions{Common: b.common(), N: 100, Feeds: []string{b.s.URL("/f.xml")}}, s)
	if cmdline.Status(err) != cmdline.StatusFailed || len(b.requests("/f.ess")) != 1 {
		t.Errorf("got %v, %v; want cmdline.Status(err) == cmdline.StatusFailed and len(b.requests(\"/f.ess\")) == 1", err, b.requests(""))
	}
	// An error page is not an ESS document.
	b.now = b.now.Add(48 * time.Hour)
	b.s.Handle("/f.ess", server.Doc("text/html", "<html>"))
	s, _, msg = streams("")
	err = Poll(t.Context(), PollOptions{Common: b.common(), N: 100}, s)
	if cmdline.Status(err) != cmdline.StatusRemote || !strings.Contains(msg.String(), "not an ESS document") {
		t.Errorf("got %v, %s; want cmdline.Status(err) == cmdline.StatusRemote and strings.Contains(msg.String(), \"not an ESS document\")", err, msg)
	}
}

// TestPollURL polls documents that are named by URL.
func TestPollURL(t *testing.T) {
	b := newBench(t)
	url, hash := b.subscribed("f", "one")
	b.serve("f", -1, "new")
	b.serve("strange", -1, "new")
	nno := ess.AppendNNO(nil, b.now, []ess.FeedEntry{
		{Feed: url, Entry: ess.Entry{Minute: ess.Minute(begin) + 2, Sum: 9}},
		{Feed: "http://other.example/", Entry: ess.Entry{Minute: ess.Minute(begin) + 2, Sum: 9}},
	})
	b.s.Handle("/all.nno", server.Doc("application/nno", string(nno)))
	format := cmdline.PrinterOptions{Format: "url"}
	for _, tc := range []struct{ arg, want string }{
		{b.s.URL("/f.ess"), url + "\n"},
		{hash, ""}, // its new entry is already handled
		{b.s.URL("/strange.ess"), b.s.URL("/strange.xml") + "\n"},
		{b.s.URL("/all.nno"), url + "\nhttp://other.example/\n"},
	} {
		if out, _ := b.poll(PollOptions{N: 100, Feeds: []string{tc.arg}, Print: format}); out != tc.want {
			t.Errorf("got %s: %q; want out == tc.want", tc.arg, out)
		}
	}
	s, _, msg := streams("")
	err := Poll(t.Context(), PollOptions{Common: b.common(), N: 100, Feeds: []string{b.s.URL("/strange.ess")}}, s)
	if err != nil || s.Report.Errors() != 1 || !strings.Contains(msg.String(), "not subscribed to") {
		t.Errorf("got %v, %s; want err == nil and s.Report.Errors() == 1 and strings.Contains(msg.String(), \"not subscribed to\")", err, msg)
	}
}

// TestPollForeignNNOEntries checks that the document of a feed cannot make other feeds due.
func TestPollForeignNNOEntries(t *testing.T) {
	b := newBench(t)
	b.subscribed("f", "one")
	other, _ := b.subscribed("g", "one")
	nno := ess.AppendNNO(nil, b.now, []ess.FeedEntry{
		{Feed: other, Entry: ess.Entry{Minute: ess.Minute(begin) + 2, Sum: 9}},
		{Feed: other, Entry: ess.Entry{Minute: ess.Minute(begin) + 3, Sum: 9}},
	})
	b.s.Handle("/f.ess", server.Doc("", string(nno)))
	b.serve("g", 0, "one")
	b.poll(PollOptions{N: 100})
	if m := b.markers(); len(m) > 0 {
		t.Errorf("got %v; want len(m) == 0", m)
	}
}

// TestPublishedIndex checks that each link of the page resolves, and that adding the page finds
// the feed and its ESS document.
func TestPublishedIndex(t *testing.T) {
	b := newBench(t)
	doc := feed(b.s.URL("/feed.xml"), "", 3, begin, "Feed")
	b.s.Handle("/feed.xml", server.Doc("application/rss+xml", doc))
	b.update(fetcher.Selection{}, func(r *fetcher.Runner) {
		if _, err := r.Add(t.Context(), b.s.URL("/feed.xml"), fetcher.AddOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	www := t.TempDir()
	for _, base := range []string{"", b.s.URL("/www")} {
		s, _, msg := streams("")
		if err := Publish(t.Context(), PublishOptions{Common: b.common(), To: filepath.Join(www, "www"), BaseURL: base, N: 100, Newest: 100, Title: `The "feeds" of <me>`}, s); err != nil {
			t.Fatalf("%v %s", err, msg)
		}
		b.serveFiles("/www/", filepath.Join(www, "www"))
		page := b.get("/www/index.html")
		links := regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1)
		if len(links) < 8 {
			t.Fatalf("got %s; want len(links) >= 8", page)
		}
		for _, l := range links {
			url := l[1]
			if !strings.HasPrefix(url, "http") {
				url = b.s.URL("/www/" + url)
			}
			resp, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("got %s: %s; want resp.StatusCode == 200", l[1], resp.Status)
			}
		}
		// Another user adds the page.
		other := newBench(t)
		var added fetcher.Added
		other.update(fetcher.Selection{}, func(r *fetcher.Runner) {
			var err error
			if added, err = r.Add(t.Context(), b.s.URL("/www/index.html"), fetcher.AddOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		if added.ID != b.s.URL("/feed.xml") || added.Summary.New != 3 {
			t.Errorf("got %+v; want added.ID == b.s.URL(\"/feed.xml\") and added.Summary.New == 3", added)
		}
		for name, want := range map[string]string{"link": added.Hash + ".ess", "nno": "feeds.nno"} {
			got, _ := atomicfile.Line(filepath.Join(other.dir, "src", added.Hash, "etc/ess", name))
			if got != b.s.URL("/www/"+want) {
				t.Errorf("etc/ess/%s: %q", name, got)
			}
		}
		if _, msg := other.poll(PollOptions{N: 100}); !strings.Contains(msg, "1 feed: 1 request") || !strings.Contains(msg, "0 due") {
			t.Errorf("got %s; want strings.Contains(msg, \"1 feed: 1 request\") and strings.Contains(msg, \"0 due\")", msg)
		}
	}
}

// serveFiles serves the files of a directory.
func (b *bench) serveFiles(prefix, dir string) {
	b.t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, n := range names {
		data, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			b.t.Fatal(err)
		}
		b.s.Handle(prefix+n.Name(), server.Doc("", string(data)))
	}
}

// TestPublishRewritesNothing checks that unchanged files are not written again.
func TestPublishRewritesNothing(t *testing.T) {
	b := newBench(t)
	b.subscribed("f", "one", "two")
	_, g := b.subscribed("g", "one")
	to := t.TempDir()
	publish := func() map[string]time.Time {
		s, _, msg := streams("")
		if err := Publish(t.Context(), PublishOptions{Common: b.common(), To: to, N: 100, Newest: 100}, s); err != nil {
			t.Fatalf("%v %s", err, msg)
		}
		times := map[string]time.Time{}
		names, _ := os.ReadDir(to)
		for _, n := range names {
			fi, err := n.Info()
			if err != nil {
				t.Fatal(err)
			}
			times[n.Name()] = fi.ModTime()
		}
		return times
	}
	old := begin.AddDate(-1, 0, 0)
	age := func() {
		for name := range publish() {
			if err := os.Chtimes(filepath.Join(to, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	age()
	b.now = b.now.Add(time.Hour)
	times := publish()
	if len(times) != 6 {
		t.Errorf("got %v; want len(times) == 6", times)
	}
	for name, at := range times {
		if !at.Equal(old) {
			t.Errorf("%s was written again", name)
		}
	}
	d := &testdir.Dir{Path: b.dir}
	if _, err := d.Entry(b.s.URL("/g.xml"), "new", testdir.Unique(begin.Unix(), 9), "title=x", "pubdate="+begin.Format(time.RFC3339)); err != nil {
		t.Fatal(err)
	}
	for name, at := range publish() {
		if got, want := !at.Equal(old), name == g+".ess" || name == nnoFile; got != want {
			t.Errorf("%s was written again: %v", name, got)
		}
	}
	// Remove a feed.
	if err := os.RemoveAll(filepath.Join(b.dir, "src", g)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.dir, "new", g)); err != nil {
		t.Fatal(err)
	}
	if _, ok := publish()[g+".ess"]; ok {
		t.Error("the document of a removed feed still exists")
	}
}

// TestScriptingNews checks that the 50 entries of a real feed take at most 512 bytes.
func TestScriptingNews(t *testing.T) {
	doc, err := os.ReadFile(filepath.FromSlash("../../../../shared/feeds/scriptingNews.rss"))
	if err != nil {
		t.Skip("no ../../../shared/feeds")
	}
	f, err := feedconv.ParseBytes(doc, feedconv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newest := f.Entries[0].PubDate
	got := essOf(t, "http://scripting.com/rss.xml", string(doc), newest.Add(10*time.Minute))
	d, err := ess.Decode([]byte(got), func(w ess.Warning) { t.Error(w) })
	if err != nil || len(d.Entries) != 50 {
		t.Fatalf("%d entries, %v", len(d.Entries), err)
	}
	if len(got) > 512 {
		t.Errorf("%d bytes", len(got))
	}
	t.Logf("%d bytes", len(got))
}

// TestIcons checks that at 16 pixels every edge lies between two pixels, and that the icons
// differ.
func TestIcons(t *testing.T) {
	for name, icon := range map[string][]byte{"ess": essIcon, "nno": nnoIcon} {
		var svg struct {
			ViewBox string `xml:"viewBox,attr"`
			Title   string `xml:"title"`
			Paths   []struct {
				D string `xml:"d,attr"`
			} `xml:"path"`
		}
		if err := xml.Unmarshal(icon, &svg); err != nil || svg.ViewBox != "0 0 16 16" || svg.Title == "" || len(svg.Paths) < 2 {
			t.Errorf("got %s: %+v, %v; want err == nil and svg.ViewBox == \"0 0 16 16\" and svg.Title != \"\" and len(svg.Paths) >= 2", name, svg, err)
		}
		for _, p := range svg.Paths {
			if strings.ContainsAny(p.D, ".") {
				t.Errorf("got %s: %s; want !strings.ContainsAny(p.D, \".\")", name, p.D)
			}
		}
	}
	if bytes.Equal(essIcon, nnoIcon) {
		t.Error("the icons are equal")
	}
}

func TestParseTime(t *testing.T) {
	for in, want := range map[string]string{
		"2026-01-31T12:00:00Z": "2026-01-31T12:00:00Z", "2026-01-31T12:00+02:00": "2026-01-31T10:00:00Z", "@1700000000": "2023-11-14T22:13:20Z",
		"1700000000": "2023-11-14T22:13:20Z", "Sat, 31 Jan 2026 12:00:00 +0000": "2026-01-31T12:00:00Z", "2026-01-31": "2026-01-31T00:00:00Z",
	} {
		if got, err := humanize.ParseTime(in, time.UTC); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("got %q: %v, %v; want err == nil and got.UTC().Format(time.RFC3339) == want", in, got, err)
		}
	}
	for in, want := range map[string]string{"2d": "2026-02-27T12:00:00Z", "12h": "2026-03-01T00:00:00Z", "2026-01-31": "2026-01-31T00:00:00Z"} {
		if got, err := ParseSince(in, begin); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("got %q: %v, %v; want err == nil and got.UTC().Format(time.RFC3339) == want", in, got, err)
		}
	}
	for _, in := range []string{"", "soon", "2x"} {
		if _, err := ParseSince(in, begin); err == nil {
			t.Errorf("ParseSince accepts %q", in)
		}
	}
}
