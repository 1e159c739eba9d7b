package listener

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/hub"
	"github.com/lektordir/lektor/internal/testkit/server"
)

// This test has a tenth of the planned number of feeds, and counts the gaps between requests
// without waiting. "make bench" has all of them, in real time.
func TestManyFeedsAtSeveralHubsArePolite(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	hubs := []*hub.Hub{w.hub}
	urls := []string{w.plain}
	for range 4 {
		h := &hub.Hub{}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		t.Cleanup(h.Wait)
		hubs, urls = append(hubs, h), append(urls, s.URL)
	}
	var gaps atomic.Int64
	w.opts.Fetch.PerHost, w.opts.Fetch.Gap = 2, 100*time.Millisecond
	w.opts.Fetch.Sleep = func(ctx context.Context, d time.Duration) error {
		gaps.Add(int64(d))
		w.clock.Add(d)
		return ctx.Err()
	}
	w.restart()
	const feeds = 500
	for i := range feeds {
		push := "hub=" + urls[i%5] + "/websub"
		if i%2 == 0 {
			push = cloudAt(t, urls[i%5], "/rsscloud/pleaseNotify")
		}
		w.feed(fmt.Sprintf("http://f%d.example/", i), push)
	}
	w.step()
	for _, h := range hubs {
		h.Wait()
		if n, most := h.Requests(); most > 2 || n != 53 { // 3 batches of the cloud's 50 feeds, and one request for each of 50 by WebSub
			t.Errorf("%d requests, %d at once", n, most)
		}
		if n := len(h.Registrations()) + len(h.Subscriptions()); n != 100 {
			t.Errorf("%d registrations", n)
		}
	}
	if gaps.Load() == 0 {
		t.Error("there were no gaps between requests")
	}
	if states, _ := filepath.Glob(w.dir.Join("src/*/etc/cloudd/state")); len(states) != feeds {
		t.Errorf("%d states", len(states))
	}
}

// A hundred notifications during the fetch of a feed cause one more fetch.
func TestNotificationDuringTheFetchCausesOneMore(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) { o.Cooldown = 0 })
	s, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fetching, goOn := make(chan bool), make(chan bool)
	s.Handle("/feed", func(rw http.ResponseWriter, r *http.Request) {
		fetching <- true
		<-goOn
		server.Doc("", server.RSS("x", 0, 1))(rw, r)
	}, server.Doc("", server.RSS("x", 1, 1)))
	a := w.feed(s.URL("/feed"), w.cloud("/rsscloud/pleaseNotify", "http-post"))
	if _, err := w.test.Feed("urn:x:plain", "x", "etc/fetch/url"); err != nil {
		t.Fatal(err)
	}
	w.step()
	streams := cmdline.NewStreams("test", nil, &discard{}, &discard{})
	r, err := fetcher.New(w.dir, streams.Report, fetcher.Options{Jobs: 4, Fetch: fetch.Config{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	ready := make(chan bool)
	go func() { done <- r.Watch(ctx, func() { close(ready) }) }()
	<-ready
	<-fetching // a new feed is due
	for range 100 {
		if err := w.hub.Notify(s.URL("/feed")); err != nil {
			t.Fatal(err)
		}
	}
	goOn <- true
	until(t, "one more fetch", func() bool {
		entries, _ := filepath.Glob(w.dir.Join("new", a, "*"))
		return len(entries) == 2 && w.markers() == 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.Close()
	if n := len(s.Requests("/feed")); n != 2 {
		t.Errorf("%d fetches", n)
	}
}

type discard struct{}

func (*discard) Write(b []byte) (int, error) { return len(b), nil }
