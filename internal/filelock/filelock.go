// Package filelock takes locks on files, in the form that holds between machines,
// too: flock(2) on a descriptor that may write. A network file system makes a lock of
// a byte range of it (NFS, see flock(2)), and gives an exclusive one only to who may
// write. The locked files are empty, and whoever uses them never removes them, as
// another may have opened one before.
package filelock

import (
	"errors"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// ErrHeld is the error for a lock that another process has, or another descriptor of
// this one.
var ErrHeld = errors.New("another process has the lock")

// Lock is an exclusive lock. It ends with the process, too.
type Lock struct{ f *flock.Flock }

// Take takes the lock on the file at path without waiting; where there is none it is
// made, with the permissions perm less the umask, in a directory that must exist. A
// link at path is an error. The error is [ErrHeld] when another has the lock.
func Take(path string, perm fs.FileMode) (*Lock, error) {
	l, err := take(path, perm, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		// One that another user made; on a disk of this machine that will do.
		if l, again := take(path, perm, os.O_RDONLY); !errors.Is(again, fs.ErrNotExist) {
			return l, again
		}
	}
	return l, err
}

func take(path string, perm fs.FileMode, flags int) (*Lock, error) {
	f := flock.New(path, flock.SetPermissions(perm), flock.SetFlag(flags|unix.O_NOFOLLOW|unix.O_NONBLOCK))
	ok, err := f.TryLock()
	if err == nil && ok {
		return &Lock{f}, nil
	}
	_ = f.Close()
	if err == nil {
		err = ErrHeld
	}
	return nil, err
}

// Release gives the lock back. It does nothing for nil, or a second time.
func (l *Lock) Release() {
	if l != nil {
		_ = l.f.Unlock()
	}
}
