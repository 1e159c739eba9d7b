package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// leftAfter is the time since the last write after which a temporary file counts as abandoned. A
// live writer writes more often.
const leftAfter = 10 * time.Second

// minDigits is the minimum number of digits in the names of temporary files. A user may name a
// file ".feed2".
const minDigits = 8

// Sweep removes the temporary files of killed processes beside the files at paths, which must be
// in one directory. Call it before writing these files. A file that cannot be removed stays,
// without an error.
func Sweep(paths ...string) { sweep(leftAfter, paths...) }

// sweep is [Sweep] for temporary files to which nobody has written for the duration age.
func sweep(age time.Duration, paths ...string) {
	if len(paths) == 0 {
		return
	}
	dir := filepath.Dir(paths[0])
	names, _ := os.ReadDir(dir)
	for _, n := range names {
		if n.Name()[0] == '.' && slices.ContainsFunc(paths,
			func(path string) bool { return left(n, filepath.Base(path), age) }) {
			_ = os.Remove(filepath.Join(dir, n.Name()))
		}
	}
}

// Left reports whether a directory entry is an abandoned temporary file for the file named base:
// nobody has written to it for ten seconds.
func Left(e fs.DirEntry, base string) bool { return left(e, base, leftAfter) }

func left(e fs.DirEntry, base string, age time.Duration) bool {
	if !IsTemp(e.Name(), base) || len(e.Name()) < len(base)+1+minDigits || !e.Type().IsRegular() {
		return false
	}
	fi, err := e.Info()
	return err == nil && time.Since(fi.ModTime()) > age
}

// Abandoned is the age after which a temporary file of any name counts as abandoned.
const Abandoned = 2 * time.Hour

// randomDigits is the minimum number of digits that [Temporary] requires. Random names with fewer
// digits practically do not occur.
const randomDigits = 15

// Temporary reports whether a name (without directories) is of the form that this package uses for
// temporary files: a dot, the name of the file to be replaced, and a random number.
func Temporary(name string) bool {
	base := strings.TrimRight(name, "0123456789")
	return len(base) > 1 && base[0] == '.' && len(name)-len(base) >= randomDigits
}

// Leftovers returns the paths of the abandoned temporary files in a directory and below it. dir may
// be a link; no other link is followed. The error joins the errors of directories that cannot be read.
func Leftovers(dir string, now time.Time) (paths []string, err error) {
	var bad error
	err = filepath.WalkDir(dir+"/.", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && Temporary(e.Name()) {
			var fi fs.FileInfo
			if fi, err = e.Info(); err == nil && now.Sub(fi.ModTime()) > Abandoned {
				paths = append(paths, filepath.Clean(path))
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = errors.Join(bad, err)
		}
		return nil
	})
	return paths, errors.Join(bad, err)
}

// SweepTree removes the files that [Leftovers] returns. A file that cannot be removed stays.
func SweepTree(dir string, now time.Time) {
	paths, _ := Leftovers(dir, now) // files below an unreadable directory stay until it can be read
	for _, path := range paths {
		_ = os.Remove(path)
	}
}
