package commit

import (
	"errors"
	"fmt"
	"os"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// lockPath returns the path of a feed's lock file, relative to the lektor-dir.
func lockPath(feed string) string { return "etc/fetch/lock/" + feed }

// BusyError is the error if another fetcher holds a feed's lock.
type BusyError struct{ Feed string }

// Is reports whether target is [os.ErrDeadlineExceeded], which package lektordir documents.
func (e *BusyError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

func (e *BusyError) Error() string {
	return fmt.Sprintf("feed %s is being fetched by another process", e.Feed)
}

// IsBusy reports whether an error is a [*BusyError].
func IsBusy(err error) bool { return errors.As(err, new(*BusyError)) }

// Lock locks a feed without waiting. The error is a [*BusyError] if another process holds the
// lock. The lock file, etc/fetch/lock/$feed, is never removed: two processes could then hold locks
// on different files of that name.
func Lock(d *dirfs.Dir, feed string) (unlock func(), err error) {
	if err := atomicfile.NoLinks(d.Path, "etc/fetch", "etc/fetch/lock"); err != nil {
		return nil, fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	path := d.Join(lockPath(feed))
	busy := &BusyError{Feed: feed}
	err = atomicfile.InDir(path, func() (err error) { unlock, err = atomicfile.Lock(path, busy); return err })
	if err != nil && err != error(busy) {
		err = fmt.Errorf("cannot lock feed %s: %w", feed, err)
	}
	return unlock, err
}

func isNotExist(err error) bool { return errors.Is(err, os.ErrNotExist) }
