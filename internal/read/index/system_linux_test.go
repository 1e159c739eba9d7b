package index_test

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mountSmall makes a file system of a size.
func mountSmall(path string, size int) error {
	return unix.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d", size))
}

// asNobody lets this thread have the rights to files that nobody has, and asRoot those
// of root.
func asNobody() bool {
	_, _ = unix.SetfsuidRetUid(65534)
	now, err := unix.SetfsuidRetUid(-1)
	return err == nil && now == 65534
}

func asRoot() { _, _ = unix.SetfsuidRetUid(0) }
