package lektordir

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// Entries in the lower layer of an overlay are moved by a copy, as in TestMoveByCopy.
func TestOverlay(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount an overlay")
	}
	lower, c := newDir(t)
	refs := deliver(t, lower, sample("a", "A"), sample("b", "B"), sample("c", "C"))
	top := t.TempDir()
	// Not every file system can be the upper layer; tmpfs can.
	if err := unix.Mount("lektor", top, "tmpfs", 0, ""); err != nil {
		t.Skipf("no tmpfs can be mounted: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(top, unix.MNT_DETACH) })
	for _, name := range []string{"upper", "work", "all"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	all := filepath.Join(top, "all")
	err := unix.Mount("overlay", all, "overlay", 0, "redirect_dir=off,lowerdir="+lower.Path()+",upperdir="+top+"/upper,workdir="+top+"/work")
	if err != nil {
		t.Skipf("no overlay can be mounted: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(all, unix.MNT_DETACH) })
	d, err := Open(all, &Options{Now: c.Now, Sleep: c.Sleep, Host: "host", PID: 42})
	if err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int64
	d.fs.Rename = func(from, to string) error {
		err := dirfs.RenameNoReplace(from, to)
		if errors.Is(err, unix.EXDEV) {
			failed.Add(1)
		}
		return err
	}
	movable(t, d, refs)
	if failed.Load() == 0 {
		t.Error("every entry could be renamed")
	}
	w := writer(t, d)
	if err := w.Purge(t.Context(), feedHash); err != nil {
		t.Fatal(err)
	}
	if got := feedFiles(t, d); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
