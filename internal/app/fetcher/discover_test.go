package fetcher

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// subscribeToPage subscribes as lektor-serve does for a client.
func subscribeToPage(t *testing.T, r *Runner, url string) (hash string) {
	t.Helper()
	s := &subscriptions.Subscription{ID: url, Alias: "Mine", Categories: []string{"News"}, Origin: "a client", Discover: true}
	if _, err := subscriptions.Add(r.Writer, r.Dir, s, subscriptions.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	return s.Hash
}

// fileOf returns the text of a file of a feed.
func fileOf(r *Runner, hash, name string) string {
	b, _ := os.ReadFile(filepath.Join(r.Dir.Join("src", hash), name))
	return string(b)
}

// A subscription to a page becomes its feed at the first visit: the same feed that add subscribes to, with
// the settings of the subscription.
func TestDiscover(t *testing.T) {
	const page = "<title>A page</title><link rel=alternate type=application/rss+xml "
	for _, tc := range []struct {
		name, body string
		same       bool   // the URL is that of the feed
		failed     string // a part of the error if there is no feed
	}{
		{"a page", page + "title=Feed href=/feed>", false, ""},
		{"several feeds", page + "title='Comments of A page' href=/comments/feed>" + page + "href=/feed>" + page + "href=/other>", false, ""},
		{"a page that refreshes", "<meta http-equiv=refresh content='0; url=/blog'>", false, ""},
		{"a feed", server.RSS("Feed", 0, 2), true, ""},
		{"a page without links", "<title>A page</title>", false, ""},
		{"no feed", "<title>No feed</title>", false, "links to no feed"},
		{"itself", page + "href=/>", false, "a page in place of the feed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			allow := Options{Fetch: fetch.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
			r, s, l := setup(t, allow)
			s.Handle("/", server.Doc("", tc.body))
			s.Handle("/blog", server.Doc("", page+"href=/feed>"))
			if tc.name != "no feed" {
				s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 2)))
			}
			hash := subscribeToPage(t, r, s.URL("/"))
			sum, err := r.Update(t.Context(), Selection{})
			if tc.failed != "" {
				if text := subscriptions.NeverRead(r.Dir, hash); err != nil || sum.Failed != 1 || !strings.Contains(text, tc.failed) || fileOf(r, hash, "etc/fetch/discover") == "" {
					t.Errorf("%+v, %v, %q; want a failure with %q", sum, err, text, tc.failed)
				}
				return
			}
			if err != nil || sum.New != 2 || len(s.Requests("/")) != 1 || len(s.Requests("/feed")) > 1 {
				t.Fatalf("%+v, %v, %d requests of the page, %d of the feed\n%s", sum, err, len(s.Requests("/")), len(s.Requests("/feed")), l)
			}
			other, err := New(create(t), &log{}, allow)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			want, err := other.Add(t.Context(), s.URL("/"), AddOptions{Look: LookAround, First: true})
			if err != nil {
				t.Fatal(err)
			}
			if !feedfiles.Subscribed(r.Dir, want.Hash) || fileOf(r, want.Hash, "id") != fileOf(other, want.Hash, "id") || fileOf(r, want.Hash, "etc/view/alias") != "Mine\n" || fileOf(r, want.Hash, "etc/categories") != "News\n" {
				t.Errorf("add subscribes to %+v", want)
			}
			if tc.same {
				if hash != want.Hash || fileOf(r, hash, "etc/fetch/discover") != "" || fileOf(r, hash, "etc/fetch/origin") != "a client\n" {
					t.Error("the feed is looked for again, or has another origin")
				}
				return
			}
			origin := fileOf(other, want.Hash, "etc/fetch/origin")
			if origin == "" { // the feed was guessed from what the user, here the client, has named
				origin = "a client\n"
			}
			if got := fileOf(r, want.Hash, "etc/fetch/origin"); got != origin {
				t.Errorf("the origin is %q, want %q", got, origin)
			}
			if feedfiles.Subscribed(r.Dir, hash) || subscriptions.Successor(r.Dir, hash) != want.Hash {
				t.Errorf("subscribed to the page: %t; it became %q", feedfiles.Subscribed(r.Dir, hash), subscriptions.Successor(r.Dir, hash))
			}
			if sum, err := r.Update(t.Context(), Selection{}); err != nil || sum.Feeds != 0 {
				t.Errorf("%+v, %v; want nothing due", sum, err)
			}
		})
	}
}

// After a kill between the two steps, in which the subscription to the page is there beside that to its
// feed, the next run ends the first one. A page whose feed was subscribed to before is the same case.
func TestDiscoverKilled(t *testing.T) {
	r, s, _ := setup(t, Options{Fetch: fetch.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	s.Handle("/", server.Doc("", "<link rel=alternate type=application/rss+xml href=/feed>"))
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 2)))
	feed, err := r.Add(t.Context(), s.URL("/feed"), AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hash := subscribeToPage(t, r, s.URL("/"))
	sum, err := r.Update(t.Context(), Selection{})
	if err != nil || sum.Failed+sum.Broken+sum.New != 0 || feedfiles.Subscribed(r.Dir, hash) || subscriptions.Successor(r.Dir, hash) != feed.Hash || !feedfiles.Subscribed(r.Dir, feed.Hash) {
		t.Errorf("%+v, %v, subscribed to the page: %t, to the feed: %t", sum, err, feedfiles.Subscribed(r.Dir, hash), feedfiles.Subscribed(r.Dir, feed.Hash))
	}
	if got := fileOf(r, feed.Hash, "etc/categories"); got != "News\n" { // that a client put the page into
		t.Errorf("the folders are %q", got)
	}
	// A kill before the url is written leaves the request for discovery to nobody.
	dir := r.Dir.Join("src", lektordir.FeedHash(s.URL("/other")), "etc/fetch")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "discover"), []byte("yes\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if other := subscribeTo(t, r, s.URL("/other"))[0]; fileOf(r, other, "etc/fetch/discover") != "" {
		t.Error("another subscription has it")
	}
}

// The feed of a page is no feed of a page that a server answers in its place.
func TestDiscoverInPlace(t *testing.T) {
	r, s, _ := setup(t, Options{Fetch: fetch.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	s.Handle("/category/x.xml", server.Doc("", "<title>Home</title><link rel=alternate type=application/rss+xml href=/feed>"))
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 2)))
	hash := subscribeToPage(t, r, s.URL("/category/x.xml"))
	if sum, err := r.Update(t.Context(), Selection{}); err != nil || sum.Failed != 1 || !feedfiles.Subscribed(r.Dir, hash) || feedfiles.Subscribed(r.Dir, lektordir.FeedHash(s.URL("/feed"))) {
		t.Errorf("%+v, %v", sum, err)
	}
}
