package ess

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// A public feed cannot cause a request to a private address by naming an ESS document there,
// unless the user names the document or allows the address.
func TestPollOfPrivateAddressNamedByAFeed(t *testing.T) {
	b := newBench(t)
	const feed = "http://public.example/feed"
	link := b.s.URL("/inner.ess")
	b.serve("inner")
	d := &testdir.Dir{Path: b.dir}
	if _, err := d.Feed(feed, "Public", "etc/fetch/url="+feed, "etc/ess/link="+link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		feeds []string
		allow bool
		asks  bool
	}{
		{nil, false, false},
		{[]string{feed}, false, false},
		{[]string{link}, false, true},
		{nil, true, true},
	} {
		b.s.Forget("/inner.ess")
		o := PollOptions{Common: b.common(), N: 1, Feeds: c.feeds}
		// Failures delay the next request.
		if c.allow {
			b.now = b.now.AddDate(1, 0, 0)
			o.Common = b.common()
			o.Fetch.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		}
		s, _, msg := streams("")
		err := Poll(t.Context(), o, s)
		asked := len(b.s.Requests("/inner.ess")) > 0
		if asked != c.asks || (err == nil) != c.asks || !c.asks && !strings.Contains(msg.String(), "named by "+feed+", which is public") && c.feeds != nil {
			t.Errorf("%+v: asked %v, %v\n%s", c, asked, err, msg)
		}
	}
}

// Subscriptions that were made from an NNO record the document that names the feed as their origin, so
// it cannot cause a request to a private address. The user chose the document, but another wrote it,
// also if it came as a file or by a pipe.
func TestResolveRecordsTheOriginOfSubscriptions(t *testing.T) {
	const feed = "http://10.0.0.1/feed"
	nno := fmt.Sprintf("%d,\n%s,5,27,", begin.Unix()/60*60, feed)
	other := strings.Replace(nno, feed, "http://10.0.0.2/feed", 1)
	b := newBench(t)
	b.s.Handle("/all.nno", server.Doc("application/nno", nno))
	b.s.Handle("/other.nno", server.Doc("application/nno", other))
	file := filepath.Join(t.TempDir(), "two\nlines.nno")
	if err := os.WriteFile(file, []byte(nno), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		documents []string
		want      string
	}{
		{[]string{b.s.URL("/all.nno")}, b.s.URL("/all.nno")},
		{[]string{b.s.URL("/other.nno"), b.s.URL("/all.nno")}, b.s.URL("/all.nno")},
		{[]string{file}, strings.ReplaceAll(file, "\n", " ")},
		{[]string{"-"}, "standard input"},
	} {
		o := ResolveOptions{Common: b.common(), Documents: c.documents, Subscribe: true}
		o.Dir = filepath.Join(t.TempDir(), "lektor")
		d, err := lektordir.Create(o.Dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, _, msg := streams(nno)
		if err := Resolve(t.Context(), o, s); err != nil {
			t.Log(err) // the entry is still missing
		}
		st, err := schedule.Load(d, lektordir.FeedHash(feed))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := st.Request(); err != nil || r.URL != feed || r.Origin != c.want {
			t.Errorf("%q: got %+v, %v\n%s; want %s from %s", c.documents, r, err, msg, feed, c.want)
		}
	}
}
