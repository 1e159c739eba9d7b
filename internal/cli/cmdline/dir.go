package cmdline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/lektordir/lektor/lektordir"
)

// OpenDir opens the lektor-dir at path for a command that does not create one. If there is none,
// the error has a hint. opts may be nil, as in [lektordir.Open].
func OpenDir(path string, opts *lektordir.Options) (*lektordir.Dir, error) {
	d, err := lektordir.Open(path, opts)
	if none, ok := errors.AsType[*lektordir.NotLektorDirError](err); ok && none.Err == nil {
		return nil, Hint(err, "name another with --dir or $LEKTORDIR; \"lektor-fetch add URL\" makes one")
	}
	return d, err
}

// CreateDir is [OpenDir] for commands that create a missing lektor-dir.
func CreateDir(path string, opts *lektordir.Options) (*lektordir.Dir, error) {
	d, err := OpenDir(path, opts)
	if none, ok := errors.AsType[*lektordir.NotLektorDirError](err); !ok || none.Err != nil {
		return d, err
	}
	// If the path is mistyped, a directory of other files must not get four more directories.
	if names, _ := os.ReadDir(path); len(names) > 0 && !hasPart(names) {
		return nil, Hint(fmt.Errorf("%s holds other files and is not a lektor-dir", path),
			"choose another with --dir or $LEKTORDIR, or: mkdir %s/tmp %[1]s/new %[1]s/cur %[1]s/src", path)
	}
	return lektordir.Create(path, opts)
}

// hasPart reports whether a directory has a part of a lektor-dir, or only hidden files.
func hasPart(names []fs.DirEntry) bool {
	hidden := true
	for _, n := range names {
		if slices.Contains([]string{"tmp", "new", "cur", "src", "etc"}, n.Name()) {
			return true
		}
		hidden = hidden && strings.HasPrefix(n.Name(), ".")
	}
	return hidden
}
