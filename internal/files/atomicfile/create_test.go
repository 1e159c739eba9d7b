package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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

// TestCreateAfterAKill: the next run takes away the temporary file of a killed one, also at once, and also
// if it refuses to replace the file.
func TestCreateAfterAKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "box")
	leave := func(name string, age time.Duration) {
		t.Helper()
		at := filepath.Join(dir, name)
		then := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(at, nil, 0o600), os.Chtimes(at, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
		ents, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range ents {
			names = append(names, e.Name())
		}
		return names
	}
	create := func() error { return CreatePrivateFrom(path, func(io.Writer) error { return nil }) }
	leave(".box1234567890123456", 0)
	leave(".box2", 0) // the user's
	if err := create(); err != nil || !slices.Equal(left(), []string{".box2", "box"}) {
		t.Errorf("after a kill: %v, %v", left(), err)
	}
	leave(".box1234567890123456", time.Hour)
	if err := create(); !errors.Is(err, fs.ErrExist) || !slices.Equal(left(), []string{".box2", "box"}) {
		t.Errorf("refused: %v, %v", left(), err)
	}
	// The slower of two that write one file at once fails, and says that the file exists.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	err := CreatePrivateFrom(path, func(io.Writer) error { return create() })
	if !errors.Is(err, fs.ErrExist) || !slices.Equal(left(), []string{".box2", "box"}) {
		t.Errorf("at once: %v, %v", left(), err)
	}
}
