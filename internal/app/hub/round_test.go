package hub

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/filelog"
)

// A subscriber that unsubscribes while a pass runs and registers again before the next update
// gets that update, although the running pass counts the subscriber as gone.
func TestSubscriberThatComesBackDuringAPass(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hash, key := strings.Repeat("a", 40), strings.Repeat("b", 40)
	w := newWorld(t, nil)
	j := w.h.shared.jobs
	update := func() {
		if _, err := j.update(hash, feedState{}, []string{key}, nil, now); err != nil {
			t.Fatal(err)
		}
	}
	begin := func() *round {
		passes := j.begin(now, time.Hour, nil).rounds
		if len(passes) != 1 {
			t.Fatalf("%d passes", len(passes))
		}
		return passes[0]
	}
	update()
	old := begin()
	update()
	j.hasNotified(old, key) // the old pass finds no subscription
	if j.end(old, now); w.journals() != 1 {
		t.Error("after a kill the update is lost")
	}
	p := begin()
	if !j.take(p, key, now) {
		t.Fatal("the subscriber is not notified")
	}
	j.hasNotified(p, key)
	if j.end(p, now); len(j.feeds) != 0 || w.journals() != 0 {
		t.Error("the round continues after the last notification")
	}
}

// If the log of jobs is compacted while it is used, no job is lost.
func TestLogOfJobsIsCompacted(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hash := strings.Repeat("a", 40)
	w := newWorld(t, nil)
	j := w.h.shared.jobs
	j.compact = 2000
	var keys []string
	for i := range 20 {
		keys = append(keys, strings.Repeat(string("0123456789abcdef"[i%16])+string("0123456789abcdef"[i/16]), 20))
	}
	if _, err := j.update(hash, feedState{}, keys, nil, now); err != nil {
		t.Fatal(err)
	}
	j.compact = 2000
	for range len(retrySteps.Steps) {
		work := j.begin(now, time.Hour, nil)
		passes, next := work.rounds, work.next
		if len(passes) == 0 {
			now = next
			continue
		}
		for i, key := range passes[0].keys {
			if !j.take(passes[0], key, now) {
				t.Fatal(key)
			}
			if i%2 == 0 {
				j.hasNotified(passes[0], key)
			} else {
				j.failed(passes[0], key, now, 0, false)
			}
		}
		j.end(passes[0], now)
		if got := w.onDisk().feeds[hash]; len(got.pending) != len(j.feeds[hash].pending) {
			t.Fatalf("%d jobs on the disk, %d in the table", len(got.pending), len(j.feeds[hash].pending))
		}
	}
	if j.log.Size() > 2*minCompact || len(j.feeds[hash].pending) == 0 {
		t.Errorf("the log has %d bytes for %d jobs", j.log.Size(), len(j.feeds[hash].pending))
	}
}

// A log that exceeds the size for compaction is read whole, and stays whole when the next line
// compacts it.
func TestLargeRoundStays(t *testing.T) {
	w := newWorld(t, nil)
	hash := strings.Repeat("a", 40)
	var keys strings.Builder
	const n = minCompact/80 + 100
	for i := range n {
		keys.WriteString((&job{}).line(hash, fmt.Sprintf("%040x", i)))
	}
	w.writeJobs(keys.String())
	w.restart()
	if got := w.onDisk().feeds[hash]; got == nil || len(got.pending) != n {
		t.Fatalf("the log has %+v; want %d jobs", got, n)
	}
	w.writeJobs((&job{}).line(strings.Repeat("b", 40), strings.Repeat("c", 40)))
	if got := w.onDisk(); len(got.feeds[hash].pending) != n || len(got.feeds) != 2 {
		t.Errorf("the log has %d feeds", len(got.feeds))
	}
}

// Results that could not be written, for example on a full disk, are written later, so that
// the next hub does not notify these subscribers again.
func TestResultsThatCouldNotBeWritten(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hash, keys := strings.Repeat("a", 40), []string{strings.Repeat("b", 40), strings.Repeat("c", 40)}
	w := newWorld(t, nil)
	j := w.h.shared.jobs
	if _, err := j.update(hash, feedState{}, keys, nil, now); err != nil {
		t.Fatal(err)
	}
	passes := j.begin(now, time.Hour, nil).rounds
	whole := j.log
	var err error
	if j.log, _, err = filelog.Open(w.opts.State+"/closed", filelog.Options{}); err != nil {
		t.Fatal(err)
	}
	j.log.Close()
	j.take(passes[0], keys[0], now)
	j.hasNotified(passes[0], keys[0])
	j.log = whole
	if len(w.onDisk().feeds[hash].pending) != 2 {
		t.Fatal("the result was written")
	}
	j.begin(now, time.Hour, nil)
	if got := w.onDisk().feeds[hash]; len(got.pending) != 1 || got.pending[keys[1]] == nil {
		t.Errorf("%+v", got.pending)
	}
}

// If the job of a ping cannot be written, the publisher gets an error, and the feed is read
// anyway when it can be written.
func TestPublishOnAFullDisk(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	w.feed("/feed", "two")
	w.h.shared.jobs.close()
	path := w.opts.State + "/jobs"
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // a compacted log cannot replace a directory
		t.Fatal(err)
	}
	r := w.form("/websub", "hub.mode", "publish", "hub.url", feed)
	if w.h.shared.hurry(); r.status/100 == 2 {
		t.Errorf("%+v", r)
	}
	w.settle()
	if len(w.notified("/cb")) != 0 || !strings.Contains(w.log.String(), "jobs") {
		t.Fatal(w.log)
	}
	err := os.Remove(path)
	if err == nil {
		w.h.shared.jobs.log, _, err = filelog.Open(path, filelog.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.advance(readLater)
	if len(w.notified("/cb")) != 1 {
		t.Errorf("not notified: %s", w.log)
	}
}

// If a subscription is renewed or ended during a pass, its state at its turn counts.
func TestSubscriptionThatChangesDuringAPass(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AtOnce, o.Callbacks.PerHost = 1, 1 })
	feed := w.feed("/feed", "one")
	hash := hashOf(feed)
	w.register("/first", feed)
	began, goOn := make(chan bool), make(chan bool)
	w.answer("/first", func(http.ResponseWriter, *http.Request) { began <- true; <-goOn })
	w.register("/ends", feed)
	ends := &subscription{Protocol: "http-post", Callback: w.site.URL + "/ends"}
	w.h.shared.states.apply(hash, ends.key(), delivered(true), w.clock.Now()) // slow subscribers come last
	before := len(w.notified("/ends"))
	w.feed("/feed", "two")
	done := make(chan bool)
	go func() { w.ping(feed); close(done) }()
	<-began
	if _, is, err := w.h.shared.states.apply(hash, ends.key(), unsubscribed, w.clock.Now()); is.Callback != "" || err != nil {
		t.Fatal(is, err)
	}
	close(goOn)
	<-done
	if w.settle(); len(w.notified("/ends")) != before {
		t.Error("notified after its end")
	}
}

// hidden replaces a file by a symbolic link to itself, which cannot be read. back restores
// the file.
func hidden(t *testing.T, path string) (back func()) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+"~"), os.Symlink(path, path)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(path), os.Rename(path+"~", path)); err != nil {
			t.Fatal(err)
		}
	}
}

// If a subscription cannot be read for a while, it stays, and its subscriber is notified when
// it can be read. Other subscribers are notified at once.
func TestSubscriptionThatCannotBeRead(t *testing.T) {
	for _, during := range []string{"at the ping", "in the pass"} {
		t.Run(during, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.AtOnce, o.Callbacks.PerHost = 1, 1 })
			feed := w.feed("/feed", "one")
			w.register("/first", feed)
			w.register("/cb", feed)
			s := &subscription{Protocol: "http-post", Callback: w.site.URL + "/cb"}
			path := filepath.Join(w.h.shared.states.subs(hashOf(feed)), s.key())
			w.feed("/feed", "two")
			var back func()
			if during == "at the ping" {
				back = hidden(t, path)
			} else {
				w.h.shared.states.apply(hashOf(feed), s.key(), delivered(true), w.clock.Now()) // slow subscribers come last
				w.answer("/first", func(http.ResponseWriter, *http.Request) { back = hidden(t, path) })
			}
			w.ping(feed)
			w.settle()
			if len(w.notified("/first")) != 1 || len(w.notified("/cb")) != 0 || !strings.Contains(w.log.String(), s.key()) {
				t.Fatalf("%q, %q: %s", w.notified("/first"), w.notified("/cb"), w.log)
			}
			back()
			w.advance(retrySteps.Steps[0])
			if len(w.notified("/first")) != 1 || len(w.notified("/cb")) != 1 {
				t.Errorf("%d and %d notifications, want 1 and 1: %s", len(w.notified("/first")), len(w.notified("/cb")), w.log)
			}
			if got := w.subscriptions(feed); len(got) != 2 || got[0].Errors+got[1].Errors > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// If the subscriptions or the state of a feed cannot be read for a while, the feed is read
// again later, and its update is neither missed nor counted twice.
func TestFeedThatCannotBeLookedUp(t *testing.T) {
	for _, name := range []string{"subs", "feed"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			feed := w.feed("/feed", "one")
			w.register("/cb", feed)
			for n, text := range []string{"one", "two"} {
				w.feed("/feed", text)
				back := hidden(t, filepath.Join(w.h.shared.states.feed(hashOf(feed)), name))
				w.ping(feed)
				w.settle()
				if len(w.notified("/cb")) != 0 {
					t.Fatalf("%s: notified: %s", text, w.log)
				}
				back()
				w.advance(readLater)
				if got := len(w.notified("/cb")); got != n {
					t.Errorf("%s: %d notifications, want %d: %s", text, got, n, w.log)
				}
			}
		})
	}
}

// After a kill between writing the jobs of an update and recording its document, the next hub
// notifies the remaining subscribers, and the next ping finds the document unchanged.
func TestKilledBeforeTheDocumentIsRecorded(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	record := filepath.Join(w.h.shared.states.feed(hashOf(feed)), "feed")
	before, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	w.answer("/cb", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	w.feed("/feed", "two")
	w.ping(feed)
	w.settle()
	w.h.Close()
	log := filepath.Join(w.opts.State, jobsName)
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	// Cut the log after the only subscriber's line, which ends the append of the jobs.
	s := &subscription{Protocol: "http-post", Callback: w.site.URL + "/cb"}
	end := strings.Index(string(data), s.key()+"\t0\t\n")
	if end < 0 {
		t.Fatalf("no job: %s", data)
	}
	data = data[:end+len(s.key()+"\t0\t\n")]
	if err := errors.Join(os.WriteFile(log, data, 0o600), os.WriteFile(record, before, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.answer("/cb", nil)
	count := len(w.notified("/cb"))
	w.start()
	w.h.shared.hurry()
	w.settle()
	w.ping(feed)
	w.settle()
	if got := len(w.notified("/cb")) - count; got != 1 {
		t.Errorf("notified %d times after the kill, want once: %s", got, w.log)
	}
	if w.digest(feed) != digestOf([]byte("two")) {
		t.Error("the document is not recorded")
	}
}

// An error of a subscription that cannot be written is reported.
func TestStrikeThatIsNotWritten(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	hash := hashOf(feed)
	keys, err := w.h.shared.states.keys(hash)
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	path := filepath.Join(w.h.shared.states.subs(hash), keys[0])
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	w.h.shared.notifier.conclude(&round{hash: hash, feed: feed, struck: keys})
	if !strings.Contains(w.log.String(), "not counted") || !strings.Contains(w.log.String(), path) {
		t.Error(w.log)
	}
}

// A result that cannot be recorded is a warning: the subscriber was notified, and is not
// notified again.
func TestResultOfASubscriptionThatCannotBeRead(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	keys, err := w.h.shared.states.keys(hashOf(feed))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d subscriptions, %v; want 1", len(keys), err)
	}
	path := filepath.Join(w.h.shared.states.subs(hashOf(feed)), keys[0])
	w.answer("/cb", func(rw http.ResponseWriter, r *http.Request) {
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Error(err)
		}
		http.Error(rw, "gone", http.StatusInternalServerError)
	})
	w.feed("/feed", "two")
	w.ping(feed)
	w.settle()
	if log := w.log.String(); !strings.Contains(log, "is not recorded") || !strings.Contains(log, feed) {
		t.Errorf("the log has %q; want the feed and that a result is not recorded", log)
	}
}
