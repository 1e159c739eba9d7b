package lektordir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"golang.org/x/sys/unix"
)

// Info of what is in tmp/ while an entry is moved by a copy of it; a number
// follows. The second is a file with the path of the entry, relative to the
// lektor-dir.
const (
	copying = ";copy,"
	moving  = ";move,"
)

// move renames the directory of an entry of a feed, and replaces nothing. Those in
// the lower layer of an overlay (the image of a container) cannot be renamed, and
// are moved by a copy.
//
// When another machine has just moved the entry to the same place, a file system that
// both have may say that the new name is taken, going by what it remembers of the old
// one; to the caller the entry is gone then, as it is on others.
func (d *Dir) move(feed, from, to string) error {
	err := atomicfile.Again(func() error { return d.rename(from, to) })
	switch {
	case errors.Is(err, unix.EXDEV):
		return d.moveCopy(feed, from, to)
	case (errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ESTALE)) && d.vanished(from):
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.ENOENT}
	}
	return err
}

// moveCopy copies an entry, puts the copy in its place and removes the old one. For a
// moment the entry is in two places, which is one entry to every viewer. That the
// old one is to be removed is recorded before: where there is the record and no
// copy any more, the copy is in its place (see [Dir.finishMove]).
func (d *Dir) moveCopy(feed, from, to string) error {
	if err := d.mkTmp(feed); err != nil {
		return err
	}
	if err := d.inside("tmp/" + feed); err != nil {
		return err
	}
	// Of those who move one entry at a time, the others find it gone.
	lock, err := lockEntry(from, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	unique, _, _ := strings.Cut(filepath.Base(from), ";")
	dir, number := d.Join("tmp", feed), fmt.Sprintf("%016x", rand.Uint64())
	copied, record := dir+"/"+unique+copying+number, dir+"/"+unique+moving+number
	err = os.CopyFS(copied, os.DirFS(from))
	if err == nil {
		err = syncEntry(copied)
	}
	if err == nil {
		err = os.WriteFile(record, []byte(strings.TrimPrefix(from, d.path+"/")), 0o666)
	}
	for _, path := range []string{record, dir} {
		if err == nil {
			err = syncPath(path)
		}
	}
	if err == nil {
		err = d.rename(copied, to)
	}
	if err != nil {
		// First the record, without which the copy means nothing.
		if rerr := os.Remove(record); rerr != nil && !isNotExist(rerr) {
			return errors.Join(err, rerr)
		}
		return errors.Join(err, os.RemoveAll(copied))
	}
	for _, path := range []string{filepath.Dir(to), dir} {
		if err := syncPath(path); err != nil {
			return err
		}
	}
	return removeMoved(from, record)
}

// removeMoved removes what was copied, and then the record of it.
func removeMoved(from, record string) error {
	if err := os.RemoveAll(from); err != nil {
		return err
	}
	if err := syncPath(filepath.Dir(from)); err != nil && !isNotExist(err) {
		return err
	}
	return os.Remove(record)
}

// finishMove finishes or undoes a move by a copy that was interrupted, from its
// record in tmp/$feed. One that is still going on is left alone, and a record of
// another's that changed since a time.
func (d *Dir) finishMove(feed, name string, before time.Time) error {
	record := d.Join("tmp", feed, name)
	data, err := readFile(record)
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	rel := string(data)
	place, base, _ := strings.Cut(rel, "/"+feed+"/")
	if place == "tmp" {
		base = strings.TrimPrefix(base, firstEntries+"/")
	}
	unique, _, _ := strings.Cut(base, ";")
	if place != "new" && place != "cur" && place != "tmp" || base == "" || strings.Contains(base, "/") || !strings.HasPrefix(name, unique+moving) {
		return d.removeOld(record, before) // written in part, or not by us
	}
	if err := d.inside(place + "/" + feed); isNotExist(err) {
		return os.Remove(record)
	} else if err != nil {
		return err
	}
	lock, err := lockEntry(d.Join(rel), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case isNotExist(err):
		return os.Remove(record)
	case err != nil:
		return err
	}
	defer lock.Close()
	copied := d.Join("tmp", feed, strings.Replace(name, moving, copying, 1))
	_, err = lstat(copied)
	if isNotExist(err) {
		if _, err := lstat(record); err != nil {
			return nil // it was finished before it was locked
		}
		return removeMoved(d.Join(rel), record)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(record), os.RemoveAll(copied))
}

// lockEntry locks the directory of an entry, until it is closed, for those who move
// it by a copy. The error is fs.ErrNotExist when it is there no more.
func lockEntry(path string, how int) (*os.File, error) {
	for range 100 {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return nil, err
		}
		if err := atomicfile.Hold(f, how); err != nil {
			f.Close()
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
		// Another may have come under its name while it was waited for.
		there, err := atomicfile.InPlace(f)
		if there {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, &fs.PathError{Op: "lock", Path: path, Err: errors.New("others move it all the time")}
}
