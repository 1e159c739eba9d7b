// Package dirfs is the file operations of a lektor-dir: entries listed by their names, moved
// without replacing one, and synced. It opens no entry.
package dirfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/entryname"
)

// Options are those of a lektor-dir (lektordir.Options).
type Options struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Host  string
	PID   int
}

// Defaults returns the options with the real surroundings in place of what is not set.
func (o Options) Defaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.PID == 0 {
		o.PID = os.Getpid()
	}
	if o.Host == "" {
		// A machine without a name still has unique times and pids.
		o.Host, _ = os.Hostname()
	}
	return o
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

// Dir is a lektor-dir as directories and names. It holds no file open, and is safe for
// concurrent use.
type Dir struct {
	Options
	Path string // absolute

	host   string // escaped
	seq    atomic.Int64
	shared func() bool // whether other machines may have it

	// For tests: the system calls that they fail or delay.
	Rename  func(from, to string) error
	Link    func(fromDir int, from string, toDir int, to string) error
	ReadDir func(*os.File) ([]os.DirEntry, error)
}

// New returns the lektor-dir at an absolute path. It touches nothing.
func New(path string, o Options) *Dir {
	d := &Dir{Options: o.Defaults(), Path: path, Rename: RenameNoReplace, Link: linkat, ReadDir: readEntries}
	d.host = entryname.EscapeHost(d.Host)
	d.shared = sync.OnceValue(func() bool { return sharedFS(path + "/src") })
	return d
}

// linkat makes a further name of a file, never of what a link leads to.
func linkat(fromDir int, from string, toDir int, to string) error {
	return atomicfile.Again(func() error { return unix.Linkat(fromDir, from, toDir, to, 0) })
}

// Share makes the directory one that other machines may have, for tests.
func (d *Dir) Share() { d.shared = func() bool { return true } }

// Join returns the absolute path of something in the lektor-dir.
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(d.Path, filepath.Join(elem...))
}

// Unique returns a fresh unique name with a time and an identity.
func (d *Dir) Unique(now time.Time, identity string) string {
	return entryname.Unique(now, d.PID, d.seq.Add(1), identity, d.host)
}

// Ours reports whether a unique name is of lektor's form and of this machine.
func (d *Dir) Ours(unique string) bool {
	p, ok := entryname.Split(unique)
	return ok && p.Host == d.host
}

// Inside returns an error unless all of the paths, relative to the lektor-dir,
// are directories. A link may lead out of the lektor-dir, where nothing is to be
// written, moved or deleted. The obligatory directories themselves may be links.
func (d *Dir) Inside(rels ...string) error { return atomicfile.AllDirs(d.Path, rels...) }

// errNotDir is the error for a link or a file in the place of a directory.
var errNotDir = atomicfile.ErrNotDir

// Feeds lists the names in a directory of feeds (tmp, new, cur or src), sorted, without dot
// files.
func (d *Dir) Feeds(place string) ([]string, error) {
	f, err := os.Open(d.Join(place))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ents, err := f.ReadDir(-1)
	names := make([]string, 0, len(ents))
	for _, e := range ents {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if t := e.Type(); t.IsDir() || t&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// Names lists a directory, which must not be behind a link, without dot files.
func Names(dir string) ([]string, error) {
	names, err := AllNames(dir)
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, ".") }), err
}

// AllNames is [Names] with dot files.
func AllNames(dir string) ([]string, error) {
	names, err := atomicfile.Names(dir)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = &os.PathError{Op: "open", Path: dir, Err: errNotDir}
	}
	return names, err
}

// maxFile is the largest file that is read into memory. No fetcher of ours
// writes one that long; the bound is against what others may have put there.
const maxFile = 256 << 20

// ReadFile reads a file of an entry or a feed.
func ReadFile(path string) ([]byte, error) { return atomicfile.Read(path, maxFile) }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
