package commit

import (
	"os"
	"strings"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// Purging is the file in tmp/$feed that records that the whole feed is being removed. It has a
// ';', so recovery does not take it for an entry.
const Purging = ";purge"

// finishPurge removes a feed if the file [Purging] exists. The caller holds the feed's lock.
// The record is removed last, and each step is synced before the next, so
// an interrupted purge can be finished even after a power cut.
func finishPurge(d *dirfs.Dir, feed string) error {
	tmp, src := d.Join("tmp", feed), d.Join("src", feed)
	record := tmp + "/" + Purging
	if _, err := dirfs.Lstat(record); err != nil {
		if isNotExist(err) {
			return nil
		}
		return err
	}
	if err := d.Inside("tmp/" + feed); err != nil {
		return err
	}
	s, err := d.NewSyncer()
	if err != nil {
		return err
	}
	defer s.Close()
	for _, path := range []string{record, tmp, d.Join("tmp")} {
		if err := dirfs.SyncPath(path); err != nil {
			return err
		}
	}
	for _, place := range []string{"new", "cur"} {
		if err := emptyPlace(d, place, feed); err != nil {
			return err
		}
	}
	// Synced before the journal is removed: otherwise a power cut could restore entries, and they
	// would be delivered again.
	if err := s.Sync(d.Join("new"), d.Join("cur"), tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	ents, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	for _, e := range ents {
		if e.Name() != Purging {
			if err := os.RemoveAll(tmp + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	if err := s.Sync(d.Join("src")); err != nil {
		return err
	}
	// Synced: otherwise a power cut could restore the record, and the next run would remove entries
	// that were delivered since.
	if err := os.Remove(record); err != nil {
		return err
	}
	if err := dirfs.SyncPath(tmp); err != nil {
		return err
	}
	os.Remove(tmp) // fails unless it is empty
	return nil
}

// emptyPlace removes new/$feed or cur/$feed, each entry by a rename to tmp/ first.
func emptyPlace(d *dirfs.Dir, place, feed string) error {
	rel := place + "/" + feed
	if d.Inside(rel) == nil {
		names, err := dirfs.Names(d.Join(rel))
		if err != nil && !isNotExist(err) {
			return err
		}
		for _, name := range names {
			unique, _, _ := strings.Cut(name, ";")
			// A viewer may have moved the entry; it is removed from its new place later.
			if err := d.PutAside(d.Join(rel, name), d.Join("tmp", feed, unique+dirfs.Gone)); err != nil &&
				!isNotExist(err) {
				return err
			}
		}
	}
	// Removes a link, files of other programs, and entries that a viewer has just moved here.
	return os.RemoveAll(d.Join(rel))
}
