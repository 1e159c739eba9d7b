package lektordir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// ReadEntry reads fields of an entry. If a viewer has moved or removed the entry, it returns nil
// and an error for which errors.Is(err, fs.ErrNotExist) is true. If a wanted obligatory file is
// missing, the error wraps a [*MalformedError], and the entry has the values that could be read.
// The same holds if an optional file exists but cannot be read; MalformedError.Optional is true
// then.
func (d *Dir) ReadEntry(r Ref, want Fields) (*Entry, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	// An entry that is renamed away and back while it is read is read again.
	for tries := maxReadings; ; tries-- {
		x := reading{d: d, ref: r, base: d.abs(r), entry: &Entry{}}
		e, err := x.read(want)
		if tries == 1 || !x.lacks {
			return e, err
		}
	}
}

// maxReadings is the number of readings of an entry that lacks an obligatory file.
const maxReadings = 3

// reading is one attempt to read an entry.
type reading struct {
	d     *Dir
	ref   Ref
	base  string // absolute path of the entry
	entry *Entry
	bad   error
	lacks bool // an obligatory file is missing
	// absent is true if an optional file was missing and no file was found after it, so the
	// entry may have moved.
	absent bool
}

// read reads the fields, and returns what [Dir.ReadEntry] returns.
func (x *reading) read(want Fields) (*Entry, error) {
	if want&FieldFeedContent != 0 {
		want |= FieldFullText // it says whether the file feed-content exists
	}
	for v := range want.filesOf(false) {
		x.file(v)
	}
	if want&Extras != 0 {
		x.extras(want)
	}
	if want&FieldFeedContent != 0 && x.entry.FullText.URL != "" {
		x.file(&feedContent)
	}
	for v := range want.filesOf(true) {
		x.file(v)
	}
	if x.bad != nil || x.absent {
		_, err := dirfs.Lstat(x.base)
		if (x.bad != nil || errors.Is(err, unix.ESTALE)) && x.d.fs.Vanished(x.base) {
			err = &os.PathError{Op: "lstat", Path: x.base, Err: unix.ENOENT}
		}
		if err != nil {
			x.lacks = false
			return nil, err
		}
	}
	return x.entry, x.bad
}

// file reads the file of a field.
func (x *reading) file(v *value) {
	if v.of == nil {
		// The entry's path names the feed, so a dangling link is not an error.
		_, err := dirfs.Lstat(x.base + "/" + v.name)
		x.note(v.field, v.name, err)
		return
	}
	data, err := dirfs.ReadFile(x.base + "/" + v.name)
	if err == nil {
		v.parse(x.entry, data)
	}
	x.note(v.field, v.name, err)
}

// extras reads the file extras.
func (x *reading) extras(want Fields) {
	data, err := dirfs.ReadFile(x.base + "/" + extrasFile.name)
	x.note(Extras, extrasFile.name, err)
	x.entry.parseExtras(data, want)
}

// note records the error of reading a file, or nil.
func (x *reading) note(field Fields, name string, err error) {
	switch {
	case err == nil:
		x.absent = false
	case !isNotExist(err) && !errors.Is(err, unix.ESTALE): // ESTALE: another machine removed it
		if field&Obligatory == 0 {
			err = &MalformedError{Path: x.ref.Path(), Optional: true, Err: err}
		}
		x.bad = errors.Join(x.bad, err)
	case field&Obligatory != 0:
		x.lacks = true
		x.bad = errors.Join(x.bad, missing(x.ref, name))
	default:
		x.absent = true
	}
}

// missing returns the error for an entry that lacks an obligatory file.
func missing(r Ref, name string) *MalformedError {
	what := "it has no file " + name
	if name == "feed" {
		what = "it has no feed"
	}
	return &MalformedError{Path: r.Path(), Reason: what}
}
