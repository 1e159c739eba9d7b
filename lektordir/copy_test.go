package lektordir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// overlaid makes renames fail as in the lower layer of an overlay, except those of copies. It
// returns the number of failed renames.
func overlaid(d *Dir) *atomic.Int64 {
	var failed atomic.Int64
	var upper sync.Map // inodes of copies
	d.fs.Rename = func(from, to string) error {
		fi, err := os.Lstat(from)
		if err != nil {
			return err
		}
		inode := fi.Sys().(*syscall.Stat_t).Ino
		if strings.Contains(from, dirfs.Copying) {
			upper.Store(inode, true)
		}
		if _, ok := upper.Load(inode); !ok {
			if _, err := os.Lstat(to); err == nil {
				return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.EEXIST}
			}
			failed.Add(1)
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.EXDEV}
		}
		return dirfs.RenameNoReplace(from, to)
	}
	return &failed
}

// whole returns the files of an entry, by paths relative to its directory.
func whole(t *testing.T, d *Dir, r Ref) []string {
	t.Helper()
	all := snapshot(t, d.abs(r))
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], d.abs(r))
	}
	return all
}

// movable marks and removes entries that can only be moved by a copy.
func movable(t *testing.T, d *Dir, refs []Ref) {
	t.Helper()
	before := whole(t, d, refs[0])
	marked, err := d.SetFlags(refs[0], "S", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := whole(t, d, marked); !slices.Equal(got, before) {
		t.Errorf("the copy is %s\nwant %s", got, before)
	}
	if _, err := d.SetFlags(refs[0], "F", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an entry that was taken: %v", err)
	}
	if marked, err = d.SetFlags(marked, "F", ""); err != nil || marked.Flags() != "FS" {
		t.Error(marked, err)
	}
	if err := d.Remove(refs[1]); err != nil {
		t.Error(err)
	}
	if got := paths(list(t, d, ListOptions{AllVersions: true})); !slices.Equal(got, []string{marked.Path(), refs[2].Path()}) {
		t.Errorf("%q", got)
	}
	if left := tree(t, d, "tmp/"+feedHash); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestMoveByCopy(t *testing.T) {
	d, _ := newDir(t)
	refs := deliver(t, d, sample("a", "A"), sample("b", "B"), sample("c", "C"))
	failed := overlaid(d)
	movable(t, d, refs)
	if failed.Load() < 2 {
		t.Errorf("%d renames failed", failed.Load())
	}
}

// A copy of an entry whose name has no time keeps the time of delivery.
func TestMoveByCopyKeepsTime(t *testing.T) {
	d, _ := newDir(t)
	path := d.Join("new", feedHash, "notime")
	if err := os.MkdirAll(path, 0o777); err != nil {
		t.Fatal(err)
	}
	then := time.Unix(1_500_000_000, 0).UTC()
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	overlaid(d)
	ref := list(t, d, ListOptions{})[0]
	if _, err := d.SetFlags(ref, "S", ""); err != nil {
		t.Fatal(err)
	}
	if now := list(t, d, ListOptions{})[0]; now.Place != Cur || !now.Delivered().Equal(then) {
		t.Error(now.Path(), now.Delivered())
	}
}

// If several viewers mark one entry, one of them moves it, and the entry exists once.
func TestMoveByCopyAtOnce(t *testing.T) {
	d, _ := newDir(t)
	refs := deliver(t, d, sample("a", "A"))
	overlaid(d)
	var wg sync.WaitGroup
	var done atomic.Int64
	for _, flag := range []string{"S", "F", "T", "R", "P", "D"} {
		wg.Go(func() {
			switch _, err := d.SetFlags(refs[0], flag, ""); {
			case err == nil:
				done.Add(1)
			case !errors.Is(err, fs.ErrNotExist):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(tree(t, d, "new/"+feedHash)) + len(tree(t, d, "tmp/"+feedHash)); n != 0 || done.Load() != 1 {
		t.Errorf("%d marked it; %d files are left", done.Load(), n)
	}
	if got := list(t, d, ListOptions{}); len(got) != 1 {
		t.Errorf("%q", paths(got))
	}
}

// If a move by a copy is killed at any step, the entry exists once and whole after recovery.
func TestMoveByCopyKilled(t *testing.T) {
	type state struct{ copied, record, placed, half bool }
	for _, s := range []state{
		{copied: true},
		{copied: true, record: true},
		{record: true, placed: true},
		{record: true, placed: true, half: true},
	} {
		for _, later := range []string{"", "marked", "removed"} {
			if later != "" && !s.placed {
				continue
			}
			d, _ := newDir(t)
			ref := deliver(t, d, sample("a", "A"))[0]
			before := whole(t, d, ref)
			want := ref
			tmp := d.Join("tmp", feedHash, ref.Unique)
			to, _ := ref.WithFlags("S", "")
			copyTo := func(path string) {
				if err := os.CopyFS(path, os.DirFS(d.abs(ref))); err != nil {
					t.Fatal(err)
				}
			}
			if s.copied {
				copyTo(tmp + dirfs.Copying + "1")
			}
			if s.placed {
				copyTo(d.abs(to))
				want = to
			}
			if s.record {
				write(t, tmp+dirfs.Moving+"1", ref.Path())
			}
			if s.half {
				os.Remove(d.abs(ref) + "/title")
			}
			switch later {
			case "marked":
				var err error
				if want, err = d.SetFlags(want, "F", ""); err != nil {
					t.Fatal(err)
				}
			case "removed":
				if err := d.Remove(want); err != nil {
					t.Fatal(err)
				}
			}
			if err := writer(t, d).Recover(ctx); err != nil {
				t.Fatal(err)
			}
			got := append(tree(t, d, "new/"+feedHash), tree(t, d, "cur/"+feedHash)...)
			if later == "removed" {
				if len(got) != 0 {
					t.Errorf("%+v %s: %q", s, later, got)
				}
			} else if refs := list(t, d, ListOptions{}); len(refs) != 1 || refs[0] != want || !slices.Equal(whole(t, d, want), before) {
				t.Errorf("%+v %s: %q", s, later, paths(refs))
			} else if slices.ContainsFunc(got, func(p string) bool { return !strings.HasPrefix(p, want.Name()) }) {
				t.Errorf("%+v %s: twice: %q", s, later, got)
			}
			left := tree(t, d, "tmp/"+feedHash)
			if s.record && len(left) != 0 {
				t.Errorf("%+v %s: left: %q", s, later, left)
			}
		}
	}
}

// A record of a move that is incomplete, or by another program, removes nothing.
func TestRecordOfMove(t *testing.T) {
	d, _ := newDir(t)
	refs := deliver(t, d, sample("a", "A"), sample("b", "B"))
	outside := filepath.Join(t.TempDir(), "x")
	write(t, outside, "x")
	for _, text := range []string{"", "new", "new/" + feedHash, "new/" + feedHash + "/", outside, refs[1].Path(), refs[0].Path() + "/..", "new/" + feedHash + "/../../cur", "src/" + feedHash + "/" + refs[0].Unique} {
		write(t, d.Join("tmp", feedHash, refs[0].Unique+dirfs.Moving+"1"), text)
		if err := writer(t, d).Recover(ctx); err != nil {
			t.Fatal(err)
		}
		if got := list(t, d, ListOptions{}); len(got) != 2 || read(t, outside) != "x" {
			t.Errorf("%q: %q", text, paths(got))
		}
	}
}
