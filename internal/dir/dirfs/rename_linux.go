package dirfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// RenameNoReplace renames a directory, and fails with fs.ErrExist if the new name is taken. If the
// file system has no RENAME_NOREPLACE (NFS), it uses rename(2), which replaces only empty
// directories, and entries are never empty.
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
