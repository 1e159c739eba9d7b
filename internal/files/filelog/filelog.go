// Package filelog maintains logs: files of lines that a process appends to and recovers
// after a kill. A kill or a full disk leaves at most a part of the last append at the end
// of the file. The next process that opens the log removes that before it appends.
//
// The package knows no format. A caller that needs more than complete lines, such as a
// checksum in each, passes a function that validates a line.
package filelog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// ErrLocked is the error for a log that another process has locked.
var ErrLocked = errors.New("another process has it locked")

// Options are the options of [Open] and [Read].
type Options struct {
	// Valid reports whether a line, without its newline, is valid; nil accepts every line.
	// The log ends after the last valid line. Invalid lines before it stay in the file, and
	// the caller must skip them.
	Valid func(line []byte) bool

	// Max is the maximum size of the log, in bytes (default 64 MiB). A larger one is an
	// error.
	Max int64

	// Perm is the mode of a new file, before the umask (default 0666).
	Perm fs.FileMode

	// New creates a file, and fails with [fs.ErrExist] if it exists.
	New bool

	// Lock locks the file by flock(2) until Close, and fails with ErrLocked if another
	// process holds the lock. It has no effect on a file system without locks. A locked log
	// cannot be replaced, because the lock would stay with the old file.
	Lock bool
}

const defaultMax = 64 << 20

// Log is a log that is open for appending. It is not safe for concurrent use. Only one
// process may use it, because appends go to the end that this process knows: a caller
// without Options.Lock must hold another lock.
type Log struct {
	f       *os.File
	created bool
	locked  bool
	size    int64 // size of the valid part, in bytes
	torn    bool  // there may be bytes after the valid part
	stale   bool  // f was replaced, and the new file is not open yet
}

// Read returns the log up to its last valid line. A log that does not exist is empty.
func Read(path string, o Options) ([]byte, error) {
	data, err := atomicfile.Optional(atomicfile.ReadRaw(path, cmp.Or(o.Max, defaultMax)))
	return data[:end(data, o.Valid)], err
}

// end returns the length of data up to the end of the last valid line.
func end(data []byte, valid func([]byte) bool) int {
	for n := bytes.LastIndexByte(data, '\n') + 1; n > 0; {
		begin := bytes.LastIndexByte(data[:n-1], '\n') + 1
		if valid == nil || valid(data[begin:n-1]) {
			return n
		}
		n = begin
	}
	return 0
}

// Open opens or creates a log, and returns what [Read] returns. The directory must exist.
// Symbolic links are not followed. The caller must call Close.
func Open(path string, o Options) (*Log, []byte, error) {
	for {
		l, err := open(path, o)
		if err != nil {
			return nil, nil, err
		}
		if o.Lock {
			err = l.lock()
		}
		var data []byte
		if err == nil {
			data, err = atomicfile.ReadRaw(path, cmp.Or(o.Max, defaultMax))
		}
		if err == nil {
			n := end(data, o.Valid)
			l.size, l.torn = int64(n), n < len(data)
			return l, data[:n], nil
		}
		l.Close()
		if !errors.Is(err, fs.ErrNotExist) { // else it was removed since it was opened
			return nil, nil, err
		}
	}
}

// ErrChanged is the error of [Resume] if the log has changed.
var ErrChanged = errors.New("another process changed it")

// Resume opens a log without reading it, for a caller that has read it. The file has size
// bytes, of which the first good are valid. Resume returns ErrChanged if the size differs,
// and creates the log if it does not exist and size is 0. The caller must have held a lock
// since it read the file. Symbolic links are not followed. The caller must call Close.
func Resume(path string, good, size int64) (*Log, error) {
	l, err := open(path, Options{})
	if err != nil {
		return nil, err
	}
	fi, err := l.f.Stat()
	if err == nil && fi.Size() != size {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrChanged}
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	l.size, l.torn = good, good < size
	return l, nil
}

func open(path string, o Options) (*Log, error) {
	perm := cmp.Or(o.Perm, 0o666)
	const flags = os.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, perm)
	created := err == nil
	if errors.Is(err, fs.ErrExist) && !o.New {
		f, err = os.OpenFile(path, flags|os.O_CREATE, perm)
	}
	if err != nil {
		return nil, err
	}
	return &Log{f: f, created: created}, nil
}

// lock locks the file. The error is [fs.ErrNotExist] if it is no longer in place.
func (l *Log) lock() error {
	if err := atomicfile.Hold(l.f, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", l.f.Name(), ErrLocked)
	}
	l.locked = true
	inPlace, err := atomicfile.InPlace(l.f)
	if err == nil && !inPlace {
		err = fs.ErrNotExist
	}
	return err
}

// Size returns the size of the valid part, in bytes, with all appended lines.
func (l *Log) Size() int64 { return l.size }

// Append appends lines, each with its newline. After an error, none is appended. The lines survive
// a kill when Append returns, and a power cut when [Log.Sync] returns.
func (l *Log) Append(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if err := l.reopen(); err != nil {
		return err
	}
	if l.torn {
		if err := l.f.Truncate(l.size); err != nil {
			return err
		}
		l.torn = false
	}
	if _, err := l.f.WriteAt(lines, l.size); err != nil {
		l.torn = l.f.Truncate(l.size) != nil
		return err
	}
	l.size += int64(len(lines))
	return nil
}

// Cut truncates the log to an earlier size. If that fails, the next Append tries again, and
// fails if it cannot.
func (l *Log) Cut(size int64) {
	l.size = min(l.size, size)
	l.torn = l.stale || l.f.Truncate(l.size) != nil
}

// Sync makes the log durable, and its name, if this Log created it.
func (l *Log) Sync() error {
	if err := l.reopen(); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	if !l.created {
		return nil
	}
	err := atomicfile.SyncDir(filepath.Dir(l.f.Name()))
	l.created = err != nil
	return err
}

// Replace replaces the file by one with these lines, for compaction, and continues with the
// new file. write is a function of package atomicfile, so readers see the old or the new
// log. After an error, Log uses the file that is in place: the old one, or the new one,
// which may not be durable.
func (l *Log) Replace(lines []byte, write func(path string, data []byte) error) error {
	if l.locked {
		return fmt.Errorf("%s: a locked log is not replaced", l.f.Name())
	}
	err := write(l.f.Name(), lines)
	if err != nil {
		if inPlace, lerr := atomicfile.InPlace(l.f); inPlace || lerr != nil {
			return err
		}
	}
	l.size, l.torn, l.created, l.stale = int64(len(lines)), false, true, true
	if oerr := l.reopen(); oerr != nil {
		return oerr
	}
	return err
}

// reopen opens the new file after [Log.Replace]. Lines that were appended to the old one
// would be lost.
func (l *Log) reopen() error {
	if !l.stale {
		return nil
	}
	next, err := os.OpenFile(l.f.Name(), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_ = l.f.Close()
	l.f, l.stale = next, false
	return nil
}

// Remove removes the file. The caller must still call Close.
func (l *Log) Remove() error { return os.Remove(l.f.Name()) }

// Close closes the log and releases its lock.
func (l *Log) Close() error { return l.f.Close() }
