package listener

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// ErrBusy is returned by [Lock] when another listener has the lektor-dir.
var ErrBusy = errors.New("another lektor-cloudd listens for this lektor-dir already")

// Lock makes sure that one listener keeps the registrations of a lektor-dir: two
// would each tell the hubs another callback. The lock is the file
// etc/cloudd/lock, which is never removed; it ends with unlock, or with the
// process.
func Lock(d *lektordir.Dir) (unlock func(), err error) {
	if err := atomicfile.NoLinks(d.Path(), "etc/cloudd"); err != nil {
		return nil, err
	}
	path := d.Join("etc/cloudd/lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return atomicfile.Lock(path, ErrBusy)
}

// heardFile is when the listener last listened. A hub gives up a listener that is
// away for long, and does not say so.
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
	if err := os.MkdirAll(d.Join("etc/cloudd"), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteUnsynced(d.Join(heardFile), []byte(now.UTC().Format(time.RFC3339)+"\n"))
}
