package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/http/httpmsg"
)

func TestPost(t *testing.T) {
	secure := httptest.NewTLSServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))
	defer secure.Close()
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(b)+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/see":
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusSeeOther)
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		case "/moved":
			w.Header().Set("Location", "/ok")
			w.WriteHeader(http.StatusFound)
		case "/long":
			io.WriteString(w, strings.Repeat("x", 2*MaxAnswer))
		case "/error":
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "later")
		default:
			io.WriteString(w, "yes")
		}
	}))
	defer s.Close()
	allowed := NewClient(Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
	defer allowed.Close()
	post := func(c *Client, url string, chosen bool) (*Answer, error) {
		return c.Post(context.Background(), &Post{URL: url, ContentType: "text/x", Body: []byte("body"), Chosen: chosen})
	}
	a, err := post(allowed, strings.Replace(s.URL, "://", "://me:secret@", 1)+"/moved", false)
	if err != nil || a.Status != 200 || string(a.Body) != "yes" || a.FinalURL != s.URL+"/ok" {
		t.Errorf("%+v, %v", a, err)
	}
	if want := "POST /moved text/x body  POST /ok text/x body "; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
	if a, err := post(allowed, s.URL+"/long", false); err != nil || len(a.Body) != MaxAnswer {
		t.Errorf("%v", err)
	}
	var redirect *httpmsg.RedirectError
	if _, err := post(allowed, s.URL+"/see", false); !errors.As(err, &redirect) {
		t.Errorf("303: %v", err)
	}
	if _, err := post(allowed, secure.URL, false); !errors.As(err, &redirect) || !strings.Contains(err.Error(), "https to http") {
		t.Errorf("https to http: %v", err)
	}
	var status *httpmsg.StatusError
	if _, err := post(allowed, s.URL+"/nowhere", false); !errors.As(err, &status) {
		t.Errorf("%v", err)
	}
	a, err = post(allowed, s.URL+"/error", false)
	if err != nil || a.Status != 503 || a.RetryAfter.Seconds() != 60 {
		t.Errorf("%+v, %v", a, err)
	}
	var delay *httpmsg.HostDelayError
	if _, err := post(allowed, s.URL+"/error", false); !errors.As(err, &delay) || delay.URL != s.URL+"/error" {
		t.Errorf("%v", err)
	}

	// Private addresses are requested only if the user chose the URL.
	strict := NewClient(Config{})
	defer strict.Close()
	var private *httpmsg.PrivateError
	if _, err := post(strict, s.URL+"/ok", false); !errors.As(err, &private) {
		t.Errorf("%v", err)
	}
	if a, err := post(strict, s.URL+"/ok", true); err != nil || a.Status != 200 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestParsePrefix(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3/8": "10.0.0.0/8", "127.0.0.1": "127.0.0.1/32", "fd00::/8": "fd00::/8", "x": "", "10": ""} {
		p, err := ParsePrefix(in)
		if (err != nil) != (want == "") || err == nil && p.String() != want {
			t.Errorf("%s: %s, %v", in, p, err)
		}
	}
	if !Private(netip.MustParseAddr("::ffff:10.0.0.1")) || Private(netip.MustParseAddr("93.184.216.34")) {
		t.Error("private")
	}
}

// The header is not sent to another server after a redirect, nor to the first server if the other
// redirects back.
func TestHeaderOfAPostStaysWithItsServer(t *testing.T) {
	seen := map[string]string{}
	var first, second *httptest.Server
	handler := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen[r.Host+r.URL.Path] = r.Header.Get("Authorization") + r.Header.Get("X-Hub-Signature") + string(b)
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/moved", http.StatusPermanentRedirect)
		case "/moved":
			http.Redirect(w, r, second.URL+"/other", http.StatusPermanentRedirect)
		case "/other":
			http.Redirect(w, r, first.URL+"/back", http.StatusPermanentRedirect)
		}
	}
	first, second = httptest.NewServer(http.HandlerFunc(handler)), httptest.NewServer(http.HandlerFunc(handler))
	defer first.Close()
	defer second.Close()
	c := NewClient(Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxRedirects: 5})
	defer c.Close()
	header := http.Header{"Authorization": {"Basic x"}, "X-Hub-Signature": {"sha256=0"}}
	if a, err := c.Post(context.Background(), &Post{URL: first.URL + "/same", Body: []byte(" body"), Header: header}); err != nil || !a.Success() {
		t.Fatal(a, err)
	}
	for url, want := range map[string]string{first.URL + "/same": "Basic xsha256=0 body", first.URL + "/moved": "Basic xsha256=0 body", second.URL + "/other": " body", first.URL + "/back": " body"} {
		if got := seen[strings.TrimPrefix(url, "http://")]; got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
	if len(header) != 2 {
		t.Errorf("the caller's own: %v", header)
	}
}

// Methods that have no body, and one whose body would be of a kind that it does not have.
func TestPostWithoutBody(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, kind := r.Header["Content-Type"]
		got = fmt.Sprintf("%s %v %d %d", r.Method, kind, r.ContentLength, len(b))
		w.Header().Set("Etag", `"1"`)
		io.WriteString(w, "answer")
	}))
	defer s.Close()
	c := NewClient(Config{})
	defer c.Close()
	for method, want := range map[string]string{"HEAD": "HEAD false 0 0", "GET": "GET false 0 0", "MKCOL": "MKCOL false 0 0"} {
		a, err := c.Post(t.Context(), &Post{URL: s.URL, Method: method, Chosen: true})
		if err != nil || !a.Success() || got != want || (len(a.Body) == 0) != (method == "HEAD") {
			t.Errorf("%s: %v, %+v; sent %s, want %s", method, err, a, got, want)
			continue
		}
		if etag, modified := httpmsg.Validators(textproto.MIMEHeader(a.Header)); etag != `"1"` || modified != "" {
			t.Errorf("%s: %s, %s", method, etag, modified)
		}
	}
	if _, err := c.Post(t.Context(), &Post{URL: s.URL, ContentType: "text/x-opml", Body: []byte("x"), Chosen: true}); err != nil || got != "POST true 1 1" {
		t.Errorf("%v, %s", err, got)
	}
}
