package page

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/server"
)

// A browser logs in, comes to the page that it asked for, and logs out, which revokes the token.
func TestLogin(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-", "title=One")
	f.user = f.browser("")
	if f.get("starred"); f.at() != "login?next=starred" {
		t.Errorf("without a login: %s", f.at())
	}
	for _, tc := range []struct {
		password, next string
		status         int
		want           string
	}{
		{"wrong", "", 403, "The name or the password is wrong."},
		{"often", "", 429, "Wait 2 s"},
		{"right", "starred?x=1", 200, "<h1 dir=\"auto\">Starred"},
		{"right", "//evil.example/", 200, "<h1 dir=\"auto\">Unread"},
		{"right", "https://evil.example/unread", 200, "<h1 dir=\"auto\">Unread"},
		{"right", "", 200, "One"},
	} {
		page := f.post("login", "name", "ann", "password", tc.password, "next", tc.next)
		if f.seen.StatusCode != tc.status || !strings.Contains(page, tc.want) {
			t.Errorf("%q, next %q: %s\n%s", tc.password, tc.next, f.seen.Status, page)
		}
	}
	f.post("logout")
	if _, err := f.users.Check("ann"); err == nil || f.at() != "login" {
		t.Errorf("the token is valid after logging out; at %s", f.at())
	}
	if f.log.Len() > 0 {
		t.Errorf("logged: %s", &f.log)
	}
}

// The cookie is for the page alone, and secure where a trusted proxy has TLS.
func TestCookie(t *testing.T) {
	f := newFixture(t, func(o *server.Options, _ *Options) { o.BasePath = "/feeds/" })
	f.user = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	f.post("login", "name", "ann", "password", "right")
	if got, want := f.seen.Header.Get("Set-Cookie"),
		"lektor=ann; Path=/feeds/; Max-Age=15552000; HttpOnly; SameSite=Lax"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := f.seen.Header.Get("Location"); got != "/feeds/unread" {
		t.Errorf("leads to %s", got)
	}
}

// The root leads a browser to the page. Clients of the API, and servers without a page, see nothing of it.
func TestRoot(t *testing.T) {
	f := newFixture(t)
	if f.get(""); f.at() != "unread" {
		t.Errorf("the root leads to %s", f.at())
	}
	r, _ := http.NewRequest("GET", f.base, nil)
	if got := f.do(r); got != "OK" {
		t.Errorf("the root for a client: %q", got)
	}
	for _, path := range []string{"reader/api/0/token", "accounts/ClientLogin"} {
		r, _ := http.NewRequest("GET", f.base+path, nil)
		r.Header.Set("Accept", "text/html")
		if f.do(r); f.seen.StatusCode != 401 {
			t.Errorf("%s: %s", path, f.seen.Status)
		}
	}
}

// Lists have the entries of their kind, feed or folder, the newest first, 50 on a page.
func TestLists(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-", "title=a1")
	f.add(feedA, 200, "S", "title=a2")
	f.add(feedB, 150, "-", "title=b1")
	f.add(feedB, 250, "FS", "title=b2")
	f.add(feedB, 300, "T", "title=gone")
	for path, want := range map[string]string{
		"unread": "b1 a1", "all": "-b2 -a2 b1 a1", "starred": "-b2", "unread?feed=" + f.a: "a1",
		"all?feed=" + f.a: "-a2 a1", "unread?folder=News": "a1", "all?folder=none": "", "starred?feed=" + f.a: "",
	} {
		if got := titles(f.get(path)); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	for i := range 60 {
		f.add(feedB, int64(1000+i), "-", fmt.Sprintf("title=n%d", i))
	}
	page := f.get("unread")
	if got := titles(page); !strings.HasPrefix(got, "n59 n58 ") || !strings.HasSuffix(got, " n10") {
		t.Errorf("first page: %s", got)
	}
	older := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(page)
	if older == nil {
		t.Fatal("no second page")
	}
	if got := titles(f.get(strings.ReplaceAll(older[1], "&amp;", "&"))); !strings.HasPrefix(got, "n9 n8 ") ||
		!strings.HasSuffix(got, " b1 a1") {
		t.Errorf("second page: %s", got)
	}
}

// Ticked entries, those between, those above and all are marked. Each mark can be taken back, and entries that came
// after the list stay unread.
func TestMarks(t *testing.T) {
	for _, tc := range []struct {
		do, ticked string
		want, said string
	}{
		{"read", "100 300", "100:S 200:new 300:S 400:new", "Marked 2 entries as read."},
		{"star", "200", "100:new 200:F 300:new 400:new", "Starred 1 entry."},
		{"range", "100 300", "100:S 200:S 300:S 400:new", "Marked 3 entries as read."},
		{"above", "200", "100:new 200:S 300:S 400:S", "Marked 3 entries as read."},
		{"above", "", "100:S 200:S 300:S 400:S", "Marked 4 entries as read."},
		{"all", "", "100:S 200:S 300:S 400:S", "Marked 4 entries as read."},
		{"range", "", "100:new 200:new 300:new 400:new", "Nothing was changed."},
		{"unread", "100", "100:new 200:new 300:new 400:new", "Nothing was changed."},
	} {
		f := newFixture(t)
		keys := map[string]string{}
		for _, second := range []int64{100, 200, 300, 400} {
			keys[fmt.Sprint(second)] = f.add(feedA, second, "-")
		}
		page := f.get("unread")
		form := []string{"do", tc.do, "at", field(page, "at"), "last", field(page, "last"), "back", field(page, "back")}
		for second := range strings.FieldsSeq(tc.ticked) {
			form = append(form, "e", keys[second])
		}
		f.now = f.now.Add(time.Minute)
		late := f.now.Unix()
		f.add(feedB, late, "-")
		rest := fmt.Sprintf(" %d:new", late)
		page = f.post("mark", form...)
		if got := f.flags(); !sameWords(got, tc.want+rest) {
			t.Errorf("%s %s: got %s, want %s", tc.do, tc.ticked, got, tc.want+rest)
		}
		if !strings.Contains(page, tc.said) {
			t.Errorf("%s %s: the page does not have %q\n%s", tc.do, tc.ticked, tc.said, page)
		}
		change := field(page, "change")
		if (change == "") != (tc.said == "Nothing was changed.") {
			t.Errorf("%s %s: undo is %q", tc.do, tc.ticked, change)
		}
		if change == "" {
			continue
		}
		if strings.Contains(f.get("unread"), tc.said) {
			t.Errorf("%s: the message is shown twice", tc.do)
		}
		page = f.post("undo", "change", change, "back", "all")
		if got := f.flags(); strings.ContainsAny(got, "SF") || !strings.Contains(page, "Took back ") {
			t.Errorf("%s %s: undo leaves %s\n%s", tc.do, tc.ticked, got, page)
		}
		f.post("undo", "change", field(page, "change"), "back", "all") // undo is a change, too
		if got := f.flags(); strings.Count(got, "S")+strings.Count(got, "F") !=
			strings.Count(tc.want, "S")+strings.Count(tc.want, "F") {
			t.Errorf("%s %s: undo of undo leaves %s", tc.do, tc.ticked, got)
		}
	}
}

// sameWords reports whether two texts have the same words.
func sameWords(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.FieldsSeq(a)), slices.Sorted(strings.FieldsSeq(b)))
}

// An entry whose name is older than the list, but that was delivered after it, stays unread.
func TestMarkAllSparesLateDeliveries(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, f.now.Unix()-7200, "-")
	f.now = time.Now().Add(-time.Minute)
	page := f.get("unread")
	late := f.now.Unix() - 60
	f.add(feedA, late, "-")
	f.post("mark", "do", "all", "at", field(page, "at"), "back", "unread")
	if got := f.flags(); !strings.Contains(got, fmt.Sprintf("%d:new", late)) || !strings.Contains(got, ":S") {
		t.Errorf("got %s", got)
	}
}

// Entries that are marked meanwhile stay in their list, greyed, until it is made anew.
func TestReadEntriesStay(t *testing.T) {
	f := newFixture(t)
	key := f.add(feedA, 100, "-", "title=one")
	f.add(feedA, 200, "-", "title=two")
	page := f.get("unread")
	page = f.post("mark", "do", "read", "e", key, "back", field(page, "back"))
	if got := titles(page); got != "two -one" {
		t.Errorf("the same list: %s", got)
	}
	f.now = f.now.Add(time.Second)
	if got := titles(f.get("unread")); got != "two" {
		t.Errorf("a new list: %s", got)
	}
}

// An entry has its content, the neighbours of its list, and words that act. To show it changes nothing; the button
// marks it and goes on.
func TestEntry(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-", "title=one")
	key := f.add(feedA, 200, "-", "title=two", "type=text/html", "content=<p>Hello <img src=http://x.example/i.png> <script>x</script></p>",
		"author=Ann <ann@a.example>", "extras=link\thttp://a.example/2\ncategory\ttea time\n")
	f.add(feedB, 300, "-", "title=three")
	f.add(feedB, 400, "S", "title=four")
	list := f.get("unread")
	link := regexp.MustCompile(`href="(entry[^"]*` + key + `)"`).FindStringSubmatch(list)
	if link == nil {
		t.Fatal(list)
	}
	page := f.get(strings.ReplaceAll(link[1], "&amp;", "&"))
	for _, want := range []string{"<h1 dir=\"auto\">two</h1>", "Alpha", "1 min to read", "<bdi>Ann</bdi>", "Hello",
		`href="http://a.example/2"`, "category%3A%22tea&#43;time%22", "Show images", `rel="up"`, "#e" + key} {
		if !strings.Contains(page, want) {
			t.Errorf("the entry does not have %q\n%s", want, page)
		}
	}
	if strings.Contains(page, "<img") || strings.Contains(page, "<script>") {
		t.Errorf("images or scripts:\n%s", page)
	}
	if f.flags() != "100:new 200:new 300:new 400:S" {
		t.Errorf("a GET request marks: %s", f.flags())
	}
	images := f.get("entry?images=1&id=" + key)
	if !strings.Contains(images, `src="http://x.example/i.png"`) ||
		!strings.Contains(f.seen.Header.Get("Content-Security-Policy"), "img-src 'self' data: http: https:") {
		t.Errorf("no images:\n%s", images)
	}
	next := f.post("mark", "do", "next", "e", key, "next", field(page, "next"), "back", field(page, "back"))
	if f.flags() != "100:new 200:S 300:new 400:S" || !strings.Contains(next, "<h1 dir=\"auto\">one</h1>") {
		t.Errorf("read, next: %s\n%s", f.flags(), next)
	}
	if previous := regexp.MustCompile(`<link rel="prev" href="([^"]*)">`).FindStringSubmatch(next); previous == nil ||
		!strings.HasSuffix(previous[1], key) {
		t.Errorf("the entry that was read is not the previous one: %q", previous)
	}
	f.do(request(t, "GET", f.base+"entry?id=zz"))
	if f.seen.StatusCode != 404 {
		t.Error(f.seen.Status)
	}
}

func request(t *testing.T, method, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A search takes queries, also saved ones, and shows an error at the word.
func TestSearch(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "S", "title=tea", "content=green")
	f.add(feedB, 200, "-", "title=coffee", "content=green beans")
	if err := os.MkdirAll(filepath.Join(f.Path, "etc/view/query"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Path, "etc/view/query/hot"), []byte("tea or coffee\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]string{"green": "coffee -tea", "green is:unread": "coffee", "query:hot": "coffee -tea",
		"": "", "none": ""} {
		if got := titles(f.get("search?q=" + url.QueryEscape(q))); got != want {
			t.Errorf("%q: got %q, want %q", q, got, want)
		}
	}
	if page := f.get("search"); !strings.Contains(page, `href="search?q=query%3Ahot"`) {
		t.Errorf("no saved query:\n%s", page)
	}
	if page := f.get("search?q=green+since:x+tea"); !strings.Contains(page, "<code>green <mark>since:x</mark> tea</code>") {
		t.Errorf("no error at the word:\n%s", page)
	}
}

// The pages of a search go on after the entries that it found first.
func TestSearchPages(t *testing.T) {
	f := newFixture(t)
	for i := range 220 {
		f.add(feedA, int64(1000+i), "S", fmt.Sprintf("title=n%d", i), "content=tea")
	}
	n, seen := 0, map[string]bool{}
	for path := "search?q=tea"; path != ""; n++ {
		page := f.get(path)
		for title := range strings.FieldsSeq(titles(page)) {
			seen[title] = true
		}
		older := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(page)
		path = ""
		if older != nil {
			path = strings.ReplaceAll(older[1], "&amp;", "&")
		}
	}
	if n != 5 || len(seen) != 220 {
		t.Errorf("%d pages with %d entries", n, len(seen))
	}
}

// The feeds have their folders, counts and errors, without passwords.
func TestFeeds(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-")
	f.feed("https://ann:secret@c.example/", "https://ann:secret@c.example/",
		"etc/fetch/url=https://ann:secret@c.example/", "etc/fetch/error=https://ann:secret@c.example/: not found")
	page := f.get("feeds")
	for _, want := range []string{"News</a> <small>1</small>", "Alpha", "<b>1</b>", "Beta", "not found"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") {
		t.Errorf("a password:\n%s", page)
	}
}

// The list of a podcast has its properties, and an entry its chapters.
func TestPodcast(t *testing.T) {
	f := newFixture(t)
	cast := f.feed("https://c.example/", "Cast", "etc/fetch/url=https://c.example/", "etc/elements=element\tpodcast:medium\tmusic\nelement\tpodcast:podroll\nelement\tpodcast:podroll/podcast:remoteItem\t\tfeedUrl=https://ann:secret@f.example/\ttitle=<b>Frogs\nelement\tpodcast:funding\tGive\turl=javascript:x")
	key := f.add("https://c.example/", 100, "-", "title=one", "+element=psc:chapters", "+element=psc:chapters/psc:chapter\t\tstart=1:05\ttitle=Frost")
	page := f.get("unread?feed=" + cast)
	for _, want := range []string{"<summary>The podcast</summary>", "<li>Medium: music</li>", `href="https://f.example/"`, "&lt;b&gt;Frogs</a>", "<li>Funding: Give</li>"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s:\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") || strings.Contains(f.get("unread"), "The podcast") {
		t.Errorf("a password, or the podcast in the list of all:\n%s", page)
	}
	if page := f.get("entry?id=" + key); !strings.Contains(page, "<li>1:05 Frost</li>") {
		t.Errorf("no chapters:\n%s", page)
	}
}

// A feed is added by its URL or that of a page, and undo ends the subscription. Errors are shown.
func TestAdd(t *testing.T) {
	f := newFixture(t)
	page := f.post("add", "url", "c.example/page")
	if !strings.Contains(page, "c.example") || !strings.Contains(page, "not fetched yet") || !strings.Contains(page, "The feed is added.") {
		t.Errorf("added:\n%s", page)
	}
	due, _ := filepath.Glob(filepath.Join(f.Path, "etc/fetch/due/*"))
	if len(due) != 1 {
		t.Errorf("due markers: %s", due)
	}
	page = f.post("undo", "change", field(page, "change"), "back", "feeds")
	if !strings.Contains(page, "Took back 1 change.") {
		t.Errorf("undo says:\n%s", page)
	}
	if page = f.get("feeds"); strings.Contains(page, "c.example") {
		t.Errorf("undo of a new feed:\n%s", page)
	}
	for _, bad := range []string{"", "exec:ls", "file:///etc/passwd", "http://127.0.0.1/", "https://a:b@c.example/"} {
		if page := f.post("add", "url", bad); !strings.Contains(page, `role="alert"`) {
			t.Errorf("%q:\n%s", bad, page)
		}
	}
	if f.log.Len() > 0 {
		t.Errorf("logged: %s", &f.log)
	}
}

// Fetching leaves due markers for the feeds of a list.
func TestRefresh(t *testing.T) {
	f := newFixture(t)
	page := f.post("refresh", "in", "unread", "folder", "News", "back", "unread?folder=News")
	due, _ := filepath.Glob(filepath.Join(f.Path, "etc/fetch/due/*"))
	if !strings.Contains(page, "1 feed will be fetched.") || len(due) != 1 || filepath.Base(due[0]) != f.a {
		t.Errorf("%s\n%s", due, page)
	}
}

// The script learns how many entries came, and nothing if that is the same as before.
func TestNewer(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-")
	top := field(f.get("unread?feed="+f.a), "data-top")
	f.add(feedA, 200, "-")
	f.add(feedB, 300, "-")
	if got := f.get("new?feed=" + f.a + "&top=" + top); got != "1" {
		t.Errorf("got %q", got)
	}
	r := request(t, "GET", f.base+"new?feed="+f.a+"&top="+top)
	r.Header.Set("If-None-Match", `"1"`)
	if f.do(r); f.seen.StatusCode != 304 {
		t.Error(f.seen.Status)
	}
}

// No request from another site changes anything, and no GET request does.
func TestOtherSites(t *testing.T) {
	f := newFixture(t)
	key := f.add(feedA, 100, "-")
	for name, header := range map[string][2]string{"site": {"Sec-Fetch-Site", "cross-site"},
		"same site": {"Sec-Fetch-Site", "same-site"}, "origin": {"Origin", "https://evil.example"},
		"no origin": {"Origin", "null"}} {
		r := request(t, "POST", f.base+"mark?do=read&e="+key)
		r.Header.Set(header[0], header[1])
		if f.do(r); f.seen.StatusCode != 403 || f.flags() != "100:new" {
			t.Errorf("%s: %s, %s", name, f.seen.Status, f.flags())
		}
	}
	for _, path := range []string{"mark", "undo", "refresh", "logout", "add", "login"} {
		r := request(t, "GET", f.base+path+"?do=read&e="+key+"&url=c.example")
		if f.do(r); f.flags() != "100:new" || path != "add" && path != "login" && f.seen.StatusCode != 405 {
			t.Errorf("GET %s: %s, %s", path, f.seen.Status, f.flags())
		}
	}
	if got := f.get("feeds"); strings.Contains(got, "c.example") {
		t.Error("a GET request subscribes")
	}
}

// Users see nothing of each other.
func TestTwoUsers(t *testing.T) {
	f := newFixture(t)
	key := f.add(feedA, 100, "-", "title=mine")
	page := f.post("mark", "do", "star", "e", key, "back", "unread")
	change := field(page, "change")
	f.users["bob"] = t.TempDir()
	for _, dir := range []string{"new", "cur", "tmp", "src"} {
		os.Mkdir(filepath.Join(f.users["bob"], dir), 0o777)
	}
	f.user = f.browser("bob")
	for _, path := range []string{"unread", "all", "feeds", "search?q=mine", "all?feed=" + f.a} {
		if page := f.get(path); strings.Contains(page, ">mine<") || strings.Contains(page, ">Alpha") {
			t.Errorf("%s:\n%s", path, page)
		}
	}
	if f.do(request(t, "GET", f.base+"entry?id="+key)); f.seen.StatusCode != 404 {
		t.Error(f.seen.Status)
	}
	f.post("mark", "do", "read", "e", key)
	f.post("undo", "change", change)
	if f.flags() != "100:F" {
		t.Errorf("another user marks: %s", f.flags())
	}
}

// Undo takes back only what a journal has, and leaves what was changed again.
func TestUndoRefuses(t *testing.T) {
	f := newFixture(t)
	key := f.add(feedA, 100, "-")
	page := f.post("mark", "do", "read", "e", key, "back", "unread")
	change := field(page, "change")
	number, rest, _ := strings.Cut(change, ".")
	from, to, _ := strings.Cut(rest, ".")
	for bad, status := range map[string]int{"": 400, "x": 400, number + ".0." + to: 410, number + "." + from + ".999999": 410,
		number + ".3." + to: 410, number + "." + to + "." + from: 410, "-1.1.2": 410, "777.1.2": 410} {
		if f.post("undo", "change", bad); f.seen.StatusCode != status || f.flags() != "100:S" {
			t.Errorf("%q: %s, %s", bad, f.seen.Status, f.flags())
		}
	}
	f.post("mark", "do", "star", "e", key)
	f.post("mark", "do", "unread", "e", key)
	if f.post("undo", "change", change); f.flags() != "100:F" {
		t.Errorf("undo of a mark that was taken back by hand: %s", f.flags())
	}
}

// A mark that fails is reported, marks nothing, and the next one works.
func TestMarkFails(t *testing.T) {
	f := newFixture(t)
	key := f.add(feedA, 100, "-")
	f.get("unread")
	cur := filepath.Join(f.Path, "cur", f.a)
	if err := os.WriteFile(cur, nil, 0o666); err != nil { // a file in the place of the directory
		t.Fatal(err)
	}
	page := f.post("mark", "do", "read", "e", key, "back", "unread")
	if f.seen.StatusCode != 500 || !strings.Contains(page, "This did not work") || f.flags() != "100:new" || f.log.Len() == 0 {
		t.Errorf("%s, %s\n%s\n%s", f.seen.Status, f.flags(), page, &f.log)
	}
	if err := os.Remove(cur); err != nil {
		t.Fatal(err)
	}
	if f.post("mark", "do", "read", "e", key, "back", "unread"); f.flags() != "100:S" {
		t.Errorf("after the failure: %s", f.flags())
	}
}

// No password of a URL is shown.
func TestPasswords(t *testing.T) {
	f := newFixture(t)
	feed := "https://c.example/feed"
	hash := f.feed(feed, "Gamma", "etc/fetch/url=https://ann:secret@c.example/feed", "etc/link=https://ann:secret@c.example/",
		"image=https://ann:secret@c.example/i.png")
	key := f.add(feed, 100, "-", "title=x", "type=text/html", "content=<a href=https://ann:secret@c.example/x>x</a>",
		"extras=link\thttps://ann:secret@c.example/1\ncomments\thttps://ann:secret@c.example/2\n"+
			"in-reply-to\thttps://ann:secret@c.example/3\nenclosure\thttps://ann:secret@c.example/4\taudio/mpeg\t7\n")
	for _, path := range []string{"unread", "unread?feed=" + hash, "feeds", "entry?id=" + key, "add?feed=" + hash} {
		if page := f.get(path); strings.Contains(page, "secret") {
			t.Errorf("%s:\n%s", path, page)
		}
	}
	f.user.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.do(request(t, "GET", f.base+"site?id="+key))
	if to := f.seen.Header.Get("Location"); to != "https://c.example/1" {
		t.Errorf("site: %s", to)
	}
}

// Malformed requests are refused, and are no failures of the server.
func TestMalformedRequests(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-")
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "%", "%zz", "a=%ff", "e=1&e=-1", "at=zzzzzzzzzzzzzzzzzzzz", "id=\x7f", "do=all", "change=1.2.3", "change=9999999999999.1.2",
		"in=all", "in=../x", "feed=../../etc", "folder=%00", "q=(", "q=%22", "q=/[/", "q=query:../x", "back=//x", "next=%0d%0aX:1", "before=99999999999999999999",
		"url=%00", "url=http://%5b", "top=-", ";", "&&", strings.Repeat("e=1&", 2000)}
	paths := []string{"unread", "all", "starred", "search", "entry", "site", "new", "feeds", "add", "mark", "undo", "refresh", "help", "login", "style.css", "page.js"}
	for i := range 500 {
		query := pieces[random.IntN(len(pieces))] + "&" + pieces[random.IntN(len(pieces))]
		method := []string{"GET", "POST", "HEAD", "PUT"}[random.IntN(4)]
		r := request(t, method, f.base+paths[random.IntN(len(paths))])
		if method == "POST" {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(query)), int64(len(query))
		} else {
			r.URL.RawQuery = strings.ReplaceAll(query, "\x7f", "")
		}
		r.Header.Set("Content-Type", []string{"application/x-www-form-urlencoded", "multipart/form-data", "x/y", ""}[random.IntN(4)])
		if f.do(r); f.seen.StatusCode >= 500 {
			t.Errorf("%d: %s %s %q: %s", i, method, r.URL, query, f.seen.Status)
		}
	}
	if strings.Contains(f.log.String(), "panic") {
		t.Errorf("logged: %s", &f.log)
	}
}

// Files have URLs that change with their text, and ETags.
func TestFiles(t *testing.T) {
	f := newFixture(t)
	page := f.get("unread")
	for _, name := range []string{"style.css", "page.js"} {
		u := regexp.MustCompile(name + `\?[0-9a-f]+`).FindString(page)
		f.get(u)
		if got := f.seen.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%q: %s", u, got)
		}
		r := request(t, "GET", f.base+name)
		r.Header.Set("If-None-Match", f.seen.Header.Get("ETag"))
		if f.do(r); f.seen.StatusCode != 304 {
			t.Errorf("%s: %s", name, f.seen.Status)
		}
	}
}

// An entry names the other feeds that have its link, as soon as the index was asked.
func TestElsewhere(t *testing.T) {
	f := newFixture(t)
	for i := range 1200 { // so many that there is an index
		f.add(feedB, int64(1000+i), "S", fmt.Sprintf("id=http://b.example/%d", i))
	}
	key := f.add(feedA, 3000, "-", "id=http://b.example/7")
	f.get("search?q=none") // makes the index
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		page := f.get("entry?id=" + key)
		if strings.Contains(page, "Also in") && strings.Contains(page, ">Beta</a>") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not in the other feed:\n%s", page)
		}
		f.now = f.now.Add(time.Hour)
		f.get("search?q=none")
	}
}
