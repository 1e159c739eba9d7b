package sharer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// items returns the items of a machine's set.
func (m *machine) items() []*feedsync.Item {
	m.t.Helper()
	r, err := m.common().begin(m.streams())
	if err != nil {
		m.t.Fatal(err)
	}
	defer r.end()
	out := r.rep.set.subs.Items()
	for _, k := range r.rep.set.marks.sorted(nil) {
		out = append(out, k.item())
	}
	return out
}

// set returns the items of a machine's set, without times: if a killed run is repeated, its
// edits have later times.
func (m *machine) set() string {
	m.t.Helper()
	var lines []string
	for _, it := range m.items() {
		lines = append(lines, fmt.Sprintf("%s v%d %v %v %s", it.ID, it.Version, it.Deleted, it.Conflict, feedsync.Canonical(it.Content)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// If a sync is killed before any of its changes of files, the next sync ends in the same
// state and set. No document is ever partly written.
func TestKilled(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	for _, m := range all {
		for f := range 4 {
			m.subscribe(f, "Folder")
			m.deliver(f, 1)
			m.deliver(f, 2)
		}
	}
	rounds(2, a, b)
	// Edits of all kinds on both machines.
	a.subscribe(7, "New")
	os.Remove(filepath.Join(a.Path, "src", testdir.Hash(feedURL(0)), "etc/fetch/url"))
	a.write("src/"+testdir.Hash(feedURL(1))+"/etc/view/alias", "Alias\n")
	a.mark(2, 1, "S", "")
	a.mark(2, 2, "F", "")
	a.sync()
	b.mark(3, 1, "FS", "")
	b.write("src/"+testdir.Hash(feedURL(2))+"/etc/categories", "Elsewhere\n")
	b.subscribe(8)

	snapshot := t.TempDir()
	copyDir(t, b.Path, snapshot+"/dir")
	copyDir(t, target, snapshot+"/sync")
	b.sync()
	state, set := b.state(), b.set()
	if !strings.Contains(state, feedURL(7)) || strings.Contains(state, feedURL(0)) {
		t.Fatalf("state: %s", state)
	}
	// Every fifth change is tried, and with LEKTOR_SHARE_RUNS every one.
	stride := 5
	if os.Getenv("LEKTOR_SHARE_RUNS") != "" {
		stride = 1
	}
	killed := false
	for n := 0; ; n += stride {
		copyDir(t, snapshot+"/dir", b.Path)
		copyDir(t, snapshot+"/sync", target)
		c := b.common()
		count := 0
		c.step = func() {
			if count++; count > n {
				panic("killed")
			}
		}
		killed = func() (killed bool) {
			defer func() { killed = recover() != nil }()
			if err := Sync(t.Context(), SyncOptions{Common: c}, b.streams()); err != nil {
				t.Errorf("change %d: %v", n, err)
			}
			return false
		}()
		documents, _ := filepath.Glob(filepath.Join(target, "*/*"))
		more, _ := filepath.Glob(filepath.Join(b.Path, shareDir, "*.[or]*"))
		for _, path := range append(documents, more...) {
			data, err := os.ReadFile(path)
			if err == nil {
				_, err = feedsync.Parse(data)
			}
			if err != nil {
				t.Errorf("change %d: %s: %v", n, path, err)
			}
		}
		b.sync()
		if s := b.state(); s != state {
			t.Errorf("killed at change %d and synced again, the state is\n%s\nwant\n%s", n, s, state)
		}
		if s := b.set(); s != set {
			t.Errorf("killed at change %d and synced again, the set is\n%s\nwant\n%s", n, s, set)
		}
		if !killed {
			if n < 10 {
				t.Errorf("only %d changes", n)
			}
			break
		}
	}
	// The other machine has the same state.
	rounds(1, a)
	same(t, a, b)
}

// unsubscribe ends a subscription, as a script would.
func (m *machine) unsubscribe(n int) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.Path, "src", testdir.Hash(feedURL(n)), "etc/fetch/url")); err != nil {
		m.t.Fatal(err)
	}
}

// The next run removes temporary files of a killed run, here and in its own replicated
// directory. Other files stay, for example those of the replicating program.
func TestSweep(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	a.subscribe(1)
	rounds(2, a, b)
	endpoints, err := filepath.Glob(filepath.Join(target, "*"))
	if err != nil || len(endpoints) != 2 {
		t.Fatalf("%q, %v", endpoints, err)
	}
	names := []string{".state-all.rss1234567890123456", ".published1234567890123456789", ".syncthing.state.rss.tmp", "state.rss~", "state.sync-conflict-20260101-000000-ABCDEFG.rss", "notes.txt"}
	for _, dir := range append(endpoints, filepath.Join(a.Path, shareDir)) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("<rss"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := a.state()
	a.sync()
	if s := a.state(); s != before || strings.Contains(a.err.String(), "state") {
		t.Errorf("%s\n%s", s, &a.err)
	}
	for _, dir := range endpoints {
		mine := strings.HasPrefix(filepath.Base(dir), "a-")
		for n, name := range names {
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) == (mine && n < 2) {
				t.Errorf("%s in %s: %v", name, dir, err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(a.Path, shareDir, ".[sp]*[0-9]")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// A peer whose directory cannot be read is named in an error, and the other peers are used.
func TestUnreadablePeer(t *testing.T) {
	all, target := machines(t, "a b c")
	a, b, c := all[0], all[1], all[2]
	subscribeAll(1, 2, all...)
	rounds(2, all...)
	b.mark(1, 0, "F", "")
	c.mark(1, 1, "F", "")
	rounds(1, c, b)
	path := filepath.Join(target, b.endpoint())
	if err := errors.Join(os.Rename(path, path+"~"), os.Symlink(path, path)); err != nil {
		t.Fatal(err)
	}
	status, text := a.trySync()
	if status != 1 || !strings.Contains(text, b.endpoint()) || a.has(1, 0, 'F') || !a.has(1, 1, 'F') {
		t.Errorf("%d, %s", status, text)
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+"~", path)); err != nil {
		t.Fatal(err)
	}
	rounds(1, a)
	if !a.has(1, 0, 'F') {
		t.Error("the peer's edit is missing")
	}
}

// If a sync cannot save its set, the next one reads the peers again. A sync that cannot save
// the record of its publications fails, too.
func TestNotSavedIsNotRead(t *testing.T) {
	for _, name := range []string{storeFile, publishedFile} {
		t.Run(name, func(t *testing.T) {
			all, _ := machines(t, "a b")
			a, b := all[0], all[1]
			subscribeAll(1, 2, all...)
			rounds(2, a, b)
			a.mark(1, 0, "F", "")
			a.sync()
			b.mark(1, 1, "F", "")
			path := filepath.Join(b.Path, shareDir, name)
			c := b.common()
			first := true
			c.step = func() {
				if !first {
					return
				}
				first = false
				if err := errors.Join(os.Rename(path, path+"~"), os.MkdirAll(path+"/x", 0o777)); err != nil {
					t.Fatal(err)
				}
			}
			if err := Sync(t.Context(), SyncOptions{Common: c}, b.streams()); err == nil {
				t.Error("it succeeded")
			}
			if err := errors.Join(os.RemoveAll(path), os.Rename(path+"~", path)); err != nil {
				t.Fatal(err)
			}
			rounds(1, b, a)
			same(t, a, b)
			if !b.has(1, 0, 'F') || !a.has(1, 1, 'F') {
				t.Errorf("%s", b.state())
			}
		})
	}
}
