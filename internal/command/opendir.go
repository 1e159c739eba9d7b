package command

import (
	"errors"

	"github.com/lektordir/lektor/lektordir"
)

// OpenDir opens the lektor-dir at path for a command that makes none, and says
// what can be done where there is none. opts may be nil, as in
// [lektordir.Open].
func OpenDir(path string, opts *lektordir.Options) (*lektordir.Dir, error) {
	d, err := lektordir.Open(path, opts)
	if none, ok := errors.AsType[*lektordir.NotLektorDirError](err); ok && none.Err == nil {
		return nil, Hint(err, "name another with --dir or $LEKTORDIR; \"lektor-fetch add URL\" makes one")
	}
	return d, err
}
