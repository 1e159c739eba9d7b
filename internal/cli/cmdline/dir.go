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
	if path == "" {
		return nil, Hint(errors.New("there is no home directory to keep feeds in"), "give --dir or set $LEKTORDIR")
	}
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

// CreateDirUnless is [CreateDir], but in a dry run an empty temporary directory replaces a missing
// lektor-dir. The caller must call end.
func CreateDirUnless(dryRun bool, path string, opts *lektordir.Options) (d *lektordir.Dir, end func(), err error) {
	end = func() {}
	if _, missing := os.Lstat(path); dryRun && path != "" && errors.Is(missing, fs.ErrNotExist) {
		if path, err = os.MkdirTemp("", "lektor-dry-run-"); err != nil {
			return nil, end, err
		}
		end = func() { os.RemoveAll(path) }
	}
	if d, err = CreateDir(path, opts); err != nil {
		end()
	}
	return d, end, err
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
