package lektordir

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// A file system that several machines have (GlusterFS, NFS) answers for seconds from
// what it remembers, of a file that another machine has changed: its times, its
// length, whether it is there at all, even what is in it. A lock tells nothing of
// that. So whoever takes one looks again in earnest.

// Fresh makes sure that the next look at the times and the length of a file tells
// what they are, and not what they were before another machine changed them; the
// caller has a lock under which they change. What cannot be asked for, as the file is
// not there, or is another user's, stays as it is. On a file system of this machine
// it does nothing.
func (d *Dir) Fresh(path string) {
	if d.shared() {
		refresh(path)
	}
}

// lstat is os.Lstat, and open os.Open, for what another machine may be moving.
func lstat(path string) (fi fs.FileInfo, err error) {
	err = atomicfile.Again(func() error {
		fi, err = os.Lstat(path)
		return err
	})
	return fi, err
}

func open(path string) (f *os.File, err error) {
	err = atomicfile.Again(func() error {
		f, err = os.Open(path)
		return err
	})
	return f, err
}

// removeAll is os.RemoveAll for what another machine may be removing, too.
func removeAll(path string) error {
	return atomicfile.Again(func() error { return os.RemoveAll(path) })
}

// vanished reports whether a name that a file system of several machines still seems to
// have is not in its directory any more, which it reads anew.
func (d *Dir) vanished(path string) bool {
	if !d.shared() {
		return false
	}
	names, err := readAllNames(filepath.Dir(path))
	return err == nil && !slices.Contains(names, filepath.Base(path))
}

// staleness is longer than what a file has in it is remembered.
const staleness = 10 * time.Second

// freshJournal reads the journal of a feed whose lock the caller has: all that is in
// it, whichever machine wrote it.
func (d *Dir) freshJournal(feed string) (*journal, error) {
	path := d.journalPath(feed)
	if !d.shared() {
		return readJournal(path)
	}
	// That there is none is remembered with the directory, until that is opened.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		dir.Close()
	}
	d.Fresh(path)
	const pause = 50 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		j, err := readJournal(path)
		if err != nil {
			return nil, err
		}
		// Journals grow; what is read is short where it is old.
		size := int64(0)
		fi, err := lstat(path)
		switch {
		case err == nil:
			size = fi.Size()
		case !isNotExist(err):
			return nil, err
		}
		if size == j.size {
			return j, nil
		}
		if waited >= staleness {
			return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has %d bytes, and the file system gives %d", size, j.size)}
		}
		if err := d.opts.Sleep(context.Background(), pause); err != nil {
			return nil, err
		}
	}
}
