package commit

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// Replacing is the end of the name of a file in tmp/$feed that records a replacement:
// $unique;replaces holds the unique name of the version that $unique replaces.
const Replacing = ";replaces"

// MoveToNew renames a staged entry from the directory from, which is relative to the lektor-dir, to
// new/, and removes the version that it replaces from new/. The journal has the entry's line. If
// MoveToNew fails, it can be called again. dropped reports that the entry was not delivered, because a
// viewer had taken the version that it replaces.
func MoveToNew(d *dirfs.Dir, feed, from string, r journal.Record) (dropped bool, err error) {
	if r.Replaces == "" {
		return false, arrive(d, feed, from, r.Unique)
	}
	return replace(d, feed, from, r.Unique, r.Replaces)
}

// replace replaces an old version in new/ by a staged one, so that at least one of them is always
// there. The caller holds the feed's lock; the staged version and its line in the journal are
// durable. With NEW and OLD for the unique names:
//
//  0. The record tmp/$feed/NEW;replaces is written.
//  1. If OLD is not in new/, a viewer has taken it: NEW is withdrawn.
//  2. NEW is renamed to new/. Both versions are there; viewers show the newest.
//  3. OLD is renamed to tmp/$feed/OLD;gone,R.
//  4. The record is removed, and then OLD.
//
// If a viewer takes OLD between 1 and 3, NEW is withdrawn, unless a viewer has taken that as well.
// If replace is interrupted and called again, it continues: the names in new/ and tmp/ show how far
// it has come. dropped reports that NEW was withdrawn.
func replace(d *dirfs.Dir, feed, from, unique, old string) (dropped bool, err error) {
	note := d.Join("tmp", feed, unique+Replacing)
	if err := writeNote(note, old); err != nil {
		return false, err
	}
	inNew, aside := d.Join("new", feed, old), d.Join("tmp", feed, old+dirfs.GoneReplaced)
	_, err = dirfs.Lstat(inNew)
	if isNotExist(err) {
		// An interrupted run has put OLD aside.
		if _, aerr := dirfs.Lstat(aside); aerr == nil {
			if err := arrive(d, feed, from, unique); err != nil {
				return false, err
			}
			return false, endReplacement(note, aside)
		} else if !isNotExist(aerr) {
			return false, aerr
		}
		return withdraw(d, feed, from, unique, note)
	}
	if err != nil {
		return false, err
	}
	if err := arrive(d, feed, from, unique); err != nil {
		return false, err
	}
	if err := d.PutAside(inNew, aside); isNotExist(err) {
		return withdraw(d, feed, from, unique, note)
	} else if err != nil {
		return false, err
	}
	return false, endReplacement(note, aside)
}

// writeNote writes the record of a replacement, unless it exists. The record is not synced, because
// the journal has the name of the old version, too.
func writeNote(note, old string) error {
	f, err := os.OpenFile(note, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(old + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(note)
	}
	return err
}

// endReplacement removes the record, and then the directory that was put aside. In the other order,
// a kill between them would look as if a viewer had taken the old version. If the directory cannot
// be removed, recovery removes it.
func endReplacement(note, aside string) error {
	if err := atomicfile.RemoveUnsynced(note); err != nil {
		return err
	}
	_ = dirfs.RemoveAll(aside)
	return nil
}

// withdraw removes a new version from tmp/ and new/, because a viewer has taken the version that it
// replaces.
func withdraw(d *dirfs.Dir, feed, from, unique, note string) (withdrawn bool, err error) {
	aside := d.Join("tmp", feed, unique+dirfs.Gone)
	for _, path := range []string{d.Join(from, unique), d.Join("new", feed, unique)} {
		// Renamed first, because recovery would deliver a half-deleted entry that the journal
		// names.
		switch err := d.PutAside(path, aside); {
		case err == nil:
			withdrawn = true
		case !isNotExist(err):
			return withdrawn, err
		}
	}
	return withdrawn, endReplacement(note, aside)
}

// arrive renames a staged entry from the directory from, which is relative to the lektor-dir, to
// new/. If the entry is not staged, it was renamed before, and arrive returns nil.
func arrive(d *dirfs.Dir, feed, from, unique string) error {
	staged, to := d.Join(from, unique), d.Join("new", feed, unique)
	err := d.Move(staged, to)
	if isNotExist(err) {
		if _, serr := dirfs.Lstat(staged); isNotExist(serr) {
			return nil
		}
		if err := os.Mkdir(filepath.Dir(to), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		err = d.Move(staged, to)
	}
	if errors.Is(err, os.ErrExist) {
		return d.Drop(feed, staged)
	}
	return err
}
