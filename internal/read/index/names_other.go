//go:build !linux

package index

import (
	"os"

	"golang.org/x/sys/unix"
)

// name is a name in a directory.
type name struct {
	name string
	ino  uint64
	kind byte
}

// Kinds of names.
const (
	kindFile = 8
	kindDir  = 4
)

// readNames returns the names in a directory, except those that begin with a dot, with
// the inodes.
func readNames(dir *os.File) ([]name, error) {
	ents, err := dir.ReadDir(-1)
	var list []name
	for _, e := range ents {
		var st unix.Stat_t
		if e.Name()[0] == '.' || unix.Fstatat(int(dir.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		list = append(list, name{e.Name(), uint64(st.Ino), byte(st.Mode & unix.S_IFMT >> 12)})
	}
	return list, err
}
