package commit

import (
	"os"
	"strings"

	"github.com/lektordir/lektor/internal/dirfs"
)

// Purging is the file in tmp/$feed that records that the whole feed is being removed.
// Recovery restores no name with a ';'.
const Purging = ";purge"

// finishPurge removes a feed if the file [Purging] records its removal. The caller has the
// feed's lock; slow is [Options.SlowSync]. The record is removed last, even if power is cut
// at any step.
func finishPurge(d *dirfs.Dir, slow bool, feed string) error {
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
	s, err := d.NewSyncer(slow)
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
	// Entries that came back after the journal was gone would be delivered twice.
	if err := s.Sync(d.Join("new"), d.Join("cur"), tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	for _, e := range left {
		if e.Name() != Purging {
			if err := os.RemoveAll(tmp + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	if err := s.Sync(d.Join("src")); err != nil {
		return err
	}
	// A record that came back would remove what was delivered since.
	if err := os.Remove(record); err != nil {
		return err
	}
	if err := dirfs.SyncPath(tmp); err != nil {
		return err
	}
	os.Remove(tmp) // unless somebody put an entry there
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
			// A viewer may have moved the entry first; it is found in its new place later.
			if err := d.PutAside(feed, d.Join(rel, name), d.Join("tmp", feed, unique+dirfs.Gone)); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	// A link, foreign files, and entries that a viewer moves here now may remain.
	return os.RemoveAll(d.Join(rel))
}
