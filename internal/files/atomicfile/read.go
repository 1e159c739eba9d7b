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

// MaxLine is the maximum size of a file for [Line], in bytes. No value in a file of its own is
// longer.
const MaxLine = 64 << 10

// first holds the buffers for the first read of each file, which is the last for nearly all
// files. Runs over many feeds and lists consist mostly of such reads.
var first = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// Read reads a regular file of at most limit bytes. It neither blocks nor fills the memory,
// whatever is at the path. For a directory, a pipe, a device or a larger file, it returns an
// *[fs.PathError] with the path. If somebody writes to a pipe at the path, Read may take a little
// of it. Read follows links.
//
// A file of NULs alone counts as empty: a power cut leaves such a file of one that was written without a
// sync.
func Read(path string, limit int64) ([]byte, error) {
	data, err := ReadRaw(path, limit)
	if len(data) > 0 && data[0] == 0 && len(bytes.TrimLeft(data, "\x00")) == 0 {
		data = data[:0]
	}
	return data, err
}

// ReadRaw is [Read] without the rule for NULs: for the files of entries, whose bytes are their
// publisher's, and for logs, whose size counts.
func ReadRaw(path string, limit int64) (data []byte, err error) {
	// A network file system may open a file only when it is read, and then find it replaced.
	err = Again(func() error { data, err = ReadAt(unix.AT_FDCWD, path, limit); return err })
	return data, err
}

// ReadIn is [Read] for a file in a directory that others may write to. Neither the directory nor the
// file may be a link, which could lead to a file that only this user may read.
func ReadIn(dir, name string, limit int64) (data []byte, err error) {
	err = Again(func() error {
		at, err := OpenDir(dir)
		if err != nil {
			return err
		}
		defer at.Close()
		data, err = ReadAt(int(at.Fd()), name, limit)
		return err
	})
	return data, err
}

// Optional returns the result of a function that opens or reads a file, and the zero value without an error
// if the file does not exist.
func Optional[T any](v T, err error) (T, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return *new(T), nil
	}
	return v, err
}

// ReadAt is [ReadRaw] for a path relative to the directory that is open as at. Unless that is
// unix.AT_FDCWD, a link at the path is an error. It does not repeat after ESTALE.
func ReadAt(at int, path string, limit int64) ([]byte, error) {
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
		// A short read of a regular file means its end.
		return bytes.Clone(buf[:n]), nil
	}
	length, op, err := regular(fd)
	if err != nil {
		return fail(op, err)
	}
	if length > limit {
		return fail("read", fmt.Errorf("larger than %s", size(limit))) // checked before memory is allocated
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

// OpenRegular opens a regular file for reading in pieces. Like [Read], it never blocks, and
// returns an error for other kinds of files.
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

// openToRead opens a file without blocking. Child processes do not inherit it.
func openToRead(at int, path string) (fd int, err error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	if at != unix.AT_FDCWD {
		flags |= unix.O_NOFOLLOW
	}
	return retry(func() (int, error) { return unix.Openat(at, path, flags, 0) })
}

// regular returns the size of a regular file in bytes. For any other file it returns an error,
// and op is the operation that failed.
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

// Names returns the names in a directory, unsorted. A link at the path is an error.
func Names(dir string) ([]string, error) {
	f, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// Line reads the first line of a file with [Read], without its newline. The file has at most
// [MaxLine] bytes.
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
