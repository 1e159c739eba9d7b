package ess

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/feedstate"
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

// Subscriptions that were made from an NNO record it as their origin, so it cannot cause a
// request to a private address either.
func TestResolveRecordsTheOriginOfSubscriptions(t *testing.T) {
	b := newBench(t)
	nno, feed := b.s.URL("/all.nno"), "http://10.0.0.1/feed"
	b.s.Handle("/all.nno", server.Doc("application/nno", fmt.Sprintf("%d,\n%s,5,27,", begin.Unix()/60*60, feed)))
	s, _, msg := streams("")
	if err := Resolve(t.Context(), ResolveOptions{Common: b.common(), Documents: []string{nno}, Subscribe: true}, s); err != nil {
		t.Log(err) // the entry is still missing
	}
	d, err := lektordir.Open(b.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := feedstate.Load(d, lektordir.FeedHash(feed))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := st.Request(); err != nil || r.URL != feed || r.Origin != nno {
		t.Errorf("got %+v, %v\n%s; want err == nil and r.URL == feed and r.Origin == nno", r, err, msg)
	}
}
