package lektordir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// Options replaces the clock, host name and process id that a [Dir] uses, for tests.
type Options struct {
	Now   func() time.Time                           // (default time.Now)
	Sleep func(context.Context, time.Duration) error // (default: waits, or returns the error of ctx)
	Host  string                                     // host in unique names (default os.Hostname)
	PID   int                                        // process id in unique names (default os.Getpid)
}

// Dir is an open lektor-dir. It holds no file open, so it is never closed. It is safe for
// concurrent use.
type Dir struct {
	fs    *dirfs.Dir
	feeds sync.Map // hash -> cachedFeed; see FeedOf
}

// dirs are the obligatory subdirectories.
var dirs = []string{"tmp", "new", "cur", "src"}

// Open opens the lektor-dir at path. It returns a [*NotLektorDirError] if new, cur or src is not
// a directory. If tmp is missing, for example in a copy, Open creates it; if it lacks the
// permission, the lektor-dir can still be read. opts may be nil.
func Open(path string, opts *Options) (*Dir, error) {
	abs, err := absolute(path)
	if err != nil {
		return nil, err
	}
	if opts == nil {
		opts = &Options{}
	}
	d := &Dir{fs: dirfs.New(abs, dirfs.Options(*opts))}
	bad := &NotLektorDirError{Path: path}
	for _, name := range dirs {
		fi, err := os.Stat(filepath.Join(abs, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			bad.Missing = append(bad.Missing, name)
		case err != nil:
			bad.Err = err
		case !fi.IsDir():
			bad.Missing = append(bad.Missing, name)
		}
	}
	if slices.Equal(bad.Missing, []string{"tmp"}) && bad.Err == nil {
		tmp := filepath.Join(abs, "tmp")
		_ = os.Mkdir(tmp, 0o777) // another program may be faster
		if fi, err := os.Lstat(tmp); err != nil || fi.IsDir() {
			bad.Missing = nil
		}
	}
	if bad.Missing != nil || bad.Err != nil {
		return nil, bad
	}
	return d, nil
}

// Create opens the lektor-dir at path. It makes the directory, its parents and its
// subdirectories tmp, new, cur and src if they are missing. Existing files stay. When Create
// returns, the directory at path is durable; the first delivery makes its subdirectories
// durable. opts may be nil.
func Create(path string, opts *Options) (*Dir, error) {
	abs, err := absolute(path)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.MkdirAll(filepath.Dir(abs), 0o777); err != nil {
		return nil, err
	}
	switch err := os.Mkdir(abs, 0o700); {
	case err == nil:
		if err := atomicfile.SyncParent(abs); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	for _, name := range dirs {
		if err := os.MkdirAll(filepath.Join(path, name), 0o777); err != nil {
			return nil, err
		}
	}
	return Open(path, opts)
}

// Options returns the options that the lektor-dir was opened with. Fields that were not set
// have their defaults.
func (d *Dir) Options() Options { return Options(d.fs.Options) }

// Path returns the absolute path of the lektor-dir.
func (d *Dir) Path() string { return d.fs.Path }

// Shared reports whether other machines may write to the lektor-dir, by the kind of its file system.
// Times and names may then be cached, and the kernel does not report all changes.
func (d *Dir) Shared() bool { return d.fs.Shared() }

// Join returns the absolute path of a file in the lektor-dir. It joins the elements like
// [filepath.Join].
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(d.fs.Path, filepath.Join(elem...))
}

// absolute returns the absolute path of a lektor-dir. An empty path is an error, because
// [filepath.Abs] would return the working directory.
func absolute(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path of the lektor-dir is empty")
	}
	return filepath.Abs(path)
}

// abs returns the absolute path of an entry.
func (d *Dir) abs(r Ref) string { return d.fs.Path + "/" + r.Path() }

// holds reports whether root, the part of path before new/, cur/ or src/, is this lektor-dir. A
// relative path is relative to the lektor-dir or to the working directory.
func (d *Dir) holds(root, path string) bool {
	if !filepath.IsAbs(path) && root == "." {
		return true
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return false
	}
	return abs == d.fs.Path || atomicfile.Same(abs, d.fs.Path)
}
