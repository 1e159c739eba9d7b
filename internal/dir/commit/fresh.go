package commit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// JournalPath returns the path of a feed's journal, relative to the lektor-dir.
func JournalPath(feed string) string { return "src/" + feed + "/etc/fetch/seen" }

// PropertiesPath returns the path of the record of properties that stage keeps of the entries of the
// feed's last document, relative to the lektor-dir.
func PropertiesPath(feed string) string { return "src/" + feed + "/etc/fetch/properties" }

// staleness is longer than the time for which a client of a network file system caches data.
const staleness = 10 * time.Second

// freshJournal reads the journal of a feed, with all lines that other machines wrote. The caller
// holds the feed's lock.
func freshJournal(d *dirfs.Dir, feed string) (*journal.Journal, error) {
	path := d.Join(JournalPath(feed))
	if !d.Shared() {
		return journal.Read(path)
	}
	// A client caches that the file does not exist until the directory is opened.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		dir.Close()
	}
	dirfs.Refresh(path)
	const pause = 50 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		j, err := journal.Read(path)
		if err != nil {
			return nil, err
		}
		// A journal grows, so cached data is shorter than the file.
		size := int64(0)
		fi, err := dirfs.Lstat(path)
		switch {
		case err == nil:
			size = fi.Size()
		case !isNotExist(err):
			return nil, err
		}
		if size == j.Size {
			return j, nil
		}
		if waited >= staleness {
			return nil, &os.PathError{Op: "read", Path: path,
				Err: fmt.Errorf("it has %d bytes, but the file system returns %d of them", size, j.Size)}
		}
		if err := d.Sleep(context.Background(), pause); err != nil {
			return nil, err
		}
	}
}
