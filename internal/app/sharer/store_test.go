package sharer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/lektordir"
)

// Actions since the last commit count until the machine restarts: a power cut may have
// undone their renames. An action that a kill interrupted counts if its rename happened.
func TestActionsSinceTheLastCommit(t *testing.T) {
	const feed = "39875aee1d270e42dd987cdfd5cad33c40fa37b1"
	for _, c := range []struct {
		name       string
		end        error  // result of the action; errKilled if a kill interrupted it
		boot, path string // boot id and name of the file afterwards
		want       string
	}{
		{"done", nil, "one", "a", "F"},
		{"done, and the power was cut", nil, "two", "a", ""},
		{"failed", errors.New("failed"), "one", "a", ""},
		{"killed before the rename", errKilled, "one", "a", ""},
		{"killed after the rename", errKilled, "one", "b", "F"},
		{"killed after the rename, and the power was cut", errKilled, "two", "b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			open := func(boot string) *run {
				d, err := lektordir.Create(dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				st := &store{path: filepath.Join(dir, storeFile), d: d, boot: boot, step: func() {}}
				r := &run{rep: &replica{set: newSet("me", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), base: &baseline{feeds: map[string]*baseFeed{}}, store: st}}
				if _, err := st.load(r.rep.set, r.rep.base); err != nil {
					t.Fatal(err)
				}
				return r
			}
			r := open("one")
			r.rep.base.setEntry(feed, "0000000000000001", baseEntry{})
			if err := r.rep.save(false); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "a")
			if err := writeFile(path, emptyDocument); err != nil {
				t.Fatal(err)
			}
			lines := baseEntry{flags: "F"}.appendTo([]byte("of "+feed+"\n"), "0000000000000001")
			func() {
				defer func() { _ = recover() }()
				if err := r.rep.store.do("a", lines, func() error {
					if c.path != "a" {
						rename(t, path, filepath.Join(dir, c.path))
					}
					if c.end == errKilled {
						panic("killed")
					}
					return c.end
				}); err != c.end {
					t.Error(err)
				}
				if err := r.rep.store.write(nil); err != nil {
					t.Error(err)
				}
			}()
			r.rep.store.close()
			// Three later runs, of which the second commits, read the same baseline.
			for n := range 3 {
				r := open(c.boot)
				if got := r.rep.base.entries(feed)["0000000000000001"].flags; got != c.want {
					t.Errorf("run %d: the baseline has %q, want %q", n, got, c.want)
				}
				if n == 1 {
					if err := r.rep.save(false); err != nil {
						t.Fatal(err)
					}
				}
				r.rep.store.close()
			}
		})
	}
}

// An entry whose name has no time, and that a killed action has not moved, is not taken for one that
// the user has moved back.
func TestKilledBeforeMove(t *testing.T) {
	const feed = "39875aee1d270e42dd987cdfd5cad33c40fa37b1"
	dir := t.TempDir()
	d, err := lektordir.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	const path = "cur/" + feed + "/notime;2,"
	if err := os.MkdirAll(filepath.Join(dir, path), 0o777); err != nil {
		t.Fatal(err)
	}
	p := &actionBlock{path: path, stamp: look(d.Join(path)).String(), lines: baseEntry{flags: "F"}.appendTo([]byte("of "+feed+"\n"), "0000000000000001")}
	if (&decoder{store: &store{d: d}}).happened(p) {
		t.Error("it counts as done")
	}
}

var errKilled = errors.New("killed")

// A damaged store with a line or a block that is too long is refused, with its path and without reading
// all of it into memory. A store with the longest line that a peer can cause is read.
func TestLongLines(t *testing.T) {
	for _, c := range []struct {
		name, after, want string // after follows the valid store
	}{
		{"a line", strings.Repeat("x", maxTorn+100), "replica: a block is longer than the rest"},
		{"zeros", strings.Repeat("\x00", maxTorn+100), "replica: a block is longer than the rest"},
		{"a block", strings.Repeat("gone 0000000000000001\n", maxTorn/20), "replica: a block is longer than the rest"},
		{"a torn block", strings.Repeat("x", 5000), ""},
		{"nothing", "", ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, storeFile)
		valid := append([]byte(storeHeader+"\n"), appendBlock(nil, []byte("commit 1\n"))...)
		if err := os.WriteFile(path, append(valid, c.after...), 0o600); err != nil {
			t.Fatal(err)
		}
		st := &store{path: path, boot: "one", step: func() {}}
		_, err := st.load(newSet("me", time.Now()), &baseline{feeds: map[string]*baseFeed{}})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	long := feedsync.MaxContent
	longest := 2 * (long + feedsync.MaxConflicts*(2*long+8<<10)) // each byte may be escaped
	if longest > maxTorn {
		t.Errorf("a line may have %d bytes, and a block that is cut off %d", longest, maxTorn)
	}
}

// A mark whose line is invalid, though its checksum is right, is found when it is used. It counts as the
// oldest version: it can be written, and a peer's version replaces it.
func TestInvalidMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), storeFile)
	id := stateID("39875aee1d270e42dd987cdfd5cad33c40fa37b1", "0000000000000001", 'S')
	lines := "mark " + id + "\t\tmany\t1767225600/x\t\t<item><title>A</title></item>\ncomplete Thu, 01 Jan 2026 00:00:00 GMT\ncommit 1\n"
	if err := os.WriteFile(path, appendBlock([]byte(storeHeader+"\n"), []byte(lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSet("me", time.Now())
	if _, err := (&store{path: path}).load(s, &baseline{feeds: map[string]*baseFeed{}}); err != nil {
		t.Fatal(err)
	}
	it := s.marks.item(id)
	if it == nil || it.ID != id || it.Version != 1 || len(it.Append(nil)) == 0 {
		t.Fatalf("it is %+v", it)
	}
	if again, ok := readMark(appendMark(nil, it)); !ok || again.ID != id {
		t.Errorf("written and read again, it is %+v", again)
	}
	theirs, err := feedsync.Create(id, time.Unix(1767225600, 0), "them")
	if err != nil {
		t.Fatal(err)
	}
	theirs.Content = []byte("<item><title>B</title></item>")
	if s.mergeMark(theirs); s.marks.item(id).Head().By != "them" {
		t.Errorf("after the merge, it is %+v", s.marks.item(id))
	}
}
