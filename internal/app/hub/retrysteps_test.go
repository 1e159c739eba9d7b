package hub

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A feed that cannot be read after a ping is read again after each time of the ladder, also
// after a restart; the log says when.
func TestPingOfAFeedThatFailsIsRetried(t *testing.T) {
	fail := map[string]http.HandlerFunc{
		"500": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) },
		"503": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) },
		"404": http.NotFound,
		"cut": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "1000")
			io.WriteString(rw, "<rss>")
		},
	}
	tell := map[string]func(w *world, feed string){
		"websub":  func(w *world, feed string) { w.form("/websub", "hub.mode", "publish", "hub.url", feed); w.settle() },
		"rest":    func(w *world, feed string) { w.ping(feed) },
		"xml-rpc": func(w *world, feed string) { w.rpc("rssCloud.ping", feed) },
	}
	for name, how := range fail {
		for by, publish := range tell {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, restarts %v", name, by, restarts), func(t *testing.T) {
					w := newWorld(t, nil)
					feed := w.feed("/feed", "one")
					w.register("/cb", feed)
					w.subscribe("subscribe", w.site.URL+"/websub", feed)
					step := func(d time.Duration) (reads int) {
						before := len(w.got("GET", "/feed"))
						if restarts {
							w.restart()
							w.h.shared.hurry()
							w.settle()
						}
						w.advance(d)
						return len(w.got("GET", "/feed")) - before
					}
					notifications := func() int { return len(w.notified("/cb")) + len(w.got("POST", "/websub")) }
					w.answer("/feed", how)
					w.feed("/feed", "two")
					publish(w, feed)
					w.settle()
					if step(9*time.Second) != 0 || step(time.Second) != 1 || step(time.Minute) != 1 || notifications() != 0 {
						t.Errorf("the feed is read at other times, or a subscriber was notified")
					}
					w.answer("/feed", nil)
					if step(5*time.Minute-time.Second) != 0 || step(time.Second) != 1 || notifications() != 2 {
						t.Errorf("%d were notified", notifications())
					}
					if step(time.Hour) != 0 || notifications() != 2 {
						t.Errorf("after a success, the feed is read again, or there are %d notifications instead of 2", notifications())
					}
					// If the feed stays unreadable, the ladder ends.
					w.answer("/feed", how)
					w.feed("/feed", "three")
					publish(w, feed)
					reads := 0
					for range 100 {
						reads += step(time.Minute)
					}
					if left := w.pings(); reads != len(retrySteps.Steps) || len(left) != 0 || notifications() != 2 {
						t.Errorf("the feed was read %d times; jobs left: %v", reads, left)
					}
					log, _ := os.ReadFile(filepath.Join(w.opts.State, "log"))
					for _, want := range []string{"; it is read again in 10s\n", "; it is read again in 1m0s\n", "; it is read again in 30m0s\n", "; it is not read again before the next ping\n"} {
						if !strings.Contains(string(log), want) {
							t.Errorf("the log lacks %q:\n%s", want, log)
						}
					}
					if strings.Contains(string(log), "repeated later") {
						t.Errorf("the log has the text of a temporary error, which is for readers of a feed:\n%s", log)
					}
					// The next ping begins a new ladder.
					w.answer("/feed", nil)
					publish(w, feed)
					if w.settle(); notifications() != 4 {
						t.Errorf("%d were notified", notifications())
					}
				})
			}
		}
	}
}

// A feed without subscribers, or at a private address, is not read again after an error.
func TestPingThatIsNotRetried(t *testing.T) {
	w := newWorld(t, nil)
	none := w.feed("/none", "x")
	w.answer("/none", http.NotFound)
	if r := w.ping(none); !strings.Contains(r.body, `success="false"`) || len(w.pings()) != 0 {
		t.Errorf("%s, %v", r.body, w.pings())
	}
	w.form("/websub", "hub.mode", "publish", "hub.url", none)
	w.settle()
	if n := len(w.got("GET", "/none")); n != 1 {
		t.Errorf("the feed without subscribers was read %d times", n)
	}
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	w.answer("/feed", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://169.254.169.254/", http.StatusFound)
	})
	if r := w.ping(feed); len(w.pings()) != 0 {
		t.Errorf("%s, %v", r.body, w.pings())
	}
	if log := fmt.Sprint(w.h.shared.log.Recent()); strings.Contains(log, "read again in") {
		t.Error(log)
	}
}

// If the sender of a ping does not wait for the answer, the ping is retried, too.
func TestPingWhoseSenderLeaves(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	hold := make(chan struct{})
	w.answer("/feed", func(rw http.ResponseWriter, r *http.Request) {
		<-hold
		rw.WriteHeader(500)
	})
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", w.server.URL+"/ping", strings.NewReader(encode("url", feed)))
	req.Header.Set("Content-Type", formType)
	reads := len(w.got("GET", "/feed"))
	go http.DefaultClient.Do(req)
	until(t, "the reading", func() bool { return len(w.got("GET", "/feed")) > reads })
	cancel()
	close(hold)
	w.settle()
	w.answer("/feed", nil)
	w.feed("/feed", "two")
	if w.advance(10 * time.Second); len(w.notified("/cb")) != 1 {
		t.Error("the ping is lost")
	}
}

// Updates while a ladder runs neither count as steps nor restart the ladder. The subscriber
// gets the last document. An update makes an extra attempt if the last attempt is at least
// ten seconds old.
func TestUpdatesDuringALadder(t *testing.T) {
	for _, protocol := range []string{"http-post", WebSub} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %v", protocol, restarts), func(t *testing.T) {
				w := newWorld(t, nil)
				feed := w.feed("/feed", "0")
				if protocol == WebSub {
					w.subscribe("subscribe", w.site.URL+"/cb", feed)
				} else {
					w.register("/cb", feed)
				}
				m := &moody{status: 500}
				w.answer("/cb", m.answer)
				begin, n := w.clock.Now(), 0
				tries := func() int { return len(w.got("POST", "/cb")) }
				at := func(d time.Duration, update bool, want int) {
					t.Helper()
					if restarts {
						w.restart()
						w.h.shared.hurry()
						w.settle()
					}
					w.advance(begin.Add(d).Sub(w.clock.Now()))
					if update {
						n++
						w.feed("/feed", fmt.Sprint(n))
						w.ping(feed)
						w.settle()
					}
					if tries() != want || w.journals() != min(1, w.journals()) {
						t.Errorf("after %s: tried %d times, not %d; %d rounds", d, tries(), want, w.journals())
					}
				}
				// After three updates within three seconds, the subscriber accepts notifications.
				at(0, true, 1)
				at(time.Second, true, 1)
				at(2*time.Second, true, 1)
				m.set(200)
				at(10*time.Second, false, 2)
				if s := w.subscriptions(feed)[0]; s.Errors != 0 || !s.Failed.IsZero() || w.journals() != 0 {
					t.Errorf("%+v, %d rounds", s, w.journals())
				}
				if got := w.got("POST", "/cb"); protocol == WebSub && got[1].body != "3" {
					t.Errorf("the subscriber received the document %q", got[1].body)
				}
				// Three ladders fail, with an update every 100 seconds.
				m.set(500)
				for round := range 3 {
					begin = w.clock.Now()
					before := tries()
					want := before
					steps := []time.Duration{0, 10 * time.Second, 70 * time.Second, 370 * time.Second, 2170 * time.Second}
					// Extra attempts are made at updates, if the last attempt is old enough.
					var last time.Duration = -time.Hour
					for d := time.Duration(0); d <= 2170*time.Second; d += 10 * time.Second {
						update := d%(100*time.Second) == 0 && d < 2170*time.Second
						if !update && !slices.Contains(steps, d) {
							continue
						}
						if slices.Contains(steps, d) {
							want++
							last = d
						} else if update && d-last >= 10*time.Second {
							want++
							last = d
						}
						at(d, update, want)
					}
					s := w.subscriptions(feed)[0]
					if s.Errors != round+1 || w.journals() != 0 {
						t.Fatalf("after ladder %d: %+v, %d rounds", round+1, s, w.journals())
					}
					if protocol == WebSub && tries()-before < len(retrySteps.Steps)+15 {
						t.Error("this test makes too few extra attempts")
					}
					w.clock.Add(time.Hour)
				}
				// By rssCloud, nothing is sent to the subscriber until it registers again.
				begin = w.clock.Now()
				before := tries()
				if protocol == WebSub {
					at(0, true, before+1)
					return
				}
				at(0, true, before)
				m.set(200)
				w.register("/cb", feed)
				at(time.Minute, true, before+1)
				if s := w.subscriptions(feed)[0]; s.Errors != 0 {
					t.Errorf("%+v", s)
				}
				if log := fmt.Sprint(w.h.shared.log.Recent()); !strings.Contains(log, "until it registers again") {
					t.Error(log)
				}
			})
		}
	}
}

// A success clears the strikes: two failed ladders, a success, and two more failed ladders
// do not end a subscription.
func TestSuccessClearsStrikes(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "0")
	w.register("/cb", feed)
	m := &moody{}
	w.answer("/cb", m.answer)
	fail := func(i int) {
		m.set(500)
		w.feed("/feed", fmt.Sprint("failure ", i))
		w.ping(feed)
		for _, d := range retrySteps.Steps {
			w.advance(d)
		}
	}
	for i, want := range []int{1, 2} {
		fail(i)
		if s := w.subscriptions(feed)[0]; s.Errors != want {
			t.Errorf("%+v", s)
		}
	}
	m.set(204)
	w.feed("/feed", "success")
	w.ping(feed)
	for i, want := range []int{1, 2, 3} {
		fail(i + 10)
		if s := w.subscriptions(feed)[0]; s.Errors != want || s.givenUp() != (want == 3) {
			t.Errorf("%+v", s)
		}
	}
}

// With hubs that stop, updates, and subscribers that fail, all at random, every subscriber
// gets the last document in the end, and no subscriber gets a document twice.
func TestRoundsOfHubsThatEnd(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, nil)
		feed := w.feed("/feed", "0")
		var mu sync.Mutex
		accepted := map[string][]string{} // documents that each callback accepted
		bad := map[string]bool{}
		const n = 4
		for i := range n {
			path := fmt.Sprintf("/cb%d", i)
			w.subscribe("subscribe", w.site.URL+path, feed)
			w.answer(path, func(rw http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					io.WriteString(rw, r.FormValue("hub.challenge"))
					return
				}
				b, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				if bad[path] {
					rw.WriteHeader(500)
					return
				}
				accepted[path] = append(accepted[path], string(b))
			})
		}
		version := 0
		for range 40 {
			mu.Lock()
			bad[fmt.Sprintf("/cb%d", random.IntN(n))] = random.IntN(2) == 0
			mu.Unlock()
			switch random.IntN(4) {
			case 0:
				version++
				w.feed("/feed", fmt.Sprint(version))
				w.ping(feed)
			case 1:
				w.settle() // stop between notifications, because one in progress may be repeated
				w.restart()
				w.h.shared.hurry()
			case 2:
				w.advance(time.Duration(random.IntN(400)) * time.Second)
			case 3:
				w.advance(time.Second)
			}
		}
		version++
		w.feed("/feed", fmt.Sprint(version))
		mu.Lock()
		clear(bad)
		mu.Unlock()
		w.ping(feed)
		for range 60 {
			w.advance(time.Minute)
		}
		for path, list := range accepted {
			if list[len(list)-1] != fmt.Sprint(version) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("seed %d: %s got the documents %v, and the last is %d", seed, path, list, version)
			}
		}
		if len(accepted) != n || w.journals() != 0 {
			t.Errorf("seed %d: %d subscribers were notified, %d rounds are left", seed, len(accepted), w.journals())
		}
	}
}
