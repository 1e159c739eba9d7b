package atomicfile

import (
	"cmp"
	"io"
	"io/fs"
)

// CreatePrivateFrom creates a file at path with the output of from. The file has the permissions
// 0600, is durable, and appears only when it is complete. After an error there is no new file; the
// error is [fs.ErrExist] if path exists, also if another process created it while from ran.
func CreatePrivateFrom(path string, from func(io.Writer) error) (err error) {
	isNew := func() error {
		if Exists(path) {
			return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		return nil
	}
	Sweep(path)
	if err := isNew(); err != nil {
		return err
	}
	if err = WritePrivateFrom(path, func(w io.Writer) error { return cmp.Or(from(w), isNew()) }); err == nil {
		// Other temporary files of any age are of killed processes, or of processes that will fail because the
		// file exists.
		sweep(0, path)
	}
	return err
}
