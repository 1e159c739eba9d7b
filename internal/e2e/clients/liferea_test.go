package clients

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
)

// display starts an X server in memory and returns its name.
func display(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x1024x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	launch(t, cmd)
	w.Close()
	number, err := io.ReadAll(io.LimitReader(r, 100))
	if err != nil || len(number) < 2 {
		t.Fatalf("Xvfb: %q, %v", number, err)
	}
	return ":" + strings.TrimSpace(string(number))
}

// program is a client that runs.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *said
	ended chan struct{}
}

// launch starts a program in a process group of its own, which ends with the test.
func launch(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t, cmd, &said{}, make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() { p.signal(syscall.SIGKILL) })
	return p
}

// signal sends a signal to all processes of the program, and waits until it has ended.
func (p *program) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.ended
	}
}

// liferea is one with its files in a home directory.
type liferea struct {
	t       *testing.T
	home    string
	display string
	url     string
	program *program
}

func (l *liferea) at(name string) string { return filepath.Join(l.home, name) }

// start starts Liferea, which asks the server for all feeds at once.
func (l *liferea) start() {
	l.t.Helper()
	// Liferea writes the list without user and password when it ends.
	list := fmt.Sprintf(`<?xml version="1.0"?><opml version="1.0"><head/><body><outline type="source" id="grsrc01" title="GR" text="GR" expanded="true" `+
		`sourceType="fl_google_reader" xmlUrl="%s" updateInterval="-1" username="%s" password="%s"/></body></opml>`, l.url, user, strings.ReplaceAll(password, "&", "&amp;"))
	for _, dir := range []string{".config/liferea", ".cache/liferea/plugins", ".local/share/liferea", "run"} {
		if err := os.MkdirAll(l.at(dir), 0o700); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := os.WriteFile(l.at(".config/liferea/feedlist.opml"), []byte(list), 0o600); err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command("dbus-run-session", "--", "sh", "-c", `echo "$DBUS_SESSION_BUS_ADDRESS" >"$HOME/bus"; exec liferea --disable-plugins --debug-update --debug-net`)
	cmd.Env = l.env()
	l.program = launch(l.t, cmd)
}

func (l *liferea) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "XDG_RUNTIME_DIR=" + l.at("run"), "DISPLAY=" + l.display, "LC_ALL=C.UTF-8", "GSETTINGS_BACKEND=memory",
		"GIO_USE_NETWORK_MONITOR=base", "NO_AT_BRIDGE=1", "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS=1", "LIBGL_ALWAYS_SOFTWARE=1",
	}
}

// items returns the titles of each feed that Liferea has.
func (l *liferea) items() map[string][]string {
	l.t.Helper()
	all := map[string][]string{}
	db := l.at(".local/share/liferea/liferea.db")
	if _, err := os.Stat(db); err != nil || query(l.t, db, "select count(*) from sqlite_master where name in ('items', 'node')")[0][0] != "2" {
		return all
	}
	for _, row := range query(l.t, db, "select n.title, i.title from items i join node n on n.node_id = i.node_id where i.parent_item_id = 0") {
		all[row[0]] = append(all[row[0]], row[1])
	}
	return all
}

// keys types keys into Liferea's window.
func (l *liferea) keys(keys ...string) {
	l.t.Helper()
	l.xdotool("search", "--onlyvisible", "--sync", "--name", "Liferea", "windowfocus")
	l.xdotool(append([]string{"key", "--delay", "50"}, keys...)...)
}

// TestLiferea: Liferea as it comes downloads the lektor-dir, and marks in it.
func TestLiferea(t *testing.T) {
	t.Parallel()
	needs(t, "liferea", "Xvfb", "xdotool", "dbus-run-session", "sqlite3")
	w := fill(t)
	origin, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer origin.Close()
	origin.Handle("/feed", server.Doc("", server.RSS("Origin", 0, 3)))
	s := serveDir(t, w.dir.Path, "--allow", "127.0.0.0/8")
	c := &checks{s, oracle{t, w.dir.Path, false}, t, w}
	l := &liferea{t: t, home: t.TempDir(), display: display(t), url: s.url}
	l.start()
	await(t, "Liferea has all entries", func() bool {
		n := 0
		for _, list := range l.items() {
			n += len(list)
		}
		return n == len(c.items())
	})
	got := l.items()
	for _, f := range c.feeds() {
		titles := got[f.name]
		want := titlesOf(c.stream("feed/" + f.hash))
		if slices.Sort(titles); len(titles) != len(want) {
			t.Errorf("Liferea has of %s\n%q, want\n%q", f.name, titles, want)
		}
	}
	l.edits(c)
	l.subscribe(c, origin.URL("/feed"))
	l.program.signal(syscall.SIGTERM)
}

// xdotool runs xdotool on the display.
func (l *liferea) xdotool(args ...string) {
	l.t.Helper()
	cmd := exec.Command("timeout", append([]string{"20", "xdotool"}, args...)...)
	cmd.Env = append(os.Environ(), "DISPLAY="+l.display)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("xdotool %q: %v\n%s\n%s", args, err, out, l.program.out)
	}
}

// click clicks at a point of the screen, where a dialog is without a window manager.
func (l *liferea) click(x, y int) {
	l.t.Helper()
	l.xdotool("sleep", "1", "mousemove", fmt.Sprint(x), fmt.Sprint(y), "click", "1")
}

// subscribe adds a feed beside the one that is selected, and removes it.
func (l *liferea) subscribe(c *checks, url string) {
	l.t.Helper()
	bus, err := os.ReadFile(l.at("bus"))
	if err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command("timeout", "20", "liferea", "--add-feed="+url)
	cmd.Env = append(l.env(), "DBUS_SESSION_BUS_ADDRESS="+strings.TrimSpace(string(bus)))
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("liferea --add-feed: %v\n%s", err, out)
	}
	await(l.t, "Liferea subscribes to a feed", func() bool { return c.there(url) })
	l.click(90, 80)         // the list of feeds
	l.keys("End", "Delete") // the new feed is its last
	l.click(419, 270)       // "Delete" of a dialog
	await(l.t, "Liferea unsubscribes from a feed", func() bool { return !c.there(url) })
}

// edits marks as a person does, by keys.
func (l *liferea) edits(c *checks) {
	l.t.Helper()
	before := c.stream(state+"reading-list", state+"read")
	var at item
	l.keys("ctrl+n")
	await(l.t, "Liferea marks the next unread entry as read", func() bool {
		for _, i := range before {
			if c.now(i).read {
				at = i
				return true
			}
		}
		return false
	})
	l.keys("ctrl+t")
	await(l.t, "Liferea flags an entry", func() bool { return c.now(at).starred() != at.starred() })
	l.keys("ctrl+t")
	await(l.t, "Liferea takes the flag away", func() bool { return c.now(at).starred() == at.starred() })
	l.keys("ctrl+m")
	await(l.t, "Liferea marks an entry as unread", func() bool { return !c.now(at).read })
	l.keys("ctrl+r")
	l.click(303, 120) // "Mark all as read" of a dialog, which no key reaches
	await(l.t, "Liferea marks a feed as read", func() bool { return len(c.stream("feed/"+at.feed, state+"read")) == 0 })
}

func titlesOf(all []item) []string {
	list := titles(all)
	slices.Sort(list)
	return list
}
