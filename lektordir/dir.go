package lektordir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options inject what a lektor-dir takes from its surroundings. The zero value
// takes the real ones.
type Options struct {
	Now   func() time.Time                           // default time.Now
	Sleep func(context.Context, time.Duration) error // default: sleeps, or returns the context's error
	Host  string                                     // default os.Hostname; escaped by EscapeHost
	PID   int                                        // default os.Getpid
	// SlowSync makes delivery sync every file and directory by itself even
	// where one call could sync the whole file system.
	SlowSync bool
}

// Dir is an open lektor-dir. It holds no file open and needs no closing.
type Dir struct {
	path string // absolute
	opts Options
	host string
	seq  atomic.Int64

	rename  func(from, to string) error                                // renameNoReplace, but in tests
	link    func(fromDir int, from string, toDir int, to string) error // linkat, but in tests
	readDir func(*os.File) ([]os.DirEntry, error)                      // readEntries, but in tests

	shared func() bool // other machines may have it, see Fresh

	feeds sync.Map // hash -> knownFeed, of feeds read by FeedOf
}

// dirs are the obligatory subdirectories.
var dirs = []string{"tmp", "new", "cur", "src"}

// NotLektorDirError is returned by [Open] for a directory that is none.
type NotLektorDirError struct {
	Path    string
	Missing []string // of tmp, new, cur and src; all when Path itself is missing
	Err     error    // why, when it is not just missing
}

func (e *NotLektorDirError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s is no lektor-dir: %v", e.Path, e.Err)
	}
	if len(e.Missing) == len(dirs) {
		if _, err := os.Stat(e.Path); err != nil {
			return fmt.Sprintf("there is no lektor-dir at %s", e.Path)
		}
	}
	return fmt.Sprintf("%s is no lektor-dir: it has no directory %s", e.Path, strings.Join(e.Missing, ", "))
}

func (e *NotLektorDirError) Unwrap() error { return e.Err }

// Open opens the lektor-dir at path. It returns a [*NotLektorDirError] unless
// the directories new, cur and src are there. tmp is made where nothing has its
// name, as in a copy that left it out; one that cannot be written to can be read
// without. opts may be nil.
func Open(path string, opts *Options) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: abs, rename: renameNoReplace, link: linkat, readDir: readEntries}
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.Now == nil {
		d.opts.Now = time.Now
	}
	if d.opts.Sleep == nil {
		d.opts.Sleep = sleep
	}
	if d.opts.PID == 0 {
		d.opts.PID = os.Getpid()
	}
	if d.opts.Host == "" {
		// A machine without a name still has unique times and pids.
		d.opts.Host, _ = os.Hostname()
	}
	d.host = EscapeHost(d.opts.Host)
	d.shared = sync.OnceValue(func() bool { return sharedFS(abs + "/src") })
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
		err := os.Mkdir(tmp, 0o777)
		if errors.Is(err, fs.ErrExist) {
			// Another program may have been faster.
			if fi, serr := os.Stat(tmp); serr == nil && fi.IsDir() {
				err = nil
			}
		}
		if !errors.Is(err, fs.ErrExist) {
			bad.Missing = nil
		}
	}
	if bad.Missing != nil || bad.Err != nil {
		return nil, bad
	}
	return d, nil
}

// Create opens the lektor-dir at path, and makes the directory and its
// subdirectories where they are missing. What is there already stays. The names
// of new directories are synced up to the subdirectories, which delivery sees to.
func Create(path string, opts *Options) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	var parents []string // of directories that are missing
	for p := abs; ; p = filepath.Dir(p) {
		if _, err := lstat(p); err == nil || p == filepath.Dir(p) {
			break
		}
		parents = append(parents, filepath.Dir(p))
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o777); err != nil {
		return nil, err
	}
	if err := os.Mkdir(abs, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for _, name := range dirs {
		if err := os.MkdirAll(filepath.Join(path, name), 0o777); err != nil {
			return nil, err
		}
	}
	for _, p := range parents {
		// One that may be written and not read cannot be synced.
		if err := syncPath(p); err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
	}
	return Open(path, opts)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Path is the absolute path of the lektor-dir.
func (d *Dir) Path() string { return d.path }

// Join gives the absolute path of something in the lektor-dir.
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(d.path, filepath.Join(elem...))
}

// Abs gives the absolute path of an entry.
func (d *Dir) Abs(r Ref) string { return d.path + "/" + r.Path() }

// SrcEtc gives the absolute path of a feed's extra information in the area of
// a program, src/$feed/etc/AREA (specification, "A lektor-dir can contain other
// information"); it need not exist.
func (d *Dir) SrcEtc(feed, area string) string {
	return d.Join("src", feed, "etc", area)
}

// Inside returns an error unless each of the paths, relative to the lektor-dir,
// is a directory or not there. Whoever is about to write to files of a feed or
// of a program asks it for the directories on the way, one after the other: a
// link in the place of one may lead out of the lektor-dir, where nothing is to be
// written, moved or deleted.
func (d *Dir) Inside(rels ...string) error {
	for _, rel := range rels {
		if err := d.inside(rel); err != nil && !isNotExist(err) {
			return err
		}
	}
	return nil
}

// InsideSrc is [Dir.Inside] for the directories on the way to a feed's extra
// information in the area of a program; an empty area stands for src/$feed/etc.
func (d *Dir) InsideSrc(feed, area string) error {
	base := "src/" + feed
	if err := d.Inside(base, base+"/etc"); err != nil || area == "" {
		return err
	}
	return d.Inside(base + "/etc/" + area)
}
