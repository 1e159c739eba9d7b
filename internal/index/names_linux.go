package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

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
func readNames(fd int, path string) ([]name, error) {
	var list []name
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return list, &os.PathError{Op: "readdir", Path: path, Err: err}
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
					if unix.Fstatat(fd, e.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
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

// keepsTimes reports whether the file system of a directory sets a new mtime whenever a name in the
// directory changes. Most do; some FUSE file systems do not.
func keepsTimes(path string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return false
	}
	if fs.Type != unix.FUSE_SUPER_MAGIC {
		return true
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && trustedMount(string(mounts), unix.Major(st.Dev), unix.Minor(st.Dev))
}

// trustedMount looks a device up in the lines of proc(5)'s mountinfo.
func trustedMount(mounts string, major, minor uint32) bool {
	device := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mounts) {
		head, tail, _ := strings.Cut(line, " - ")
		fields, kinds := strings.Fields(head), strings.Fields(tail)
		if len(fields) > 2 && len(kinds) > 0 && fields[2] == device {
			switch kinds[0] {
			case "fuse.glusterfs", "fuse.ceph", "fuse.bindfs", "fuse.mergerfs", "fuse.fuse-overlayfs", "fuseblk":
				return true
			}
			return false
		}
	}
	return false
}
