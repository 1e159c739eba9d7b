package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// writers are the functions that replace a file. Most of their guarantees are the same.
var writers = map[string]func(path string, data []byte) error{
	"Write":          Write,
	"WriteUnsynced":  WriteUnsynced,
	"CreateUnsynced": CreateUnsynced,
	"Output": func(path string, data []byte) error {
		return Output(path, func(w io.Writer) error { _, err := w.Write(data); return err })
	},
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func want(t *testing.T, path, content string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != content {
		t.Errorf("%s has %q, %v; want %q", path, b, err, content)
	}
}

func TestReplace(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := write(path, []byte("one\n")); err != nil {
				t.Fatal(err)
			}
			want(t, path, "one\n")
			if fi, _ := os.Stat(path); fi.Mode().Perm() != 0o640 {
				t.Errorf("a new file has the permissions %o, want 0666 less the umask 027", fi.Mode().Perm())
			}
			// Bits of permissions that the umask would remove stay.
			if err := os.Chmod(path, 0o606); err != nil {
				t.Fatal(err)
			}
			if err := write(path, nil); err != nil {
				t.Fatal(err)
			}
			want(t, path, "")
			if fi, _ := os.Stat(path); fi.Mode().Perm() != 0o606 {
				t.Errorf("permissions became %o, want 0606", fi.Mode().Perm())
			}
			if got := names(t, dir); len(got) != 1 {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

// TestTempDirIgnored: the temporary file is beside the target for any TMPDIR, since a rename
// between file systems is not atomic.
func TestTempDirIgnored(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	for name, write := range writers {
		path := filepath.Join(t.TempDir(), "f")
		if err := write(path, []byte("x")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsLeaveNothing(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := write(filepath.Join(dir, "missing", "f"), nil); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("into a missing directory: %v", err)
			}
			// If path is a directory, the rename fails, which is the last step.
			path := filepath.Join(dir, "d")
			if err := os.MkdirAll(filepath.Join(path, "sub"), 0o777); err != nil {
				t.Fatal(err)
			}
			err := write(path, []byte("x"))
			if named := new(fs.PathError); !errors.As(err, &named) || named.Path != path || strings.Count(err.Error(), dir) != 1 {
				t.Errorf("a directory replaced by a file: %v", err)
			}
			if got := names(t, dir); len(got) != 1 {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

func TestSymlink(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
			if err := os.WriteFile(target, []byte("old"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("target", link); err != nil {
				t.Fatal(err)
			}
			if err := write(link, []byte("new")); err != nil {
				t.Fatal(err)
			}
			want(t, link, "new")
			fi, err := os.Lstat(link)
			if err != nil {
				t.Fatal(err)
			}
			if name == "Output" {
				want(t, target, "new")
				if fi.Mode().Type() != fs.ModeSymlink {
					t.Error("the link that --output names was replaced")
				}
			} else {
				want(t, target, "old")
				if !fi.Mode().IsRegular() {
					t.Error("the link was followed")
				}
			}
		})
	}
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("there is no other half")
	err := Output(path, func(w io.Writer) error {
		fmt.Fprint(w, "half of")
		for _, n := range names(t, dir) {
			if n != "f" && !IsTemp(n, "f") {
				t.Errorf("the temporary file is called %q", n)
			}
		}
		want(t, path, "old")
		return refused
	})
	if err != refused {
		t.Errorf("the error is %v", err)
	}
	want(t, path, "old")
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

// TestOutputDirect: a device or pipe that the user names as --output is written to, not replaced.
func TestOutputDirect(t *testing.T) {
	if err := Output(os.DevNull, func(w io.Writer) error { _, err := fmt.Fprint(w, "x"); return err }); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(os.DevNull); err != nil || fi.Mode()&fs.ModeDevice == 0 {
		t.Fatalf("%s is no longer a device: %v", os.DevNull, err)
	}
}

func TestIsTemp(t *testing.T) {
	for _, c := range []struct {
		name, base string
		want       bool
	}{
		{".etag123", "etag", true},
		{".etag", "etag", false},
		{"etag123", "etag", false},
		{".etag12x", "etag", false},
		{".etags123", "etag", false},
	} {
		if got := IsTemp(c.name, c.base); got != c.want {
			t.Errorf("IsTemp(%q, %q) = %v", c.name, c.base, got)
		}
	}
}

// TestConcurrent: while others write, a reader sees only complete values.
func TestConcurrent(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := write(path, bytes.Repeat([]byte{'a'}, 10000)); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for range 10 {
						if err := write(path, bytes.Repeat([]byte{byte('a' + i)}, 10000)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			for {
				b, err := os.ReadFile(path)
				if err != nil || len(b) != 10000 || bytes.Count(b, b[:1]) != 10000 {
					t.Fatalf("a reader saw %d bytes, %v", len(b), err)
				}
				select {
				case <-done:
					if got := names(t, dir); len(got) != 1 {
						t.Errorf("left behind: %q", got)
					}
					return
				default:
				}
			}
		})
	}
}

// TestErrorsNameTheFile: errors name the file, not the temporary file, which no longer exists.
func TestErrorsNameTheFile(t *testing.T) {
	for name, write := range writers {
		path := filepath.Join(t.TempDir(), "none", "f")
		err := write(path, []byte("x"))
		var pe *fs.PathError
		if !errors.As(err, &pe) || pe.Path != path || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v; want errors.As(err, &pe) and pe.Path == path and errors.Is(err, fs.ErrNotExist)", name, err)
		}
	}
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := MkdirAll(deep, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if fi, err := os.Stat(filepath.Join(dir, "a", "b")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v; want err == nil and fi.Mode().Perm() == 0o700", fi, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"file", "file/below"} {
		if err := MkdirAll(filepath.Join(dir, path), 0o700); err == nil {
			t.Errorf("%s is a directory", path)
		}
	}
	// Create the directory concurrently.
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := MkdirAll(filepath.Join(dir, "x/y/z"), 0o700); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
