package commit

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/journal"
)

// Replacing is the end of the name of a file in tmp/$feed that records a replacement:
// $unique;replaces holds the unique name of the version that $unique replaces.
const Replacing = ";replaces"

// Settle renames a staged entry that the journal names from tmp/ (from, which is
// relative to the lektor-dir) to new/, and takes the version that it replaces out of
// new/. If it fails, it can be called again. dropped reports that it was not delivered
// because a viewer had taken that version.
func Settle(d *dirfs.Dir, feed, from string, r journal.Record) (dropped bool, err error) {
	if r.Replaces == "" {
		return false, arrive(d, feed, from, r.Unique)
	}
	return replace(d, feed, from, r.Unique, r.Replaces)
}

// replace puts a staged version in the place of an old one in new/, so that a viewer
// sees one of them at every moment. The caller has the feed's lock, and what is staged
// and the journal's line of it are on the disk.
//
//  0. tmp/$feed/NEW;replaces is written.
//  1. If there is no new/OLD, a viewer has it: NEW is withdrawn.
//  2. NEW is renamed to new/. Both versions are there, and the newest one counts.
//  3. OLD is renamed to tmp/$feed/OLD;gone,R.
//  4. The record is removed, and then OLD.
//
// If a viewer takes OLD between 1 and 3, NEW is withdrawn, or stays where a viewer took
// that as well. If replace is interrupted anywhere and called again, it continues: the
// names in new/ and tmp/ show how far it came. dropped reports that NEW was withdrawn.
func replace(d *dirfs.Dir, feed, from, unique, old string) (dropped bool, err error) {
	note := d.Join("tmp", feed, unique+Replacing)
	if err := writeNote(note, old); err != nil {
		return false, err
	}
	there, aside := d.Join("new", feed, old), d.Join("tmp", feed, old+dirfs.GoneReplaced)
	_, err = dirfs.Lstat(there)
	if isNotExist(err) {
		// Put aside by an earlier run, or by one of a version that did so first.
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
	if err := d.PutAside(feed, there, aside); isNotExist(err) {
		return withdraw(d, feed, from, unique, note)
	} else if err != nil {
		return false, err
	}
	return false, endReplacement(note, aside)
}

// writeNote records which version is replaced, unless it is recorded already. The
// record need not be on the disk: the journal has the name as well.
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

// endReplacement removes the record, and then a directory that was put aside: the record
// without the directory would say that a viewer took the old version. Failing to remove the
// directory is not an error, as recovery removes it.
func endReplacement(note, aside string) error {
	if err := os.Remove(note); err != nil && !isNotExist(err) {
		return err
	}
	_ = dirfs.RemoveAll(aside)
	return nil
}

// withdraw removes a version from tmp/, where it is staged, and from new/, as a viewer took
// the version that it replaces.
func withdraw(d *dirfs.Dir, feed, from, unique, note string) (withdrawn bool, err error) {
	aside := d.Join("tmp", feed, unique+dirfs.Gone)
	for _, path := range []string{d.Join(from, unique), d.Join("new", feed, unique)} {
		// Renamed first, as half an entry under a name that the journal has could
		// be taken for a whole one.
		switch err := d.PutAside(feed, path, aside); {
		case err == nil:
			withdrawn = true
		case !isNotExist(err):
			return withdrawn, err
		}
	}
	return withdrawn, endReplacement(note, aside)
}

// arrive renames a staged entry from tmp/ (from, which is relative to the lektor-dir) to
// new/. If the entry is no longer staged, it was renamed before, and arrive returns nil.
func arrive(d *dirfs.Dir, feed, from, unique string) error {
	staged, to := d.Join(from, unique), d.Join("new", feed, unique)
	err := d.Move(feed, staged, to)
	if isNotExist(err) {
		if _, serr := dirfs.Lstat(staged); isNotExist(serr) {
			return nil
		}
		if err := os.Mkdir(filepath.Dir(to), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		err = d.Move(feed, staged, to)
	}
	if errors.Is(err, os.ErrExist) {
		return d.Drop(feed, staged)
	}
	return err
}
