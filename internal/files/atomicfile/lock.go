package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// Exists reports whether there is anything at path, even a dangling link.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Lock locks the file at path, which it creates if necessary. The file is never removed: a process
// that had opened it before would hold a lock that the next one does not see. Lock does not wait,
// and returns the error busy if another process has the lock; any other error is an *[fs.PathError]
// with the name of the file. The lock ends with unlock, or with the process. Lock does not follow a
// symbolic link at path.
func Lock(path string, busy error) (unlock func(), err error) {
	// NFS implements it as a lock of a byte range, which requires write permission for an exclusive
	// lock (flock(2)).
	unlock, err = take(path, busy, os.O_RDWR|os.O_CREATE, (*flock.Flock).TryLock)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		// The file belongs to another user. On a local disk, read permission suffices.
		unlock, again := take(path, busy, os.O_RDONLY, (*flock.Flock).TryLock)
		if !errors.Is(again, fs.ErrNotExist) {
			return unlock, again
		}
	}
	return unlock, err
}

// Share takes a shared lock, as Lock takes an exclusive one.
func Share(path string, busy error) (unlock func(), err error) {
	return take(path, busy, os.O_RDWR|os.O_CREATE, (*flock.Flock).TryRLock)
}

func take(path string, busy error, flags int, try func(*flock.Flock) (bool, error)) (unlock func(), err error) {
	l := flock.New(path, flock.SetPermissions(perm), flock.SetFlag(flags|unix.O_NOFOLLOW|unix.O_NONBLOCK))
	ok, err := try(l)
	switch named := new(fs.PathError); {
	case err == nil && !ok:
		err = busy
	case err != nil && !errors.As(err, &named):
		err = &fs.PathError{Op: "lock", Path: path, Err: err} // an error of flock(2) has no path
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return func() { _ = l.Unlock() }, nil
}

// Hold locks an open file or directory until it is closed; how is an operation of flock(2).
func Hold(f *os.File, how int) error {
	return Retry(func() error { return unix.Flock(int(f.Fd()), how) })
}

// InPlace reports whether an open file is still the file at its path. While the caller waited for
// a lock, the file may have been removed or replaced. If nothing is at the path, the error is
// fs.ErrNotExist.
func InPlace(f *os.File) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(opened, now), err
}

// Same reports whether two paths lead to the same file or directory. It returns false if either
// path cannot be examined.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// OpenDir opens a directory. A symbolic link at the path is an error. Like [Create], it does not register the directory
// with the poller.
func OpenDir(path string) (*os.File, error) {
	var fd int
	err := Again(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Again repeats a call like [Retry], and also after ESTALE: a network file system (GlusterFS,
// NFS) has cached a name that another machine has moved since. Names are cached for a second, so
// Again repeats for two seconds, and then returns the error of the last call. It is not for calls
// that sync, since the system reports their error only once.
func Again(call func() error) error {
	for pause := time.Millisecond; ; pause *= 2 {
		err := Retry(call)
		if !errors.Is(err, unix.ESTALE) || pause > time.Second {
			return err
		}
		time.Sleep(pause)
	}
}

// Retry repeats a system call while signals interrupt it.
func Retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
