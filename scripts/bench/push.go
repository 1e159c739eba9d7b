package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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
	"github.com/lektordir/lektor/internal/testkit/server"
)

// push measures lektor-cloudd: how long it takes from a notification to the
// entry in new/, and how long to register many feeds.
func push(o options, bin, tmp string, w io.Writer) error {
	if _, err := os.Stat(filepath.Join(bin, "lektor-cloudd")); err != nil {
		fmt.Fprintln(w, "lektor-cloudd\tnot built")
		return nil
	}
	if err := latency(o.notifications, bin, filepath.Join(tmp, "push"), w); err != nil {
		return err
	}
	return registrations(o.registrations, bin, filepath.Join(tmp, "registrations"), w)
}

// program is one that runs until it is stopped.
type program struct {
	*exec.Cmd
	said strings.Builder
}

func start(bin, dir, name string, args ...string) (*program, error) {
	p := &program{Cmd: exec.Command(filepath.Join(bin, name), append([]string{"--dir", filepath.Join(dir, "feeds")}, args...)...)}
	p.Env = environment(dir)
	p.Stdout, p.Stderr = &p.said, &p.said
	return p, p.Start()
}

// stop ends it and gives the most memory that it had, in bytes.
func (p *program) stop() (int64, error) {
	had := memory(p.Process.Pid)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := p.Wait(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", p.Path, err, p.said.String())
	}
	return had, nil
}

// listener starts lektor-cloudd on a free port, for hubs on loopback.
func listener(bin, dir string, args ...string) (*program, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	return start(bin, dir, "lektor-cloudd", append([]string{"listen", "--listen", addr, "--public-url", "http://" + addr, "--allow", "127.0.0.0/8"}, args...)...)
}

// hubAt serves a hub on a loopback address of its own, where there are several.
func hubAt(i int) (*hub.Hub, *net.TCPAddr, func(), error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", i+1))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, nil, nil, err
	}
	h := &hub.Hub{}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	return h, l.Addr().(*net.TCPAddr), func() { s.Close(); h.Wait() }, nil
}

func wait(what string, within time.Duration, ok func() bool) error {
	for end := time.Now().Add(within); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %s", what, within)
		}
	}
	return nil
}

func latency(n int, bin, where string, w io.Writer) error {
	if n < 1 {
		return nil
	}
	hub, at, done, err := hubAt(0)
	if err != nil {
		return err
	}
	defer done()
	var entries atomic.Int64
	entries.Store(1)
	s, err := server.New("127.0.0.1")
	if err != nil {
		return err
	}
	defer s.Close()
	s.Handle("/feed", func(rw http.ResponseWriter, r *http.Request) {
		// The newest twenty, as feeds have.
		last := int(entries.Load())
		first := max(1, last-19)
		doc := server.RSS("News", first, last-first+1)
		cloud := fmt.Sprintf(`<cloud domain="%s" port="%d" path="/rsscloud/pleaseNotify" registerProcedure="" protocol="http-post"/>`, at.IP, at.Port)
		server.Doc("application/rss+xml", strings.Replace(doc, "<item>", cloud+"<item>", 1))(rw, r)
	})
	feed := s.URL("/feed")
	d := &dir.Dir{Path: filepath.Join(where, "feeds")}
	if err := d.Create(); err != nil {
		return err
	}
	hash, err := d.Feed(feed, "News", "etc/fetch/url="+feed,
		fmt.Sprintf("etc/push/cloud=%s\t%d\t/rsscloud/pleaseNotify\t\thttp-post", at.IP, at.Port))
	if err != nil {
		return err
	}
	listen, err := listener(bin, where, "--cooldown", "0")
	if err != nil {
		return err
	}
	if err := wait("registration", 10*time.Second, func() bool { return len(hub.Registrations()) == 1 }); err != nil {
		return fmt.Errorf("%w\n%s", err, listen.said.String())
	}
	watch, err := start(bin, where, "lektor-fetch", "watch")
	if err != nil {
		return err
	}
	count := func() int {
		list, _ := os.ReadDir(filepath.Join(d.Path, "new", hash))
		return len(list)
	}
	if err := wait("first fetch", 10*time.Second, func() bool { return count() == 1 }); err != nil {
		return err
	}
	var times []time.Duration
	for i := range n {
		// The gap between two requests to one host is politeness, not latency.
		time.Sleep(300 * time.Millisecond)
		entries.Add(1)
		begin := time.Now()
		if err := hub.Notify(feed); err != nil {
			return err
		}
		if err := wait("entry", 10*time.Second, func() bool { return count() == i+2 }); err != nil {
			return err
		}
		times = append(times, time.Since(begin))
	}
	for _, p := range []*program{listen, watch} {
		if _, err := p.stop(); err != nil {
			return err
		}
	}
	slices.Sort(times)
	fmt.Fprintf(w, "\nnotification to entry, of %d: median %.1f ms, worst %.1f ms\n", n, ms(times[n/2]), ms(times[n-1]))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func registrations(n int, bin, where string, w io.Writer) error {
	if n < 1 {
		return nil
	}
	const hubs = 50
	d := &dir.Dir{Path: filepath.Join(where, "feeds")}
	if err := d.Create(); err != nil {
		return err
	}
	var all []*hub.Hub
	var at []*net.TCPAddr
	for i := range hubs {
		h, a, done, err := hubAt(i)
		if err != nil {
			return err
		}
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
		if _, err := d.Feed(u, "Feed", "etc/fetch/url="+u, "etc/push/"+push); err != nil {
			return err
		}
	}
	begin := time.Now()
	listen, err := listener(bin, where)
	if err != nil {
		return err
	}
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
	memory, err := listen.stop()
	if err != nil {
		return err
	}
	if known < n {
		return fmt.Errorf("%d of %d feeds registered\n%s", known, n, listen.said.String())
	}
	requests, most := 0, 0
	for _, h := range all {
		r, m := h.Requests()
		requests += r
		most = max(most, m)
	}
	fmt.Fprintf(w, "%d feeds at %d hubs: registered in %.1f s by %d requests, %d at once to one hub, %.0f MiB\n",
		n, hubs, took.Seconds(), requests, most, float64(memory)/(1<<20))
	return nil
}
