package atomicfile

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSweep: temporary files of killed processes are removed, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Minute)
	keep := []string{".doc.xml12345678901x", ".doc.xml2", ".doc.xml99999999999999", ".other.xml1234567890", "doc.xml", "doc.xml1234567890"}
	for _, name := range append([]string{".doc.xml1234567890", ".doc.xml8999999999999999", ".page.html1234567890"}, keep...) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if name != ".doc.xml99999999999999" { // another process writes it now
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

// TestSweepOwn: both kinds of temporary files are recognised.
func TestSweepOwn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "doc")
	old := time.Now().Add(-time.Minute)
	f, err := tempFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// If the temporary file is removed while it is written, Output returns an error.
	err = Output(path, func(io.Writer) error {
		left := names(t, dir)
		for _, name := range left {
			if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
		if Sweep(path); len(left) != 2 || len(names(t, dir)) != 0 {
			t.Errorf("had %q, and after Sweep: %q", left, names(t, dir))
		}
		return nil
	})
	if err == nil {
		t.Error("the file was replaced all the same")
	}
}

// TestSweepTree: abandoned temporary files of any name are found at any depth, and nothing else.
func TestSweepTree(t *testing.T) {
	top := t.TempDir()
	now := time.Now()
	outside := filepath.Join(t.TempDir(), ".x1234567890123456")
	gone := []string{".a1234567890123456", "d/.lektor-html1234567890123456789", "d/e/..url123456789012345", ".b.c-d1234567890123456"}
	kept := []string{"a1234567890123456", ".a12345678901234", ".1234567890123456", "d/.a1234567890123456x", "d/e/.young1234567890123456", "d/f"}
	for _, path := range append(append([]string{outside}, gone...), kept...) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(top, path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		age := Abandoned + time.Second
		if filepath.Base(path) == ".young1234567890123456" {
			age = Abandoned - time.Minute
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"l": filepath.Dir(outside), ".l1234567890123456": outside} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Leftovers(top, now)
	if err != nil || len(found) != len(gone) {
		t.Errorf("found %q, %v", found, err)
	}
	root := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(top, root); err != nil {
		t.Fatal(err)
	}
	SweepTree(root, now)
	SweepTree(filepath.Join(top, "none"), now)
	for _, name := range gone {
		if Exists(filepath.Join(top, name)) {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range append(kept, "l", ".l1234567890123456") {
		if !Exists(filepath.Join(top, name)) {
			t.Errorf("%s was removed", name)
		}
	}
	if !Exists(outside) {
		t.Error("a file behind a link was removed")
	}
}
