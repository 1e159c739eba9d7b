package atomicfile

import (
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
			if !IsTemp(n.Name(), base) || len(n.Name()) < len(base)+1+minDigits || !n.Type().IsRegular() {
				continue
			}
			if fi, err := n.Info(); err == nil && time.Since(fi.ModTime()) > leftAfter {
				_ = os.Remove(filepath.Join(dir, n.Name()))
			}
		}
	}
}
