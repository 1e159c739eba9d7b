package feedstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// area is a directory with one value per file, and changes that are not saved yet.
//
// A file is read when it is first used, if it existed when the directory was listed. An invalid value
// is ignored with a warning, and the file stays. Unknown files are ignored.
type area struct {
	dir        string
	names      map[string]bool
	read       map[string]string    // values on disk; "" if absent
	changed    map[string]string    // values to save; "" to remove
	times      map[string]time.Time // modification times to save
	warnings   []string
	warned     map[string]bool
	readErrors map[string]error // files that exist but could not be read
	// secret reports whether only the user may read a value.
	secret func(name, value string) bool
}

func loadArea(dir string) (*area, error) {
	a := &area{
		secret: secret,
		dir:    dir, names: map[string]bool{}, read: map[string]string{}, changed: map[string]string{},
		times: map[string]time.Time{}, warned: map[string]bool{}, readErrors: map[string]error{},
	}
	for i, p := 0, filepath.Clean(dir); i < 3; i, p = i+1, filepath.Dir(p) {
		if fi, err := os.Lstat(p); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return a, &fs.PathError{Op: "open", Path: p, Err: errors.New("it is a link, but must be a directory")}
		}
	}
	names, err := atomicfile.Names(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	for _, n := range names {
		a.names[n] = true
	}
	return a, err
}

// get returns the value of a file without its newline, "" if it does not exist.
func (a *area) get(name string) string {
	if v, ok := a.changed[name]; ok {
		return v
	}
	return a.disk(name)
}

// disk is like get, but ignores changes that are not saved.
func (a *area) disk(name string) string {
	if v, ok := a.read[name]; ok {
		return v
	}
	v := ""
	if a.names[name] {
		b, err := atomicfile.Read(filepath.Join(a.dir, name), maxFile)
		switch {
		case err == nil:
			v = strings.TrimSuffix(string(b), "\n")
		case !errors.Is(err, fs.ErrNotExist):
			a.malformed(name, err.Error())
			if errno := unix.Errno(0); errors.As(err, &errno) && errno != unix.EISDIR {
				a.readErrors[name] = err
			}
		}
	}
	a.read[name] = v
	return v
}

// put sets a value to be saved; "" removes it.
func (a *area) put(name, value string) {
	if a.disk(name) == value && (value != "" || !a.names[name]) {
		delete(a.changed, name)
		return
	}
	a.changed[name] = value
}

func (a *area) number(name string) int {
	v := a.get(name)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		a.malformed(name, fmt.Sprintf("%q is not a number", termsafe.Brief(v)))
		return 0
	}
	return n
}

// save writes those of the named files that have changed, in the order of the arguments.
func (a *area) save(names ...string) error {
	var errs []error
	for _, name := range names {
		if value, ok := a.changed[name]; ok {
			errs = append(errs, a.store(name, value))
		}
	}
	return errors.Join(errs...)
}

func (a *area) store(name, value string) (err error) {
	path := filepath.Join(a.dir, name)
	if value != "" && a.secret(name, value) {
		if err := guard(path); err != nil {
			return err
		}
		a.names[name] = true
	}
	switch {
	case value == "":
		err = remove(path)
	case !a.names[name]:
		err = atomicfile.CreateUnsynced(path, []byte(value+"\n"))
	default:
		err = atomicfile.WriteUnsynced(path, []byte(value+"\n"))
	}
	if err == nil {
		a.stored(name, value)
	}
	return err
}

// storeDurably is store with a sync. The caller guards a secret value.
func (a *area) storeDurably(name, value string) (err error) {
	path := filepath.Join(a.dir, name)
	if value == "" {
		err = atomicfile.Remove(path)
	} else {
		err = atomicfile.Write(path, []byte(value+"\n"))
	}
	if err == nil {
		a.stored(name, value)
	}
	return err
}

// stored records that a file has a value on disk; "" means that it does not exist.
func (a *area) stored(name, value string) {
	delete(a.changed, name)
	a.names[name] = value != ""
	a.read[name] = value
}

func (a *area) malformed(name, what string) {
	if !a.warned[name] {
		a.warned[name] = true
		a.warnings = append(a.warnings, fmt.Sprintf("%s is ignored: %s", filepath.Join(a.dir, name), what))
	}
}

func (a *area) duration(name string) time.Duration {
	v := a.get(name)
	if v == "" {
		return 0
	}
	d, err := humanize.ParseInterval(v)
	if err != nil {
		a.malformed(name, err.Error())
	}
	return d
}

// time returns the modification time of a file; ok is false if it does not exist.
func (a *area) time(name string) (t time.Time, ok bool) {
	if t, ok := a.times[name]; ok {
		return t, true
	}
	if !a.names[name] {
		return time.Time{}, false
	}
	return mtime(filepath.Join(a.dir, name))
}

// saveTime sets the modification time of a file, and creates an empty one if necessary.
func (a *area) saveTime(name string, t time.Time) error {
	path := filepath.Join(a.dir, name)
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	set := func() error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	}
	err = set()
	if errors.Is(err, fs.ErrNotExist) {
		f, err2 := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err2 == nil {
			err2 = f.Close()
		}
		if err2 != nil && !errors.Is(err2, fs.ErrExist) {
			return err2
		}
		err = set()
	}
	if err != nil {
		return &fs.PathError{Op: "utimes", Path: path, Err: err}
	}
	delete(a.times, name)
	a.names[name] = true
	return nil
}

func mtime(path string) (time.Time, bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, false
	}
	return fi.ModTime(), true
}
