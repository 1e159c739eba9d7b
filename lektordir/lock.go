package lektordir

import (
	"errors"
	"fmt"
	"os"

	"github.com/lektordir/lektor/internal/filelock"
)

// BusyError is returned when another fetcher holds a feed's lock.
type BusyError struct{ Feed string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("feed %s is being fetched by another process", e.Feed)
}

// lockFeed takes a feed's lock, etc/fetch/lock/$feed, without waiting. The file
// is never removed: whoever had opened it before would hold a lock that the
// next one does not see.
func (d *Dir) lockFeed(feed string) (*filelock.Lock, error) {
	if err := d.Inside("etc/fetch", "etc/fetch/lock"); err != nil {
		return nil, fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	path := d.Join("etc/fetch/lock", feed)
	l, err := filelock.Take(path, 0o666)
	if isNotExist(err) {
		if err := os.MkdirAll(d.Join("etc/fetch/lock"), 0o777); err != nil {
			return nil, err
		}
		l, err = filelock.Take(path, 0o666)
	}
	if errors.Is(err, filelock.ErrHeld) {
		return nil, &BusyError{Feed: feed}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	return l, nil
}
