package fetcher

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cmdline"
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

	o := AddOptions{Common: Common{Dir: filepath.Join(t.TempDir(), "feeds")}, Settings: Settings{Headers: []string{"X-Token: t"}}}
	o.Fetch.PerHost = 1
	add := func(url string) string {
		var said bytes.Buffer
		streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &said, &said)
		o.Sources = []string{url}
		if err := Add(t.Context(), o, streams); err != nil {
			t.Error(err)
		}
		return said.String()
	}
	if said := add(s.URL("/strange.html")); !strings.Contains(said, "links to a feed on another server") {
		t.Error(said)
	}
	if said := add(s.URL("/own.html")); !strings.Contains(said, "subscribed (Feed), 1 entry") {
		t.Error(said)
	}
	var said bytes.Buffer
	if err := Update(t.Context(), UpdateOptions{Common: o.Common, All: true}, cmdline.NewStreams("lektor-fetch", nil, &said, &said)); err != nil {
		t.Error(err, said.String())
	}
	if got := strings.Join(asked, "; "); got != "/strange.html t; /own.html t; /feed t; /feed t" {
		t.Error(got)
	}
	o.Headers = []string{"nonsense"}
	if err := Add(t.Context(), o, cmdline.NewStreams("lektor-fetch", nil, &said, &said)); !cmdline.IsUsage(err) {
		t.Error(err)
	}
}

// A page on a public server cannot have a private address asked, now or later,
// unless the user allows it.
func TestAddPrivateAddress(t *testing.T) {
	s, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	public, err := server.New("127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(public.Close)
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 1)))
	public.Handle("/", server.Doc("text/html", `<html><link rel=alternate type=application/rss+xml href=`+s.URL("/feed")+`>`))
	o := AddOptions{Common: Common{Dir: filepath.Join(t.TempDir(), "feeds")}, Sources: []string{"http://public.example/"}}
	o.Fetch.PerHost = 1
	o.Fetch.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	o.Fetch.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "public.example:80" {
			addr = strings.TrimPrefix(public.URL(""), "http://")
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	run := func(f func(*cmdline.Streams) error) string {
		var said bytes.Buffer
		streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &said, &said)
		if err := f(streams); err != nil {
			streams.Report.Print(err)
		}
		return said.String()
	}
	add := func(streams *cmdline.Streams) error { return Add(t.Context(), o, streams) }
	if said := run(add); !strings.Contains(said, "named by the public document http://public.example/") {
		t.Error(said)
	}
	o.NoFetch = true
	if said := run(add); !strings.Contains(said, "subscribed") {
		t.Error(said)
	}
	said := run(func(streams *cmdline.Streams) error {
		return Update(t.Context(), UpdateOptions{Common: o.Common, All: true}, streams)
	})
	if !strings.Contains(said, "1 failed") || !strings.Contains(said, "named by the public document") {
		t.Error(said)
	}
	if n := len(s.Requests("/feed")); n != 0 {
		t.Errorf("%d requests", n)
	}
	o.Dir, o.NoFetch = filepath.Join(t.TempDir(), "feeds"), false
	o.Fetch.AllowPrivate = append(o.Fetch.AllowPrivate, netip.MustParsePrefix("127.0.0.1/32"))
	if said := run(add); !strings.Contains(said, "subscribed (Feed), 1 entry") {
		t.Error(said)
	}
}

// A public server to which the user subscribed moves the feed to another name, and later that name
// becomes a private address.
func TestMovedToPrivateAddress(t *testing.T) {
	private, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(private.Close)
	public, err := server.New("127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(public.Close)
	private.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 1)))
	public.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 1)))
	public.Handle("/old", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://other.example/feed", http.StatusPermanentRedirect)
	})
	other := public
	var o AddOptions
	o.Dir, o.Sources = filepath.Join(t.TempDir(), "feeds"), []string{"http://public.example/old"}
	o.Fetch.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	o.Fetch.PerHost = 1
	o.Fetch.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		s := public
		if addr == "other.example:80" {
			s = other
		}
		return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(s.URL(""), "http://"))
	}
	run := func(f func(*cmdline.Streams) error) string {
		var said bytes.Buffer
		streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &said, &said)
		if err := f(streams); err != nil {
			streams.Report.Print(err)
		}
		return said.String()
	}
	update := func(streams *cmdline.Streams) error {
		u := UpdateOptions{Common: o.Common, All: true}
		u.Fetch = o.Fetch
		return Update(t.Context(), u, streams)
	}
	if said := run(func(streams *cmdline.Streams) error { return Add(t.Context(), o, streams) }); !strings.Contains(said, "subscribed (Feed), 1 entry") {
		t.Fatal(said)
	}
	for said := ""; !strings.Contains(said, "moved permanently; it is fetched from http://other.example/feed"); {
		if said = run(update); t.Failed() || strings.Contains(said, "failed") {
			t.Fatal(said)
		}
	}
	other = private
	if said := run(update); !strings.Contains(said, "1 failed") || !strings.Contains(said, "named by the public document http://public.example/") {
		t.Error(said)
	}
	if n := len(private.Requests("/feed")); n != 0 {
		t.Errorf("%d requests", n)
	}
}
