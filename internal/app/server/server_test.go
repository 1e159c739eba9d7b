package server

import (
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestLogin(t *testing.T) {
	f := newFixture(t)
	const good = "Email=ann&Passwd=p%2Bw+%26%C3%A4&source=newsboat0.000000&service=reader&accountType=HOSTED_OR_GOOGLE"
	const text = "SID=good\nLSID=good\nAuth=good\n"
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/accounts/ClientLogin", good, 200, text},
		{"POST", "//accounts/ClientLogin", good, 200, text},
		{"POST", "/api/greader.php/accounts/ClientLogin", good, 200, text},
		{"POST", "/reader/api/0/accounts/ClientLogin", good, 200, text},
		{"POST", "/accounts/ClientLogin", good + "\r\n", 200, text},
		{"GET", "/accounts/ClientLogin?" + good, "", 200, text},
		{"POST", "/accounts/ClientLogin", good + "&output=json", 200, `{"SID":"good","LSID":"good","Auth":"good"}`},
		{"POST", "/accounts/ClientLogin", multipart("Email", "ann", "Passwd", "p+w &ä"), 200, text},
		{"POST", "/accounts/ClientLogin?Email=bob&Passwd=wrong", multipart("Email", "ann", "Passwd", "p+w &ä"), 200, text},
		{"POST", "/accounts/ClientLogin", multipart("Email", "ann", "Passwd", "p%2Bw"), 401, "Error=BadAuthentication\n"},
		{"POST", "/accounts/ClientLogin", strings.TrimSuffix(multipart("Email", "ann"), "--\r\n"), 400, "the form is malformed or incomplete\n"},
		{"POST", "/accounts/ClientLogin?" + good, "", 200, text}, // Capy
		{"POST", "/accounts/ClientLogin", "Email=ann&Passwd=wrong", 401, "Error=BadAuthentication\n"},
		{"POST", "/accounts/ClientLogin", "%zz;=", 401, "Error=BadAuthentication\n"},
		{"POST", "/accounts/ClientLogin", "Passwd=often", 429, "Error=TooManyAttempts\n"},
		{"POST", "/accounts/ClientLogin", strings.Repeat("x", maxAnonymous+1), 413, "the request is too large\n"},
	} {
		header := []string{"Authorization", ""}
		if strings.HasPrefix(tc.body, "--") {
			header = append(header, "Content-Type", multipartType)
		}
		r := f.do(tc.method, tc.path, tc.body, header...)
		if got := f.text(r, tc.status); got != tc.want {
			t.Errorf("%s %s %.60s: got %q, want %q", tc.method, tc.path, tc.body, got, tc.want)
		}
		if tc.status == 429 && r.Header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After: %q", r.Header.Get("Retry-After"))
		}
	}
	if f.log.Len() > 0 {
		t.Errorf("logged: %s", &f.log)
	}
}

// FreshRSS's question whether a proxy lets the header through.
func TestCompatibility(t *testing.T) {
	f := newFixture(t)
	for header, want := range map[string]string{"GoogleLogin auth=anything": "PASS", "": "FAIL: the header Authorization did not arrive; send one, or look at the proxy"} {
		if got := f.text(f.do("GET", "/api/greader.php/check/compatibility", "", "Authorization", header), 200); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	f := newFixture(t)
	id := f.add(feedA, 100, "-").Short()
	const bad = "X-Reader-Google-Bad-Token"
	for _, tc := range []struct {
		method, path, body, header string
		status                     int
		bad                        string
	}{
		{"GET", api + "user-info", "", "GoogleLogin auth=good", 200, ""},
		{"GET", api + "user-info", "", "googlelogin  AUTH=good", 200, ""},
		{"GET", api + "user-info", "", "", 401, ""},
		{"GET", api + "user-info?T=good", "", "", 401, ""},
		{"GET", api + "user-info", "", "GoogleLogin auth=", 401, ""},
		{"GET", api + "user-info", "", "GoogleLogin auth=x", 401, ""},
		{"GET", api + "user-info", "", "Bearer good", 401, ""},
		{"GET", "/reader/atom/feed%2F1", "", "", 401, ""},
		{"POST", api + "stream/items/contents", "i=" + id + "&T=good", "", 200, ""}, // Liferea
		{"POST", api + "stream/items/contents", "i=" + id + "&T=good\n", "", 200, ""},
		{"POST", api + "stream/items/contents", "i=" + id + "&T=x", "", 401, ""},
		{"POST", api + "stream/items/contents", "i=" + id, "", 401, ""},
		{"POST", api + "edit-tag", "i=" + id, "GoogleLogin auth=good", 200, ""},
		{"POST", api + "edit-tag", "i=" + id + "&T=", "GoogleLogin auth=good", 200, ""},
		{"POST", api + "edit-tag", "i=" + id + "&T=x", "GoogleLogin auth=good", 200, ""},
		{"POST", api + "edit-tag", "T=good\n&i=" + id, "GoogleLogin auth=good", 200, ""},
		{"POST", api + "edit-tag", "T=second&i=" + id, "GoogleLogin auth=good", 200, ""},
		{"POST", api + "edit-tag", "T=other&i=" + id, "GoogleLogin auth=good", 401, "true"},
		{"POST", api + "edit-tag", "T=wrong&i=" + id, "GoogleLogin auth=good", 401, "true"},
	} {
		r := f.do(tc.method, tc.path, tc.body, "Authorization", tc.header)
		if got := f.text(r, tc.status); r.Header.Get(bad) != tc.bad {
			t.Errorf("%s %s %q: %s %q, %s", tc.method, tc.path, tc.body, bad, r.Header.Get(bad), got)
		}
	}
	if got := f.get("token"); got != "good" {
		t.Errorf("token: %q", got)
	}
}

func TestRoutes(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.BasePath = "/greader/"; o.Verbose = true })
	for _, tc := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/greader/", 200}, {"HEAD", "/greader/", 200}, {"GET", "/", 404}, {"GET", "/greader/favicon.ico", 404},
		{"GET", "/greader" + api + "user-info", 200}, {"HEAD", "/greader" + api + "user-info", 200},
		{"GET", "//greader//api/greader.php" + api + "user-info", 200},
		{"GET", "/greader" + api + "user-info?output=xml", 200},
		{"GET", "/greader" + api + "edit-tag", 405}, {"DELETE", "/greader" + api + "user-info", 405}, {"OPTIONS", "/greader" + api + "edit-tag", 204},
		{"GET", "/greader" + api + "../../../etc/passwd", 404}, {"GET", "/greader/%2e%2e/etc/passwd", 404},
		{"GET", "/greader" + api + "preference/list", 200}, {"GET", "/greader" + api + "preference/stream/list", 200}, {"GET", "/greader" + api + "friend/list", 200},
	} {
		f.text(f.do(tc.method, tc.path, ""), tc.status)
	}
	for _, want := range []string{"GET /: answered", "GET reader/api/0/user-info: answered", "GET reader/api/0/edit-tag: 405", "GET an unknown path: 404"} {
		if !strings.Contains(f.log.String(), want) {
			t.Errorf("no %q in\n%s", want, &f.log)
		}
	}
	if strings.Contains(f.log.String(), "ann") {
		t.Errorf("a user is named in\n%s", &f.log)
	}
}

// ids returns the seconds of the items that stream/items/ids lists, and the continuation.
func (f *fixture) ids(query string) (seconds []int64, next string) {
	f.t.Helper()
	var answer struct {
		ItemRefs     []map[string]string
		Continuation *string
	}
	body := f.get("stream/items/ids?" + query)
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.ItemRefs == nil {
		f.t.Fatalf("%s: %s: %v", query, body, err)
	}
	for _, r := range answer.ItemRefs {
		id, ok := greader.ParseID(r["id"])
		if !ok || len(r) != 1 { // Readrops fails on a second field
			f.t.Errorf("item %v", r)
		}
		seconds = append(seconds, int64(id/4_000_000))
	}
	if answer.Continuation != nil {
		if next = *answer.Continuation; next == "" {
			f.t.Errorf("%s: the continuation is empty", query)
		}
	}
	return seconds, next
}

func TestIDs(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-")
	f.add(feedA, 200, "S")
	f.add(feedA, 300, "FSx")
	f.add(feedB, 150, "")
	f.add(feedB, 250, "F")
	f.add(feedB, 400, "ST")
	f.feed("http://gone.example/", "Gone", "etc/fetch/seen=", "etc/view/left=")
	f.add("http://gone.example/", 500, "-")
	f.feed("http://foreign.example/", "Another fetcher's")
	f.add("http://foreign.example/", 350, "S")
	const xt = "&xt=user/-/state/com.google/read"
	for _, tc := range []struct {
		query string
		want  []int64
	}{
		{"", []int64{350, 300, 250, 200, 150, 100}},
		{"s=user/-/state/com.google/reading-list&r=o", []int64{100, 150, 200, 250, 300, 350}},
		{"s=user%2F7%2Fstate%2Fcom.google%2Freading-list" + xt, []int64{250, 150, 100}},
		{"it=user/-/state/com.google/read", []int64{350, 300, 200}},
		{"s=user/-/state/com.google/read", []int64{350, 300, 200}},
		{"s=user/-/state/com.google/unread", []int64{250, 150, 100}},
		{"s=user/-/state/com.google/starred", []int64{300, 250}},
		{"s=user/-/state/com.google/broadcast", nil},
		{"s=feed/" + f.a, []int64{300, 200, 100}},
		{"s=feed/" + feedA + xt, []int64{100}},
		{"s=feed/https%3A%2F%2Fb.example%2Ffeed%3Fx%3D1", []int64{250, 150}},
		{"s=feed/unknown", nil},
		{"s=user/-/label/news", []int64{300, 250, 200, 150, 100}},
		{"s=user/-/label/a/b" + xt, []int64{250, 150}},
		{"s=user/-/label/a", nil},
		{"s=user/-/label/flag-x", []int64{300}},
		{"s=user/-/label/unknown", nil},
		{"ot=200&nt=300", []int64{300, 250, 200}},
		{"ot=&nt=", []int64{350, 300, 250, 200, 150, 100}},
		{"xt=user/-/label/a/b&xt=user/-/state/com.google/starred", []int64{350, 200, 100}},
		{"n=200000" + xt, []int64{250, 150, 100}},
	} {
		if got, next := f.ids(tc.query); !slices.Equal(got, tc.want) || next != "" {
			t.Errorf("%s: got %v %s, want %v", tc.query, got, next, tc.want)
		}
	}
	for _, bad := range []string{"s=x", "c=x", "s=../../etc"} {
		f.text(f.do("GET", api+"stream/items/ids?"+bad, ""), 400)
	}
}

// An entry whose name has no time has its place by the time of its directory.
func TestNameWithoutTime(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "-", "title=first")
	f.add(feedA, 200, "-", "title=second")
	path, err := f.Entry(feedA, "new", "notime", "title=third")
	if err == nil {
		err = os.Chtimes(path, time.Time{}, time.Unix(300, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	items := f.contents(f.get("stream/contents?n=2"))
	if len(items) != 2 || items[0].Title != "third" || items[1].Title != "second" {
		t.Errorf("got %+v", items)
	}
	if got := f.get("unread-count"); !strings.Contains(got, `"newestItemTimestampUsec":"300000000"`) {
		t.Error(got)
	}
}

// Pages neither repeat nor lack an item, while items are marked between them and new ones come.
func TestPages(t *testing.T) {
	for _, order := range []string{"n", "o"} {
		f := newFixture(t)
		want := []int64{}
		for i := range int64(9) {
			f.add(feedA, 100+i, "-")
			want = append(want, 100+i)
		}
		if order == "n" {
			slices.Reverse(want)
		}
		var got []int64
		next := ""
		for page := 0; ; page++ {
			seconds, c := f.ids("n=2&r=" + order + "&xt=user/-/state/com.google/read&c=" + next)
			got = append(got, seconds...)
			if next = c; next == "" {
				break
			}
			f.post("edit-tag", "i", greader.FirstOf(seconds[0]).Short(), "a", "user/-/state/com.google/read") // unknown
			for _, s := range seconds {
				f.post("edit-tag", "i", idOf(testdir.Unique(s, int(s))).Long(), "a", "user/-/state/com.google/read")
			}
			if order == "n" {
				f.add(feedB, 500+int64(page), "-")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("r=%s: got %v, want %v", order, got, want)
		}
	}
}

// contents returns the items of an answer.
func (f *fixture) contents(body string) (items []greader.Item) {
	f.t.Helper()
	var answer struct {
		ID      string
		Updated int64
		Items   []greader.Item
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Items == nil || answer.ID == "" || answer.Updated == 0 {
		f.t.Fatalf("%s: %v", body, err)
	}
	return answer.Items
}

func TestContents(t *testing.T) {
	f := newFixture(t)
	id := f.add(feedA, 100, "FSx", "title=One & <two>", "id=http://a.example/1", "author=Ann", "type=text/html", "pubdate=2026-03-15T10:00:00Z",
		`content=<p onclick="x()">Text <a href="/rel">rel</a><script>x</script></p>`, "+link=http://user:secret@a.example/page", "+enclosure=http://a.example/1.mp3\taudio/mpeg\t5")
	plain := f.add(feedB, 200, "-", "title=", "content=Only a < text\nof two lines")
	trashed := f.add(feedB, 300, "T")
	unknown := greader.FirstOf(7) + 1
	hex := strings.TrimPrefix(id.Long(), "tag:google.com,2005:reader/item/")
	for _, form := range []string{id.Short(), id.Long(), hex, "tag:google.com,2005:reader/item/" + strings.TrimLeft(hex, "0")} {
		for _, r := range []*http.Response{
			f.do("POST", api+"stream/items/contents?output=json", values("i", form, "i", unknown.Short(), "i", "x", "i", "-5", "i", id.Long(), "i", trashed.Short())),
			f.do("POST", api+"stream/items/contents?"+values("i", form), ""),
			f.do("GET", api+"stream/items/contents?"+values("i", form), ""),
		} {
			items := f.contents(f.text(r, 200))
			if len(items) != 1 || items[0].ID != id.Long() {
				t.Errorf("%s: got %+v", form, items)
			}
		}
	}
	items := f.contents(f.get("stream/contents/feed/" + f.a + "?output=json&client=x&ck=1"))
	want := greader.Item{
		ID: id.Long(), CrawlTimeMsec: "100000", TimestampUsec: "100000001", Published: 1773568800, Updated: 1773568800, Title: "One & <two>", Author: "Ann",
		Canonical: []greader.Link{{Href: "http://a.example/page"}}, Alternate: []greader.Link{{Href: "http://a.example/page", Type: "text/html"}},
		Enclosure:  []greader.Link{{Href: "http://a.example/1.mp3", Type: "audio/mpeg", Length: 5}},
		Categories: []string{"user/-/state/com.google/reading-list", "user/-/state/com.google/read", "user/-/state/com.google/starred", "user/-/label/News", "user/-/label/flag-x"},
		Origin:     greader.Origin{StreamID: "feed/" + f.a, Title: "Alpha", HTMLURL: "http://a.example/home"},
		Summary:    greader.Text{Content: `<p>Text <a href="http://a.example/rel" rel="noopener noreferrer">rel</a></p>` + "\n"},
	}
	if len(items) != 1 || fmt.Sprintf("%+v", items[0]) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", items, want)
	}
	items = f.contents(f.get("stream/contents?n=1"))
	if len(items) != 1 || items[0].ID != plain.Long() || items[0].Title == "" || items[0].Canonical[0].Href == "" || !strings.Contains(items[0].Summary.Content, "a &lt; text") {
		t.Errorf("got %+v", items)
	}
	for _, path := range []string{"/feed%2Fhttp%3A%2F%2Fa.example%2F", "/feed/http://a.example/", "/feed/http:/a.example/", "?s=feed/http://a.example/", "/user/-/state/com.google/starred", "?it=user/-/label/flag-x"} {
		if items := f.contents(f.get("stream/contents" + path)); len(items) != 1 || items[0].ID != id.Long() {
			t.Errorf("%s: got %+v", path, items)
		}
	}
	if body := f.get("stream/contents?n=1&output=xml"); xml.Unmarshal([]byte(body), new(struct{})) != nil || !strings.Contains(body, `<string name="streamId">`) {
		t.Errorf("got %s", body)
	}
	// Characters that a terminal acts on are not in titles.
	f.add(feedA, 400, "-", "title=evil \u202e\u009b title", "type=text/html", "content=<p>\u202e</p>")
	for _, path := range []string{api + "stream/contents?n=1", api + "stream/contents?n=1&output=xml", "/reader/atom/feed%2F" + f.a + "?n=1"} {
		if body := f.text(f.do("GET", path, ""), 200); strings.ContainsAny(body, "\u202e\u009b") || !strings.Contains(body, "evil") {
			t.Errorf("%s: got %q", path, body)
		}
	}
	if items := f.contents(f.get("stream/contents?n=1")); items[0].Title != "evil  title" {
		t.Errorf("got %q", items[0].Title)
	}
	z := f.do("GET", api+"stream/contents", "", "Accept-Encoding", "br, gzip;q=0.5")
	r, err := gzip.NewReader(z.Body)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(f.contents(string(b))) != 3 {
		t.Errorf("%s, %v", b, err)
	}
	if f.do("GET", api+"stream/contents", "", "Accept-Encoding", "gzip;q=0").Header.Get("Content-Encoding") != "" {
		t.Error("compressed for a client that refuses it")
	}
}

// An answer must not look whole if an entry could not be read.
func TestUnreadable(t *testing.T) {
	f := newFixture(t)
	for i := range int64(3 * batch) {
		f.add(feedA, 100+i, "-", "content="+strings.Repeat("text ", 1000))
	}
	server := httptest.NewServer(f.server)
	defer server.Close()
	read := func(path string) (int, error) {
		r, err := http.NewRequest("GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "GoogleLogin auth=good")
		resp, err := server.Client().Do(r)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return resp.StatusCode, err
	}
	bad := func(second int64) string {
		path := filepath.Join(f.Path, "new", f.a, testdir.Unique(second, int(second)), "title")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Base(path), path); err != nil { // ELOOP, also for root
			t.Fatal(err)
		}
		return path
	}
	if status, err := read(api + "stream/contents?n=1000"); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	late := bad(100) // in the last batch of the list, newest first
	if status, err := read(api + "stream/contents?n=1000"); status != 200 || err == nil {
		t.Errorf("status %d, error %v; want 200 and an answer that ends too early", status, err)
	}
	for _, path := range []string{api + "stream/contents?n=1000&r=o", api + "stream/contents?n=10&nt=105"} {
		if status, _ := read(path); status != 500 {
			t.Errorf("%s: status %d, want 500", path, status)
		}
	}
	if status, _ := read("/reader/atom/feed%2F" + f.a + "?n=1000"); status != 500 {
		t.Errorf("status %d, want 500", status)
	}
	if err := os.Remove(late); err != nil {
		t.Fatal(err)
	}
	// Without its title the entry is malformed, and left out.
	if status, err := read(api + "stream/contents?n=1000"); status != 200 || err != nil {
		t.Error(status, err)
	}
	if !strings.Contains(f.log.String(), "too many levels") {
		t.Errorf("logged: %s", &f.log)
	}
}

func TestAtom(t *testing.T) {
	f := newFixture(t)
	id := f.add(feedA, 100, "-")
	f.add(feedA, 50, "S")
	path := "/reader/atom/feed%2F" + f.a + "?n=20"
	r := f.do("GET", path, "")
	body, tag := f.text(r, 200), r.Header.Get("ETag")
	if !strings.Contains(body, id.Long()) || strings.Count(body, `label="kept-unread"`) != 1 || strings.Count(body, `label="read"`) != 1 || tag == "" {
		t.Errorf("%s: %s", tag, body)
	}
	f.text(f.do("GET", path, "", "If-None-Match", tag), 304)
	f.post("edit-tag", "i", id.Long(), "a", "user/-/state/com.google/read", "r", "user/-/state/com.google/kept-unread", "ac", "edit")
	r = f.do("GET", path, "", "If-None-Match", tag)
	if body := f.text(r, 200); strings.Count(body, `label="read"`) != 2 {
		t.Errorf("got %s", body)
	}
	f.text(f.do("POST", api+"tag/list", "", "If-None-Match", f.do("GET", api+"tag/list", "").Header.Get("ETag")), 200)
}

// TestPodcast: the content of a podcast has its properties, chapters and a transcript that was saved.
func TestPodcast(t *testing.T) {
	f := newFixture(t)
	f.add(feedA, 100, "", "title=Owl", "content=Text", "+duration=3723", "+element=podcast:person\tWren <b>\trole=guest\thref=javascript:x", "+element=psc:chapters/psc:chapter\t\tstart=1:05\ttitle=Frost")
	items := f.contents(f.get("stream/contents/feed/" + f.a + "?output=json"))
	for _, want := range []string{"Text", "<li>Duration: 1:02:03</li>", "<li>Person: Wren &lt;b&gt;, guest</li>", "<li>1:05 Frost</li>"} {
		if len(items) != 1 || !strings.Contains(items[0].Summary.Content, want) || strings.Contains(items[0].Summary.Content, "javascript") {
			t.Errorf("no %s: %+v", want, items)
		}
	}
}
