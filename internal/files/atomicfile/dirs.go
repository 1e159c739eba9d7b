package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotDir reports a link or a file in the place of a directory.
var ErrNotDir = errors.New("it is a link or a file, where a directory of the lektor-dir belongs")

// AllDirs returns an error unless all of the paths, relative to root, are directories. Call it with
// all directories on the path of a file before you write the file: a symbolic link may lead out of
// root. root itself may be a link.
func AllDirs(root string, rels ...string) error {
	for _, rel := range rels {
		path := root + "/" + rel
		var st unix.Stat_t
		if err := Again(func() error { return unix.Lstat(path, &st) }); err != nil {
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return &os.PathError{Op: "open", Path: path, Err: ErrNotDir}
		}
	}
	return nil
}

// NoLinks is [AllDirs] for paths that may be missing.
func NoLinks(root string, rels ...string) error {
	for _, rel := range rels {
		if err := AllDirs(root, rel); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
