package websub

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A hub reads the request of a subscriber as it was sent. A subscriber reads the challenge and
// the signature of a hub.
func TestHubReadsWhatSubscribersSend(t *testing.T) {
	var got Request
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(b))
		var err error
		if got, err = ParseRequest(form); err != nil {
			t.Error(err)
		}
		w.WriteHeader(202)
	}))
	defer hub.Close()
	want := Request{Mode: Subscribe, Hub: hub.URL, Callback: "http://me.example/?a=b&hub.mode=x", Topic: "http://a.example/?c=d", Lease: time.Hour}
	if err := Send(t.Context(), client(t), want); err != nil {
		t.Fatal(err)
	}
	want.Hub = ""
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var intent Intent
	var signature, secret = "", "s"
	subscriber := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			intent, _ = ParseIntent(r.URL.Query())
			io.WriteString(w, intent.Challenge)
			return
		}
		b, _ := io.ReadAll(r.Body)
		s, err := ParseSignature(r.Header.Get("X-Hub-Signature"))
		if err != nil {
			t.Fatal(err)
		}
		h := s.Hash(secret)
		h.Write(b)
		if signature = s.Method; !s.Matches(h) {
			t.Error("the signature is wrong")
		}
	}))
	defer subscriber.Close()
	want.Callback = subscriber.URL + "/?x=y#z"
	if err := Verify(t.Context(), client(t), want, "abc"); err != nil || intent.Mode != Subscribe || intent.Topic != want.Topic || intent.Lease != time.Hour {
		t.Errorf("got %+v, %v; want err == nil and intent.Mode == Subscribe and intent.Topic == want.Topic and intent.Lease == time.Hour", intent, err)
	}
	Deny(t.Context(), client(t), want, "because")
	if intent.Mode != Denied || intent.Reason != "because" {
		t.Errorf("got %+v; want intent.Mode == Denied and intent.Reason == \"because\"", intent)
	}
	if gone, err := Deliver(t.Context(), client(t), want.Callback, secret, Content{Body: []byte("x")}); gone || err != nil || signature != "sha256" {
		t.Error(gone, err, signature)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add("hub.mode=subscribe&hub.callback=http://a.example/&hub.topic=http://b.example/")
	f.Fuzz(func(t *testing.T, body string) {
		form, _ := url.ParseQuery(body)
		if r, err := ParseRequest(form); err == nil {
			for _, s := range []string{r.Callback, r.Topic} {
				u, err := url.Parse(with(s, url.Values{"hub.mode": {"x"}}))
				if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") || strings.ContainsAny(s, "\r\n") {
					t.Fatalf("%q: %v", s, err)
				}
			}
			if r.Lease < 0 || len(r.Secret) > MaxSecret {
				t.Fatalf("got %+v; want r.Lease >= 0 and len(r.Secret) <= MaxSecret", r)
			}
		}
		ParsePublish(form)
	})
}
