package commit

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// A disk, an editor or a restored backup can damage a journal. A line with a wrong checksum shows
// it. So does the size of the feed's lock file, which is that of the journal after the last
// delivery, or 0 if that is unknown: it takes no space, and the file is open anyway. If it is unknown,
// entries without a line show what is lost. A journal is verified only when a document has an entry
// that it lacks.

// recordedSize returns the size of the journal after the last delivery, or 0 if it is unknown.
func recordedSize(d *dirfs.Dir, feed string) int64 {
	fi, err := dirfs.Lstat(d.Join(lockPath(feed)))
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	return fi.Size()
}

// recordSize records the size of the journal, whose lines are durable. The caller holds the feed's
// lock. A failure only makes a later loss of lines harder to notice.
func recordSize(d *dirfs.Dir, feed string, size int64) { _ = os.Truncate(d.Join(lockPath(feed)), size) }

// Damage describes the damage of a feed's journal, or returns "". If other programs use the journal, it
// may be wrong, unless the caller holds the feed's lock.
//
// A feed without a recorded size needs no journal: other programs have delivered its entries, or the
// lektor-dir is a copy without the state of the fetcher.
func Damage(d *dirfs.Dir, feed string) (string, error) {
	if _, err := dirfs.Lstat(d.Join(JournalPath(feed))); isNotExist(err) && recordedSize(d, feed) == 0 {
		return "", nil
	}
	found, _, j, err := examine(d, feed)
	if err == nil && j.Size > j.Good {
		found = append(found, fmt.Sprintf("%d bytes after its last line are ignored", j.Size-j.Good))
	}
	return strings.Join(found, "; "), err
}

// examine reads the journal of a feed. found describes its damage; lacking holds records of the
// entries that have no line. The part of a line at the end that a killed program leaves is no damage.
func examine(d *dirfs.Dir, feed string) (found []string, lacking []journal.Record, j *journal.Journal, err error) {
	// In this order, other programs can deliver entries meanwhile.
	size := recordedSize(d, feed)
	listing, err := d.List(context.Background(), feed, true)
	if err != nil {
		return nil, nil, nil, err
	}
	if j, err = freshJournal(d, feed); err != nil {
		return nil, nil, nil, err
	}
	uniques := make([]string, len(listing.Names))
	for i, n := range listing.Names {
		uniques[i] = n.Unique
	}
	if n := j.Bad(); n > 0 {
		found = append(found, humanize.Count(n, "damaged line"))
	}
	lacking = j.Missing(uniques)
	if j.Good < size && (j.Size > 0 || len(lacking) > 0) { // otherwise the feed was removed
		found = append(found, fmt.Sprintf("%d bytes are lost", size-j.Good))
	}
	if n := len(lacking); n > 0 {
		found = append(found, "no line for "+humanize.Count(n, "entry")+" of new/ and cur/")
	}
	return found, lacking, j, nil
}

// verify looks for damage of the transaction's journal, and adds the lines of the entries in new/ and
// cur/ that have none, so that they are not delivered again. Damaged lines stay.
func (t *Txn) verify(j *journal.Journal) error {
	size := recordedSize(t.d, t.feed)
	never := size == 0 && isNotExist(t.d.Inside("new/"+t.feed)) && isNotExist(t.d.Inside("cur/"+t.feed))
	if j.Bad() == 0 && j.Good >= size && (size > 0 || never) {
		return nil
	}
	found, lacking, read, err := examine(t.d, t.feed)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := t.mkdirs(srcDirs(t.feed)...); err != nil {
		return err
	}
	read.KeepTorn()
	if err := journal.Append(t.d.Join(JournalPath(t.feed)), read, lacking); err != nil {
		return err
	}
	if read, err = freshJournal(t.d, t.feed); err != nil {
		return err
	}
	*j = *read
	if t.w.warn != nil {
		t.w.warn(fmt.Sprintf("%s is damaged: %s; entries that you deleted may be delivered again", JournalPath(t.feed),
			strings.Join(found, "; ")))
	}
	return nil
}

// RepairJournal restores the lines of entries that a feed's journal lacks, and removes damaged lines.
func RepairJournal(d *dirfs.Dir, feed string) error {
	t, err := (&Writer{d: d}).Begin(feed)
	if err != nil {
		return err
	}
	defer t.Close()
	j, err := t.Journal()
	if err == nil {
		err = t.verify(j)
	}
	if err != nil {
		return err
	}
	repaired, err := t.compact(j)
	if err == nil && repaired == j {
		err = fmt.Errorf("%s: it cannot be repaired while tmp/%s has entries", JournalPath(feed), feed)
	}
	return err
}
