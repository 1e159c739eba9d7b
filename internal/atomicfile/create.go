package atomicfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CreatePrivateFrom makes a file at path, where nothing may be, of what from writes. The
// file has the permissions 0600, is durable, and is there only when it is whole. An error
// means that nothing was made; it is [fs.ErrExist] if path is taken, also by a file that
// came meanwhile.
func CreatePrivateFrom(path string, from func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	Sweep(path)
	f, err := tempFile(path, 0o600, false)
	if err != nil {
		return named(err, path)
	}
	temp := f.Name()
	defer func() { _ = os.Remove(temp) }()
	if err := cmp.Or(from(f), f.Sync(), f.Close()); err != nil {
		_ = f.Close()
		return named(err, path)
	}
	// Unlike a rename, a link replaces nothing.
	err = os.Link(temp, path)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		if _, there := os.Lstat(path); there == nil {
			return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		err = os.Rename(temp, path) // a file system without hard links
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}
