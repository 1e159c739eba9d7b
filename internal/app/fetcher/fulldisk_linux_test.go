package fetcher

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// onSmallDisk is the environment variable with the directory on which a process of onDisk mounts
// its file system.
const onSmallDisk = "LEKTOR_TEST_SMALL_DISK"

// onDisk runs a test in its own process, where dir is a separate file system with a limit such as
// "nr_inodes=200".
func onDisk(t *testing.T, limit string, test func(dir string)) {
	if dir := os.Getenv(onSmallDisk); dir != "" {
		if err := syscall.Mount("none", dir, "tmpfs", 0, limit); err != nil {
			fmt.Println("no mount:", err)
			os.Exit(77)
		}
		test(dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), onSmallDisk+"="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 {
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestHistoryFullDisk: if the disk gets full, add --history and history fail and count the entries
// that are in new/, and the feed is incomplete. When there is space again, the next update delivers
// the rest, each entry once.
func TestHistoryFullDisk(t *testing.T) {
	onDisk(t, "nr_inodes=6900", func(dir string) {
		s, err := server.New("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const n, each = 30, 40
		prev := ""
		for i := range n {
			s.Handle(fmt.Sprint("/", i), server.Doc("", atomFeed(mark+prev, i, numbered(each*i, each)...)))
			prev = link("prev-archive", fmt.Sprint("/", i))
		}
		s.Handle("/feed", server.Doc("", atomFeed(prev, 9999, numbered(n*each, 2)...)))
		hash := lektordir.FeedHash(s.URL("/feed"))
		for _, name := range []string{"add", "history"} {
			path := filepath.Join(dir, name)
			var stderr bytes.Buffer
			streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &bytes.Buffer{}, &stderr)
			if name == "add" {
				err = Add(t.Context(), AddOptions{Common: Common{Dir: path}, Sources: []string{s.URL("/feed")}, Look: LookNowhere, History: true}, streams)
			} else {
				if err := Add(t.Context(), AddOptions{Common: Common{Dir: path}, Sources: []string{s.URL("/feed")}, Look: LookNowhere, NoFetch: true}, streams); err != nil {
					t.Fatal(err)
				}
				err = History(t.Context(), UpdateOptions{Common: Common{Dir: path}, Feeds: []string{hash}}, streams)
			}
			streams.Report.Print(err)
			d, err := lektordir.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			there := len(inNew(t, path, hash))
			// The first batch fits, the second does not.
			if there < 1000 || there >= n*each {
				t.Fatalf("%s: the disk is of the wrong size: %d entries", name, there)
			}
			said := stderr.String()
			if streams.Report.Errors() == 0 || !strings.Contains(said, "no space left on device") {
				t.Errorf("%s: %d errors:\n%s", name, streams.Report.Errors(), said)
			}
			// add counts the entries of the document separately.
			counted := "; " + humanize.Count(there-2, "entry") + "\n"
			if name == "history" {
				counted = "; " + humanize.Count(there, "new entry") + ";"
			}
			if !strings.Contains(said, counted) {
				t.Errorf("%s: it does not say %q:\n%s", name, counted, said)
			}
			if got := history.Of(d, hash).Summary(); got != "incomplete" {
				t.Errorf("%s: the feed is %q", name, got)
			}
			if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT, "nr_inodes=100000"); err != nil {
				t.Fatal(err)
			}
			r, l := newRunner(t, d)
			r.Recover(t.Context())
			update(t, r, Selection{Feeds: []string{hash}})
			if got := inNew(t, path, hash); len(got) != n*each+2 || l.String() != "" || history.Of(d, hash).Summary() != fmt.Sprint("archived ", n) {
				t.Errorf("%s: with room again: %d entries, %s", name, len(got), l)
			}
			r.Close()
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT, "nr_inodes=6900"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// inNew returns the names of the entries of a feed in new/.
func inNew(t *testing.T, dir, hash string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(dir, "new", hash))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// TestUpdateFullDisk: if the disk gets full in the middle of a run, update fails, and counts the
// entries that are in new/. When there is space again, the next update delivers the rest, each
// entry once.
func TestUpdateFullDisk(t *testing.T) {
	onDisk(t, "nr_inodes=1500", func(dir string) {
		s, err := server.New("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const feeds, each = 60, 5
		path := filepath.Join(dir, "feeds")
		run := func(f func(*cmdline.Streams) error) (errors int, said string) {
			var stderr bytes.Buffer
			streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &bytes.Buffer{}, &stderr)
			streams.Report.Print(f(streams))
			return streams.Report.Errors(), stderr.String()
		}
		var urls []string
		for i := range feeds {
			name := fmt.Sprint("/", i)
			s.Handle(name, server.Doc("", server.RSS("Feed", i*each, each)))
			urls = append(urls, s.URL(name))
		}
		if n, said := run(func(streams *cmdline.Streams) error {
			return Add(t.Context(), AddOptions{Common: Common{Dir: path}, Sources: urls, Look: LookNowhere, NoFetch: true}, streams)
		}); n > 0 {
			t.Fatal(said)
		}
		update := func() (int, string, int) {
			n, said := run(func(streams *cmdline.Streams) error {
				return Update(t.Context(), UpdateOptions{Common: Common{Dir: path}}, streams)
			})
			there := 0
			for _, u := range urls {
				// A feed without delivered entries has no directory.
				entries, err := os.ReadDir(filepath.Join(path, "new", lektordir.FeedHash(u)))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				there += len(entries)
			}
			return n, said, there
		}
		n, said, there := update()
		if there == 0 || there >= feeds*each {
			t.Fatalf("the disk is of the wrong size: %d entries\n%s", there, said)
		}
		if n == 0 || !strings.Contains(said, "no space left on device") || !strings.Contains(said, "; "+humanize.Count(there, "new entry")+"\n") {
			t.Errorf("%d errors, %d entries are there:\n%s", n, there, said)
		}
		if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT, "nr_inodes=100000"); err != nil {
			t.Fatal(err)
		}
		before := there
		if n, said, there = update(); n > 0 || there != feeds*each || !strings.Contains(said, "; "+humanize.Count(there-before, "new entry")+"\n") {
			t.Errorf("with room: %d errors, %d entries, %d before:\n%s", n, there, before, said)
		}
	})
}

// TestAddFullDisk: on a full disk, add says of which feed it speaks, and whether it is subscribed.
func TestAddFullDisk(t *testing.T) {
	onDisk(t, "nr_inodes=100", func(dir string) {
		feed := filepath.Join(dir, "feed.xml")
		if err := os.WriteFile(feed, []byte(server.RSS("Feed", 0, 60)), 0o666); err != nil {
			t.Fatal(err)
		}
		seen := map[bool]bool{}
		for inodes := 10; inodes < 100; inodes += 2 {
			path := filepath.Join(dir, fmt.Sprint("l", inodes))
			if _, err := lektordir.Create(path, nil); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT, fmt.Sprint("nr_inodes=", inodes)); err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &bytes.Buffer{}, &stderr)
			err := Add(t.Context(), AddOptions{Common: Common{Dir: path}, Sources: []string{feed}}, streams)
			streams.Report.Print(err)
			d, err := lektordir.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			subscribed, said := feedfiles.Subscribed(d, lektordir.FeedHash("file://"+feed)), stderr.String()
			// The locks are made before a feed is known.
			if about := strings.Contains(said, feed); about && subscribed != strings.Contains(said, "subscribed all the same") || about && !subscribed && !strings.Contains(said, "not subscribed") {
				t.Errorf("%d inodes, subscribed %t: %s", inodes, subscribed, said)
			} else if about {
				seen[subscribed] = true
			}
			if err := errors.Join(syscall.Mount("none", dir, "", syscall.MS_REMOUNT, "nr_inodes=1000"), os.RemoveAll(path)); err != nil {
				t.Fatal(err)
			}
		}
		if !seen[true] || !seen[false] {
			t.Errorf("the disk was never of the right size: %v", seen)
		}
	})
}
