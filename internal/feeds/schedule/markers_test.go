package schedule

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// AddMarker follows no symbolic link and does not block on a named pipe.
func TestAddMarkerAndLinks(t *testing.T) {
	d, err := lektordir.Create(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	due := d.Join("etc/fetch/due")
	if err := os.MkdirAll(due, 0o777); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, filepath.Join(due, "aaaa")); err != nil {
		t.Fatal(err)
	}
	if err := AddMarker(d, "aaaa"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the target of the link was created")
	}
	// A named pipe that nobody reads.
	if err := syscall.Mkfifo(filepath.Join(due, "bbbb"), 0o666); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- AddMarker(d, "bbbb") }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("AddMarker waits for a reader of the pipe")
	}
	// A link to a directory outside the lektor-dir.
	outside := t.TempDir()
	if err := errors.Join(os.RemoveAll(due), os.Symlink(outside, due)); err != nil {
		t.Fatal(err)
	}
	if err := AddMarker(d, "cccc"); err == nil {
		t.Error("no error")
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("created outside: %v", names)
	}
}
