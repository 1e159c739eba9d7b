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
	if err := atomicfile.NoLinks(d.Path(), "etc/cloudd"); err != nil {
		return nil, err
	}
	path := d.Join("etc/cloudd/lock")
	err = atomicfile.InDir(path, func() (err error) { unlock, err = atomicfile.Lock(path, ErrBusy); return err })
	return unlock, err
}

// heardFile has the time when a listener last ran. Hubs drop a listener that is away for
// long, without notice.
const heardFile = "etc/cloudd/heard"

func lastHeard(d *lektordir.Dir) time.Time {
	line, _ := atomicfile.Line(d.Join(heardFile))
	t, _ := time.Parse(time.RFC3339, line)
	return t
}

func writeHeard(d *lektordir.Dir, now time.Time) error {
	if err := atomicfile.NoLinks(d.Path(), "etc/cloudd"); err != nil {
		return err
	}
	path := d.Join(heardFile)
	return atomicfile.InDir(path,
		func() error { return atomicfile.WriteUnsynced(path, []byte(now.UTC().Format(time.RFC3339)+"\n")) })
}
