package lektordir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dirfs"
)

// ReadEntry reads fields of an entry. If the entry is gone, moved by a viewer
// or removed, the error is fs.ErrNotExist and the entry is nil. If an obligatory file that was
// asked for is missing, [errors.As] finds a [*MalformedError], and the entry has the values
// that could be read. If an optional file cannot be read, the same holds, and Optional is set.
func (d *Dir) ReadEntry(r Ref, want Fields) (*Entry, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	// An entry that is renamed away and back while it is read is read again.
	for again := readAgain; ; again-- {
		x := reading{d: d, ref: r, base: d.abs(r), entry: &Entry{}}
		e, err := x.read(want)
		if again == 0 || !x.lacks {
			return e, err
		}
	}
}

// readAgain is how often a malformed entry is read again.
const readAgain = 2

// reading is an entry that is being read.
type reading struct {
	d      *Dir
	ref    Ref
	base   string // its path
	entry  *Entry
	bad    error
	lacks  bool // an obligatory file is missing
	absent bool // a file was not there, and none was since
}

// read reads the fields.
func (x *reading) read(want Fields) (*Entry, error) {
	if want&FieldFeedContent != 0 {
		want |= FieldFullText // which says whether there is a file
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

// file reads a file.
func (x *reading) file(v *value) {
	if v.of == nil {
		// A link that leads nowhere still says which feed it is, by its name.
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

// extras reads the file of that name, or without it the files of older programs.
func (x *reading) extras(want Fields) {
	path := x.base + "/" + extrasFile.name
	data, err := dirfs.ReadFile(path)
	x.note(Extras, extrasFile.name, err)
	if isNotExist(err) {
		if data, err = etcExtras(x.base); err != nil {
			x.note(Extras, etcDir, err)
		}
		if data != nil {
			// A check that converts them writes the lines before it removes the files.
			if lines, err := dirfs.ReadFile(path); err == nil {
				data = lines
			}
		}
	}
	x.entry.parseExtras(data, want)
}

// note records the result of reading a file.
func (x *reading) note(field Fields, name string, err error) {
	switch {
	case err == nil:
		x.absent = false
	case !isNotExist(err) && !errors.Is(err, unix.ESTALE): // which another machine has removed
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
