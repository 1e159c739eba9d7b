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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/internal/testkit/hub"
	"github.com/lektordir/lektor/internal/testkit/server"
)

// TestRealBinaries builds the programs and runs them against each other.
func TestRealBinaries(t *testing.T) {
	if testing.Short() {
		t.Skip("builds three programs")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "../lektor-cloudd", "../lektor-fetch", "../lektor-view")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, test := range map[string]func(*testing.T, string){
		"WalkthroughRealTime":                 realTime,
		"WalkthroughPingAfterTheFileIsSaved":  pingAfterSaving,
		"SystemdSocketActivationAndReadiness": systemd,
	} {
		t.Run(name, func(t *testing.T) { test(t, bin) })
	}
}

// The real programs on loopback, and a hub that keeps to the walkthrough: the
// listener registers, is challenged, is notified; the marker appears;
// lektor-fetch watch delivers; lektor-view follow prints. "All this happened in
// less than a second! That's what they call Real-time."
func realTime(t *testing.T, bin string) {
	hub := &hub.Hub{}
	hs := httptest.NewServer(hub)
	defer hs.Close()
	hu, _ := url.Parse(hs.URL)
	var entries atomic.Int64
	entries.Store(1)
	fs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(entries.Load())
		doc := server.RSS("News", 1, n)
		cloud := fmt.Sprintf(`<cloud domain="%s" port="%s" path="/rsscloud/pleaseNotify" registerProcedure="" protocol="http-post"/>`, hu.Hostname(), hu.Port())
		server.Doc("application/rss+xml", strings.Replace(doc, "<description>d", cloud+"<description>d", 1))(w, r)
	}))
	defer fs.Close()

	dir := filepath.Join(t.TempDir(), "feeds")
	env := append(os.Environ(), "LEKTORDIR="+dir, "NO_PROXY=*", "XDG_CONFIG_HOME="+dir)
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
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
	for end := time.Now().Add(20 * time.Second); len(hub.Registrations()) == 0; {
		if time.Now().After(end) {
			t.Fatal("it was not registered")
		}
		poll := time.NewTimer(5 * time.Millisecond)
		<-poll.C
	}
	for i := 2; i <= 6; i++ {
		entries.Store(int64(i))
		begin := time.Now()
		if err := hub.Notify(feed); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("News %d", i)
		deadline := time.After(20 * time.Second)
		for got := ""; got != want; {
			select {
			case got = <-lines:
			case <-deadline:
				t.Fatalf("%q did not come", want)
			}
		}
		t.Logf("%s after %s", want, time.Since(begin))
	}
}

// "You can ping the cloud after you save the file. It's essential that you save
// the file first, since the cloud may verify the update before notifying
// subscribers." What publish and ping make of a shell script.
func pingAfterSaving(t *testing.T, bin string) {
	file := filepath.Join(t.TempDir(), "feed.xml")
	var seen []string // what the cloud finds in the file when it is pinged
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := os.ReadFile(file)
		seen = append(seen, string(b))
		fmt.Fprint(w, "<result success='true' msg=''/>")
	}))
	defer cloud.Close()
	d := dir.New(t)
	if _, err := d.Feed("http://a.example/", "A"); err != nil {
		t.Fatal(err)
	}
	script := exec.Command("/bin/sh", "-ec", `
lektor-view publish --format rss --output "$1" --self http://me.example/feed.xml --cloud "$2"
lektor-cloudd ping --cloud "$2" http://me.example/feed.xml
`, "sh", file, cloud.URL+"/rsscloud/pleaseNotify")
	env := append(os.Environ(), "LEKTORDIR="+d.Path, "PATH="+bin+":"+os.Getenv("PATH"))
	for i := range 2 {
		if _, err := d.Entry("http://a.example/", "new", dir.Unique(1700000000+int64(i), i)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(script.Path, script.Args[1:]...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(seen) != i+1 || strings.Count(seen[i], "<item>") != i+1 || !strings.Contains(seen[i], "<cloud ") {
			t.Errorf("the cloud sees %q", seen)
		}
	}
}

// systemd passes a socket as descriptor 3, and is told when all is ready, and
// that it ends.
func systemd(t *testing.T, bin string) {
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
	notify.SetReadDeadline(time.Now().Add(20 * time.Second))
	told := func() string {
		b := make([]byte, 100)
		n, err := notify.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" listen --public-url http://me.example/`, filepath.Join(bin, "lektor-cloudd"))
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir.New(t).Path, "NOTIFY_SOCKET="+name)
	cmd.ExtraFiles = []*os.File{socket}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != "READY=1" {
		t.Errorf("%q", got)
	}
	resp, err := http.Get("http://" + l.Addr().String() + "/")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("%v, %v", resp, err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if got := told(); got != "STOPPING=1" {
		t.Errorf("%q", got)
	}
	err = cmd.Wait()
	if lines := strings.Count(said.String(), "\n"); err != nil || (os.Geteuid() == 0) != strings.Contains(said.String(), "runs as root") || lines > 1 {
		t.Errorf("%v\n%s", err, said.String())
	}
}
