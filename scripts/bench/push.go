package main

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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/internal/testkit/hub"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/server"
	"golang.org/x/sync/errgroup"
)

// push measures lektor-cloudd: how long it takes from a publisher's file to the line
// that a reader sees, how long a hub takes to notify many, and how long it takes to
// register many feeds.
func push(o options, bin, tmp string, w io.Writer) {
	if _, err := os.Stat(filepath.Join(bin, "lektor-cloudd")); err != nil {
		fmt.Fprintln(w, "lektor-cloudd\tnot built")
		return
	}
	latency(o.notifications, min(o.notifications, 5), bin, filepath.Join(tmp, "push"), w)
	fanOut(o.subscribers, bin, filepath.Join(tmp, "fan"), w)
	registrations(o.registrations, bin, filepath.Join(tmp, "registrations"), w)
}

// program is one that runs until it is stopped.
type program struct {
	*exec.Cmd
	said strings.Builder
}

// ours is a command of lektor's on the feeds in a directory.
func ours(bin, dir, name string, args ...string) *exec.Cmd {
	return command(dir, filepath.Join(bin, name), append([]string{"--dir", filepath.Join(dir, "feeds")}, args...)...)
}

func start(bin, dir, name string, args ...string) *program {
	p := &program{Cmd: ours(bin, dir, name, args...)}
	p.Stdout, p.Stderr = &p.said, &p.said
	must.Do(p.Start())
	return p
}

// stop ends it and gives the most memory that it had, in bytes.
func (p *program) stop() int64 {
	had := memory(p.Process.Pid)
	must.Do(p.Process.Signal(syscall.SIGTERM))
	if err := p.Wait(); err != nil {
		must.Fail("%s: %w\n%s", p.Path, err, p.said.String())
	}
	return had
}

// listener starts lektor-cloudd on a free port, for hubs on loopback.
func listener(bin, dir string, args ...string) *program {
	addr := freePort()
	return start(bin, dir, "lektor-cloudd", append([]string{"listen", "--listen", addr, "--public-url", "http://" + addr, "--allow", "127.0.0.0/8"}, args...)...)
}

// hubAt serves a hub on a loopback address of its own, where there are several.
func hubAt(i int) (*hub.Hub, *net.TCPAddr, func()) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", i+1))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	must.Do(err)
	h := &hub.Hub{}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	return h, l.Addr().(*net.TCPAddr), func() { s.Close(); h.Wait() }
}

// wait waits for what a program does.
func wait(what string, within time.Duration, p *program, ok func() bool) {
	for end := time.Now().Add(within); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			must.Fail("%s: not within %s\n%s", what, within, p.said.String())
		}
	}
}

// freePort gives an address on loopback that nobody has.
func freePort() string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	must.Do(l.Close())
	return l.Addr().String()
}

// hubProgram starts lektor-cloudd hub on a free port.
func hubProgram(bin, where string) (*program, string) {
	addr := freePort()
	p := start(bin, where, "lektor-cloudd", "hub", "--listen", addr, "--public-url", "http://"+addr, "--state", filepath.Join(where, "hub"),
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

// loop is the whole way of an update: a publisher, who writes and pings; the hub, the
// listener, the fetcher, and what prints a line for the reader.
type loop struct {
	bin, where string
	feed, hub  string // URL, and the hub's address
	entries    atomic.Int64
	lines      chan string
	programs   []*program
	server     *server.Server
}

func newLoop(bin, where string, listen ...string) *loop {
	l := &loop{bin: bin, where: where, lines: make(chan string, 1000)}
	l.entries.Store(1)
	d := &dir.Dir{Path: filepath.Join(where, "feeds")}
	must.Do(d.Create())
	h, addr := hubProgram(bin, where)
	l.hub, l.programs = addr, []*program{h}
	l.server = must.Get(server.New("127.0.0.1"))
	host, port := must.Get2(net.SplitHostPort(addr))
	l.server.Handle("/feed", func(rw http.ResponseWriter, r *http.Request) {
		// The newest twenty, as feeds have.
		last := int(l.entries.Load())
		first := max(1, last-19)
		doc := server.RSS("News", first, last-first+1)
		cloud := fmt.Sprintf(`<cloud domain="%s" port="%s" path="/rsscloud/pleaseNotify" registerProcedure="" protocol="http-post"/>`, host, port)
		server.Doc("application/rss+xml", strings.Replace(doc, "<item>", cloud+"<item>", 1))(rw, r)
	})
	l.feed = l.server.URL("/feed")
	must.Get(d.Feed(l.feed, "News", "etc/fetch/url="+l.feed, fmt.Sprintf("etc/push/cloud=%s\t%s\t/rsscloud/pleaseNotify\t\thttp-post", host, port)))
	follow := ours(bin, where, "lektor-view", "follow", "-o", "{{.title}}")
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
	heard := listener(bin, where, append(listen, "--verbose")...)
	l.programs = append(l.programs, heard)
	state := filepath.Join(d.Path, "src", dir.Hash(l.feed), "etc/cloudd/state")
	wait("registration", 10*time.Second, heard, func() bool { b, _ := os.ReadFile(state); return string(b) == "registered\n" })
	l.programs = append(l.programs, start(bin, where, "lektor-fetch", "watch"))
	l.await("News 1")
	return l
}

// await waits until a line was printed.
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

// update writes, pings, and waits for the line.
func (l *loop) update() time.Duration {
	n := l.entries.Add(1)
	begin := time.Now()
	ping := start(l.bin, l.where, "lektor-cloudd", "ping", "--cloud", "http://"+l.hub, l.feed)
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

// latency measures the loop: n updates, and with the default cooldown a few that are
// ten seconds apart.
func latency(n, spaced int, bin, where string, w io.Writer) {
	for _, run := range []struct {
		name   string
		n      int
		gap    time.Duration
		listen []string
	}{
		{"one after the other", n, 300 * time.Millisecond, []string{"--cooldown", "0"}},
		{"ten seconds apart, with the default cooldown", spaced, 10 * time.Second, nil},
	} {
		if run.n < 1 {
			continue
		}
		l := newLoop(bin, filepath.Join(where, fmt.Sprint(run.gap)), run.listen...)
		var times []time.Duration
		for range run.n {
			// The gap between two requests to one host is politeness, not latency.
			time.Sleep(run.gap)
			times = append(times, l.update())
		}
		l.end()
		slices.Sort(times)
		fmt.Fprintf(w, "\nfile written, pinged, notified, fetched and printed, %d %s: median %.1f ms, worst %.1f ms\n",
			run.n, run.name, ms(times[run.n/2]), ms(times[run.n-1]))
	}
}

// fanOut measures a hub with many subscribers of one feed.
func fanOut(n int, bin, where string, w io.Writer) {
	if n < 1 {
		return
	}
	must.Do(os.MkdirAll(where, 0o777))
	h, addr := hubProgram(bin, where)
	var version, notified atomic.Int64
	s := must.Get(server.New("127.0.0.1"))
	defer s.Close()
	s.Handle("/feed", func(rw http.ResponseWriter, r *http.Request) { fmt.Fprintf(rw, "<rss/><!-- %d -->", version.Load()) })
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	subscribers := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if challenge := r.FormValue("challenge"); challenge != "" {
			io.WriteString(rw, challenge)
			return
		}
		notified.Add(1)
	})}
	defer subscribers.Close()
	go subscribers.Serve(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	post := func(path string, form url.Values) error {
		resp, err := http.PostForm("http://"+addr+path, form)
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
	begin := time.Now()
	var all errgroup.Group
	all.SetLimit(16)
	for i := range n {
		all.Go(func() error {
			return post("/pleaseNotify", url.Values{"port": {port}, "path": {fmt.Sprintf("/%d", i)}, "protocol": {"http-post"}, "domain": {"127.0.0.1"}, "url1": {s.URL("/feed")}})
		})
	}
	must.Do(all.Wait())
	registered := time.Since(begin)
	version.Add(1)
	begin = time.Now()
	must.Do(post("/ping", url.Values{"url": {s.URL("/feed")}}))
	wait("everybody", time.Minute, h, func() bool { return notified.Load() == int64(n) })
	took := time.Since(begin)
	memory := h.stop()
	fmt.Fprintf(w, "hub: %d subscribers of one feed registered in %.1f s, notified in %.1f s, %.0f MiB\n",
		n, registered.Seconds(), took.Seconds(), float64(memory)/(1<<20))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func registrations(n int, bin, where string, w io.Writer) {
	if n < 1 {
		return
	}
	const hubs = 50
	d := &dir.Dir{Path: filepath.Join(where, "feeds")}
	must.Do(d.Create())
	var all []*hub.Hub
	var at []*net.TCPAddr
	for i := range hubs {
		h, a, done := hubAt(i)
		defer done()
		all, at = append(all, h), append(at, a)
	}
	for i := range n {
		a := at[i%hubs]
		push := fmt.Sprintf("hub=http://%s/websub", a)
		if i%hubs%2 == 0 {
			push = fmt.Sprintf("cloud=%s\t%d\t/rsscloud/pleaseNotify\t\thttp-post", a.IP, a.Port)
		}
		u := fmt.Sprintf("http://feed%d.example/rss.xml", i)
		must.Get(d.Feed(u, "Feed", "etc/fetch/url="+u, "etc/push/"+push))
	}
	begin := time.Now()
	listen := listener(bin, where)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	known := 0
	for known < n && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		known = 0
		for _, h := range all {
			known += len(h.Registrations()) + len(h.Subscriptions())
		}
	}
	took := time.Since(begin)
	memory := listen.stop()
	if known < n {
		must.Fail("%d of %d feeds registered\n%s", known, n, listen.said.String())
	}
	requests, most := 0, 0
	for _, h := range all {
		r, m := h.Requests()
		requests += r
		most = max(most, m)
	}
	fmt.Fprintf(w, "%d feeds at %d hubs: registered in %.1f s by %d requests, %d at once to one hub, %.0f MiB\n",
		n, hubs, took.Seconds(), requests, most, float64(memory)/(1<<20))
}
