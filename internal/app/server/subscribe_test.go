package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// subscribed returns the subscriptions as "title url [folders]", sorted.
func (f *fixture) subscribed() string {
	f.t.Helper()
	var answer greader.Subscriptions
	body := f.get("subscription/list?output=json")
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Subscriptions == nil {
		f.t.Fatalf("%s: %v", body, err)
	}
	var list []string
	for _, s := range answer.Subscriptions {
		var labels []string
		for _, c := range s.Categories {
			if c.ID != "user/-/label/"+c.Label {
				f.t.Errorf("category %+v", c)
			}
			labels = append(labels, c.Label)
		}
		if s.Categories == nil || s.ID == "" || s.HTMLURL == "" && strings.HasPrefix(s.URL, "http") {
			f.t.Errorf("subscription %+v", s)
		}
		list = append(list, s.Title+" "+s.URL+" ["+strings.Join(labels, ", ")+"]")
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

const (
	alpha = "Alpha http://a.example/ [News]"
	beta  = "Beta https://b.example/feed?x=1 [News, a/b]"
)

func TestSubscriptions(t *testing.T) {
	f := newFixture(t)
	if got, want := f.subscribed(), alpha+"\n"+beta; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	// A missing icon has no key: Read You looks for it itself then.
	f.feed(feedA, "Alpha", "image=http://a.example/icon.png")
	if got := f.get("subscription/list"); strings.Count(got, "iconUrl") != 1 || !strings.Contains(got, `"iconUrl":"http://a.example/icon.png"`) {
		t.Errorf("got %s", got)
	}
	f.add(feedA, 100, "Sxq")
	const tags = `{"tags":[{"id":"user/-/state/com.google/starred"},{"id":"user/-/label/News","type":"folder"},{"id":"user/-/label/a/b","type":"folder"},` +
		`{"id":"user/-/label/flag-q","type":"tag"},{"id":"user/-/label/flag-x","type":"tag"}]}`
	if got := f.get("tag/list?output=json"); got != tags {
		t.Errorf("got %s", got)
	}
	// Another spelling of a folder is the same folder.
	f.feed("http://c.example/", "Gamma", "etc/fetch/url=http://ann:secret@c.example/", "etc/categories=NEWS\nnews", "etc/view/alias=Mine")
	if got := f.subscribed(); !strings.Contains(got, "Mine http://c.example/ [NEWS]") || !strings.Contains(got, "[NEWS, a/b]") {
		t.Errorf("got %s", got)
	}
	if err := os.RemoveAll(filepath.Join(f.Path, "src")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(f.Path, "src"), 0o777); err != nil {
		t.Fatal(err)
	}
	if got := f.get("subscription/list"); got != `{"subscriptions":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestUnreadCount(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-")
	f.add(feedA, 200, "S")
	f.add(feedA, 300, "T")
	f.add(feedA, 150, "F")
	want := `{"max":2,"unreadcounts":[{"id":"feed/` + f.a + `","count":2,"newestItemTimestampUsec":"200000001"},` +
		`{"id":"user/-/label/News","count":2,"newestItemTimestampUsec":"200000001"},{"id":"user/-/state/com.google/reading-list","count":2,"newestItemTimestampUsec":"200000001"}]}`
	if got := f.get("unread-count?output=json"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := f.get("unread-count?all=true"); strings.Count(got, `"count"`) != 5 || !strings.Contains(got, `"user/-/label/a/b","count":0,"newestItemTimestampUsec":"0"`) {
		t.Errorf("got %s", got)
	}
}

func TestEditSubscription(t *testing.T) {
	const label = "user/-/label/"
	for _, tc := range []struct {
		form   []string
		status int
		want   string // "" for no change
	}{
		{[]string{"ac", "edit", "s", "A", "t", " New\nname "}, 200, beta + "\nNew name http://a.example/ [News]"},
		{[]string{"ac", "edit", "s", "A", "t", "Alpha"}, 200, ""},
		{[]string{"ac", "edit", "s", "A", "a", label + "x/y", "r", label + "news"}, 200, "Alpha http://a.example/ [x/y]\n" + beta},
		{[]string{"ac", "edit", "s", "feed/" + feedA, "a", label + "NEWS"}, 200, ""},
		{[]string{"ac", "edit", "s", "A", "r", label + "News"}, 200, "Alpha http://a.example/ []\n" + beta},
		{[]string{"ac", "edit", "s", "A", "a", label + "x\ny"}, 400, ""},
		{[]string{"ac", "edit", "s", "feed/unknown", "t", "x"}, 404, ""},
		{[]string{"ac", "x", "s", "A"}, 400, ""},
		{[]string{"ac", "edit"}, 400, ""},
		{[]string{"ac", "edit", "s", label + "News"}, 400, ""},
		{[]string{"ac", "unsubscribe", "s", "A", "T", "x", "i", "null"}, 200, beta},
		{[]string{"ac", "unsubscribe", "s", "feed/" + feedB}, 200, alpha},
		{[]string{"ac", "unsubscribe", "s", "feed/unknown"}, 404, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://c.example/rss", "t", "Gamma", "a", label + "News"}, 200, alpha + "\n" + beta + "\nGamma http://c.example/rss [News]"},
		{[]string{"ac", "subscribe", "s", "feed/HTTP://C.example:80/rss#x"}, 200, alpha + "\n" + beta + "\nc.example http://c.example/rss []"},
		{[]string{"ac", "subscribe", "s", "feed/" + feedA, "a", label + "more"}, 200, "Alpha http://a.example/ [News, more]\n" + beta},
		{[]string{"ac", "subscribe", "s", "feed/exec:date"}, 400, ""},
		{[]string{"ac", "subscribe", "s", "feed/file:/etc/passwd"}, 400, ""},
		{[]string{"ac", "subscribe", "s", "feed/../../etc/passwd"}, 400, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://u:p@c.example/"}, 400, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://c.example/", "a", label + "x\ny"}, 400, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://127.0.0.1/"}, 403, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://localhost:631/"}, 403, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://[::1]/"}, 403, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://127.1/"}, 400, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://192.168.7.1/"}, 403, ""},
		{[]string{"ac", "subscribe", "s", "feed/http://10.1.2.3/"}, 200, "10.1.2.3 http://10.1.2.3/ []\n" + alpha + "\n" + beta},
	} {
		f := newFixture(t, func(o *Options) { o.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
		f.add(feedA, 100, "-")
		form := slices.Clone(tc.form)
		for i, s := range form {
			if s == "A" {
				form[i] = "feed/" + f.a
			}
		}
		body := f.text(f.do("POST", api+"subscription/edit", values(form...)), tc.status)
		if tc.status == 200 && body != "OK" {
			t.Errorf("%q: %q", tc.form, body)
		}
		want := tc.want
		if want == "" {
			want = alpha + "\n" + beta
		}
		if got := f.subscribed(); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", tc.form, got, want)
		}
		if f.flags() != "100:new" {
			t.Errorf("%q: entries are %s", tc.form, f.flags())
		}
	}
}

// Clients see the first folder of a feed, and an edit that only adds one moves the feed there. Folders that
// they do not see stay.
func TestMove(t *testing.T) {
	const label = "user/-/label/"
	for _, tc := range []struct {
		before string
		form   []string
		after  string // the first line is what clients see
	}{
		{"News\na/b", []string{"a", label + "x"}, "x\na/b\n"},
		{"News\na/b", []string{"a", label + "x", "r", label + "News"}, "x\na/b\n"},
		{"News\na/b", []string{"a", label + "x", "r", label + "other"}, "News\na/b\nx\n"},
		{"News\na/b", []string{"a", label + "NEWS", "t", "New"}, "News\na/b\n"},
		{"News\na/b", []string{"a", label + "a/B"}, "a/b\n"},
		{"News\na/b\nx", []string{"a", label + "x"}, "x\na/b\n"},
		{"x\nNews\na/b", []string{"a", label + "x", "r", label + "News"}, "x\na/b\n"},
		{"News\na/b", []string{"a", label + "x", "a", label + "y"}, "x\ny\na/b\n"},
		{"News\na/b", []string{"r", label + "News"}, "a/b\n"},
		{"", []string{"a", label + "x"}, "x\n"},
		{"News", []string{"t", "New"}, "News\n"},
	} {
		f := newFixture(t, func(o *Options) { o.AllCategories = false })
		f.add(feedB, 100, "-")
		f.feed(feedB, "Beta", "etc/categories="+tc.before)
		f.post("subscription/edit", append([]string{"ac", "edit", "s", "feed/" + f.b}, tc.form...)...)
		if got := strings.TrimLeft(f.file(f.b, "etc/categories"), "\n"); got != tc.after {
			t.Errorf("%q %q: got %q, want %q", tc.before, tc.form, got, tc.after)
		}
		seen, hidden, _ := strings.Cut(tc.after, "\n")
		if got := f.subscribed(); !strings.Contains(got, "feed?x=1 ["+seen+"]") {
			t.Errorf("%q %q: got %s", tc.before, tc.form, got)
		}
		hidden, _, _ = strings.Cut(hidden, "\n")
		for _, path := range []string{"tag/list", "unread-count?all=true", "stream/contents"} {
			if got := f.get(path); !strings.Contains(got, label+seen+`"`) || hidden != "" && strings.Contains(got, label+hidden+`"`) {
				t.Errorf("%q %q: %s is %s", tc.before, tc.form, path, got)
			}
		}
		if hidden == "" {
			continue
		}
		f.post("mark-all-as-read", "s", label+hidden)
		if ids, _ := f.ids("s=" + label + hidden); len(ids) > 0 || f.flags() != "100:new" {
			t.Errorf("%q %q: %d entries in %s, %s", tc.before, tc.form, len(ids), hidden, f.flags())
		}
		if got := f.get("subscription/export"); !strings.Contains(got, `text="`+hidden[strings.LastIndex(hidden, "/")+1:]+`"`) {
			t.Errorf("export lacks %s: %s", hidden, got)
		}
		f.post("rename-tag", "s", label+hidden, "dest", label+"hidden")
		if got := f.file(f.b, "etc/categories"); !strings.HasPrefix(got, seen+"\n") || strings.Contains(got, hidden) {
			t.Errorf("%q: renamed, the folders are %q", tc.before, got)
		}
	}
}

// A feed that a client adds is due at once, and a fetcher refuses private addresses for it.
func TestNewFeed(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	for url, origin := range map[string]string{"http://c.example/rss": "a client of lektor-serve\n", "http://10.1.2.3/": ""} {
		var answer greader.QuickAdd
		if err := json.Unmarshal([]byte(f.text(f.do("POST", api+"subscription/quickadd?"+values("quickadd", url), values("quickadd", url)), 200)), &answer); err != nil {
			t.Fatal(err)
		}
		hash := testdir.Hash(url)
		if answer.Results != 1 || answer.StreamID != "feed/"+hash || answer.Query != url || answer.Name == "" {
			t.Errorf("%s: got %+v", url, answer)
		}
		if f.file(hash, "etc/fetch/discover") == "" {
			t.Errorf("%s: the fetcher would not look for the feed of a page", url)
		}
		if got := f.file(hash, "etc/fetch/origin"); got != origin {
			t.Errorf("%s: origin %q, want %q", url, got, origin)
		}
		if _, err := os.Stat(filepath.Join(f.Path, "etc/fetch/due", hash)); err != nil {
			t.Error(err)
		}
	}
}

// A feed of which no document was read says why in its title. The title of a client's edit does not become
// the user's name for the feed.
func TestNeverRead(t *testing.T) {
	f := newFixture(t)
	dns := &net.DNSError{Name: "c.example", IsNotFound: true}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&httpmsg.StatusError{URL: "https://c.example/", Status: 404, Text: "Not Found"}, "not found"},
		{&httpmsg.StatusError{URL: "https://c.example/", Status: 503, Text: "Service Unavailable", RetryAfter: time.Hour}, "service unavailable and asks for a pause of 1h"},
		{&httpmsg.NetError{URL: "https://c.example/", Kind: httpmsg.KindDNS, Err: dns}, "there is no host"},
		{&httpmsg.NetError{URL: "https://c.example/", Kind: httpmsg.KindConnect, Err: errors.New("refused")}, "no connection"},
		{&httpmsg.NetError{URL: "https://c.example/", Kind: httpmsg.KindTLS, Err: errors.New("x")}, "no secure connection"},
		{&httpmsg.RedirectError{URL: "https://c.example/", Target: "http://x/", Reason: "because"}, "the redirect to was not followed"},
		{fmt.Errorf("https://c.example/: https://d.example/x: %w", &feedconv.NotFeedError{What: "an HTML page, and it links to no feed"}), "not a feed"},
		{errors.New("https://c.example/\u202e: \x1b[31mred; x"), "[31mred"},
		{errors.New("file:///a/b: no such file or directory"), "no such file or directory"},
		{errors.New("exec:cat secret: exec: cat secret: exit status 1"), "the command failed"},
		{errors.New("https://c.example/: exec: sed s/secret//: exit status 1"), "the command failed"},
		{errors.New(""), ""},
	} {
		text := tc.err.Error()
		f.feed("https://c.example/", "c.example", "etc/fetch/url=https://c.example/", "etc/fetch/error="+text)
		want := "c.example"
		if tc.want != "" {
			want += " (" + tc.want + ")"
		}
		if got := f.subscribed(); !strings.Contains(got, want+" https://c.example/ []") {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	hash := testdir.Hash("https://c.example/")
	f.feed("https://c.example/", "c.example", "etc/fetch/error=https://c.example/: the server answered 404 Not Found; look")
	f.post("subscription/edit", "ac", "edit", "s", "feed/"+hash, "t", "c.example (not found)", "a", "user/-/label/News")
	f.feed("https://c.example/", "c.example", "etc/fetch/from=https://c.example/")
	if got := f.subscribed(); !strings.Contains(got, "c.example https://c.example/ [News]") {
		t.Errorf("got %s", got)
	}
	f.feed("https://d.example/", "d.example", "etc/fetch/url=https://d.example/", "etc/fetch/error=https://d.example/: the server answered 404 Not Found")
	if got := f.get("subscription/export"); !strings.Contains(got, `text="d.example"`) { // an import would make it the user's name
		t.Errorf("got %s", got)
	}
	// Capy and Readrops send the title that they know with each move, here from before the first fetch.
	f.feed("https://c.example/", "Gamma", "etc/fetch/from=https://c.example/")
	page := f.feed("https://page.example/", "page.example", "etc/view/left="+hash)
	for _, edit := range [][]string{{hash, "c.example"}, {hash, "c.example (not found)"}, {page, "page.example"}, {"https://page.example/", "page.example (no connection)"}} {
		f.post("subscription/edit", "ac", "edit", "s", "feed/"+edit[0], "t", edit[1], "a", "user/-/label/Moved")
		if got := f.subscribed(); !strings.Contains(got, "Gamma https://c.example/ [News, Moved]") {
			t.Errorf("%q: got %s", edit, got)
		}
	}
	for _, name := range []string{"c.example", "Mine", "c.example"} { // a name that the user has given, and one without a move
		f.post("subscription/edit", "ac", "edit", "s", "feed/"+hash, "t", name)
		if got := f.file(hash, "etc/view/alias"); got != name+"\n" {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

// A client that edits a page that it subscribed to edits the feed that the subscription became.
func TestSuccessor(t *testing.T) {
	f := newFixture(t)
	page := f.feed("https://a.example/page", "a.example", "etc/view/left="+f.a)
	f.feed("https://b.example/page", "b.example", "etc/view/left=../../x")
	for _, id := range []string{page, "https://a.example/page"} {
		f.post("subscription/edit", "ac", "edit", "s", "feed/"+id, "t", "New "+id)
		if got := f.file(f.a, "etc/view/alias"); got != "New "+id+"\n" {
			t.Errorf("%s: the title is %q", id, got)
		}
		if got := f.text(f.do("POST", api+"subscription/quickadd", values("quickadd", id)), 200); !strings.Contains(got, "feed/"+f.a) {
			t.Errorf("got %s", got)
		}
	}
	f.text(f.do("POST", api+"subscription/edit", values("ac", "edit", "s", "feed/https://b.example/page", "t", "x")), 404)
	f.post("subscription/edit", "ac", "unsubscribe", "s", "feed/"+page)
	if got := f.subscribed(); got != beta {
		t.Errorf("got %s", got)
	}
}

func TestQuickAdd(t *testing.T) {
	f := newFixture(t)
	for _, tc := range []struct{ query, want string }{
		{feedA, "feed/" + f.a},
		{"feed/" + feedA, "feed/" + f.a},
		{"feed:" + feedA, "feed/" + f.a},
		{"b.example/feed?x=1", "feed/" + f.b},
		{"c.example:8080/x", "feed/" + testdir.Hash("https://c.example:8080/x")},
		{"exec:date", ""}, {"exec:/bin/sh -c date", ""}, {"file:///etc/passwd", ""}, {"nonsense", ""}, {"http://a b.example/", ""}, {"javascript:a.b", ""}, {"http://127.0.0.1/", ""},
		{"example..org", ""}, {"http://example.org:0/", ""}, {"example.org:65536", ""},
	} {
		before := f.subscribed()
		var answer greader.QuickAdd
		if err := json.Unmarshal([]byte(f.text(f.do("POST", api+"subscription/quickadd", values("quickadd", tc.query)), 200)), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.StreamID != tc.want || (answer.Results == 1) != (tc.want != "") || (answer.Error == "") != (tc.want != "") {
			t.Errorf("%s: got %+v, want %s", tc.query, answer, tc.want)
		}
		if tc.want == "" && f.subscribed() != before {
			t.Errorf("%s: got %s", tc.query, f.subscribed())
		}
	}
	f.text(f.do("POST", api+"subscription/quickadd", ""), 400)
	// Read You sends the URL as it is in the query, and escaped in the form.
	const url = "https://d.example/feed?a=1&b=2"
	if got := f.text(f.do("POST", api+"subscription/quickadd?output=json&quickadd="+url, values("quickadd", url)), 200); !strings.Contains(got, "feed/"+testdir.Hash(url)) {
		t.Errorf("got %s", got)
	}
}

func TestFolders(t *testing.T) {
	const label = "user/-/label/"
	for _, tc := range []struct {
		path   string
		form   []string
		status int
		want   string
	}{
		{"rename-tag", []string{"s", label + "news", "dest", label + "World"}, 200, "Alpha http://a.example/ [World]\nBeta https://b.example/feed?x=1 [World, a/b]"},
		{"rename-tag", []string{"t", "a/b", "dest", label + "News"}, 200, alpha + "\nBeta https://b.example/feed?x=1 [News]"},
		{"rename-tag", []string{"s", label + "a", "dest", label + "World"}, 404, ""},
		{"rename-tag", []string{"s", label + "News"}, 400, ""},
		{"rename-tag", []string{"s", label + "News", "dest", read}, 400, ""},
		{"rename-tag", []string{"s", read, "dest", label + "World"}, 400, ""},
		{"rename-tag", []string{"s", label + "News", "dest", label + "a\nb"}, 400, ""},
		{"disable-tag", []string{"s", label + "News"}, 200, "Alpha http://a.example/ []\nBeta https://b.example/feed?x=1 [a/b]"},
		{"disable-tag", []string{"s", label + "unknown"}, 200, ""},
		{"disable-tag", []string{"s", label + "flag-x"}, 200, ""},
		{"disable-tag", nil, 400, ""},
	} {
		f := newFixture(t)
		f.add(feedA, 100, "Sx")
		f.text(f.do("POST", api+tc.path, values(tc.form...)), tc.status)
		want := tc.want
		if want == "" {
			want = alpha + "\n" + beta
		}
		if got := f.subscribed(); got != want {
			t.Errorf("%s %q: got\n%s\nwant\n%s", tc.path, tc.form, got, want)
		}
		flags := "100:Sx"
		if slices.Contains(tc.form, label+"flag-x") {
			flags = "100:S"
		}
		if got := f.flags(); got != flags {
			t.Errorf("%s %q: entries are %s", tc.path, tc.form, got)
		}
	}
}

// Feeds with entries that nobody fetches can be read, named, put into folders and hidden, but not
// subscribed to.
func TestForeignFeed(t *testing.T) {
	f := newFixture(t)
	foreign := f.feed("http://foreign.example/", "Foreign")
	put := f.feed("urn:x:disk", "Disk", "etc/fetch/seen=")
	if got := f.subscribed(); got != alpha+"\n"+beta {
		t.Errorf("got %s", got)
	}
	f.add("http://foreign.example/", 100, "S")
	f.add("urn:x:disk", 200, "-")
	if got := f.get("subscription/list"); strings.Count(got, `"id":"feed/`) != 4 || !strings.Contains(got, `"title":"Disk","categories":[],"url":"urn:sha1:`+put) {
		t.Errorf("got %s", got)
	}
	f.text(f.do("POST", api+"subscription/edit", values("ac", "subscribe", "s", "feed/"+foreign)), 400)
	f.post("subscription/edit", "ac", "edit", "s", "feed/"+put, "t", "Space", "a", "user/-/label/Machine")
	if got := f.get("subscription/list"); !strings.Contains(got, `"title":"Space","categories":[{"id":"user/-/label/Machine"`) {
		t.Errorf("got %s", got)
	}
	f.post("subscription/edit", "ac", "edit", "s", "feed/urn:sha1:"+put, "t", "Moon") // Readrops names feeds by their URLs
	if got := f.file(put, "etc/view/alias"); got != "Moon\n" {
		t.Errorf("got %q", got)
	}
	f.post("subscription/edit", "ac", "unsubscribe", "s", "feed/"+foreign)
	if got := f.get("subscription/list"); strings.Contains(got, "Foreign") || f.flags() != "100:S 200:new" {
		t.Errorf("got %s, %s", got, f.flags())
	}
	f.text(f.do("POST", api+"subscription/edit", "ac=subscribe&s=feed/http://foreign.example/"), 200)
	if got := f.subscribed(); !strings.Contains(got, " http://foreign.example/ []") {
		t.Errorf("got %s", got)
	}
	f.post("edit-tag", "i", idOf(testdir.Unique(200, 200)).Long(), "a", read)
}

// A repeated subscription leaves a due marker if the feed was never fetched: the server may have
// been killed before it left one.
func TestSubscribeAgain(t *testing.T) {
	f := newFixture(t)
	due := filepath.Join(f.Path, "etc/fetch/due", f.a)
	for _, s := range []string{feedA, f.a} {
		f.post("subscription/edit", "ac", "subscribe", "s", "feed/"+s)
		if err := os.Remove(due); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.Path, "src", f.a, "etc/fetch/checked"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f.post("subscription/edit", "ac", "subscribe", "s", "feed/"+feedA)
	if _, err := os.Stat(due); err == nil {
		t.Error("a feed that was fetched is due")
	}
}

// No answer shows a password or a command of a feed.
func TestSecrets(t *testing.T) {
	f := newFixture(t)
	for _, id := range []string{"http://ann:s3cret@c.example/", "exec:cat s3cret", "file:/list"} {
		f.feed(id, " ", "etc/fetch/url="+id)
		f.add(id, 100+int64(len(id)), "-")
	}
	for _, path := range []string{api + "subscription/list", api + "subscription/export", api + "stream/contents", "/reader/atom/", api + "stream/contents/feed/" + testdir.Hash("exec:cat s3cret")} {
		if got := f.text(f.do("GET", path, ""), 200); strings.Contains(got, "s3cret") {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

// Titles, names and labels have no characters that a terminal acts on, also after a client has decoded
// them. The label that it has seen is that of the folder.
func TestUnsafeTexts(t *testing.T) {
	f := newFixture(t)
	const bad = "a\x1b[31m\u009b1m\u202eb\u2066c"
	const clean = "a[31m1mbc"
	hash := f.feed("http://c.example/", bad, "etc/fetch/url=http://c.example/", "etc/categories="+bad, "author="+bad)
	f.add("http://c.example/", 100, "-", "title="+bad)
	check := func(v any, path string) {
		t.Helper()
		if err := json.Unmarshal([]byte(f.get(path)), v); err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%+v", v); !strings.Contains(text, clean) || termsafe.Unsafe(text) {
			t.Errorf("%s: got %q", path, text)
		}
	}
	check(&greader.Subscriptions{}, "subscription/list")
	check(&greader.Tags{}, "tag/list")
	check(&greader.UnreadCounts{}, "unread-count")
	var list struct {
		greader.Head
		Items []greader.Item
	}
	check(&list, "stream/contents/feed/"+hash)
	if i := list.Items[0]; i.Title != clean || i.Author != clean || i.Origin.Title != clean {
		t.Errorf("got %+v", i)
	}
	if ids, _ := f.ids("s=user/-/label/" + clean); !slices.Equal(ids, []int64{100}) {
		t.Errorf("got %v", ids)
	}
	f.post("subscription/edit", "ac", "edit", "s", "feed/"+hash, "a", "user/-/label/x", "r", "user/-/label/"+clean)
	if got := f.file(hash, "etc/categories"); got != "x\n" {
		t.Errorf("the folders are %q", got)
	}
	// Nor is any of these written for others to read.
	f.post("subscription/edit", "ac", "edit", "s", "feed/"+hash, "t", "a\x1b[1m\u202eb", "a", "user/-/label/\u009bc", "r", "user/-/label/x")
	if got := f.file(hash, "etc/view/alias") + f.file(hash, "etc/categories"); got != "a[1mb\nc\n" {
		t.Errorf("got %q", got)
	}
}

func TestOPML(t *testing.T) {
	f := newFixture(t)
	list := f.get("subscription/export")
	doc, err := opml.Parse([]byte(list))
	if err != nil || len(doc.Feeds()) != 2 {
		t.Fatalf("%s: %v", list, err)
	}
	other := newFixture(t)
	for _, hash := range []string{other.a, other.b} {
		if err := os.RemoveAll(filepath.Join(other.Path, "src", hash)); err != nil {
			t.Fatal(err)
		}
	}
	bad := `<outline xmlUrl="exec:date"/><outline xmlUrl="http://127.0.0.1/"/><outline xmlUrl="http://u:p@c.example/"/></body>`
	list = strings.Replace(list, "</body>", bad, 1)
	if got := other.text(other.do("POST", api+"subscription/import", list, "Content-Type", "text/xml; charset=utf-8"), 200); got != "OK" {
		t.Errorf("got %s", got)
	}
	if got, want := other.subscribed(), alpha+"\n"+beta; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(other.log.String(), "3 feeds were left out") {
		t.Errorf("logged: %s", &other.log)
	}
	for _, hash := range []string{other.a, other.b} {
		if _, err := os.Stat(filepath.Join(other.Path, "etc/fetch/due", hash)); err != nil {
			t.Error(err)
		}
	}
	other.text(other.do("POST", api+"subscription/import", "not a list", "Content-Type", "text/xml"), 400)
}

// An edit of a feed that is being fetched waits, and is refused in the end.
func TestBusy(t *testing.T) {
	waits := 0
	var release func()
	f := newFixture(t, func(o *Options) {
		o.Sleep = func(context.Context, time.Duration) error {
			if waits++; waits == 3 {
				release()
			}
			return nil
		}
	})
	d, err := lektordir.Open(f.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := feedfiles.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	held, err := w.Begin(f.a)
	if err != nil {
		t.Fatal(err)
	}
	release = func() { held.Close() }
	f.post("subscription/edit", "ac", "edit", "s", "feed/"+f.a, "t", "New")
	if waits != 3 {
		t.Errorf("%d waits, want 3", waits)
	}
	if held, err = w.Begin(f.a); err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, form := range []string{"ac=edit&t=x&s=feed/" + f.a, "ac=unsubscribe&s=feed/" + f.a} {
		f.text(f.do("POST", api+"subscription/edit", form), 409)
	}
	if got := f.subscribed(); !strings.HasPrefix(got, "Beta") || !strings.Contains(got, "New http://a.example/ [News]") {
		t.Errorf("got %s", got)
	}
	if err := notBusy(errors.Join(&commit.BusyError{}, errors.New("disk full"))); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}
