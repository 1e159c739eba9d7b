package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// leftAfter is how long nobody has written to a temporary file that a kill left
// behind. A writer that lives writes more often, or is done.
const leftAfter = 10 * time.Second

// minDigits is how many digits our own temporary files have at least; a user may
// call a file ".feed2".
const minDigits = 8

// Sweep removes the temporary files that kills have left beside the files at paths,
// which are in one directory; whoever is about to write them again calls it. What
// cannot be removed stays: it is a nuisance, and no failure.
func Sweep(paths ...string) {
	if len(paths) == 0 {
		return
	}
	bases := make([]string, len(paths))
	for i, path := range paths {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			path = to // as Create does
		}
		paths[i], bases[i] = path, filepath.Base(path)
	}
	dir := filepath.Dir(paths[0])
	names, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), ".") {
			continue
		}
		for _, base := range bases {
			if Left(n, base) {
				_ = os.Remove(filepath.Join(dir, n.Name()))
			}
		}
	}
}

// Left reports whether what stands in a directory is a temporary file for the file
// called base that a kill has left behind: nobody has written to it for ten seconds.
func Left(e fs.DirEntry, base string) bool {
	if !IsTemp(e.Name(), base) || len(e.Name()) < len(base)+1+minDigits || !e.Type().IsRegular() {
		return false
	}
	fi, err := e.Info()
	return err == nil && time.Since(fi.ModTime()) > leftAfter
}
