package atomicfile

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSweep: what a kill left goes, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Minute)
	keep := []string{".doc.xml12345678901x", ".doc.xml2", ".doc.xml99999999999999", ".other.xml1234567890", "doc.xml", "doc.xml1234567890"}
	for _, name := range append([]string{".doc.xml1234567890", ".doc.xml8999999999999999", ".page.html1234567890"}, keep...) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if name != ".doc.xml99999999999999" { // somebody writes it now
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".doc.xml111111111111"), 0o777); err != nil {
		t.Fatal(err)
	}
	keep = append(keep, ".doc.xml111111111111")
	slices.Sort(keep)
	Sweep(filepath.Join(dir, "doc.xml"), filepath.Join(dir, "page.html"))
	if got := names(t, dir); !slices.Equal(got, keep) {
		t.Errorf("left: %q, want %q", got, keep)
	}
}

// TestSweepOwn: both kinds of temporary files are known.
func TestSweepOwn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "doc")
	old := time.Now().Add(-time.Minute)
	f, err := tempFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// What is written while its temporary file is removed is lost, and that is told.
	err = Output(path, func(io.Writer) error {
		left := names(t, dir)
		for _, name := range left {
			if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
		if Sweep(path); len(left) != 2 || len(names(t, dir)) != 0 {
			t.Errorf("of %q are left: %q", left, names(t, dir))
		}
		return nil
	})
	if err == nil {
		t.Error("it was put in place all the same")
	}
}
