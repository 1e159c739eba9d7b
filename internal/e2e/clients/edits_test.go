package clients

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// want compares the flags of an entry with those wanted.
func (c *checks) want(i item, what string, is bool, wanted bool) {
	c.t.Helper()
	if is != wanted {
		c.t.Errorf("%q: %s: %v, want %v (%s)", i.title, what, is, wanted, c.now(i).path)
	}
}

// untouched fails the test if anything has changed but the entries or files named.
func (c *checks) untouched(before map[string]string, but ...string) {
	c.t.Helper()
	for _, line := range changes(before, c.snapshot()) {
		if !slices.ContainsFunc(but, func(b string) bool { return strings.Contains(line, b) }) {
			c.t.Errorf("changed: %s", line)
		}
	}
}

func uniques(all []item) (names []string) {
	for _, i := range all {
		names = append(names, i.unique)
	}
	return names
}

func (c *checks) editTag() {
	before := c.snapshot()
	some := newest(c.stream(state+"reading-list", state+"read"), 4)
	ids := c.idsOf(some...)
	f := func(sign, tag string) url.Values {
		v := url.Values{sign: {tag}}
		for n, id := range ids {
			v.Add("i", []func(int64) string{long, short, bare, unpadded}[n](id))
		}
		return v
	}
	for range 2 { // again, it changes nothing
		c.edit(edit, f("a", state+"read").Encode())
		for _, i := range some {
			c.want(i, "read", c.now(i).read, true)
		}
	}
	c.edit(edit, f("a", "user/01234/state/com.google/starred").Encode())
	c.edit(edit+"?output=json", f("r", state+"read").Encode())
	for _, i := range some {
		c.want(i, "read", c.now(i).read, false)
		c.want(i, "starred", c.now(i).starred(), true)
	}
	// As newsboat and RSS Guard write them: colons and slashes unescaped.
	raw := "r=" + state + "starred"
	for _, id := range ids {
		raw += "&i=" + long(id)
	}
	c.edit(edit, raw)
	for _, i := range some {
		c.want(i, "starred", c.now(i).starred(), false)
	}
	// Unknown ids are passed over; the others are marked.
	unknown := f("a", state+"read")
	unknown["i"] = append([]string{long(12345), "0", "nonsense", "../../etc"}, unknown["i"]...)
	if a := c.post(edit, unknown.Encode()); a.status != http.StatusOK || a.body != "OK" {
		c.t.Errorf("with unknown ids: %s", a)
	}
	for _, i := range some {
		c.want(i, "read", c.now(i).read, true)
	}
	c.untouched(before, uniques(some)...)
	// Marks by GET are refused.
	if a := c.get(edit + "?" + f("r", state+"read").Encode()); a.status < 400 || !c.now(some[0]).read {
		c.t.Errorf("%s; want a refusal", a)
	}
	c.edit(edit, f("r", state+"read").Encode())
	// Flags of the user are labels.
	c.edit(edit, form("i", long(ids[0]), "a", "user/-/label/flag-z"))
	c.want(some[0], "flag z", strings.Contains(c.now(some[0]).flags, "z"), true)
	c.edit(edit, form("i", long(ids[0]), "r", "user/-/label/flag-z"))
	c.want(some[0], "flag z", strings.Contains(c.now(some[0]).flags, "z"), false)
}

func (c *checks) editPairs() {
	i := c.stream(state+"reading-list", state+"read")[0]
	id := long(c.idOf(i))
	for _, step := range []struct {
		form string
		read bool
	}{
		// newsboat.
		{"i=" + id + "&a=" + state + "read&r=" + state + "kept-unread&ac=edit&T=x\n", true},
		{"i=" + id + "&r=" + state + "read&a=" + state + "kept-unread&a=" + state + "tracking-kept-unread&ac=edit&T=x\n", false},
		{"i=" + id + "&a=" + state + "read&r=" + state + "kept-unread&ac=edit", true},
		// Liferea, which needs two calls for unread.
		{"i=" + id + "&s=feed%2F" + url.QueryEscape(alphaID) + "&a=" + state + "kept-unread&r=" + state + "read&ac=edit-tags&async=true", false},
		{"i=" + id + "&s=feed%2F" + url.QueryEscape(alphaID) + "&a=" + state + "tracking-kept-unread&ac=edit-tags&async=true", false},
		{"i=" + id + "&s=feed%2F" + url.QueryEscape(alphaID) + "&a=" + state + "read&ac=edit-tags&async=true", true},
		{"i=" + id + "&a=" + state + "kept-unread", false},
		{"i=" + id + "&r=" + state + "kept-unread", false},
	} {
		c.edit(edit+"?client=liferea", step.form)
		if got := c.now(i).read; got != step.read {
			c.t.Errorf("%s: read %v, want %v", step.form, got, step.read)
		}
	}
}

func (c *checks) editNothing() {
	before := c.snapshot()
	id := long(c.idOf(c.items()[0]))
	for _, tag := range []string{state + "broadcast", state + "like", state + "broadcast-friends", state + "tracking-kept-unread", "user/-/label/No such label", "user/-/label/News"} {
		for _, sign := range []string{"a", "r"} {
			if sign == "r" || tag != "user/-/label/No such label" { // an added label is made
				c.edit(edit, form("i", id, sign, tag))
			}
		}
	}
	c.untouched(before)
}

func (c *checks) markAll() {
	unreadAgain := func(all []item) {
		f := url.Values{"r": {state + "read"}}
		for _, id := range c.idsOf(all...) {
			f.Add("i", long(id))
		}
		c.edit(edit, f.Encode())
	}
	const path = api + "mark-all-as-read"
	for _, s := range []string{"feed/" + c.feed(alpha).hash, "feed/" + alphaID, "user/-/label/News", state + "reading-list"} {
		stream := s
		if s == "feed/"+alphaID {
			stream = "feed/" + c.feed(alpha).hash
		}
		unread := c.stream(stream, state+"read")
		middle := unread[len(unread)/2]
		for _, ts := range []string{fmt.Sprint(middle.seconds*1_000_000 + 30_000_000), fmt.Sprint(middle.seconds + 30), ""} {
			before := c.snapshot()
			f := form("s", s, "ts", ts, "T", "x")
			if ts == "" {
				f = form("s", s)
				c.auth = c.login(user, password) // the marks of one client are one edit for undo
			}
			c.edit(path, f)
			var marked []item
			for _, i := range unread {
				read := ts == "" || i.seconds < middle.seconds+30
				c.want(i, s+" until "+ts+", read", c.now(i).read, read)
				if read {
					marked = append(marked, i)
				}
			}
			c.untouched(before, uniques(marked)...)
			if s == state+"reading-list" && ts == "" {
				// All of it is one edit for undo.
				c.run("", "lektor-view", "undo")
				c.untouched(before, uniques(marked)...)
				for _, i := range marked {
					c.want(i, "read after undo", c.now(i).read, false)
				}
			}
			unreadAgain(marked)
		}
	}
	before := c.snapshot()
	for _, s := range []string{"", "feed/nothing", "user/-/label/nothing"} {
		if a := c.post(path, form("s", s)); a.status >= 500 {
			c.t.Errorf("%s", a)
		}
	}
	c.untouched(before)
	if a := c.get(path + "?s=" + state + "reading-list"); a.status < 400 {
		c.t.Errorf("%s; want a refusal", a)
	}
	c.untouched(before)
}

// Subscriptions.

func (c *checks) subscriptions() {
	origin, err := server.New("127.0.0.1")
	if err != nil {
		c.t.Fatal(err)
	}
	defer origin.Close()
	for n := range 4 {
		origin.Handle(fmt.Sprintf("/%d", n), server.Doc("", server.RSS(fmt.Sprintf("Origin %d", n), 0, 3)))
	}
	c.subscribeAll(origin)
	c.guards()
	c.editFeed()
	c.tags()
	c.mixedFolder()
	c.importExport(origin)
}

// there reports whether the lektor-dir has a subscription of a URL.
func (c *checks) there(url string) bool {
	_, err := os.Stat(filepath.Join(c.dir(), "src", testdir.Hash(url), "etc/fetch/url"))
	return err == nil
}

func (c *checks) dir() string { return c.service.dir }

func (c *checks) subscribeAll(origin *server.Server) {
	one, two := origin.URL("/0"), origin.URL("/1")
	c.edit(api+"subscription/edit", form("ac", "subscribe", "s", "feed/"+one, "t", "My title", "a", "user/-/label/News", "T", "x", "i", "null"))
	var quick struct {
		NumResults                  *int
		Query, StreamID, StreamName *string
	}
	a := c.post(api+"subscription/quickadd?quickadd="+url.QueryEscape(two), form("quickadd", two))
	decode(c.t, a, &quick)
	if quick.NumResults == nil || *quick.NumResults != 1 || quick.StreamID == nil || quick.Query == nil {
		c.t.Fatalf("%s", a)
	}
	listed := c.subscribed()
	if _, ok := listed[*quick.StreamID]; !ok {
		c.t.Errorf("quickadd answers the stream %s, which is not listed", *quick.StreamID)
	}
	s, ok := listed["feed/"+testdir.Hash(one)]
	if !ok || *s.Title != "My title" || len(*s.Categories) != 1 {
		c.t.Errorf("subscribed, and listed as %+v", s)
	}
	for _, u := range []string{one, two} {
		if !c.there(u) {
			c.t.Errorf("%s is not subscribed to", u)
		}
		if _, err := os.Stat(filepath.Join(c.dir(), "etc/fetch/due", testdir.Hash(u))); err != nil {
			c.t.Errorf("no fetcher is asked for %s: %v", u, err)
		}
	}
	if n := len(origin.Requests("")); n > 0 {
		c.t.Errorf("the server itself made %d requests", n)
	}
	again := c.post(api+"subscription/quickadd", form("quickadd", two))
	if again.status >= 500 || again.status == http.StatusOK && !strings.Contains(again.body, *quick.StreamID) {
		c.t.Errorf("again: %s", again)
	}
	c.run("", "lektor-fetch", "update", "--gap", "1ms", "--per-host", "4", one, two)
	for _, u := range []string{one, two} {
		c.whole("s=feed/"+testdir.Hash(u)+"&n=1000", c.stream("feed/"+testdir.Hash(u)))
		if n := len(c.stream("feed/" + testdir.Hash(u))); n != 3 {
			c.t.Errorf("%s has %d entries, want 3", u, n)
		}
	}
	c.subscribeToPage(origin)
	before := c.snapshot()
	for _, s := range []string{"feed/" + testdir.Hash(one), *quick.StreamID} {
		c.edit(api+"subscription/edit", form("ac", "unsubscribe", "s", s, "T", "x"))
		if _, ok := c.subscribed()[s]; ok {
			c.t.Errorf("%s is still listed", s)
		}
	}
	if c.there(one) || c.there(two) {
		c.t.Error("still subscribed to")
	}
	c.whole(readingList+"&n=1000", c.items())
	c.untouched(before, "src/"+testdir.Hash(one), "src/"+testdir.Hash(two))
	for _, u := range []string{one, two} {
		c.run("", "lektor-fetch", "rm", "--purge", u)
	}
}

// subscribeToPage: a page becomes its feed, which its first id still names; a dead host says so.
func (c *checks) subscribeToPage(origin *server.Server) {
	page, feed, dead := origin.URL("/page"), origin.URL("/3"), "http://127.0.0.1:1/"
	origin.Handle("/page", server.Doc("text/html", `<link rel=alternate type=application/rss+xml href=/3>`))
	for _, u := range []string{page, dead} {
		if a := c.post(api+"subscription/quickadd", form("quickadd", u)); !strings.Contains(a.body, testdir.Hash(u)) {
			c.t.Errorf("%s", a)
		}
	}
	c.edit(api+"subscription/edit", form("ac", "edit", "s", "feed/"+page, "a", "user/-/label/News"))
	cmd := c.command("lektor-fetch", "update", "--gap", "1ms", page, dead)
	if err := cmd.Run(); err == nil {
		c.t.Error("a dead host is fetched")
	}
	listed := c.subscribed()
	if s, ok := listed["feed/"+testdir.Hash(feed)]; !ok || *s.Title != "Origin 3" || len(*s.Categories) != 1 || c.there(page) {
		c.t.Errorf("the feed of the page is listed as %+v", s)
	}
	if s := listed["feed/"+testdir.Hash(dead)]; s.Title == nil || *s.Title != "127.0.0.1 (no connection)" {
		c.t.Errorf("a dead host is listed as %+v", s)
	}
	if n := len(c.stream("feed/" + testdir.Hash(feed))); n != 3 {
		c.t.Errorf("%d entries, want 3", n)
	}
	c.edit(api+"subscription/edit", form("ac", "unsubscribe", "s", "feed/"+page))
	c.edit(api+"subscription/edit", form("ac", "unsubscribe", "s", "feed/"+dead))
	if c.there(feed) || c.there(dead) {
		c.t.Error("still subscribed to")
	}
	for _, u := range []string{page, feed, dead} {
		c.run("", "lektor-fetch", "rm", "--purge", u)
	}
}

// guards: nothing is subscribed to that a peer may not.
func (c *checks) guards() {
	before := c.snapshot()
	for _, u := range []string{
		"exec:date", "exec:/bin/sh -c date", "file:///etc/passwd", "http://10.0.0.1/feed", "http://192.168.1.1/feed", "http://[::1]/feed", "http://169.254.169.254/latest",
		"javascript:alert(1)", "ftp://ftp.example/", "http://", "", "../../../etc/passwd", "http://u:p@10.0.0.1/", "gopher://g.example/1", "http://a.example/\nfile:///x",
		"http://2130706433.example.\x00/",
	} {
		for _, a := range []answer{
			c.post(api+"subscription/edit", form("ac", "subscribe", "s", "feed/"+u)),
			c.post(api+"subscription/quickadd", form("quickadd", u)),
		} {
			refused := a.status >= 400 && a.status < 500 || strings.Contains(strings.ReplaceAll(a.body, " ", ""), `"numResults":0`)
			if !refused {
				c.t.Errorf("%q: %s; want a refusal", u, a)
			}
		}
	}
	c.untouched(before)
}

func (c *checks) editFeed() {
	f := c.feed(alpha)
	title := func(want string) {
		c.t.Helper()
		s, ok := c.subscribed()["feed/"+f.hash]
		if !ok || *s.Title != want {
			c.t.Errorf("the feed is listed as %v, want %q", s.Title, want)
		}
	}
	before := c.snapshot()
	c.edit(api+"subscription/edit", form("ac", "edit", "s", "feed/"+f.hash, "t", "Renamed"))
	title("Renamed")
	if got := c.text("src", f.hash, "etc/view/alias"); got != "Renamed" {
		c.t.Errorf("the alias is %q", got)
	}
	c.edit(api+"subscription/edit", form("ac", "edit", "s", "feed/"+f.hash, "a", "user/-/label/More/Deep", "r", "user/-/label/News"))
	if got := c.folders(f.hash); !slices.Equal(got, []string{"More/Deep"}) {
		c.t.Errorf("the folders are %q", got)
	}
	c.edit(api+"subscription/edit", form("ac", "edit", "s", "feed/"+alphaID, "a", "user/-/label/News", "r", "user/-/label/More/Deep", "t", alpha))
	c.untouched(before, f.hash+"/etc/view/alias")
	if got := c.subscribed()["feed/"+f.hash]; got.Title == nil || !strings.Contains(*got.Title, "Alpha") {
		c.t.Errorf("listed as %+v", got)
	}
	for _, bad := range []string{form("ac", "edit", "s", "feed/nothing", "t", "x"), form("ac", "unsubscribe", "s", "feed/"+strings.Repeat("0", 40)), form("ac", "nonsense", "s", "feed/"+f.hash), form("s", "feed/"+f.hash, "t", "x")} {
		if a := c.post(api+"subscription/edit", bad); a.status >= 500 {
			c.t.Errorf("%s", a)
		}
	}
	c.untouched(before, f.hash+"/etc/view/alias")
}

func (c *checks) tags() {
	in := func(folder string) (n int) {
		for _, f := range c.feeds() {
			if slices.Contains(f.folders, folder) {
				n++
			}
		}
		return n
	}
	sorted := func() map[string]string {
		all := c.snapshot()
		for name, text := range all {
			if strings.HasSuffix(name, "/etc/categories") {
				lines := strings.Split(text, "\n")
				slices.Sort(lines)
				all[name] = strings.Join(lines, "\n")
			}
		}
		return all
	}
	before := sorted()
	asBefore := func() {
		c.t.Helper()
		for _, line := range changes(before, sorted()) {
			c.t.Errorf("changed: %s", line)
		}
	}
	n := in("News")
	c.edit(api+"rename-tag", form("s", "user/-/label/News", "dest", "user/-/label/Journals", "T", "x"))
	if in("News") != 0 || in("Journals") != n {
		c.t.Errorf("%d feeds in News, %d in Journals, want 0 and %d", in("News"), in("Journals"), n)
	}
	c.edit(api+"rename-tag", form("s", "user/-/label/Journals", "dest", "user/-/label/News"))
	asBefore()
	c.edit(api+"disable-tag", form("s", "user/-/label/Empty", "T", "x"))
	if in("Empty") != 0 {
		c.t.Error("the folder is still there")
	}
	c.edit(api+"subscription/edit", form("ac", "edit", "s", "feed/"+c.feed(delta).hash, "a", "user/-/label/Empty"))
	asBefore()
	for _, path := range []string{"rename-tag", "disable-tag"} {
		for _, f := range []string{form("s", "user/-/label/No such", "dest", "user/-/label/x"), form("s", state+"read", "dest", "user/-/label/x"), ""} {
			if a := c.post(api+path, f); a.status >= 500 {
				c.t.Errorf("%s", a)
			}
		}
	}
	asBefore()
}

// mixedFolder: a folder with a feed of another program is renamed and removed as a whole, or not at all.
func (c *checks) mixedFolder() {
	notes := filepath.Join(c.dir(), "src", testdir.Hash("urn:example:notes"), "etc/categories")
	if err := os.WriteFile(notes, []byte("Mixed\n"), 0o666); err != nil {
		c.t.Fatal(err)
	}
	for _, name := range []string{alpha, beta, delta} {
		c.edit(api+"subscription/edit", form("ac", "edit", "s", "feed/"+c.feed(name).hash, "a", "user/-/label/Mixed"))
	}
	in := func(folder string) (n int) {
		for _, f := range c.feeds() {
			if slices.Contains(f.folders, folder) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct{ path, form, folder string }{
		{"rename-tag", form("s", "user/-/label/Mixed", "dest", "user/-/label/Mixed too"), "Mixed too"},
		{"disable-tag", form("s", "user/-/label/Mixed too"), ""},
		{"disable-tag", form("s", "user/-/label/Mixed"), ""},
	} {
		before := in("Mixed") + in("Mixed too")
		a := c.post(api+step.path, step.form)
		after := []int{in("Mixed"), in("Mixed too")}
		if before > 0 && !slices.Contains(after, before) && after[0]+after[1] > 0 {
			c.t.Errorf("%s\nin the folders before: %d, after: %d", a, before, after)
		}
	}
	for _, name := range []string{alpha, beta, delta} {
		c.edit(api+"subscription/edit", form("ac", "edit", "s", "feed/"+c.feed(name).hash, "r", "user/-/label/Mixed"))
	}
	_ = os.Remove(notes) // the server may have removed it
}

type opml struct {
	Outline []struct {
		Text    string `xml:"text,attr"`
		XMLURL  string `xml:"xmlUrl,attr"`
		Outline []struct {
			XMLURL  string `xml:"xmlUrl,attr"`
			Outline []struct {
				XMLURL string `xml:"xmlUrl,attr"`
			} `xml:"outline"`
		} `xml:"outline"`
	} `xml:"body>outline"`
}

func (c *checks) importExport(origin *server.Server) {
	list := c.get(api + "subscription/export")
	var got opml
	if err := xml.Unmarshal([]byte(list.body), &got); err != nil || !strings.Contains(list.body, `xmlUrl="`+alphaID+`"`) {
		c.t.Errorf("%s\n%v", list, err)
	}
	two, three := origin.URL("/2"), origin.URL("/3")
	a := c.do("POST", api+"subscription/import", `<?xml version="1.0"?><opml version="2.0"><body><outline text="Folder"><outline type="rss" text="Two" xmlUrl="`+two+`"/></outline>`+
		`<outline type="rss" text="Three" xmlUrl="`+three+`"/><outline type="rss" text="evil" xmlUrl="exec:date"/><outline type="rss" text="evil" xmlUrl="file:///etc/passwd"/></body></opml>`,
		c.header(), "Content-Type: text/xml")
	if a.status != http.StatusOK {
		c.t.Errorf("%s", a)
	}
	if !c.there(two) || !c.there(three) || !slices.Equal(c.folders(testdir.Hash(two)), []string{"Folder"}) {
		c.t.Errorf("imported: %v, %v, in %q", c.there(two), c.there(three), c.folders(testdir.Hash(two)))
	}
	if c.there("exec:date") || c.there("file:///etc/passwd") {
		c.t.Error("a command or a file was subscribed to")
	}
	for _, u := range []string{two, three} {
		if c.there(u) {
			c.run("", "lektor-fetch", "rm", "--purge", u)
		}
	}
}

// Requests.

func (c *checks) changesSeen() {
	unread := c.stream(state+"reading-list", state+"read")
	i := unread[0]
	feed := "/reader/atom/feed%2F" + i.feed + "?n=100"
	first := c.get(feed)
	tag := first.header.Get("ETag")
	if first.header.Get("Date") == "" {
		c.t.Error("no Date")
	}
	if tag != "" {
		if a := c.do("GET", feed, "", c.header(), "If-None-Match: "+tag, "A-IM: feed"); a.status != http.StatusNotModified && a.status != http.StatusOK {
			c.t.Errorf("%s", a)
		}
	}
	// By a rename of another program; by lektor-view; by the API.
	moved := filepath.Join(c.dir(), "cur", i.feed, i.unique+";2,S")
	if err := os.MkdirAll(filepath.Dir(moved), 0o777); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(i.path, moved); err != nil {
		c.t.Fatal(err)
	}
	c.whole(readingList+unreadOnly+"&n=1000", unread[1:])
	a := c.do("GET", feed, "", c.header(), "If-None-Match: "+tag)
	if a.status != http.StatusOK || tag != "" && a.header.Get("ETag") == tag {
		c.t.Errorf("%s: the ETag is %s, as before the mark", a, a.header.Get("ETag"))
	}
	c.run("", "lektor-view", "mark", "--clear", "S", moved)
	c.whole(readingList+unreadOnly+"&n=1000", c.stream(state+"reading-list", state+"read"))
	c.edit(edit, form("i", long(c.idOf(i)), "a", state+"read", "a", state+"starred"))
	c.whole(readingList+unreadOnly+"&n=1000", unread[1:])
	c.run("", "lektor-view", "mark", "--clear", "FS", c.now(i).path)
	c.whole(readingList+unreadOnly+"&n=1000", unread)
	c.whole("s="+state+"starred&n=1000", c.stream(state+"starred"))
	// Trashed entries are gone, for lektor-view as for clients.
	c.run("", "lektor-view", "mark", "--set", "T", c.now(i).path)
	c.whole(readingList+unreadOnly+"&n=1000", unread[1:])
	c.run("", "lektor-view", "undo")
	c.whole(readingList+unreadOnly+"&n=1000", unread)
	// Tags and subscriptions may have an ETag, which a change of folders changes.
	for _, path := range []string{api + "tag/list?output=json", api + "subscription/list?output=json"} {
		tag := c.get(path).header.Get("ETag")
		c.run("", "lektor-fetch", "set", alphaID, "categories", "Elsewhere")
		if a := c.do("GET", path, "", c.header(), "If-None-Match: "+tag); a.status != http.StatusOK || !strings.Contains(a.body, "Elsewhere") {
			c.t.Errorf("%s; want the folder Elsewhere", a)
		}
		c.run("", "lektor-fetch", "set", alphaID, "categories", "News")
	}
}

func (c *checks) requests() {
	for _, path := range []string{api + "user-info", api + "tag/list", api + "subscription/list", api + "unread-count", api + "stream/items/ids?" + readingList, api + "stream/contents"} {
		a := c.get(path)
		if kind := strings.ToLower(strings.ReplaceAll(a.header.Get("Content-Type"), " ", "")); !strings.HasPrefix(kind, "application/json") {
			c.t.Errorf("%s: the type is %q", path, kind)
		}
	}
	for _, path := range []string{api + "user-info?", api + "tag/list?", api + "subscription/list?", api + "unread-count?", api + "stream/items/ids?" + readingList + "&", api + "stream/contents?n=1000&"} {
		a := c.get(path + "output=xml")
		var document struct {
			XMLName xml.Name
			Inner   string `xml:",innerxml"`
		}
		if err := xml.Unmarshal([]byte(a.body), &document); err != nil || document.XMLName.Local != "object" || !strings.Contains(a.header.Get("Content-Type"), "xml") {
			c.t.Errorf("%s\n%v", a, err)
		}
	}
	for _, method := range []string{"HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"} {
		for _, path := range append(c.reads(), "/", "/nothing", edit) {
			c.do(method, path, "", c.header())
		}
	}
	// Two MiB of ids, most of which mean nothing.
	want := c.items()[0]
	unknown := "&i=" + url.QueryEscape(long(4711))
	big := "i=" + url.QueryEscape(long(c.idOf(want))) + strings.Repeat(unknown, 2<<20/len(unknown))
	var got contentsAnswer
	decode(c.t, c.post(contents, big), &got)
	c.same("two MiB of ids", c.entriesOf(got), []item{want})
	c.parallel()
	if a := c.do("GET", "/", ""); a.status >= 500 {
		c.t.Errorf("%s", a)
	}
}

// parallel: eight requests at once have the same answer.
func (c *checks) parallel() {
	f := url.Values{}
	for _, id := range c.idsOf(c.items()...) {
		f.Add("i", short(id))
	}
	var wait sync.WaitGroup
	answers := make([]answer, 8)
	for n := range answers {
		wait.Go(func() { answers[n], _ = c.try("POST", contents, f.Encode(), c.header()) })
	}
	wait.Wait()
	for _, a := range answers {
		var got contentsAnswer
		if decode(c.t, a, &got); len(got.Items) != len(c.items()) {
			c.t.Errorf("%d items, want %d", len(got.Items), len(c.items()))
		}
	}
}
