package fetcher

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// entry is an entry as a publisher writes it.
type entry struct {
	id, text string
	day      int // the day of updated; 0: no updated
}

func link(rel, href string) string { return fmt.Sprintf(`<link rel="%s" href="%s"/>`, rel, href) }

const mark = "<fh:archive/>"

// atomFeed is an Atom document. day is that of the document.
func atomFeed(head string, day int, entries ...entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Site</title><id>urn:x:site</id>%s%s`, updated(day), head)
	for _, e := range entries {
		fmt.Fprintf(&b, `<entry><title>%s</title><id>urn:x:%s</id>%s<content>%s</content></entry>`, e.text, e.id, updated(e.day), e.text)
	}
	b.WriteString("</feed>")
	return b.String()
}

func updated(day int) string {
	if day == 0 {
		return ""
	}
	return "<updated>" + time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, day).Format(time.RFC3339) + "</updated>"
}

// numbered returns entries from a number on, newest first.
func numbered(from, n int) (all []entry) {
	for i := from + n - 1; i >= from; i-- {
		all = append(all, entry{fmt.Sprint(i), fmt.Sprint("Entry ", i), i})
	}
	return all
}

// chain serves n archives of two entries each, /1 the oldest, and a subscription
// document /feed of two. It is called again for more archives.
func chain(s *server.Server, n int) {
	prev := ""
	for i := 1; i <= n; i++ {
		s.Handle(fmt.Sprint("/", i), server.Doc("", atomFeed(mark+link("current", "/feed")+prev, 2*i, numbered(2*i, 2)...)))
		prev = link("prev-archive", fmt.Sprint("/", i))
	}
	s.Handle("/feed", server.Doc("", atomFeed(prev, 2*n+2, numbered(2*n+2, 2)...)))
}

// asked returns the paths that were requested since the last call.
func asked(s *server.Server) string {
	var paths []string
	for _, r := range s.Requests("") {
		paths = append(paths, r.Path)
	}
	for _, p := range paths {
		s.Forget(p)
	}
	return strings.Join(paths, " ")
}

// titles returns the titles of what is shown, in order of delivery.
func titles(t *testing.T, r *Runner, o lektordir.ListOptions) []string {
	t.Helper()
	refs, err := r.Dir.List(t.Context(), o)
	if err != nil {
		t.Error(err)
	}
	var all []string
	for _, ref := range refs {
		e, err := r.Dir.ReadEntry(ref, lektordir.FieldTitle)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Title)
	}
	return all
}

// before is a time before the entries of atomFeed were published, so that all of them are new.
func before() time.Time { return time.Now().AddDate(-20, 0, 0) }

// early returns options with that time as the clock.
func early() Options { return Options{Fetch: fetch.Config{Now: before}} }

// update fetches feeds that are named, and returns the summary.
func update(t *testing.T, r *Runner, sel Selection) Summary {
	t.Helper()
	sum, err := r.Update(t.Context(), sel)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// visited subscribes to a feed and fetches it once, which sets a baseline if the feed has archives.
func visited(t *testing.T, r *Runner, s *server.Server) (hash string) {
	t.Helper()
	hash = subscribeTo(t, r, s.URL("/feed"))[0]
	update(t, r, Selection{})
	return hash
}

// TestHistoryRequests checks the number of requests, and that each entry is delivered once.
func TestHistoryRequests(t *testing.T) {
	r, s, l := setup(t, Options{})
	chain(s, 3)
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	whole := Selection{Feeds: []string{hash}, Want: Want{Archives: true}}
	if sum := update(t, r, whole); asked(s) != "/feed /3 /2 /1" || sum.New != 8 || sum.Requested != 3 || sum.Reused != 0 {
		t.Errorf("%+v", sum)
	}
	// The entries of the own document come first, then archives, oldest first.
	want := "[Entry 8 Entry 9 Entry 2 Entry 3 Entry 4 Entry 5 Entry 6 Entry 7]"
	if got := fmt.Sprint(titles(t, r, lektordir.ListOptions{})); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for range 2 {
		sum := update(t, r, whole)
		if reqs := s.Requests("/feed"); len(reqs) != 1 || reqs[0].Header.Get("If-None-Match") == "" || asked(s) != "/feed" || sum.New != 0 || sum.Reused != 3 {
			t.Errorf("%+v", sum)
		}
	}
	chain(s, 4)
	if sum := update(t, r, Selection{Feeds: []string{hash}}); asked(s) != "/feed /4" || sum.New != 2 {
		t.Errorf("%+v", sum)
	}
	if got := history.Of(r.Dir, hash).Summary(); got != "archived 4" {
		t.Error(got)
	}
	if strings.Contains(l.String(), "warning") || strings.Contains(l.String(), "error") {
		t.Error(l)
	}
}

// TestBaseline: the first fetch follows no archives, later fetches follow new archives, and history
// follows all.
func TestBaseline(t *testing.T) {
	r, s, _ := setup(t, early())
	chain(s, 3)
	hash := visited(t, r, s)
	if got := asked(s); got != "/feed" {
		t.Error(got)
	}
	h := history.Of(r.Dir, hash)
	if h.Baseline().URL != s.URL("/3") || h.Summary() != "archived 0" {
		t.Error(h.Baseline(), h.Summary())
	}
	again := Selection{Feeds: []string{hash}}
	update(t, r, again)
	if got := asked(s); got != "/feed" {
		t.Error(got)
	}
	chain(s, 5)
	if sum := update(t, r, again); asked(s) != "/feed /5 /4" || sum.New != 4 {
		t.Errorf("%+v", sum)
	}
	if sum := update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}}); asked(s) != "/feed /3 /2 /1" || sum.New != 6 || h.Baseline().URL != s.URL("/5") {
		t.Errorf("%+v", sum)
	}
	if got := titles(t, r, lektordir.ListOptions{}); len(got) != 12 {
		t.Error(got)
	}
	// While history is off, only archives are missed; they come when it is on again.
	if err := subscriptions.Set(r.Writer, r.Dir, hash, "history", "off", nil); err != nil {
		t.Fatal(err)
	}
	chain(s, 6)
	update(t, r, again)
	if got := asked(s); got != "/feed" {
		t.Error(got)
	}
	if err := subscriptions.Unset(r.Writer, r.Dir, hash, "history", nil); err != nil {
		t.Fatal(err)
	}
	update(t, r, again)
	if got := asked(s); got != "/feed /6" {
		t.Error(got)
	}
}

// TestWatchWalks: a watch walks through archives, and fetches the feed again afterwards if a marker
// was set meanwhile.
func TestWatchWalks(t *testing.T) {
	r, s, _ := setup(t, early())
	chain(s, 2)
	hash := visited(t, r, s)
	chain(s, 4)
	var mu sync.Mutex
	hold := make(chan struct{})
	r.testHook = func(where string) {
		mu.Lock()
		defer mu.Unlock()
		if where == "requested" && hold != nil {
			if err := schedule.AddMarker(r.Dir, hash); err != nil {
				t.Error(err)
			}
			hold = nil
		}
	}
	if err := schedule.AddMarker(r.Dir, hash); err != nil {
		t.Fatal(err)
	}
	asked(s)
	done := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- r.Watch(ctx, nil) }()
	eventually(t, "the archives, and the feed again", func() bool {
		return len(s.Requests("/feed")) >= 2 && len(s.Requests("/3")) == 1 && len(s.Requests("/4")) == 1
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := titles(t, r, lektordir.ListOptions{}); len(got) != 6 {
		t.Error(got)
	}
}

// TestOfAWalk: a walk leaves other files alone, and sends headers to the right servers.
func TestOfAWalk(t *testing.T) {
	r, s, _ := setup(t, Options{})
	far := server.Start(t, "127.0.0.2")
	head := func(name string) string {
		return fmt.Sprintf(`<link rel="hub" href="http://%s.example/hub"/><link rel="alternate" type="application/ess" href="http://%[1]s.example/ess"/><link rel="alternate" href="http://%[1]s.example/"/>
<cloud xmlns="" domain="%[1]s.example" port="80" path="/" registerProcedure="" protocol="http-post"/><sy:updatePeriod xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">%[2]s</sy:updatePeriod>`, name, map[string]string{"a": "hourly", "b": "yearly"}[name])
	}
	s.Handle("/feed", server.Doc("", atomFeed(head("a")+link("prev-archive", "/2"), 9, entry{"1", "One", 9})))
	s.Handle("/2", server.Doc("", strings.Replace(atomFeed(head("b")+mark+link("prev-archive", far.URL("/1")), 5, entry{"2", "Two", 5}), "<title>Site<", "<title>Other<", 1)))
	far.Handle("/1", server.Doc("", server.RSS("Old", 0, 1)))
	u := strings.Replace(s.URL("/feed"), "http://", "http://ann:s3cret@", 1)
	hash := subscribeTo(t, r, u)[0]
	if err := subscriptions.Set(r.Writer, r.Dir, hash, "headers", "X-Token: t0ken", nil); err != nil {
		t.Fatal(err)
	}
	tree := func() string {
		var all []string
		err := filepath.WalkDir(r.Dir.Join("src", hash), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.Contains(path, "etc/history/") || strings.HasSuffix(path, "/seen") {
				return err
			}
			b, err := os.ReadFile(path)
			fi, _ := e.Info()
			all = append(all, fmt.Sprintf("%s=%q %v", path, b, fi.ModTime()))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, "\n")
	}
	update(t, r, Selection{})
	before := tree()
	sum := r.walk(t.Context(), VisitResult{task: task{hash: hash, reason: Named, want: Want{Archives: true}}}, func() {})
	if after := tree(); sum.New != 2 || after != before {
		t.Errorf("%+v\n%s\n%s", sum, before, after)
	}
	// Headers and password are sent to archives of the feed's own origin only.
	near, away := s.Requests("/2"), far.Requests("/1")
	if len(near) != 1 || near[0].Header.Get("X-Token") != "t0ken" || !strings.HasPrefix(near[0].Header.Get("Authorization"), "Basic ") {
		t.Errorf("%+v", near)
	}
	if len(away) != 1 || away[0].Header.Get("X-Token") != "" || away[0].Header.Get("Authorization") != "" {
		t.Errorf("%+v", away)
	}
	b, err := os.ReadFile(r.Dir.Join("src", hash, "etc/history/archives"))
	if err != nil || strings.Contains(string(b), "s3cret") || strings.Count(string(b), "\n") != 2 {
		t.Errorf("%s, %v", b, err)
	}
}

// TestHostileArchives: if an archive is broken, newer entries are delivered, one warning names
// the archive, and so does the file incomplete. When it is mended, its entries are delivered.
func TestHostileArchives(t *testing.T) {
	var now = time.Now()
	within := func(deadline time.Duration) (*Runner, *server.Server, *log) {
		return setup(t, Options{Fetch: fetch.Config{
			Deadline: deadline, Now: func() time.Time { return now },
			Sleep: func(ctx context.Context, d time.Duration) error { now = now.Add(d); return ctx.Err() },
		}})
	}
	r, s, l := within(time.Minute)
	to := func(url string) http.HandlerFunc { return server.Answer(302, "", "Location: "+url) }
	leads := func(url string) http.HandlerFunc {
		return server.Doc("", atomFeed(mark+link("prev-archive", url), 1, entry{"old", "Old", 1}))
	}
	for i, c := range []hostile{
		{"403", server.Answer(403, ""), "the server answered 403 Forbidden", ""},
		{"404", server.Answer(404, ""), "the server answered 404 Not Found", ""},
		{"410", server.Answer(410, ""), "the server answered 410 Gone", ""},
		{"500", server.Answer(500, ""), "the server answered 500", ""},
		{"429", server.Answer(429, "", "Retry-After: 3"), "the server answered 429", ""},
		{"HTML", server.Doc("text/html", "<!DOCTYPE html><title>Moved</title><p>x"), "not a feed", ""},
		{"malformed", server.Doc("", `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</ti`), "cut off", ""},
		{"no XML", server.Doc("", "\x00\x01\x02"), "not a feed", ""},
		{"cut", server.Cut(atomFeed(mark, 1, entry{"old", "Old", 1}), 300), "its end is missing", ""},
		{"file", leads("file:///etc/passwd"), "only http: and https: are followed, not file:", "file:///etc/passwd"},
		{"userinfo", leads("http://me:pw@x.example/"), "user name or password", "http://x.example/"},
		{"ftp", leads("ftp://x.example/"), "only http: and https: are followed, not ftp:", "ftp://x.example/"},
		{"itself", leads("#top"), "form a loop", ""},
		{"two", leads("/3#older"), "form a loop", "/3"},
		{"the feed", leads("/feed"), "form a loop", "/feed"},
		{"by redirect", to("/3"), "form a loop", ""},
		{"redirect to a file", to("file:///etc/passwd"), "only http and https are followed", ""},
	} {
		for _, wrong := range c.try(t, r, s, l, &now, i) {
			t.Error(wrong)
		}
	}
	// All but the archive comes within the deadline, which takes longer on a busy machine.
	for deadline := time.Second / 2; ; deadline *= 2 {
		r, s, l = within(deadline)
		wrong := hostile{"timeout", server.Stall, "--timeout raises the limit", ""}.try(t, r, s, l, &now, 0)
		if len(wrong) == 0 {
			break
		}
		if deadline > 10*time.Second {
			t.Fatal(wrong)
		}
	}
}

// hostile is a defective archive.
type hostile struct {
	name   string
	answer http.HandlerFunc // serves the archive /2, which must link to /1
	reason string
	at     string // the archive that is missing; "" for /2
}

// goodArchive is the repaired archive.
var goodArchive = server.Doc("", atomFeed(mark, 1, entry{"old", "Old", 1}))

// try runs case i, which chooses the paths on the server, and returns its failures.
func (c hostile) try(t *testing.T, r *Runner, s *server.Server, l *log, now *time.Time, i int) (wrong []string) {
	t.Helper()
	errorf := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	*now = now.Add(100 * 24 * time.Hour)
	feed, three, two := fmt.Sprint("/feed", i), fmt.Sprint("/3-", i), fmt.Sprint("/2-", i)
	named := strings.NewReplacer("/3", three, "/feed", feed)
	at := named.Replace(c.at)
	if at == "" {
		at = two
	}
	if strings.HasPrefix(at, "/") {
		at = s.URL(at)
	}
	s.Handle(feed, server.Doc("", atomFeed(link("prev-archive", three), 9, entry{"now", "Now", 9})))
	s.Handle(three, server.Doc("", atomFeed(mark+link("prev-archive", two), 5, entry{"newer", "Newer", 5})))
	s.Handle(two, func(w http.ResponseWriter, req *http.Request) {
		rec := &rewriter{w, named, strings.NewReplacer(`"/3`, `"`+three, `"/feed`, `"`+feed)}
		c.answer(rec, req)
	})
	hash := subscribeTo(t, r, s.URL(feed))[0]
	update(t, r, Selection{Feeds: []string{hash}, Reason: Forced, Want: Want{Archives: true}})
	h := history.Of(r.Dir, hash)
	messages := l.String()
	l.b.Reset()
	gap := h.Gap()
	if gap == nil || gap.URL != at || !strings.Contains(gap.Reason, c.reason) {
		errorf("%s: %+v, want %s", c.name, gap, at)
		return wrong
	}
	if strings.Count(messages, "\n") != 1 || !strings.HasPrefix(messages, "warning: ") || !strings.Contains(messages, gap.URL) {
		errorf("%s: %q", c.name, messages)
	}
	got := titles(t, r, lektordir.ListOptions{Feeds: []string{hash}})
	if len(got) < 2 || got[0] != "Now" || !slices.Contains(got, "Newer") {
		errorf("%s: %q", c.name, got)
	}
	if sub, _ := subscriptions.Read(r.Dir, hash); sub.Error != "" || h.Summary() != "incomplete" {
		errorf("%s: %q, %s", c.name, sub.Error, h.Summary())
	}
	// Before the retry is due, there is no request and no message.
	s.Forget("")
	asked(s)
	update(t, r, Selection{Feeds: []string{hash}, Reason: Forced})
	if got := asked(s); got != feed || l.String() != "" {
		errorf("%s: %s, %s", c.name, got, l)
	}
	// After a day the archive is requested again, and a new reason is reported.
	*now = now.Add(49 * time.Hour)
	update(t, r, Selection{Feeds: []string{hash}, Reason: Forced})
	if l.String() != "" || h.Retry().Sub(*now) < 24*time.Hour-time.Second {
		errorf("%s: %s; again %v", c.name, l, h.Retry().Sub(*now))
	}
	// A repaired archive is fetched at once if the user names the feed.
	*now = now.Add(49 * time.Hour)
	s.Handle(two, goodArchive)
	if c.at != "" {
		return wrong // the archive that is stored does not change
	}
	update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
	if got := titles(t, r, lektordir.ListOptions{Feeds: []string{hash}}); h.Gap() != nil || !slices.Contains(got, "Old") || l.String() != "" {
		if c.name != "itself" {
			errorf("%s: %v, %q, %s", c.name, h.Gap(), got, l)
		}
	}
	l.b.Reset()
	return wrong
}

// TestMendedLink: history of a named feed requests an archive again if its link led nowhere. If the
// publisher has repaired the link, older archives are fetched.
func TestMendedLink(t *testing.T) {
	r, s, l := setup(t, Options{})
	for i, c := range []struct{ name, bad string }{
		{"a file", "file:///etc/passwd"}, {"a password", "http://me:pw@127.0.0.1/"}, {"another scheme", "ftp://x.example/"}, {"no host", "http:///x"},
		{"itself", "#top"}, {"empty", ""}, {"blank", " "},
		{"the newer archive", "3"}, {"the feed", "feed"}, {"not there", "nowhere"}, {"gone", "gone"}, {"no feed", "page"},
		{"a redirect to the newer archive", "redirect"}, {"a redirect to a file", "redirect-file"},
		{"a stray archive", "stray"},
	} {
		dir := fmt.Sprintf("/%d/", i)
		s.Handle(dir+"gone", server.Answer(410, ""))
		s.Handle(dir+"page", server.Doc("text/html", "<!DOCTYPE html><title>x</title><p>x"))
		s.Handle(dir+"stray", server.Doc("", atomFeed(mark+link("prev-archive", "3"), 5)))
		s.Handle(dir+"redirect", server.Answer(302, "", "Location: "+dir+"3"))
		s.Handle(dir+"redirect-file", server.Answer(302, "", "Location: file:///etc/passwd"))
		s.Handle(dir+"feed", server.Doc("", atomFeed(link("prev-archive", "3"), 9, entry{"4", "Four", 9})))
		s.Handle(dir+"3", server.Doc("", atomFeed(mark+link("prev-archive", "2"), 3, entry{"3", "Three", 3})))
		second := func(prev string) http.HandlerFunc {
			return server.Doc("", atomFeed(mark+`<link rel="prev-archive" href="`+prev+`"/>`, 2, entry{"2", "Two", 2}))
		}
		s.Handle(dir+"2", second(c.bad))
		s.Handle(dir+"1", server.Doc("", atomFeed(mark, 1, entry{"1", "One", 1})))
		hash := subscribeTo(t, r, s.URL(dir+"feed"))[0]
		named := Selection{Feeds: []string{hash}, Want: Want{Archives: true}}
		h := history.Of(r.Dir, hash)
		for range 2 {
			update(t, r, named)
			if h.Gap() == nil || !strings.Contains(l.String(), "error: ") {
				t.Fatalf("%s: nothing is missing: %s", c.name, l)
			}
			l.b.Reset()
		}
		gap := h.Gap().String()
		s.Handle(dir+"2", second("1"))
		asked(s)
		// An automatic walk requests an archive once.
		unnamed := named
		unnamed.Reason = Forced
		if update(t, r, unnamed); strings.Contains(asked(s), dir+"2") || h.Gap() == nil {
			t.Errorf("%s: %v", c.name, h.Gap())
		}
		l.b.Reset()
		sum := update(t, r, named)
		if got := asked(s); h.Gap() != nil || l.String() != "" || sum.New != 1 || strings.Count(got, dir+"2") != 1 || strings.Contains(got, dir+"3") && c.bad != "redirect" && c.bad != "stray" {
			t.Errorf("%s (%s): %v, %+v, it asked for %s\n%s", c.name, gap, h.Gap(), sum, got, l)
		}
		got := titles(t, r, lektordir.ListOptions{Feeds: []string{hash}, AllVersions: true})
		archives := "archived 3"
		if c.bad == "stray" {
			archives = "archived 4"
		}
		if slices.Sort(got); fmt.Sprint(got) != "[Four One Three Two]" || h.Summary() != archives {
			t.Errorf("%s: %q, %s", c.name, got, h.Summary())
		}
		if update(t, r, named); asked(s) != dir+"feed" || l.String() != "" {
			t.Errorf("%s: it is asked for again: %s", c.name, l)
		}
		l.b.Reset()
	}
}

// rewriter replaces text in a response.
type rewriter struct {
	http.ResponseWriter
	with, quoted *strings.Replacer // for a URL, and for a URL in a document
}

func (w *rewriter) WriteHeader(status int) {
	if to := w.Header().Get("Location"); to != "" {
		w.Header().Set("Location", w.with.Replace(to))
	}
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(status)
}

func (w *rewriter) Write(b []byte) (int, error) {
	if _, err := w.ResponseWriter.Write([]byte(w.quoted.Replace(string(b)))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (w *rewriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *rewriter) FlushError() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// TestNamedFails: a failure of a feed that the user named changes the exit status.
func TestNamedFails(t *testing.T) {
	r, s, l := setup(t, Options{})
	chain(s, 2)
	s.Handle("/1", server.Answer(404, ""))
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	for range 2 {
		update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
		if got := l.String(); strings.Count(got, "error: ") != 1 || !strings.Contains(got, "/1: the server answered 404") {
			t.Error(got)
		}
		l.b.Reset()
	}
}

// TestEndless: a walk through an endless chain ends at the limit, and the next walk continues
// there.
func TestEndless(t *testing.T) {
	if r, _, _ := setup(t, Options{}); r.opts.History != (rfc5005.Limits{Documents: 100, Entries: 10_000, Bytes: 256 << 20}) {
		t.Errorf("%+v", r.opts.History)
	}
	const most = 20
	r, s, l := setup(t, Options{History: rfc5005.Limits{Documents: most}})
	serve := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n := 0
		fmt.Sscanf(req.URL.Path, "/e/%d", &n)
		server.Doc("", atomFeed(mark+link("prev-archive", fmt.Sprint("/e/", n+1)), 1, entry{fmt.Sprint(n), "E", 1}))(w, req)
	})
	for i := range 3 * most {
		s.Handle(fmt.Sprint("/e/", i), serve)
	}
	s.Handle("/feed", server.Doc("", atomFeed(link("prev-archive", "/e/0"), 9, entry{"now", "Now", 9})))
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	h := history.Of(r.Dir, hash)
	for run := range 2 {
		sum := update(t, r, Selection{Feeds: []string{hash}, Reason: Forced, Want: Want{Archives: true}})
		gap := h.Gap()
		if sum.Requested != most || sum.Reused != most*run || gap == nil || gap.URL != s.URL(fmt.Sprint("/e/", most*(run+1))) || !strings.Contains(gap.Reason, "20 documents; the next one goes on") {
			t.Errorf("%+v, %+v", sum, gap)
		}
	}
	if got := titles(t, r, lektordir.ListOptions{}); len(got) != 2*most+1 || strings.Count(l.String(), "warning") != 2 {
		t.Error(len(got), l)
	}
	// The limit does not count as a failure of the feed, and an automatic walk does not continue
	// for a day.
	asked(s)
	update(t, r, Selection{Feeds: []string{hash}, Reason: Forced})
	if got := asked(s); got != "/feed" {
		t.Error(got)
	}
}

// TestPublishersDo: publishers change archives, against the RFC.
func TestPublishersDo(t *testing.T) {
	r, s, l := setup(t, early())
	chain(s, 3)
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
	count := func() int { return len(titles(t, r, lektordir.ListOptions{})) }
	if count() != 8 {
		t.Fatal(count())
	}
	run := func() string {
		asked(s)
		update(t, r, Selection{Feeds: []string{hash}})
		return asked(s)
	}
	// One archive changes in place: it is not requested again.
	s.Handle("/2", server.Doc("", atomFeed(mark+link("prev-archive", "/1"), 99, entry{"4", "Changed", 99}, entry{"new", "New", 99})))
	if got := run(); got != "/feed" || count() != 8 {
		t.Error(got, count())
	}
	// One archive is removed, and its entries are in the subscription document again.
	s.Handle("/feed", server.Doc("", atomFeed(link("prev-archive", "/2"), 20, append(numbered(8, 2), numbered(6, 2)...)...)))
	if got := run(); got != "/feed" || count() != 8 {
		t.Error(got, count())
	}
	// The archive has a new URL, with a later version of one entry and an older version of another.
	s.Handle("/3b", server.Doc("", atomFeed(mark+link("prev-archive", "/2"), 21, entry{"7", "Seven, revised", 21}, entry{"6", "Six, older", 2})))
	s.Handle("/feed", server.Doc("", atomFeed(link("prev-archive", "/3b"), 21, numbered(8, 2)...)))
	if got := run(); got != "/feed /3b" || count() != 8 {
		t.Error(got, count())
	}
	if got := titles(t, r, lektordir.ListOptions{}); !slices.Contains(got, "Seven, revised") || slices.Contains(got, "Six, older") || slices.Contains(got, "Changed") {
		t.Errorf("%q", got)
	}
	// The archives are in another order, with other links.
	s.Handle("/feed", server.Doc("", atomFeed(link("prev-archive", "/1"), 22, numbered(8, 2)...)))
	if got := run(); got != "/feed" {
		t.Error(got)
	}
	// An archive is found by its self link and by its URL after redirects.
	s.Handle("/4", server.Doc("", atomFeed(mark+link("self", "/four")+link("prev-archive", "/1"), 23, entry{"four", "Four", 4})))
	s.Handle("/feed", server.Doc("", atomFeed(link("prev-archive", "/4"), 23, numbered(8, 2)...)))
	if got := run(); got != "/feed /4" {
		t.Error(got)
	}
	for i, url := range []string{"/four", "/4#x"} {
		s.Handle("/feed", server.Doc("", atomFeed(link("prev-archive", url), 24+i, numbered(8, 2)...)))
		if got := run(); got != "/feed" {
			t.Error(got)
		}
	}
	s.Handle("/4-moved", server.Answer(301, "", "Location: /4"))
	s.Handle("/feed", server.Doc("", atomFeed(link("prev-archive", "/4-moved"), 26, numbered(8, 2)...)))
	if got := run() + " " + run(); got != "/feed /4-moved /4 /feed" || count() != 9 {
		t.Error(got, count())
	}
	if strings.Contains(l.String(), "warning") || strings.Contains(l.String(), "error") {
		t.Error(l)
	}
}

// TestLinksOfArchives: relative links, by xml:base and after a redirect; an empty
// document; archives of other formats.
func TestLinksOfArchives(t *testing.T) {
	r, s, l := setup(t, Options{})
	s.Handle("/feed", server.Answer(302, "", "Location: /deep/er/feed"))
	s.Handle("/deep/er/feed", server.Doc("", atomFeed(link("prev-archive", "1"), 9)))
	s.Handle("/deep/er/1", server.Doc("", strings.Replace(atomFeed(mark+link("prev-archive", "2"), 9, entry{"1", "In Atom", 1}), "<feed ", `<feed xml:base="/base/" `, 1)))
	s.Handle("/base/2", server.Doc("", `<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:atom="http://www.w3.org/2005/Atom">
<channel rdf:about="urn:c"><title>c</title><link>http://x.example/</link><atom:link rel="prev-archive" href="3"/></channel><item rdf:about="urn:i"><title>In RDF</title><link>http://x.example/i</link></item></rdf:RDF>`))
	s.Handle("/base/3", server.Doc("", strings.Replace(server.RSS("In RSS", 0, 1), "<channel>", `<channel><a:link xmlns:a="http://www.w3.org/2005/Atom" rel="prev-archive" href="/4"/>`, 1)))
	s.Handle("/4", server.Doc("application/feed+json", `{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"j","title":"In JSON","content_text":"x"}]}`))
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
	if got := titles(t, r, lektordir.ListOptions{}); fmt.Sprint(got) != "[In JSON In RSS 0 In RDF In Atom]" || l.String() != "" {
		t.Errorf("%q, %s", got, l)
	}
	// Links of entries, and marks outside the namespace of the RFC, have no effect.
	s.Handle("/other", server.Doc("", strings.Replace(strings.ReplaceAll(atomFeed("<fh:complete/>", 9, entry{"1", "One", 1}), "purl.org", "x.example"), "<content>", link("prev-archive", "/x")+"<content>", 1)))
	other := subscribeTo(t, r, s.URL("/other"))[0]
	update(t, r, Selection{Feeds: []string{other}})
	if h := history.Of(r.Dir, other); h.Exists() || len(s.Requests("/x")) > 0 {
		t.Error(h.Summary())
	}
}

// TestCompleteFeed: the set of entries is that of the last document that was received in full.
func TestCompleteFeed(t *testing.T) {
	r, s, _ := setup(t, Options{})
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	serve := func(h http.HandlerFunc) {
		t.Helper()
		s.Handle("/feed", h)
		update(t, r, Selection{Feeds: []string{hash}})
	}
	doc := func(ids ...string) http.HandlerFunc {
		var all []entry
		for _, id := range ids {
			all = append(all, entry{id, id, 1})
		}
		return server.Doc("", atomFeed("<fh:complete/>"+link("prev-archive", "/1"), 9, all...))
	}
	shows := func(want string) {
		t.Helper()
		got := titles(t, r, lektordir.ListOptions{})
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	serve(doc("a", "b", "c"))
	shows("a b c")
	refs, _ := r.Dir.List(t.Context(), lektordir.ListOptions{})
	if _, err := r.Dir.SetFlags(refs[0], "FS", ""); err != nil {
		t.Fatal(err)
	}
	flagged := refs[0].Identity()
	serve(doc("b"))
	shows("b")
	if _, err := os.Stat(r.Dir.Join("src", hash, "etc/fetch/etag")); err != nil {
		t.Fatal(err)
	}
	update(t, r, Selection{Feeds: []string{hash}}) // 304
	shows("b")
	for _, bad := range []http.HandlerFunc{
		server.Answer(500, ""), server.Doc("", "no feed"), server.Doc("text/html", "<!DOCTYPE html><p>x"),
		server.Cut(atomFeed("<fh:complete/>", 9, entry{"x", "x", 1}, entry{"y", "y", 1}), 420),
		server.Doc("", strings.TrimSuffix(atomFeed("<fh:complete/>", 9), "</feed>")+"<entry><title>z</title"),
	} {
		serve(bad)
		got := titles(t, r, lektordir.ListOptions{})
		if !slices.Contains(got, "b") || slices.Contains(got, "a") {
			t.Errorf("%q", got)
		}
	}
	// The items before the cut are shown, and missing items are not withdrawn.
	if got := titles(t, r, lektordir.ListOptions{}); !slices.Contains(got, "x") {
		t.Errorf("%q", got)
	}
	serve(doc())
	shows("")
	serve(doc("c", "a", "b"))
	shows("a b c")
	if ids, ok, err := r.Dir.Complete(hash); !ok || err != nil || len(ids) != 3 || ids[0] != flagged {
		t.Error(ids, ok, err)
	}
	refs, _ = r.Dir.List(t.Context(), lektordir.ListOptions{Places: []lektordir.Place{lektordir.Cur}})
	if len(refs) != 1 || refs[0].Flags() != "FS" || refs[0].Identity() != flagged {
		t.Error(refs)
	}
	serve(doc("c"))
	shows("c")
	serve(server.Doc("", atomFeed("", 9, entry{"d", "d", 1})))
	got := titles(t, r, lektordir.ListOptions{})
	for _, want := range []string{"a", "b", "c", "d"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	if len(s.Requests("/1")) > 0 {
		t.Error("a complete feed was asked for more")
	}
}

// TestCutOff: a truncated document does not withdraw links, or the mark of a complete feed, which
// may be in its missing part.
func TestCutOff(t *testing.T) {
	r, s, _ := setup(t, Options{})
	late := func(tail string) string {
		return strings.Replace(atomFeed("", 9, entry{"a", "a", 1}, entry{"b", "b", 1}), "</feed>", tail+"</feed>", 1)
	}
	cut := func(doc string) http.HandlerFunc {
		return server.Doc("", doc[:strings.LastIndex(doc, "</entry>")])
	}
	archived := late(link("prev-archive", "/gone"))
	s.Handle("/gone", server.Answer(404, ""))
	s.Handle("/feed", server.Doc("", archived))
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
	h := history.Of(r.Dir, hash)
	was := h.Linked()
	if was.Prev == "" || h.Gap() == nil {
		t.Fatal(was, h.Gap())
	}
	s.Handle("/feed", cut(archived))
	update(t, r, Selection{Feeds: []string{hash}})
	if got := h.Linked(); got != was || h.Gap() == nil {
		t.Errorf("%v and %v, not %v", got, h.Gap(), was)
	}
	s.Handle("/feed", server.Doc("", late("")))
	update(t, r, Selection{Feeds: []string{hash}})
	if got := h.Linked(); got != (history.Linked{}) || h.Gap() != nil {
		t.Errorf("%v and %v", got, h.Gap())
	}

	shows := func(want string) {
		t.Helper()
		got := titles(t, r, lektordir.ListOptions{Feeds: []string{hash}})
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	complete := late(link("prev-archive", "/1") + "<fh:complete/>")
	s.Handle("/chart", server.Doc("", complete))
	hash = subscribeTo(t, r, s.URL("/chart"))[0]
	update(t, r, Selection{Feeds: []string{hash}})
	first, second := strings.Index(complete, "<entry>"), strings.LastIndex(complete, "<entry>")
	s.Handle("/chart", server.Doc("", complete[:first]+complete[second:]))
	update(t, r, Selection{Feeds: []string{hash}})
	shows("b")
	for _, doc := range []http.HandlerFunc{
		cut(complete),
		// The link is before the cut, the mark after it.
		server.Doc("", complete[:strings.LastIndex(complete, "<fh:complete/>")]),
	} {
		s.Handle("/chart", doc)
		update(t, r, Selection{Feeds: []string{hash}})
		if _, ok, err := r.Dir.Complete(hash); !ok || err != nil {
			t.Error("a document that was cut off took the mark back:", err)
		}
		shows("a b")
	}
	if len(s.Requests("/1")) > 0 || history.Of(r.Dir, hash).Summary() != "complete" {
		t.Error("a complete feed was asked for more")
	}
}

// TestPages: the requested number of pages is fetched, and no entry is delivered twice.
func TestPages(t *testing.T) {
	r, s, l := setup(t, Options{})
	page := func(n, from int) string {
		next := ""
		if n < 5 {
			next = link("next", fmt.Sprint("/feed?page=", n+1))
		}
		if n > 1 {
			next += link("previous", fmt.Sprint("/feed?page=", n-1))
		}
		return atomFeed(next+link("first", "/feed"), 99, numbered(from, 2)...)
	}
	serve := func(shift int) {
		for n := 1; n <= 5; n++ {
			path := "/feed"
			if n > 1 {
				path = fmt.Sprint("/feed?page=", n)
			}
			s.Handle(path, server.Doc("", page(n, 20-2*n+shift)))
		}
	}
	serve(0)
	hash := visited(t, r, s)
	if h := history.Of(r.Dir, hash); asked(s) != "/feed" || h.Summary() != "paged" {
		t.Error(h.Summary())
	}
	sum := update(t, r, Selection{Feeds: []string{hash}, Want: Want{Pages: 3}})
	if got := asked(s); got != "/feed /feed?page=2 /feed?page=3" || sum.New != 4 {
		t.Errorf("%s, %+v", got, sum)
	}
	if got := fmt.Sprint(titles(t, r, lektordir.ListOptions{})); got != "[Entry 18 Entry 19 Entry 14 Entry 15 Entry 16 Entry 17]" {
		t.Error(got)
	}
	// Unknown pages may follow known ones.
	for _, news := range []int{4, 0} {
		sum := update(t, r, Selection{Feeds: []string{hash}, Want: Want{Pages: AllPages}})
		if got := asked(s); got != "/feed /feed?page=2 /feed?page=3 /feed?page=4 /feed?page=5" || sum.New != news {
			t.Errorf("%s, %+v", got, sum)
		}
	}
	// The entries move by one position during the walk.
	other := subscribeTo(t, r, s.URL("/feed?x"))[0]
	s.Handle("/feed?x", server.Doc("", page(1, 18)))
	r.testHook = func(where string) {
		if where == "requested" {
			serve(1)
		}
	}
	sum = update(t, r, Selection{Feeds: []string{other}, Want: Want{Pages: AllPages}})
	got := titles(t, r, lektordir.ListOptions{Feeds: []string{other}})
	slices.Sort(got)
	if len(slices.Compact(slices.Clone(got))) != len(got) || len(got) != 9 {
		t.Errorf("%q", got)
	}
	if strings.Contains(l.String(), "warning") || strings.Contains(l.String(), "error") {
		t.Error(l)
	}
	if h := history.Of(r.Dir, other); h.Gap() != nil || h.Stored() || h.Summary() != "paged" {
		t.Error(h.Summary())
	}
}

// TestPagesGoDeeper: after a walk through pages that ended early, a later walk still reaches the
// pages behind.
func TestPagesGoDeeper(t *testing.T) {
	const pages, size = 30, 4
	for _, guessed := range []bool{false, true} {
		r, s, l := setup(t, Options{})
		url := func(n int) string {
			if n == 1 {
				return "/feed"
			}
			return fmt.Sprint("/feed?paged=", n)
		}
		serve := func() {
			for n := 1; n <= pages; n++ {
				first := (pages - n) * size
				if guessed {
					s.Handle(url(n), server.Doc("", strings.Replace(server.RSS("P", first, size), "<channel>", "<channel><generator>https://wordpress.org/?v=6.4.2</generator>", 1)))
					continue
				}
				next := ""
				if n < pages {
					next = link("next", url(n+1))
				}
				s.Handle(url(n), server.Doc("", atomFeed(next+link("first", "/feed"), 99, numbered(first, size)...)))
			}
		}
		serve()
		hash := visited(t, r, s)
		through := func(what string, n, limit, want int) {
			t.Helper()
			r.opts.History.Documents = limit
			update(t, r, Selection{Feeds: []string{hash}, Want: Want{Pages: n}})
			got := titles(t, r, lektordir.ListOptions{AllVersions: true})
			if slices.Sort(got); len(got) != want*size || len(slices.Compact(got)) != want*size {
				t.Errorf("%s, guessed %t: %d entries, not %d", what, guessed, len(got), want*size)
			}
		}
		through("three pages", 3, 100, 3)
		through("a limit", AllPages, 9, 10)
		if !strings.Contains(l.String(), "--limit-documents, --limit-entries and --limit-bytes raise the limits") {
			t.Error(l)
		}
		through("the same limit", AllPages, 9, 10)
		through("a limit that was raised", AllPages, 14, 15)
		s.Handle(url(20), server.Answer(503, ""))
		l.b.Reset()
		through("a server in trouble", AllPages, 100, 19)
		if got := l.String(); !strings.Contains(got, "error: ") || !strings.Contains(got, "paged=20: the server answered 503") {
			t.Error(got)
		}
		serve()
		through("25 pages", 25, 100, 25)
		l.b.Reset()
		through("all", AllPages, 100, pages)
		through("all again", AllPages, 100, pages)
		if l.String() != "" {
			t.Error(l)
		}
	}
	// If a server ignores the query, the walk ends after the first repeated page.
	r, s, l := setup(t, Options{})
	doc := server.Doc("", strings.Replace(server.RSS("P", 0, 3), "<channel>", "<channel><generator>https://wordpress.org/?v=6.4.2</generator>", 1))
	for _, path := range []string{"/feed", "/feed?paged=2", "/feed?paged=3", "/feed?paged=4"} {
		s.Handle(path, doc)
	}
	hash := visited(t, r, s)
	asked(s)
	sum := update(t, r, Selection{Feeds: []string{hash}, Want: Want{Pages: AllPages}})
	if got := asked(s); got != "/feed /feed?paged=2 /feed?paged=3" || sum.New != 0 || l.String() != "" {
		t.Errorf("%s, %+v, %s", got, sum, l)
	}
}

// TestWordPress: pages of a feed made by WordPress are requested at their usual URLs.
func TestWordPress(t *testing.T) {
	r, s, l := setup(t, Options{})
	page := func(from int) http.HandlerFunc {
		return server.Doc("", strings.Replace(server.RSS("P", from, 2), "<channel>", "<channel><generator>https://wordpress.org/?v=6.4.2</generator>", 1))
	}
	s.Handle("/feed", page(4))
	s.Handle("/feed?paged=2", page(2))
	s.Handle("/feed?paged=3", page(0))
	hash := visited(t, r, s)
	asked(s)
	sum := update(t, r, Selection{Feeds: []string{hash}, Want: Want{Pages: AllPages}})
	if got := asked(s); got != "/feed /feed?paged=2 /feed?paged=3 /feed?paged=4" || sum.New != 4 || l.String() != "" {
		t.Errorf("%s, %+v, %s", got, sum, l)
	}
	if got := history.Of(r.Dir, hash).Summary(); got != "" {
		t.Error(got)
	}
	// A feed that is not there any more is another matter.
	s.Handle("/other", server.Doc("", atomFeed(link("next", "/gone"), 1, entry{"1", "One", 1})))
	other := subscribeTo(t, r, s.URL("/other"))[0]
	update(t, r, Selection{Feeds: []string{other}, Want: Want{Pages: AllPages}})
	if !strings.Contains(l.String(), "error: ") || !strings.Contains(l.String(), "/gone: the server answered 404") {
		t.Error(l)
	}
}

// TestAddArchive: add does not subscribe to an archive.
func TestAddArchive(t *testing.T) {
	r, s, l := setup(t, Options{})
	chain(s, 2)
	a, err := r.Add(t.Context(), s.URL("/1"), AddOptions{})
	if err != nil || a.URL != s.URL("/feed") || a.outcome.New != 2 || asked(s) != "/1 /feed" {
		t.Errorf("%+v, %v", a, err)
	}
	s.Handle("/marked", server.Doc("", atomFeed(mark, 1)))
	s.Handle("/loop", server.Doc("", atomFeed(mark+link("current", "/loop2"), 1)))
	s.Handle("/loop2", server.Doc("", atomFeed(mark+link("current", "/loop"), 1)))
	s.Handle("/file", server.Doc("", atomFeed(mark+link("current", "http://me:pw@x.example/"), 1)))
	for path, want := range map[string]string{
		"/marked": "does not say where the feed is", "/loop": "as is " + s.URL("/loop"), "/file": "user name or password",
	} {
		if _, err := r.Add(t.Context(), s.URL(path), AddOptions{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "archive") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// It does subscribe to an archive that names itself as its subscription document.
	s.Handle("/own", server.Doc("", atomFeed(mark+link("current", "/own"), 1)))
	if a, err := r.Add(t.Context(), s.URL("/own"), AddOptions{}); err != nil || a.URL != s.URL("/own") {
		t.Error(a, err)
	}
	// A subscription that becomes an archive is kept, with one warning.
	l.b.Reset()
	s.Handle("/own", server.Doc("", atomFeed(mark+link("current", "/feed"), 2, entry{"x", "X", 1})))
	hash := lektordir.FeedHash(s.URL("/own"))
	for range 2 {
		if sum := update(t, r, Selection{Feeds: []string{hash}}); sum.Failed > 0 {
			t.Error(sum)
		}
		s.Handle("/own", server.Doc("", atomFeed(mark+link("current", "/feed"), 3, entry{"y", "Y", 1})))
	}
	if got := l.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "it says that it is an archive") {
		t.Error(got)
	}
}

// TestNoHistory: a feed from a file has no history, whatever its document says, and a damaged spool
// has no effect.
func TestNoHistory(t *testing.T) {
	r, s, _ := setup(t, Options{})
	path := filepath.Join(t.TempDir(), "feed")
	if err := os.WriteFile(path, []byte(atomFeed(link("prev-archive", s.URL("/1")), 1, entry{"1", "One", 1})), 0o666); err != nil {
		t.Fatal(err)
	}
	hash := subscribeTo(t, r, "file://"+path)[0]
	update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
	if got := asked(s); got != "" || len(titles(t, r, lektordir.ListOptions{})) != 1 {
		t.Error(got)
	}
}

// TestSizes: a feed in twenty documents takes twenty requests, and leaves nothing in the
// spool.
func TestSizes(t *testing.T) {
	each := 10
	if os.Getenv(walkFeeds) != "" {
		each = 50
	}
	r, s, _ := setup(t, Options{})
	prev := ""
	for i := range 19 {
		s.Handle(fmt.Sprint("/", i), server.Doc("", atomFeed(mark+prev, i, numbered(each*i, each)...)))
		prev = link("prev-archive", fmt.Sprint("/", i))
	}
	s.Handle("/feed", server.Doc("", atomFeed(prev, 999, numbered(19*each, each)...)))
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	sum := update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
	if n := len(strings.Fields(asked(s))); n != 20 || sum.New != 20*each {
		t.Errorf("%d requests, %+v", n, sum)
	}
	got := titles(t, r, lektordir.ListOptions{})
	slices.Sort(got)
	if len(slices.Compact(got)) != 20*each {
		t.Error(len(got))
	}
	if names, err := os.ReadDir(r.Dir.Join("etc/fetch/spool", hash)); len(names) > 0 {
		t.Error(names, err)
	}
}

// TestWithoutGuid: in RSS, entries without a guid are known by their link, in archives
// as elsewhere, and those of which nobody knows a date stay as they are.
func TestWithoutGuid(t *testing.T) {
	for _, policy := range []string{"unread", "deliver", "ignore"} {
		r, s, _ := setup(t, Options{})
		doc := func(prev string, items ...string) http.HandlerFunc {
			return server.Doc("", `<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title>`+
				strings.Replace(prev, "<link", "<atom:link", 1)+strings.Join(items, "")+"</channel></rss>")
		}
		item := func(n int, title string) string {
			return fmt.Sprintf("<item><title>%s</title><link>http://x.example/%d</link></item>", title, n)
		}
		s.Handle("/feed", doc(link("prev-archive", "/2"), item(3, "Three"), item(2, "Two")))
		s.Handle("/2", doc(link("prev-archive", "/1"), item(2, "Two, older"), item(1, "One")))
		s.Handle("/1", doc("", item(1, "One, older"), item(0, "Zero"), item(0, "Zero")))
		hash := subscribeTo(t, r, s.URL("/feed"))[0]
		if err := subscriptions.Set(r.Writer, r.Dir, hash, "on-update", policy, nil); err != nil {
			t.Fatal(err)
		}
		update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
		got := titles(t, r, lektordir.ListOptions{AllVersions: true})
		if slices.Sort(got); fmt.Sprint(got) != "[One Three Two Zero]" {
			t.Errorf("%s: %q", policy, got)
		}
	}
}

// TestHistoryBusy: history with the name of a feed fails if another process has the feed;
// update leaves the feed to that process.
func TestHistoryBusy(t *testing.T) {
	s := server.Start(t, "127.0.0.1")
	chain(s, 2)
	pauses := 0
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), &lektordir.Options{Sleep: func(ctx context.Context, _ time.Duration) error {
		pauses++
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, l := newRunner(t, d)
	hash := visited(t, r, s)
	other, err := r.Writer.Begin(hash)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sel   Selection
		fails bool
	}{
		{Selection{Feeds: []string{hash}}, false},
		{Selection{Feeds: []string{hash}, Reason: Forced, Want: Want{Archives: true}}, false},
		{Selection{Reason: Forced, Want: Want{Archives: true}}, false},
		{Selection{Feeds: []string{hash}, Want: Want{Archives: true}}, true},
		{Selection{Feeds: []string{hash}, Want: Want{Pages: 2}}, true},
	} {
		pauses = 0
		sum := update(t, r, c.sel)
		if got := l.String(); sum.Busy != 1 || strings.Contains(got, "error: ") != c.fails || !strings.Contains(got, "another process is fetching") || (pauses > 0) != c.fails {
			t.Errorf("%+v: %+v, %d pauses, %s", c.sel, sum, pauses, got)
		}
		l.b.Reset()
	}
	err = r.first(t.Context(), &Added{Hash: hash, URL: s.URL("/feed")}, nil, true)
	if err == nil || !strings.Contains(err.Error(), "its history was not fetched: another process is fetching the feed") {
		t.Error(err)
	}
	other.Close()
	if sum := update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}}); sum.New != 4 || l.String() != "" {
		t.Errorf("%+v, %s", sum, l)
	}
}

// TestHistoryProgress: a walk counts documents as they arrive. If it is stopped, a message has
// their number, and they are not requested again.
func TestHistoryProgress(t *testing.T) {
	var mu sync.Mutex
	steps := map[string]int{}
	o := early()
	o.Progress = func(what string, total int) (func(), func()) {
		mu.Lock()
		defer mu.Unlock()
		steps[what] -= total
		return func() { mu.Lock(); steps[what]++; mu.Unlock() }, func() {}
	}
	r, s, l := setup(t, o)
	chain(s, 9)
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	ctx, cancel := context.WithCancel(t.Context())
	left := 4
	r.testHook = func(where string) {
		if where == "spooled" {
			if left--; left == 0 {
				cancel()
			}
		}
	}
	whole := Selection{Feeds: []string{hash}, Want: Want{Archives: true}}
	if _, err := r.Update(ctx, whole); err == nil {
		t.Error("it was not stopped")
	}
	if got := l.String(); got != "stopped; 4 documents of archives were fetched, and will not be requested again\n" {
		t.Error(got)
	}
	if steps["older documents"] != 4 || steps["fetching"] != 0 {
		t.Errorf("%v", steps)
	}
	l.b.Reset()
	asked(s)
	if sum := update(t, r, whole); sum.Requested != 5 || sum.Reused != 4 || asked(s) != "/feed /5 /4 /3 /2 /1" || l.String() != "" {
		t.Errorf("%+v, %s", sum, l)
	}
	if steps["older documents"] != 9 {
		t.Errorf("%v", steps)
	}
}

// TestSpoolDamaged: a document that is lost between fetch and delivery is fetched again, and is not
// recorded.
func TestSpoolDamaged(t *testing.T) {
	r, s, l := setup(t, Options{})
	chain(s, 3)
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	r.testHook = func(where string) {
		if where == "staged" {
			os.RemoveAll(r.Dir.Join("etc/fetch/spool", hash))
		}
	}
	update(t, r, Selection{Feeds: []string{hash}, Want: Want{Archives: true}})
	if !strings.Contains(l.String(), "is no longer in etc/fetch/spool") {
		t.Error(l)
	}
	r.testHook = nil
	asked(s)
	update(t, r, Selection{Feeds: []string{hash}})
	got := titles(t, r, lektordir.ListOptions{AllVersions: true})
	if slices.Sort(got); len(slices.Compact(got)) != 8 || asked(s) == "/feed" {
		t.Errorf("%q", got)
	}
}
