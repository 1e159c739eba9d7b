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

// CreatePrivateFrom creates a file at path with the output of from. The file has the permissions
// 0600, is durable, and appears only when it is complete. After an error there is no new file; the
// error is [fs.ErrExist] if path exists, also if another process created it meanwhile.
func CreatePrivateFrom(path string, from func(io.Writer) error) (err error) {
	Sweep(path)
	if Exists(path) {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
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
	// Unlike a rename, a link does not replace a file.
	err = os.Link(temp, path)
	switch {
	case err != nil && Exists(path):
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS):
		err = os.Rename(temp, path) // the file system has no hard links
	}
	if err != nil {
		return err
	}
	// The file is in place, so other temporary files of any age are of killed processes, or of processes
	// that will fail because the file exists.
	sweep(0, path)
	return SyncDir(filepath.Dir(path))
}
