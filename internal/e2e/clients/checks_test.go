package clients

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// api is where the calls are, and readingList, unreadOnly and so on are parameters.
const (
	api         = "/reader/api/0/"
	idsPath     = api + "stream/items/ids?output=json&"
	contents    = api + "stream/items/contents?output=json"
	edit        = api + "edit-tag"
	readingList = "s=" + state + "reading-list"
	unreadOnly  = "&xt=" + state + "read"
)

// checks is a server on the lektor-dir of [fill], and the oracle for it.
type checks struct {
	*service
	oracle
	t *testing.T
	w *writer
}

func (c *checks) sub(t *testing.T) *checks {
	s, o := *c.service, c.oracle
	s.t, o.t = t, t
	return &checks{&s, o, t, c.w}
}

// table has what a server must pass for the known clients.
var table = []struct {
	name  string
	check func(c *checks)
}{
	{"01 log-in", (*checks).logIn},
	{"02 wrong password", (*checks).wrongPassword},
	{"03 log-in as clients encode it", (*checks).logInEncodings},
	{"04 log-in with JSON", (*checks).logInJSON},
	{"05 log-in at all bases", (*checks).logInBases},
	{"06 form of Auth", (*checks).authForm},
	{"07 header", (*checks).authHeader},
	{"08 without authorization", (*checks).unauthorized},
	{"09 Auth in T alone", (*checks).authInT},
	{"10 header without T", (*checks).headerWithoutT},
	{"11 lenient T", (*checks).lenientT},
	{"12 wrong T", (*checks).wrongT},
	{"13 token", (*checks).tokens},
	{"14 user-info", (*checks).userInfo},
	{"15 tag/list", (*checks).tagList},
	{"16 subscription/list", (*checks).subscriptionList},
	{"17 no subscriptions", (*checks).noSubscriptions},
	{"18 unread-count", (*checks).unreadCount},
	{"19 ids of the reading list", (*checks).idsAll},
	{"20 without read entries", (*checks).idsUnread},
	{"21 ids of each stream", (*checks).idsStreams},
	{"22 ot and nt", (*checks).idsTimes},
	{"23 huge n", (*checks).idsHugeN},
	{"24 pages", (*checks).idsPages},
	{"25 last page", (*checks).idsLastPage},
	{"26 oldest first", (*checks).idsOldestFirst},
	{"27 it", (*checks).idsInclude},
	{"28 stream, escaped and not", (*checks).idsEscapes},
	{"29 empty stream", (*checks).idsEmpty},
	{"30 spellings of ids", (*checks).contentsIDs},
	{"31 fields of items", (*checks).contentsFields},
	{"32 stream/contents", (*checks).streamContents},
	{"33 Atom", (*checks).atom},
	{"34 edit-tag", (*checks).editTag},
	{"35 pairs of tags", (*checks).editPairs},
	{"36 tags that mean nothing", (*checks).editNothing},
	{"37 mark-all-as-read", (*checks).markAll},
	{"38 subscriptions", (*checks).subscriptions},
	{"39 changes are seen at once", (*checks).changesSeen},
	{"40 requests", (*checks).requests},
}

// TestChecks: the built program passes what known clients need, as the oracle answers it
// from the directory.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := fill(t)
	s := serveDir(t, w.dir.Path, "--allow", "127.0.0.0/8", "--categories", "all")
	all := &checks{s, oracle{t, w.dir.Path, true}, t, w}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) { row.check(all.sub(t)) })
	}
}

// TestBasePath: below a path of a proxy, everything is as at the root.
func TestBasePath(t *testing.T) {
	t.Parallel()
	w := fill(t)
	for _, base := range []string{"/feeds", "/a/b/"} {
		s := serveDir(t, w.dir.Path, "--base-path", base)
		c := &checks{s, oracle{t, w.dir.Path, false}, t, w}
		c.logInBases()
		c.authHeader()
		c.whole(readingList+"&n=1000", c.items())
		c.streamContents()
		c.atom()
		s.url, _, _ = strings.Cut(s.url, base[:2])
		if a := s.get(idsPath + readingList); a.status != http.StatusNotFound {
			t.Errorf("beside %s: %s", base, a)
		}
	}
}

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// Log-in.

func (c *checks) logIn() {
	a := c.do("POST", "/accounts/ClientLogin", form("Email", user, "Passwd", password))
	authOf(c.t, a)
	if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") {
		c.t.Errorf("the type is %q", kind)
	}
}

func (c *checks) wrongPassword() {
	var answers []answer
	for _, f := range []string{form("Email", user, "Passwd", "wrong"), form("Email", "nobody", "Passwd", password), form("Email", user)} {
		a := c.do("POST", "/accounts/ClientLogin", f)
		if a.status != 401 && a.status != 403 || strings.Contains(a.body, "Auth=") {
			c.t.Errorf("%s; want 401 or 403", a)
		}
		answers = append(answers, a)
	}
	if answers[0].status != answers[1].status || answers[0].body != answers[1].body {
		c.t.Errorf("an unknown user is answered otherwise:\n%s\n%s", answers[0], answers[1])
	}
}

func (c *checks) logInEncodings() {
	const extra = "service=reader&source=newsboat0.000000&accountType=HOSTED_OR_GOOGLE&continue=http://www.google.com/&"
	escaped := url.QueryEscape(password) // + for a blank
	for _, passwd := range []string{escaped, strings.ReplaceAll(escaped, "+", "%20"), strings.ToLower(escaped)} {
		authOf(c.t, c.do("POST", "/accounts/ClientLogin", extra+"Email="+user+"&Passwd="+passwd))
	}
	// A bad escape or a semicolon in another field loses that field only.
	authOf(c.t, c.do("POST", "/accounts/ClientLogin", "x=%zz&y=a;b&Email="+user+"&Passwd="+escaped))
}

func (c *checks) logInJSON() {
	a := c.do("POST", "/accounts/ClientLogin", form("Email", user, "Passwd", password, "output", "json", "client", "ReadYou", "accountType", "HOSTED_OR_GOOGLE", "service", "reader"))
	if !strings.HasPrefix(a.body, "{") {
		authOf(c.t, a)
		return
	}
	var got struct{ SID, LSID, Auth string }
	if decode(c.t, a, &got); got.Auth == "" || got.SID == "" {
		c.t.Errorf("%s; want SID and Auth", a)
	}
}

// bases are where clients look for the API, by the URL that their users type.
var bases = []string{"", "/", "/api/greader.php", "//api/greader.php", "/api/greader.php/"}

func (c *checks) logInBases() {
	f := form("Email", user, "Passwd", password)
	for _, base := range append(bases, "/reader/api/0") {
		authOf(c.t, c.do("POST", base+"/accounts/ClientLogin", f))
	}
	for _, base := range bases {
		if a := c.get(base + "/reader/api/0/user-info"); a.status != http.StatusOK {
			c.t.Errorf("%s", a)
		}
		if a := c.get(base + "/reader/atom/feed%2F" + c.feed(alpha).hash + "?n=2"); a.status != http.StatusOK || !strings.Contains(a.body, "<entry") {
			c.t.Errorf("%s", a)
		}
	}
}

func (c *checks) authForm() {
	if strings.ContainsAny(c.auth, "= \t\r\n") || slices.Contains([]string{"NA", "unused", "none", "null"}, c.auth) || len(c.auth) < 20 {
		c.t.Errorf("Auth is %q", c.auth)
	}
	if strings.Contains(c.auth, user) {
		c.t.Errorf("Auth has the user's name: %q", c.auth)
	}
}

// reads are all calls that read.
func (c *checks) reads() []string {
	return []string{
		api + "token", api + "user-info", api + "tag/list?output=json", api + "subscription/list?output=json", api + "unread-count?output=json",
		idsPath + readingList, api + "stream/contents?output=json", api + "stream/contents/feed%2F" + c.feed(alpha).hash,
		"/reader/atom/feed%2F" + c.feed(alpha).hash, api + "subscription/export", api + "preference/list?output=json", api + "friend/list?output=json",
		api + "preference/stream/list?output=json",
	}
}

func (c *checks) writes() []string {
	return []string{
		edit, api + "mark-all-as-read", api + "subscription/edit", api + "subscription/quickadd", api + "rename-tag", api + "disable-tag",
		api + "subscription/import", contents,
	}
}

func (c *checks) authHeader() {
	for _, path := range c.reads() {
		if a := c.get(path); a.status != http.StatusOK {
			c.t.Errorf("%s", a)
		}
	}
	// RSS Guard sends a blank cookie besides.
	if a := c.do("GET", api+"user-info", "", c.header(), "Cookie: JSESSIONID= "); a.status != http.StatusOK {
		c.t.Errorf("%s", a)
	}
}

func (c *checks) unauthorized() {
	before := c.snapshot()
	refused := func(a answer) {
		if a.status != http.StatusUnauthorized || a.header.Get("X-Reader-Google-Bad-Token") != "" {
			c.t.Errorf("%s\n%v; want 401, no bad token", a, a.header)
		}
		if strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			c.t.Errorf("%s: the type is %q", a.request, a.header.Get("Content-Type"))
		}
	}
	for _, header := range []string{"Accept: */*", "Authorization: GoogleLogin auth=" + strings.Repeat("0", len(c.auth)), "Authorization: GoogleLogin auth=", "Authorization: Bearer " + c.auth} {
		for _, path := range c.reads() {
			refused(c.do("GET", path, "", header))
		}
	}
	i := c.items()[0]
	for _, path := range c.writes() {
		refused(c.do("POST", path, form("i", long(c.idOf(i)), "a", state+"read", "s", "feed/"+i.feed, "ac", "unsubscribe", "quickadd", alphaID, "dest", "user/-/label/x")))
	}
	if d := changes(before, c.snapshot()); len(d) > 0 {
		c.t.Errorf("changed: %q", d)
	}
}

func (c *checks) authInT() {
	unread := c.stream(state+"reading-list", state+"read")
	id := c.idOf(unread[0])
	var got contentsAnswer
	decode(c.t, c.do("POST", api+"stream/items/contents", form("output", "json", "i", short(id), "T", c.auth)), &got)
	if len(got.Items) != 1 {
		c.t.Errorf("%d items", len(got.Items))
	}
	a := c.do("POST", edit+"?client=liferea", form("i", long(id), "s", "feed/"+alphaID, "a", state+"read", "ac", "edit-tags", "T", c.auth, "async", "true"))
	if a.body != "OK" || !c.now(unread[0]).read {
		c.t.Errorf("%s, and it is read: %v", a, c.now(unread[0]).read)
	}
}

func (c *checks) headerWithoutT() {
	unread := c.stream(state+"reading-list", state+"read")
	c.edit(edit, form("i", long(c.idOf(unread[0])), "a", state+"read"))
	if !c.now(unread[0]).read {
		c.t.Error("it is unread")
	}
}

func (c *checks) lenientT() {
	token := c.get(api + "token").body
	for _, t := range []string{"x", "", strings.TrimSpace(token) + "\n", token, c.auth} {
		unread := c.stream(state+"reading-list", state+"read")
		c.edit(edit, form("i", long(c.idOf(unread[0])), "a", state+"read", "T", t))
		if !c.now(unread[0]).read {
			c.t.Errorf("with T=%q it is unread", t)
		}
	}
}

func (c *checks) wrongT() {
	i := c.stream(state+"reading-list", state+"read")[0]
	for _, header := range []string{c.header(), "Accept: */*"} {
		a := c.do("POST", edit, form("i", long(c.idOf(i)), "a", state+"read", "T", "f00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeed0"), header)
		if a.status != http.StatusUnauthorized || header == c.header() && a.header.Get("X-Reader-Google-Bad-Token") != "true" {
			c.t.Errorf("%s\n%v; want 401 and the header X-Reader-Google-Bad-Token: true", a, a.header)
		}
	}
	if c.now(i).read {
		c.t.Error("it is read")
	}
}

func (c *checks) tokens() {
	first := c.get(api + "token")
	if !strings.HasPrefix(first.header.Get("Content-Type"), "text/plain") || strings.ContainsAny(strings.TrimSpace(first.body), " \r\n=&<") || strings.TrimSpace(first.body) == "" {
		c.t.Errorf("%s\n%v", first, first.header)
	}
	second := c.get(api + "token?client=x&ck=1")
	for _, t := range []string{first.body, second.body} {
		c.edit(edit, form("i", long(c.idOf(c.items()[0])), "a", state+"tracking-kept-unread", "T", t))
	}
}

// Lists.

func (c *checks) userInfo() {
	for _, query := range []string{"", "?output=json", "?output=json&client=x&ck=12345"} {
		var got struct{ UserID, UserName, UserProfileID, UserEmail *string }
		a := c.get(api + "user-info" + query)
		decode(c.t, a, &got)
		if got.UserID == nil || got.UserName == nil || got.UserProfileID == nil || got.UserEmail == nil || *got.UserName == "" {
			c.t.Errorf("%s", a)
		}
	}
}

func (c *checks) tagList() {
	var got struct {
		Tags []struct {
			ID          string
			Type, Label *string
		}
	}
	a := c.get(api + "tag/list?output=json")
	decode(c.t, a, &got)
	folders := map[string]bool{}
	for n, tag := range got.Tags {
		kind := ""
		if tag.Type != nil {
			kind = *tag.Type
		}
		switch {
		case tag.ID == "user/-/state/com.google/starred":
			if n != 0 || tag.Type != nil {
				c.t.Errorf("%s; want starred first, without a type", a)
			}
		case kind == "folder":
			folders[tag.ID] = true
		case kind != "" && kind != "tag":
			c.t.Errorf("%s: the type %q", tag.ID, kind)
		}
	}
	if len(got.Tags) == 0 || got.Tags[0].ID != "user/-/state/com.google/starred" {
		c.t.Errorf("%s; want starred first", a)
	}
	want := map[string]bool{}
	for _, f := range c.feeds() {
		for _, name := range f.folders {
			want["user/-/label/"+name] = true
		}
	}
	for id := range want {
		if !folders[id] {
			c.t.Errorf("%s; want the folder %s", a, id)
		}
	}
	for id := range folders {
		if !want[id] {
			c.t.Errorf("%s: no feed is in %s", a, id)
		}
	}
	if !strings.Contains(a.body, "user/-/label/flag-q") {
		c.t.Errorf("%s; want the flag q that an entry has", a)
	}
}

type subscription struct {
	ID, Title, URL, HTMLURL, IconURL *string
	Categories                       *[]struct{ ID, Label *string }
	FirstItemMsec                    *string
}

func (c *checks) subscribed() map[string]subscription {
	c.t.Helper()
	var got struct{ Subscriptions []subscription }
	decode(c.t, c.get(api+"subscription/list?output=json"), &got)
	all := map[string]subscription{}
	for _, s := range got.Subscriptions {
		if s.ID == nil || s.Title == nil || s.URL == nil || s.HTMLURL == nil || s.IconURL != nil && *s.IconURL == "" || s.Categories == nil {
			c.t.Fatalf("a subscription lacks a field: %+v", s)
		}
		all[*s.ID] = s
	}
	return all
}

func (c *checks) subscriptionList() {
	got := c.subscribed()
	for _, f := range c.feeds() {
		s, ok := got["feed/"+f.hash]
		if !ok {
			c.t.Errorf("%q is missing; got %v", f.name, got)
			continue
		}
		if html.UnescapeString(*s.Title) != f.name && *s.Title != f.name {
			c.t.Errorf("title %q, want %q", *s.Title, f.name)
		}
		if f.url != "" && *s.URL != f.url || f.link != "" && *s.HTMLURL != f.link {
			c.t.Errorf("%s: url %q, htmlUrl %q; want %q, %q", f.name, *s.URL, *s.HTMLURL, f.url, f.link)
		}
		var labels []string
		for _, l := range *s.Categories {
			if l.ID == nil || l.Label == nil || *l.ID != "user/-/label/"+*l.Label {
				c.t.Errorf("%s: a category without id or label, or with two names", f.name)
				continue
			}
			labels = append(labels, *l.Label)
		}
		if slices.Sort(labels); !slices.Equal(labels, slices.Sorted(slices.Values(f.folders))) {
			c.t.Errorf("%s: folders %q, want %q", f.name, labels, f.folders)
		}
	}
	if len(got) != len(c.feeds()) {
		c.t.Errorf("%d subscriptions, %d feeds", len(got), len(c.feeds()))
	}
}

var emptyList = regexp.MustCompile(`"(subscriptions|itemRefs|items)":\s*\[\s*\]`)

func (c *checks) noSubscriptions() {
	empty := testdir.New(c.t)
	c.addUser("bert", "another password", empty.Path)
	other := *c.service
	other.auth = c.login("bert", "another password")
	for _, path := range []string{"subscription/list?output=json", "stream/items/ids?output=json&" + readingList, "stream/contents?output=json"} {
		if a := other.get(api + path); a.status != http.StatusOK || !emptyList.MatchString(a.body) {
			c.t.Errorf("%s; want an empty list", a)
		}
	}
	// One user's ids and feeds are nothing to another.
	var got contentsAnswer
	a := other.post(contents, form("i", long(c.idOf(c.items()[0]))))
	if decode(c.t, a, &got); len(got.Items) != 0 {
		c.t.Errorf("%s; want nothing of the other user", a)
	}
}

func (c *checks) unreadCount() {
	var got struct {
		Max          *int
		UnreadCounts []struct {
			ID                      string
			Count                   *int
			NewestItemTimestampUsec *string
		}
	}
	for _, query := range []string{"?output=json", "?output=json&all=true"} {
		decode(c.t, c.get(api+"unread-count"+query), &got)
		counts := map[string]int{}
		for _, u := range got.UnreadCounts {
			if u.Count == nil || u.NewestItemTimestampUsec == nil || !digits.MatchString(*u.NewestItemTimestampUsec) {
				c.t.Fatalf("%+v lacks a field", u)
			}
			counts[u.ID] = *u.Count
			if unread := c.stream(u.ID, state+"read"); len(unread) > 0 {
				// The microseconds of names that others made are not known.
				if usec, _ := strconv.ParseInt(*u.NewestItemTimestampUsec, 10, 64); usec/1_000_000 < unread[0].seconds {
					c.t.Errorf("%s: newest at %s, want %d s", u.ID, *u.NewestItemTimestampUsec, unread[0].seconds)
				}
			}
		}
		streams := []string{state + "reading-list", "user/-/label/News", "user/-/label/" + deep}
		for _, f := range c.feeds() {
			streams = append(streams, "feed/"+f.hash)
		}
		for _, s := range streams {
			if want := len(c.stream(s, state+"read")); counts[s] != want {
				c.t.Errorf("%s: %d unread, want %d", s, counts[s], want)
			}
		}
		if got.Max == nil {
			c.t.Error("no max")
		}
	}
}

var digits = regexp.MustCompile(`^\d+$`)

// Ids.

type idsAnswer struct {
	ItemRefs []struct {
		ID              string
		DirectStreamIDs []string
		TimestampUsec   string
	}
	Continuation *string
}

// ids asks for ids, and returns the entries and the continuation.
func (c *checks) ids(query string) (found []item, continuation string) {
	c.t.Helper()
	var got idsAnswer
	a := c.get(idsPath + query)
	decode(c.t, a, &got)
	find := c.finder()
	for _, ref := range got.ItemRefs {
		i, ok := find(ref.ID)
		if !ok {
			c.t.Errorf("%s: the id %s is that of no entry", query, ref.ID)
		}
		if usec, _ := strconv.ParseInt(ref.TimestampUsec, 10, 64); ref.TimestampUsec != "" && usec/1_000_000 != i.seconds {
			c.t.Errorf("%s: %s has the time %s, want %d s", query, i.title, ref.TimestampUsec, i.seconds)
		}
		found = append(found, i)
	}
	if got.Continuation != nil {
		if continuation = *got.Continuation; continuation == "" {
			c.t.Errorf("%s: an empty continuation", query)
		}
	} else if strings.Contains(a.body, `"continuation"`) {
		c.t.Errorf("%s", a)
	}
	return found, continuation
}

// same compares entries with those wanted.
func (c *checks) same(what string, got, want []item) {
	c.t.Helper()
	if !slices.Equal(titles(got), titles(want)) {
		c.t.Errorf("%s:\ngot  %q\nwant %q", what, titles(got), titles(want))
	}
}

// whole asks for ids that must come on one page.
func (c *checks) whole(query string, want []item) {
	c.t.Helper()
	got, next := c.ids(query)
	if c.same(query, got, want); next != "" {
		c.t.Errorf("%s: there is a continuation", query)
	}
}

// idOf asks for the id of an entry.
func (c *checks) idOf(i item) int64 {
	c.t.Helper()
	for _, id := range c.idsOf(i) {
		return id
	}
	c.t.Fatalf("no id for %s", i.title)
	return 0
}

// idsOf asks for the ids of entries.
func (c *checks) idsOf(all ...item) []int64 {
	c.t.Helper()
	var got idsAnswer
	decode(c.t, c.get(idsPath+readingList+"&n=200000"), &got)
	find, known := c.finder(), map[string]int64{}
	for _, ref := range got.ItemRefs {
		i, _ := find(ref.ID)
		known[i.feed+" "+i.unique], _ = strconv.ParseInt(ref.ID, 10, 64)
	}
	var ids []int64
	for _, i := range all {
		if id, ok := known[i.feed+" "+i.unique]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// now returns an entry as it is by now.
func (c *checks) now(i item) item {
	c.t.Helper()
	for _, is := range c.items() {
		if is.unique == i.unique && is.feed == i.feed {
			return is
		}
	}
	c.t.Fatalf("%s is no longer there", i.title)
	return item{}
}

func long(id int64) string     { return fmt.Sprintf("tag:google.com,2005:reader/item/%016x", id) }
func unpadded(id int64) string { return fmt.Sprintf("tag:google.com,2005:reader/item/%x", id) }
func short(id int64) string    { return strconv.FormatInt(id, 10) }
func bare(id int64) string     { return fmt.Sprintf("%016x", id) }

func (c *checks) idsAll() {
	c.whole(readingList+"&n=1000", c.items())
	if got, _ := c.ids(readingList); len(got) != 20 {
		c.t.Errorf("without n %d ids, want 20", len(got))
	}
}

func (c *checks) idsUnread() {
	for _, s := range []string{state + "reading-list", "feed/" + c.feed(alpha).hash, "user/-/label/News"} {
		c.whole("s="+url.QueryEscape(s)+unreadOnly+"&n=1000", c.stream(s, state+"read"))
	}
}

func (c *checks) idsStreams() {
	for _, s := range []string{"starred", "read", "reading-list", "kept-unread"} {
		want := c.stream(state + s)
		if len(want) == 0 {
			c.t.Errorf("no entry is %s", s)
		}
		for _, name := range []string{"-", user, "1", "01234567890"} {
			c.whole("s=user/"+name+"/state/com.google/"+s+"&n=1000", want)
		}
	}
	for _, f := range c.feeds() {
		c.whole("s=feed/"+f.hash+"&n=1000", c.stream("feed/"+f.hash))
		c.whole("s=feed/"+url.QueryEscape(f.id)+"&n=1000", c.stream("feed/"+f.hash))
	}
	for _, label := range []string{"News", deep, "Empty", "flag-q"} {
		c.whole("s="+url.QueryEscape("user/-/label/"+label)+"&n=1000", c.stream("user/-/label/"+label))
		c.whole("s="+url.QueryEscape("user/77/label/"+label)+"&n=1000", c.stream("user/-/label/"+label))
	}
	c.whole("s="+url.QueryEscape("user/-/label/News")+"&xt="+state+"starred&xt="+state+"read&n=1000", c.stream("user/-/label/News", state+"starred", state+"read"))
}

func (c *checks) idsTimes() {
	all := c.items()
	middle := all[len(all)/2].seconds
	since := func(at int64) []item {
		return slices.DeleteFunc(slices.Clone(all), func(i item) bool { return i.seconds < at })
	}
	c.whole(readingList+"&n=1000&ot="+fmt.Sprint(middle), since(middle))
	c.whole(readingList+"&n=1000&ot=", all)
	c.whole(readingList+"&n=1000&ot=0", all)
	c.whole(readingList+"&n=1000&nt="+fmt.Sprint(middle-1), slices.DeleteFunc(slices.Clone(all), func(i item) bool { return i.seconds >= middle }))
	c.whole("s="+state+"starred&n=1000&ot="+fmt.Sprint(middle), slices.DeleteFunc(since(middle), func(i item) bool { return !i.starred() }))
	c.whole(readingList+"&n=1000&ot=99999999999", nil)
}

func (c *checks) idsHugeN() {
	for _, n := range []string{"200000", "10000", "2147483647", "99999999999999999999"} {
		c.whole(readingList+"&n="+n, c.items())
	}
	for _, n := range []string{"", "0", "-1", "x", "1.5"} {
		if a := c.get(idsPath + readingList + "&n=" + n); a.status >= 500 {
			c.t.Errorf("%s", a)
		}
	}
}

// pages reads all pages, and calls between after each.
func (c *checks) pages(query string, between func(page []item)) (all []item) {
	c.t.Helper()
	more := ""
	for n := range 1000 {
		page, next := c.ids(query + more)
		all = append(all, page...)
		if next == "" {
			return all
		}
		if len(page) == 0 {
			c.t.Fatalf("%s: page %d is empty and not the last", query, n)
		}
		more = "&c=" + url.QueryEscape(next)
		if between != nil {
			between(page)
		}
	}
	c.t.Fatalf("%s: the pages do not end", query)
	return nil
}

func (c *checks) idsPages() {
	c.same("pages", c.pages(readingList+"&n=2", nil), c.items())
	c.same("pages, oldest first", c.pages(readingList+"&n=3&r=o", nil), reversed(c.items()))
	for _, order := range []string{"", "&r=o"} {
		want := c.stream(state+"reading-list", state+"read")
		if order != "" {
			slices.Reverse(want)
		}
		if len(want) < 6 {
			c.t.Fatal("too few are unread")
		}
		var marked []int64
		got := c.pages(readingList+unreadOnly+"&n=2"+order, func(page []item) {
			ids := c.idsOf(page...)
			f := url.Values{"a": {state + "read"}}
			for _, id := range ids {
				f.Add("i", long(id))
			}
			c.edit(edit, f.Encode())
			marked = append(marked, ids...)
		})
		c.same("pages while entries are marked"+order, got, want)
		f := url.Values{"r": {state + "read"}}
		for _, id := range marked {
			f.Add("i", short(id))
		}
		c.edit(edit, f.Encode())
	}
}

func (c *checks) idsLastPage() {
	n := len(c.items())
	c.whole(fmt.Sprintf("%s&n=%d", readingList, n), c.items())
	got, next := c.ids(fmt.Sprintf("%s&n=%d", readingList, n-1))
	if c.same("all but one", got, c.items()[:n-1]); next == "" {
		c.t.Error("no continuation")
	}
	c.whole(fmt.Sprintf("%s&n=1&c=%s", readingList, url.QueryEscape(next)), c.items()[n-1:])
}

func (c *checks) idsOldestFirst() {
	c.whole(readingList+"&n=1000&r=o", reversed(c.items()))
	for _, r := range []string{"n", "d"} {
		c.whole(readingList+"&n=1000&r="+r, c.items())
	}
	s := "feed/" + c.feed(alpha).hash
	c.whole("s="+s+"&n=1000&r=o", reversed(c.stream(s)))
}

func (c *checks) idsInclude() {
	c.whole(readingList+"&n=1000&it="+state+"read", c.stream(state+"read"))
	both := slices.DeleteFunc(c.stream(state+"starred"), func(i item) bool { return !i.read })
	c.whole("s="+state+"starred&n=1000&it="+state+"read", both)
}

func (c *checks) idsEscapes() {
	for _, s := range []string{state + "starred", "feed/" + alphaID, "user/-/label/News"} {
		f := s
		if s == "feed/"+alphaID {
			f = "feed/" + c.feed(alpha).hash
		}
		for _, spelled := range []string{s, url.QueryEscape(s), strings.ToLower(url.QueryEscape(s)), url.PathEscape(s)} {
			c.whole("n=1000&s="+spelled, c.stream(f))
		}
	}
	c.whole("n=1000&s=user/-/label/"+strings.ReplaceAll(url.QueryEscape(deep), "+", "%20"), c.stream("user/-/label/"+deep))
}

func (c *checks) idsEmpty() {
	for _, s := range []string{"feed/" + c.feed(delta).hash, "user/-/label/Empty", state + "broadcast", state + "like"} {
		if a := c.get(idsPath + "n=1000&s=" + s); a.status != http.StatusOK || !emptyList.MatchString(a.body) || strings.Contains(a.body, "continuation") {
			c.t.Errorf("%s; want an empty list", a)
		}
	}
}

// Contents.

type contentsAnswer struct {
	ID           *string
	Updated      *int64
	Direction    *string
	Title        *string
	Continuation *string
	Items        []itemAnswer
}

type itemAnswer struct {
	ID, Title, Author            *string
	Published, Updated           *int64
	CrawlTimeMsec, TimestampUsec *string
	Canonical, Alternate         []struct{ Href, Type *string }
	Enclosure                    []struct {
		Href, Type *string
		Length     json.RawMessage
	}
	Categories       []string
	Origin           *struct{ StreamID, Title, HTMLURL *string }
	Summary, Content *struct {
		Direction *string
		Content   *string
	}
}

func (i itemAnswer) html() string {
	if i.Content != nil && i.Content.Content != nil {
		return *i.Content.Content
	}
	if i.Summary != nil && i.Summary.Content != nil {
		return *i.Summary.Content
	}
	return ""
}

// entriesOf returns the entries of an answer.
func (c *checks) entriesOf(a contentsAnswer) (all []item) {
	c.t.Helper()
	find := c.finder()
	for _, got := range a.Items {
		hex, ok := strings.CutPrefix(*got.ID, "tag:google.com,2005:reader/item/")
		n, err := strconv.ParseInt(hex, 16, 64)
		if !ok || err != nil || len(hex) != 16 || hex != strings.ToLower(hex) {
			c.t.Fatalf("the id %q is not long", *got.ID)
		}
		i, _ := find(short(n))
		all = append(all, i)
	}
	return all
}

func (c *checks) contentsIDs() {
	want := newest(c.items(), 6)
	ids := c.idsOf(want...)
	ask := func(target string, f url.Values) []item {
		c.t.Helper()
		var got contentsAnswer
		decode(c.t, c.post(target, f.Encode()), &got)
		return c.entriesOf(got)
	}
	for name, spell := range map[string]func(int64) string{"decimal": short, "long": long, "unpadded": unpadded, "bare": bare, "upper case": func(id int64) string { return strings.ToUpper(bare(id)) }} {
		f := url.Values{}
		for _, id := range ids {
			f.Add("i", spell(id))
		}
		c.same(name, ask(contents, f), want)
		c.same(name+", in the query", ask(contents+"&"+f.Encode(), url.Values{}), want)
	}
	mixed := url.Values{"i": {short(ids[0]), long(ids[1]), bare(ids[2]), unpadded(ids[3]), long(ids[0]), "1234567", long(77), "0", "-5", "feed/x", "", short(ids[4])}, "output": {"json"}}
	got := ask(api+"stream/items/contents", mixed)
	for n := range 5 {
		if k := slices.IndexFunc(got, func(i item) bool { return i.unique == want[n].unique }); k < 0 {
			c.t.Errorf("%q is missing of %q", want[n].title, titles(got))
		}
	}
	if len(got) < 5 || len(got) > 6 {
		c.t.Errorf("got %q", titles(got))
	}
	many := url.Values{}
	for n := range 1500 {
		many.Add("i", long(ids[0]+int64(n)*256))
	}
	many.Add("i", long(ids[1]))
	if got := ask(contents, many); len(got) != 2 {
		c.t.Errorf("of 1,500 ids, mostly unknown, %d, want 2", len(got))
	}
	if got := ask(contents, url.Values{"i": {"1"}}); len(got) != 0 {
		c.t.Errorf("an unknown id has %q", titles(got))
	}
}

func (c *checks) contentsFields() {
	f := url.Values{}
	for _, id := range c.idsOf(c.items()...) {
		f.Add("i", long(id))
	}
	var got contentsAnswer
	a := c.post(contents, f.Encode())
	decode(c.t, a, &got)
	if got.ID == nil || got.Updated == nil {
		c.t.Error("no id or no updated")
	}
	known := c.subscribed()
	want := c.items()
	c.same("contents", c.entriesOf(got), want)
	for n, i := range c.entriesOf(got) {
		c.fields(got.Items[n], i, known)
	}
	if strings.Contains(a.body, "evil") || strings.Contains(a.body, "onclick") || strings.Contains(a.body, "javascript:") {
		c.t.Error("the content is not sanitised")
	}
}

// fields compares an item with its entry.
func (c *checks) fields(got itemAnswer, want item, known map[string]subscription) {
	c.t.Helper()
	bad := func(format string, args ...any) {
		c.t.Helper()
		c.t.Errorf("%q: %s", want.title, fmt.Sprintf(format, args...))
	}
	if got.Title == nil || got.Published == nil || got.Updated == nil || got.CrawlTimeMsec == nil || got.TimestampUsec == nil || got.Origin == nil || got.Summary == nil && got.Content == nil {
		bad("a field is missing: %+v", got)
		return
	}
	if t := *got.Title; t != want.title && html.UnescapeString(t) != want.title && (want.title != "" || t != "Plain < text & no tags") {
		bad("the title is %q", t)
	}
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(want.path, name))
		if err != nil && !os.IsNotExist(err) {
			c.t.Fatal(err)
		}
		return strings.TrimSuffix(string(b), "\n")
	}
	published, err := time.Parse(time.RFC3339, text("pubdate"))
	if err != nil || *got.Published != published.Unix() {
		bad("published %d, want %s", *got.Published, text("pubdate"))
	}
	if msec, _ := strconv.ParseInt(*got.CrawlTimeMsec, 10, 64); msec/1000 != want.seconds {
		bad("crawlTimeMsec %s, want %d s", *got.CrawlTimeMsec, want.seconds)
	}
	if usec, _ := strconv.ParseInt(*got.TimestampUsec, 10, 64); usec/1_000_000 != want.seconds {
		bad("timestampUsec %s, want %d s", *got.TimestampUsec, want.seconds)
	}
	page := text("id")
	if _, link, ok := strings.Cut(text("extras"), "link\t"); ok {
		page, _, _ = strings.Cut(link, "\n")
	}
	if len(got.Canonical) == 0 || *got.Canonical[0].Href != page {
		bad("canonical %+v, want %s", got.Canonical, page)
	}
	if len(got.Alternate) == 0 || *got.Alternate[0].Href != page || got.Alternate[0].Type == nil || *got.Alternate[0].Type != "text/html" {
		bad("alternate %+v, want %s", got.Alternate, page)
	}
	if s, ok := known[*got.Origin.StreamID]; !ok || *s.ID != "feed/"+want.feed || got.Origin.Title == nil || got.Origin.HTMLURL == nil {
		bad("origin %+v", got.Origin)
	}
	if strings.Contains(text("extras"), "enclosure") && (len(got.Enclosure) != 1 || *got.Enclosure[0].Href != "http://c.example/a.mp3" || *got.Enclosure[0].Type != "audio/mpeg") {
		bad("enclosure %+v", got.Enclosure)
	}
	if text("author") != "" && (got.Author == nil || !strings.Contains(*got.Author, "Ann Author")) {
		bad("author %v", got.Author)
	}
	if text("type") == "" && !strings.Contains(got.html(), "Plain &lt; text &amp; no tags") {
		bad("plain text as HTML is %q", got.html())
	}
	if strings.Contains(text("content"), "<p>Content <b>") && !strings.Contains(got.html(), text("content")) {
		bad("content %q, want %q", got.html(), text("content"))
	}
	c.categories(got.Categories, want, bad)
}

func (c *checks) categories(got []string, want item, bad func(string, ...any)) {
	c.t.Helper()
	tags := map[string]bool{state + "reading-list": true, state + "read": want.read, state + "starred": want.starred()}
	for _, label := range c.shown(want.feed) {
		tags["user/-/label/"+label] = true
	}
	tags["user/-/label/flag-q"] = strings.Contains(want.flags, "q")
	for tag, is := range tags {
		if slices.Contains(got, tag) != is {
			bad("categories %q, %s is to be there: %v", got, tag, is)
		}
	}
}

func (c *checks) streamContents() {
	read := func(target string) ([]item, contentsAnswer) {
		c.t.Helper()
		var got contentsAnswer
		a := c.get(target)
		decode(c.t, a, &got)
		if got.Items == nil || got.ID == nil || got.Updated == nil {
			c.t.Errorf("%s; want id, updated and items", a)
		}
		return c.entriesOf(got), got
	}
	const path = api + "stream/contents"
	for spelled, want := range map[string][]item{
		"?n=1000": c.items(), "": newest(c.items(), 20), "?output=json&n=1000&s=" + state + "starred": c.stream(state + "starred"),
		"/user/-/state/com.google/reading-list?n=1000": c.items(), "/user%2F-%2Fstate%2Fcom.google%2Fstarred?n=1000": c.stream(state + "starred"),
		"/user/-/label/News?n=1000": c.stream("user/-/label/News"), "/user%2F-%2Flabel%2F" + url.PathEscape(deep) + "?n=1000": c.stream("user/-/label/" + deep),
		"?n=1000&xt=" + state + "read": c.stream(state+"reading-list", state+"read"), "?n=1000&r=o": reversed(c.items()),
		"?n=1000&ot=" + fmt.Sprint(c.items()[3].seconds):                 slices.DeleteFunc(c.items(), func(i item) bool { return i.seconds < c.items()[3].seconds }),
		"?client=x&comments=false&likes=false&n=1000&ck=1&mediaRss=true": c.items(),
	} {
		got, _ := read(path + spelled)
		c.same(spelled, got, want)
	}
	for _, name := range []string{alpha, beta} {
		f := c.feed(name)
		for _, spelled := range []string{"/feed/" + f.hash, "/feed%2F" + f.hash, "/feed/" + url.QueryEscape(f.id), "/feed%2F" + url.QueryEscape(f.id), "?s=feed/" + url.QueryEscape(f.id)} {
			sign := "?"
			if strings.HasPrefix(spelled, "?") {
				sign = "&"
			}
			got, _ := read(path + spelled + sign + "n=1000")
			c.same(spelled, got, c.stream("feed/"+f.hash))
		}
	}
	// The URL of a feed as it is, and as a proxy merges its slashes.
	for _, spelled := range []string{alphaID, strings.Replace(alphaID, "//", "/", 1)} {
		got, _ := read(path + "/feed/" + spelled + "?n=1000")
		c.same(spelled, got, c.stream("feed/"+c.feed(alpha).hash))
	}
	var all []item
	more := ""
	for range 1000 {
		page, got := read(path + "?output=json&n=7" + more)
		if all = append(all, page...); got.Continuation == nil {
			break
		}
		more = "&c=" + url.QueryEscape(*got.Continuation)
	}
	c.same("pages of contents", all, c.items())
}

type atomFeed struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	Title   string   `xml:"http://www.w3.org/2005/Atom title"`
	Updated string   `xml:"http://www.w3.org/2005/Atom updated"`
	ID      string   `xml:"http://www.w3.org/2005/Atom id"`
	Entry   []struct {
		ID        string  `xml:"http://www.w3.org/2005/Atom id"`
		Title     string  `xml:"http://www.w3.org/2005/Atom title"`
		Published string  `xml:"http://www.w3.org/2005/Atom published"`
		Updated   string  `xml:"http://www.w3.org/2005/Atom updated"`
		Content   xmlText `xml:"http://www.w3.org/2005/Atom content"`
		Summary   xmlText `xml:"http://www.w3.org/2005/Atom summary"`
		Link      []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
			Type string `xml:"type,attr"`
		} `xml:"http://www.w3.org/2005/Atom link"`
		Category []struct {
			Scheme string `xml:"scheme,attr"`
			Label  string `xml:"label,attr"`
			Term   string `xml:"term,attr"`
		} `xml:"http://www.w3.org/2005/Atom category"`
	} `xml:"http://www.w3.org/2005/Atom entry"`
}

type xmlText struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

func (c *checks) atom() {
	f := c.feed(alpha)
	for _, path := range []string{"/reader/atom/feed%2F" + f.hash, "/reader/atom/feed/" + f.hash, "//reader/atom/feed%2F" + f.hash, "/reader/atom/feed/" + alphaID, "/reader/atom/feed%2F" + url.QueryEscape(alphaID)} {
		a := c.get(path + "?n=20")
		var got atomFeed
		if err := xml.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
			c.t.Errorf("%s\n%v", a, err)
			continue
		}
		if kind := a.header.Get("Content-Type"); !strings.Contains(kind, "xml") {
			c.t.Errorf("the type is %q", kind)
		}
		if got.Title == "" || got.Updated == "" || got.ID == "" {
			c.t.Errorf("%s; want title, id and updated", a)
		}
		var all []item
		find := c.finder()
		for _, e := range got.Entry {
			n, err := strconv.ParseInt(strings.TrimPrefix(e.ID, "tag:google.com,2005:reader/item/"), 16, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			i, _ := find(short(n))
			all = append(all, i)
			labels := map[string]bool{}
			for _, k := range e.Category {
				if k.Scheme == "http://www.google.com/reader/" {
					labels[k.Label] = true
				}
			}
			if labels["read"] != i.read || labels["kept-unread"] == i.read || labels["starred"] != i.starred() {
				c.t.Errorf("%q, read %v, starred %v, has the labels %v", i.title, i.read, i.starred(), labels)
			}
			if len(e.Link) == 0 || e.Published == "" || e.Updated == "" || e.Content.Type != "html" && e.Summary.Type != "html" {
				c.t.Errorf("an entry lacks a field: %+v", e)
			}
		}
		c.same(path, all, newest(c.stream("feed/"+f.hash), 20))
	}
	for stream, want := range map[string][]item{state + "starred": c.stream(state + "starred"), "user/-/label/News": c.stream("user/-/label/News")} {
		var got atomFeed
		a := c.get("/reader/atom/" + stream + "?n=1000")
		if err := xml.Unmarshal([]byte(a.body), &got); err != nil || len(got.Entry) != len(want) {
			c.t.Errorf("%s: %d entries, want %d (%v)", stream, len(got.Entry), len(want), err)
		}
	}
}
