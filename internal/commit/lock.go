package commit

import (
	"errors"
	"fmt"
	"os"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/dirfs"
)

// BusyError is returned when another fetcher holds a feed's lock.
type BusyError struct{ Feed string }

// Is reports true for [os.ErrDeadlineExceeded], by which callers of package lektordir know it.
func (e *BusyError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

func (e *BusyError) Error() string {
	return fmt.Sprintf("feed %s is being fetched by another process", e.Feed)
}

// Lock takes a feed's lock, etc/fetch/lock/$feed, without waiting. The file
// is never removed: whoever had opened it before would hold a lock that the
// next one does not see.
func Lock(d *dirfs.Dir, feed string) (unlock func(), err error) {
	if err := atomicfile.NoLinks(d.Path, "etc/fetch", "etc/fetch/lock"); err != nil {
		return nil, fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	path := d.Join("etc/fetch/lock", feed)
	busy := &BusyError{Feed: feed}
	unlock, err = atomicfile.Lock(path, busy)
	if isNotExist(err) {
		if err := os.MkdirAll(d.Join("etc/fetch/lock"), 0o777); err != nil {
			return nil, err
		}
		unlock, err = atomicfile.Lock(path, busy)
	}
	if err != nil && err != error(busy) {
		err = fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	return unlock, err
}

func isNotExist(err error) bool { return errors.Is(err, os.ErrNotExist) }
