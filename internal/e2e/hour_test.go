package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// news are feeds that get an entry every two seconds until they end.
type news struct {
	mu    sync.Mutex
	began time.Time
	ended time.Time // zero until they end
}

// count returns the number of entries that each feed has had.
func (n *news) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.ended
	if now.IsZero() {
		now = time.Now()
	}
	return 10 + int(now.Sub(n.began)/(2*time.Second))
}

func (n *news) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = time.Now()
}

// serve returns a handler of a document with the last 500 entries of a feed, newest first.
func (n *news) serve(feed string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		last := n.count()
		for i := last - 1; i >= max(0, last-500); i-- {
			fmt.Fprintf(&b, "<item><title>%sn%dx</title><guid isPermaLink=\"false\">%sn%dx</guid><description>text</description></item>", feed, i, feed, i)
		}
		server.Doc("", `<rss version="2.0"><channel><title>`+feed+`</title><link>http://example.com/</link><description>d</description>`+b.String()+"</channel></rss>")(w, r)
	}
}

// user is somebody who reads on a machine in the full-screen reader.
type user struct {
	*sharer
	*terminal.Tmux
	parity int               // marks entries with even (0) or odd (1) numbers
	marked map[string]string // flags by the id of each entry that was marked
	undone int
}

// read starts the reader. It fetches by itself.
func (u *user) read(t *testing.T) {
	view := filepath.Join(u.path, "etc/view")
	if err := os.MkdirAll(view, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(view, "keys"), []byte("X fetch-every 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	env := []string{"LEKTORDIR=" + u.path, "PATH=" + u.bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TZ=UTC"}
	u.Tmux = terminal.NewTmux(t, 100, 30, env, `lektor-view tui 2>"$HOME/err"; echo "END $?"; cat "$HOME/err"`)
	u.Await("unread")
	u.Keys("X", "l", "a") // all entries, also those that are read
	u.Await("read and unread")
}

// mark marks an entry, or marks it and takes that back.
func (u *user) mark(id string) {
	u.Keys("/")
	u.Type(id)
	u.Keys("Enter")
	shows := func(pattern string) {
		re := regexp.MustCompile(pattern)
		u.Until(pattern, func(lines []string) bool { return slices.ContainsFunc(lines, re.MatchString) })
	}
	shows(`>N .* ` + id + `( |│|$)`)
	c := []struct{ key, flags, seen string }{{"r", "S", `>  `}, {"m", "F", `>NF `}}[rand.IntN(2)]
	u.Keys(c.key)
	shows(c.seen + `.* ` + id + `( |│|$)`)
	if rand.IntN(5) == 0 {
		u.Keys("u")
		shows(`>N  .* ` + id + `( |│|$)`)
		u.undone++
		c.flags = ""
	}
	u.marked[id] = c.flags
	u.Keys("Escape")
	u.Until("the whole list", func(lines []string) bool { return !strings.Contains(lines[0], "/"+id) })
}

// TestAnHourOfTwo: on two machines, users read and mark in the full-screen reader, which fetches
// too, and a timer shares the marks. No entry is lost or delivered twice, no mark is lost, and
// none is undone. The test takes as long as LEKTOR_HOUR says, by default a few seconds.
func TestAnHourOfTwo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	lasts := 6 * time.Second
	if s := os.Getenv("LEKTOR_HOUR"); s != "" {
		var err error
		if lasts, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	bin := build(t)
	srv, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	n := &news{began: time.Now()}
	var urls, feeds []string
	for i := range 6 {
		feed := fmt.Sprintf("f%d", i)
		feeds = append(feeds, feed)
		srv.Handle("/"+feed, n.serve(feed))
		urls = append(urls, srv.URL("/"+feed))
	}
	target := filepath.Join(t.TempDir(), "sync")
	var users []*user
	for i, name := range []string{"here", "there"} {
		m := &sharer{t, bin, filepath.Join(t.TempDir(), "lektor"), name}
		if err := (&testdir.Dir{Path: m.path}).Create(); err != nil {
			t.Fatal(err)
		}
		m.run("", "lektor-fetch", append([]string{"add", "--gap", "1ms", "--per-host", "4"}, urls...)...)
		m.run("", "lektor-share", "init", "--name", name, target)
		users = append(users, &user{sharer: m, parity: i, marked: map[string]string{}})
	}
	for range 2 {
		for _, u := range users {
			u.sync()
		}
	}
	end := time.Now().Add(lasts)
	var work sync.WaitGroup
	for _, u := range users {
		u.read(t)
		work.Go(func() {
			for time.Now().Before(end) {
				u.Keys("U") // fetch all
				fetched := u.entries("")
				for _, e := range fetched {
					number, _ := strconv.Atoi(strings.TrimSuffix(e.ID[strings.Index(e.ID, "n")+1:], "x"))
					if _, marked := u.marked[e.ID]; !marked && number%2 == u.parity && rand.IntN(3) == 0 && time.Now().Before(end) {
						if u.mark(e.ID); rand.IntN(10) == 0 {
							u.Keys("U")
						}
					}
				}
			}
		})
	}
	for _, u := range users { // the timers
		work.Go(func() {
			for time.Now().Before(end) {
				u.sync()
				time.Sleep(time.Duration(1000+rand.IntN(2000)) * time.Millisecond) // a timer, which waits for nothing
			}
		})
	}
	work.Wait()
	for _, u := range users {
		u.Keys("Q")
		u.Await("END 0")
	}
	n.end()
	for range 3 {
		for _, u := range users {
			u.fetch()
			u.sync()
		}
	}
	var served []string
	for _, feed := range feeds {
		for i := range n.count() {
			served = append(served, fmt.Sprintf("%sn%dx", feed, i))
		}
	}
	agreeOnMarks(t, users, served)
}

// agreeOnMarks fails the test unless each machine has each entry once, with the flags that the
// users left.
func agreeOnMarks(t *testing.T, users []*user, served []string) {
	marked, undone := map[string]string{}, 0
	for _, u := range users {
		for id, flags := range u.marked {
			marked[id] = flags
		}
		undone += u.undone
	}
	for _, u := range users {
		u.run("", "lektor-share", "apply", "--allow", "127.0.0.0/8")
		has := map[string][]string{}
		for _, e := range u.entries("") {
			has[e.ID] = append(has[e.ID], e.Flags)
		}
		for _, id := range served {
			switch flags := has[id]; {
			case len(flags) != 1:
				t.Errorf("%s: %s is there %d times, not once", u.name, id, len(flags))
			case flags[0] != marked[id]:
				t.Errorf("%s: %s has the flags %q; the user left %q", u.name, id, flags[0], marked[id])
			}
		}
	}
	t.Logf("%d entries, %d marked, %d of these undone", len(served), len(marked), undone)
	if len(marked) == 0 {
		t.Error("nothing was marked")
	}
}
