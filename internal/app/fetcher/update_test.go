package fetcher

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// log is a Reporter that records messages.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) write(kind, format string, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.b, kind+format+"\n", args...)
}
func (l *log) Warn(format string, args ...any)  { l.write("warning: ", format, args) }
func (l *log) Error(format string, args ...any) { l.write("error: ", format, args) }
func (l *log) Info(format string, args ...any)  { l.write("", format, args) }
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// setup makes a lektor-dir, a runner on it and a server.
func setup(t *testing.T, o Options) (*Runner, *server.Server, *log) {
	t.Helper()
	s := server.Start(t, "127.0.0.1")
	l := &log{}
	r, err := New(create(t), l, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, s, l
}

// create makes a lektor-dir.
func create(t *testing.T) *lektordir.Dir {
	t.Helper()
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func subscribeTo(t *testing.T, r *Runner, urls ...string) (hashes []string) {
	t.Helper()
	for _, u := range urls {
		sub := &subscriptions.Subscription{ID: u}
		if _, err := subscriptions.Add(r.Writer, r.Dir, sub, subscriptions.AddOptions{}); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, sub.Hash)
	}
	return hashes
}

// eventually polls until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited for: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestSummary(t *testing.T) {
	for want, s := range map[string]Summary{
		"103 feeds: 100 fetched, 2 not modified, 1 failed; 2,000 new entries":   {Feeds: 103, Fetched: 100, NotModified: 2, Failed: 1, New: 2000},
		"1 feed: 1 fetched; 1 new entry":                                        {Feeds: 1, Fetched: 1, New: 1},
		"2 feeds: 1 failed, 1 busy; 0 new entries, 3 updated":                   {Feeds: 2, Broken: 1, Busy: 1, Updated: 3},
		"1,234,567 feeds: 1 not due any more; 0 new entries":                    {Feeds: 1234567, Skipped: 1},
		"0 feeds: nothing done; 0 new entries":                                  {},
		"3 feeds: 1,000 fetched, 1,000 not modified, 2 failed; 999 new entries": {Feeds: 3, Fetched: 1000, NotModified: 1000, Failed: 1, Broken: 1, New: 999},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTurns: hosts take turns, so one with few feeds does not wait for one with many.
func TestTurns(t *testing.T) {
	r, many, _ := setup(t, Options{Jobs: 1})
	few, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer few.Close()
	var mu sync.Mutex
	var order []string
	feed := func(s *server.Server, name string, n int) {
		for i := range n {
			path := fmt.Sprintf("/%d", i)
			s.Handle(path, func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				server.Doc("", server.RSS(name, i, 1))(w, q)
			})
			subscribeTo(t, r, s.URL(path))
		}
	}
	feed(many, "many", 20)
	feed(few, "few", 3)
	if sum, err := r.Update(t.Context(), Selection{}); err != nil || sum.Fetched != 23 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if last := len(order) - slices.Index(reversed(order), "few"); last > 9 {
		t.Errorf("the last of the few is number %d: %q", last, order)
	}
}

func reversed(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

// TestPerHost: at most PerHost feeds of a host, and at most Jobs feeds in all, are requested at
// once.
func TestPerHost(t *testing.T) {
	for _, perHost := range []int{1, 2} {
		const jobs, feeds = 4, 20 // so many jobs that a host of the three has two
		r, _, l := setup(t, Options{Jobs: jobs, Fetch: fetch.Config{PerHost: perHost}})
		var mu sync.Mutex
		all, most := 0, 0
		enter := func(n *int, by int) int {
			mu.Lock()
			defer mu.Unlock()
			*n += by
			all += by
			most = max(most, all)
			return *n
		}
		for range 3 {
			host, err := server.New("127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			now := 0
			full := make(chan struct{})
			fill := sync.OnceFunc(func() { close(full) })
			for i := range feeds {
				path := fmt.Sprintf("/%d", i)
				host.Handle(path, func(w http.ResponseWriter, q *http.Request) {
					n := enter(&now, 1)
					defer enter(&now, -1)
					if n > perHost {
						t.Errorf("%d requests to a host at once, want at most %d", n, perHost)
					}
					if n == perHost {
						fill()
					}
					// The first request waits until the maximum number of requests run.
					select {
					case <-full:
					case <-q.Context().Done():
					}
					time.Sleep(time.Millisecond) // for one too many to come
					server.Doc("", server.RSS("Feed", i, 1))(w, q)
				})
				subscribeTo(t, r, host.URL(path))
			}
		}
		if sum, err := r.Update(t.Context(), Selection{}); err != nil || sum.Fetched != 3*feeds {
			t.Errorf("%+v, %v, want %d fetched\n%s", sum, err, 3*feeds, l)
		}
		if most > jobs {
			t.Errorf("%d requests at once, want at most %d", most, jobs)
		}
	}
}

// TestStallsHoldUpNobody: one host stalls more feeds than there are workers.
func TestStallsHoldUpNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var delivered atomic.Int32
	r, slow, _ := setup(t, Options{Jobs: 4, Delivered: func(refs []lektordir.Ref) { delivered.Add(int32(len(refs))) }})
	fast, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	for i := range 10 {
		path := fmt.Sprintf("/%d", i)
		slow.Handle(path, server.Stall)
		fast.Handle(path, server.Doc("", server.RSS("Fast", i, 1)))
		subscribeTo(t, r, slow.URL(path), fast.URL(path))
	}
	end := make(chan error)
	go func() { _, err := r.Update(ctx, Selection{}); end <- err }()
	eventually(t, "the fast feeds", func() bool { return delivered.Load() == 10 })
	if n := len(slow.Requests("")); n != 1 {
		t.Errorf("%d requests to the slow host", n)
	}
	// If the run is stopped, it ends at once, and the stalled feeds stay due.
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	tasks, _, err := r.due(false, nil)
	if err != nil || len(tasks) != 10 {
		t.Errorf("%d feeds are due, %v", len(tasks), err)
	}
}

// TestConnections: one connection serves all feeds of a host, and is closed with
// the last of them.
func TestConnections(t *testing.T) {
	r, s, _ := setup(t, Options{})
	for i := range 3 {
		path := fmt.Sprintf("/%d", i)
		s.Handle(path, server.Doc("", server.RSS("Feed", i, 1)))
		subscribeTo(t, r, s.URL(path))
	}
	if sum, err := r.Update(context.Background(), Selection{}); err != nil || sum.Fetched != 3 {
		t.Fatalf("%+v, %v", sum, err)
	}
	var got []string
	for _, q := range s.Requests("") {
		got = append(got, q.Header.Get("Connection"))
	}
	if want := []string{"", "", "close"}; !slices.Equal(got, want) {
		t.Errorf("Connection: %q, want %q", got, want)
	}
}

// TestForeignFeeds: a feed of another program, without a url, is left alone, due or not, even if
// something else is in place of its url.
func TestForeignFeeds(t *testing.T) {
	r, s, l := setup(t, Options{})
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 1)))
	subscribeTo(t, r, s.URL("/feed"))
	src := func(rel string) string { return r.Dir.Join("src", rel) }
	if err := errors.Join(
		os.MkdirAll(src("aaaa/etc"), 0o777), os.WriteFile(src("aaaa/etc/fetch"), nil, 0o666),
		os.Mkdir(src("bbbb"), 0o777), os.WriteFile(src("bbbb/etc"), nil, 0o666),
		os.Symlink("cccc", src("cccc")), os.Symlink("bbbb/etc", src("dddd")),
		os.MkdirAll(r.Dir.Join("etc/fetch/due"), 0o777), os.WriteFile(r.Dir.Join("etc/fetch/due/aaaa"), nil, 0o666),
	); err != nil {
		t.Fatal(err)
	}
	for _, sel := range []Selection{{Reason: Forced}, {}} {
		sum, err := r.Update(context.Background(), sel)
		if err != nil || sum.Feeds > 1 || sum.Failed+sum.Broken > 0 || l.String() != "" {
			t.Errorf("%+v: %+v, %v\n%s", sel, sum, err, l)
		}
	}
}

// TestValidatorsComeLast: a document that could not be delivered is requested again at once,
// without validators.
func TestValidatorsComeLast(t *testing.T) {
	r, s, l := setup(t, Options{})
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 3)))
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	// A file in the place of new/$feed: staging fails.
	block := r.Dir.Join("new", hash)
	if err := os.WriteFile(block, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	sum, err := r.Update(context.Background(), Selection{})
	if err != nil || sum.Broken != 1 || !strings.Contains(l.String(), "error: "+s.URL("/feed")+": not delivered: ") {
		t.Errorf("%+v, %v\n%s", sum, err, l)
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	// The next run finds the entries in the journal or in the document.
	r.Recover(context.Background())
	if sum, err = r.Update(context.Background(), Selection{}); err != nil || sum.Fetched != 1 {
		t.Errorf("%+v, %v\n%s", sum, err, l)
	}
	if refs, err := r.Dir.List(context.Background(), lektordir.ListOptions{}); err != nil || len(refs) != 3 {
		t.Errorf("%d entries, %v", len(refs), err)
	}
	for _, req := range s.Requests("/feed") {
		if req.Header.Get("If-None-Match") != "" {
			t.Error("validators were sent")
		}
	}
	if sum, err = r.Update(context.Background(), Selection{Reason: Forced}); err != nil || sum.NotModified != 1 {
		t.Errorf("%+v, %v\n%s", sum, err, l)
	}
}

// TestSameBodyIsNotParsed: an unchanged document of a server without validators is not parsed.
func TestSameBodyIsNotParsed(t *testing.T) {
	r, s, l := setup(t, Options{})
	doc := strings.Replace(server.RSS("Feed", 0, 3), "<item>", "<i a=1><item>", 1)
	s.Handle("/feed", server.Answer(200, doc))
	subscribeTo(t, r, s.URL("/feed"))
	for range 3 {
		if _, err := r.Update(context.Background(), Selection{Reason: Forced}); err != nil {
			t.Fatal(err)
		}
	}
	sum, _ := r.Update(context.Background(), Selection{Reason: Forced})
	if sum.Unchanged != 1 || sum.Fetched != 1 {
		t.Errorf("%+v", sum)
	}
	if n := strings.Count(l.String(), "warning"); n > 1 {
		t.Errorf("it was parsed again:\n%s", l)
	}
}

// TestWatch: Watch fetches a feed that is due, one with a marker, a new subscription, and one whose
// interval passes.
func TestWatch(t *testing.T) {
	r, s, l := setup(t, Options{})
	for _, path := range []string{"/due", "/marked", "/later", "/often"} {
		s.Handle(path, server.Doc("", server.RSS(path, 0, 1)))
	}
	seen := func(path string, n int) func() bool {
		return func() bool { return len(s.Requests(path)) >= n }
	}
	marked := subscribeTo(t, r, s.URL("/marked"))[0]
	if sum, err := r.Update(context.Background(), Selection{}); err != nil || sum.New != 1 {
		t.Fatal(sum, err)
	}
	subscribeTo(t, r, s.URL("/due"))
	often := subscribeTo(t, r, s.URL("/often"))[0]
	if err := os.WriteFile(filepath.Join(r.Dir.Join("src", often, "etc", "fetch"), "interval"), []byte("1s\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready, end := make(chan struct{}), make(chan error)
	go func() { end <- r.Watch(ctx, func() { close(ready) }) }()
	<-ready
	eventually(t, "the feed that is due", seen("/due", 1))
	mark := func() {
		if err := os.WriteFile(r.Dir.Join("etc/fetch/due", marked), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mark()
	eventually(t, "the marked feed", seen("/marked", 2))
	eventually(t, "the end of the mark", func() bool {
		_, err := os.Stat(r.Dir.Join("etc/fetch/taken", marked))
		return errors.Is(err, os.ErrNotExist)
	})
	mark()
	eventually(t, "the feed marked again", seen("/marked", 3))
	subscribeTo(t, r, s.URL("/later"))
	eventually(t, "the new subscription", seen("/later", 1))
	eventually(t, "the short interval", seen("/often", 3))
	cancel()
	if err := <-end; err != nil {
		t.Error(err)
	}
	if n := len(s.Requests("/due")); n != 1 {
		t.Errorf("%d requests for a feed that was due once", n)
	}
	if strings.Contains(l.String(), "error") {
		t.Error(l)
	}
}

// TestWatchRecovers: Watch delivers the entries of a failed commit without a restart.
func TestWatchRecovers(t *testing.T) {
	var shift atomic.Int64
	r, s, _ := setup(t, Options{Fetch: fetch.Config{Now: func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }}})
	entry := deliveredOne(t, r, s)
	unsettle(t, r, entry)
	ctx, cancel := context.WithCancel(context.Background())
	ready, end := make(chan struct{}), make(chan error)
	go func() { end <- r.Watch(ctx, func() { close(ready) }) }()
	<-ready
	shift.Store(int64(2 * rescan))
	// Any change in the directory ends the wait for the next scan.
	if err := os.Mkdir(r.Dir.Join("src", "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the entry", func() bool {
		_, err := os.Stat(r.Dir.Join(entry.Path()))
		return err == nil
	})
	cancel()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// TestMarkedMeanwhile: a marker that is set while the feed is fetched causes another fetch.
func TestMarkedMeanwhile(t *testing.T) {
	r, s, _ := setup(t, Options{})
	hold := make(chan struct{})
	began := make(chan struct{}, 10)
	s.Handle("/feed", func(w http.ResponseWriter, req *http.Request) {
		began <- struct{}{}
		<-hold
		server.Doc("", server.RSS("x", 0, 1))(w, req)
	})
	hash := subscribeTo(t, r, s.URL("/feed"))[0]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready, end := make(chan struct{}), make(chan error)
	go func() { end <- r.Watch(ctx, func() { close(ready) }) }()
	<-ready
	<-began
	if err := os.WriteFile(r.Dir.Join("etc/fetch/due", hash), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	close(hold)
	<-began
	cancel()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// TestAddStaysOut: a document that is not a feed leaves no subscription.
func TestAddStaysOut(t *testing.T) {
	r, s, _ := setup(t, Options{})
	s.Handle("/page", server.Answer(200, "<html><title>x</title></html>"))
	for _, url := range []string{s.URL("/page"), s.URL("/none")} {
		if _, err := r.Add(context.Background(), url, AddOptions{}); err == nil {
			t.Errorf("%s was added", url)
		}
	}
	if subs, err := subscriptions.List(r.Dir); err != nil || len(subs) != 0 {
		t.Errorf("%v, %v", subs, err)
	}
}

// TestPasswordsAreNotShown: passwords are neither in messages nor in files that others can read.
func TestPasswordsAreNotShown(t *testing.T) {
	r, s, l := setup(t, Options{})
	url := strings.Replace(s.URL("/feed"), "http://", "http://ann:secret@", 1)
	subscribeTo(t, r, url)
	if _, err := r.Update(context.Background(), Selection{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(l.String(), "secret") || !strings.Contains(l.String(), s.URL("/feed")) {
		t.Error(l)
	}
	if got := s.Requests("/feed")[0].Header.Get("Authorization"); got == "" {
		t.Error("no authorization was sent")
	}
}

// TestRoom: no request starts while the maximum number of documents is parsed.
func TestRoom(t *testing.T) {
	r, _, _ := setup(t, Options{})
	if err := r.parser.places.Acquire(t.Context(), r.parser.total); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- r.parser.waitForPlace(context.Background()) }()
	select {
	case <-done:
		t.Fatal("it did not wait")
	default:
	}
	r.parser.places.Release(1)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := r.parser.places.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- r.parser.waitForPlace(ctx) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// beginUpdate starts an update of all due feeds, and returns a channel for its summary.
func beginUpdate(t *testing.T, r *Runner) <-chan Summary {
	done := make(chan Summary, 1)
	go func() {
		sum, err := r.Update(t.Context(), Selection{})
		if err != nil {
			t.Error(err)
		}
		done <- sum
	}()
	return done
}

// TestCompressedAlone: a small compressed document may be large when decompressed, so it is parsed
// alone, like a large one.
func TestCompressedAlone(t *testing.T) {
	r, s, l := setup(t, Options{})
	var doc bytes.Buffer
	z := gzip.NewWriter(&doc)
	z.Write([]byte(server.RSS("Packed", 0, 2)))
	z.Close()
	s.Handle("/packed", server.Doc("", doc.String()))
	subscribeTo(t, r, s.URL("/packed"))
	if err := r.parser.places.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	done := beginUpdate(t, r)
	// If no place is free at all, the document is waiting for all places.
	eventually(t, "the document", func() bool {
		free := r.parser.places.TryAcquire(1)
		if free {
			r.parser.places.Release(1)
		}
		return !free
	})
	select {
	case sum := <-done:
		t.Fatalf("it was read beside another: %+v", sum)
	case <-time.After(20 * time.Millisecond):
	}
	r.parser.places.Release(1)
	if sum := <-done; sum.New != 2 {
		t.Errorf("%+v\n%s", sum, l)
	}
}

// TestSlowFilter: while the filter of a large document runs, other feeds are fetched.
func TestSlowFilter(t *testing.T) {
	r, slow, l := setup(t, Options{})
	fast, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	large := server.RSS("Slow", 0, 1) + "<!-- " + strings.Repeat("large ", bigDocument/6) + "-->"
	slow.Handle("/feed", server.Doc("", large))
	began, end := filepath.Join(t.TempDir(), "began"), filepath.Join(t.TempDir(), "end")
	hash := subscribeTo(t, r, slow.URL("/feed"))[0]
	st, err := schedule.Load(r.Dir, hash)
	if err == nil {
		err = st.Change("filter", fmt.Sprintf("touch %s; while ! test -e %s; do sleep 0.01; done; cat", began, end))
	}
	if err != nil {
		t.Fatal(err)
	}
	slowDone := beginUpdate(t, r)
	eventually(t, "the filter", func() bool { _, err := os.Stat(began); return err == nil })
	for i := range 10 {
		path := fmt.Sprintf("/%d", i)
		fast.Handle(path, server.Doc("", server.RSS("Fast", i, 1)))
		subscribeTo(t, r, fast.URL(path))
	}
	// The second run skips the feed that the first one has locked.
	if sum := <-beginUpdate(t, r); sum.New != 10 || sum.Busy != 1 {
		t.Errorf("beside the filter: %+v\n%s", sum, l)
	}
	if err := os.WriteFile(end, nil, 0o666); err != nil {
		t.Error(err)
	}
	if sum := <-slowDone; sum.New != 1 {
		t.Errorf("%+v\n%s", sum, l)
	}
}

// TestMoveLosesNothing: the document at a new server is delivered, even if its validators equal
// those of the old one by chance.
func TestMoveLosesNothing(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		r, s, l := setup(t, Options{})
		tagged := func(n int) http.HandlerFunc {
			return func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("ETag", `"1"`)
				if q.Header.Get("If-None-Match") == `"1"` {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				fmt.Fprint(w, server.RSS("Feed", 0, n))
			}
		}
		s.Handle("/old", tagged(1))
		s.Handle("/new", tagged(3))
		subscribeTo(t, r, s.URL("/old"))
		update := func(want Summary) {
			t.Helper()
			if sum, err := r.Update(t.Context(), Selection{Reason: Forced}); err != nil || sum != want {
				t.Fatalf("%d: %+v, %v\n%s", status, sum, err, l)
			}
		}
		update(Summary{Feeds: 1, Fetched: 1, New: 1})
		s.Handle("/old", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/new", status) })
		update(Summary{Feeds: 1, Fetched: 1, New: 2})
		// A feed behind a constant redirect is not sent in full each time, but once after its url has changed.
		for i := range 5 {
			if i == 2 && (status == 301 || status == 308) {
				update(Summary{Feeds: 1, Fetched: 1})
			} else {
				update(Summary{Feeds: 1, NotModified: 1})
			}
		}
	}
}

// TestCommandsKnowTheirFeed: filters and commands get the feed in their environment, without a
// password.
func TestCommandsKnowTheirFeed(t *testing.T) {
	r, s, l := setup(t, Options{})
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 1)))
	out := filepath.Join(t.TempDir(), "env")
	url := strings.Replace(s.URL("/feed"), "http://", "http://ann:secret@", 1)
	tell := fmt.Sprintf(`printf '%%s\n' "$LEKTOR_URL" "$LEKTOR_FEED" "$LEKTOR_DIR" >>'%s'; `, out)
	command := "exec:" + tell + "printf '<rss><channel><title>x</title></channel></rss>'"
	hashes := subscribeTo(t, r, url, command)
	if err := subscriptions.Set(r.Writer, r.Dir, hashes[0], "filter", tell+"cat", nil); err != nil {
		t.Fatal(err)
	}
	for i, shown := range []string{s.URL("/feed"), command} {
		if sum, err := r.Update(t.Context(), Selection{Feeds: hashes[i : i+1]}); err != nil || sum.Fetched != 1 {
			t.Fatal(sum, err, l)
		}
		got, err := os.ReadFile(out)
		if want := shown + "\n" + hashes[i] + "\n" + r.Dir.Path() + "\n"; err != nil || string(got) != want {
			t.Errorf("%q, want %q, %v", got, want, err)
		}
		os.Remove(out)
	}
}

// TestOneCauseOneMessage: a full disk is reported once, with the number of feeds; other
// failures of this machine are reported for each feed.
func TestOneCauseOneMessage(t *testing.T) {
	var d disk
	full := func(name string) error {
		return fmt.Errorf("%s: not delivered: %w", name, errors.Join(errors.New("x"), &os.PathError{Op: "write", Path: "/p", Err: syscall.ENOSPC}))
	}
	if d.add(errors.New("other")) || d.add(os.ErrPermission) {
		t.Error("it takes all errors")
	}
	var l log
	d.report("/feeds", &l)
	if l.String() != "" {
		t.Error(l.String())
	}
	d.add(full("http://a.example/"))
	d.report("/feeds", &l)
	if want := "error: http://a.example/: not delivered: x\nwrite /p: no space left on device\n"; l.String() != want {
		t.Errorf("%q, want %q", l.String(), want)
	}
	l = log{}
	for range 12 {
		if !d.add(full("http://a.example/")) {
			t.Error("not taken")
		}
	}
	d.add(syscall.EROFS)
	d.report("/feeds", &l)
	if got := l.String(); !strings.HasPrefix(got, "error: /feeds: no space left on device: 12 feeds ") || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}

// TestDateIsKept: a run records the Date of the servers, regardless of the local clock.
func TestDateIsKept(t *testing.T) {
	ahead := time.Now().Add(400 * 24 * time.Hour)
	r, s, l := setup(t, Options{Fetch: fetch.Config{Now: func() time.Time { return ahead }}})
	s.Handle("/feed", server.Doc("", server.RSS("Feed", 0, 3)))
	subscribeTo(t, r, s.URL("/feed"))
	if sum, err := r.Update(t.Context(), Selection{Reason: Forced}); err != nil || sum.Fetched != 1 {
		t.Fatalf("%+v, %v, %s", sum, err, l)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if d := feedfiles.ServerTime(r.Dir); time.Since(d).Abs() > time.Hour {
		t.Errorf("the date on record is %v", d)
	}
}

// TestLiveBroadcast: a feed is fetched when a live broadcast that it announces begins and when that ends,
// before it is due, once each. Each status is a version of one entry.
func TestLiveBroadcast(t *testing.T) {
	begin := time.Now().Truncate(time.Second)
	var minutes atomic.Int64
	now := func() time.Time { return begin.Add(time.Duration(minutes.Load()) * time.Minute) }
	r, s, l := setup(t, Options{Fetch: fetch.Config{Now: now}})
	s.Handle("/feed", func(w http.ResponseWriter, _ *http.Request) {
		status := "pending"
		if minutes.Load() >= 20 {
			status = "live"
		}
		if minutes.Load() >= 40 {
			status = "ended"
		}
		fmt.Fprintf(w, `<rss version="2.0" xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>Cast</title>
<podcast:liveItem status="%s" start="%s" end="%s"><title>Tonight</title><guid>1</guid></podcast:liveItem></channel></rss>`, status,
			begin.Add(20*time.Minute).UTC().Format("2006-01-02T15:04:05.000-0700"), begin.Add(40*time.Minute).Format(time.RFC3339))
	})
	subscribeTo(t, r, s.URL("/feed"))
	var got []string
	for m := range 60 {
		minutes.Store(int64(m))
		sum, err := r.Update(t.Context(), Selection{})
		if err != nil {
			t.Fatal(err)
		}
		if sum.Fetched > 0 {
			got = append(got, fmt.Sprintf("%d: %d new, %d updated", m, sum.New, sum.Updated))
		}
	}
	if text := strings.Join(got, "; "); text != "0: 1 new, 0 updated; 20: 0 new, 1 updated; 40: 0 new, 1 updated" {
		t.Errorf("fetched at %s\n%s", text, l)
	}
	refs, err := r.Dir.List(t.Context(), lektordir.ListOptions{})
	if err != nil || len(refs) != 1 {
		t.Errorf("%v %v", refs, err)
	}
}
