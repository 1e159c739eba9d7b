package undo_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/undo"
)

// TestFailuresOfOneCause: an error of the system with the same cause is reported once, and then
// counted; other errors are reported each time.
func TestFailuresOfOneCause(t *testing.T) {
	f := newFixture(t)
	v, err := f.Common().Open(nil, cmdline.PrinterOptions{}, f.Streams(""))
	if err != nil {
		t.Fatal(err)
	}
	m := undo.Moving(v.Store, "mark")
	for _, err := range []error{
		&fs.PathError{Op: "mkdir", Path: "a", Err: syscall.EROFS}, errors.New("no entry b"),
		&fs.PathError{Op: "mkdir", Path: "c", Err: syscall.EROFS}, errors.New("no entry d"),
		&fs.PathError{Op: "mkdir", Path: "e", Err: syscall.EACCES}, &fs.PathError{Op: "mkdir", Path: "f", Err: syscall.EROFS},
	} {
		m.Failed(err)
	}
	m.Close()
	const want = `lektor-view: mkdir a: read-only file system
lektor-view: no entry b
lektor-view: no entry d
lektor-view: mkdir e: permission denied
lektor-view: 2 more entries could not be moved: read-only file system
`
	if got := f.Err.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}
