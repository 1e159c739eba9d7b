package commit

import (
	"context"
	"os"
	"strings"

	"github.com/lektordir/lektor/internal/dirfs"
)

// Purging is the file in tmp/$feed that tells that all of the feed is being
// removed. Recovery restores no name with a ';'.
const Purging = ";purge"

// Purge removes a feed with all its entries, and forgets what was delivered of
// it. Once begun, it will be finished: after an interruption by the next run of a
// fetcher that recovers, delivers to the feed or checks with repair. When it
// returns without an error, it is done and on the disk. It waits some seconds for
// another fetcher that has the feed; the error is a [*BusyError] then.
func (w *Writer) Purge(ctx context.Context, feed string) error {
	t, err := w.BeginWait(ctx, feed)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := w.d.MkTmp(feed); err != nil {
		return err
	}
	if err := w.d.Inside("tmp/" + feed); err != nil {
		return err
	}
	f, err := os.OpenFile(w.d.Join("tmp", feed, Purging), os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return w.finishPurge(feed)
}

// finishPurge removes a feed of which it was recorded that it is to be removed.
// The caller has its lock. The order is such that whatever a power cut leaves,
// the record is there until nothing else is.
func (w *Writer) finishPurge(feed string) error {
	d := w.d
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
	s, err := d.NewSyncer(w.slow)
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
			// A viewer may be faster; he moves it to where it is found later.
			if err := d.PutAside(feed, d.Join(rel, name), d.Join("tmp", feed, unique+dirfs.Gone)); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	// What is left are a link's or others' files, and what a viewer puts there now.
	return os.RemoveAll(d.Join(rel))
}
