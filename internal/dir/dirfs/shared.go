package dirfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// A shared file system (GlusterFS, NFS) may cache the times, length, existence and even data of a
// file for seconds after another machine has changed it. Taking a lock does not refresh that
// cache, so a holder of a lock calls [Revalidate] or [Refresh].

// Shared reports whether other machines may use the lektor-dir.
func (d *Dir) Shared() bool { return d.shared() }

// Revalidate calls [Refresh] for a file of the lektor-dir dir if that is on a shared file system. The
// caller holds the lock under which the file changes. If the file does not exist or has another
// owner, the cache is not refreshed.
func Revalidate(dir, path string) {
	if sharedFS(dir + "/src") {
		Refresh(path)
	}
}

// Lstat is like [os.Lstat], but tries again if another machine is moving the file.
func Lstat(path string) (fi fs.FileInfo, err error) {
	err = atomicfile.Again(func() error {
		fi, err = os.Lstat(path)
		return err
	})
	return fi, err
}

// open is like [os.Open], but tries again if another machine is moving the file.
func open(path string) (f *os.File, err error) {
	err = atomicfile.Again(func() error {
		f, err = os.Open(path)
		return err
	})
	return f, err
}

// RemoveAll is like [os.RemoveAll], but tries again if another machine removes files, too.
func RemoveAll(path string) error {
	return atomicfile.Again(func() error { return os.RemoveAll(path) })
}

// Vanished reports whether a shared file system still caches a name that has gone. To find out, it
// lists the directory. On other file systems it returns false.
func (d *Dir) Vanished(path string) bool {
	if !d.shared() {
		return false
	}
	names, err := AllNames(filepath.Dir(path))
	return err == nil && !slices.Contains(names, filepath.Base(path))
}
