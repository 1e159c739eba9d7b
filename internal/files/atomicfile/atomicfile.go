// Package atomicfile replaces files atomically: a reader sees the old content or the new, never a
// part of either. (Only [CreateUnsynced] lets a reader see the beginning of a file that did not
// exist before.)
//
// The functions differ in what they guarantee after a power cut. [Write] is for decisions of the
// user: after it returns, the new content is on disk. [WriteUnsynced] is for data that can be
// restored: it does not wait for the disk, and guarantees nothing after a power cut. [Output] is
// for documents that are written in pieces and may be abandoned.
//
// Temporary files are in the directory of the file that they replace, so that the rename never
// crosses file systems; their names begin with a dot (see [IsTemp]). After an error they are
// removed; a process that is killed may leave one.
//
// Write and WriteUnsynced replace a symbolic link at the path, and never follow it; a caller that
// must not write outside a directory must check the directories on the path. All functions except
// CreateUnsynced are safe for concurrent use: of several writers to one path, one wins.
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

// perm is the mode of a new file, before the umask.
const perm fs.FileMode = 0o666

// Write replaces the file at path atomically and durably: it syncs the file and then its directory
// before it returns. The file keeps its permissions; a new one has 0666 minus the umask. The
// directory must exist.
//
// After an error the old content is still there, with one exception: if only the sync of the
// directory failed, the new content is in place, but a power cut may restore the old.
func Write(path string, data []byte) error { return replaceDurably(path, bytesOf(data), asBefore...) }

// asBefore keeps the permissions of the replaced file.
var asBefore = []renameio.Option{renameio.WithPermissions(perm), renameio.WithExistingPermissions()}

// WritePrivate is [Write] for data that only the user may read: the file always has the permissions
// 0600, whatever it had before.
func WritePrivate(path string, data []byte) error { return WritePrivateFrom(path, bytesOf(data)) }

// WritePrivateFrom is [WritePrivate] for data that is written in pieces.
func WritePrivateFrom(path string, from func(io.Writer) error) error {
	return replaceDurably(path, from, renameio.WithStaticPermissions(0o600))
}

func bytesOf(data []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(data); return err }
}

// pending creates a temporary file beside path.
func pending(path string, options ...renameio.Option) (*renameio.PendingFile, error) {
	return renameio.NewPendingFile(path, append(options, renameio.WithTempDir(filepath.Dir(path)))...)
}

// replaceDurably replaces the file at path by the output of from, and syncs file and directory.
func replaceDurably(path string, from func(io.Writer) error, options ...renameio.Option) error {
	f, err := pending(path, options...)
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
	return SyncDir(filepath.Dir(path))
}

// named replaces the name of the temporary file in an error by path.
func named(err error, path string) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && filepath.Dir(pe.Path) == filepath.Dir(path) {
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok && le.New == path {
		if err = le.Err; err == unix.EEXIST {
			err = unix.EISDIR // a rename fails only if path is a directory
		}
		return &fs.PathError{Op: "replace", Path: path, Err: err}
	}
	return err
}

// WriteUnsynced replaces the file at path atomically, as long as the machine runs. It does not sync
// and guarantees nothing after a power cut: then the file may have the old content, the new, none
// at all or, on some file systems, its length without its bytes. It is for values that a reader can
// check or do without.
//
// Permissions are as with [Write]. After an error the old content is still there, without any
// temporary file.
func WriteUnsynced(path string, data []byte) error {
	f, err := tempFile(path)
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

// CreateUnsynced is [WriteUnsynced] for a file that does not exist yet, at half the cost. Until it
// returns, and after a kill, readers may see an empty file or, for data longer than a page, the
// beginning, so they must treat that as a missing file. If the file exists, it is replaced. Only
// one writer may write to the path.
func CreateUnsynced(path string, data []byte) error {
	f, err := Create(unix.AT_FDCWD, path, path)
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

// Create creates a file for writing: name, which is relative to the directory that is open as at. path is
// its name in errors.
func Create(at int, name, path string) (*os.File, error) { return create(at, name, path, perm) }

// create is Create with permissions. [os.OpenFile] would register the file with the poller, which does not
// support files: five system calls for nothing.
func create(at int, name, path string, mode fs.FileMode) (*os.File, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, uint32(mode.Perm()))
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// tempFile creates a file beside path, in fewer system calls than renameio, as each fetch of a feed writes several. If
// there is a regular file at path, it has the permissions of that one.
func tempFile(path string) (*os.File, error) {
	mode := perm
	fi, err := os.Lstat(path)
	old := err == nil && fi.Mode().IsRegular()
	if old {
		mode = fi.Mode().Perm()
	}
	prefix := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	for try := 0; ; try++ {
		temp := prefix + strconv.FormatInt(rand.Int64N(9e15)+1e15, 10)
		f, err := create(unix.AT_FDCWD, temp, temp, mode)
		if errors.Is(err, fs.ErrExist) && try < 100 {
			continue
		}
		if err != nil || !old {
			return f, err
		}
		// The umask may have removed bits that the old file has.
		if fi, err = f.Stat(); err == nil && fi.Mode().Perm() != mode {
			err = f.Chmod(mode)
		}
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
		return f, err
	}
}

// Remove removes the file at path durably: it syncs the directory before it returns. It returns nil
// if the file does not exist, and syncs even then, as a killed process may have removed it without
// a sync.
func Remove(path string) error {
	if err := RemoveUnsynced(path); err != nil {
		return err
	}
	_, err := Optional(0, SyncDir(filepath.Dir(path)))
	return err
}

// MkdirAll creates a directory and its parents like os.MkdirAll, but durably, so that a power cut
// does not remove it with the files in it.
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
	return SyncParent(path) // also if another process has just created it
}

// SyncParent makes the name of a new directory durable. A directory around it that is writable and not readable
// cannot be synced.
func SyncParent(path string) error {
	if err := SyncDir(filepath.Dir(path)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// InDir calls do, which creates the file at path, and again after it has made the directory if that does
// not exist.
func InDir(path string, do func() error) error {
	err := do()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = do()
		}
	}
	return err
}

// RemoveUnsynced is [Remove] without a sync.
func RemoveUnsynced(path string) error {
	_, err := Optional(0, os.Remove(path))
	return err
}

// IsTemp reports whether name (without directories) may be a temporary file for the file base. A
// killed process may leave one; only [Sweep] and other cleaners need IsTemp.
func IsTemp(name, base string) bool {
	digits, ok := strings.CutPrefix(name, "."+base)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// Output replaces the file at path by the output of from, atomically and durably like [Write]; if
// from fails, the file is unchanged. It first removes temporary files of killed processes, see
// [Sweep].
//
// Unlike Write, it is for paths that a user names on a command line, such as the argument of
// --output: it follows a symbolic link to a file, and writes directly to anything that is not a
// regular file (/dev/null, a named pipe, a terminal); then it cannot undo a partial write.
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

// SyncDir syncs a directory, so that renames, new names and removals in it are durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}
