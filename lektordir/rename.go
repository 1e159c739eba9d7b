package lektordir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// plainRename is rename(2), its two words for a directory in the way made one.
func plainRename(from, to string) error {
	err := unix.Rename(from, to)
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOTEMPTY) {
		err = unix.EEXIST
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
