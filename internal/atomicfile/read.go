package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// MaxLine is the most that [Line] reads, in bytes. No value that is kept in a file
// of its own is longer.
const MaxLine = 64 << 10

// first holds the buffers of a file's first read, which is the last for nearly
// all: a run over many feeds, and a listing, consist of little else.
var first = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// Read reads a regular file of at most limit bytes. Nothing in its place can make
// it wait or fill the memory: a directory, a pipe, a device and what is larger
// are errors, an *[fs.PathError] that names the path (of a pipe that somebody
// writes to, a little may be taken). Links are followed.
func Read(path string, limit int64) ([]byte, error) { return ReadAt(unix.AT_FDCWD, path, limit) }

// ReadAt reads as [Read] does, in the directory that is open as the descriptor at.
func ReadAt(at int, path string, limit int64) (data []byte, err error) {
	// A file system of several machines may open a file when it is read, and find it
	// replaced.
	err = Again(func() error { data, err = readAt(at, path, limit); return err })
	return data, err
}

func readAt(at int, path string, limit int64) ([]byte, error) {
	fail := func(op string, err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: path, Err: err}
	}
	fd, err := openToRead(at, path)
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(fd)
	pooled := first.Get().(*[]byte)
	defer first.Put(pooled)
	buf := *pooled
	n, err := retry(func() (int, error) { return unix.Read(fd, buf) })
	switch {
	case err != nil && err != unix.EAGAIN && err != unix.EISDIR:
		return fail("read", err)
	case err == nil && n > 0 && n < len(buf) && int64(n) <= limit:
		// A short read of a regular file is its end.
		return bytes.Clone(buf[:n]), nil
	}
	length, op, err := regular(fd)
	if err != nil {
		return fail(op, err)
	}
	if length > limit {
		return fail("read", fmt.Errorf("larger than %s", size(limit))) // before room is made for it
	}
	out := make([]byte, n, max(length, int64(n))+1)
	copy(out, buf)
	for n > 0 {
		if int64(len(out)) > limit {
			return fail("read", fmt.Errorf("larger than %s", size(limit)))
		}
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		rest := out[len(out):min(cap(out), int(limit)+1)]
		if n, err = retry(func() (int, error) { return unix.Read(fd, rest) }); err != nil {
			return fail("read", err)
		}
		out = out[:len(out)+n]
	}
	return out, nil
}

// OpenRegular opens a regular file to be read piece by piece. As with [Read], nothing in its
// place can make it wait, and what is no regular file is an error.
func OpenRegular(path string) (*os.File, error) {
	var fd int
	err := Again(func() (err error) { fd, err = openToRead(unix.AT_FDCWD, path); return err })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if _, op, err := regular(fd); err != nil {
		_ = unix.Close(fd)
		return nil, &fs.PathError{Op: op, Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openToRead opens a file without waiting for anybody, and for this program alone.
func openToRead(at int, path string) (fd int, err error) {
	return retry(func() (int, error) {
		return unix.Openat(at, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	})
}

// regular returns the length of a regular file in bytes. For any other file it returns an
// error, and op is the operation that failed.
func regular(fd int) (length int64, op string, err error) {
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstat(fd, &st) }); err != nil {
		return 0, "stat", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, "read", errors.New("not a regular file")
	}
	return st.Size, "", nil
}

// Names returns the names in a directory, in no order. A link in its place is an error.
func Names(dir string) ([]string, error) {
	fd, err := Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	return f.Readdirnames(-1)
}

// Line reads the first line of a file, without its newline, as [Read] does. The
// file may have [MaxLine] bytes.
func Line(path string) (string, error) {
	b, err := Read(path, MaxLine)
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(line, "\r"), err
}

func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d kiB", n>>10)
}

// retry is [Retry] for calls that return a number.
func retry(call func() (int, error)) (n int, err error) {
	err = Retry(func() error { n, err = call(); return err })
	return n, err
}
