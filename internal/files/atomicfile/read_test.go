package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, n := range []int{0, 1, 511, 16<<10 - 1, 16 << 10, 16<<10 + 1, 100_000} {
		text := strings.Repeat("x", n)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if b, err := Read(path, int64(n)); err != nil || string(b) != text {
			t.Errorf("%d bytes: %d, %v", n, len(b), err)
		}
		if n == 0 {
			continue
		}
		if _, err := Read(path, int64(n)-1); err == nil || !strings.Contains(err.Error(), "larger than") || !strings.Contains(err.Error(), path) {
			t.Errorf("%d bytes where one fewer are allowed: %v", n, err)
		}
	}
	if _, err := Read(path+"x", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestReadOdd: a FIFO or another kind of file at the path does not block a reader.
func TestReadOdd(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Mkdir(at("directory"), 0o777), syscall.Mkfifo(at("pipe"), 0o666), os.Symlink("loop", at("loop")),
		os.Symlink("/dev/zero", at("endless")), os.Truncate(func() string { f, _ := os.Create(at("huge")); f.Close(); return f.Name() }(), 1<<30),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"directory", "pipe", "loop", "endless", "huge"} {
		if b, err := Read(at(name), 1<<20); err == nil || !strings.Contains(err.Error(), at(name)) {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		if line, err := Line(at(name)); err == nil || line != "" {
			t.Errorf("line of %s: %q, %v", name, line, err)
		}
	}
	// A pipe with a writer is not read either.
	w, err := os.OpenFile(at("pipe"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := Read(at("pipe"), 100); err == nil {
		t.Error("an open pipe is read")
	}
}

func TestLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for in, want := range map[string]string{"": "", "a": "a", "a\n": "a", "a\r\nb\n": "a", "\n": "", " a \n\n": " a ", "\x00": "", "\x00\x00\n": "\x00\x00", "\x00a\n": "\x00a"} {
		if err := os.WriteFile(path, []byte(in), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := Line(path); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

// TestReadAfterAPowerCut: a file of NULs alone, which a power cut leaves of one that was not synced, is
// empty, whatever its length.
func TestReadAfterAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, n := range []int{1, 16<<10 - 1, 16 << 10, 100_000} {
		for _, end := range []string{"", "x"} {
			text, want := strings.Repeat("\x00", n)+end, ""
			if end != "" {
				want = text
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			if b, err := Read(path, 1<<20); err != nil || string(b) != want {
				t.Errorf("%d NULs and %q: %d bytes, %v", n, end, len(b), err)
			}
		}
	}
}
