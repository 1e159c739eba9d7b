package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/watch"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestRealBinaries builds the programs and runs them against each other.
func TestRealBinaries(t *testing.T) {
	if testing.Short() {
		t.Skip("builds three programs")
	}
	bin := t.TempDir()
	if err := testdir.Programs(bin, "lektor-cloudd", "lektor-fetch", "lektor-view"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, string){
		"WalkthroughRealTime":                 realTime,
		"WalkthroughPingAfterTheFileIsSaved":  pingAfterSaving,
		"HubThatIsKilled":                     hubKilled,
		"SystemdSocketActivationAndReadiness": systemd,
	} {
		t.Run(name, func(t *testing.T) { test(t, bin) })
	}
}

// realTime runs the real programs on loopback. The author saves and pings, the hub notifies
// the listener, which has registered and was challenged, the marker appears, lektor-fetch
// watch delivers, and lektor-view follow prints. "All this happened in less than a second!"
func realTime(t *testing.T, bin string) {
	hubPort := freePort(t)
	var entries atomic.Int64
	entries.Store(1)
	fs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(entries.Load())
		doc := server.RSS("News", 1, n)
		cloud := fmt.Sprintf(`<cloud domain="127.0.0.1" port="%d" path="/rsscloud/pleaseNotify" registerProcedure="" protocol="http-post"/>`, hubPort)
		server.Doc("application/rss+xml", strings.Replace(doc, "<description>d", cloud+"<description>d", 1))(w, r)
	}))
	defer fs.Close()

	feeds := filepath.Join(t.TempDir(), "feeds")
	env := append(os.Environ(), "LEKTORDIR="+feeds, "NO_PROXY=*", "XDG_CONFIG_HOME="+feeds)
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Env = env
		cmd.Stderr = os.Stderr
		return cmd
	}
	feed := fs.URL + "/rss.xml"
	if err := command("lektor-fetch", "add", "--as-is", feed).Run(); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	start := func(name string, args ...string) *bufio.Scanner {
		cmd := command(name, args...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		return bufio.NewScanner(out)
	}
	start("lektor-cloudd", "hub", "--listen", fmt.Sprintf("127.0.0.1:%d", hubPort), "--public-url", fmt.Sprintf("http://127.0.0.1:%d", hubPort),
		"--state", filepath.Join(t.TempDir(), "hub"), "--allow-feeds", "127.0.0.0/8", "--allow-callbacks", "127.0.0.0/8")
	await(t, "the hub", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", hubPort))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	follow := start("lektor-view", "follow", "-o", "{{.title}}")
	start("lektor-fetch", "watch", "--gap", "0")
	start("lektor-cloudd", "listen", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--public-url", fmt.Sprintf("http://127.0.0.1:%d", port),
		"--allow", "127.0.0.0/8", "--cooldown", "0")
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for follow.Scan() {
			lines <- follow.Text()
		}
	}()
	await(t, "its registration", func() bool {
		b, _ := os.ReadFile(filepath.Join(feeds, "src", testdir.Hash(feed), "etc/cloudd/state"))
		return string(b) == "registered\n"
	})
	// follow prints entries that are delivered after it has started.
	ready := 0
	await(t, "lektor-view follow", func() bool {
		ready++
		err := command("lektor-fetch", "put", "--feed-id", "urn:x:ready", "--feed-name", "Ready", "--id", fmt.Sprintf("urn:x:%d", ready), "--title", "Ready").Run()
		select {
		case <-lines:
			return true
		default:
			return err != nil
		}
	})
	for i := 2; i <= 6; i++ {
		entries.Store(int64(i))
		begin := time.Now()
		if out, err := exec.Command(filepath.Join(bin, "lektor-cloudd"), "ping", "--cloud", fmt.Sprintf("http://127.0.0.1:%d", hubPort), feed).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want := fmt.Sprintf("News %d", i)
		deadline := time.After(time.Minute)
		for got := ""; got != want; {
			select {
			case got = <-lines:
			case <-deadline:
				t.Fatalf("%q was not printed", want)
			}
		}
		t.Logf("%s after %s", want, time.Since(begin))
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, free, err := server.Port(true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	return port
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for: %s", what)
		}
		poll := time.NewTimer(5 * time.Millisecond)
		<-poll.C
	}
}

// "You can ping the cloud after you save the file. It's essential that you save
// the file first, since the cloud may verify the update before notifying
// subscribers." A shell script does both with publish and ping.
func pingAfterSaving(t *testing.T, bin string) {
	file := filepath.Join(t.TempDir(), "feed.xml")
	var seen []string // contents of the file at each ping
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := os.ReadFile(file)
		seen = append(seen, string(b))
		fmt.Fprint(w, "<result success='true' msg=''/>")
	}))
	defer cloud.Close()
	d := testdir.New(t)
	if _, err := d.Feed("http://a.example/", "A"); err != nil {
		t.Fatal(err)
	}
	script := exec.Command("/bin/sh", "-ec", `
lektor-view publish --format rss --output "$1" --self http://me.example/feed.xml --cloud "$2"
lektor-cloudd ping --cloud "$2" http://me.example/feed.xml
`, "sh", file, cloud.URL+"/rsscloud/pleaseNotify")
	env := append(os.Environ(), "LEKTORDIR="+d.Path, "PATH="+bin+":"+os.Getenv("PATH"))
	for i := range 2 {
		if _, err := d.Entry("http://a.example/", "new", testdir.Unique(1700000000+int64(i), i)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(script.Path, script.Args[1:]...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(seen) != i+1 || strings.Count(seen[i], "<item>") != i+1 || !strings.Contains(seen[i], "<cloud ") {
			t.Errorf("the file at each ping: %q", seen)
		}
	}
}

// systemd checks that the listener uses the socket that systemd passes as descriptor 3, and
// notifies systemd when it is ready and when it stops.
func systemd(t *testing.T, bin string) {
	watch.New(t.Context(), time.Hour, func(why string) { t.Skip(why) }, nil) // the program would say so, too
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	name := filepath.Join(t.TempDir(), "notify")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	notify.SetReadDeadline(time.Now().Add(time.Minute))
	told := func() string {
		b := make([]byte, 100)
		n, err := notify.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" listen --public-url http://me.example/`, filepath.Join(bin, "lektor-cloudd"))
	cmd.Env = append(os.Environ(), "LEKTORDIR="+testdir.New(t).Path, "NOTIFY_SOCKET="+name)
	cmd.ExtraFiles = []*os.File{socket}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != "READY=1" {
		t.Errorf("got %q, want %q", got, "READY=1")
	}
	resp, err := http.Get("http://" + l.Addr().String() + "/")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("got %v, %v; want err == nil and resp.StatusCode == http.StatusNotFound", resp, err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if got := told(); got != "STOPPING=1" {
		t.Errorf("got %q, want %q", got, "STOPPING=1")
	}
	err = cmd.Wait()
	if lines := strings.Count(said.String(), "\n"); err != nil || (os.Geteuid() == 0) != strings.Contains(said.String(), "running as root") || lines > 1 {
		t.Errorf("got %v\n%s; want err == nil and (os.Geteuid() == 0) == strings.Contains(said.String(), \"running as root\") and lines <= 1", err, said.String())
	}
}

// hubKilled kills a hub in the middle of a round of notifications. When it is started again, it
// finishes the round. Every subscriber is notified, and twice only those that were being
// notified at the kill.
func hubKilled(t *testing.T, bin string) {
	const subscribers, atOnce = 60, 4
	var mu sync.Mutex
	told, total := map[string]int{}, 0
	version, hold := "one", make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/feed":
			fmt.Fprint(w, version)
		case r.FormValue("challenge") != "":
			fmt.Fprint(w, r.FormValue("challenge"))
		default:
			told[r.URL.Path]++
			if total++; total > subscribers/2 {
				mu.Unlock()
				select {
				case <-hold:
				case <-r.Context().Done():
				}
				mu.Lock()
			}
		}
	}))
	defer site.Close()
	u, _ := url.Parse(site.URL)
	state, port := filepath.Join(t.TempDir(), "hub"), freePort(t)
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	start := func() *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, "lektor-cloudd"), "hub", "--listen", strings.TrimPrefix(base, "http://"), "--public-url", base, "--state", state,
			"--allow-feeds", "127.0.0.0/8", "--allow-callbacks", "127.0.0.0/8", "--per-host", fmt.Sprint(atOnce))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "the hub", func() bool {
			resp, err := http.Get(base)
			if err == nil {
				resp.Body.Close()
			}
			return err == nil
		})
		return cmd
	}
	post := func(path string, form url.Values) {
		if resp, err := http.PostForm(base+path, form); err == nil {
			resp.Body.Close()
		}
	}
	first := start()
	for i := range subscribers {
		post("/pleaseNotify", url.Values{"port": {u.Port()}, "path": {fmt.Sprintf("/%d", i)}, "protocol": {"http-post"}, "domain": {"127.0.0.1"}, "url1": {site.URL + "/feed"}})
	}
	mu.Lock()
	version = "two"
	mu.Unlock()
	go post("/ping", url.Values{"url": {site.URL + "/feed"}})
	count := func() int { mu.Lock(); defer mu.Unlock(); return total }
	await(t, "half of the notifications", func() bool { return count() >= subscribers/2+atOnce })
	first.Process.Kill()
	first.Wait()
	close(hold)
	before := count()
	second := start()
	await(t, "the end of the round", func() bool {
		fi, err := os.Stat(filepath.Join(state, "jobs"))
		return err == nil && fi.Size() == 0
	})
	second.Process.Signal(syscall.SIGTERM)
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != subscribers || total > subscribers+2*atOnce || before >= subscribers {
		t.Errorf("%d of %d subscribers got %d notifications, %d of them before the kill", len(told), subscribers, total, before)
	}
	for who, n := range told {
		if n > 2 {
			t.Errorf("%s: %d times", who, n)
		}
	}
}
