package hub

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/content"
)

// The page does not show queries of feeds, hosts of subscribers, callers or user names. The
// log, which only the user reads, has the hosts.
func TestAttackPageHidesPrivateData(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Users = htpasswd(t, "bull:secret", "cow:secret") })
	feed := w.feed("/feed", "one")
	feed += "?token=t0ken"
	w.register("/cb", feed)
	w.subscribe("subscribe", w.site.URL+"/websub", feed)
	w.register("/other", w.feed("/plain", "one"))
	port := newSiteAt(t, "127.0.0.5", w.site)
	for _, protocol := range []string{"http-post", "xml-rpc"} {
		w.form("/pleaseNotify", "port", port, "path", "/fail", "protocol", protocol, "domain", "127.0.0.5", "url1", feed)
	}
	w.answer("/cb", http.NotFound)
	w.feed("/feed", "two")
	w.feed("/plain", "two")
	w.ping(feed)
	w.ping(w.site.URL + "/plain")
	w.ping("http://127.0.0.6:1/x?token=t0ken")
	const document = "<rss><channel/></rss>"
	w.rpc("rssCloud.saveRss", "bull", "secret", document)
	w.register("/own", w.server.URL+"/feeds/bull/rss.xml")
	w.rpc("rssCloud.saveRss", "bull", "secret", document+" ")
	w.rpc("rssCloud.saveRss", "cow", "wrong", document)
	w.rpc("rssCloud.saveRss", "ghost", "wrong", document)
	w.settle()
	page := w.do("GET", "/", "", "").body
	for _, want := range []string{w.site.URL + "/feed?…", `href="` + w.site.URL + `/plain"`, "updated: 3 subscribers", "Subscriptions: 5", w.server.URL + "/feeds/…"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	for _, secret := range []string{"t0ken", "bull", "cow", "ghost", "127.0.0.5", "127.0.0.1:" + w.port() + " by", "saveRss", "X-"} {
		if strings.Contains(page, secret) {
			t.Errorf("the page has %s:\n%s", secret, page)
		}
	}
	log, err := os.ReadFile(filepath.Join(w.opts.State, "log"))
	if err != nil || !strings.Contains(string(log), "by http-post") || !strings.Contains(string(log), "token=t0ken") {
		t.Errorf("%s, %v", log, err)
	}
	if strings.Contains(string(log), "as cow") || strings.Contains(string(log), "ghost") {
		t.Errorf("the log has names of users:\n%s", log)
	}
}

// With --no-page there is no page, and nothing else changes.
func TestNoPage(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.NoPage = true })
	feed := w.feed("/feed", "one")
	for path, want := range map[string]int{"/": 404, "/ping": 405, "/websub": 405} {
		if r := w.do("GET", path, "", ""); r.status != want || strings.Contains(r.body, "form") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	for _, path := range []string{"/ping", "/ping?page"} {
		if r := w.form(path, "url", feed); r.status != 200 || !strings.Contains(r.body, `<result success="true"`) {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

// Requests from the forms of the page are answered by a page; others get XML or JSON.
func TestAnswerToAForm(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	page := w.do("GET", "/", "", "").body
	for _, action := range []string{`action="/ping?page"`, `action="/pleaseNotify?page"`} {
		if !strings.Contains(page, action) {
			t.Errorf("the page lacks %s", action)
		}
	}
	if !strings.Contains(page, content.StyleSheet) {
		t.Error("the page lacks the style sheet of the site")
	}
	// Each input has a label.
	for _, input := range strings.Split(page, "<input ")[1:] {
		id, _, _ := strings.Cut(strings.TrimPrefix(input, `id="`), `"`)
		if !strings.Contains(page, `<label for="`+id+`">`) {
			t.Errorf("%s has no label", id)
		}
	}
	register := []string{"port", w.port(), "path", "/cb", "protocol", "http-post", "domain", "127.0.0.1", "url1"}
	for i, tc := range []struct {
		path  string
		pairs []string
		want  string
	}{
		{"/pleaseNotify", append(register, feed), "It worked"},
		{"/pleaseNotify", append(register, `javascript:"<script>alert(1)</script>`), "It failed"},
		{"/ping", []string{"url", feed}, "It worked"},
		{"/ping", []string{"url", ""}, "It failed"},
	} {
		r := w.do("POST", tc.path+"?page", formType, encode(tc.pairs...), "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
		if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || !strings.Contains(r.body, "<h1>"+tc.want) || strings.Contains(r.body, "<script") || strings.Contains(r.body, "<?xml") {
			t.Errorf("%d: %+v", i, r)
		}
		// A program that sends the same Accept as a browser gets XML.
		r = w.do("POST", tc.path, formType, encode(tc.pairs...), "Accept", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2")
		if !strings.HasPrefix(r.header.Get("Content-Type"), "text/xml") || !strings.Contains(r.body, fmt.Sprintf(`success="%v"`, tc.want == "It worked")) {
			t.Errorf("%d: %+v", i, r)
		}
	}
}
