package testdir

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An installed program of lektor is hidden, and the other programs of its directory are not.
func TestHideInstalled(t *testing.T) {
	installed, other, temporary := t.TempDir(), t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(installed, "lektor-view"), filepath.Join(installed, "tool"), filepath.Join(other, "lektor")} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", temporary)
	t.Setenv("PATH", installed+":"+other)
	show := hideInstalled()
	for name, want := range map[string]bool{"lektor-view": false, "tool": true, "lektor": true} {
		if path, err := exec.LookPath(name); (err == nil) != want {
			t.Errorf("%s: found %q, %v", name, path, err)
		}
	}
	show()
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
