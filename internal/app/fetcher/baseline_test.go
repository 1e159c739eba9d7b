package fetcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// post is an entry of a site.
type post struct {
	id int
	at time.Time
}

// publisher is a site with archives, and the clock of the test. Its archives hold each entries,
// oldest first.
type publisher struct {
	*server.Server
	now   time.Time
	posts []post // the oldest first

	each    int    // entries of an archive
	shown   int    // entries of the subscription document, at least
	plugin  bool   // the newest archive is not full, and has another URL after each post
	hidden  int    // archives that are withdrawn, the newest
	where   string // directory of the archives
	moved   bool   // old URLs of archives redirect to the new ones
	plain   bool   // there are no archives
	undated bool
	broken  int // the archive that fails, from 1, counted from the newest; 0 for none
	served  []string
}

// newPublisher is a site with posts, one a day.
func newPublisher(t *testing.T, posts int) *publisher {
	t.Helper()
	s := server.Start(t, "127.0.0.1")
	w := &publisher{Server: s, now: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), each: 5, shown: 5, where: "a"}
	w.post(posts, 24*time.Hour)
	return w
}

// post publishes n posts, with a pause before each.
func (w *publisher) post(n int, pause time.Duration) {
	for range n {
		w.now = w.now.Add(pause)
		w.posts = append(w.posts, post{len(w.posts), w.now})
	}
}

func (w *publisher) entries(posts []post) string {
	var b strings.Builder
	for _, p := range slices.Backward(posts) {
		date := "<updated>" + p.at.Format(time.RFC3339) + "</updated>"
		if w.undated {
			date = ""
		}
		fmt.Fprintf(&b, "<entry><title>%d</title><id>urn:x:%d</id>%s</entry>", p.id, p.id, date)
	}
	return b.String()
}

// shows returns the number of entries in the subscription document: all that are in no archive, and
// at least shown.
func (w *publisher) shows() int {
	if w.plain {
		return min(w.shown, len(w.posts))
	}
	full := len(w.posts) / w.each * w.each
	n := max(w.shown, len(w.posts)-max(0, full-w.hidden*w.each))
	return min(n, len(w.posts))
}

// publish writes the documents.
func (w *publisher) publish() {
	doc := func(head string, posts []post) http.HandlerFunc {
		return server.Doc("", `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Site</title><id>urn:x:site</id>`+head+w.entries(posts)+"</feed>")
	}
	for _, path := range w.served {
		w.Handle(path, server.Answer(404, ""))
	}
	if w.moved {
		for _, path := range w.served {
			dir, name, _ := strings.Cut(path[1:], "/")
			if dir != w.where {
				w.Handle(path, server.Answer(301, "", "Location: /"+w.where+"/"+name))
			}
		}
	}
	full := len(w.posts) / w.each
	prev, last := "", full
	if w.plugin && len(w.posts)%w.each > 0 {
		last++
	}
	if w.plain {
		last = w.hidden
	}
	for i := range last - w.hidden {
		posts := w.posts[i*w.each : min((i+1)*w.each, len(w.posts))]
		path := fmt.Sprintf("/%s/%d", w.where, i)
		if i == full {
			path += fmt.Sprint("-", len(w.posts))
		}
		handler := doc(mark+link("current", "/feed")+prev, posts)
		if w.broken > 0 && i == last-w.broken {
			handler = server.Answer(503, "")
		}
		w.Handle(path, handler)
		if !slices.Contains(w.served, path) {
			w.served = append(w.served, path)
		}
		prev = link("prev-archive", path)
	}
	w.Handle("/feed", doc(prev, w.posts[len(w.posts)-w.shows():]))
}

// subscriber is a reader of a site.
type subscriber struct {
	*testing.T
	*Runner
	log  *log
	w    *publisher
	hash string
	// first is the start of the first visit. oldest is the oldest post that the subscription
	// document has shown since.
	first  time.Time
	oldest int
}

// newSubscriber subscribes, and visits the site once.
func newSubscriber(t *testing.T, w *publisher) *subscriber {
	t.Helper()
	clock := func() time.Time { return w.now }
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), &lektordir.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	u := &subscriber{T: t, log: &log{}, w: w, first: w.now}
	u.Runner, err = New(d, u.log, Options{Fetch: fetch.Config{Now: clock}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	u.hash = subscribeTo(t, u.Runner, w.URL("/feed"))[0]
	w.publish()
	u.oldest = len(w.posts) - w.shows()
	u.visit()
	return u
}

// visit runs an update.
func (u *subscriber) visit() Summary {
	u.Helper()
	u.oldest = min(u.oldest, len(u.w.posts)-u.w.shows())
	return update(u.T, u.Runner, Selection{Feeds: []string{u.hash}, Reason: Forced})
}

// has returns the numbers of the delivered posts.
func (u *subscriber) has() []int {
	u.Helper()
	var all []int
	for _, title := range titles(u.T, u.Runner, lektordir.ListOptions{AllVersions: true}) {
		n, err := strconv.Atoi(title)
		if err != nil {
			u.Fatal(err)
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// check checks that each post since the subscription was delivered once, and no older post unless
// the feed itself showed it. Posts of the day before are optional.
func (u *subscriber) check(what string) {
	u.Helper()
	got := u.has()
	for i := 1; i < len(got); i++ {
		if got[i] == got[i-1] {
			u.Fatalf("%s: post %d came twice", what, got[i])
		}
	}
	for _, p := range u.w.posts {
		came := slices.Contains(got, p.id)
		switch {
		case !came && (!p.at.Before(u.first) || p.id >= u.oldest):
			u.Fatalf("%s: post %d of %v did not come; the first visit was at %v", what, p.id, p.at, u.first)
		case came && p.id < u.oldest && p.at.Before(u.first.Add(-24*time.Hour)):
			u.Fatalf("%s: post %d of %v came unasked; the first visit was at %v", what, p.id, p.at, u.first)
		}
	}
}

// quiet checks that no message was printed.
func (u *subscriber) quiet(what string) {
	u.Helper()
	if got := u.log.String(); got != "" {
		u.Errorf("%s: %s", what, got)
	}
}

// TestUnasked: if a publisher changes the URLs of archives, an update delivers new entries only,
// and requests few archives.
func TestUnasked(t *testing.T) {
	t.Run("a plugin gives the newest archive another URL with each post", func(t *testing.T) {
		w := newPublisher(t, 103)
		w.plugin = true
		u := newSubscriber(t, w)
		for range 12 {
			w.post(1, 24*time.Hour)
			w.publish()
			if sum := u.visit(); sum.Requested > 2 {
				t.Errorf("%d documents for one post", sum.Requested)
			}
			u.check("a post")
		}
		w.post(23, 24*time.Hour)
		w.publish()
		u.visit()
		u.check("after a holiday")
		u.quiet("plugin")
	})
	t.Run("old entries are imported", func(t *testing.T) {
		w := newPublisher(t, 100)
		u := newSubscriber(t, w)
		for i := range 10 {
			w.posts = append(w.posts, post{1000 + i, w.posts[50].at})
		}
		w.post(5, time.Hour)
		w.publish()
		u.visit()
		if got := u.log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "5 entries in its archive "+w.URL("/a/21")+" not delivered, as they are dated before the last visit; if the publisher has added them since, lektor-fetch history "+w.URL("/feed")) {
			t.Errorf("got %q", got)
		}
		update(t, u.Runner, Selection{Feeds: []string{u.hash}, Want: Want{Archives: true}})
		if got := u.has(); !slices.Contains(got, 1000) || !slices.Contains(got, 1009) {
			t.Errorf("history delivered %d", got)
		}
	})
	t.Run("a site moves", func(t *testing.T) {
		for _, redirects := range []bool{false, true} {
			w := newPublisher(t, 100)
			u := newSubscriber(t, w)
			for i := range 3 {
				w.where, w.moved = fmt.Sprint("b", i), redirects
				w.post(i*7, 24*time.Hour)
				w.publish()
				if sum := u.visit(); sum.Requested > 2+i*2 {
					t.Errorf("%d documents for %d posts", sum.Requested, i*7)
				}
				u.check("moved")
			}
			u.quiet("moved")
		}
	})
	t.Run("an archive is withdrawn and linked to again", func(t *testing.T) {
		w := newPublisher(t, 100)
		u := newSubscriber(t, w)
		for range 3 {
			for _, hidden := range []int{1, 2, 0} {
				w.hidden = hidden
				w.post(1, time.Hour)
				w.publish()
				u.visit()
				u.check(fmt.Sprint("withdrawn ", hidden))
			}
		}
		u.quiet("withdrawn")
	})
	t.Run("a feed gets archives later", func(t *testing.T) {
		w := newPublisher(t, 100)
		w.plain = true
		u := newSubscriber(t, w)
		// Set the time of the recorded body to the test's clock, not the machine's.
		body := u.Dir.Join("src", u.hash, "etc/fetch/body")
		if err := os.Chtimes(body, w.now, w.now); err != nil {
			t.Fatal(err)
		}
		w.plain = false
		w.post(12, 24*time.Hour)
		w.publish()
		if sum := u.visit(); sum.Requested > 4 {
			t.Error(sum)
		}
		u.check("with archives")
		u.quiet("with archives")
	})
	t.Run("after all of it was asked for", func(t *testing.T) {
		w := newPublisher(t, 100)
		u := newSubscriber(t, w)
		update(t, u.Runner, Selection{Feeds: []string{u.hash}, Want: Want{Archives: true}})
		if got := u.has(); len(got) != 100 {
			t.Fatal(len(got))
		}
		w.where = "b"
		w.post(1, time.Hour)
		w.publish()
		if sum := u.visit(); sum.Requested > 2 || sum.New != 1 {
			t.Errorf("%+v", sum)
		}
		u.quiet("whole")
	})
	t.Run("asked for, all of it comes after archives were passed", func(t *testing.T) {
		w := newPublisher(t, 100)
		w.plugin = true
		u := newSubscriber(t, w)
		for range 3 {
			w.post(4, 24*time.Hour)
			w.where += "x"
			w.publish()
			u.visit()
		}
		u.check("moved")
		update(t, u.Runner, Selection{Feeds: []string{u.hash}, Want: Want{Archives: true}})
		if got := u.has(); len(got) != len(w.posts) {
			t.Errorf("%d of %d posts", len(got), len(w.posts))
		}
		u.quiet("moved")
	})
	t.Run("asked for, and interrupted, all of it comes by the next update", func(t *testing.T) {
		w := newPublisher(t, 100)
		u := newSubscriber(t, w)
		w.post(12, 24*time.Hour)
		w.publish()
		u.visit() // stores the newest archives
		ctx, cancel := context.WithCancel(t.Context())
		left := 3
		u.testHook = func(where string) {
			if left--; left == 0 {
				cancel()
			}
		}
		if _, err := u.Update(ctx, Selection{Feeds: []string{u.hash}, Want: Want{Archives: true}}); err == nil {
			t.Error("it was not stopped")
		}
		u.testHook = nil
		if u.visit(); len(u.has()) != len(w.posts) {
			t.Errorf("%d of %d posts", len(u.has()), len(w.posts))
		}
	})
	t.Run("a document that was cut off moves no baseline", func(t *testing.T) {
		w := newPublisher(t, 100)
		u := newSubscriber(t, w)
		h := history.Of(u.Dir, u.hash)
		was := h.Baseline()
		for _, archives := range []int{0, 5} {
			w.post(1+archives, 24*time.Hour)
			w.publish()
			whole := fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom"><title>Site</title><id>urn:x:site</id><link rel="prev-archive" href="/a/%d"/>`, len(w.posts)/w.each-1) + w.entries(w.posts[len(w.posts)-5:])
			w.Handle("/feed", server.Doc("", whole[:len(whole)-300]))
			u.visit()
			if got := h.Baseline(); got != was {
				t.Errorf("it moved from %v to %v", was, got)
			}
		}
		w.post(10, 24*time.Hour)
		w.where = "b"
		w.publish()
		u.visit()
		u.check("whole again")
		if got := h.Baseline(); !got.Since.Equal(w.now) {
			t.Errorf("it is at %v", got)
		}
	})
	t.Run("entries without dates", func(t *testing.T) {
		w := newPublisher(t, 100)
		w.undated = true
		u := newSubscriber(t, w)
		for range 6 {
			w.post(4, time.Hour)
			w.publish()
			u.visit()
			u.check("without dates")
		}
		w.where = "b"
		w.publish()
		if sum := u.visit(); sum.New != 0 || sum.Requested > 2 {
			t.Errorf("moved: %+v", sum)
		}
		u.quiet("without dates")
	})
	t.Run("a damaged baseline", func(t *testing.T) {
		w := newPublisher(t, 100)
		u := newSubscriber(t, w)
		path := u.Dir.Join("src", u.hash, "etc/history/baseline")
		if err := os.WriteFile(path, []byte(w.URL("/a/19")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, w.now, w.now); err != nil {
			t.Fatal(err)
		}
		w.where = "b"
		w.post(6, 24*time.Hour)
		w.publish()
		if sum := u.visit(); sum.Requested > 3 {
			t.Errorf("%+v", sum)
		}
		u.check("moved")
	})
}

// TestUnaskedModel: sites publish, move, withdraw and fail at random. Readers that visit at random
// get every post since they subscribed, and no older one.
func TestUnaskedModel(t *testing.T) {
	sites := 12
	if n, err := strconv.Atoi(os.Getenv(walkFeeds)); err == nil {
		sites = max(1, n/10)
	}
	seed := rand.Uint64()
	if v, err := strconv.ParseUint(os.Getenv("LEKTOR_TEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	for range sites {
		name := fmt.Sprintf("LEKTOR_TEST_SEED=%d", seed)
		rnd := rand.New(rand.NewPCG(seed, 2))
		seed++
		w := newPublisher(t, rnd.IntN(60))
		w.each, w.shown, w.plugin = 1+rnd.IntN(5), 1+rnd.IntN(8), rnd.IntN(2) == 0
		fails := rnd.IntN(2) == 0
		u := newSubscriber(t, w)
		for step := range 25 {
			w.post(rnd.IntN(12), time.Duration(1+rnd.IntN(40))*time.Hour)
			w.now = w.now.Add(time.Duration(rnd.IntN(200)) * time.Hour)
			archives := len(w.posts) / w.each
			w.broken = 0
			switch rnd.IntN(8) {
			case 0:
				w.where, w.moved = fmt.Sprint("m", step), rnd.IntN(2) == 0
			case 1:
				w.hidden = rnd.IntN(min(3, archives+1))
			case 2:
				w.plugin = !w.plugin
			}
			if fails && rnd.IntN(2) == 0 {
				w.broken = 1 + rnd.IntN(5)
			}
			w.hidden = min(w.hidden, archives)
			w.publish()
			if rnd.IntN(3) == 0 {
				continue
			}
			u.visit()
			if !fails {
				u.check(fmt.Sprint(name, ", step ", step))
			}
		}
		w.broken = 0
		w.now = w.now.AddDate(0, 0, 40)
		w.publish()
		u.visit()
		u.check(name + ", at the end")
		if !fails {
			u.quiet(name)
		}
		if got := history.Of(u.Dir, u.hash); got.Gap() != nil || got.Summary() == "incomplete" {
			t.Fatalf("%s: %s, %v", name, got.Summary(), got.Gap())
		}
		u.Close()
	}
}
