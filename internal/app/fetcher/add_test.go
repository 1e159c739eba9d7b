package fetcher

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/server"
)

// saidBy runs a command, and returns its output and its error as a user sees them.
func saidBy(f func(*cmdline.Streams) error) string {
	var said bytes.Buffer
	streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &said, &said)
	if err := f(streams); err != nil {
		streams.Report.Print(err)
	}
	return said.String()
}

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
	other, s := server.Start(t, "127.0.0.1"), server.Start(t, "127.0.0.1")
	feed := server.RSS("Feed", 1, 1)
	other.Handle("/feed", handler(feed))
	s.Handle("/feed", handler(feed))
	s.Handle("/own.html", handler(`<html><link rel=alternate type=application/rss+xml href=/feed>`))
	s.Handle("/strange.html", handler(`<html><link rel=alternate type=application/rss+xml href=`+other.URL("/feed")+`>`))

	o := AddOptions{Common: Common{Dir: filepath.Join(t.TempDir(), "feeds")}, Headers: []string{"X-Token: t"}}
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
	if err := Add(t.Context(), o, cmdline.NewStreams("lektor-fetch", nil, &said, &said)); !errors.As(err, new(*cmdline.UsageError)) {
		t.Error(err)
	}
}

// A page on a public server cannot have a private address asked, now or later,
// unless the user allows it.
func TestAddPrivateAddress(t *testing.T) {
	s, public := server.Start(t, "127.0.0.1"), server.Start(t, "127.0.0.2")
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
	add := func(streams *cmdline.Streams) error { return Add(t.Context(), o, streams) }
	if said := saidBy(add); !strings.Contains(said, "named by http://public.example/, which is public") {
		t.Error(said)
	}
	o.NoFetch = true
	if said := saidBy(add); !strings.Contains(said, "subscribed") {
		t.Error(said)
	}
	said := saidBy(func(streams *cmdline.Streams) error {
		return Update(t.Context(), UpdateOptions{Common: o.Common, All: true}, streams)
	})
	if !strings.Contains(said, "1 failed") || !strings.Contains(said, ", which is public, so no request was made") {
		t.Error(said)
	}
	if n := len(s.Requests("/feed")); n != 0 {
		t.Errorf("%d requests", n)
	}
	o.Dir, o.NoFetch = filepath.Join(t.TempDir(), "feeds"), false
	o.Fetch.AllowPrivate = append(o.Fetch.AllowPrivate, netip.MustParsePrefix("127.0.0.1/32"))
	if said := saidBy(add); !strings.Contains(said, "subscribed (Feed), 1 entry") {
		t.Error(said)
	}
}

// A public server to which the user subscribed moves the feed to another name, and later that name
// becomes a private address.
func TestMovedToPrivateAddress(t *testing.T) {
	private, public := server.Start(t, "127.0.0.1"), server.Start(t, "127.0.0.2")
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
	update := func(streams *cmdline.Streams) error {
		u := UpdateOptions{Common: o.Common, All: true}
		u.Fetch = o.Fetch
		return Update(t.Context(), u, streams)
	}
	if said := saidBy(func(streams *cmdline.Streams) error { return Add(t.Context(), o, streams) }); !strings.Contains(said, "subscribed (Feed), 1 entry") {
		t.Fatal(said)
	}
	saidBy(update)
	if said := saidBy(update); !strings.Contains(said, "moved permanently; it is fetched from http://other.example/feed") {
		t.Fatal(said)
	}
	other = private
	if said := saidBy(update); !strings.Contains(said, "1 failed") || !strings.Contains(said, "named by http://public.example/, which is public") {
		t.Error(said)
	}
	if n := len(private.Requests("/feed")); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// If a feed cannot be fetched, add promises nothing for a feed that it does not subscribe to, and says
// what can be done; the messages about a subscribed feed say what happens next.
func TestAddSaysWhetherItSubscribed(t *testing.T) {
	for _, tc := range []struct {
		status     int
		hint       string // of add
		subscribed string // in the message about a subscribed feed
	}{
		{401, "--header", "etc/fetch/headers"},
		{403, "--header", "etc/fetch/headers"},
		{404, "check the address", "if this continues"},
		{410, "the feed has ended", "once a month from now on"},
		{429, "try again later", "less frequent from now on"},
		{500, "try again later", "repeated later"},
		{503, "try again later", "repeated later"},
	} {
		s := server.Start(t, "127.0.0.1")
		s.Handle("/feed", server.Answer(tc.status, ""))
		o := AddOptions{Common: Common{Dir: filepath.Join(t.TempDir(), "feeds")}, Sources: []string{s.URL("/feed")}}
		add := func(streams *cmdline.Streams) error { return Add(t.Context(), o, streams) }
		said := saidBy(add)
		if !strings.Contains(said, "hint: ") || !strings.Contains(said, tc.hint) || strings.Contains(said, tc.subscribed) || strings.Contains(said, "all the same") {
			t.Errorf("%d: %s", tc.status, said)
		}
		o.Look, o.Steps = LookNowhere, true
		if said := saidBy(add); !strings.Contains(said, tc.subscribed) || !strings.Contains(said, "hint: the feed is subscribed all the same") || !strings.Contains(said, "subscribed\t") {
			t.Errorf("%d, as it is: %s", tc.status, said)
		}
		if said := saidBy(add); strings.Contains(said, "hint: ") || !strings.Contains(said, "already subscribed") {
			t.Errorf("%d, again: %s", tc.status, said)
		}
	}
}
