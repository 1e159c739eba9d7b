package rsscloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/http/fetch"
)

func client(t *testing.T) *fetch.Client {
	c := fetch.NewClient(fetch.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(c.Close)
	return c
}

// request is a request that a fake peer received.
type request struct {
	method, uri, accept, contentType, body string
	form                                   url.Values
}

// peer is a fake cloud that answers by a function, and records all requests.
type peer struct {
	*httptest.Server
	got []request
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r request)) *peer {
	p := &peer{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(b))
		q := request{r.Method, r.URL.RequestURI(), r.Header.Get("Accept"), r.Header.Get("Content-Type"), string(b), form}
		p.got = append(p.got, q)
		answer(w, q)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *peer) cloud(path, procedure, protocol string) Cloud {
	u, _ := url.Parse(p.URL)
	port, _ := strconv.Atoi(u.Port())
	return Cloud{Domain: u.Hostname(), Port: port, Path: path, RegisterProcedure: procedure, Protocol: protocol}
}

func yes(w http.ResponseWriter, _ request) {
	io.WriteString(w, `<?xml version="1.0"?><notifyResult success="true" msg="Thanks."/>`)
}

func no(w http.ResponseWriter, msg string) {
	fmt.Fprintf(w, `<notifyResult success="false" msg="%s"/>`, msg)
}

var (
	back      = &url.URL{Scheme: "http", Host: "reader.example:8080", Path: "/cb/token"}
	backHTTPS = &url.URL{Scheme: "https", Host: "reader.example:443", Path: "/cb/token"}
	feedURL   = "http://scripting.com/rss.xml?a=b&c=d"
)

func register(t *testing.T, c Cloud, back *url.URL, feeds ...string) error {
	return Register(context.Background(), client(t), c, back, feeds)
}

// "What this means, in English is: To request notification of updates for this
// feed, do an HTTP POST to: http://rpc.rsscloud.org:5337/rsscloud/pleaseNotify"
func TestWalkthroughCloudElementSaysWhereToPost(t *testing.T) {
	c := Cloud{Domain: "rpc.rsscloud.org", Port: 5337, Path: "/rsscloud/pleaseNotify", Protocol: "http-post"}
	if u, err := c.URL(); u != "http://rpc.rsscloud.org:5337/rsscloud/pleaseNotify" || err != nil {
		t.Errorf("got %s, %v; want u == \"http://rpc.rsscloud.org:5337/rsscloud/pleaseNotify\" and err == nil", u, err)
	}
}

// "When you POST to that address, supply these parameters: notifyProcedure (must
// be there …), port, path, protocol, url1 … urlN, domain"
func TestWalkthroughParametersOfPleaseNotify(t *testing.T) {
	p := serve(t, yes)
	if err := register(t, p.cloud("/rsscloud/pleaseNotify", "", "http-post"), back, feedURL, "http://b.example/"); err != nil {
		t.Fatal(err)
	}
	want := "notifyProcedure=&port=8080&path=%2Fcb%2Ftoken&protocol=http-post&url1=http%3A%2F%2Fscripting.com%2Frss.xml%3Fa%3Db%26c%3Dd&url2=http%3A%2F%2Fb.example%2F&domain=reader.example"
	if g := p.got[0]; g.body != want || g.method != "POST" || g.contentType != "application/x-www-form-urlencoded" || g.uri != "/rsscloud/pleaseNotify" {
		t.Errorf("%+v", g)
	}
}

// "It returns an XML response called notifyResult with two attributes: success is
// true or false, which indicates whether we registered a notification on your
// behalf, and msg which explains what happened."
func TestWalkthroughNotifyResult(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r request) { no(w, "Too &lt;many&gt; \x1b[31m subscriptions") })
	err := register(t, p.cloud("/x", "", "http-post"), back, feedURL)
	var refused *fetch.RefusedError
	if !errors.As(err, &refused) || refused.Message != "Too <many> [31m subscriptions" {
		t.Errorf("got %v; want errors.As(err, &refused) and refused.Message == \"Too <many> [31m subscriptions\"", err)
	}
}

// "You'd call it this way: [server].rssCloud.pleaseNotify (notifyProcedure, port,
// path, protocol, urllist)"; "since XML-RPC has a list type, you use it instead".
// "It returns true if it worked, and errors if it didn't."
func TestWalkthroughPleaseNotifyByXMLRPC(t *testing.T) {
	var calls []*Message
	fail := false
	p := serve(t, func(w http.ResponseWriter, r request) {
		m, err := Decode([]byte(r.body))
		if err != nil {
			t.Error(err)
		}
		calls = append(calls, m)
		if fail {
			w.Write(EncodeFault(4, "no such feed"))
			return
		}
		w.Write(EncodeResponse(true))
	})
	c := p.cloud("/RPC2", "rssCloud.pleaseNotify", "xml-rpc")
	if err := register(t, c, back, feedURL, "http://b.example/"); err != nil {
		t.Fatal(err)
	}
	m := calls[0]
	if m.Method != "rssCloud.pleaseNotify" || m.Params[0].Text != NotifyProcedure || m.Params[1].Text != "8080" || m.Params[2].Text != "/cb/token" ||
		m.Params[3].Text != "xml-rpc" || !slices.Equal(m.Params[4].Strings(), []string{feedURL, "http://b.example/"}) || p.got[0].contentType != "text/xml" {
		t.Errorf("%+v", m)
	}
	fail = true
	var refused *fetch.RefusedError
	if err := register(t, c, back, feedURL); !errors.As(err, &refused) || !strings.Contains(err.Error(), "no such feed") {
		t.Errorf("got %v; want errors.As(err, &refused) and strings.Contains(err.Error(), \"no such feed\")", err)
	}
}

// "[server].rssCloud.ping (url)"; "a single parameter, the URL of the … feed"
func TestWalkthroughPingByXMLRPC(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r request) {
		m, _ := Decode([]byte(r.body))
		if m.Method != "rssCloud.ping" || len(m.Params) != 1 || m.Params[0].Text != feedURL {
			t.Errorf("got %+v; want m.Method == \"rssCloud.ping\" and len(m.Params) == 1 and m.Params[0].Text == feedURL", m)
		}
		w.Write(EncodeResponse(true))
	})
	target, err := ParsePingTarget(strings.Replace(p.URL, "http:", "xmlrpc:", 1) + "/RPC2")
	if err != nil || !target.XMLRPC {
		t.Fatal(target, err)
	}
	if _, err := Ping(context.Background(), client(t), target, feedURL); err != nil {
		t.Error(err)
	}
}

// "POST to that address with a single parameter named url"; "The return value is
// an XML message named result, with two attributes, success and msg."
func TestWalkthroughPingByREST(t *testing.T) {
	answer := `<result success="true" msg="Thanks for the ping."/>`
	p := serve(t, func(w http.ResponseWriter, r request) { io.WriteString(w, answer) })
	target, err := p.cloud("/rsscloud/pleaseNotify", "", "http-post").PingTarget()
	if err != nil {
		t.Fatal(err)
	}
	msg, err := Ping(context.Background(), client(t), target, feedURL)
	if err != nil || msg != "Thanks for the ping." {
		t.Errorf("got %q, %v; want err == nil and msg == \"Thanks for the ping.\"", msg, err)
	}
	if g := p.got[0]; g.uri != "/rsscloud/ping" || g.body != "url="+url.QueryEscape(feedURL) {
		t.Errorf("got %+v; want g.uri == \"/rsscloud/ping\" and g.body == \"url=\" + url.QueryEscape(feedURL)", g)
	}
	answer = `<result success='false' msg='The ping was cancelled because the feed has not changed.'/>`
	var refused *fetch.RefusedError
	if _, err := Ping(context.Background(), client(t), target, feedURL); !errors.As(err, &refused) || !strings.Contains(refused.Message, "has not changed") {
		t.Errorf("got %v; want errors.As(err, &refused) and strings.Contains(refused.Message, \"has not changed\")", err)
	}
}

// "[server].rssCloud.saveRss (username, password, rsstext)"; "If the save works,
// the return value is the public URL of your feed. If it failed, the call throws
// an error."
func TestWalkthroughSaveRss(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r request) {
		m, _ := Decode([]byte(r.body))
		if m.Method != "rssCloud.saveRss" || len(m.Params) != 3 || m.Params[0].Text != "bull" || m.Params[2].Text != "<rss>&amp;</rss>" {
			t.Errorf("%+v", m)
		}
		if m.Params[1].Text != "secret" {
			w.Write(EncodeFault(4, "Invalid password."))
			return
		}
		w.Write(EncodeResponse("http://static.lifeliner.org/bull/rss.xml"))
	})
	got, err := Save(context.Background(), client(t), p.URL+"/RPC2", true, "bull", "secret", "<rss>&amp;</rss>")
	if got != "http://static.lifeliner.org/bull/rss.xml" || err != nil {
		t.Errorf("got %q, %v; want got == \"http://static.lifeliner.org/bull/rss.xml\" and err == nil", got, err)
	}
	if _, err = Save(context.Background(), client(t), p.URL+"/RPC2", true, "bull", "x", "<rss>&amp;</rss>"); err == nil || !strings.Contains(err.Error(), "Invalid password") {
		t.Errorf("got %v; want err != nil and strings.Contains(err.Error(), \"Invalid password\")", err)
	}
}

// "We include a challenge parameter, a random string of characters"; "the body of
// the response contains the challenge string"; "The server can reject the
// subscription if the url parameter is a feed it isn't interested in"
func TestWalkthroughChallenge(t *testing.T) {
	for _, tc := range []struct{ query, want string }{
		{"url=" + url.QueryEscape(feedURL) + "&challenge=abc", "abc"},
		{"challenge=abc&url=" + url.QueryEscape(feedURL), "abc"},
		{"challenge=abc", "abc"},
		{"url=http%3A%2F%2Fother.example%2F&challenge=abc", ""},
		{"url=" + url.QueryEscape(feedURL), ""},
		{"challenge=" + strings.Repeat("x", MaxChallenge+1), ""},
	} {
		if got, _, ok := Challenge(tc.query, []string{feedURL}); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%.60s: %q", tc.query, got)
		}
	}
}

// "Your update handler procedure takes a single parameter, the URL of the feed
// that updated."
func TestWalkthroughNotificationByXMLRPC(t *testing.T) {
	n, err := ReadNotification("text/xml", "", EncodeCall("river.update", feedURL))
	if err != nil || !n.XMLRPC || !slices.Equal(n.URLs, []string{feedURL}) {
		t.Errorf("got %+v, %v; want err == nil and n.XMLRPC and slices.Equal(n.URLs, []string{feedURL})", n, err)
	}
}

// "Your server will receive a single parameter, the URL of the feed that updated."
func TestWalkthroughNotificationByHTTPPost(t *testing.T) {
	n, err := ReadNotification("application/x-www-form-urlencoded", "", []byte("url="+url.QueryEscape(feedURL)))
	if err != nil || n.XMLRPC || !slices.Equal(n.URLs, []string{feedURL}) {
		t.Errorf("got %+v, %v; want err == nil and !n.XMLRPC and slices.Equal(n.URLs, []string{feedURL})", n, err)
	}
}

func TestQuirkSingleQuotesAndWorse(t *testing.T) {
	for body, want := range map[string]string{
		`<?xml version='1.0'?><notifyResult success='true' msg='Registration successful.' />`: "",
		`<notifyResult success='false' msg='No feed for url1.'/>`:                             "No feed for url1.",
		`<NotifyResult msg="a &amp; b" SUCCESS=false>`:                                        "a & b",
		`{"success":true,"msg":"ok"}`:                                                         "",
		`{"success": false, "msg": "gone & away"}`:                                            "gone & away",
		``:                                    "not with a result",
		`OK`:                                  "not with a result",
		`<!DOCTYPE html><html><p>success</p>`: "web page",
	} {
		p := serve(t, func(w http.ResponseWriter, r request) { io.WriteString(w, body) })
		err := register(t, p.cloud("/x", "", "http-post"), back, feedURL)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestQuirkPathsInAnyCaseAndWithSlash(t *testing.T) {
	// Each cloud has only one of the paths that feeds name.
	for _, there := range []string{"/pleaseNotify", "/rsscloud/pleaseNotify", "/pleaseNotify/"} {
		for _, path := range []string{"/pleaseNotify", "/PLEASENOTIFY/", "/rsscloud/pleaseNotify/", ""} {
			if there == "/pleaseNotify/" && path != "/pleaseNotify" {
				continue
			}
			p := serve(t, func(w http.ResponseWriter, r request) {
				if r.uri != there {
					http.Error(w, "not found", http.StatusNotFound)
					return
				}
				yes(w, r)
			})
			if err := register(t, p.cloud(path, "", "http-post"), back, feedURL); err != nil {
				t.Errorf("%q where only %s is: %v", path, there, err)
			}
		}
	}
}

func TestQuirkPingWithAndWithoutRsscloud(t *testing.T) {
	for _, there := range []string{"/ping", "/rsscloud/ping"} {
		for _, path := range []string{"/pleaseNotify", "/rsscloud/pleaseNotify", "/rssCloud/PleaseNotify/", ""} {
			p := serve(t, func(w http.ResponseWriter, r request) {
				if r.uri != there {
					http.Error(w, "not found", http.StatusNotFound)
					return
				}
				io.WriteString(w, `<result success="true" msg=""/>`)
			})
			target, err := p.cloud(path, "", "http-post").PingTarget()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Ping(context.Background(), client(t), target, feedURL); err != nil {
				t.Errorf("%q where only %s is: %v", path, there, err)
			}
		}
	}
}

func TestQuirkURLOrURL1(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r request) {
		if r.form.Get("url") == "" {
			no(w, "url is missing")
			return
		}
		yes(w, r)
	})
	if err := register(t, p.cloud("/x", "", "http-post"), back, feedURL); err != nil {
		t.Error(err)
	}
	for _, body := range []string{"url=a", "url1=a", "url2=a"} {
		if n, err := ReadNotification("application/x-www-form-urlencoded", "", []byte(body)); err != nil || !slices.Equal(n.URLs, []string{"a"}) {
			t.Errorf("got %s: %+v, %v; want err == nil and slices.Equal(n.URLs, []string{\"a\"})", body, n, err)
		}
	}
}

func TestQuirkEmptyRegisterProcedure(t *testing.T) {
	method := ""
	p := serve(t, func(w http.ResponseWriter, r request) {
		m, _ := Decode([]byte(r.body))
		method = m.Method
		w.Write(EncodeResponse(true))
	})
	if err := register(t, p.cloud("/RPC2", "", "xml-rpc"), back, feedURL); err != nil || method != "rssCloud.pleaseNotify" {
		t.Error(method, err)
	}
}

// Some clouds require the parameter even if it has no meaning. Without it, they call by
// XML-RPC without a procedure name.
func TestQuirkMissingNotifyProcedure(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r request) {
		if _, ok := r.form["notifyProcedure"]; !ok {
			no(w, "notifyProcedure is missing")
			return
		}
		yes(w, r)
	})
	if err := register(t, p.cloud("/x", "", "http-post"), back, feedURL); err != nil {
		t.Error(err)
	}
	n, err := ReadNotification("text/xml", "", []byte(`<methodCall><methodName></methodName><params><param><value>a</value></param></params></methodCall>`))
	if err != nil || !slices.Equal(n.URLs, []string{"a"}) {
		t.Errorf("got %+v, %v; want err == nil and slices.Equal(n.URLs, []string{\"a\"})", n, err)
	}
}

func TestQuirkHTTPSPost(t *testing.T) {
	c := Cloud{Domain: "cloud.example", Path: "/pleaseNotify", Protocol: "https-post"}
	if u, err := c.URL(); u != "https://cloud.example/pleaseNotify" || err != nil {
		t.Error(u, err)
	}
	// For an https callback, https-post is requested first, and http-post if that is refused.
	var asked []string
	p := serve(t, func(w http.ResponseWriter, r request) {
		asked = append(asked, r.form.Get("protocol"))
		if r.form.Get("protocol") != "http-post" {
			no(w, "Only http-post notifications are supported at this time.")
			return
		}
		yes(w, r)
	})
	if err := register(t, p.cloud("/x", "", "http-post"), backHTTPS, feedURL); err != nil || !slices.Equal(asked, []string{"https-post", "http-post"}) {
		t.Error(asked, err)
	}
}

func TestQuirkPort443MeansHTTPS(t *testing.T) {
	for _, protocol := range []string{"http-post", "xml-rpc"} {
		c := Cloud{Domain: "cloud.example", Port: 443, Path: "p", Protocol: protocol}
		if u, err := c.URL(); u != "https://cloud.example/p" || err != nil {
			t.Error(u, err)
		}
	}
}

func TestQuirkCloudPathWithQuery(t *testing.T) {
	p := serve(t, yes)
	if err := register(t, p.cloud("/?rsscloud=notify", "", "http-post"), back, feedURL); err != nil || p.got[0].uri != "/?rsscloud=notify" {
		t.Errorf("got %v, %+v; want err == nil and p.got[0].uri == \"/?rsscloud=notify\"", err, p.got)
	}
}

func TestQuirkRedirectedPOSTStaysPOST(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		p := serve(t, func(w http.ResponseWriter, r request) {
			if r.uri == "/old" {
				w.Header().Set("Location", "/new")
				w.WriteHeader(status)
				return
			}
			yes(w, r)
		})
		if err := register(t, p.cloud("/old", "", "http-post"), back, feedURL); err != nil {
			t.Fatal(err)
		}
		if g := p.got; len(g) != 2 || g[1].method != "POST" || g[1].body != g[0].body || g[1].contentType != g[0].contentType {
			t.Errorf("%d: %+v", status, g)
		}
	}
}

func TestQuirkChallengeWithURLNotEncoded(t *testing.T) {
	for _, feed := range []string{"http://x.example/?a=1&challenge=evil&b=2", "http://x.example/a%20b", "http://x.example/f?a+b", "http://x.example/"} {
		for _, query := range []string{"url=" + feed + "&challenge=abc", "challenge=abc&url=" + feed} {
			if got, _, ok := Challenge(query, []string{"http://y.example/", feed}); !ok || got != "abc" {
				t.Errorf("got %s: %q; want ok and got == \"abc\"", query, got)
			}
		}
	}
}

// A URL that the cloud appended to the callback is read if the body is empty.
func TestQuirkURLAppendedToCallback(t *testing.T) {
	n, err := ReadNotification("", "url="+url.QueryEscape(feedURL), nil)
	if err != nil || !slices.Equal(n.URLs, []string{feedURL}) {
		t.Errorf("got %+v, %v; want err == nil and slices.Equal(n.URLs, []string{feedURL})", n, err)
	}
}

func TestQuirkAcceptTextXMLAnswered406(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r request) {
		if strings.Contains(r.accept, "text/xml") {
			http.Error(w, "", http.StatusNotAcceptable)
			return
		}
		if strings.Contains(r.uri, "RPC2") {
			w.Write(EncodeResponse(true))
			return
		}
		yes(w, r)
	})
	for _, c := range []Cloud{p.cloud("/x", "", "http-post"), p.cloud("/RPC2", "", "xml-rpc")} {
		if err := register(t, c, back, feedURL); err != nil {
			t.Error(err)
		}
	}
}

func TestQuirkXMLRPCUntypedStringPortScalarForList(t *testing.T) {
	m, err := Decode([]byte("\ufeff" + `<?xml version='1.0' encoding='us-ascii'?>
<methodCall><methodName> rssCloud.pleaseNotify </methodName><params>
<param><value>proc</value></param><param><value><string>5337</string></value></param><param><value/></param>
<param><value><string>http-post</string></value></param><param><value> http://a.example/?x=1&amp;y </value></param></params></methodCall>`))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{m.Method, m.Params[0].Text, m.Params[1].Text, m.Params[2].Text, m.Params[3].Text}
	if !slices.Equal(got, []string{"rssCloud.pleaseNotify", "proc", "5337", "", "http-post"}) || !slices.Equal(m.Params[4].Strings(), []string{"http://a.example/?x=1&y"}) {
		t.Errorf("%q %+v", got, m.Params[4])
	}
	n, err := ReadNotification("text/plain", "", []byte(`<methodCall><methodName>x</methodName><params><param><value><array><data><value>a</value><value><string>b</string></value></data></array></value></param></params></methodCall>`))
	if err != nil || !slices.Equal(n.URLs, []string{"a", "b"}) {
		t.Errorf("got %+v, %v; want err == nil and slices.Equal(n.URLs, []string{\"a\", \"b\"})", n, err)
	}
}

// The walkthrough has five parameters; the sixth, domain, was added later.
func TestQuirkXMLRPCWithoutDomain(t *testing.T) {
	var counts []int
	p := serve(t, func(w http.ResponseWriter, r request) {
		m, _ := Decode([]byte(r.body))
		if counts = append(counts, len(m.Params)); len(m.Params) > 5 {
			w.Write(EncodeFault(4, "too many parameters"))
			return
		}
		w.Write(EncodeResponse(true))
	})
	if err := register(t, p.cloud("/RPC2", "", "xml-rpc"), back, feedURL); err != nil || !slices.Equal(counts, []int{6, 5}) {
		t.Error(counts, err)
	}
}

func TestSOAPIsRefusedByName(t *testing.T) {
	var soap *SOAPError
	if _, err := (Cloud{Domain: "x.example", Path: "/", Protocol: "SOAP"}).URL(); !errors.As(err, &soap) || !strings.Contains(err.Error(), "SOAP") {
		t.Error(err)
	}
	envelope := `<?xml version="1.0"?><SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/"><SOAP-ENV:Body/></SOAP-ENV:Envelope>`
	for _, contentType := range []string{"text/xml", "application/soap+xml"} {
		if _, err := ReadNotification(contentType, "", []byte(envelope)); !errors.As(err, &soap) {
			t.Error(err)
		}
	}
}

func TestCloudURL(t *testing.T) {
	for _, tc := range []struct {
		cloud Cloud
		want  string
	}{
		{Cloud{"rpc.rsscloud.io", 5337, "/pleaseNotify", "", "http-post"}, "http://rpc.rsscloud.io:5337/pleaseNotify"},
		{Cloud{"http://rpc.rsscloud.io/", 80, "", "", "HTTP-POST"}, "http://rpc.rsscloud.io/"},
		{Cloud{"a.example", 0, "p", "", ""}, "http://a.example/p"},
		{Cloud{"2001:db8::1", 81, "/p", "", "http-post"}, "http://[2001:db8::1]:81/p"},
		{Cloud{"", 80, "/", "", "http-post"}, ""},
		{Cloud{"a@b", 80, "/", "", "http-post"}, ""},
		{Cloud{"a/b", 80, "/", "", "http-post"}, ""},
		{Cloud{"a", 70000, "/", "", "http-post"}, ""},
		{Cloud{"a", 80, "/", "", "gopher"}, ""},
	} {
		got, err := tc.cloud.URL()
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("got %+v: %q, %v; want got == tc.want and (err != nil) == (tc.want == \"\")", tc.cloud, got, err)
		}
	}
}

func TestKey(t *testing.T) {
	for _, group := range [][]string{
		{"http://Example.com/rss.xml", "https://example.com:443/rss.xml", "http://example.com:80/rss.xml#x", "http://example.com/rss.xml/", "http://example.com/%72ss.xml"},
		{"http://example.com/?a=%20", "http://example.com/?a=+"},
		{"http://example.com:8080/"}, {"http://www.example.com/rss.xml"}, {"nothing"},
	} {
		for _, u := range group {
			if Key(u) != Key(group[0]) {
				t.Errorf("%s and %s differ", u, group[0])
			}
		}
	}
	if Key("http://a/x") == Key("http://a/y") || Key("http://a/") == Key("http://b/") {
		t.Error("URLs of different feeds have one key")
	}
}

// XML-RPC that is nested 100,000 deep, or less within the limit of bytes, is refused.
func TestAttackNestedXMLRPC(t *testing.T) {
	deep := []byte("<methodCall><params><param>" + strings.Repeat("<value><array><data>", 100_000))
	if _, err := Decode(deep); err == nil || !strings.Contains(err.Error(), "more than 65536 bytes") {
		t.Error(err)
	}
	if _, err := Decode(deep[:MaxMessage]); !errors.Is(err, errTooDeep) {
		t.Error(err)
	}
	deep = []byte("<methodCall>" + strings.Repeat("<a>", 10_000))
	if _, err := Decode(deep); !errors.Is(err, errTooDeep) {
		t.Error(err)
	}
	many := []byte("<methodCall><params><param><value><array><data>" + strings.Repeat("<value/>", maxValues+1))
	if _, err := Decode(many); !errors.Is(err, errTooMany) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(EncodeCall("rssCloud.pleaseNotify", "a", 80, "/", true, []string{"x", "y"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if (m == nil) == (err == nil) {
			t.Fatal(m, err)
		}
	})
}

func FuzzReadNotification(f *testing.F) {
	f.Add("text/xml", "url=x", []byte("url=a"))
	f.Fuzz(func(t *testing.T, contentType, query string, body []byte) {
		n, err := ReadNotification(contentType, query, body)
		if err == nil && len(n.URLs) == 0 || len(n.URLs) > maxURLs {
			t.Fatalf("%+v", n)
		}
	})
}

func FuzzChallenge(f *testing.F) {
	f.Add("url=http://x.example/?a=1&challenge=abc", "http://x.example/?a=1")
	f.Fuzz(func(t *testing.T, query, wanted string) {
		text, _, ok := Challenge(query, []string{wanted})
		if ok && (text == "" || len(text) > MaxChallenge) {
			t.Fatal(text)
		}
		Key(wanted)
	})
}

// Some clouds answer a registration with a struct that has flError, as for pings.
func TestQuirkXMLRPCStructThatRefuses(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ request) {
		fmt.Fprint(w, `<?xml version="1.0"?><methodResponse><params><param><value><struct><member><name>flError</name><value><boolean>1</boolean></value></member><member><name>message</name><value>no such feed</value></member></struct></value></param></params></methodResponse>`)
	})
	err := register(t, p.cloud("/RPC2", "rssCloud.pleaseNotify", "xml-rpc"), &url.URL{Scheme: "http", Host: "me.example:80", Path: "/x"}, "http://a.example/")
	var refused *fetch.RefusedError
	if !errors.As(err, &refused) || refused.Message != "no such feed" {
		t.Errorf("got %v; want errors.As(err, &refused) and refused.Message == \"no such feed\"", err)
	}
}

func TestQuirkNotificationWithURLNotEncoded(t *testing.T) {
	const feed = "http://a.example/rss.xml?x=1&y=2;z=3"
	for name, c := range map[string][2]string{"body": {"", "url=" + feed}, "query": {"url=" + feed, ""}} {
		n, err := ReadNotification("application/x-www-form-urlencoded", c[0], []byte(c[1]))
		if err != nil || !slices.Contains(n.URLs, feed) {
			t.Errorf("got %s: %q, %v; want err == nil and slices.Contains(n.URLs, feed)", name, n.URLs, err)
		}
	}
}

func TestPingTargetOfXMLRPCWithoutPath(t *testing.T) {
	for _, s := range []string{"xmlrpc://rpc.example:5337", "xmlrpc://rpc.example:5337/"} {
		p, err := ParsePingTarget(s)
		if err != nil || !p.XMLRPC || !slices.Equal(p.URLs, []string{"http://rpc.example:5337/RPC2"}) {
			t.Errorf("got %s: %+v, %v; want err == nil and p.XMLRPC and slices.Equal(p.URLs, []string{\"http://rpc.example:5337/RPC2\"})", s, p, err)
		}
	}
}

// Base64 may contain white space anywhere. Invalid base64 is an error at any place, not an
// empty text.
func TestBase64(t *testing.T) {
	call := func(value string) string {
		return "<methodCall><params><param><value>" + value + "</value></param></params></methodCall>"
	}
	m, err := Decode([]byte(call("<base64>\n IGH/\r\n\tAAo= </base64>")))
	if err != nil || m.Params[0].Exact != " a\xff\x00\n" || m.Params[0].Text != "a\xff\x00" || !m.Params[0].Binary {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err = Decode([]byte(call("<string>YQ==</string>"))); err != nil || m.Params[0].Exact != "YQ==" || m.Params[0].Binary {
		t.Errorf("got %+v, %v; want err == nil and m.Params[0].Exact == \"YQ==\" and !m.Params[0].Binary", m, err)
	}
	for _, value := range []string{"<base64>a!b</base64>", "<base64>YQ=</base64>", "<array><data><value><base64>!</base64></value></data></array>",
		"<struct><member><name>a</name><value><base64>!</base64></value></member></struct>"} {
		if m, err := Decode([]byte(call(value))); err == nil || !strings.Contains(err.Error(), "base64") {
			t.Errorf("got %s: %+v, %v; want err != nil and strings.Contains(err.Error(), \"base64\")", value, m, err)
		}
	}
}
