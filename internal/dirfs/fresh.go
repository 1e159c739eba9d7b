package dirfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// A file system that several machines have (GlusterFS, NFS) caches for seconds the times,
// length, existence and even data of a file that another machine has changed. Taking a
// lock does not refresh that cache, so a holder of a lock calls [Fresh] or [Refresh].

// Shared reports whether other machines may have the lektor-dir.
func (d *Dir) Shared() bool { return d.shared() }

// Fresh refreshes the cached times and length of a file of the lektor-dir dir, which another
// machine may have changed; the caller has the lock under which they change. If the file
// does not exist or is another user's, the cache stays as it is. On a file system of this
// machine Fresh does nothing.
func Fresh(dir, path string) {
	if sharedFS(dir + "/src") {
		Refresh(path)
	}
}

// Lstat is os.Lstat, and open os.Open, for what another machine may be moving.
func Lstat(path string) (fi fs.FileInfo, err error) {
	err = atomicfile.Again(func() error {
		fi, err = os.Lstat(path)
		return err
	})
	return fi, err
}

func open(path string) (f *os.File, err error) {
	err = atomicfile.Again(func() error {
		f, err = os.Open(path)
		return err
	})
	return f, err
}

// RemoveAll is os.RemoveAll for what another machine may be removing, too.
func RemoveAll(path string) error {
	return atomicfile.Again(func() error { return os.RemoveAll(path) })
}

// Vanished reports whether a name that a file system of several machines still seems to
// have is not in its directory any more, which it reads anew.
func (d *Dir) Vanished(path string) bool {
	if !d.shared() {
		return false
	}
	names, err := AllNames(filepath.Dir(path))
	return err == nil && !slices.Contains(names, filepath.Base(path))
}
