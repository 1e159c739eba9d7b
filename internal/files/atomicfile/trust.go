package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Trusted returns an error if a user other than that of this process, and root, may have written the file
// or directory at path: if it belongs to somebody else, or if others have write permission. Access control
// lists are not checked. The error has the remedy and the consequence.
func Trusted(path, consequence string) error {
	// For a link, check both ends: the owner of the link chooses its target.
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		fi, err := stat(path)
		if err != nil {
			return err
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: its owner is unknown", path)
		}
		if int(st.Uid) != os.Geteuid() && st.Uid != 0 {
			return fmt.Errorf("%s belongs to another user; %s", path, consequence)
		}
		// Permissions of a link have no meaning.
		if fi.Mode().Type() != fs.ModeSymlink && fi.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("%s can be written by others; %s (repair with: chmod go-w %s)", path, consequence, path)
		}
	}
	return nil
}

// TrustedState checks the directory of a program's state, and those of the named files in it that exist,
// by [Trusted].
func TrustedState(dir string, names ...string) error {
	const consequence = "the state is not used"
	if err := Trusted(dir, consequence); err != nil {
		return err
	}
	for _, name := range names {
		if err := Trusted(filepath.Join(dir, name), consequence); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
