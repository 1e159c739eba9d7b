package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// syncBuffer is a buffer that is safe for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// quickDir creates a directory for a test with many lektor-dirs, in memory if possible, as each of
// them is synced repeatedly.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lektor-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// snapshot lists the files below a directory: names, modes, times and contents.
func snapshot(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		s := fmt.Sprintf("%s %v %v", p, fi.Mode(), fi.ModTime())
		switch {
		case e.Type().IsRegular():
			var b []byte
			b, err = os.ReadFile(p)
			s += fmt.Sprintf(" %q", b)
		case e.Type()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(p)
			s += " -> " + to
		}
		out = append(out, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// copyTree copies a file or a directory, with the times of files.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dest := to + p[len(from):]
		fi, err := e.Info()
		if err != nil {
			return err
		}
		switch e.Type() {
		case fs.ModeDir:
			return os.Mkdir(dest, fi.Mode().Perm())
		case fs.ModeSymlink:
			leads, err := os.Readlink(p)
			if err != nil {
				return err
			}
			return os.Symlink(leads, dest)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if err := os.WriteFile(dest, b, fi.Mode().Perm()); err != nil {
			return err
		}
		return os.Chtimes(dest, fi.ModTime(), fi.ModTime())
	})
}
