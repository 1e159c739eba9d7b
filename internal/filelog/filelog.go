// Package filelog keeps logs: files of lines to which a process appends, and which it
// recovers after a kill. A kill, or a full disk, leaves at most a part of what was appended
// last at the end of the file. The next process that opens the log cuts that off before it
// appends anything.
//
// The package knows no format. A caller that wants more than whole lines, such as a
// checksum in each, passes a function that reports whether a line is valid.
package filelog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// ErrLocked is the error for a log that another process has locked.
var ErrLocked = errors.New("another process has it locked")

// Options are how a log is opened.
type Options struct {
	// Valid reports whether a line, without its newline, counts; nil means that each does.
	// The log ends behind the last line that counts. Lines before it that do not count stay
	// in the file, and are for the caller to pass over.
	Valid func(line []byte) bool

	// Max is the most bytes that are read (default 64 MiB). A larger log is an error.
	Max int64

	// Perm is the mode of a new file, before the umask (default 0666).
	Perm fs.FileMode

	// New makes a file, and fails with [fs.ErrExist] if there is one.
	New bool

	// Lock locks the file itself until Close, by flock(2), and fails with ErrLocked if
	// another process has it. On a file system without locks it does nothing. A locked
	// log has no Replace: the lock would stay with the old file.
	Lock bool
}

const defaultMax = 64 << 20

func (o Options) max() int64 {
	if o.Max > 0 {
		return o.Max
	}
	return defaultMax
}

// Log is a log that is open for appending. It belongs to one goroutine, and, since appends
// go to the end as this process knows it, to one process: a caller without Options.Lock
// holds another lock.
type Log struct {
	f       *os.File
	created bool
	locked  bool
	size    int64 // of the lines that count
	torn    bool  // the file may have something behind them
	stale   bool  // f was replaced, and what is in its place is not open yet
}

// Read returns the lines of a log that count, and those between them. A log that does not
// exist is empty.
func Read(path string, o Options) ([]byte, error) {
	data, err := atomicfile.Read(path, o.max())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data[:end(data, o.Valid)], err
}

// end returns the length of data up to the end of the last line that counts.
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

// Open opens a log, which it makes if there is none, and returns what [Read] does. Its
// directory must exist. Links are not followed. The caller must call Close.
func Open(path string, o Options) (*Log, []byte, error) {
	for {
		l, err := open(path, o)
		if err != nil {
			return nil, nil, err
		}
		if o.Lock {
			// The file may have been removed between open and lock.
			there, err := l.lock()
			if err != nil {
				l.Close()
				return nil, nil, err
			}
			if !there {
				l.Close()
				continue
			}
		}
		data, err := atomicfile.Read(path, o.max())
		if err != nil {
			l.Close()
			return nil, nil, err
		}
		n := end(data, o.Valid)
		l.size, l.torn = int64(n), n < len(data)
		return l, data[:n], nil
	}
}

// ErrChanged is the error for a log that is not as the caller of [Resume] read it.
var ErrChanged = errors.New("another process changed it")

// Resume opens a log without reading it, for a caller that has read it: its lines that count
// are the first good bytes of a file of size bytes. A file of another size is ErrChanged,
// and a log that does not exist is made if size is 0. The caller guarantees that nobody has
// written to the file since it was read, by a lock that it has held since before. Links are
// not followed. The caller must call Close.
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
	perm := o.Perm
	if perm == 0 {
		perm = 0o666
	}
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

func (l *Log) lock() (there bool, err error) {
	if err := atomicfile.Hold(l.f, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return false, fmt.Errorf("%s: %w", l.f.Name(), ErrLocked)
	}
	l.locked = true
	there, err = atomicfile.InPlace(l.f)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return there, err
}

// Size returns the bytes of the lines that count, with all that was appended.
func (l *Log) Size() int64 { return l.size }

// Append appends lines, each with its newline: all of them, or after an error none. They
// survive a kill when Append returns, and a power cut when [Log.Sync] does.
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

// Cut takes back what was appended since the log had this size. If the file cannot be
// truncated, the next Append tries that again, and fails if it cannot.
func (l *Log) Cut(size int64) {
	l.size = min(l.size, size)
	l.torn = l.stale || l.f.Truncate(l.size) != nil
}

// Sync makes the log durable, and its name if this Log made it.
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

// Replace puts a file with these lines in the place of the log, as compacting does, and
// goes on with it. It writes the file by write, which is one of package atomicfile's:
// readers see the old log or the new one. After an error the log is the one that is in
// place: the old one, or the new one, which may not survive a power cut then.
func (l *Log) Replace(lines []byte, write func(path string, data []byte) error) error {
	if l.locked {
		return fmt.Errorf("%s: a locked log is not replaced", l.f.Name())
	}
	err := write(l.f.Name(), lines)
	if err != nil {
		if there, lerr := atomicfile.InPlace(l.f); there || lerr != nil {
			return err
		}
	}
	l.size, l.torn, l.created, l.stale = int64(len(lines)), false, true, true
	if oerr := l.reopen(); oerr != nil {
		return oerr
	}
	return err
}

// reopen opens the file that is in the place of the log, after [Log.Replace]. Lines that
// were appended to the old one would be lost.
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

// Remove removes the file. The log must still be closed.
func (l *Log) Remove() error { return os.Remove(l.f.Name()) }

// Close closes the log, and ends its lock.
func (l *Log) Close() error { return l.f.Close() }
