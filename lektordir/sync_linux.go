package lektordir

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/atomicfile"
	"golang.org/x/sys/unix"
)

// fsSync syncs a whole file system by one call.
type fsSync struct{ f *os.File }

// openFSSync opens the descriptor for syncing the file system that holds path,
// before the writes it is to sync: the kernel tells an error of writing back
// to the descriptors that were open when it happened. ok is false where the
// call cannot be relied on: before Linux 5.8 it hides such errors, and only
// of these file systems we know that it waits for renames and data alike.
func openFSSync(path string) (s *fsSync, ok bool, err error) {
	if !kernelSyncsErrors() {
		return nil, false, nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return nil, false, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
	default:
		return nil, false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	return &fsSync{f}, true, nil
}

func (s *fsSync) sync() error {
	if err := atomicfile.Retry(func() error { return unix.Syncfs(int(s.f.Fd())) }); err != nil {
		return &os.PathError{Op: "syncfs", Path: s.f.Name(), Err: err}
	}
	return nil
}

func (s *fsSync) close() { s.f.Close() }

// syncFS syncs the file system that holds path.
func syncFS(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	s := fsSync{f}
	defer s.close()
	return s.sync()
}

var kernelSyncsErrors = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return versionAtLeast(unix.ByteSliceToString(u.Release[:]), 5, 8)
})

// versionAtLeast compares the beginning of a kernel's release, "6.1.0-13-amd64".
func versionAtLeast(release string, major, minor int) bool {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}
