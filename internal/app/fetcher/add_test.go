package fetcher

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/testkit/server"
)

// The header of a feed goes with the first request and the next, to its own
// server only.
func TestAddHeaders(t *testing.T) {
	var asked []string
	handler := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path+" "+r.Header.Get("X-Token"))
			w.Write([]byte(body))
		}
	}
	other, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	s, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	feed := server.RSS("Feed", 1, 1)
	other.Handle("/feed", handler(feed))
	s.Handle("/feed", handler(feed))
	s.Handle("/own.html", handler(`<html><link rel=alternate type=application/rss+xml href=/feed>`))
	s.Handle("/strange.html", handler(`<html><link rel=alternate type=application/rss+xml href=`+other.URL("/feed")+`>`))

	o := AddOptions{Common: Common{Dir: filepath.Join(t.TempDir(), "feeds")}, Headers: []string{"X-Token: t"}}
	o.Fetch.PerHost = 1
	add := func(url string) string {
		var said bytes.Buffer
		streams := command.NewStreams("lektor-fetch", strings.NewReader(""), &said, &said)
		o.Sources = []string{url}
		if err := Add(t.Context(), o, streams); err != nil {
			t.Error(err)
		}
		return said.String()
	}
	if said := add(s.URL("/strange.html")); !strings.Contains(said, "links to a feed of another server") {
		t.Error(said)
	}
	if said := add(s.URL("/own.html")); !strings.Contains(said, "subscribed (Feed), 1 entry") {
		t.Error(said)
	}
	var said bytes.Buffer
	if err := Update(t.Context(), UpdateOptions{Common: o.Common, All: true}, command.NewStreams("lektor-fetch", nil, &said, &said)); err != nil {
		t.Error(err, said.String())
	}
	if got := strings.Join(asked, "; "); got != "/strange.html t; /own.html t; /feed t; /feed t" {
		t.Error(got)
	}
	o.Headers = []string{"nonsense"}
	if err := Add(t.Context(), o, command.NewStreams("lektor-fetch", nil, &said, &said)); !command.IsUsage(err) {
		t.Error(err)
	}
}
