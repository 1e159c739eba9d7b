package websub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
)

func links(list []feedconv.Link) string {
	var out []string
	for _, l := range list {
		out = append(out, l.Rel+" "+l.URL)
	}
	return strings.Join(out, ", ")
}

// Section 4: links in header fields come before those in the document.
func TestDiscoveryOrder(t *testing.T) {
	doc := []feedconv.Link{{Rel: "hub", URL: "http://doc.example/hub"}, {Rel: "self", URL: "http://doc.example/self"}, {Rel: "next", URL: "n"}}
	for _, tc := range []struct {
		header []string
		want   string
	}{
		{nil, "hub http://doc.example/hub, self http://doc.example/self, next n"},
		{[]string{`<http://a.example/hub>; rel="hub", <http://a.example/feed>; rel="self"`}, "hub http://a.example/hub, self http://a.example/feed, next n"},
		{[]string{`<http://a.example/hub>; rel="hub"`, `<http://b.example/hub>;rel=hub`}, "hub http://a.example/hub, hub http://b.example/hub, self http://doc.example/self, next n"},
		{[]string{`</feed>; title="a, b; rel=hub"; rel="alternate self"`}, "self http://a.example/feed, hub http://doc.example/hub, next n"},
		{[]string{`<x>; rel=next`, `<broken`, `garbage; rel=hub`, ``, `<a>;rel`, `<b>;;=,;"`}, "hub http://doc.example/hub, self http://doc.example/self, next n"},
	} {
		if got := links(Links(textproto.MIMEHeader{"Link": tc.header}, "http://a.example/x/y", doc)); got != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.header, got, tc.want)
		}
	}
}

func client(t *testing.T) *fetch.Client {
	c := fetch.NewClient(fetch.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(c.Close)
	return c
}

// Section 5.1: parameters, 202, 307 and 308, errors.
func TestSubscriptionRequest(t *testing.T) {
	status, answer := 202, ""
	var forms []url.Values
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		q, _ := url.ParseQuery(string(b))
		forms = append(forms, q)
		if r.URL.Path == "/307" || r.URL.Path == "/308" {
			w.Header().Set("Location", "/hub")
			fmt.Sscan(r.URL.Path[1:], &status)
			w.WriteHeader(status)
			status = 202
			return
		}
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	defer s.Close()
	c := client(t)
	send := func(path string) error {
		return Send(context.Background(), c, Request{Mode: Subscribe, Hub: s.URL + path, Callback: "http://me.example/t", Topic: "http://a.example/feed", Lease: time.Hour, Secret: "s3cret"})
	}
	for _, path := range []string{"/hub", "/307", "/308"} {
		forms = nil
		if err := send(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		q := forms[len(forms)-1]
		if q.Get("hub.mode") != "subscribe" || q.Get("hub.callback") != "http://me.example/t" || q.Get("hub.topic") != "http://a.example/feed" || q.Get("hub.lease_seconds") != "3600" {
			t.Errorf("%s: %v", path, q)
		}
		if q.Has("hub.secret") {
			t.Errorf("the secret was sent unencrypted")
		}
	}
	status, answer = 404, "no such \x1b[2Jtopic"
	var refused *fetch.RefusedError
	if err := send("/hub"); !errors.As(err, &refused) || refused.Message != "no such [2Jtopic" {
		t.Error(err)
	}
	status = 500
	var other *httpmsg.StatusError
	if err := send("/hub"); !errors.As(err, &other) {
		t.Error(err)
	}
}

// Sections 5.2 and 5.3.
func TestIntent(t *testing.T) {
	q := url.Values{"hub.mode": {"subscribe"}, "hub.topic": {"t"}, "hub.challenge": {"c"}, "hub.lease_seconds": {"60"}}
	in, err := ParseIntent(q)
	if err != nil || in.Lease != time.Minute || in.Challenge != "c" {
		t.Error(in, err)
	}
	for name, value := range map[string]string{"hub.mode": "publish", "hub.topic": "", "hub.challenge": strings.Repeat("x", MaxChallenge+1)} {
		old := q.Get(name)
		q.Set(name, value)
		if _, err := ParseIntent(q); err == nil {
			t.Errorf("got %s; want err != nil", name)
		}
		q.Set(name, old)
	}
	if in, err := ParseIntent(url.Values{"hub.mode": {"denied"}, "hub.topic": {"t"}, "hub.reason": {"no\nway"}}); err != nil || in.Reason != "no way" {
		t.Error(in, err)
	}
	if _, err := ParseIntent(url.Values{}); !errors.Is(err, ErrNoIntent) {
		t.Error(err)
	}
	for _, lease := range []string{"-1", "x", "", "999999999999999999"} {
		q.Set("hub.lease_seconds", lease)
		if in, err := ParseIntent(q); err != nil || in.Lease < 0 {
			t.Error(lease, in, err)
		}
	}
}

// Section 8: each algorithm, against values of another implementation
// (openssl dgst -HMAC).
func TestSignatures(t *testing.T) {
	for _, want := range []string{
		"sha1=2088df74d5f2146b48146caf4965377e9d0be3a4",
		"sha256=6e9ef29b75fffc5b7abae527d58fdadb2fe42e7219011976917343065f58ed4a",
		"sha384=0fd3ae3237be98c64a075b7394989fc6789f31788fada42eada85ee6698bde2feae20b66271b67544b9062c773b2d86f",
		"sha512=e477384d7ca229dd1426e64b63ebf2d36ebd6d7e669a6735424e72ea6c01d3f8b56eb39c36d8232f5427999b8d1a3f9cd1128fc69f4d75b434216810fa367e98",
	} {
		method, _, _ := strings.Cut(want, "=")
		if got := Sign(method, "key", []byte("message")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, method := range []string{"sha1", "sha256", "sha384", "sha512"} {
		s, err := ParseSignature(Sign(method, "key", []byte("message")))
		if err != nil {
			t.Fatal(err)
		}
		h := s.Hash("key")
		io.WriteString(h, "message")
		if !s.Matches(h) {
			t.Error(method)
		}
		h = s.Hash("other")
		io.WriteString(h, "message")
		if s.Matches(h) {
			t.Error(method)
		}
	}
	for _, bad := range []string{"", "sha256", "md5=00", "sha256=xyz", "none="} {
		if _, err := ParseSignature(bad); err == nil {
			t.Error(bad)
		}
	}
	if Strength("sha1") >= Strength("sha256") || Strength("") != 0 {
		t.Error("strengths")
	}
}

func FuzzParseIntent(f *testing.F) {
	f.Add("hub.mode=subscribe&hub.topic=t&hub.challenge=c&hub.lease_seconds=1")
	f.Fuzz(func(t *testing.T, query string) {
		q, _ := url.ParseQuery(query)
		in, err := ParseIntent(q)
		if err == nil && (in.Lease < 0 || len(in.Challenge) > MaxChallenge && in.Mode != Denied) {
			t.Fatal(in)
		}
	})
}

func TestFuzzSeedsAreThere(t *testing.T) {
	for _, target := range []string{"FuzzParseIntent"} {
		if seeds, _ := filepath.Glob(filepath.Join("testdata", "fuzz", target, "*")); len(seeds) < 2 {
			t.Errorf("%s has %d seeds", target, len(seeds))
		}
	}
	if _, err := os.Stat("testdata"); err != nil {
		t.Error(err)
	}
}

// Section 5.1: "Hubs MAY choose to respect this value or not, depending on their own
// policies". A hub that refuses a lease is asked again without one.
func TestLeaseThatIsRefused(t *testing.T) {
	var leases []string
	status := http.StatusBadRequest
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leases = append(leases, r.FormValue("hub.lease_seconds"))
		if r.FormValue("hub.lease_seconds") != "" {
			http.Error(w, "lease_seconds is out of range", status)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer s.Close()
	r := Request{Mode: Subscribe, Hub: s.URL, Callback: "http://me.example/t", Topic: "http://a.example/feed", Lease: time.Hour}
	for _, tc := range []struct {
		status, requests int
		ok               bool
	}{{http.StatusBadRequest, 2, true}, {http.StatusUnprocessableEntity, 2, true}, {http.StatusForbidden, 1, false}, {http.StatusNotFound, 1, false}} {
		leases, status = nil, tc.status
		if err := Send(context.Background(), client(t), r); (err == nil) != tc.ok || len(leases) != tc.requests || leases[0] != "3600" {
			t.Errorf("%d: got %v, %q; want (err == nil) == tc.ok and len(leases) == tc.requests and leases[0] == \"3600\"", tc.status, err, leases)
		}
	}
	// If both requests are refused, the error quotes the first response.
	r.Topic = ""
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no topic, lease "+r.FormValue("hub.lease_seconds"), http.StatusBadRequest)
	})
	if err := Send(context.Background(), client(t), r); err == nil || !strings.Contains(err.Error(), "lease 3600") {
		t.Error(err)
	}
}
