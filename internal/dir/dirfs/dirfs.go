// Package dirfs implements the file operations of a lektor-dir: it lists entries by their names,
// moves them without replacing others, and syncs them. It reads no file of an entry.
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

	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/files/workers"
)

// Options has the fields of lektordir.Options.
type Options struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Host  string
	PID   int
}

// Defaults returns the options with defaults for the fields that are not set.
func (o Options) Defaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = workers.Sleep
	}
	if o.PID == 0 {
		o.PID = os.Getpid()
	}
	if o.Host == "" {
		// Without a host name, time and pid still make names unique.
		o.Host, _ = os.Hostname()
	}
	return o
}

// Dir is a lektor-dir. It holds no file open, and is safe for concurrent use.
type Dir struct {
	Options
	Path string // absolute

	host   string // escaped
	seq    atomic.Int64
	shared func() bool // reports whether other machines may use it

	Stamps   stamp.Rule // decides whether a reading is whole, in tests that do not wait for the clock
	SlowSync bool       // syncs each file separately, in tests, even if one call could sync the whole file system

	// System calls, which tests replace to make them fail or wait.
	Rename  func(from, to string) error
	Link    func(fromDir int, from string, toDir int, to string) error
	ReadDir func(*os.File) ([]os.DirEntry, error)
}

// New returns the lektor-dir at an absolute path. It neither reads nor writes files.
func New(path string, o Options) *Dir {
	d := &Dir{Options: o.Defaults(), Path: path, Rename: RenameNoReplace, Link: linkat, ReadDir: readEntries}
	d.host = entryname.EscapeHost(d.Host)
	d.shared = sync.OnceValue(func() bool { return sharedFS(path + "/src") })
	return d
}

// linkat makes a hard link. It does not follow symbolic links.
func linkat(fromDir int, from string, toDir int, to string) error {
	return atomicfile.Again(func() error { return unix.Linkat(fromDir, from, toDir, to, 0) })
}

// Share makes [Dir.Shared] return true, for tests.
func (d *Dir) Share() { d.shared = func() bool { return true } }

// Join returns the absolute path of a file in the lektor-dir.
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(d.Path, filepath.Join(elem...))
}

// Unique returns a new unique name with a time and an identity.
func (d *Dir) Unique(now time.Time, identity string) string {
	return entryname.Unique(now, d.PID, d.seq.Add(1), identity, d.host)
}

// Ours reports whether lektor made a unique name on this machine.
func (d *Dir) Ours(unique string) bool {
	p, ok := entryname.Split(unique)
	return ok && p.Host == d.host
}

// Inside returns an error unless all of the paths, which are relative to the lektor-dir, are
// directories and not symbolic links: a link may lead out of the lektor-dir, where nothing may be
// written, moved or deleted. Pass every directory on the path of a file, except new, cur and the
// like, which may be links.
func (d *Dir) Inside(rels ...string) error { return atomicfile.AllDirs(d.Path, rels...) }

// Feeds lists the names in a directory of feeds (tmp, new, cur or src), sorted, without dot
// files.
func (d *Dir) Feeds(place string) ([]string, error) { return FeedsIn(d.Join(place)) }

// FeedsIn is [Dir.Feeds] of the directory at a path.
func FeedsIn(dir string) ([]string, error) {
	ents, err := os.ReadDir(dir)
	names := make([]string, 0, len(ents))
	for _, e := range ents {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if t := e.Type(); t.IsDir() || t&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Names lists a directory without dot files. A symbolic link is an error.
func Names(dir string) ([]string, error) {
	names, err := AllNames(dir)
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, ".") }), err
}

// AllNames is like [Names], but includes dot files.
func AllNames(dir string) ([]string, error) {
	names, err := atomicfile.Names(dir)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = &os.PathError{Op: "open", Path: dir, Err: atomicfile.ErrNotDir}
	}
	return names, err
}

// maxFile is the maximum size of a file to read, in bytes. lektor writes no file of that size, but
// other programs may.
const maxFile = 256 << 20

// ReadFile reads a file of an entry or a feed.
func ReadFile(path string) ([]byte, error) { return atomicfile.ReadRaw(path, maxFile) }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
