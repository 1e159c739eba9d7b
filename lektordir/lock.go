package lektordir

import (
	"fmt"
	"os"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// BusyError is returned when another fetcher holds a feed's lock.
type BusyError struct{ Feed string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("feed %s is being fetched by another process", e.Feed)
}

// lockFeed takes a feed's lock, etc/fetch/lock/$feed, without waiting. The file
// is never removed: whoever had opened it before would hold a lock that the
// next one does not see.
func (d *Dir) lockFeed(feed string) (*flock.Flock, error) {
	if err := d.Inside("etc/fetch", "etc/fetch/lock"); err != nil {
		return nil, fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	path := d.Join("etc/fetch/lock", feed)
	l := flock.New(path, flock.SetPermissions(0o666), flock.SetFlag(os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW))
	ok, err := l.TryLock()
	if isNotExist(err) {
		if err := os.MkdirAll(d.Join("etc/fetch/lock"), 0o777); err != nil {
			return nil, err
		}
		ok, err = l.TryLock()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	if !ok {
		return nil, &BusyError{Feed: feed}
	}
	return l, nil
}
