package stamp

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// File is the value of a file, which is read when the file has changed.
type File[T any] struct {
	Path  string
	Max   int64 // size of the file, in bytes
	Parse func(path string, data []byte) (T, error)
	Value T // as it was last loaded
	stamp []Stamp
}

// Load reads the file if it has changed. A missing file is empty.
func (f *File[T]) Load() error {
	reading := Rule{}.Begin(unix.AT_FDCWD, f.stamp, f.Path)
	if !reading.Needed(f.stamp) {
		return nil
	}
	data, err := atomicfile.Read(f.Path, f.Max)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	value, err := f.Parse(f.Path, data)
	if err != nil {
		return err
	}
	f.Value, f.stamp = value, reading.End()
	return nil
}
