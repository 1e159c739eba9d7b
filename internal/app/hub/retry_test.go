package hub

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/protocol/rsscloud"
)

// moody answers notifications with a status that the test sets; 0 means success.
type moody struct {
	mu     sync.Mutex
	status int
	after  string // Retry-After
}

func (m *moody) set(status int, after ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status, m.after = status, strings.Join(after, "")
}

func (m *moody) answer(rw http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method == http.MethodPost && m.status != 0 {
		if m.after != "" {
			rw.Header().Set("Retry-After", m.after)
		}
		rw.WriteHeader(m.status)
	}
	if r.Header.Get("Content-Type") == "text/xml" {
		rw.Write(rsscloud.EncodeResponse(true))
	}
	fmt.Fprint(rw, r.URL.Query().Get("challenge")+r.URL.Query().Get("hub.challenge"))
}

// advance advances the clock, and does the jobs that are due then.
func (w *world) advance(d time.Duration) {
	w.clock.Add(d)
	w.h.shared.due()
	w.settle()
}

// onDisk reads the jobs that the next hub would continue.
func (w *world) onDisk() *jobs {
	data, _ := os.ReadFile(filepath.Join(w.opts.State, "jobs"))
	j := &jobs{feeds: map[string]*feedJobs{}, documents: map[string]feedState{}}
	for line := range strings.Lines(string(data)) {
		j.replay(strings.TrimSuffix(line, "\n"))
	}
	return j
}

// journals counts the feeds with subscribers that wait for a notification, and the files
// for them that an earlier version left.
func (w *world) journals() int {
	list, _ := os.ReadDir(filepath.Join(w.opts.State, "pending"))
	n := len(list)
	for _, f := range w.onDisk().feeds {
		if len(f.pending) > 0 {
			n++
		}
	}
	return n
}

// pings lists the feeds that will be read later.
func (w *world) pings() (urls []string) {
	for _, f := range w.onDisk().feeds {
		if f.ping != nil {
			urls = append(urls, f.ping.url)
		}
	}
	return urls
}

// writeJobs appends lines to the log of jobs, which the next hub reads.
func (w *world) writeJobs(lines string) {
	w.t.Helper()
	w.h.shared.jobs.mu.Lock()
	defer w.h.shared.jobs.mu.Unlock()
	if err := w.h.shared.jobs.write(lines, true); err != nil {
		w.t.Fatal(err)
	}
}

// A subscriber that is not reached is tried again after ten seconds, a minute, five
// minutes and half an hour, also after a restart. A notified subscriber is not notified twice.
func TestFailedNotificationIsTriedAgain(t *testing.T) {
	for _, protocol := range []string{"http-post", WebSub} {
		for _, restarts := range []bool{false, true} {
			w := newWorld(t, nil)
			feed := w.feed("/feed", "one")
			m := &moody{status: 503}
			for _, path := range []string{"/down", "/up"} {
				if protocol == WebSub {
					w.subscribe("subscribe", w.site.URL+path, feed)
				} else {
					w.register(path, feed)
				}
			}
			w.answer("/down", m.answer)
			got := func(path string) int { return len(w.got("POST", path)) }
			check := func(after time.Duration, want int) {
				t.Helper()
				if restarts {
					w.restart()
					w.h.shared.hurry()
					w.settle()
				}
				w.advance(after)
				if got("/down") != want || got("/up") != 1 {
					t.Errorf("%s: %s later, /down got %d requests and /up %d", protocol, after, got("/down"), got("/up"))
				}
			}
			w.feed("/feed", "two")
			w.ping(feed)
			check(0, 1)
			check(9*time.Second, 1)
			check(time.Second, 2)
			check(59*time.Second, 2)
			check(time.Second, 3)
			check(5*time.Minute, 4)
			if list := w.subscriptions(feed); len(list) != 2 || list[0].Errors != 0 || w.journals() != 1 {
				t.Errorf("%s: a ladder that has not ended counts as a strike: %+v", protocol, list)
			}
			m.set(200)
			check(30*time.Minute, 5)
			if list := w.subscriptions(feed); list[0].Errors != 0 || w.journals() != 0 {
				t.Errorf("%s: %+v, %d journals", protocol, list, w.journals())
			}
			check(time.Hour, 5)
			m.set(503)
			w.feed("/feed", "three")
			w.ping(feed)
			for range 10 {
				w.advance(time.Hour)
			}
			if n := got("/down"); n != 10 || w.journals() != 0 {
				t.Errorf("%s: the ladder does not end: %d requests, %d journals", protocol, n, w.journals())
			}
			if log := fmt.Sprint(w.h.shared.log.Recent()); !strings.Contains(log, "1 subscriber not reached, and tried again in 10s") || !strings.Contains(log, "not tried again") {
				t.Errorf("%s", log)
			}
		}
	}
}

// The hub obeys a subscriber's Retry-After in every protocol, also after a restart and an
// update of the feed. Other subscribers do not wait for it.
func TestRetryAfterOfASubscriber(t *testing.T) {
	for _, protocol := range []string{"http-post", "xml-rpc", WebSub} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %v", protocol, restarts), func(t *testing.T) {
				w := newWorld(t, nil)
				feed := w.feed("/feed", "0")
				paths := []string{"/busy", "/other"}
				moods := map[string]*moody{}
				for _, path := range paths {
					switch protocol {
					case WebSub:
						w.subscribe("subscribe", w.site.URL+path, feed)
					default:
						w.form("/pleaseNotify", "port", w.port(), "path", path, "protocol", protocol, "notifyProcedure", "x", "domain", "127.0.0.1", "url1", feed)
					}
					moods[path] = &moody{status: 503}
					w.answer(path, moods[path].answer)
				}
				moods["/busy"].set(429, "1200")
				begin, tests := w.clock.Now(), len(w.got("POST", "/busy")) // tests of the handler at the registration
				// at advances the clock to a time, and compares the numbers of requests until then.
				at := func(d time.Duration, busy, other int) {
					t.Helper()
					if restarts {
						w.restart()
						w.h.shared.hurry()
						w.settle()
					}
					w.advance(begin.Add(d).Sub(w.clock.Now()))
					if b, o := len(w.got("POST", "/busy"))-tests, len(w.got("POST", "/other"))-tests; b != busy || o != other {
						t.Errorf("after %s: /busy and /other got %d and %d requests, want %d and %d", d, b, o, busy, other)
					}
				}
				update := func(s string) {
					w.feed("/feed", s)
					w.ping(feed)
				}
				update("1")
				at(0, 1, 1)
				at(10*time.Second, 1, 2)
				at(70*time.Second, 1, 3)
				// A newer document has to wait for the end of the pause, too.
				update("2")
				at(80*time.Second, 1, 3)
				moods["/other"].set(200)
				at(369*time.Second, 1, 3)
				at(19*time.Minute, 1, 4)
				if list := w.subscriptions(feed); len(list) != 2 || list[0].Errors != 0 || list[1].Errors != 0 {
					t.Errorf("%+v", list)
				}
				// The subscriber asks for another pause, which is longer than the limit.
				moods["/busy"].set(503, begin.Add(48*time.Hour).Format(http.TimeFormat))
				at(20*time.Minute, 2, 4)
				at(80*time.Minute-time.Second, 2, 4)
				moods["/busy"].set(200)
				at(80*time.Minute, 3, 4)
				if list := w.subscriptions(feed); list[0].Errors != 0 || w.journals() != 0 {
					t.Errorf("%+v, %d journals", list, w.journals())
				}
				if got := w.got("POST", "/busy"); protocol == WebSub && got[2].body != "2" {
					t.Errorf("%+v", got)
				}
				update("3")
				at(81*time.Minute, 4, 5)
			})
		}
	}
}

// A subscriber that always sends Retry-After gets as many attempts as any other. An
// invalid Retry-After is ignored.
func TestRetryAfterWithoutAnEnd(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "0")
	m := &moody{}
	for i, after := range []string{"3600", "-5", "soon", "99999999999999999999", "0"} {
		path := fmt.Sprintf("/%d", i)
		w.register(path, feed)
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Retry-After", after)
			m.answer(rw, r)
		})
	}
	m.set(503)
	w.feed("/feed", "1")
	w.ping(feed)
	w.advance(10 * time.Second)
	for i, want := range []int{1, 2, 2, 1, 2} {
		if got := len(w.got("POST", fmt.Sprintf("/%d", i))); got != want {
			t.Errorf("%d: got %d requests", i, got)
		}
	}
	for range 600 {
		w.advance(time.Minute)
	}
	for i := range 5 {
		if got := len(w.got("POST", fmt.Sprintf("/%d", i))); got != 5 {
			t.Errorf("%d: got %d requests", i, got)
		}
	}
	if log := fmt.Sprint(w.h.shared.log.Recent()); w.journals() != 0 || !strings.Contains(log, "3 subscribers not reached, and not tried again") || !strings.Contains(log, "2 subscribers not reached, and not tried again") {
		t.Errorf("%d journals\n%s", w.journals(), log)
	}
}

// If the server of a feed asks for a pause, the feed is read after the pause, also by the
// next hub, so that no update is lost. Other feeds of the host are read during the pause.
func TestRetryAfterOfAFeed(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWorld(t, nil)
		feed, other := w.feed("/feed", "one"), w.feed("/other", "one")
		w.register("/cb", feed, other)
		reads := func() int { return len(w.got("GET", "/feed")) }
		says := func(after string) {
			w.answer("/feed", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Retry-After", after)
				rw.WriteHeader(http.StatusServiceUnavailable)
			})
		}
		later := func(d time.Duration, read int, told ...string) {
			t.Helper()
			if restarts {
				w.restart()
				w.h.shared.hurry()
			}
			before := reads()
			w.advance(d)
			if got := w.notified("/cb"); reads() != before+read || !slices.Equal(got, told) {
				t.Errorf("%s later the feed was read %d times; notifications: %v", d, reads()-before, got)
			}
		}
		says("120")
		if r := w.ping(feed); !strings.Contains(r.body, `success="true" msg="Thanks for the ping. The feed cannot be read now; it is read again in 2m0s.`) {
			t.Error(r.body)
		}
		before := reads()
		w.clock.Add(10 * time.Second)
		if r := w.ping(feed); !strings.Contains(r.body, "it is read again in 1m50s.") || reads() != before {
			t.Error(r.body)
		}
		w.feed("/other", "two")
		w.ping(other)
		// The server asks for a pause that is longer than the limit.
		says("86400")
		later(109*time.Second, 0, other)
		later(time.Second, 1, other)
		w.answer("/feed", nil)
		w.feed("/feed", "two")
		later(time.Hour-time.Second, 0, other)
		later(time.Second, 1, other, feed)
		later(24*time.Hour, 0, other, feed)
		if list := w.pings(); len(list) != 0 {
			t.Errorf("pings left: %v", list)
		}
		// Without subscribers, the feed is not read later.
		none := w.feed("/none", "x")
		w.answer("/none", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
		})
		if r := w.ping(none); !strings.Contains(r.body, `success="false"`) || len(w.pings()) != 0 {
			t.Errorf("%s, %v", r.body, w.pings())
		}
	}
}

// A newer document replaces a document that waits for another attempt. The subscriber gets
// the newer document once, and never the older one after it.
func TestNewerDocumentReplacesTheOlder(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWorld(t, nil)
		feed := w.feed("/feed", "0")
		m := &moody{status: 500}
		w.subscribe("subscribe", w.site.URL+"/cb", feed)
		w.subscribe("subscribe", w.site.URL+"/left", feed)
		w.answer("/cb", m.answer)
		w.answer("/left", m.answer)
		for i := range 3 {
			w.feed("/feed", fmt.Sprint(i+1))
			w.ping(feed)
		}
		if n := w.journals(); n != 1 {
			t.Errorf("%d journals", n)
		}
		if restarts {
			w.restart()
			w.h.shared.hurry()
			w.settle()
		}
		w.subscribe("unsubscribe", w.site.URL+"/left", feed)
		m.set(204)
		w.advance(10 * time.Second)
		w.advance(time.Hour)
		got := w.got("POST", "/cb")
		if len(got) != 2 || got[1].body != "3" || len(w.got("POST", "/left")) != 1 || w.journals() != 0 {
			t.Errorf("%+v, %d journals", got, w.journals())
		}
	}
}

// A subscriber in two interrupted rounds is notified once.
func TestTwoRoundsThatWereInterrupted(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/a", feed)
	w.register("/b", feed)
	key := func(path string) string {
		return (&subscription{Protocol: "http-post", Callback: w.site.URL + path}).key()
	}
	for _, key := range []string{key("/a"), key("/b"), key("/b")} {
		w.writeJobs((&job{}).line(hashOf(feed), key))
	}
	w.restart()
	w.h.shared.hurry()
	w.settle()
	if a, b := len(w.notified("/a")), len(w.notified("/b")); a != 1 || b != 1 || w.journals() != 0 {
		t.Errorf("%d and %d notifications; %d journals", a, b, w.journals())
	}
}

// If the feed cannot be read again for a delivery, this does not count as an error of the
// subscriber. The content is delivered when the feed can be read.
func TestContentThatCannotBeReadAgain(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	m := &moody{status: 500}
	w.subscribe("subscribe", w.site.URL+"/cb", feed)
	w.register("/cloud", feed)
	w.answer("/cb", m.answer)
	w.answer("/cloud", m.answer)
	w.feed("/feed", "two")
	w.ping(feed)
	m.set(200)
	w.answer("/feed", http.NotFound)
	w.advance(10 * time.Second)
	if list := w.subscriptions(feed); list[0].Failed.IsZero() || !list[1].Failed.IsZero() || len(w.got("POST", "/cb")) != 1 || len(w.notified("/cloud")) != 2 {
		t.Errorf("%+v", list)
	}
	w.answer("/feed", nil)
	w.advance(time.Minute)
	if got := w.got("POST", "/cb"); len(got) != 2 || got[1].body != "two" || len(w.notified("/cloud")) != 2 || w.journals() != 0 {
		t.Errorf("%+v", got)
	}
}

// If the memory for content is used up, a document is not kept. It is read again when there
// is memory.
func TestContentWithoutMemory(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Feeds.MaxBytes = 1000 })
	w.h.shared.notifier.held = semaphore.NewWeighted(1000)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	w.answer("/slow", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(rw, r.FormValue("hub.challenge"))
	})
	first, second := w.feed("/first", "1"), w.feed("/second", "1")
	w.subscribe("subscribe", w.site.URL+"/slow", first)
	w.subscribe("subscribe", w.site.URL+"/quick", second)
	w.feed("/first", strings.Repeat("a", 900))
	w.feed("/second", strings.Repeat("b", 200))
	var all sync.WaitGroup
	all.Go(func() { http.Post(w.server.URL+"/ping", formType, strings.NewReader(encode("url", first))) })
	until(t, "the slow delivery", func() bool { return len(w.got("POST", "/slow")) == 1 })
	all.Go(func() { http.Post(w.server.URL+"/ping", formType, strings.NewReader(encode("url", second))) })
	until(t, "the second delivery, which waits", func() bool {
		return slices.ContainsFunc(w.h.shared.log.Recent(), func(e event) bool { return e.What == "resumed" && e.Feed == second })
	})
	w.feed("/second", strings.Repeat("c", 200))
	release()
	all.Wait()
	w.settle()
	if got := w.got("POST", "/quick"); len(got) != 1 || got[0].body != strings.Repeat("c", 200) || w.journals() != 0 {
		t.Errorf("%d deliveries, %d journals", len(got), w.journals())
	}
	if !w.h.shared.notifier.held.TryAcquire(1000) {
		t.Error("memory is not released")
	}
}

// Run does due jobs without a request.
func TestRunDoesWhatIsDue(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.PingGap = time.Minute })
	feed := w.feed("/feed", "one")
	m := &moody{status: 500}
	w.register("/cb", feed)
	w.answer("/cb", m.answer)
	stop := w.run()
	defer stop()
	w.clock.Add(time.Minute)
	w.feed("/feed", "two")
	w.ping(feed)
	w.feed("/feed", "three")
	w.ping(feed)
	w.clock.Add(time.Hour)
	w.h.shared.poke()
	until(t, "the retry and the postponed ping", func() bool {
		return len(w.notified("/cb")) >= 2 && w.digest(feed) == digestOf([]byte("three"))
	})
	// The sweep of the hour is made even if Run wakes up later.
	w.clock.Add(25 * time.Hour)
	w.h.shared.poke()
	until(t, "the end of the subscription", func() bool { return len(w.subscriptions(feed)) == 0 })
}

// After an update during a round, subscribers that were not notified yet get only the newer
// document, and no subscriber gets the older one after it.
func TestUpdateDuringARound(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AtOnce, o.Callbacks.PerHost = 1, 1 })
	feed := w.feed("/feed", "one")
	const n = 6
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	var posts atomic.Int32
	for i := range n {
		path := fmt.Sprintf("/cb%d", i)
		w.subscribe("subscribe", w.site.URL+path, feed)
		w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
			if posts.Add(1) == 1 {
				<-hold
			}
		})
	}
	for _, document := range []string{"two", "three"} {
		w.feed("/feed", document)
		go http.Post(w.server.URL+"/ping", formType, strings.NewReader(encode("url", feed)))
		until(t, "the round", func() bool { return w.journals() == 1 && posts.Load() > 0 })
	}
	until(t, "both updates in the table", func() bool {
		w.h.shared.jobs.mu.Lock()
		defer w.h.shared.jobs.mu.Unlock()
		return w.h.shared.jobs.feeds[hashOf(feed)].version == 2
	})
	release()
	w.settle()
	twice := 0
	for i := range n {
		got := w.got("POST", fmt.Sprintf("/cb%d", i))
		if len(got) == 2 && got[0].body == "two" {
			twice++
		} else if len(got) != 1 {
			t.Errorf("%d: %+v", i, got)
		}
		if got[len(got)-1].body != "three" {
			t.Errorf("subscriber %d got the older document last: %+v", i, got)
		}
	}
	if twice > 1 || w.journals() != 0 {
		t.Errorf("%d subscribers got both documents; %d journals", twice, w.journals())
	}
}
