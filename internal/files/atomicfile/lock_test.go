package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

var errBusy = errors.New("busy")

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(path, errBusy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, errBusy); err != errBusy {
		t.Errorf("a second one: %v", err)
	}
	// On NFS the lock is a write lock of a byte range, so the descriptor must be open for
	// writing.
	record := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(uintptr(descriptor(t, path)), unix.F_SETLK, &record); err != nil {
		t.Errorf("it holds on no network file system: %v", err)
	}
	unlock()
	again, err := Lock(path, errBusy)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// descriptor returns the descriptor with which this process has opened a file.
func descriptor(t *testing.T, path string) int {
	t.Helper()
	var want, got unix.Stat_t
	if err := unix.Stat(path, &want); err != nil {
		t.Fatal(err)
	}
	for fd := range 1000 {
		if unix.Fstat(fd, &got) == nil && got.Dev == want.Dev && got.Ino == want.Ino {
			return fd
		}
	}
	t.Fatal("it is not open")
	return -1
}

// TestLockOdd: a read-only file of another user can be locked; other kinds of files cannot.
func TestLockOdd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	unlock, err := Lock(path, errBusy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, errBusy); err != errBusy {
		t.Errorf("a second one: %v", err)
	}
	unlock()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dir} {
		if unlock, err := Lock(path, errBusy); err == nil {
			unlock()
			t.Errorf("%s was locked", path)
		}
	}
	if _, err := Lock(filepath.Join(dir, "none/lock"), errBusy); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestLockNamesFile: an error of flock(2), for example from a file server without locks, names
// the file.
func TestLockNamesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	fails := func(*flock.Flock) (bool, error) { return false, unix.ENOLCK }
	_, err := take(path, errBusy, os.O_RDWR|os.O_CREATE, fails)
	if named := new(fs.PathError); !errors.As(err, &named) || named.Path != path || !errors.Is(err, unix.ENOLCK) {
		t.Errorf("got %v; want errors.As(err, &named) and named.Path == path and errors.Is(err, unix.ENOLCK)", err)
	}
	if _, err := Lock(t.TempDir()+"/none/lock", errBusy); !strings.Contains(err.Error(), "none/lock") {
		t.Errorf("got %v; want strings.Contains(err.Error(), \"none/lock\")", err)
	}
}

// TestAgain: Again repeats after ESTALE, and returns other errors at once.
func TestAgain(t *testing.T) {
	for _, c := range []struct {
		errs []error
		want error
	}{
		{[]error{nil}, nil},
		{[]error{unix.ESTALE, unix.EINTR, &fs.PathError{Err: unix.ESTALE}, nil}, nil},
		{[]error{unix.ESTALE, unix.ENOENT}, unix.ENOENT},
		{[]error{unix.EIO}, unix.EIO},
	} {
		calls := 0
		err := Again(func() error { calls++; return c.errs[calls-1] })
		if err != c.want || calls != len(c.errs) {
			t.Errorf("%v: %v after %d calls", c.errs, err, calls)
		}
	}
}
