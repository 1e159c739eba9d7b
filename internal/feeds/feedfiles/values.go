package feedfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Values is a directory with one value per file, and changes that are not saved yet.
//
// A file is read when it is first used, if it existed when the directory was listed. An invalid value
// is ignored with a warning, and the file stays. Unknown files are ignored.
type Values struct {
	Dir string
	// Secret reports whether only the user may read a value.
	Secret     func(name, value string) bool
	names      map[string]bool
	read       map[string]string    // values on disk; "" if absent
	changed    map[string]string    // values to save; "" to remove
	times      map[string]time.Time // modification times to save
	warnings   []string
	readErrors map[string]error // files that exist but could not be read
}

// LoadValues loads the values of a directory. It fails if one of the last three names of its path is a
// symbolic link, because saving might write elsewhere.
func LoadValues(dir string) (*Values, error) {
	a := &Values{
		Secret: IsSecret,
		Dir:    dir, names: map[string]bool{}, read: map[string]string{}, changed: map[string]string{},
		times: map[string]time.Time{}, readErrors: map[string]error{},
	}
	for i, p := 0, filepath.Clean(dir); i < 3; i, p = i+1, filepath.Dir(p) {
		if fi, err := os.Lstat(p); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return a, &fs.PathError{Op: "open", Path: p, Err: errors.New("it is a link, but must be a directory")}
		}
	}
	names, err := atomicfile.Optional(atomicfile.Names(dir))
	for _, n := range names {
		a.names[n] = true
	}
	return a, err
}

// Path returns the path of a file.
func (a *Values) Path(name string) string { return filepath.Join(a.Dir, name) }

// Has reports whether a file exists, even if it is empty.
func (a *Values) Has(name string) bool { return a.names[name] }

// Warnings returns a message for each value that was ignored.
func (a *Values) Warnings() []string { return a.warnings }

// ReadError returns the error of reading a file that exists.
func (a *Values) ReadError(name string) error { return a.readErrors[name] }

// Changed returns a value that is not saved yet.
func (a *Values) Changed(name string) (value string, ok bool) {
	value, ok = a.changed[name]
	return value, ok
}

// Forget forgets the change of a value that is not saved yet.
func (a *Values) Forget(name string) { delete(a.changed, name) }

// MakeDir creates the directory, if there are changes to save and it has no files.
func (a *Values) MakeDir() error {
	if len(a.changed)+len(a.times) == 0 || len(a.names) > 0 {
		return nil
	}
	return os.MkdirAll(a.Dir, 0o777)
}

// Get returns the value of a file without its newline, "" if it does not exist.
func (a *Values) Get(name string) string {
	if v, ok := a.changed[name]; ok {
		return v
	}
	return a.Stored(name)
}

// Stored is like Get, but ignores changes that are not saved.
func (a *Values) Stored(name string) string {
	if v, ok := a.read[name]; ok {
		return v
	}
	v := ""
	if a.names[name] {
		b, err := atomicfile.Read(a.Path(name), MaxSize)
		switch {
		case err == nil:
			v = strings.TrimSuffix(string(b), "\n")
		case !errors.Is(err, fs.ErrNotExist):
			a.Ignore(name, err.Error())
			if errno := unix.Errno(0); errors.As(err, &errno) && errno != unix.EISDIR {
				a.readErrors[name] = err
			}
		}
	}
	a.read[name] = v
	return v
}

// Put sets a value to be saved; "" removes it.
func (a *Values) Put(name, value string) {
	if a.Stored(name) == value && (value != "" || !a.names[name]) {
		delete(a.changed, name)
		return
	}
	a.changed[name] = value
}

// Number returns the value of a file that is a number, else 0.
func (a *Values) Number(name string) int {
	v := a.Get(name)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		a.Ignore(name, fmt.Sprintf("%q is not a number", termsafe.Brief(v)))
		return 0
	}
	return n
}

// Save writes those of the named files that have changed, in the order of the arguments.
func (a *Values) Save(names ...string) error {
	var errs []error
	for _, name := range names {
		if value, ok := a.changed[name]; ok {
			errs = append(errs, a.store(name, value, atomicfile.CreateUnsynced, atomicfile.RemoveUnsynced))
		}
	}
	return errors.Join(errs...)
}

// Write stores a value with a sync; "" removes it.
func (a *Values) Write(name, value string) error {
	return a.store(name, value, atomicfile.Write, atomicfile.Remove)
}

func (a *Values) store(name, value string, write func(string, []byte) error, remove func(string) error) (err error) {
	path := a.Path(name)
	switch {
	case value == "":
		err = remove(path)
	case a.Secret(name, value):
		if err = Hide(path); err != nil {
			return err
		}
		a.names[name] = true
		fallthrough
	default:
		err = write(path, []byte(value+"\n"))
	}
	if err == nil {
		a.SetStored(name, value)
	}
	return err
}

// SetStored records that a file has a value on disk; "" means that it does not exist.
func (a *Values) SetStored(name, value string) {
	delete(a.changed, name)
	a.names[name] = value != ""
	a.read[name] = value
}

// Ignore adds the warning that a value is ignored, once.
func (a *Values) Ignore(name, what string) {
	if text := fmt.Sprintf("%s is ignored: %s", a.Path(name), what); !slices.Contains(a.warnings, text) {
		a.warnings = append(a.warnings, text)
	}
}

// Duration returns the value of a file that is an interval, else 0.
func (a *Values) Duration(name string) time.Duration {
	v := a.Get(name)
	if v == "" {
		return 0
	}
	d, err := humanize.ParseInterval(v)
	if err != nil {
		a.Ignore(name, err.Error())
	}
	return d
}

// Time returns the modification time of a file; ok is false if it does not exist.
func (a *Values) Time(name string) (t time.Time, ok bool) {
	if t, ok := a.times[name]; ok {
		return t, true
	}
	if !a.names[name] {
		return time.Time{}, false
	}
	return ModTime(a.Path(name))
}

// SetTime sets a modification time to be saved.
func (a *Values) SetTime(name string, t time.Time) { a.times[name] = t }

// SaveTimes saves the times of those of the named files that have a new one.
func (a *Values) SaveTimes(names ...string) error {
	var errs []error
	for _, name := range names {
		if t, ok := a.times[name]; ok {
			errs = append(errs, a.saveTime(name, t))
		}
	}
	return errors.Join(errs...)
}

// saveTime sets the modification time of a file, and creates an empty one if necessary.
func (a *Values) saveTime(name string, t time.Time) error {
	path := a.Path(name)
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	set := func() error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	}
	err = set()
	if errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.CreateUnsynced(path, nil); err != nil {
			return err
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

// Drop removes files, and forgets their changes.
func (a *Values) Drop(names ...string) error {
	var errs []error
	for _, name := range names {
		delete(a.changed, name)
		delete(a.times, name)
		if a.read[name] = ""; a.names[name] {
			errs = append(errs, atomicfile.RemoveUnsynced(a.Path(name)))
			a.names[name] = false
		}
	}
	return errors.Join(errs...)
}
