package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/terminal"
)

// needs skips a test of a client that is not installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed; apt-get install newsboat liferea rssguard xvfb xdotool tmux dbus sqlite3", p)
		}
	}
}

// table asks a client's own database, and returns the fields of its rows.
func query(t *testing.T, db, sql string) (rows [][]string) {
	t.Helper()
	out, err := exec.Command("sqlite3", "-readonly", "-cmd", ".timeout 5000", "-separator", "\x1f", db, sql).CombinedOutput()
	if err != nil {
		t.Fatalf("sqlite3 %s: %v\n%s", sql, err, out)
	}
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\x1f"))
	}
	return rows
}

// newsboat is one with its files in a directory.
type newsboat struct {
	t    *testing.T
	home string
}

func newNewsboat(t *testing.T, c *checks, url string) *newsboat {
	t.Helper()
	n := &newsboat{t, t.TempDir()}
	for name, text := range map[string]string{
		"urls": "", "password": password + "\n",
		"config": `urls-source "feedhq"
feedhq-url "` + url + `"
feedhq-login "` + user + `"
feedhq-passwordfile "` + filepath.Join(n.home, "password") + `"
feedhq-show-special-feeds no
feedhq-min-items 100
feedhq-flag-star "s"
feedhq-flag-share "x"
download-retries 1
reload-threads 4
feed-sort-order "title-asc"
show-read-feeds yes
`,
	} {
		if err := os.WriteFile(filepath.Join(n.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *newsboat) args(more ...string) []string {
	at := func(name string) string { return filepath.Join(n.home, name) }
	return append([]string{"-C", at("config"), "-u", at("urls"), "-c", at("cache.db"), "-d", at("log"), "-l", "6"}, more...)
}

func (n *newsboat) run(more ...string) string {
	n.t.Helper()
	cmd := exec.Command("newsboat", n.args(more...)...)
	cmd.Env = append(os.Environ(), "HOME="+n.home, "LC_ALL=C.UTF-8", "TERM=xterm")
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("newsboat %q: %v\n%s", more, err, out)
	}
	return string(out)
}

// agrees compares newsboat's database with the lektor-dir.
func (n *newsboat) agrees(c *checks) {
	n.t.Helper()
	var got, want []string
	find := c.finder()
	for _, row := range query(n.t, filepath.Join(n.home, "cache.db"), "select feedurl, guid, unread from rss_item where deleted = 0") {
		id := strings.TrimPrefix(row[1], "tag:google.com,2005:reader/item/")
		var k int64
		fmt.Sscanf(id, "%x", &k)
		i, ok := find(short(k))
		if !ok || !strings.HasSuffix(strings.Replace(row[0], "%2F", "/", 1), "/feed/"+i.feed+"?n=100") {
			n.t.Errorf("newsboat has %q", row)
		}
		got = append(got, fmt.Sprintf("%s unread=%s", i.unique, row[2]))
	}
	for _, i := range c.items() {
		want = append(want, fmt.Sprintf("%s unread=%d", i.unique, map[bool]int{true: 0, false: 1}[i.read]))
	}
	slices.Sort(got)
	slices.Sort(want)
	for _, line := range want {
		if !slices.Contains(got, line) {
			n.t.Errorf("newsboat lacks %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			n.t.Errorf("newsboat has %s, and the lektor-dir has not", line)
		}
	}
}

// TestNewsboat: newsboat as it comes reads the lektor-dir, and marks in it.
func TestNewsboat(t *testing.T) {
	t.Parallel()
	needs(t, "newsboat", "tmux", "sqlite3")
	w := fill(t)
	s := serveDir(t, w.dir.Path)
	c := &checks{s, oracle{t, w.dir.Path, false}, t, w}
	for _, end := range []string{"", "/", "/api/greader.php"} {
		n := newNewsboat(t, c, s.url+end)
		n.run("-x", "reload")
		n.agrees(c)
	}
	n := newNewsboat(t, c, s.url)
	n.run("-x", "reload")
	if out, want := n.run("-x", "print-unread"), fmt.Sprintf("%d unread", len(c.stream(state+"reading-list", state+"read"))); !strings.Contains(out, want) {
		t.Errorf("newsboat says %q, want %q", out, want)
	}

	// Marks of other programs: of lektor-view, and by mv.
	unread := c.stream(state+"reading-list", state+"read")
	read := c.stream("feed/"+c.feed(alpha).hash+"", state+"kept-unread")
	c.run("", "lektor-view", "mark", "--set", "S", unread[0].path, unread[1].path)
	c.run("", "lektor-view", "mark", "--clear", "S", read[0].path, read[1].path)
	n.run("-x", "reload")
	n.agrees(c)

	n.keys(c)
	n.agrees(c)
}

// keys marks as a person does.
func (n *newsboat) keys(c *checks) {
	n.t.Helper()
	x := terminal.NewTmux(n.t, 100, 30, []string{"HOME=" + n.home}, "exec newsboat "+strings.Join(n.args(), " "))
	x.Await("Quit")
	f := c.feed(gamma)
	row := regexp.MustCompile(`(?m)^\s*(\d+)\s.*` + gamma).FindStringSubmatch(strings.Join(x.Await(gamma), "\n"))
	if row == nil {
		n.t.Fatalf("no row of %s", gamma)
	}
	x.Keys(row[1], "Enter", "Enter")
	x.Await("Articles in feed")
	first := func() item {
		// Newest first is not the order of newsboat's lists, so the screen says which it is.
		for _, line := range x.Screen()[1:] {
			for _, i := range c.stream("feed/" + f.hash) {
				if strings.Contains(line, i.title) {
					return i
				}
			}
		}
		n.t.Fatal("no entry is on the screen")
		return item{}
	}()
	x.Keys("Home", "N")
	await(n.t, "newsboat's N toggles read", func() bool { return c.now(first).read != first.read })
	x.Keys("Home", "N")
	x.Until("read again as before", func([]string) bool { return c.now(first).read == first.read })
	x.Keys("Home", "C-e")
	x.Await("Flags:")
	x.Keys("s", "Enter")
	starred := func() (n int) {
		return len(slices.DeleteFunc(c.stream("feed/"+f.hash), func(i item) bool { return !i.starred() }))
	}
	was := len(slices.DeleteFunc(c.stream("feed/"+f.hash), func(i item) bool { return !i.starred() }))
	await(n.t, "newsboat's flag s is a star", func() bool { return starred() == was+1 || c.now(first).starred() })
	x.Keys("q")
	x.Await("Quit")
	x.Keys("A")
	await(n.t, "newsboat's A marks all as read", func() bool { return len(c.stream("feed/"+f.hash, state+"read")) == 0 })
	x.Keys("q")
}
