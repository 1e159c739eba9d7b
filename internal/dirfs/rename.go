package dirfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// PlainRename is rename(2), its two words for a directory in the way made one.
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
