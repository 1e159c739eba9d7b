package dirfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// Move renames the directory of an entry, and never replaces another one. A directory in the lower
// layer of an overlay cannot be renamed.
//
// If another machine has just moved the entry to the same place, a shared file system may still
// cache the old name and report that the new one exists. Move returns ENOENT then, as on other
// file systems.
func (d *Dir) Move(from, to string) error {
	err := atomicfile.Again(func() error { return d.Rename(from, to) })
	switch {
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("%w (tmp/, new/ and cur/ must be on one file system; entries in the image of a container"+
			" cannot be moved: copy the lektor-dir with cp -a, and use the copy)", err)
	case (errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ESTALE)) && d.Vanished(from):
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.ENOENT}
	}
	return err
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
func (d *Dir) PutAside(from, to string) error {
	err := d.Move(from, to)
	if errors.Is(err, os.ErrExist) {
		// A power cut may have restored the old name and kept the new one.
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		err = d.Move(from, to)
	}
	return err
}

// Drop deletes a staged entry.
func (d *Dir) Drop(feed, staged string) error {
	// Renamed first, because recovery would deliver a half-deleted entry that the journal names.
	aside := d.Join("tmp", feed, filepath.Base(staged)+Gone)
	if err := d.PutAside(staged, aside); err != nil && !isNotExist(err) {
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
