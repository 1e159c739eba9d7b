package lektordir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inode returns the inode of the file at a path, and the number of its hard links.
func inode(t *testing.T, path string) (ino, names uint64) {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	return st.Ino, uint64(st.Nlink)
}

// by returns an entry by an author.
func by(id, author string) version {
	v := sample(id, "content of "+id)
	v.Entry.Author, v.Entry.Type = author, "text/html"
	return v
}

// links returns the number of hard links that a shared link feed has: 1 if entries are written
// concurrently, because each has its own then.
func links(t *testing.T, d *Dir, shared uint64) uint64 {
	t.Helper()
	s, err := d.fs.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !s.Whole() {
		return 1
	}
	return shared
}

// wantAuthor checks the author and the type of an entry.
func wantAuthor(t *testing.T, d *Dir, r Ref, author string) {
	t.Helper()
	if got := read(t, d.abs(r)+"/author") + read(t, d.abs(r)+"/type"); got != author+"\ntext/html\n" {
		t.Errorf("%s: %q", r.Path(), got)
	}
}

// Entries with the same author or type share that file as a hard link, in one transaction and in
// the next, even if a viewer has moved the first entry. Other files are not shared.
func TestHardlinks(t *testing.T) {
	d, _ := newDir(t)
	refs := deliver(t, d, by("1", "Ann"), by("2", "Ann"), by("3", "Bob"), by("4", "Ann"))
	first, _ := inode(t, d.abs(refs[0])+"/author")
	for i, same := range []bool{true, true, false, true} {
		got, names := inode(t, d.abs(refs[i])+"/author")
		if (got == first) != same || same && names != 3 {
			t.Errorf("entry %d: author is file %d with %d names", i, got, names)
		}
		for name, want := range map[string]uint64{"type": 4, "feed": links(t, d, 4)} {
			if _, names := inode(t, d.abs(refs[i])+"/"+name); names != want {
				t.Errorf("entry %d: %s has %d names", i, name, names)
			}
		}
		for _, other := range []string{"title", "id", "content"} {
			if _, names := inode(t, d.abs(refs[i])+"/"+other); names != 1 {
				t.Errorf("entry %d: %s has %d names", i, other, names)
			}
		}
	}
	wantAuthor(t, d, refs[2], "Bob")
	moved, err := d.SetFlags(refs[3], "S", "")
	if err != nil {
		t.Fatal(err)
	}
	last := deliver(t, d, by("5", "Ann"))[0]
	if got, names := inode(t, d.abs(last)+"/author"); got != first || names != 4 {
		t.Errorf("the next delivery: author is file %d with %d names", got, names)
	}
	// If the last entries are gone, the one before them is used.
	for _, r := range []Ref{last, moved} {
		if err := d.Remove(r); err != nil {
			t.Fatal(err)
		}
	}
	last = deliver(t, d, by("6", "Bob"))[0]
	bob, _ := inode(t, d.abs(refs[2])+"/author")
	if got, _ := inode(t, d.abs(last)+"/author"); got != bob {
		t.Error("the entry before the removed ones was not found")
	}
	for _, r := range refs[:2] {
		wantAuthor(t, d, r, "Ann")
	}
	if ps, err := d.Check(ctx, false); err != nil || len(ps) > 0 {
		t.Error(ps, err)
	}
}

// A file that cannot be linked is written. If the file system has no hard links, linking is tried
// only once.
func TestHardlinksWithoutLinks(t *testing.T) {
	for _, errno := range []error{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EXDEV, unix.EACCES, unix.EMLINK, unix.ENOENT, unix.ENOSPC} {
		d, _ := newDir(t)
		calls := 0
		d.fs.Link = func(int, string, int, string) error { calls++; return errno }
		refs := deliver(t, d, by("1", "Ann"), by("2", "Ann"), by("3", "Ann"))
		for _, r := range refs {
			wantAuthor(t, d, r, "Ann")
			if _, names := inode(t, d.abs(r)+"/author"); names != 1 {
				t.Errorf("%v: %d names", errno, names)
			}
		}
		again := errors.Is(errno, unix.EMLINK) || errors.Is(errno, unix.ENOENT) || errors.Is(errno, unix.ENOSPC)
		if calls == 0 || !again && calls != 1 {
			t.Errorf("%v: %d calls", errno, calls)
		}
	}
}

// Only regular files with the same owner, mode and data are linked.
func TestHardlinksOfOthers(t *testing.T) {
	for what, plant := range map[string]func(t *testing.T, d *Dir, entry string){
		"a link": func(t *testing.T, d *Dir, entry string) {
			write(t, d.Join("outside"), "Ann\n")
			os.Remove(entry + "/author")
			if err := os.Symlink(d.Join("outside"), entry+"/author"); err != nil {
				t.Fatal(err)
			}
		},
		"a pipe": func(t *testing.T, d *Dir, entry string) {
			os.Remove(entry + "/author")
			if err := unix.Mkfifo(entry+"/author", 0o666); err != nil {
				t.Fatal(err)
			}
		},
		"a directory": func(t *testing.T, d *Dir, entry string) {
			os.Remove(entry + "/author")
			write(t, entry+"/author/x", "Ann\n")
		},
		"a private file": func(t *testing.T, d *Dir, entry string) {
			if err := os.Chmod(entry+"/author", 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"another author": func(t *testing.T, d *Dir, entry string) { write(t, entry+"/author", "Bob\n") },
		"half of it":     func(t *testing.T, d *Dir, entry string) { write(t, entry+"/author", "Ann") },
		"nothing":        func(t *testing.T, d *Dir, entry string) { os.Truncate(entry+"/author", 0) },
		"a link to an entry": func(t *testing.T, d *Dir, entry string) {
			if err := os.Rename(entry, d.Join("outside")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(d.Join("outside"), entry); err != nil {
				t.Fatal(err)
			}
		},
	} {
		d, _ := newDir(t)
		plant(t, d, d.abs(deliver(t, d, by("1", "Ann"))[0]))
		r := deliver(t, d, by("2", "Ann"))[0]
		wantAuthor(t, d, r, "Ann")
		if fi, err := os.Lstat(d.abs(r) + "/author"); err != nil || !fi.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", what, fi, err)
		}
		if _, names := inode(t, d.abs(r)+"/author"); names != 1 {
			t.Errorf("%s: it has %d names", what, names)
		}
	}
}

// A file that is changed or replaced between stat and link is written instead of linked.
func TestHardlinksExchanged(t *testing.T) {
	for what, exchange := range map[string]func(path string) error{
		"written to": func(path string) error { return os.WriteFile(path, []byte("Bob and more\n"), 0o666) },
		"replaced": func(path string) error {
			if err := os.WriteFile(path+"2", []byte("Bob\n"), 0o666); err != nil {
				return err
			}
			return os.Rename(path+"2", path)
		},
		"a link": func(path string) error { os.Remove(path); return os.Symlink("/etc/passwd", path) },
		"gone":   os.Remove,
	} {
		d, _ := newDir(t)
		first := deliver(t, d, by("1", "Ann"))[0]
		link := d.fs.Link
		d.fs.Link = func(fromDir int, from string, toDir int, to string) error {
			if from == "author" {
				if err := exchange(d.abs(first) + "/author"); err != nil {
					return err
				}
			}
			return link(fromDir, from, toDir, to)
		}
		r := deliver(t, d, by("2", "Ann"))[0]
		wantAuthor(t, d, r, "Ann")
		if fi, err := os.Lstat(d.abs(r) + "/author"); err != nil || !fi.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", what, fi, err)
		}
	}
}

// If a file has as many hard links as the file system allows (65,000 on ext4), the next entry gets
// a new file, which later entries share.
func TestHardlinksMany(t *testing.T) {
	d, _ := newDir(t)
	first := deliver(t, d, by("1", "Ann"))[0]
	author := d.abs(first) + "/author"
	aside := filepath.Join(t.TempDir(), "names")
	if err := os.Mkdir(aside, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		err := os.Link(author, fmt.Sprintf("%s/%d", aside, i))
		if errors.Is(err, unix.EMLINK) {
			break
		}
		if err != nil || i > 70000 {
			t.Skip("the file system allows more than 70,000 hard links:", err)
		}
	}
	refs := deliver(t, d, by("2", "Ann"), by("3", "Ann"))
	second, names := inode(t, d.abs(refs[0])+"/author")
	if old, _ := inode(t, author); second == old || names != 2 {
		t.Errorf("author is file %d with %d names", second, names)
	}
	if third, _ := inode(t, d.abs(refs[1])+"/author"); third != second {
		t.Error("the third entry does not share the second one's file")
	}
	for _, r := range refs {
		wantAuthor(t, d, r, "Ann")
	}
}

// The symbolic link feed is shared as a hard link, too, if it leads to the feed and the file
// system allows hard links to symbolic links. Author and type are shared in any case.
func TestHardlinksOfLinks(t *testing.T) {
	leads := func(d *Dir, r Ref) string {
		to, _ := os.Readlink(d.abs(r) + "/feed")
		return to
	}
	elsewhere := func(t *testing.T, entry string) {
		os.Remove(entry + "/feed")
		if err := os.Symlink("/etc", entry+"/feed"); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		before func(t *testing.T, entry string)
		link   func(t *testing.T, entry, to string) error // nil to go on
		names  uint64
	}{
		"usual":           {nil, nil, 3},
		"leads elsewhere": {elsewhere, nil, 2},
		"none":            {func(_ *testing.T, entry string) { os.Remove(entry + "/feed") }, nil, 2},
		"a directory":     {func(t *testing.T, entry string) { os.Remove(entry + "/feed"); write(t, entry+"/feed/id", "x") }, nil, 2},
		"exchanged":       {nil, func(t *testing.T, entry, _ string) error { elsewhere(t, entry); return nil }, 2},
		"files alone":     {nil, func(*testing.T, string, string) error { return unix.EPERM }, 1},
		"too many links":  {nil, func(*testing.T, string, string) error { return unix.EMLINK }, 1},
	} {
		d, _ := newDir(t)
		first := deliver(t, d, by("1", "Ann"))[0]
		if c.before != nil {
			c.before(t, d.abs(first))
		}
		link := d.fs.Link
		d.fs.Link = func(fromDir int, from string, toDir int, to string) error {
			if from == "feed" || strings.HasSuffix(from, "/feed") {
				if c.link != nil {
					if err := c.link(t, d.abs(first), to); err != nil {
						return err
					}
				}
			}
			return link(fromDir, from, toDir, to)
		}
		refs := deliver(t, d, by("2", "Ann"), by("3", "Ann"))
		for _, r := range refs {
			if got := leads(d, r); got != "../../../src/"+feedHash {
				t.Errorf("%s: feed leads to %q", what, got)
			}
			if _, names := inode(t, d.abs(r)+"/feed"); names != links(t, d, c.names) {
				t.Errorf("%s: feed has %d names", what, names)
			}
			if _, names := inode(t, d.abs(r)+"/author"); names != 3 {
				t.Errorf("%s: author has %d names", what, names)
			}
		}
	}
}
