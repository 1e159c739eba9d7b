package dirfs

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// openFS opens a directory for syncing its file system by [syncFile]. The caller opens it
// before it writes, because the kernel reports a writeback error only to descriptors that were
// open when it happened. It returns nil if syncfs(2) is not reliable: before Linux 5.8 it hides such
// errors, and only the file systems below are known to wait for both renames and data.
func openFS(path string) (*os.File, error) {
	if !kernelSyncsErrors() {
		return nil, nil
	}
	switch kind, err := fsKind(path); kind {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return os.Open(path)
	default:
		return nil, err
	}
}

// syncFile syncs the file system of an open file.
func syncFile(f *os.File) error {
	if err := atomicfile.Retry(func() error { return unix.Syncfs(int(f.Fd())) }); err != nil {
		return &os.PathError{Op: "syncfs", Path: f.Name(), Err: err}
	}
	return nil
}

// syncFS syncs the file system that holds path by syncfs(2), which may not report write errors. It
// does nothing and returns false if that call is not known to write everything: with FUSE it only
// flushes the kernel's own cache.
func syncFS(path string) (done bool, err error) {
	if kind, err := fsKind(path); err != nil || !kind.local() && kind != unix.NFS_SUPER_MAGIC {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return true, syncFile(f)
}

// kind is the type of a file system, as statfs(2) reports it.
type kind uint32

func fsKind(path string) (kind, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return kind(st.Type), nil
}

// local reports whether only one machine can use file systems of the kind.
func (k kind) local() bool {
	const zfs, bcachefs = 0x2fc12fc1, 0xca451a4e
	switch k {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfs, bcachefs:
		return true
	}
	return false
}

// sharedFS reports whether several machines may use the file system that holds path.
func sharedFS(path string) bool {
	k, err := fsKind(path)
	return err == nil && !k.local()
}

// Refresh refreshes the cached metadata of a file on a shared file system, by a change of its
// access time: the server's answer has the present metadata. No program uses the access time.
func Refresh(path string) {
	times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_OMIT}}
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW)
}

var kernelSyncsErrors = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return versionAtLeast(unix.ByteSliceToString(u.Release[:]), 5, 8)
})

// versionAtLeast reports whether a kernel release, such as "6.1.0-13-amd64", is at least
// major.minor.
func versionAtLeast(release string, major, minor int) bool {
	var a, b int
	_, err := fmt.Sscanf(release, "%d.%d", &a, &b)
	return err == nil && (a > major || a == major && b >= minor)
}
