package hub

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/protocol/rsscloud"
)

// The tests here are named after sentences of the walkthrough that bind the cloud.

// "When it receives a ping, it verifies that the feed has changed, by reading the feed
// and comparing a hash of the contents with the previous hash. If it has changed, it
// notifies the subscribers."
func TestWalkthroughItVerifiesThatTheFeedHasChanged(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	if r := w.register("/cb", feed); !strings.Contains(r.body, `<notifyResult success="true"`) {
		t.Fatal(r.body)
	}
	if w.ping(feed); len(w.notified("/cb")) != 0 {
		t.Error("notified, although the feed has not changed")
	}
	for i, document := range []string{"two", "not a feed at all", "", "two"} {
		w.feed("/feed", document)
		r := w.ping(feed)
		if got := w.notified("/cb"); len(got) != i+1 || got[i] != feed || !strings.Contains(r.body, "1 subscriber") {
			t.Errorf("%q: %v, %s", document, got, r.body)
		}
	}
	if w.ping(feed); len(w.notified("/cb")) != 4 {
		t.Error("notified twice for one change")
	}
}

// "If your feed is known by many URLs [...] you must ping for each of them."
func TestWalkthroughPingForEachURL(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/a", feed)
	w.register("/b", feed+"?x")
	w.feed("/feed", "two")
	w.ping(feed)
	if len(w.notified("/a")) != 1 || len(w.notified("/b")) != 0 {
		t.Error("a ping of one URL notifies the other's subscriber")
	}
	// URLs that differ in the case of the scheme or in a fragment name one feed.
	w.ping(strings.Replace(feed, "http://", "HTTP://", 1) + "?x#y")
	if got := w.notified("/b"); len(got) != 1 || got[0] != feed+"?x" {
		t.Errorf("%v", got)
	}
}

// "notifyProcedure (must be there, only relevant if protocol is xml-rpc or soap), port,
// path, protocol — either xml-rpc, soap or http-post"
func TestWalkthroughParameters(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	for _, tc := range []struct {
		name  string
		pairs []string
		want  string
	}{
		{"all", []string{"port", w.port(), "path", "/cb", "protocol", "http-post", "url1", feed}, ""},
		{"none", nil, "missing from the request body: port, path, protocol, url1."},
		{"no port", []string{"path", "/cb", "protocol", "http-post", "url1", feed}, "request body: port."},
		{"no path and protocol", []string{"port", "1", "url1", feed}, "request body: path, protocol."},
		{"soap", []string{"port", w.port(), "path", "/cb", "protocol", "soap", "url1", feed}, `"soap", is unsupported`},
		{"xml-rpc without a procedure", []string{"port", w.port(), "path", "/cb", "protocol", "xml-rpc", "url1", feed}, "notifyProcedure must name the procedure"},
		{"port 0", []string{"port", "0", "path", "/cb", "protocol", "http-post", "url1", feed}, "from 1 to 65535"},
		{"port 65536", []string{"port", "65536", "path", "/cb", "protocol", "http-post", "url1", feed}, "from 1 to 65535"},
		{"names in any case, and a path without a slash", []string{"PORT", w.port(), "Path", "cb", "protocol", "HTTP-POST", "URL", feed}, ""},
		{"not the URL of a feed", []string{"port", w.port(), "path", "/cb", "protocol", "http-post", "url1", "ftp://a.example/"}, "not the URL of a feed"},
		{"an invalid domain", []string{"port", w.port(), "path", "/cb", "protocol", "http-post", "url1", feed, "domain", "a.example:80/x"}, "neither a name nor an address"},
		{"a missing feed", []string{"port", w.port(), "path", "/cb", "protocol", "http-post", "url1", w.site.URL + "/feeds/none", "url2", "http://127.0.0.1:1/"}, "there was an error reading the resource at URL http"},
	} {
		w.answer("/feeds/none", http.NotFound)
		r := w.form("/pleaseNotify", tc.pairs...)
		if r.status != 200 || r.header.Get("Content-Type") != "text/xml; charset=utf-8" || !strings.HasPrefix(r.body, `<?xml version="1.0"?>`) {
			t.Errorf("%s: %+v", tc.name, r)
		}
		if success := strings.Contains(r.body, `success="true"`); success != (tc.want == "") || !strings.Contains(html.UnescapeString(r.body), tc.want) {
			t.Errorf("%s: %s", tc.name, r.body)
		}
	}
}

// "url1, url2, url3 … urlN — one or more URLs of feeds that you wish to be notified
// about"
func TestWalkthroughURLsOfOneRequest(t *testing.T) {
	w := newWorld(t, nil)
	var feeds []string
	for i := range 5 {
		feeds = append(feeds, w.feed(fmt.Sprintf("/feed%d", i), "one"))
	}
	w.answer("/missing", http.NotFound)
	r := w.form("/pleaseNotify", "port", w.port(), "path", "/cb", "protocol", "http-post", "domain", "127.0.0.1",
		"url1", feeds[0], "url2", feeds[1], "url17", feeds[2], "url", feeds[3], "urlFoo", feeds[4], "url3", w.site.URL+"/missing", "url4", feeds[0])
	if !strings.Contains(r.body, `success="true"`) || !strings.Contains(r.body, "But not for "+w.site.URL+"/missing") {
		t.Error(r.body)
	}
	for i, f := range feeds {
		w.feed(fmt.Sprintf("/feed%d", i), "two")
		w.ping(f)
	}
	if got := w.notified("/cb"); !slices.Equal(got, feeds) {
		t.Errorf("%v", got)
	}
	if n := len(w.subscriptions(w.site.URL + "/missing")); n != 0 {
		t.Errorf("%d subscriptions to the feed that cannot be read", n)
	}
}

// "domain — an optional parameter that specifies the machine that will receive
// notifications. If it is not specified, notifications are sent to the IP address the
// request came from."
func TestWalkthroughNotificationsAreSentWhereTheRequestCameFrom(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	r := w.form("/pleaseNotify", "notifyProcedure", "", "port", w.port(), "path", "/cb", "protocol", "http-post", "url1", feed)
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Callback != w.site.URL+"/cb" || list[0].Caller != "127.0.0.1" {
		t.Errorf("%+v, %s", list, r.body)
	}
}

// "It returns an XML response called notifyResult with two attributes: success is true
// or false [...] and msg which explains what happened."
func TestWalkthroughNotifyResult(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	want := `<notifyResult success="true" msg="` + thanks + `"/>`
	if r := w.register("/cb", feed); r.body != "<?xml version=\"1.0\"?>\n"+want+"\n" {
		t.Errorf("%q", r.body)
	}
	for accept, json := range map[string]bool{
		"application/json": true, "text/json": true, "APPLICATION/JSON; charset=utf-8": true, "application/json, text/xml": true, "application/json, text/plain, */*": true,
		"text/xml, application/json": false, "application/json;q=0.9, text/xml;q=0.8": true,
		"application/*": false, "*/*": false,
		"image/png": false, ",;,=": false, "": false, "text/html, application/xml;q=0.9, */*;q=0.8": false,
	} {
		r := w.do("POST", "/pleaseNotify", formType, "port=x", "Accept", accept)
		if r.status != 200 || strings.HasPrefix(r.body, `{"success":false,"msg":"`) != json || strings.HasPrefix(r.header.Get("Content-Type"), "application/json") != json {
			t.Errorf("%s: %+v", accept, r)
		}
	}
}

// "You'd call it this way: rssCloud.pleaseNotify (notifyProcedure, port, path,
// protocol, urllist)"; "It returns true if it worked, and errors if it didn't."
func TestWalkthroughPleaseNotifyByXMLRPC(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	var port int
	fmt.Sscan(w.port(), &port)
	for _, params := range [][]any{
		{"river.update", port, "/RPC2", "xml-rpc", []string{feed}},
		{"river.update", w.port(), "/RPC3", "xml-rpc", []string{feed}, "127.0.0.1"},
		{false, port, "/rest", "http-post", []string{feed}, "127.0.0.1"},
	} {
		if m, r := w.rpc("rssCloud.pleaseNotify", params...); m.Fault != nil || !m.Params[0].True() || r.header.Get("Content-Type") != "text/xml; charset=utf-8" {
			t.Errorf("%v: %s", params, r.body)
		}
	}
	for want, params := range map[string][]any{
		"there aren't enough parameters":          {"x", port, "/RPC2", "xml-rpc"},
		"there are too many parameters":           {"x", port, "/RPC2", "xml-rpc", []string{feed}, "", "", ""},
		"The list of feeds is empty":              {"x", port, "/RPC2", "xml-rpc", []string{}},
		"error reading the resource":              {"x", port, "/RPC2", "xml-rpc", []string{"http://127.0.0.1:1/"}},
		"call failed when we tested the handler.": {"x", 1, "/RPC2", "xml-rpc", []string{feed}},
	} {
		if m, r := w.rpc("rssCloud.pleaseNotify", params...); m.Fault == nil || m.Fault.Code != 4 || !strings.Contains(m.Fault.Text, want) || r.status != 200 {
			t.Errorf("%s: %s", want, r.body)
		}
	}
	w.feed("/feed", "two")
	w.ping(feed)
	for _, path := range []string{"/RPC2", "/RPC3"} {
		got := w.got("POST", path)
		m, err := rsscloud.Decode([]byte(got[len(got)-1].body))
		if len(got) != 2 || err != nil || m.Method != "river.update" || m.Params[0].Text != feed {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := w.notified("/rest"); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// "call the procedure named rssCloud.ping [...] with a single parameter, the URL"
func TestWalkthroughPingByXMLRPC(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	w.feed("/feed", "two")
	if m, r := w.rpc("rssCloud.ping", feed); m.Fault != nil || !m.Params[0].True() || len(w.notified("/cb")) != 1 {
		t.Error(r.body)
	}
	if m, r := w.rpc("rssCloud.ping", "http://127.0.0.1:1/"); m.Fault != nil || !m.Params[0].True() {
		t.Errorf("a call that is well-formed returns true: %s", r.body)
	}
	for method, params := range map[string][]any{"rssCloud.ping": {}, "RSSCLOUD.PING": {"a", "b"}, "rssCloud.frobnicate": {}, "rssCloud.saveRss": {"a", "b", "c"}} {
		if m, r := w.rpc(method, params...); m.Fault == nil || m.Fault.Code != 4 {
			t.Errorf("%s: %s", method, r.body)
		}
	}
	if m, _ := w.rpc("rssCloud.hello"); m.Fault != nil || !m.Params[0].True() {
		t.Error("hello")
	}
}

// "POST to that address with a single parameter named url"; "The event is logged. The
// return value is an XML message named result, with two attributes, success and msg."
func TestWalkthroughPingViaREST(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.answer("/broken", http.NotFound)
	for _, path := range []string{"/rsscloud/ping", "/ping", "/PING/", "/RssCloud/Ping/"} {
		if r := w.form(path, "url", feed); r.status != 200 || !strings.Contains(r.body, `<result success="true" msg="Thanks for the ping.`) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := w.form("/ping", "URL", w.site.URL+"/broken"); r.status != 200 || !strings.Contains(r.body, `<result success="false" msg="The ping was cancelled because there was an error reading the resource at URL `+w.site.URL+`/broken."/>`) {
		t.Errorf("%+v", r)
	}
	// A feed without subscribers is not read again soon after a failed reading.
	w.answer("/broken", nil)
	mended := w.feed("/broken", "x")
	w.clock.Add(20 * time.Second)
	if r := w.ping(mended); !strings.Contains(r.body, `success="false"`) {
		t.Errorf("%+v", r)
	}
	w.clock.Add(40 * time.Second)
	if r := w.ping(mended); !strings.Contains(r.body, `success="true"`) {
		t.Errorf("%+v", r)
	}
	if r := w.form("/ping"); !strings.Contains(r.body, `success="false" msg="The following parameters were missing from the request body: url."`) {
		t.Errorf("%+v", r)
	}
	if events := w.h.shared.log.Recent(); len(events) != 7 || events[2].What != "unread" || events[3].What != "pinged" || events[3].Feed != feed {
		t.Errorf("%+v", events)
	}
	if r := w.do("GET", "/ping", "", ""); r.status != 405 || r.header.Get("Allow") != "POST" {
		t.Errorf("%+v", r)
	}
}

// "My server does a test call of the handler before adding the subscription [...] If
// the call fails, the registration fails."
func TestWalkthroughTestCallOfTheHandler(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.answer("/broken", func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(500) })
	w.answer("/fault", func(rw http.ResponseWriter, r *http.Request) { rw.Write(rsscloud.EncodeFault(1, "no")) })
	for path, ok := range map[string]bool{"/cb": true, "/broken": false} {
		r := w.form("/pleaseNotify", "port", w.port(), "path", path, "protocol", "http-post", "url1", feed)
		if strings.Contains(r.body, `success="true"`) != ok || ok && len(w.notified(path)) != 1 {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	r := w.form("/pleaseNotify", "notifyProcedure", "x", "port", w.port(), "path", "/fault", "protocol", "xml-rpc", "url1", feed)
	if !strings.Contains(r.body, "the call failed when we tested the handler.") {
		t.Error(r.body)
	}
	if list := w.subscriptions(feed); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// "If the notification request included the optional domain parameter [...] Instead of
// making a POST request we do a GET. We include a challenge parameter"; "accepts the
// subscription if and only if the aggregator returns a response code between 200 and
// 299 and the body of the response contains the challenge string."
func TestWalkthroughChallenge(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	say := func(status int, format string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(status)
			fmt.Fprintf(rw, format, r.URL.Query().Get("challenge"))
		}
	}
	w.answer("/contains", say(202, "well, %s then"))
	w.answer("/other", say(200, "%.0sother"))
	w.answer("/404", say(404, "%s"))
	for path, ok := range map[string]bool{"/cb": true, "/contains": true, "/other": false, "/404": false, "/cb?feed=1": true} {
		if r := w.register(path, feed); strings.Contains(r.body, `success="true"`) != ok {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	got := w.got("GET", "/cb")
	for _, c := range got {
		if q, _ := url.ParseQuery(c.query); q.Get("url") != feed || len(q.Get("challenge")) != 20 {
			t.Errorf("%+v", c)
		}
	}
	if len(got) != 2 || got[0].query == got[1].query || len(w.got("POST", "/cb")) != 0 {
		t.Errorf("%+v", got)
	}
	// By XML-RPC at a domain that is not the caller's, the challenge is enough, too.
	w.answer("/rpc", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			rw.WriteHeader(500)
		}
		fmt.Fprint(rw, r.URL.Query().Get("challenge"))
	})
	for domain, ok := range map[string]bool{"127.0.0.1": false, "127.0.0.2": true} {
		site := newSiteAt(t, domain, w.site)
		r := w.form("/pleaseNotify", "notifyProcedure", "x", "port", site, "path", "/rpc", "protocol", "xml-rpc", "url1", feed, "domain", domain)
		if strings.Contains(r.body, `success="true"`) != ok {
			t.Errorf("%s: %s", domain, r.body)
		}
	}
}

// "The server drops a subscription after three consecutive errors, but it waits till
// the top of the hour to drop subscriptions."
func TestWalkthroughThreeConsecutiveErrors(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "0")
	w.register("/cb", feed)
	w.register("/ok", feed)
	m := &moody{status: 500}
	w.answer("/cb", m.answer)
	n := 0
	update := func() { n++; w.feed("/feed", fmt.Sprint(n)); w.ping(feed) }
	fail := func() {
		update()
		for _, d := range retrySteps.Steps {
			w.advance(d)
		}
	}
	fail()
	fail()
	m.set(200)
	update() // a success, so the errors are no longer consecutive
	m.set(500)
	for range 5 {
		fail()
	}
	if got, want := len(w.notified("/cb")), 2*5+1+3*5; got != want {
		t.Errorf("notified %d times, not %d", got, want)
	}
	if list := w.subscriptions(feed); len(list) != 2 || list[0].Errors != 3 || !strings.Contains(list[0].Error, "500") {
		t.Errorf("dropped before the top of the hour: %+v", list)
	}
	w.h.sweep(false)
	if len(w.subscriptions(feed)) != 2 {
		t.Error("dropped at the start")
	}
	w.h.sweep(true)
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Callback != w.site.URL+"/ok" || w.h.shared.counts.get() != 1 {
		t.Errorf("%+v", list)
	}
	if len(w.notified("/ok")) != n {
		t.Error("the other was not notified each time")
	}
}

// "You must renew your subscription every 24 hours because they expire after 25 hours."
func TestWalkthroughTheyExpireAfter25Hours(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/once", feed)
	w.register("/renewed", feed)
	w.clock.Add(24 * time.Hour)
	w.register("/renewed", feed)
	w.feed("/feed", "two")
	w.ping(feed)
	w.clock.Add(time.Hour)
	w.feed("/feed", "three")
	w.ping(feed)
	if a, b := len(w.notified("/once")), len(w.notified("/renewed")); a != 1 || b != 2 {
		t.Errorf("notified %d and %d times", a, b)
	}
	w.h.sweep(true)
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Callback != w.site.URL+"/renewed" {
		t.Errorf("%+v", list)
	}
	w.clock.Add(25 * time.Hour)
	w.h.sweep(true)
	if tree := w.tree(); len(tree) != 0 {
		t.Errorf("files of feeds without subscribers: %v", tree)
	}
}

// "however it completely ignores the return value"; "The return value is ignored by the
// cloud."
func TestWalkthroughTheReturnValueIsIgnored(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.answer("/RPC2", func(rw http.ResponseWriter, r *http.Request) { rw.Write(rsscloud.EncodeResponse(false)) })
	w.rpc("rssCloud.pleaseNotify", "x", w.port(), "/RPC2", "xml-rpc", []string{feed})
	w.answer("/post", func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, r.FormValue("challenge"), `<result success="false" msg="no"/>`)
	})
	w.register("/post", feed)
	// The answer to a call need not be XML-RPC, if the status is a success.
	for path, answer := range map[string]string{"/empty": "", "/text": "Thanks for the update! :-)", "/half": "<methodResponse><params>"} {
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, answer) })
		w.rpc("rssCloud.pleaseNotify", "x", w.port(), path, "xml-rpc", []string{feed})
	}
	w.feed("/feed", "two")
	w.ping(feed)
	list := w.subscriptions(feed)
	if len(list) != 5 || len(w.notified("/post")) != 1 {
		t.Errorf("%+v", list)
	}
	for _, s := range list {
		if u, _ := url.Parse(s.Callback); s.Errors != 0 || s.Protocol == "xml-rpc" && len(w.got("POST", u.Path)) != 2 {
			t.Errorf("%+v", s)
		}
	}
}

// "Your update handler procedure takes a single parameter, the URL of the feed that
// updated"; "Your server will receive a single parameter, the URL of the feed that
// updated."
func TestWalkthroughASingleParameterTheURL(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.site.URL + "/feed?a=b&c=%3Cd%3E+%20'\""
	w.feed("/feed", "one")
	w.register("/post", feed)
	w.rpc("rssCloud.pleaseNotify", "a.b", w.port(), "/rpc", "xml-rpc", []string{feed}, "127.0.0.1")
	w.feed("/feed", "two")
	w.ping(feed)
	got := w.got("POST", "/post")
	if q, err := url.ParseQuery(got[0].body); err != nil || len(got) != 1 || len(q) != 1 || len(q["url"]) != 1 || q.Get("url") != feed || got[0].header.Get("Content-Type") != formType || got[0].query != "" {
		t.Errorf("%+v", got)
	}
	for _, c := range w.got("POST", "/rpc") {
		if m, err := rsscloud.Decode([]byte(c.body)); err != nil || m.Method != "a.b" || len(m.Params) != 1 || m.Params[0].Text != feed || c.header.Get("Content-Type") != "text/xml" {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// "You can not request notification on behalf of another server", unless that server
// returns the challenge: "The server can reject the subscription if the url parameter is
// a feed it isn't interested in by either returning an error code, or failing to return
// the challenge string."
func TestWalkthroughNotOnBehalfOfAnotherServer(t *testing.T) {
	w := newWorld(t, nil)
	wanted, unwanted := w.feed("/wanted", "one"), w.feed("/unwanted", "one")
	other := newSite(t)
	port := newSiteAt(t, "127.0.0.2", other)
	other.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		if r.FormValue("url") == wanted {
			fmt.Fprint(rw, r.FormValue("challenge"))
		}
	})
	for feed, ok := range map[string]bool{wanted: true, unwanted: false} {
		for _, protocol := range []string{"http-post", "xml-rpc"} {
			r := w.form("/pleaseNotify", "notifyProcedure", "x", "port", port, "path", "/cb", "protocol", protocol, "url1", feed, "domain", "127.0.0.2")
			if strings.Contains(r.body, `success="true"`) != ok {
				t.Errorf("%s, %s: %s", feed, protocol, r.body)
			}
		}
		if n := len(w.subscriptions(feed)); (n == 2) != ok || !ok && n != 0 {
			t.Errorf("%s: %d", feed, n)
		}
	}
	// Without a domain, the callback is at the caller's address.
	if r := w.form("/pleaseNotify", "port", port, "path", "/cb", "protocol", "http-post", "url1", wanted); !strings.Contains(r.body, `success="false"`) || len(other.got("POST", "/cb")) > 1 {
		t.Errorf("%s, %+v", r.body, other.calls)
	}
}

// "If your calls to the cloud are getting through you should see them in the log and
// also all calls it makes to you".
func TestWalkthroughYouShouldSeeThemInTheLog(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	w.answer("/none", http.NotFound)
	w.register("/none", feed)
	w.feed("/feed", "two")
	w.ping(feed)
	w.ping(feed)
	w.answer("/cb", http.NotFound)
	w.feed("/feed", "three")
	w.ping(feed)
	u, _ := url.Parse(w.site.URL)
	var said []string
	for _, e := range slices.Backward(w.h.shared.log.Recent()) {
		said = append(said, e.What)
		if e.Feed != feed || (e.What == "subscribed" || e.What == "notified" || e.What == "failed" || e.What == "untried") && !strings.HasPrefix(e.About, u.Host) {
			t.Errorf("%+v", e)
		}
	}
	if got := strings.Join(said, " "); got != "subscribed untried refused updated notified pinged updated failed later" {
		t.Error(got)
	}
}

// "protocol — either xml-rpc, soap or http-post", to which clouds have added https-post:
// the callback is reached by TLS, to try it and to notify it.
func TestWalkthroughProtocolByTLS(t *testing.T) {
	secure := &site{feeds: map[string]string{}, answers: map[string]http.HandlerFunc{}}
	secure.Server = httptest.NewTLSServer(secure)
	t.Cleanup(secure.Close)
	w := newWorld(t, func(o *Options) {
		pool := x509.NewCertPool()
		pool.AddCert(secure.Certificate())
		o.Callbacks.TLS = &tls.Config{RootCAs: pool}
	})
	feed := w.feed("/feed", "one")
	for protocol, ok := range map[string]bool{"https-post": true, "HTTPS-POST": true, "http-post": false} {
		r := w.form("/pleaseNotify", "port", secure.port(), "path", "/cb", "protocol", protocol, "domain", "127.0.0.1", "url1", feed)
		if strings.Contains(r.body, `success="true"`) != ok {
			t.Errorf("%s: %s", protocol, r.body)
		}
	}
	if m, r := w.rpc("rssCloud.pleaseNotify", "", secure.port(), "/rpc", "https-post", []string{feed}); m.Fault != nil || len(secure.got("POST", "/rpc")) != 1 {
		t.Error(r.body)
	}
	w.feed("/feed", "two")
	w.ping(feed)
	if list := w.subscriptions(feed); len(list) != 2 || list[0].Callback != secure.URL+"/cb" || len(secure.got("POST", "/cb")) != 1 || len(secure.got("POST", "/rpc")) != 2 {
		t.Errorf("%+v, %+v", list, secure.calls)
	}
}
