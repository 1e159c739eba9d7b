package atomicfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// CreatePrivateFrom creates a file at path with the output of from. The file has the permissions
// 0600, is durable, and appears only when it is complete. After an error there is no new file; the
// error is [fs.ErrExist] if path exists, also if another process created it meanwhile.
func CreatePrivateFrom(path string, from func(io.Writer) error) error {
	exists := &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	Sweep(path)
	if Exists(path) {
		return exists
	}
	f, err := pending(path, renameio.WithStaticPermissions(0o600))
	if err != nil {
		return named(err, path)
	}
	defer f.Cleanup() //nolint:errcheck // nothing to do about it
	if err := cmp.Or(from(f), f.Sync()); err != nil {
		return named(err, path)
	}
	// Unlike a rename, a link does not replace a file.
	err = os.Link(f.Name(), path)
	switch {
	case err != nil && Exists(path):
		return exists
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS):
		err = f.CloseAtomicallyReplace() // the file system has no hard links
	}
	if err != nil {
		return named(err, path)
	}
	// The file is in place, so other temporary files of any age are of killed processes, or of processes
	// that will fail because the file exists.
	sweep(0, path)
	return SyncDir(filepath.Dir(path))
}
