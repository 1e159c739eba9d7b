package fetcher

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

// walkKilled is the environment variable with the arguments for a process of TestWalkKilled: the
// lektor-dir, the feed, "history" or "update", the step at which the process kills itself, and the
// count of that step, from 1.
const walkKilled = "LEKTOR_TEST_WALK_KILLED"

// TestWalkKilled kills a walk through ten archives, with and without a baseline: after each request
// and each spooled document, before each commit, between each delivery and its record, and after
// each record. The next run delivers the same entries as an uninterrupted one, each once, and
// requests no archive that was spooled or recorded.
func TestWalkKilled(t *testing.T) {
	if args := strings.Split(os.Getenv(walkKilled), "\n"); len(args) == 5 {
		k, _ := strconv.Atoi(args[4])
		walkAndDie(t, args[0], args[1], args[2] == "history", args[3], k)
		return
	}
	s := server.Start(t, "127.0.0.1")
	for _, mode := range []string{"history", "update"} {
		t.Run(mode, func(t *testing.T) { walkKilledIn(t, s, mode) })
	}
}

func walkKilledIn(t *testing.T, s *server.Server, mode string) {
	const n, old = 10, 2
	archives, first := n, 2 // and the first entry that is wanted
	if mode == "update" {
		archives, first = old+n, 2*old+2
	}
	var want []string
	for i := first; i < 2*archives+4; i++ {
		want = append(want, fmt.Sprint("Entry ", i))
	}
	slices.Sort(want)
	for _, where := range []string{"requested", "spooled", "staged", "delivered", "recorded"} {
		for k := 1; k <= n; k++ {
			if k%3 != 1 && os.Getenv(walkFeeds) == "" {
				continue // make faults does them all
			}
			if mode == "update" && where == "delivered" && k == n {
				continue // the first visit had the entries of the oldest
			}
			d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
			if err != nil {
				t.Fatal(err)
			}
			again := Selection{Feeds: []string{lektordir.FeedHash(s.URL("/feed"))}, Want: Want{Archives: mode == "history"}}
			if mode == "update" {
				chain(s, old)
				r, _ := newRunner(t, d)
				visited(t, r, s)
				r.Close()
			}
			chain(s, archives)
			asked(s)
			name := fmt.Sprint(where, " ", k)
			cmd := exec.Command(os.Args[0], "-test.run=^TestWalkKilled$")
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", walkKilled+"="+strings.Join([]string{d.Path(), s.URL("/feed"), mode, where, strconv.Itoa(k)}, "\n"))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
				t.Fatalf("%s: it was not killed: %v\n%s", name, err, out)
			}
			first := strings.Fields(asked(s))
			if where != "requested" && where != "spooled" && len(first) != n+1 || where == "requested" && len(first) != k+1 {
				t.Fatalf("%s: it asked for %q", name, first)
			}
			r, l := newRunner(t, d)
			r.Recover(t.Context())
			update(t, r, again)
			rest := strings.Fields(asked(s))
			for _, path := range rest {
				lost := where == "requested" && path == first[len(first)-1]
				if path != "/feed" && slices.Contains(first, path) && !lost {
					t.Errorf("%s: %s was asked for again", name, path)
				}
			}
			if where != "requested" && len(first)+len(rest) != n+2 {
				t.Errorf("%s: %q, then %q", name, first, rest)
			}
			got := titles(t, r, lektordir.ListOptions{AllVersions: true})
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: %q", name, got)
			}
			h := history.Of(d, lektordir.FeedHash(s.URL("/feed")))
			if h.Summary() != fmt.Sprint("archived ", n) || l.String() != "" {
				t.Errorf("%s: %s, %s", name, h.Summary(), l)
			}
			// No work is left.
			if update(t, r, Selection{Feeds: []string{lektordir.FeedHash(s.URL("/feed"))}}); asked(s) != "/feed" {
				t.Errorf("%s: it goes on", name)
			}
			if left, _ := os.ReadDir(d.Join("etc/fetch/spool", lektordir.FeedHash(s.URL("/feed")))); len(left) > 0 {
				t.Errorf("%s: %d documents wait for nothing", name, len(left))
			}
			r.Close()
		}
	}
}

// newRunner returns a runner on a lektor-dir.
func newRunner(t *testing.T, d *lektordir.Dir) (*Runner, *log) {
	t.Helper()
	l := &log{}
	r, err := New(d, l, early())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, l
}

// walkAndDie is the body of the process.
func walkAndDie(t *testing.T, dir, url string, whole bool, where string, k int) {
	d, err := lektordir.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := newRunner(t, d)
	if where == "delivered" || k%2 == 0 {
		r.walkBatch = 1 // each archive has a commit of its own
	}
	r.testHook = func(at string) {
		if at != where {
			return
		}
		if k--; k == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if whole {
		subscribeTo(t, r, url)
	}
	update(t, r, Selection{Feeds: []string{lektordir.FeedHash(url)}, Want: Want{Archives: whole}})
}
