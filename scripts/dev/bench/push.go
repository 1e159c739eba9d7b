//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lektordir/lektor/internal/testkit/hub"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// push measures lektor-cloudd: the time from a publisher's file to the line that a reader sees,
// the time in which a hub notifies many subscribers, and the time in which a listener registers
// many feeds.
func (b *bench) push() {
	b.latency(sizes["updates"], 300*time.Millisecond, "one after the other", "--cooldown", "0")
	b.latency(min(sizes["updates"], 5), 10*time.Second, "ten seconds apart")
	b.subscribers(sizes["subscribers"])
	b.registrations(sizes["registrations"])
}

// program is a program that runs until it is stopped.
type program struct {
	*exec.Cmd
	said strings.Builder
}

// start starts a program on the lektor-dir of a directory.
func (w *way) start(dir, name string, args ...string) *program {
	p := &program{Cmd: w.lektor(filepath.Join(dir, "feeds"), name, args...)}
	p.Stdout, p.Stderr = &p.said, &p.said
	must.Do(p.Start())
	return p
}

// stop ends it and returns its peak memory, in bytes.
func (p *program) stop() int64 {
	peak := memory(p.Process.Pid)
	must.Do(p.Process.Signal(syscall.SIGTERM))
	if err := p.Wait(); err != nil {
		must.Fail("%s: %w\n%s", p.Path, err, p.said.String())
	}
	return peak
}

// listen starts a listener on a free port, for hubs on loopback.
func (w *way) listen(dir string, args ...string) *program {
	addr := freePort()
	return w.start(dir, "lektor-cloudd", append([]string{"listen", "--listen", addr, "--public-url", "http://" + addr,
		"--allow", "127.0.0.0/8"}, args...)...)
}

// hub starts a hub on a free port.
func (w *way) hub(dir string) (*program, string) {
	addr := freePort()
	p := w.start(dir, "lektor-cloudd", "hub", "--listen", addr, "--public-url", "http://"+addr, "--state",
		filepath.Join(dir, "hub"),
		"--allow-feeds", "127.0.0.0/8", "--allow-callbacks", "127.0.0.0/8")
	wait("the hub", 10*time.Second, p, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return p, addr
}

// wait waits until ok returns true.
func wait(what string, within time.Duration, p *program, ok func() bool) {
	for end := time.Now().Add(within); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			must.Fail("%s: not within %s\n%s", what, within, p.said.String())
		}
	}
}

// freePort returns a free address on loopback.
func freePort() string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	must.Do(l.Close())
	return l.Addr().String()
}

// loop is the complete path of an update: a publisher who writes and pings, the hub, the
// listener, the fetcher, and the program that prints a line for the reader.
type loop struct {
	way       *way
	where     string
	feed, hub string // URL, and the hub's address
	entries   atomic.Int64
	lines     chan string
	programs  []*program
	server    *server.Server
}

func newLoop(w *way, where string, listen ...string) *loop {
	l := &loop{way: w, where: where, lines: make(chan string, 1000)}
	l.entries.Store(1)
	d := &testdir.Dir{Path: filepath.Join(where, "feeds")}
	must.Do(d.Create())
	h, addr := w.hub(where)
	l.hub, l.programs = addr, []*program{h}
	l.server = must.Get(server.New("127.0.0.1"))
	host, port := must.Get2(net.SplitHostPort(addr))
	l.server.Handle("/feed", func(rw http.ResponseWriter, r *http.Request) {
		// Like most feeds, it has the newest twenty entries.
		last := int(l.entries.Load())
		first := max(1, last-19)
		doc := server.RSS("News", first, last-first+1)
		cloud := fmt.Sprintf(`<cloud domain="%s" port="%s" path="/rsscloud/pleaseNotify" registerProcedure="" protocol="http-post"/>`, host, port)
		server.Doc("application/rss+xml", strings.Replace(doc, "<item>", cloud+"<item>", 1))(rw, r)
	})
	l.feed = l.server.URL("/feed")
	must.Get(d.Feed(l.feed, "News", "etc/fetch/url="+l.feed,
		fmt.Sprintf("etc/push/cloud=%s\t%s\t/rsscloud/pleaseNotify\t\thttp-post", host, port)))
	follow := w.lektor(d.Path, "lektor-view", "follow", "-o", "{{.title}}")
	out := must.Get(follow.StdoutPipe())
	p := &program{Cmd: follow}
	follow.Stderr = &p.said
	must.Do(follow.Start())
	l.programs = append(l.programs, p)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			l.lines <- lines.Text()
		}
	}()
	heard := w.listen(where, append(listen, "--verbose")...)
	l.programs = append(l.programs, heard)
	state := filepath.Join(d.Path, "src", testdir.Hash(l.feed), "etc/cloudd/state")
	wait("registration", 10*time.Second, heard, func() bool {
		b,
			_ := os.ReadFile(state)
		return string(b) == "registered\n"
	})
	l.programs = append(l.programs, w.start(where, "lektor-fetch", "watch"))
	l.await("News 1")
	return l
}

// await waits until a line is printed.
func (l *loop) await(title string) {
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	for {
		select {
		case line := <-l.lines:
			if line == title {
				return
			}
		case <-timer.C:
			must.Fail("%q was not printed", title)
		}
	}
}

// update writes and pings, and returns the time until the line.
func (l *loop) update() time.Duration {
	n := l.entries.Add(1)
	begin := time.Now()
	ping := l.way.start(l.where, "lektor-cloudd", "ping", "--cloud", "http://"+l.hub, l.feed)
	l.await(fmt.Sprintf("News %d", n))
	took := time.Since(begin)
	if err := ping.Wait(); err != nil {
		must.Fail("ping: %w\n%s", err, ping.said.String())
	}
	return took
}

func (l *loop) end() {
	defer l.server.Close()
	for _, p := range l.programs {
		p.stop()
	}
}

// latency measures the loop for n updates, with a pause before each.
func (b *bench) latency(n int, pause time.Duration, what string, listen ...string) {
	if n == 0 {
		return
	}
	ways := b.ours("lektor-cloudd")
	loops := map[*way]*loop{}
	for _, w := range ways {
		loops[w] = newLoop(w, b.place(), listen...)
		defer loops[w].end()
	}
	b.compare(group{what: "pinged, fetched and printed, " + what, unit: "updates", n: 1, rounds: n}, ways,
		func(w *way, _ int) measurement {
			// The gap between two requests to one host is politeness, not latency.
			time.Sleep(pause)
			took := loops[w].update()
			return measurement{time: took, slowest: took}
		})
}

// subscribers measures a hub with many subscribers of one feed: the registrations, and the
// notifications.
func (b *bench) subscribers(n int) {
	if n == 0 {
		return
	}
	var version, notified atomic.Int64
	s := must.Get(server.New("127.0.0.1"))
	defer s.Close()
	s.Handle("/feed", func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "<rss/><!-- %d -->",
			version.Load())
	})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	listeners := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if challenge := r.FormValue("challenge"); challenge != "" {
			io.WriteString(rw, challenge)
			return
		}
		notified.Add(1)
	})}
	defer listeners.Close()
	go listeners.Serve(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ways := b.ours("lektor-cloudd hub")
	hubs, at := map[*way]*program{}, map[*way]string{}
	for _, w := range ways {
		hubs[w], at[w] = w.hub(w.dir)
		defer hubs[w].stop()
	}
	b.compare(group{what: fmt.Sprintf("%d subscribers registered", n), unit: "subscribers", n: n, rounds: 1}, ways,
		func(w *way, _ int) measurement {
			begin := time.Now()
			var all errgroup.Group
			all.SetLimit(16)
			for i := range n {
				all.Go(func() error {
					return post(at[w]+"/pleaseNotify", url.Values{"port": {port}, "path": {fmt.Sprintf("/%d", i)},
						"protocol": {"http-post"}, "domain": {"127.0.0.1"}, "url1": {s.URL("/feed")}})
				})
			}
			must.Do(all.Wait())
			return measurement{time: time.Since(begin), memory: memory(hubs[w].Process.Pid)}
		})
	b.compare(group{what: fmt.Sprintf("%d subscribers notified", n), unit: "subscribers", n: n}, ways,
		func(w *way, _ int) measurement {
			version.Add(1)
			notified.Store(0)
			begin := time.Now()
			must.Do(post(at[w]+"/ping", url.Values{"url": {s.URL("/feed")}}))
			wait("everybody", time.Minute, hubs[w], func() bool { return notified.Load() == int64(n) })
			return measurement{time: time.Since(begin), memory: memory(hubs[w].Process.Pid)}
		})
}

func post(to string, form url.Values) error {
	resp, err := http.PostForm("http://"+to, form)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(b), `success="true"`) {
		err = errors.New(string(b))
	}
	return err
}

// registrations measures a listener that registers n feeds at 50 hubs.
func (b *bench) registrations(n int) {
	if n == 0 {
		return
	}
	b.compare(group{what: fmt.Sprintf("%d feeds registered at 50 hubs", n), unit: "feeds", n: n, rounds: 1},
		b.ours("lektor-cloudd listen"), func(w *way, _ int) (m measurement) {
			d := &testdir.Dir{Path: filepath.Join(w.dir, "feeds")}
			must.Do(d.Create())
			var all []*hub.Hub
			for i := range 50 {
				l := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", i+1)))
				h := &hub.Hub{}
				s := &http.Server{Handler: h}
				go s.Serve(l)
				defer h.Wait()
				defer s.Close()
				all = append(all, h)
				a := l.Addr().(*net.TCPAddr)
				for k := i; k < n; k += 50 {
					push := fmt.Sprintf("hub=http://%s/websub", a)
					if i%2 == 0 {
						push = fmt.Sprintf("cloud=%s\t%d\t/rsscloud/pleaseNotify\t\thttp-post", a.IP, a.Port)
					}
					must.Get(d.Feed(feedID(k), "Feed", "etc/fetch/url="+feedID(k), "etc/push/"+push))
				}
			}
			begin := time.Now()
			listen := w.listen(w.dir)
			wait("all feeds", 5*time.Minute, listen, func() bool {
				time.Sleep(20 * time.Millisecond)
				registered := 0
				for _, h := range all {
					registered += len(h.Registrations()) + len(h.Subscriptions())
				}
				return registered == n
			})
			m.time = time.Since(begin)
			m.memory = listen.stop()
			requests, most := 0, 0
			for _, h := range all {
				r, atOnce := h.Requests()
				requests, most = requests+r, max(most, atOnce)
			}
			m.note = fmt.Sprintf("%d requests, %d at once to one hub", requests, most)
			return m
		})
}
