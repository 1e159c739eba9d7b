package fetcher

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/encoding/charmap"

	"github.com/lektordir/lektor/internal/app/article"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fulltext"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// inProcess extracts an article like lektor-article, without a process.
func inProcess(ctx context.Context, page []byte, url, contentType string) (*fulltext.Article, error) {
	var out, said bytes.Buffer
	s := cmdline.NewStreams("lektor-article", bytes.NewReader(page), &out, &said)
	if err := article.Extract(ctx, article.ExtractOptions{URL: url, ContentType: contentType, JSON: true}, s); err != nil {
		return nil, err
	}
	a := &fulltext.Article{}
	return a, json.Unmarshal(out.Bytes(), a)
}

// lede is the text of a story in the feed, and story the paragraphs of its page.
const lede = "The council voted on Tuesday to close the bridge across the river for repairs until spring."

var story = []string{
	lede,
	"Engineers found cracks in the northern pillars during their inspection in autumn, and the mayor told the council that waiting another winter was out of the question, whatever the traders of the market said.",
	"The repairs cost four million, most of which the county pays. Buses take the road along the mill, ferries cross the river every half hour, and pedestrians may use the railway bridge from Monday on.",
	"Opponents had asked for a second report. The council declined by eleven votes to four, after a session that lasted until midnight, and of which the minutes are public.",
}

// site returns a typical page around paragraphs.
func site(paragraphs ...string) string {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html><html><head><title>Bridge closed - The Mill Post</title><link rel="stylesheet" href="/s.css"></head><body>
<header><nav><ul><li><a href="/">Home</a></li><li><a href="/sport">Sport</a></li><li><a href="/login">Log in</a></li></ul></nav></header>
<main><article class="post"><h1>Bridge closed</h1>`)
	for _, p := range paragraphs {
		b.WriteString("<p>" + p + "</p>\n")
	}
	b.WriteString(`</article></main><aside><h3>Most read</h3><ul><li><a href="/a">A</a></li><li><a href="/b">B</a></li></ul></aside>
<footer>Imprint, privacy, cookies</footer><script>track("you")</script></body></html>`)
	return b.String()
}

func sends(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, body)
	}
}

func page(paragraphs ...string) http.HandlerFunc {
	return sends("text/html; charset=utf-8", site(paragraphs...))
}

func to(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, location, http.StatusFound) }
}

// item is an entry of a feed.
type item struct{ title, link, text string }

// rss returns a feed of entries, newest first.
func rss(base string, entries ...item) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><rss version="2.0"><channel><title>The Mill Post</title><link>` + base + `/</link><description>d</description>`)
	for _, e := range entries {
		if strings.HasPrefix(e.link, "/") {
			e.link = base + e.link
		}
		fmt.Fprintf(&b, "<item><title>%s</title><link>%s</link><guid isPermaLink=\"false\">%s</guid><description>%s</description></item>\n",
			html.EscapeString(e.title), html.EscapeString(e.link), html.EscapeString(e.title), html.EscapeString(e.text))
	}
	return b.String() + "</channel></rss>"
}

// fullBench is a feed with full text, and its site.
type fullBench struct {
	*testing.T
	*Runner
	site *server.Server
	log  *log
	hash string
	mu   sync.Mutex
	at   time.Time
}

func (b *fullBench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *fullBench) later(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

func newFullBench(t *testing.T, o Options) *fullBench {
	b := &fullBench{T: t, at: time.Now()}
	o.Fetch.Now = b.clock
	o.Fetch.Deadline = cmp.Or(o.Fetch.Deadline, time.Minute)
	b.Runner, b.site, b.log = setup(t, o)
	b.extract = inProcess
	b.hash = subscribeTo(t, b.Runner, b.site.URL("/feed"))[0]
	must.Do(subscriptions.Set(b.Writer, b.Dir, b.hash, "fulltext", "on", nil))
	return b
}

// shows replaces the entries of the feed.
func (b *fullBench) shows(entries ...item) {
	doc := rss(b.site.URL(""), entries...)
	b.site.Handle("/feed", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprint(w, doc)
	})
}

// update fetches the feed, which is due.
func (b *fullBench) update() Summary {
	b.Helper()
	sum, err := b.Update(context.Background(), Selection{Reason: Forced})
	if err != nil || sum.Broken+sum.Failed > 0 {
		b.Fatalf("%v, %v\n%s", sum, err, b.log)
	}
	return sum
}

// entries returns the entries in new/, by title.
func (b *fullBench) entries() map[string]*lektordir.Entry {
	b.Helper()
	out := map[string]*lektordir.Entry{}
	for _, ref := range must.Get(b.Dir.List(context.Background(), lektordir.ListOptions{})) {
		e := must.Get(b.Dir.ReadEntry(ref, lektordir.AllFields))
		out[e.Title] = e
	}
	return out
}

// Each page is requested once. If it has no article of the entry, the entry keeps its text from the
// feed.
func TestFullTextPages(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	cyrillic := []string{
		"Городской совет решил во вторник закрыть старый мост через реку на ремонт до самой весны.",
		"Инженеры нашли трещины в северных опорах во время осенней проверки, и мэр сказал совету, что ждать ещё одну зиму нельзя, что бы ни говорили торговцы рынка.",
		"Ремонт стоит четыре миллиона, большую часть платит область. Автобусы пойдут по дороге вдоль мельницы, паром ходит каждые полчаса, а пешеходам открыт железнодорожный мост.",
	}
	encoded := must.Get(charmap.Windows1251.NewEncoder().String(site(cyrillic...)))
	cases := []struct {
		name    string
		handler http.HandlerFunc
		own     string   // "" is lede
		full    []string // must be in the content; none: the content is the feed's
		not     []string // must not be
	}{
		{name: "article", handler: page(story...), full: story, not: []string{"Most read", "track(", "Log in"}},
		{name: "redirects", handler: to("/hop/1"), full: story[1:]},
		{name: "refresh", handler: sends("text/html", `<html><head><meta http-equiv="Refresh" content="0; URL='/refreshed'"></head><body><a href="/refreshed">here</a></body></html>`), full: story[1:]},
		{name: "teaser", handler: page(story[0], story[1], "Subscribe to read on."), full: []string{story[1]}},
		{name: "teaser of a long entry", handler: page(story[0], "Subscribe to read on."), own: strings.Join(story, " ")},
		{name: "cookies", handler: page("We value your privacy.", "We and our 813 partners store and access information on your device, such as unique identifiers, to personalise advertising and content, to measure audiences, and to develop services.", "With your consent we and our partners may use precise geolocation data and identification through device scanning. You may click to consent to processing as described above, or refuse.")},
		{name: "forbidden", handler: func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.UserAgent(), "Mozilla") {
				http.Error(w, site("Access denied. Are you a robot? "+strings.Join(story, " ")), http.StatusForbidden)
			}
		}},
		{name: "gone", handler: http.NotFound},
		{name: "trouble", handler: func(w http.ResponseWriter, r *http.Request) { http.Error(w, site(story...), http.StatusBadGateway) }},
		{name: "pdf", handler: sends("application/pdf", "%PDF-1.7 "+strings.Repeat("x", 100))},
		{name: "script", handler: sends("text/html", `<html><body><div id="root"></div><noscript>You need to enable JavaScript to run this app.</noscript><script src="/app.js"></script></body></html>`)},
		{name: "huge", handler: sends("text/html", site(slices.Repeat(story, 40_000)...))},
		{name: "short", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			fmt.Fprint(w, site(story...))
		}},
		{name: "windows-1251", handler: sends("text/html; charset=windows-1251", encoded), own: cyrillic[0], full: cyrillic},
		{name: "its charset in the page", handler: sends("text/html", strings.NewReplacer("<head>", `<head><meta charset="windows-1251">`, "<h1>", "<p>...").Replace(encoded)), own: cyrillic[0], full: cyrillic[1:]},
		{name: "tables", handler: sends("text/html", `<html><body><table><tr><td><a href=/>Home</a></td><td><table><tr><td><p>`+strings.Join(story, "</p><p>")+`</p></td></tr></table></td></tr></table></body></html>`), full: story[1:]},
		{name: "relative", handler: page(append(slices.Clone(story), `See <a href="../map.html">the map</a>, <a href="javascript:go()">go</a>. <img src="img/b.jpg" alt="bridge" onerror="x()">`)...),
			full: []string{`href="` + b.site.URL("/map.html") + `"`, `src="` + b.site.URL("/p/img/b.jpg") + `"`}, not: []string{"javascript:", "onerror"}},
		{name: "to the home page", handler: to("/")},
		{name: "to a login", handler: to("/login")},
		{name: "to that login", handler: to("/login")},
		{name: "in a circle", handler: to("/p/in%20a%20circle")},
		{name: "nested", handler: sends("text/html", strings.Repeat("<div>", 100_000)+strings.Join(story, " "))},
		{name: "empty", handler: sends("text/html", "")},
		{name: "no type", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, site(append([]string{"No type."}, story...)...))
		}, full: story[1:]},
	}
	b.site.Handle("/hop/1", to("/hop/2"))
	b.site.Handle("/hop/2", to("/hop/3"))
	// Articles that are the same on several pages are dropped, so these differ.
	b.site.Handle("/hop/3", page(append([]string{"From the archive."}, story...)...))
	b.site.Handle("/refreshed", page(append([]string{"You were refreshed."}, story...)...))
	b.site.Handle("/", page(append([]string{"Welcome."}, story...)...))
	b.site.Handle("/login", page(append([]string{"Log in to read that the council voted to close the bridge across the river."}, story...)...))
	var entries []item
	for _, c := range cases {
		path := "/p/" + strings.ReplaceAll(c.name, " ", "%20")
		if c.handler != nil {
			b.site.Handle(path, c.handler)
		}
		if c.own == "" {
			c.own = lede
		}
		entries = append(entries, item{c.name, path, c.own})
	}
	secret := strings.Replace(b.site.URL("/secret"), "://", "://user:hunter2@", 1)
	b.site.Handle("/secret", page(append([]string{"Not so secret."}, story...)...))
	entries = append(entries,
		item{"password in the link", secret, lede},
		item{"metadata", "http://169.254.169.254/latest/meta-data/", lede},
		item{"no link", "", lede},
		item{"mail", "mailto:post@example.org", lede},
		item{"home", "/", lede},
		item{"shared 1", "/shared#1", lede},
		item{"shared 2", "/shared#2", lede},
	)
	b.shows(entries...)
	if sum := b.update(); sum.New != len(entries) {
		t.Fatalf("%v\n%s", sum, b.log)
	}
	got := b.entries()
	for _, c := range cases {
		e := got[c.name]
		own := c.own
		if own == "" {
			own = lede
		}
		if len(c.full) == 0 {
			if string(e.Content) != own || e.FullText.URL != "" || e.FeedContent != nil {
				t.Errorf("%s: the feed's text did not stay: %q, %+v", c.name, e.Content, e.FullText)
			}
			continue
		}
		if string(e.FeedContent) != own || e.Type != "text/html" || !strings.HasPrefix(e.FullText.URL, b.site.URL("/")) {
			t.Errorf("%s: beside the page's text are %q, %q and %+v", c.name, e.FeedContent, e.Type, e.FullText)
		}
		for _, want := range c.full {
			if !strings.Contains(string(e.Content), want) {
				t.Errorf("%s: the content has no %q:\n%s", c.name, want, e.Content)
			}
		}
		for _, no := range append(c.not, "<script", "<style") {
			if strings.Contains(string(e.Content), no) {
				t.Errorf("%s: the content has %q:\n%s", c.name, no, e.Content)
			}
		}
	}
	if e := got["password in the link"]; !strings.Contains(string(e.Content), "Not so secret") || strings.Contains(e.FullText.URL, "hunter2") {
		t.Errorf("%+v", e.FullText)
	}
	for _, r := range b.site.Requests("") {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s was asked for with a stranger's password", r.Path)
		}
		if strings.HasPrefix(r.Path, "/shared") || r.Path == "/feed" == strings.Contains(r.Header.Get("Accept"), "text/html, ") {
			t.Errorf("%s was asked for, as %q", r.Path, r.Header.Get("Accept"))
		}
	}
	for _, path := range []string{"/p/article", "/p/pdf", "/p/gone"} {
		if n := len(b.site.Requests(path)); n != 1 {
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
	if problems, err := b.Dir.Check(context.Background(), false); err != nil || len(problems) > 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
}

// If a page never ends, the entry keeps its text from the feed.
func TestFullTextTrickles(t *testing.T) {
	t.Parallel()
	// The feed itself must arrive within the deadline; a busy machine needs a longer one.
	for deadline := time.Second / 4; ; deadline *= 2 {
		b := newFullBench(t, Options{Fetch: fetch.Config{Deadline: deadline}})
		b.shows(item{"trickle", "/trickle", lede})
		b.site.Handle("/trickle", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "<html>"+strings.Repeat(" ", 10_000)) // more than is held back
			<-r.Context().Done()
		})
		sum, err := b.Update(context.Background(), Selection{Reason: Forced})
		if err != nil {
			t.Fatal(err)
		}
		if (sum.Failed > 0 || len(b.site.Requests("/trickle")) == 0) && deadline < time.Minute {
			continue
		}
		e := b.entries()["trickle"]
		if n := len(b.site.Requests("/trickle")); sum.New != 1 || e == nil || string(e.Content) != lede || e.FullText.URL != "" || n != 1 {
			t.Errorf("%v, %+v, asked for %d times\n%s", sum, e, n, b.log)
		}
		return
	}
}

// A failed page is requested again a few times, at growing intervals, and its article replaces an
// unread entry. The journal does not change.
func TestFullTextLater(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	b.shows(item{"comes", "/comes", lede}, item{"comes too late", "/late", lede}, item{"never comes", "/never", lede})
	fails := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	b.site.Handle("/comes", fails, page(story...))
	b.site.Handle("/late", fails, page(append([]string{"Late."}, story...)...))
	b.site.Handle("/never", fails)
	if sum := b.update(); sum.New != 3 {
		t.Fatalf("%v\n%s", sum, b.log)
	}
	for _, ref := range must.Get(b.Dir.List(context.Background(), lektordir.ListOptions{})) {
		if e := must.Get(b.Dir.ReadEntry(ref, lektordir.FieldTitle)); e.Title == "comes too late" {
			must.Get(b.Dir.SetFlags(ref, "S", ""))
		}
	}
	if sum := b.update(); sum.New+sum.Updated > 0 || len(b.site.Requests("/comes")) != 1 {
		t.Errorf("asked for again at once: %v", sum)
	}
	b.later(2 * time.Hour)
	if sum := b.update(); sum.New != 0 || sum.Updated != 1 {
		t.Errorf("%v\n%s", sum, b.log)
	}
	for range 10 {
		b.later(25 * time.Hour)
		if sum := b.update(); sum.New+sum.Updated > 0 {
			t.Errorf("%v", sum)
		}
	}
	got := b.entries()
	if e := got["comes"]; !strings.Contains(string(e.Content), story[2]) || string(e.FeedContent) != lede || e.Replaces == "" {
		t.Errorf("the article is missing: %q", e.Content)
	}
	if e := got["comes too late"]; string(e.Content) != lede {
		t.Errorf("an entry that was read has changed: %q", e.Content)
	}
	for path, want := range map[string]int{"/comes": 2, "/late": 1, "/never": 1 + len(retries.Steps)} {
		if n := len(b.site.Requests(path)); n != want {
			t.Errorf("%s was asked for %d times, want %d", path, n, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d entries", len(got))
	}
	if problems, err := b.Dir.Check(context.Background(), false); err != nil || len(problems) > 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
}

// The article of an entry that is no longer in the feed replaces the entry, too, even if the same
// document has other changes.
func TestFullTextOfOneThatLeft(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	b.shows(item{"left", "/left", lede})
	b.site.Handle("/left", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, page(story...))
	if sum := b.update(); sum.New != 1 {
		t.Fatalf("%v\n%s", sum, b.log)
	}
	b.shows(item{"other", "", lede})
	b.later(2 * time.Hour)
	if sum := b.update(); sum.New != 1 || sum.Updated != 1 {
		t.Errorf("%v\n%s", sum, b.log)
	}
	if e := b.entries()["left"]; e == nil || !strings.Contains(string(e.Content), story[2]) {
		t.Errorf("the article is missing: %v", e)
	}
}

// Only the feed decides whether an entry changed. If it did, its page is requested with its
// validators.
func TestFullTextChanges(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	version, asked := "v1", 0
	b.site.Handle("/p", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w.Header().Set("Etag", `"`+version+`"`)
		if r.Header.Get("If-None-Match") == `"`+version+`"` {
			asked++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		page(append([]string{"Version " + version + " of it."}, story...)...)(w, r)
	})
	b.shows(item{"it", "/p", lede})
	b.update()
	b.mu.Lock()
	version = "v2"
	b.mu.Unlock()
	b.shows(item{"it", "/p", lede}, item{"other", "", lede})
	if sum := b.update(); sum.Updated != 0 || len(b.site.Requests("/p")) != 1 {
		t.Errorf("a page that changed made a version: %v", sum)
	}
	b.shows(item{"it", "/p", lede + " Corrected."})
	if sum := b.update(); sum.Updated != 1 || !strings.Contains(string(b.entries()["it"].Content), "Version v2") {
		t.Errorf("an entry that changed did not: %v, %q", sum, b.entries()["it"].Content)
	}
	b.shows(item{"it", "/p", lede + " Corrected again."})
	e := func() *lektordir.Entry { return b.entries()["it"] }
	if sum := b.update(); sum.Updated != 1 || asked != 1 || !strings.Contains(string(e().Content), "Version v2") || string(e().FeedContent) != lede+" Corrected again." {
		t.Errorf("a page that had not changed: %v, %d, %q", sum, asked, e().Content)
	}
	// If fulltext is set later, it applies to new entries only, unless the user asks for older
	// ones.
	must.Do(subscriptions.Unset(b.Writer, b.Dir, b.hash, "fulltext", nil))
	b.shows(item{"plain", "/plain", lede}, item{"it", "/p", lede + " Corrected again."})
	b.site.Handle("/plain", page(append([]string{"Plain."}, story...)...))
	b.update()
	must.Do(subscriptions.Set(b.Writer, b.Dir, b.hash, "fulltext", "on", nil))
	b.shows(item{"new", "/new", lede}, item{"plain", "/plain", lede})
	b.site.Handle("/new", page(append([]string{"New."}, story...)...))
	b.update()
	if got := b.entries(); got["new"].FullText.URL == "" || got["plain"].FullText.URL != "" {
		t.Errorf("%+v, %+v", got["new"].FullText, got["plain"].FullText)
	}
	if sum := must.Get(b.Update(context.Background(), Selection{Reason: Forced, Want: Want{FullText: true}})); sum.Updated != 1 || b.entries()["plain"].FullText.URL == "" {
		t.Errorf("%v, %+v", sum, b.entries()["plain"].FullText)
	}
}

// After a run that was stopped between a page and its delivery, the page is not requested again. A
// page that takes too long does not delay the delivery.
func TestFullTextStopped(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	b.shows(item{"one", "/one", lede}, item{"two", "/two", lede})
	b.site.Handle("/one", page(append([]string{"One."}, story...)...))
	b.site.Handle("/two", page(append([]string{"Two."}, story...)...))
	ctx, cancel := context.WithCancel(context.Background())
	b.testHook = func(where string) {
		if where == "page" {
			cancel()
		}
	}
	if _, err := b.Update(ctx, Selection{Reason: Forced}); err == nil || len(b.entries()) > 0 {
		t.Fatalf("%v, %d entries", err, len(b.entries()))
	}
	b.testHook = nil
	b.update()
	for title, e := range b.entries() {
		if e.FullText.URL == "" {
			t.Errorf("%s has no full text", title)
		}
	}
	if n := len(b.site.Requests("/one")) + len(b.site.Requests("/two")); n > 3 {
		t.Errorf("%d requests for two pages", n)
	}

	b.pagesTime = 20 * time.Millisecond
	b.site.Handle("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	b.shows(item{"slow", "/slow", lede})
	if sum := b.update(); sum.New != 1 || b.entries()["slow"].FullText.URL != "" {
		t.Errorf("%v", sum)
	}
	// On a busy machine, the first request may be late.
	b.site.Handle("/slow", page(append([]string{"Slow."}, story...)...))
	b.pagesTime = time.Minute
	b.later(2 * time.Hour)
	if sum := b.update(); sum.Updated != 1 || b.entries()["slow"].FullText.URL == "" {
		t.Errorf("%v\n%s", sum, b.log)
	}
}

// A page fetched for a delivered entry is remembered if the run ends before the entry has the
// article, but it is not requested forever.
func TestFullTextStoppedLate(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	article := page(append([]string{"Late."}, story...)...)
	b.site.Handle("/late", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, article)
	b.shows(item{"late", "/late", lede})
	if sum := b.update(); sum.New != 1 || b.entries()["late"].FullText.URL != "" {
		t.Fatalf("%v", sum)
	}
	b.later(2 * time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	b.testHook = func(string) { cancel() }
	if _, err := b.Update(ctx, Selection{Reason: Forced}); err == nil || b.entries()["late"].FullText.URL != "" {
		t.Fatalf("%v, %+v", err, b.entries()["late"].FullText)
	}
	b.testHook = nil
	if sum := b.update(); sum.Updated != 1 || b.entries()["late"].FullText.URL == "" {
		t.Errorf("%v, %+v\n%s", sum, b.entries()["late"].FullText, b.log)
	}
	b.site.Forget("/late")
	b.later(100 * time.Hour)
	if b.update(); len(b.site.Requests("/late")) > 0 {
		t.Errorf("it is asked for again: %d", len(b.site.Requests("/late")))
	}
}

// The feed's password and headers are sent to its own server only, and private addresses are
// requested only for documents from a private server.
func TestFullTextSecrets(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	other := must.Get(server.New("127.0.0.2"))
	defer other.Close()
	must.Do(subscriptions.Set(b.Writer, b.Dir, b.hash, "headers", "Cookie: paid=yes", nil))
	must.Do(subscriptions.Set(b.Writer, b.Dir, b.hash, "url", strings.Replace(b.site.URL("/feed"), "://", "://ann:pw@", 1), nil))
	b.site.Handle("/own", page(append([]string{"Own."}, story...)...))
	b.site.Handle("/away", to(other.URL("/from")))
	other.Handle("/from", page(append([]string{"From."}, story...)...))
	other.Handle("/other", page(append([]string{"Other."}, story...)...))
	b.shows(item{"own", "/own", lede}, item{"away", "/away", lede}, item{"other", other.URL("/other"), lede})
	b.update()
	for title, e := range b.entries() {
		if e.FullText.URL == "" || strings.Contains(e.FullText.URL, "pw") {
			t.Errorf("%s: %+v", title, e.FullText)
		}
	}
	secrets := func(r server.Request) bool { return r.Header.Get("Cookie")+r.Header.Get("Authorization") != "" }
	if r := b.site.Requests("/own"); len(r) != 1 || r[0].Header.Get("Cookie") == "" || r[0].Header.Get("Authorization") == "" {
		t.Errorf("the feed's own server was asked with %v", r)
	}
	if slices.ContainsFunc(other.Requests(""), secrets) || len(other.Requests("")) != 2 {
		t.Errorf("another server got what is for the feed's: %v", other.Requests(""))
	}
}

// The output of a filter or a command is a feed as any other, but private addresses in
// a command's output must be allowed. For delivered documents, no pages are fetched.
func TestFullTextSources(t *testing.T) {
	t.Parallel()
	var o Options
	b := newFullBench(t, o)
	b.site.Handle("/p", page(story...))
	must.Do(subscriptions.Set(b.Writer, b.Dir, b.hash, "filter", "sed s/Bridge/River/", nil))
	b.shows(item{"Bridge", "/p", lede})
	b.update()
	if e := b.entries()["River"]; e == nil || e.FullText.URL == "" {
		t.Errorf("a filter: %+v", e)
	}

	file := filepath.Join(t.TempDir(), "feed.xml")
	must.Do(os.WriteFile(file, []byte(rss(b.site.URL(""), item{"command", "/c", lede})), 0o666))
	for _, allowed := range []bool{false, true} {
		b.site.Handle("/c", page(append([]string{"C."}, story...)...))
		o.Fetch = fetch.Config{}
		if allowed {
			o.Fetch.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		r, _, l := setup(t, o)
		r.extract = inProcess
		hash := subscribeTo(t, r, "exec:cat "+file)[0]
		must.Do(subscriptions.Set(r.Writer, r.Dir, hash, "fulltext", "on", nil))
		if sum, err := r.Update(context.Background(), Selection{Reason: Forced}); err != nil || sum.New != 1 {
			t.Fatalf("%v, %v\n%s", sum, err, l)
		}
		for _, ref := range must.Get(r.Dir.List(context.Background(), lektordir.ListOptions{})) {
			if e := must.Get(r.Dir.ReadEntry(ref, lektordir.AllFields)); (e.FullText.URL != "") != allowed {
				t.Errorf("allowed %v: %+v\n%s", allowed, e.FullText, l)
			}
		}
	}

	b.site.Forget("/q")
	doc := []byte(rss(b.site.URL(""), item{"delivered", "/q", lede}))
	var out, said bytes.Buffer
	s := cmdline.NewStreams("lektor-fetch", bytes.NewReader(doc), &out, &said)
	if err := Deliver(context.Background(), DeliverOptions{Common: Common{Dir: b.Dir.Path(), Options: Options{Fetch: fetch.DefaultConfig()}}, Document: Document{ID: b.site.URL("/feed")}}, s); err != nil {
		t.Fatal(err)
	}
	if e := b.entries()["delivered"]; e == nil || e.FullText.URL != "" || len(b.site.Requests("/q")) > 0 {
		t.Errorf("a document that was delivered: %+v", e)
	}
}

// Without lektor-article, the feed's text stays, and no page counts as tried.
func TestFullTextMissing(t *testing.T) {
	t.Parallel()
	b := newFullBench(t, Options{})
	b.extract = func(context.Context, []byte, string, string) (*fulltext.Article, error) {
		return nil, &fulltext.MissingError{Err: os.ErrNotExist}
	}
	b.site.Handle("/p", page(story...))
	b.shows(item{"it", "/p", lede})
	if b.update(); strings.Count(b.log.String(), "lektor-article") != 1 || string(b.entries()["it"].Content) != lede {
		t.Errorf("%s", b.log)
	}
}

// An article replaces a readable entry in new/. An entry that a viewer has moved meanwhile, or that
// is malformed, stays.
func TestReviseEntry(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		meanwhile func(b *fullBench, ref lektordir.Ref) error
		ok        bool
	}{
		"in new/": {func(*fullBench, lektordir.Ref) error { return nil }, true},
		"taken":   {func(b *fullBench, ref lektordir.Ref) error { _, err := b.Dir.SetFlags(ref, "S", ""); return err }, false},
		"removed": {func(b *fullBench, ref lektordir.Ref) error { return b.Dir.Remove(ref) }, false},
		"without a title": {func(b *fullBench, ref lektordir.Ref) error {
			return os.Remove(b.Dir.Join(ref.Path(), "title"))
		}, false},
		"with a directory in the place of its author": {func(b *fullBench, ref lektordir.Ref) error {
			return os.MkdirAll(b.Dir.Join(ref.Path(), "author"), 0o777)
		}, false},
		"not in the journal": {func(b *fullBench, ref lektordir.Ref) error {
			return os.Remove(b.Dir.Join("src", b.hash, "etc/fetch/seen"))
		}, true},
	} {
		b := newFullBench(t, Options{})
		b.shows(item{"an entry", "", lede})
		b.update()
		refs := must.Get(b.Dir.List(t.Context(), lektordir.ListOptions{}))
		if len(refs) != 1 {
			t.Fatalf("%s: %v", what, refs)
		}
		must.Do(c.meanwhile(b, refs[0]))
		s := must.Get(b.open(t.Context(), b.hash, true))
		f := must.Get((&visit{lockedFeed: s, ctx: t.Context()}).newFullText())
		page := &spool.Page{URL: "http://a.example/1", Final: "http://a.example/1", Article: []byte("<p>article")}
		must.Do(f.pages.Put(page))
		f.late = []*wantedPage{{url: page.URL, unique: refs[0].Unique}}
		var out stage.Result
		if err := f.revise(&out); (len(out.Updated) == 1) != c.ok || err != nil {
			t.Errorf("%s: %v, %v", what, out, err)
		}
		if err := s.commit(b.Writer.Flush); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		s.Close()
		if !c.ok {
			continue
		}
		e, err := b.Dir.ReadEntry(lektordir.Ref{Feed: b.hash, Unique: out.Updated[0]}, lektordir.AllFields)
		if err != nil || string(e.Content) != "<p>article" || string(e.FeedContent) != lede || e.Replaces != refs[0].Unique {
			t.Errorf("%s: %+v, %v", what, e, err)
		}
	}
}
