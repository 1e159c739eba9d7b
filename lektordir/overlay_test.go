package lektordir

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// An entry in the lower layer of an overlay stays, and the error says what to do.
func TestNotMovable(t *testing.T) {
	d, _ := newDir(t)
	ref := deliver(t, d, sample("a", "A"))[0]
	d.fs.Rename = func(from, to string) error {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.EXDEV}
	}
	_, err := d.SetFlags(ref, "S", "")
	for _, err := range []error{err, d.Remove(ref)} {
		if !errors.Is(err, unix.EXDEV) || !strings.Contains(err.Error(), "cp -a") {
			t.Error(err)
		}
	}
	if got := list(t, d, ListOptions{}); len(got) != 1 || got[0] != ref {
		t.Errorf("%q", paths(got))
	}
}
