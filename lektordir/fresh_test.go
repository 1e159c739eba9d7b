package lektordir

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// A shared file system may cache a name after another machine has moved the file. GlusterFS then
// returns ESTALE, or EEXIST for the new name.
func TestMovedByAnotherMachine(t *testing.T) {
	d, _ := newDir(t)
	d.fs.Share()
	refs := deliver(t, d, sample("a", "A"), sample("b", "B"), sample("c", "C"))

	calls := 0
	d.fs.Rename = func(from, to string) error {
		if calls++; calls <= 3 {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.ESTALE}
		}
		return dirfs.RenameNoReplace(from, to)
	}
	if to, err := d.SetFlags(refs[0], "S", ""); err != nil || calls < 4 || to.Flags() != "S" {
		t.Errorf("%v, %v after %d calls", to, err, calls)
	}

	exists := func(from, to string) error {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.EEXIST}
	}
	d.fs.Rename = func(from, to string) error {
		if err := dirfs.RenameNoReplace(from, to); err != nil { // the other machine's
			t.Error(err)
		}
		return exists(from, to)
	}
	if _, err := d.SetFlags(refs[1], "S", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("moved by another machine: %v", err)
	}
	d.fs.Rename = exists
	if _, err := d.SetFlags(refs[2], "S", ""); !errors.Is(err, fs.ErrExist) {
		t.Errorf("in both places: %v", err)
	}
	if got := list(t, d, ListOptions{}); len(got) != 3 || len(tree(t, d, "new/"+feedHash)) == 0 {
		t.Errorf("%q", paths(got))
	}
}
