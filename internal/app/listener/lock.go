package listener

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/lektordir"
)

// ErrBusy is returned by [Lock] when another listener has the lektor-dir.
var ErrBusy = errors.New("another lektor-cloudd listens for this lektor-dir already")

// Lock makes sure that one listener keeps the registrations of a lektor-dir: two
// would each tell the hubs another callback. The lock is the file
// etc/cloudd/lock, which is never removed; it ends with unlock, or with the
// process.
func Lock(d *lektordir.Dir) (unlock func(), err error) {
	if err := d.Inside("etc/cloudd"); err != nil {
		return nil, err
	}
	path := d.Join("etc/cloudd/lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW))
	ok, err := l.TryLock()
	if err == nil && !ok {
		err = ErrBusy
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Unlock() }, nil
}
