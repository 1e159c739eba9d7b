package listener

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/hub"
)

// The listener does not write through symbolic links.
func TestLinksAreNotFollowed(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	outside := t.TempDir()
	link := func(rel string) {
		t.Helper()
		path := w.dir.Join(rel)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.Symlink(outside, path)); err != nil {
			t.Fatal(err)
		}
	}
	link("etc/cloudd")
	if unlock, err := Lock(w.dir); err == nil {
		unlock()
		t.Error("the lock is outside the lektor-dir")
	}
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	b := w.feed(feedB, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	link("src/" + a + "/etc/cloudd")
	link("etc/fetch/due")
	w.step()
	post(t, w.state(b).Callback, "", "url="+feedB)
	w.step()
	if log := w.log.String(); !strings.Contains(log, "src/"+a+"/etc/cloudd") || !strings.Contains(log, "etc/fetch/due") {
		t.Errorf("the log does not name the links: %s", log)
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("files were written outside: %v", names)
	}
}

func TestMarkerThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	due := w.dir.Join("etc/fetch/due")
	if err := os.MkdirAll(filepath.Dir(due), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(due, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	post(t, w.state(a).Callback, "", "url="+feedA)
	w.step()
	if err := os.Remove(due); err != nil {
		t.Fatal(err)
	}
	w.clock.Add(time.Minute)
	w.step()
	if !w.marker(a) {
		t.Error("the notification is lost")
	}
}

// A large delivery is read to its end. If the connection were closed before, the hub would
// count a failure and not see the answer.
func TestDeliveriesAreReadToTheEnd(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub="+w.plain+"/websub")
	b := w.feed(feedB, "hub="+w.server.URL+"/websub")
	w.step()
	gone := w.state(a)
	gone.Callback = strings.TrimSuffix(gone.Callback, gone.Token()) + strings.Repeat("0", push.TokenLen)
	for name, c := range map[string]struct {
		callback string
		want     int
	}{
		"no secret":    {w.state(a).Callback, http.StatusOK},
		"no signature": {w.state(b).Callback, http.StatusOK},
		"unknown":      {gone.Callback, http.StatusGone},
	} {
		t.Run(name, func(t *testing.T) {
			u, _ := url.Parse(c.callback)
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
			const size = 24 << 20
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/atom+xml\r\nContent-Length: %d\r\n\r\n", u.Path, size)
			if _, err := io.CopyN(conn, zeros{}, size); err != nil {
				t.Fatal("cut off: ", err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Error(resp.Status)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestClockThatWasAhead(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	w.step()
	w.clock.Add(-7 * 24 * time.Hour)
	w.restart()
	w.step()
	if n := len(w.hub.Registrations()); n != 2 {
		t.Errorf("%d registrations: the next is at %s, but the cloud drops the registration after 25 hours", n, w.state(a).Next)
	}
	// A small correction of the clock causes no request.
	w.clock.Add(-time.Minute)
	w.restart()
	w.step()
	if n := len(w.hub.Registrations()); n != 2 {
		t.Errorf("%d registrations", n)
	}
}

// Times of registrations are by the wall clock, which advances while the machine sleeps.
func TestTimesGoOnWhileTheMachineSleeps(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, func(o *ListenOptions) { o.Fetch.Now = time.Now })
	a := w.feed(feedA, w.cloud("/rsscloud/pleaseNotify", "http-post"))
	b := w.feed(feedB, "hub="+w.plain+"/websub")
	w.step()
	for _, h := range []string{a, b} {
		w.l.mu.Lock()
		st := w.l.feeds[h].registration
		w.l.mu.Unlock()
		if st.Next.IsZero() || strings.Contains(st.Next.String()+st.Expires.String(), "m=") {
			t.Errorf("%s %s", st.Next, st.Expires)
		}
	}
}

func TestNewHubIsAskedAtOnceAfterFailuresOfTheOld(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	a := w.feed(feedA, "hub=http://127.0.0.1:1/dead")
	for range 8 {
		w.step()
		w.clock.Add(7 * time.Hour)
	}
	w.step()
	if st := w.state(a); st.Failures < 8 {
		t.Fatalf("%+v", st)
	}
	w.clock.Add(10 * time.Minute)
	w.feed(feedA, "hub="+w.plain+"/websub")
	w.step()
	if st := w.state(a); st.State != Registered {
		t.Errorf("%+v", st)
	}
}

// If a cloud answers that it does not exist, it does not get a request for each feed.
func TestCloudThatIsGoneIsNotAskedForEveryFeed(t *testing.T) {
	var n atomic.Int32
	gone := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		http.NotFound(w, nil)
	}))
	w := newWorld(t, &hub.Hub{}, nil)
	w.plain = gone
	for i := range perBatch {
		w.feed(fmt.Sprintf("http://f%d.example/", i), w.cloud("/rsscloud/pleaseNotify", "http-post"))
	}
	w.step()
	if n.Load() > 60 {
		t.Errorf("%d requests for %d feeds", n.Load(), perBatch)
	}
}

// A password in the URL of a feed is for its server, not for the cloud.
func TestPingSendsNoPassword(t *testing.T) {
	var told []string
	var feed string
	base := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/feed" {
			u, _ := url.Parse("http://" + r.Host)
			fmt.Fprintf(w, `<rss version="2.0"><channel><title>t</title><cloud domain=%q port=%q path="/pleaseNotify" registerProcedure="" protocol="http-post"/></channel></rss>`, u.Hostname(), u.Port())
			return
		}
		told = append(told, r.FormValue("url"))
		fmt.Fprint(w, `<result success="true" msg="ok"/>`)
	}))
	c := fetch.NewClient(fetch.Config{AllowPrivate: loopback})
	defer c.Close()
	feed = strings.Replace(base, "http://", "http://me:hunter2@", 1) + "/feed"
	targets, err := Targets(context.Background(), c, nil, feed)
	if err != nil || len(targets) != 1 {
		t.Fatal(targets, err)
	}
	if _, err := targets[0].ping(context.Background(), c, feed); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0] != base+"/feed" {
		t.Errorf("the cloud received %q", told)
	}
}
