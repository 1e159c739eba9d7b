package index

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// name is a name in a directory.
type name struct {
	name string
	ino  uint64
	kind byte // DT_DIR and so on
}

// readNames returns the names in a directory, except those that begin with a dot, with inode and
// kind.
func readNames(dir *os.File) ([]name, error) {
	var list []name
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Getdents(int(dir.Fd()), buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return list, &os.PathError{Op: "readdir", Path: dir.Name(), Err: err}
		}
		if n <= 0 {
			return list, nil
		}
		// struct linux_dirent64: ino, off, reclen, type, name with a NUL.
		for rest := buf[:n]; len(rest) > 19; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size <= 19 || size > len(rest) {
				break
			}
			text, _, _ := bytes.Cut(rest[19:size], []byte{0})
			if len(text) > 0 && text[0] != '.' {
				e := name{string(text), binary.NativeEndian.Uint64(rest), rest[18]}
				if e.kind == unix.DT_UNKNOWN {
					var st unix.Stat_t
					if unix.Fstatat(int(dir.Fd()), e.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
						e.kind = byte(st.Mode & unix.S_IFMT >> 12)
					}
				}
				list = append(list, e)
			}
			rest = rest[size:]
		}
	}
}

// Kinds of names, as the system has them.
const (
	kindFile = unix.DT_REG
	kindDir  = unix.DT_DIR
)
