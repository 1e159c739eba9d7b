package clients

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"
)

// rssguard is one with its own data directory.
type rssguard struct {
	t    *testing.T
	home string
}

// The services of RSS Guard's accounts.
const (
	freshRSS     = 1
	otherService = 1024
)

// cryptKey is a key of RSS Guard for passwords.
const cryptKey uint64 = 0x1122334455667788

// encrypted is a password as RSS Guard keeps it: each byte xor a byte of the key and the
// byte before.
func encrypted(password string) string {
	out, last := []byte{3, 0}, byte(0)
	for n, b := range append([]byte{0x5a}, password...) {
		last ^= b ^ byte(cryptKey>>(8*(n%8)))
		out = append(out, last)
	}
	return base64.StdEncoding.EncodeToString(out)
}

func (g *rssguard) at(name string) string { return filepath.Join(g.home, name) }

func (g *rssguard) db() string { return g.at("data/database/database.db") }

func (g *rssguard) start() *program {
	g.t.Helper()
	cmd := exec.Command("rssguard", "-s", "-d", g.at("data"), "-l", g.at("log"))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "XDG_RUNTIME_DIR=" + g.at("run"), "QT_QPA_PLATFORM=offscreen", "QTWEBENGINE_DISABLE_SANDBOX=1", "LC_ALL=C.UTF-8",
	}
	return launch(g.t, cmd)
}

// newRSSGuard makes an account of a service at a URL.
func newRSSGuard(t *testing.T, service int, url string) *rssguard {
	t.Helper()
	g := &rssguard{t, t.TempDir()}
	if err := os.Mkdir(g.at("run"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := g.start()
	await(t, "RSS Guard has made its files", func() bool {
		log, err := os.ReadFile(g.at("log"))
		if _, missing := os.Stat(g.at("data/config/config.ini")); missing != nil {
			return false
		}
		return err == nil && bytes.Contains(log, []byte("Auto-download timer started")) && g.has("Accounts")
	})
	p.signal(syscall.SIGTERM)
	config, err := os.OpenFile(g.at("data/config/config.ini"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer config.Close()
	if _, err := config.WriteString("\n[feeds]\nfeeds_update_on_startup=true\nfeeds_update_on_startup_delay=3\nauto_update_enabled=false\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.at("data/config/key.private"), []byte(fmt.Sprint(cryptKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]any{
		"service": service, "username": user, "password": encrypted(password), "batch_size": 100, "download_only_unread": false, "intelligent_synchronization": true, "url": url,
	})
	if err != nil {
		t.Fatal(err)
	}
	sql := "insert into Accounts(type, proxy_type, custom_data) values('greader', 0, '" + strings.ReplaceAll(string(account), "'", "''") + "')"
	if out, err := exec.Command("sqlite3", g.db(), sql).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return g
}

// has reports whether the database has a table.
func (g *rssguard) has(table string) bool {
	if _, err := os.Stat(g.db()); err != nil {
		return false
	}
	return len(query(g.t, g.db(), "select 1 from sqlite_master where name = '"+table+"'")) > 0
}

// messages returns what RSS Guard has of entries: feed, id and flags, a line each.
func (g *rssguard) messages() []string {
	g.t.Helper()
	var all []string
	for _, row := range query(g.t, g.db(), "select feed, custom_id, is_read, is_important from Messages where is_deleted = 0 order by 1, 2") {
		all = append(all, strings.Join(row, " "))
	}
	return all
}

// wanted is messages as the lektor-dir has it.
func (g *rssguard) wanted(c *checks) []string {
	g.t.Helper()
	bit := map[bool]int{true: 1}
	var all []string
	list := c.items()
	for n, id := range c.idsOf(list...) {
		i := list[n]
		all = append(all, fmt.Sprintf("feed/%s %s %d %d", i.feed, long(id), bit[i.read], bit[i.starred()]))
	}
	slices.Sort(all)
	return all
}

// sync lets RSS Guard update all feeds, until it has what the lektor-dir has.
func (g *rssguard) sync(c *checks) {
	g.t.Helper()
	p := g.start()
	began := time.Now()
	var got, want []string
	for end := deadline(); ; pause() {
		// On a busy machine the update may begin before the accounts are there, and then does nothing.
		if time.Since(began) > 15*time.Second {
			p.signal(syscall.SIGTERM)
			p, began = g.start(), time.Now()
		}
		if got, want = g.messages(), g.wanted(c); slices.Equal(got, want) {
			break
		}
		if end() {
			log, _ := os.ReadFile(g.at("log"))
			g.t.Fatalf("RSS Guard has\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), log[max(0, len(log)-4000):])
		}
	}
	p.signal(syscall.SIGTERM)
}

// queue leaves marks of read entries and unread ones, which RSS Guard makes at its next update, in
// the file in which it keeps those that could not be sent.
func (g *rssguard) queue(read, unread []string) {
	g.t.Helper()
	var b bytes.Buffer
	number := func(n int) { _ = binary.Write(&b, binary.BigEndian, uint32(n)) }
	text := func(s string) {
		u := utf16.Encode([]rune(s))
		number(2 * len(u))
		_ = binary.Write(&b, binary.BigEndian, u)
	}
	number(0) // starred entries, with their data
	number(2)
	for state, list := range [][]string{unread, read} {
		number(state)
		number(len(list))
		for _, id := range list {
			text(id)
		}
	}
	number(0)
	number(0)
	id := query(g.t, g.db(), "select id from Accounts where type = 'greader'")[0][0]
	if err := os.WriteFile(g.at("data/"+id+"-cached-msgs.dat"), b.Bytes(), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// TestRSSGuard: RSS Guard as it comes shows the lektor-dir, and marks in it.
func TestRSSGuard(t *testing.T) {
	t.Parallel()
	needs(t, "rssguard", "sqlite3")
	for name, account := range map[string]struct {
		service int
		end     string
	}{"other": {otherService, ""}, "FreshRSS": {freshRSS, "/"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fill(t)
			s := serveDir(t, w.dir.Path)
			c := &checks{s, oracle{t, w.dir.Path, false}, t, w}
			kept := long(c.idOf(c.items()[0]))
			c.edit(edit, form("i", kept, "a", "user/-/label/To keep"))
			g := newRSSGuard(t, account.service, s.url+account.end)
			g.sync(c)
			g.feeds(c)
			if got := query(t, g.db(), "select message from LabelsInMessages where label = 'user/-/label/To keep'"); len(got) != 1 || got[0][0] != kept {
				t.Errorf("RSS Guard has the label at %q, want %s", got, kept)
			}

			// Marks of lektor-view, and marks of its own.
			unread, read := c.stream(state+"reading-list", state+"read"), c.stream(state+"read")
			c.run("", "lektor-view", "mark", "--set", "FS", unread[0].path, unread[1].path)
			c.run("", "lektor-view", "mark", "--clear", "S", read[0].path)
			ids := func(all ...item) (list []string) {
				for _, id := range c.idsOf(all...) {
					list = append(list, long(id))
				}
				return list
			}
			g.queue(ids(unread[2], unread[3]), ids(read[1], read[2]))
			g.sync(c)
			for n, i := range []item{unread[0], unread[1], unread[2], unread[3], read[0], read[1], read[2]} {
				if got := c.now(i).read; got != (n < 4) {
					t.Errorf("%s: read %v", i.title, got)
				}
			}
		})
	}
}

// feeds compares the feeds and folders with those of the lektor-dir.
func (g *rssguard) feeds(c *checks) {
	g.t.Helper()
	got := map[string]string{}
	for _, row := range query(g.t, g.db(), "select f.custom_id, f.title, ifnull(c.title, '') from Feeds f left join Categories c on c.id = f.category") {
		got[row[0]] = row[1] + " in " + row[2]
	}
	for _, f := range c.feeds() {
		folder := ""
		if len(f.folders) > 0 {
			folder = f.folders[0][strings.LastIndex(f.folders[0], "/")+1:]
		}
		if want := f.name + " in " + folder; got["feed/"+f.hash] != want {
			g.t.Errorf("RSS Guard has %q, want %q", got["feed/"+f.hash], want)
		}
	}
	if len(got) != len(c.feeds()) {
		g.t.Errorf("RSS Guard has the feeds %q", got)
	}
}
