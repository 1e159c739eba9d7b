package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestCreatePrivateFrom: a file is created whole or not at all, is readable only by the user, and
// replaces nothing.
func TestCreatePrivateFrom(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "box")
	full := errors.New("no space left")
	err := CreatePrivateFrom(path, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return full })
	if !errors.Is(err, full) {
		t.Errorf("an error of the writer: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("after an error there is %v", names)
	}
	write := func(text string) error {
		return CreatePrivateFrom(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	if err := write("one"); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want err == nil and fi.Mode().Perm() == 0o600", fi.Mode(), err)
	}
	if err := write("two"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	// A file that is created meanwhile stays.
	other := filepath.Join(dir, "other")
	err = CreatePrivateFrom(other, func(w io.Writer) error { return os.WriteFile(other, []byte("theirs"), 0o644) })
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file that came meanwhile: %v", err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := CreatePrivateFrom(filepath.Join(dir, "link"), func(io.Writer) error { return nil }); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a link that leads nowhere: %v", err)
	}
	one, _ := os.ReadFile(path)
	theirs, _ := os.ReadFile(other)
	names, _ := os.ReadDir(dir)
	if string(one) != "one" || string(theirs) != "theirs" || len(names) != 3 {
		t.Errorf("got %q, %q, %v; want string(one) == \"one\" and string(theirs) == \"theirs\" and len(names) == 3", one, theirs, names)
	}
}
