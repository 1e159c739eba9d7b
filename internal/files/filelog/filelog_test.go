package filelog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// odd accepts lines of an odd number of bytes.
func odd(line []byte) bool { return len(line)%2 == 1 }

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name, file string
		valid      func([]byte) bool
		counts     string
	}{
		{"an empty file", "", nil, ""},
		{"whole lines", "a\nb\n", nil, "a\nb\n"},
		{"an incomplete line", "a\nb", nil, "a\n"},
		{"no line", "a", nil, ""},
		{"a bad line at the end", "a\nbb\n", odd, "a\n"},
		{"a bad line in the middle", "a\nbb\nc\n", odd, "a\nbb\nc\n"},
		{"bad lines only", "aa\nbb\n", odd, ""},
		{"an empty line", "a\n\n", nil, "a\n\n"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.file), 0o666); err != nil {
			t.Fatal(err)
		}
		o := Options{Valid: c.valid}
		if got, err := Read(path, o); string(got) != c.counts || err != nil {
			t.Errorf("%s: Read = %q, %v, want %q", c.name, got, err, c.counts)
		}
		l, got, err := Open(path, o)
		if string(got) != c.counts || err != nil {
			t.Errorf("%s: Open = %q, %v, want %q", c.name, got, err, c.counts)
		}
		if got := content(t, path); got != c.file {
			t.Errorf("%s: after Open the file is %q, want it unchanged", c.name, got)
		}
		if err := errors.Join(l.Append([]byte("x\nyyy\n")), l.Append(nil), l.Close()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, want := content(t, path), c.counts+"x\nyyy\n"; got != want {
			t.Errorf("%s: after an append the file is %q, want %q", c.name, got, want)
		}
	}
}

// Resume opens a log for appending after the valid bytes that the caller passes, unless its size
// has changed.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte("a\nbb\nto"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, 2, 6, 8} {
		if _, err := Resume(path, min(size, 2), size); !errors.Is(err, ErrChanged) {
			t.Errorf("Resume of a file of 7 bytes as one of %d: %v, want ErrChanged", size, err)
		}
	}
	l, err := Resume(path, 2, 7)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "a\nbb\nto" || l.Size() != 2 {
		t.Errorf("after Resume the file is %q with %d valid bytes, want it unchanged, with 2", got, l.Size())
	}
	if err := errors.Join(l.Append([]byte("c\n")), l.Close()); err != nil {
		t.Error(err)
	}
	if got := content(t, path); got != "a\nc\n" {
		t.Errorf("after an append the file is %q, want %q", got, "a\nc\n")
	}

	missing := filepath.Join(dir, "missing")
	if _, err := Resume(missing, 1, 1); !errors.Is(err, ErrChanged) {
		t.Errorf("Resume of a file that is gone: %v, want ErrChanged", err)
	}
	if l, err = Resume(missing, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append([]byte("a\n")), l.Close()); err != nil || content(t, missing) != "a\n" {
		t.Errorf("the new log is %q, %v", content(t, missing), err)
	}
}

func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if got, err := Read(path, Options{}); len(got) != 0 || err != nil {
		t.Errorf("Read of no file = %q, %v", got, err)
	}
	l, _, err := Open(path, Options{Perm: 0o600, New: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append([]byte("a\n")), l.Sync(), l.Close()); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o600 || fi.Size() != 2 {
		t.Errorf("the file is %v, %v", fi, err)
	}
	if _, _, err := Open(path, Options{New: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Open with New of an existing log: %v", err)
	}
	if _, _, err := Open(filepath.Join(path, "log"), Options{}); err == nil {
		t.Error("Open of a log below a file succeeds")
	}
}

// If the file is not a regular one or is too large, Open returns an error that names it.
func TestOdd(t *testing.T) {
	dir := t.TempDir()
	link, large := filepath.Join(dir, "link"), filepath.Join(dir, "large")
	if err := errors.Join(os.Symlink("target", link), os.WriteFile(large, make([]byte, 100), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, link, large} {
		if _, _, err := Open(path, Options{Max: 99}); err == nil || !bytes.Contains([]byte(err.Error()), []byte(path)) {
			t.Errorf("Open of %s: %v, want an error with its name", path, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "target")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link was followed: %v", err)
	}
	if got := content(t, large); len(got) != 100 {
		t.Errorf("the large file has %d bytes now, want 100", len(got))
	}
}

func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, _, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Append([]byte("a\n")); err != nil {
		t.Fatal(err)
	}
	before := l.Size()
	if err := l.Append([]byte("b\n")); err != nil {
		t.Fatal(err)
	}
	l.Cut(before)
	if err := l.Append([]byte("c\n")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "a\nc\n" || l.Size() != 4 {
		t.Errorf("the file is %q and has %d bytes, want %q", got, l.Size(), "a\nc\n")
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, _, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { l.Close() }()
	if err := l.Append([]byte("a\nb\n")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	if err := l.Replace(nil, func(string, []byte) error { return full }); err != full {
		t.Errorf("Replace = %v, want the error of write", err)
	}
	if err := errors.Join(l.Append([]byte("c\n")), l.Replace([]byte("b\n"), atomicfile.WriteUnsynced), l.Append([]byte("d\n"))); err != nil {
		t.Error(err)
	}
	if got := content(t, path); got != "b\nd\n" {
		t.Errorf("the file is %q, want %q", got, "b\nd\n")
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, _, err := Open(path, Options{Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(path, Options{Lock: true}); !errors.Is(err, ErrLocked) {
		t.Errorf("the second Open = %v, want ErrLocked", err)
	}
	if err := l.Replace(nil, atomicfile.Write); err == nil {
		t.Error("Replace of a locked log succeeds")
	}
	if err := errors.Join(l.Append([]byte("a\n")), l.Close()); err != nil {
		t.Error(err)
	}
	l, got, err := Open(path, Options{Lock: true})
	if err != nil || string(got) != "a\n" {
		t.Errorf("Open after Close = %q, %v", got, err)
	}
	l.Close()
}

// If a write fails, the file still has only the valid lines after the next append.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nto"), 0o666); err != nil {
		t.Fatal(err)
	}
	l, _, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	good := l.f
	if l.f, err = os.Open(path); err != nil { // read-only, so writes fail
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Append([]byte("b\n")); err == nil {
			t.Error("an append to a read-only file succeeds")
		}
	}
	l.f.Close()
	l.f = good
	defer l.Close()
	if err := l.Append([]byte("c\n")); err != nil {
		t.Error(err)
	}
	if got := content(t, path); got != "a\nc\n" || l.Size() != 4 {
		t.Errorf("the file is %q, of %d bytes, want %q", got, l.Size(), "a\nc\n")
	}
}

// If the write function of Replace fails after its rename, later lines are appended to the new
// file.
func TestReplaceThatFailsLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, _, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Append([]byte("a\nb\n")); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("not synced")
	late := func(path string, data []byte) error {
		return errors.Join(atomicfile.Write(path, data), failed)
	}
	if err := l.Replace([]byte("b\n"), late); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if err := l.Append([]byte("c\n")); err != nil || content(t, path) != "b\nc\n" {
		t.Errorf("%v: got %q; want err == nil and content(t, path) == \"b\\nc\\n\"", err, content(t, path))
	}
	// If the new file cannot be opened, the next call tries again.
	gone := func(path string, data []byte) error {
		return errors.Join(atomicfile.Write(path+".new", data), os.Remove(path), os.Symlink(path+".new", path))
	}
	if err := l.Replace([]byte("d\n"), gone); err == nil {
		t.Fatal("Replace follows a link")
	}
	if err := l.Append([]byte("e\n")); err == nil {
		t.Fatal("an append to a removed file succeeds")
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append([]byte("e\n")), l.Sync()); err != nil || content(t, path) != "d\ne\n" {
		t.Errorf("%v: got %q; want err == nil and content(t, path) == \"d\\ne\\n\"", err, content(t, path))
	}
}
