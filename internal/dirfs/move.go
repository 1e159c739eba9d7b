package dirfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/entryname"
)

// Info of what is in tmp/ while an entry is moved by a copy of it; a number
// follows. The second is a file with the path of the entry, relative to the
// lektor-dir.
const (
	Copying = ";copy,"
	Moving  = ";move,"
)

// Move renames the directory of an entry of a feed, and replaces nothing. A directory in
// the lower layer of an overlay (the image of a container) cannot be renamed, and is
// moved by a copy.
//
// If another machine has just moved the entry to the same place, a shared file system may
// still cache the old name and report that the new one exists; Move then returns ENOENT,
// as on other file systems.
func (d *Dir) Move(feed, from, to string) error {
	err := atomicfile.Again(func() error { return d.Rename(from, to) })
	switch {
	case errors.Is(err, unix.EXDEV):
		return d.moveCopy(feed, from, to)
	case (errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ESTALE)) && d.Vanished(from):
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.ENOENT}
	}
	return err
}

// moveCopy copies an entry, puts the copy in its place and removes the old one. For a
// moment the entry is in two places, which is one entry to every viewer. The removal of the
// old one is recorded first: if the record is in tmp/ and the copy is not, the copy is in
// its place (see [Dir.FinishMove]).
func (d *Dir) moveCopy(feed, from, to string) error {
	if err := d.MkTmp(feed); err != nil {
		return err
	}
	if err := d.Inside("tmp/" + feed); err != nil {
		return err
	}
	// If several processes move one entry, the first gets the lock; the others find it gone.
	lock, err := lockEntry(from, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	unique, _, _ := strings.Cut(filepath.Base(from), ";")
	dir, number := d.Join("tmp", feed), fmt.Sprintf("%016x", rand.Uint64())
	copied, record := dir+"/"+unique+Copying+number, dir+"/"+unique+Moving+number
	err = os.CopyFS(copied, os.DirFS(from))
	if err == nil {
		err = SyncEntry(copied)
	}
	if err == nil {
		err = os.WriteFile(record, []byte(strings.TrimPrefix(from, d.Path+"/")), 0o666)
	}
	for _, path := range []string{record, dir} {
		if err == nil {
			err = SyncPath(path)
		}
	}
	if err == nil {
		err = d.Rename(copied, to)
	}
	if err != nil {
		// First the record, without which the copy means nothing.
		if rerr := os.Remove(record); rerr != nil && !isNotExist(rerr) {
			return errors.Join(err, rerr)
		}
		return errors.Join(err, os.RemoveAll(copied))
	}
	for _, path := range []string{filepath.Dir(to), dir} {
		if err := SyncPath(path); err != nil {
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
	if err := SyncPath(filepath.Dir(from)); err != nil && !isNotExist(err) {
		return err
	}
	return os.Remove(record)
}

// FinishMove finishes or undoes a move by a copy that was interrupted, from its
// record in tmp/$feed. One that is still going on is left alone, and a record of
// another's that changed since a time.
func (d *Dir) FinishMove(feed, name string, before time.Time) error {
	record := d.Join("tmp", feed, name)
	data, err := ReadFile(record)
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	rel := string(data)
	place, base, _ := strings.Cut(rel, "/"+feed+"/")
	if place == "tmp" {
		base = strings.TrimPrefix(base, FirstEntries+"/")
	}
	unique, _, _ := strings.Cut(base, ";")
	if place != "new" && place != "cur" && place != "tmp" || base == "" || strings.Contains(base, "/") || !strings.HasPrefix(name, unique+Moving) {
		return d.RemoveOld(record, before) // written in part, or not by us
	}
	if err := d.Inside(place + "/" + feed); isNotExist(err) {
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
	copied := d.Join("tmp", feed, strings.Replace(name, Moving, Copying, 1))
	_, err = Lstat(copied)
	if isNotExist(err) {
		if _, err := Lstat(record); err != nil {
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

// These suffixes mark a name in tmp/ that is being deleted; recovery never restores it.
// GoneReplaced is for a version that a fetcher took out of new/ in favour of a newer one.
const (
	Gone         = ";gone"
	GoneReplaced = ";gone,R"
)

// FirstEntries is the directory in tmp/$feed where the first entries of a feed are
// staged. All of it becomes new/$feed, by one rename: that of each entry would cost
// as much as two of its files.
const FirstEntries = ";first"

// MkTmp makes tmp/$feed.
func (d *Dir) MkTmp(feed string) error {
	if !entryname.IsFeed(feed) {
		return fmt.Errorf("%q is no name of a feed's directory", feed)
	}
	err := os.Mkdir(d.Join("tmp", feed), 0o777)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// PutAside renames a directory to one in tmp/ that is to be removed, in the place
// of what an earlier removal of it left there.
func (d *Dir) PutAside(feed, from, to string) error {
	err := d.Move(feed, from, to)
	if errors.Is(err, os.ErrExist) {
		// A power cut undid the rename but not the directory it left.
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		err = d.Move(feed, from, to)
	}
	return err
}

// Drop deletes a staged entry.
func (d *Dir) Drop(feed, staged string) error {
	// Renamed first, as half an entry under a name that the journal has could
	// be taken for a whole one.
	aside := d.Join("tmp", feed, filepath.Base(staged)+Gone)
	if err := d.PutAside(feed, staged, aside); err != nil && !isNotExist(err) {
		return err
	}
	return os.RemoveAll(aside)
}

// RemoveOld removes a foreign entry from tmp/ if nothing in it has changed since a time.
func (d *Dir) RemoveOld(path string, before time.Time) error {
	var newest time.Time
	err := filepath.WalkDir(path, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if fi.ModTime().After(newest) {
			newest = fi.ModTime()
		}
		return nil
	})
	if isNotExist(err) || errors.Is(err, unix.ESTALE) {
		return nil // its writer is at work, perhaps on another machine
	}
	if err != nil {
		return err
	}
	if newest.After(before) {
		return nil
	}
	return RemoveAll(path)
}
