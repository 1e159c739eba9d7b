package dirfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// PlainRename is rename(2), but returns EEXIST for ENOTEMPTY, which also means that the new name is
// taken.
func PlainRename(from, to string) error {
	err := unix.Rename(from, to)
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOTEMPTY) {
		err = unix.EEXIST
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
