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

	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// While an entry is moved by a copy, tmp/$feed has the copy, $unique;copy,NUMBER, and a record,
// $unique;move,NUMBER. The record is a file with the entry's path relative to the lektor-dir.
const (
	Copying = ";copy,"
	Moving  = ";move,"
)

// Move renames the directory of an entry, and never replaces another one. A directory in the lower
// layer of an overlay (the image of a container) cannot be renamed; it is moved by a copy.
//
// If another machine has just moved the entry to the same place, a shared file system may still
// cache the old name and report that the new one exists. Move returns ENOENT then, as on other
// file systems.
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

// moveCopy copies an entry to tmp/, renames the copy to its place, and removes the old entry. For a
// moment the entry is in two places; viewers show it once. The record is written before the
// rename: if tmp/ has the record but not the copy, the copy was renamed (see [Dir.FinishMove]).
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
	if fi, serr := lock.Stat(); err == nil && serr == nil {
		err = os.Chtimes(copied, time.Time{}, fi.ModTime()) // it may be the time of delivery
	}
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
		// The record is removed first, because without a copy it would mean that the copy was
		// renamed.
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

// removeMoved removes the entry that was copied, and then the record.
func removeMoved(from, record string) error {
	if err := os.RemoveAll(from); err != nil {
		return err
	}
	if err := SyncPath(filepath.Dir(from)); err != nil && !isNotExist(err) {
		return err
	}
	return os.Remove(record)
}

// FinishMove finishes or undoes an interrupted move by a copy. name is the record in tmp/$feed. If
// another process is still moving the entry, FinishMove does nothing. A record that lektor did not
// write whole is removed if it has not changed since before.
func (d *Dir) FinishMove(feed, name string, before time.Time) error {
	record := d.Join("tmp", feed, name)
	data, err := atomicfile.Optional(ReadFile(record))
	if data == nil {
		return err
	}
	rel := string(data)
	place, base, _ := strings.Cut(rel, "/"+feed+"/")
	if place == "tmp" {
		base = strings.TrimPrefix(base, FirstEntries+"/")
	}
	unique, _, _ := strings.Cut(base, ";")
	if place != "new" && place != "cur" && place != "tmp" || base == "" || strings.Contains(base, "/") ||
		!strings.HasPrefix(name, unique+Moving) {
		return d.RemoveOld(record, before) // incomplete, or by another program
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
			return nil // the move was finished before the entry was locked
		}
		return removeMoved(d.Join(rel), record)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(record), os.RemoveAll(copied))
}

// lockEntry opens the directory of an entry and locks it, for a move by a copy. Closing the file
// releases the lock. If the entry is gone, the error is fs.ErrNotExist.
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
		// Another directory may have got the name while lockEntry waited for the lock.
		inPlace, err := atomicfile.InPlace(f)
		if inPlace {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, &fs.PathError{Op: "lock", Path: path,
		Err: errors.New("other processes keep moving it; try again later")}
}

// The suffixes of directories in tmp/$feed that are being deleted. GoneReplaced marks a version
// that a newer one has replaced in new/.
const (
	Gone         = ";gone"
	GoneReplaced = ";gone,R"
)

// FirstEntries is the directory in tmp/$feed in which the first entries of a feed are staged. One
// rename makes it new/$feed; renaming an entry costs as much as writing two of its files.
const FirstEntries = ";first"

// MkTmp makes tmp/$feed if it does not exist.
func (d *Dir) MkTmp(feed string) error {
	if !entryname.IsFeed(feed) {
		return fmt.Errorf("%q cannot be the name of a feed's directory", feed)
	}
	err := os.Mkdir(d.Join("tmp", feed), 0o777)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// PutAside renames a directory to a path in tmp/, where the caller deletes it. It removes a
// directory that an earlier, interrupted deletion has left there.
func (d *Dir) PutAside(feed, from, to string) error {
	err := d.Move(feed, from, to)
	if errors.Is(err, os.ErrExist) {
		// A power cut may have restored the old name and kept the new one.
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		err = d.Move(feed, from, to)
	}
	return err
}

// Drop deletes a staged entry.
func (d *Dir) Drop(feed, staged string) error {
	// Renamed first, because recovery would deliver a half-deleted entry that the journal names.
	aside := d.Join("tmp", feed, filepath.Base(staged)+Gone)
	if err := d.PutAside(feed, staged, aside); err != nil && !isNotExist(err) {
		return err
	}
	return os.RemoveAll(aside)
}

// RemoveOld removes an entry of another program or machine from tmp/, unless a file in it changed
// after before.
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
