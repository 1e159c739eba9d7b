// Package atomicfile replaces files whole: whoever opens the path sees the
// old content or the new, never a part of either. ([CreateUnsynced] alone
// lets him see the beginning of a file, where there was none.)
//
// Three ways to do so differ in what they promise after a power cut. [Write]
// is for what a user decided: once it returns, the new content is on the disk.
// [WriteUnsynced] is for what can be learned again: it costs no wait for the
// disk, and promises nothing for a power cut. [Output] is for documents that
// are written piece by piece and may be given up halfway.
//
// Temporary files lie in the directory of the file that they replace, so that
// the rename never crosses file systems; their names begin with a dot (see
// [IsTemp]). On an error nothing of them is left; a process that is killed may
// leave one.
//
// A symbolic link at the path is itself replaced by Write and WriteUnsynced,
// never followed; a caller who must not write outside a directory checks the
// directories on the way. All functions but CreateUnsynced are safe for concurrent
// use: of several writers to one path, one wins.
package atomicfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// perm is what a new file may have; the umask takes its part of it.
const perm fs.FileMode = 0o666

// Write replaces the file at path by one with data in it, atomically and
// durably: the file and then its directory are synced before it returns. The
// permissions are those of the file that is replaced, else 0666 less the
// umask. The directory must exist.
//
// An error means that the old content is still there, with one exception: when
// only the sync of the directory failed, the new content is in place, but may
// be the old again after a power cut.
func Write(path string, data []byte) error { return replaceDurably(path, bytesOf(data), asBefore...) }

// asBefore keeps the permissions of the file that is replaced.
var asBefore = []renameio.Option{renameio.WithPermissions(perm), renameio.WithExistingPermissions()}

// WritePrivate is [Write] for what nobody but the user may read: the file has the
// permissions 0600 at any time, whatever the one before had.
func WritePrivate(path string, data []byte) error { return WritePrivateFrom(path, bytesOf(data)) }

// WritePrivateFrom is [WritePrivate] for data that is written piece by piece.
func WritePrivateFrom(path string, from func(io.Writer) error) error {
	return replaceDurably(path, from, renameio.WithStaticPermissions(0o600))
}

func bytesOf(data []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(data); return err }
}

// replaceDurably renames a file that from writes to path, and syncs file and directory.
func replaceDurably(path string, from func(io.Writer) error, options ...renameio.Option) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, append(options, renameio.WithTempDir(dir))...)
	if err != nil {
		return named(err, path)
	}
	defer f.Cleanup() //nolint:errcheck // nothing to do about it, and after success it does nothing
	if err := from(f); err != nil {
		return named(err, path)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return named(err, path)
	}
	return SyncDir(dir)
}

// named makes an error tell of the file that is replaced: the name of a
// temporary one says nothing to anybody.
func named(err error, path string) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && filepath.Dir(pe.Path) == filepath.Dir(path) {
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok && le.New == path {
		if err = le.Err; err == unix.EEXIST {
			err = unix.EISDIR // which is all that a rename leaves as it is
		}
		return &fs.PathError{Op: "replace", Path: path, Err: err}
	}
	return err
}

// WriteUnsynced replaces the file at path by one with data in it, atomically
// for everybody who reads it while the machine runs. It does not wait for the
// disk and promises nothing for a power cut: afterwards the file may have the
// old content, the new, none at all or, on some file systems, a length without
// its bytes. It is for values that a reader can check or do without.
//
// Permissions are as with [Write]. An error means that the old content is
// still there, and that nothing else was left behind.
func WriteUnsynced(path string, data []byte) error {
	f, err := tempFile(path, perm, true)
	if err != nil {
		return named(err, path)
	}
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return named(err, path)
	}
	return nil
}

// CreateUnsynced is [WriteUnsynced] for a file that is not there yet, at half the
// cost, where an empty one, or for data longer than a page the beginning of one,
// means as much as none: that is what others may find until CreateUnsynced
// returns, and what a kill in the middle leaves. One that has come meanwhile is
// replaced. Only one writer may be at work on the path.
func CreateUnsynced(path string, data []byte) error {
	f, err := openNew(path, perm)
	if errors.Is(err, fs.ErrExist) {
		return WriteUnsynced(path, data)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = cmp.Or(err, f.Close())
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// openNew opens a file that is not there yet for writing. [os.OpenFile] would offer
// it to the poller, which never wants a file: five system calls for nothing.
func openNew(path string, mode fs.FileMode) (*os.File, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, uint32(mode.Perm()))
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// tempFile opens a new file beside path. If keep is true and there is a regular file at
// path, it has the permissions of that one, else mode.
func tempFile(path string, mode fs.FileMode, keep bool) (*os.File, error) {
	chmod := !keep // nothing is taken from them by the umask
	if fi, err := os.Lstat(path); keep && err == nil && fi.Mode().IsRegular() {
		mode, chmod = fi.Mode().Perm(), true
	}
	prefix := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	for try := 0; ; try++ {
		name := prefix + strconv.FormatInt(rand.Int64N(9e15)+1e15, 10)
		f, err := openNew(name, mode)
		if errors.Is(err, fs.ErrExist) && try < 100 {
			continue
		}
		if err != nil {
			return nil, err
		}
		if chmod {
			// The umask may have taken bits that the old file has.
			if fi, err := f.Stat(); err != nil || fi.Mode().Perm() != mode {
				if err == nil {
					err = f.Chmod(mode)
				}
				if err != nil {
					_ = f.Close()
					_ = os.Remove(name)
					return nil, err
				}
			}
		}
		return f, nil
	}
}

// Remove removes the file at path durably: its directory is synced before it
// returns. A file that is not there is no error; a process that was killed may
// have removed it and not synced, so the directory is synced even then.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := SyncDir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirAll makes a directory, and those above it, as os.MkdirAll does, but durably: what
// is written into it later is not lost with it.
func MkdirAll(path string, perm fs.FileMode) error {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, perm); err != nil {
		fi, serr := os.Stat(path)
		if serr == nil && !fi.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: unix.ENOTDIR}
		}
		if serr != nil {
			return err
		}
	}
	return SyncDir(parent) // also of one that somebody else made just now
}

// IsTemp tells whether name (without directories) is one that a temporary file
// for the file called base can have. A kill at the wrong moment leaves such a
// file; nothing but a cleaner of old ones needs to know.
func IsTemp(name, base string) bool {
	digits, ok := strings.CutPrefix(name, "."+base)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// Output replaces the file at path, atomically and durably as [Write] does, by what
// from writes; after an error of from it is as it was. Temporary files that kills have
// left are removed before, see [Sweep].
//
// Unlike Write it is made for paths that a user gives on a command line, such
// as the argument of --output: a symbolic link to a file is followed and stays
// one, and what is no regular file (/dev/null, a named pipe, a terminal) is
// written to directly, since replacing it could only do harm; then nothing that
// was written can be taken back.
func Output(path string, from func(io.Writer) error) error {
	if fi, err := os.Stat(path); err == nil {
		if fi.IsDir() {
			return &fs.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
		}
		if !fi.Mode().IsRegular() {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			return cmp.Or(from(f), f.Close())
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	Sweep(path)
	return replaceDurably(path, from, asBefore...)
}

// SyncDir makes what happened in a directory durable: renames, and names that are new
// or gone.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}
