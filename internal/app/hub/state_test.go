package hub

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
)

// Every transition in every state of a subscription.
func TestEveryTransition(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := subscription{Callback: "c", Protocol: "http-post", Feed: "f", Since: now, Expires: now.Add(time.Hour)}
	bad := s
	bad.Errors, bad.Error, bad.Failed = 2, "old", now
	once := s
	once.Failed = now // failed once; no ladder has ended
	anew := subscription{Callback: "c", Protocol: "http-post", Feed: "f", Procedure: "p"}
	later := now.Add(time.Minute)
	with := func(s subscription, change func(*subscription)) subscription { change(&s); return s }
	for _, tc := range []struct {
		name string
		from subscription
		do   transition
		want subscription
	}{
		{"begins", subscription{}, verified(s, time.Hour), with(s, func(s *subscription) { s.Since, s.Expires = later, later.Add(time.Hour) })},
		{"begins anew, after errors", bad, verified(anew, 2*time.Hour), with(anew, func(s *subscription) { s.Since, s.Expires = later, later.Add(2*time.Hour) })},
		{"delivered", s, delivered(false), s},
		{"delivered after errors", bad, delivered(false), s},
		{"failed", s, failed("a\nb", false), with(s, func(s *subscription) { s.Error, s.Failed = "a b", later })},
		{"failed after errors", bad, failed("x", false), with(bad, func(s *subscription) { s.Error, s.Failed = "x", later })},
		{"failed again", once, failed("x", false), with(s, func(s *subscription) { s.Error, s.Failed = "x", later })},
		{"failed slowly", s, failed("x", true), with(s, func(s *subscription) { s.Error, s.Failed, s.Slow = "x", later, true })},
		{"delivered then", once, delivered(false), s},
		{"delivered slowly", s, delivered(true), with(s, func(s *subscription) { s.Slow = true })},
		{"delivered slowly again", with(s, func(s *subscription) { s.Slow = true }), delivered(true), with(s, func(s *subscription) { s.Slow = true })},
		{"delivered quickly", with(s, func(s *subscription) { s.Slow = true }), delivered(false), s},
		{"struck", s, struck, with(s, func(s *subscription) { s.Errors = 1 })},
		{"struck for the third time", bad, struck, with(bad, func(s *subscription) { s.Errors = 3 })},
		{"unsubscribed", s, unsubscribed, subscription{}},
	} {
		got := tc.from
		if tc.do(&got, later); got != tc.want {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
	for i, want := range []bool{true, true, true, false, false} {
		s.Errors = i
		if s.wants(now) != want {
			t.Errorf("after %d errors", i)
		}
	}
	if s.Protocol = WebSub; !s.wants(now) || s.wants(now.Add(time.Hour)) {
		t.Error("a WebSub subscription does not end with its lease")
	}
	if s.Errors = 0; s.wants(now.Add(time.Hour)) || !s.wants(now.Add(time.Hour-1)) {
		t.Error("expired")
	}
}

func TestSubscriptionIsReadAsItWasWritten(t *testing.T) {
	st, err := openStates(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0).UTC()
	s := subscription{Callback: "http://a.example/ä", Protocol: WebSub, Procedure: "p", Secret: "\t\n%\x00 ü", Feed: "http://f.example/", Caller: "192.0.2.1",
		Since: now, Expires: now.Add(time.Hour), Errors: 2, Failed: now, Error: "no\tway", Slow: true}
	hash := hashOf(s.Feed)
	if err := os.MkdirAll(st.subs(hash), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(st.subs(hash), s.key()), s.text(values.New('\t')), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := st.read(hash, s.key()); err != nil || got != s {
		t.Errorf("%+v, %v", got, err)
	}
	fi, err := os.Stat(st.dir)
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

// A transition writes the file of a subscription only if it changes the subscription, removes it when
// the subscription ends, and makes none but for a verified one, even if the file is broken.
func TestTransitionWritesWhatChanged(t *testing.T) {
	st, err := openStates(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0).UTC()
	s := subscription{Callback: "http://a.example/", Protocol: WebSub, Feed: "http://f.example/"}
	hash := hashOf(s.Feed)
	path := filepath.Join(st.subs(hash), s.key())
	look := func() os.FileInfo { fi, _ := os.Lstat(path); return fi }
	apply := func(do transition) (is subscription) {
		_, is, err = st.apply(hash, s.key(), do, now)
		return is
	}
	for name, do := range map[string]transition{"delivered": delivered(true), "failed": failed("x", false), "struck": struck,
		"unsubscribed": unsubscribed} {
		if apply(do); !errors.Is(err, os.ErrNotExist) || look() != nil {
			t.Errorf("%s without a subscription: %v", name, err)
		}
	}
	apply(verified(s, time.Hour))
	before := look()
	if apply(delivered(false)); err != nil || !os.SameFile(before, look()) {
		t.Errorf("delivered: the file was written, or: %v", err)
	}
	if is := apply(delivered(true)); err != nil || os.SameFile(before, look()) || !is.Slow {
		t.Errorf("delivered slowly: the file was not written, or: %v", err)
	}
	if is := apply(unsubscribed); err != nil || is.Callback != "" || look() != nil {
		t.Errorf("unsubscribed: %+v, %v", is, err)
	}
	if err := os.WriteFile(path, []byte("callback\thttp://a.example/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before = look()
	if apply(struck); err == nil || !os.SameFile(before, look()) {
		t.Errorf("struck with a broken file: %v", err)
	}
	if is := apply(verified(s, time.Hour)); err != nil || is.Callback != s.Callback || os.SameFile(before, look()) {
		t.Errorf("verified with a broken file: %+v, %v", is, err)
	}
}

// URLs of one feed have one hash, and other URLs have others.
func TestURLsOfOneFeed(t *testing.T) {
	for u, want := range map[string]string{"%7Ea%2d%2F%2f%c3%A9%%4%zz%6": "~a-%2F%2F%C3%A9%%4%zz%6", "": "", "%41%5f%2e%30": "A_.0", "%253a": "%253a", "%25%33%61": "%253a"} {
		if got := plain(u); got != want {
			t.Errorf("%s: %s", u, got)
		}
	}
	if hashOf("http://a.example/%7Euser?a=%2fb") != hashOf("http://a.example/~user?a=%2Fb") {
		t.Error("unneeded percent-encoding changes the hash")
	}
	same := []string{"http://a.example/", "HTTP://A.example:80/#x", "http://a.example"}
	others := []string{"https://a.example/", "http://a.example/x", "http://a.example/X", "http://a.example/?", "http://www.a.example/", "http://a.example:8080/", "http://a.example/?a", "http://a.example/%2F", "http://a.example/%2Fx", "http://a.example/%3F"}
	for _, u := range same {
		if hashOf(u) != hashOf(same[0]) {
			t.Errorf("%s counts as another feed", u)
		}
	}
	seen := map[string]string{hashOf(same[0]): same[0]}
	for _, u := range others {
		if also := seen[hashOf(u)]; also != "" {
			t.Errorf("%s and %s count as one feed", u, also)
		}
		seen[hashOf(u)] = u
	}
}

// A change of the state's files takes effect at once.
func TestStateChangedByOthers(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/a", feed)
	w.register("/b", feed)
	a := subscription{Protocol: "http-post", Callback: w.site.URL + "/a"}
	if err := os.Remove(filepath.Join(w.h.shared.states.subs(hashOf(feed)), a.key())); err != nil {
		t.Fatal(err)
	}
	junk := filepath.Join(w.h.shared.states.subs(hashOf(feed)), strings.Repeat("0", 40))
	if err := os.WriteFile(junk, []byte("garbage\n\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.feed("/feed", "two")
	w.ping(feed)
	if len(w.notified("/a")) != 0 || len(w.notified("/b")) != 1 {
		t.Error("a removed subscription is still notified")
	}
	w.h.sweep(true)
	if !strings.Contains(w.log.String(), junk+": not a subscription") {
		t.Errorf("%s", w.log)
	}
	// Remove all feeds while the hub runs.
	if err := os.RemoveAll(filepath.Join(w.opts.State, "feeds")); err != nil {
		t.Fatal(err)
	}
	if r := w.register("/a", feed); !strings.Contains(r.body, `success="true"`) {
		t.Error(r.body)
	}
}

// Unknown lines in the state, by another version or by the user, are kept and ignored.
func TestStateOfAnotherVersion(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	hash := hashOf(feed)
	s := subscription{Protocol: "http-post", Callback: w.site.URL + "/cb"}
	files := []string{filepath.Join(w.h.shared.states.feed(hash), "feed"), filepath.Join(w.h.shared.states.subs(hash), s.key())}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Add lines with unknown names, without a name and without a value.
		if err := os.WriteFile(path, []byte("note\tof mine\n"+string(b)+"what\n\tx\nweight\t5"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"feeds/readme", "feeds/ab/other/x", "pending/later/x", "index"} {
		path = filepath.Join(w.opts.State, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// A subscriber is notified that has unknown words beside it in the log.
	w.writeJobs((&job{}).line(hash, s.key()) + hash + "\tfrobnicated\t2\nversion\t2\n")
	w.restart()
	w.h.shared.hurry()
	w.settle()
	if got := w.notified("/cb"); len(got) != 1 || w.journals() != 1 {
		t.Errorf("%v, %d", got, w.journals())
	}
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			rw.WriteHeader(500)
		}
		io.WriteString(rw, r.FormValue("challenge"))
	})
	w.feed("/feed", "two")
	w.ping(feed)
	w.h.sweep(true)
	w.register("/cb", feed)
	for _, path := range files {
		if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "note\tof mine\n") || !strings.Contains(string(b), "weight\t5\n") || strings.Count(string(b), "note") != 1 {
			t.Errorf("%s: %s, %v", path, b, err)
		}
	}
	if list := w.subscriptions(feed); len(list) != 1 || list[0].Errors != 0 {
		t.Errorf("%+v", list)
	}
}

// If the state cannot be written, the caller gets an error. The next ping notifies all.
func TestStateThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	log := filepath.Join(w.opts.State, "jobs")
	w.h.shared.jobs.close()
	w.feed("/feed", "two")
	if r := w.ping(feed); !strings.Contains(r.body, `success="false" msg="This hub cannot store it now`) || !strings.Contains(w.log.String(), log) {
		t.Errorf("%s\n%s", r.body, w.log)
	}
	var err error
	if w.h.shared.jobs, err = openJobs(w.opts.State, w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if r := w.register("/later", feed); !strings.Contains(r.body, `success="true"`) {
		t.Errorf("the message names the feed although the disk failed: %s", r.body)
	}
	if w.ping(feed); len(w.notified("/cb")) != 1 {
		t.Error("not notified")
	}
	feeds := filepath.Join(w.opts.State, "feeds")
	if err := errors.Join(os.RemoveAll(feeds), os.WriteFile(feeds, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if r := w.register("/cb", feed); !strings.Contains(r.body, `success="false" msg="This hub cannot store it now`) {
		t.Error(r.body)
	}
}

func TestExpireNow(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/a", feed)
	w.clock.Add(time.Hour)
	w.register("/b", feed)
	w.clock.Add(24 * time.Hour)
	var out strings.Builder
	streams := cmdline.NewStreams("lektor-cloudd", nil, io.Discard, &out)
	// Run it beside a hub that gets a registration at the same time.
	var all sync.WaitGroup
	all.Go(func() { w.register("/c", feed) })
	if err := Serve(context.Background(), ServeOptions{Options: w.opts, ExpireNow: true}, streams); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if list := w.subscriptions(feed); len(list) != 2 || list[0].Callback != w.site.URL+"/b" || !strings.Contains(out.String(), "removed 1 subscription") {
		t.Errorf("%+v, %s", list, out.String())
	}
	if err := Serve(context.Background(), ServeOptions{Options: Options{State: t.TempDir()}, ExpireNow: true}, streams); err == nil {
		t.Error("a directory without state was accepted")
	}
}

// If a hub is stopped in the middle of a round, the next one finishes it. Every subscriber is
// notified once; only those being notified at the stop may be notified twice.
func TestRoundThatWasInterrupted(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AtOnce, o.Callbacks.PerHost = 4, 4 })
	feed := w.feed("/feed", "one")
	const n = 40
	var served atomic.Int32
	hold := make(chan struct{})
	for i := range n {
		path := fmt.Sprintf("/cb%02d", i)
		w.register(path, feed)
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
			if served.Add(1) > 20 {
				select {
				case <-hold:
				case <-r.Context().Done():
				}
			}
		})
	}
	w.subscribe("subscribe", w.site.URL+"/websub", feed)
	w.feed("/feed", "two")
	go http.Post(w.server.URL+"/ping", formType, strings.NewReader(encode("url", feed)))
	until(t, "half of the round", func() bool { return served.Load() >= 24 })
	journals := w.journals
	if journals() != 1 {
		t.Errorf("%d journals", journals())
	}
	w.h.Close()
	close(hold)
	w.start()
	w.h.shared.hurry()
	w.settle()
	twice := 0
	for i := range n {
		switch got := len(w.notified(fmt.Sprintf("/cb%02d", i))); got {
		case 1:
		case 2:
			twice++
		default:
			t.Errorf("%d was notified %d times", i, got)
		}
	}
	if twice > 4 || journals() != 0 {
		t.Errorf("%d subscribers were notified twice; %d journals left", twice, journals())
	}
	if got := w.got("POST", "/websub"); len(got) < 1 || len(got) > 2 || got[len(got)-1].body != "two" {
		t.Errorf("%+v", got)
	}
	// The next hub does not begin the round anew.
	before := len(w.calls)
	w.restart()
	w.h.shared.hurry()
	w.settle()
	if len(w.calls) != before {
		t.Error("once more")
	}
}

// Temporary files of a killed hub do not count as subscriptions, and are removed.
func TestTemporaryFilesOfAKill(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	key := w.subscriptions(feed)[0]
	subs := w.h.shared.states.subs(hashOf(feed))
	if err := os.Remove(filepath.Join(subs, key.key())); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{filepath.Join(subs, "."+key.key()), filepath.Join(w.opts.State, "pending", "."+hashOf(feed)+".1-1"), filepath.Join(w.opts.State, "pings", "."+hashOf(feed))} {
		path := base + "1795405526682951720"
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Chtimes(path, time.Time{}, time.Now().Add(-2*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	if w.h.shared.states.subscribedTo(hashOf(feed)) {
		t.Error("a temporary file counts as a subscription")
	}
	w.restart()
	w.h.shared.hurry()
	if w.h.sweep(true); len(w.tree()) != 0 {
		t.Errorf("files left: %v: %s", w.tree(), w.log)
	}
}

// Damaged journals are harmless.
func TestJournalsThatAreDamaged(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	hash, key := hashOf(feed), (&subscription{Protocol: "http-post", Callback: w.site.URL + "/cb"}).key()
	w.writeJobs("\n\t\n" + hash + "\n" + hash + "\t" + key[:20] + "\n" + hash + "\t../../../../etc\t0\t\n" + (&job{}).line(hash, key) + hash + "\t" + key[:20])
	w.restart()
	w.h.shared.hurry()
	w.settle()
	if got := w.notified("/cb"); len(got) != 1 {
		t.Errorf("notified %d times: %s", len(got), w.log)
	}
}

// A slow or dead subscriber delays no other.
func TestSlowSubscribersDelayNobody(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AtOnce = 8 })
	feed := w.feed("/feed", "one")
	hold := make(chan struct{})
	defer close(hold)
	for i := range 32 {
		path := fmt.Sprintf("/slow%d", i)
		w.register(path, feed)
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		})
	}
	quick := newSiteAt(t, "127.0.0.2", w.site)
	for i := range 8 {
		w.form("/pleaseNotify", "port", quick, "path", fmt.Sprintf("/quick%d", i), "protocol", "http-post", "domain", "127.0.0.2", "url1", feed)
	}
	w.feed("/feed", "two")
	go http.Post(w.server.URL+"/ping", formType, strings.NewReader(encode("url", feed)))
	// The slow requests do not end by themselves.
	until(t, "the quick subscribers", func() bool {
		for i := range 8 {
			if len(w.notified(fmt.Sprintf("/quick%d", i))) == 0 {
				return false
			}
		}
		return true
	})
	w.h.shared.background.stop()
}

// Pings that arrive while a feed is read are not lost: the feed is read once more.
func TestPingDuringAReading(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "0")
	w.register("/cb", feed)
	var all sync.WaitGroup
	var n atomic.Int32
	w.answer("/feed", func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, n.Load()) })
	for range 50 {
		all.Go(func() {
			n.Add(1)
			w.ping(feed)
		})
	}
	all.Wait()
	w.settle()
	if got := w.digest(feed); got != digestOf([]byte("50")) {
		t.Error("the last document is not recorded")
	}
	if reads := len(w.got("GET", "/feed")); reads > 45 {
		t.Errorf("%d readings for 50 pings", reads)
	}
}

// If a registration finds the feed changed, the next ping still notifies all subscribers,
// from before and after the change.
func TestRegistrationDoesNotRecordAChange(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/before", feed)
	w.clock.Add(rememberFor)
	w.feed("/feed", "two")
	w.register("/after", feed)
	if a, b := len(w.notified("/before")), len(w.notified("/after")); a != 0 || b != 0 || len(w.got("GET", "/feed")) != 2 {
		t.Errorf("notified %d and %d times without a ping", a, b)
	}
	w.ping(feed)
	if a, b := len(w.notified("/before")), len(w.notified("/after")); a != 1 || b != 1 {
		t.Errorf("notified %d and %d times", a, b)
	}
}

// A document that was cut off does not count as changed: it could differ with each reading.
func TestFeedThatBreaksOff(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	w.answer("/feed", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		io.WriteString(rw, "<rss>")
	})
	if r := w.ping(feed); !strings.Contains(r.body, "cannot be read now; it is read again in 10s") || len(w.notified("/cb")) != 0 {
		t.Errorf("%s, %v", r.body, w.notified("/cb"))
	}
}

// The hub works behind a proxy that keeps the path of the public URL, or removes it.
func TestPublicURLWithAPath(t *testing.T) {
	w := newWorld(t, nil)
	w.h.shared.opts.Public = w.h.shared.opts.Public.JoinPath("/my/hub")
	feed := w.feed("/feed", "one")
	for _, path := range []string{"/ping", "/my/hub/ping", "/My/Hub/RssCloud/Ping/"} {
		if r := w.form(path, "url", feed); !strings.Contains(r.body, `success="true"`) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	for _, path := range []string{"/", "/my/hub", "/my/hub/"} {
		if r := w.do("GET", path, "", ""); r.status != 200 || !strings.Contains(r.body, `action="/my/hub/ping?page"`) || !strings.Contains(r.body, `path="/my/hub/rsscloud/pleaseNotify"`) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := w.do("GET", "/my/hubris", "", ""); r.status != 404 {
		t.Errorf("%+v", r)
	}
}

func TestPingGap(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.PingGap = time.Minute })
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	w.feed("/feed", "zwei")
	// A reading for a subscriber does not begin the gap of pings.
	if r := w.ping(feed); !strings.Contains(r.body, "The feed has changed") {
		t.Error(r.body)
	}
	w.clock.Add(time.Second)
	w.register("/late", feed)
	first := len(w.notified("/cb"))
	w.feed("/feed", "two")
	wantNotifications := func(want int, what string) {
		t.Helper()
		want += first
		w.h.shared.due()
		if w.settle(); len(w.notified("/cb")) != want {
			t.Errorf("%s: notified %d times", what, len(w.notified("/cb")))
		}
	}
	w.clock.Add(9 * time.Second)
	for range 3 {
		if r := w.ping(feed); !strings.Contains(r.body, "it is read again in 50s") {
			t.Error(r.body)
		}
	}
	w.clock.Add(49 * time.Second)
	wantNotifications(0, "before the gap is over")
	w.clock.Add(time.Second)
	wantNotifications(1, "at its end")
	wantNotifications(1, "once more")
	// If a ping waits when the hub ends, the next hub does it at its time, or at once if the
	// clock was wrong.
	for i, later := range []time.Duration{time.Minute, -time.Hour} {
		w.ping(feed)
		before := len(w.notified("/cb")) - first
		w.feed("/feed", fmt.Sprint("later", i))
		w.clock.Add(time.Second)
		if r := w.ping(feed); !strings.Contains(r.body, "it is read again in") {
			t.Error(r.body)
		}
		w.restart()
		w.h.shared.hurry()
		wantNotifications(before, "just after the start")
		w.clock.Add(later)
		wantNotifications(before+1, "by the next hub")
		if list := w.pings(); len(list) != 0 {
			t.Errorf("pings left: %v", list)
		}
		w.restart()
		w.h.shared.hurry()
		wantNotifications(before+1, "by the third hub")
		w.clock.Add(time.Hour)
	}
	// A feed without subscribers is not read later.
	if other := w.feed("/other", "x"); w.ping(other).status != 200 || strings.Contains(w.ping(other).body, "again") || len(w.pings()) != 0 {
		t.Errorf("%+v", w.pings())
	}
}

// "You must send a valid username/password combination"; "If the save works, the return
// value is the public URL of your feed. If it failed, the call throws an error."
func TestWalkthroughSavingTheFeedThroughTheCloud(t *testing.T) {
	path := htpasswd(t, "bull: se<>&cret\t", "cow:x")
	w := newWorld(t, func(o *Options) { o.Users = path })
	where := w.server.URL + "/feeds/bull/rss.xml"
	save := func(document string) string {
		t.Helper()
		m, r := w.rpc("rssCloud.saveRss", "bull", " se<>&cret\t", document)
		if m.Fault != nil {
			return m.Fault.Text
		}
		if m.Params[0].Text != where {
			t.Error(r.body)
		}
		return ""
	}
	document := "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>Grüße &amp; mehr</title></channel></rss>"
	if err := save(document); err != "" {
		t.Fatal(err)
	}
	r := w.do("GET", "/feeds/bull/rss.xml", "", "")
	if r.status != 200 || strings.TrimSpace(r.body) != document || r.header.Get("Content-Type") != "application/rss+xml" || len(r.header.Values("Link")) != 2 {
		t.Errorf("%+v", r)
	}
	for name, value := range map[string]string{"If-None-Match": r.header.Get("ETag"), "If-Modified-Since": r.header.Get("Last-Modified")} {
		if again := w.do("GET", "/feeds/bull/rss.xml", "", "", name, value); value == "" || again.status != 304 {
			t.Errorf("%s: %+v", name, again)
		}
	}
	// The hub pings a stored feed, even if only a proxy can reach the hub.
	w.register("/cb", where)
	w.subscribe("subscribe", w.site.URL+"/websub", where)
	if err := save(strings.Replace(document, "mehr", "alles", 1)); err != "" {
		t.Error(err)
	}
	w.settle()
	if got := w.notified("/cb"); !slices.Equal(got, []string{where}) || len(w.got("POST", "/websub")) != 1 {
		t.Errorf("%v", got)
	}
	for document, want := range map[string]string{
		"<rss>\n<channel>\n<title>a & b</title></channel></rss>": "line 3, column ",
		"<rss><channel></rss>": "line 1, column ",
		"":                     "line 1, column ", "text": "line 1", "<rss/><rss/>": "second root", "<html/>": "root element is html", "<rss>": "line 1",
	} {
		if err := save(document); !strings.Contains(err, want) {
			t.Errorf("%q: %s", document, err)
		}
	}
	if got := w.do("GET", "/feeds/bull/rss.xml", "", "").body; !strings.Contains(got, "alles") {
		t.Errorf("a refused document was stored: %s", got)
	}
	for _, password := range []string{"se<>&cret", "se<>&cret\t", ""} {
		if m, _ := w.rpc("rssCloud.saveRss", "bull", password, document); m.Fault == nil || !strings.Contains(m.Fault.Text, "is wrong") {
			t.Errorf("the password %q is accepted", password)
		}
	}
	// A user who was removed from the file can no longer store feeds.
	if err := os.WriteFile(path, []byte("# nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Chtimes(path, time.Now().Add(time.Hour), time.Now().Add(time.Hour))
	if err := save(document); !strings.Contains(err, "is wrong") {
		t.Errorf("%s", err)
	}
	for _, text := range []string{"bull:$apr1$x", "bull", "../x:$2a$04$6pXfRRhBEqxtahKzfgT8x.S.YY2PXnDxYAsl0BAoyjNHNXfpFXVp6"} {
		bad := filepath.Join(t.TempDir(), "bad")
		os.WriteFile(bad, []byte(text+"\n"), 0o600)
		if _, err := readUsers(bad, time.Now); err == nil || !strings.Contains(err.Error(), bad+":1:") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, path := range []string{"/feeds/bull/", "/feeds/nobody/rss.xml", "/feeds/../log", "/feeds/bull/../../log", "/feeds/%2e%2e/log", "/feeds/bull/rss.xml/"} {
		if r := w.do("GET", path, "", ""); r.status != 404 {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

func TestLogIsRotated(t *testing.T) {
	dir := t.TempDir()
	l, err := openLog(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l.size = maxLog + 1
	l.add("updated", "http://a.example/\t\n", "%s", "x\ty")
	l.add("pinged", "http://b.example/", "")
	l.Close()
	old, _ := os.ReadFile(filepath.Join(dir, "log.1"))
	now, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil || strings.Count(string(now), "\n") != 2 || strings.Count(string(now), "\t") != 6 || len(old) != 0 {
		t.Errorf("%q, %q, %v", old, now, err)
	}
	if l, err = openLog(dir, time.Now); err != nil || len(l.Recent()) != 2 || l.Recent()[0].What != "pinged" {
		t.Errorf("%+v, %v", l.Recent(), err)
	}
	l.Close()
}

func TestServeLocksTheState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var out strings.Builder
	streams := cmdline.NewStreams("lektor-cloudd", nil, io.Discard, &out)
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	o := ServeOptions{Options: Options{State: state, AtOnce: 1, Now: time.Now, Ready: func() { close(ready) }}}
	o.Options.Options = httpserver.Options{Address: "127.0.0.1:0", MaxConns: 8}
	done := make(chan error)
	go func() { done <- Serve(ctx, o, streams) }()
	until(t, "the log", func() bool { _, err := os.Stat(filepath.Join(state, "log")); return err == nil })
	if err := Serve(ctx, o, cmdline.NewStreams("x", nil, io.Discard, io.Discard)); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// scaled returns the number of subscriptions for tests of size: few, or many if
// LEKTOR_HUB_SCALE is set.
func scaled(few, many int) int {
	if os.Getenv("LEKTOR_HUB_SCALE") != "" {
		return many
	}
	return few
}

// put writes subscriptions as the hub does, without a request to the callbacks.
func (w *world) put(feed string, n int, callback func(int) string) {
	w.t.Helper()
	hash := hashOf(feed)
	if err := os.MkdirAll(w.h.shared.states.subs(hash), 0o700); err != nil {
		w.t.Fatal(err)
	}
	for i := range n {
		s := subscription{Callback: callback(i), Protocol: rsscloud.HTTPPost, Feed: feed, Caller: fmt.Sprintf("192.0.2.%d", i%250), Since: w.clock.Now(), Expires: w.clock.Now().Add(CloudExpire)}
		if err := os.WriteFile(filepath.Join(w.h.shared.states.subs(hash), s.key()), s.text(values.New('\t')), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Many subscribers of one feed, on a hundred hosts, are notified.
func TestManySubscribersOfOneFeed(t *testing.T) {
	n := scaled(300, 10_000)
	w := newWorld(t, nil)
	var got atomic.Int64
	s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { got.Add(1) })}
	quick := newSite(t)
	quick.Config.Handler = s.Handler
	feed := w.feed("/feed", "one")
	w.put(feed, n, func(i int) string { return fmt.Sprintf("%s/%d", quick.URL, i) })
	w.h.shared.states.writeFeed(hashOf(feed), feedState{URL: feed, Digest: "x"})
	begin := time.Now()
	w.ping(feed)
	w.settle()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if got.Load() != int64(n) {
		t.Errorf("%d of %d notified", got.Load(), n)
	}
	t.Logf("%d subscribers notified in %s, %d MB from the system", n, time.Since(begin).Round(time.Millisecond), m.Sys>>20)
}

// The cost of a feed does not depend on the number of subscriptions to others: only its own
// files are read.
func TestManySubscriptionsInTheState(t *testing.T) {
	feeds, each := scaled(40, 50_000), 20
	w := newWorld(t, nil)
	for i := range feeds {
		w.put(fmt.Sprintf("http://f%d.example/", i), each, func(k int) string { return fmt.Sprintf("http://s%d.example/%d", k, i) })
	}
	feed := w.feed("/feed", "one")
	w.put(feed, 10, func(i int) string { return fmt.Sprintf("%s/cb%d", w.site.URL, i) })
	w.h.shared.states.writeFeed(hashOf(feed), feedState{URL: feed, Digest: "x"})
	begin := time.Now()
	w.restart()
	stop := w.run()
	defer stop()
	w.ping(feed)
	took := time.Since(begin)
	if got := w.notified("/cb9"); len(got) != 1 {
		t.Errorf("%v", got)
	}
	w.feed("/feed", "two")
	again := time.Now()
	w.ping(feed)
	ping := time.Since(again)
	t.Logf("%d subscriptions: first ping answered after %s, the next in %s", feeds*each, took, ping)
	// Counting the subscriptions in the background reads all of them, which takes longer.
	for range scaled(1, 20) {
		if within(time.Minute, func() bool {
			return w.h.shared.counts.get() == feeds*each+10
		}) {
			t.Logf("counted after %s", time.Since(begin))
			return
		}
	}
	t.Error("the subscriptions are not counted")
}

// A document that declares another encoding arrives as characters. It is stored in UTF-8, and
// declares that.
func TestSavedDocumentIsInUTF8(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Users = htpasswd(t, "bull:secret") })
	const rest = "<rss><channel><title>é encoding=\"x\"</title></channel></rss>"
	for _, head := range []string{`<?xml version="1.0" encoding="ISO-8859-1"?>`, "<?xml version='1.0'\nencoding = 'windows-1252' ?>", `<?xml version="1.0" encoding="utf-8"?>`, `<?xml version="1.0"?>`, ""} {
		if m, r := w.rpc("rssCloud.saveRss", "bull", "secret", head+rest); m.Fault != nil {
			t.Errorf("%s: %s", head, r.body)
			continue
		}
		d := xml.NewDecoder(strings.NewReader(w.do("GET", "/feeds/bull/rss.xml", "", "").body))
		var got struct {
			Title string `xml:"channel>title"`
		}
		if err := d.Decode(&got); err != nil || got.Title != "é encoding=\"x\"" {
			t.Errorf("%s: %q, %v", head, got.Title, err)
		}
	}
}

// A document in base64 is stored byte for byte, in its own encoding. The password may be in
// base64, too. If a value is not base64, the fault names it.
func TestSavedDocumentAsBase64(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Users = htpasswd(t, "bull:s\xfecret") })
	value := func(b string) string {
		text := base64.StdEncoding.EncodeToString([]byte(b))
		return "<param><value><base64>\n" + text[:len(text)/2] + "\r\n " + text[len(text)/2:] + "\n</base64></value></param>"
	}
	save := func(document string) string {
		return w.do("POST", "/RPC2", "text/xml", "<methodCall><methodName>rssCloud.saveRss</methodName><params><param><value>bull</value></param>"+
			value("s\xfecret")+document+"</params></methodCall>").body
	}
	utf16 := "\xff\xfe"
	for _, c := range `<?xml version="1.0" encoding="UTF-16"?><feed/>` {
		utf16 += string([]byte{byte(c), 0})
	}
	for document, kind := range map[string]string{
		"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\r\n<rss><channel><title>\xe9</title></channel></rss>\r\n\r\n": "rss",
		"  <rss>no end of line</rss>": "rss", "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><feed>é</feed>": "atom", utf16: "atom",
		"<?xml version=\"1.0\" encoding=\"windows-1251\"?><feed>\xcf</feed>": "atom",
	} {
		if body := save(value(document)); !strings.Contains(body, "/feeds/bull/rss.xml") {
			t.Errorf("%q: %s", document, body)
		}
		if r := w.do("GET", "/feeds/bull/rss.xml", "", ""); r.body != document || r.header.Get("Content-Type") != "application/"+kind+"+xml" {
			t.Errorf("%q: %+v", document, r)
		}
	}
	// The longest possible document is read, too.
	w.register("/cb", w.server.URL+"/feeds/bull/rss.xml")
	for _, end := range []string{"a", "b"} {
		if body := save("<param><value><string>&lt;rss>" + strings.Repeat(end, 1<<20-11) + "&lt;/rss></string></value></param>"); !strings.Contains(body, "/feeds/bull") {
			t.Errorf("%.200s", body)
		}
	}
	if w.settle(); len(w.notified("/cb")) != 2 {
		t.Errorf("%d notifications for the longest document: %+v", len(w.notified("/cb")), w.h.shared.log.Recent())
	}
	for document, want := range map[string]string{
		"<param><value><base64>a!b</base64></value></param>":        "base64",
		value("<?xml version=\"1.0\"?><rss>\xe9</rss>"):             "invalid UTF-8",
		value("<?xml version=\"1.0\" encoding=\"klingon\"?><rss/>"): "the encoding klingon is unknown",
		value("<rss>"): "line 1",
		value("<rss>" + strings.Repeat(" ", 1<<20) + "</rss>"): "more than",
	} {
		if body := save(document); !strings.Contains(body, want) || !strings.Contains(body, "<fault>") {
			t.Errorf("%.60s: %s", document, body)
		}
	}
}

// TestStateOfOthers: a state that somebody else may have written is not used, and nothing is appended to
// the target of a link.
func TestStateOfOthers(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "mine")
	link := func(name string) func(state string) error {
		return func(state string) error {
			return errors.Join(os.Remove(filepath.Join(state, name)), os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(state, name)))
		}
	}
	mode := func(name string, mode fs.FileMode) func(state string) error {
		return func(state string) error { return os.Chmod(filepath.Join(state, name), mode) }
	}
	const others = "can be written by others; the state is not used"
	for what, row := range map[string]struct {
		change func(state string) error
		want   string
	}{
		"a directory of everybody": {mode("", 0o777|fs.ModeSticky), others}, "feeds of everybody": {mode("feeds", 0o777), others},
		"saved of a group": {mode("saved", 0o770), others}, "jobs of everybody": {mode("jobs", 0o666), others}, "a log of everybody": {mode("log", 0o666), others},
		"a log that is a link": {link("log"), "symbolic links"}, "jobs that are a link": {link("jobs"), "symbolic links"},
	} {
		w := newWorld(t, nil)
		w.h.Close()
		if err := row.change(w.opts.State); err != nil {
			t.Fatal(err)
		}
		h, err := New(w.opts, w.log)
		if err == nil {
			h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", what, err, row.want)
		}
		if row.want == others {
			streams := cmdline.NewStreams("lektor-cloudd", nil, io.Discard, io.Discard)
			if err := Serve(t.Context(), ServeOptions{Options: w.opts, ExpireNow: true}, streams); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s, --expire-now: %v", what, err)
			}
		}
		if data, err := os.ReadFile(outside); err == nil && len(data) > 0 {
			t.Errorf("%s: %d bytes were appended to the file of another", what, len(data))
		}
		mode("", 0o700)(w.opts.State)
	}
}
