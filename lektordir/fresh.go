package lektordir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/dirfs"
)

// staleness is longer than what a file has in it is remembered.
const staleness = 10 * time.Second

// freshJournal reads the journal of a feed whose lock the caller has: all that is in
// it, whichever machine wrote it.
func (d *Dir) freshJournal(feed string) (*journal, error) {
	path := d.journalPath(feed)
	if !d.fs.Shared() {
		return readJournal(path)
	}
	// That there is none is remembered with the directory, until that is opened.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		dir.Close()
	}
	dirfs.Refresh(path)
	const pause = 50 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		j, err := readJournal(path)
		if err != nil {
			return nil, err
		}
		// Journals grow; what is read is short where it is old.
		size := int64(0)
		fi, err := dirfs.Lstat(path)
		switch {
		case err == nil:
			size = fi.Size()
		case !isNotExist(err):
			return nil, err
		}
		if size == j.size {
			return j, nil
		}
		if waited >= staleness {
			return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has %d bytes, and the file system gives %d", size, j.size)}
		}
		if err := d.fs.Sleep(context.Background(), pause); err != nil {
			return nil, err
		}
	}
}
