package dirfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// RenameNoReplace renames a directory and fails with fs.ErrExist where the new
// name is taken. A file system without RENAME_NOREPLACE (NFS) gets the plain
// rename, which replaces no directory but an empty one, and entries have files.
func RenameNoReplace(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch err {
	case nil:
		return nil
	case unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP:
		return PlainRename(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
