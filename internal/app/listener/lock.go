package listener

import (
	"errors"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// ErrBusy is returned by [Lock] if another listener holds the lock.
var ErrBusy = errors.New("another lektor-cloudd listens for this lektor-dir already")

// Lock locks the registrations of a lektor-dir for one listener, because two would register
// different callbacks. The lock is the file etc/cloudd/lock, which is never removed. It is
// held until unlock is called or the process ends.
func Lock(d *lektordir.Dir) (unlock func(), err error) {
	err = inState(d, "lock", func(path string) (err error) { unlock, err = atomicfile.Lock(path, ErrBusy); return err })
	return unlock, err
}

// inState calls do with the path of a file in the directory of the listener, which it creates if necessary.
func inState(d *lektordir.Dir, name string, do func(path string) error) error {
	if err := atomicfile.NoLinks(d.Path(), "etc/cloudd"); err != nil {
		return err
	}
	path := d.Join("etc/cloudd", name)
	return atomicfile.InDir(path, func() error { return do(path) })
}

// heardFile has the time when a listener last ran. Hubs drop a listener that is away for
// long, without notice.
const heardFile = "heard"

func lastHeard(d *lektordir.Dir) time.Time {
	line, _ := atomicfile.Line(d.Join("etc/cloudd", heardFile))
	t, _ := time.Parse(time.RFC3339, line)
	return t
}

func writeHeard(d *lektordir.Dir, now time.Time) error {
	return inState(d, heardFile, func(path string) error {
		return atomicfile.WriteUnsynced(path, []byte(now.UTC().Format(time.RFC3339)+"\n"))
	})
}
