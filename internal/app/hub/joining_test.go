package hub

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An update that is published while a callback confirms its subscription reaches that
// subscriber, once, by whatever protocol, with or without other subscribers.
func TestAnUpdateWhileASubscriberConfirmsReachesIt(t *testing.T) {
	for _, protocol := range []string{"websub", "cloud"} {
		for _, others := range []bool{false, true} {
			for _, allowed := range []bool{false, true} {
				for _, by := range []string{"publish", "ping", "rpc"} {
					t.Run(fmt.Sprintf("%s others=%t allowed=%t %s", protocol, others, allowed, by), func(t *testing.T) {
						testUpdateWhileConfirming(t, protocol, others, allowed, by)
					})
				}
			}
		}
	}
}

func testUpdateWhileConfirming(t *testing.T, protocol string, others, allowed bool, by string) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	if allowed {
		w.h.shared.opts.Allowed = []string{feed}
	}
	if others {
		w.subscribe("subscribe", w.site.URL+"/other", feed)
		w.register("/other2", feed)
	}
	asked, confirm := make(chan bool), make(chan bool)
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Has("hub.challenge") || q.Has("challenge") {
			asked <- true
			<-confirm
		}
		fmt.Fprint(rw, q.Get("hub.challenge")+q.Get("challenge"))
	})
	joined := make(chan response)
	go func() {
		if protocol == "websub" {
			joined <- w.subscribe("subscribe", w.site.URL+"/cb", feed)
		} else {
			joined <- w.register("/cb", feed)
		}
	}()
	<-asked
	w.feed("/feed", "two")
	text := ""
	switch by {
	case "publish":
		w.form("/websub", "hub.mode", "publish", "hub.url", feed)
	case "ping":
		text = w.ping(feed).body
	default:
		w.rpc("rssCloud.ping", feed)
	}
	if others {
		until(t, "the notification of the others", func() bool { return len(w.got("POST", "/other")) == 1 && len(w.notified("/other2")) == 1 })
	} else if by == "ping" && !strings.Contains(text, "is read when a subscription to it is confirmed") {
		t.Error(text)
	}
	confirm <- true
	if r := <-joined; r.status > 202 {
		t.Fatalf("%+v", r)
	}
	w.settle()
	if protocol == "websub" {
		if got := w.got("POST", "/cb"); len(got) != 1 || got[0].body != "two" {
			t.Errorf("%d deliveries: %+v", len(got), got)
		}
	} else if got := w.notified("/cb"); !slices.Equal(got, []string{feed}) {
		t.Errorf("notified of %q", got)
	}
	w.ping(feed) // of the same document
	w.settle()
	n := len(w.got("POST", "/cb"))
	w.feed("/feed", "three")
	w.ping(feed)
	if w.settle(); n != 1 || len(w.got("POST", "/cb")) != 2 {
		t.Errorf("%d notifications of the second document, %d in all", n, len(w.got("POST", "/cb")))
	}
	if others && (len(w.got("POST", "/other")) != 2 || len(w.notified("/other2")) != 2) {
		t.Error("the others were notified again")
	}
}

// A subscription that is not confirmed, or one that is renewed, causes no notification of
// its own; nor does a change that nobody has pinged.
func TestNoNotificationWithoutNeed(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	refuse := make(chan bool)
	w.answer("/no", func(rw http.ResponseWriter, r *http.Request) { refuse <- true; <-refuse; http.NotFound(rw, r) })
	w.form("/websub", "hub.mode", "subscribe", "hub.callback", w.site.URL+"/no", "hub.topic", feed)
	<-refuse
	w.feed("/feed", "two")
	w.form("/websub", "hub.mode", "publish", "hub.url", feed)
	refuse <- true
	w.settle()
	if len(w.got("POST", "/no")) != 0 || len(w.tree()) != 0 || len(w.got("GET", "/feed")) != 1 {
		t.Errorf("after a refusal: %v", w.tree())
	}
	w.subscribe("subscribe", w.site.URL+"/a", feed)
	w.feed("/feed", "three")
	w.clock.Add(rememberFor)
	w.subscribe("subscribe", w.site.URL+"/b", feed) // reads what /a does not know
	if a, b := len(w.got("POST", "/a")), len(w.got("POST", "/b")); a+b != 0 {
		t.Errorf("not pinged, but %d and %d notifications", a, b)
	}
	asked := make(chan bool)
	w.answer("/a", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked <- true
			<-asked
		}
		fmt.Fprint(rw, r.FormValue("hub.challenge"))
	})
	w.form("/websub", "hub.mode", "subscribe", "hub.callback", w.site.URL+"/a", "hub.topic", feed)
	<-asked
	w.feed("/feed", "four")
	w.ping(feed)
	asked <- true
	w.settle()
	if a, b := len(w.got("POST", "/a")), len(w.got("POST", "/b")); a != 1 || b != 1 {
		t.Errorf("renewed during an update: %d and %d notifications", a, b)
	}
}

// A publish that waits for a subscription to be confirmed is on disk, and waits no longer
// than until one is confirmed.
func TestAPublishThatWaitsForAConfirmation(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	release := make(chan bool)
	asked := make(chan bool, 2)
	hold := func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked <- true
			<-release
		}
		fmt.Fprint(rw, r.FormValue("hub.challenge"))
	}
	w.answer("/slow", hold)
	w.form("/websub", "hub.mode", "subscribe", "hub.callback", w.site.URL+"/slow", "hub.topic", feed)
	<-asked
	w.feed("/feed", "two")
	w.form("/websub", "hub.mode", "publish", "hub.url", feed)
	if jobs := w.tree()["/jobs"]; !strings.Contains(jobs, "\tping\t") {
		t.Errorf("not on disk: %q", jobs)
	}
	w.form("/websub", "hub.mode", "subscribe", "hub.callback", w.site.URL+"/fast", "hub.topic", feed)
	until(t, "the notification of the fast one", func() bool { return len(w.got("POST", "/fast")) == 1 })
	release <- true
	w.settle()
	if got := w.got("POST", "/slow"); len(got) != 1 || got[0].body != "two" {
		t.Errorf("%+v", got)
	}
	if jobs := w.tree()["/jobs"]; jobs != "" {
		t.Errorf("%q", jobs)
	}
}

// The log and the answer to a ping say why nobody is notified.
func TestPingsWithoutEffectSayWhy(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	about := func() string { return w.h.shared.log.Recent()[0].About }
	for _, tc := range []struct {
		subscribe          bool
		answer, log, other string
	}{
		{false, "Nobody subscribes to the feed here.", "nobody subscribes to it", "not changed"},
		{true, "The feed has not changed since the last ping.", "it has not changed", "obody"},
	} {
		if tc.subscribe {
			w.subscribe("subscribe", w.site.URL+"/cb", feed)
		}
		for range 2 {
			if r := w.ping(feed); !strings.Contains(r.body, tc.answer) || strings.Contains(r.body, tc.other) || about() != tc.log {
				t.Errorf("%s, log %q", r.body, about())
			}
		}
		w.form("/websub", "hub.mode", "publish", "hub.url", feed)
		if w.settle(); about() != tc.log {
			t.Errorf("published: %q", about())
		}
		w.clock.Add(time.Minute)
	}
	w.h.shared.opts.Allowed = []string{w.site.URL}
	other := w.feed("/other", "one")
	if r := w.ping(other); !strings.Contains(r.body, "Nobody subscribes") || about() != "nobody subscribes to it" {
		t.Errorf("%s, log %q", r.body, about())
	}
}

// Subscribers that confirm among many updates know the last one in the end.
func TestSubscribersThatJoinAmongUpdatesKnowTheLastOne(t *testing.T) {
	w := newWorld(t, nil)
	const updates, subscribers = 30, 40
	var now atomic.Int64
	feed := w.feed("/feed", "0")
	confirmed, last := make([]int64, subscribers), make([]atomic.Value, subscribers)
	var all sync.WaitGroup
	for i := range subscribers {
		path := fmt.Sprintf("/cb%d", i)
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				confirmed[i] = now.Load()
				fmt.Fprint(rw, r.FormValue("hub.challenge"))
				return
			}
			b, _ := io.ReadAll(r.Body)
			last[i].Store(string(b))
		})
		all.Go(func() {
			until(t, "the update before the subscription", func() bool { return now.Load() >= int64(i*updates/subscribers) })
			w.form("/websub", "hub.mode", "subscribe", "hub.callback", w.site.URL+path, "hub.topic", feed)
		})
	}
	for n := range int64(updates) {
		w.feed("/feed", fmt.Sprint(n+1))
		now.Store(n + 1)
		w.form("/websub", "hub.mode", "publish", "hub.url", feed)
	}
	all.Wait()
	w.settle()
	for i := range subscribers {
		if got := last[i].Load(); confirmed[i] < updates && got != fmt.Sprint(updates) {
			t.Errorf("%d confirmed at update %d, and knows %v", i, confirmed[i], got)
		}
	}
}
