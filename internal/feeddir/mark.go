package feeddir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lektordir/lektor/lektordir"
)

// Mark leaves a due marker for a feed, etc/fetch/due/$feed: whoever fetches does
// so at once. One that is there already will do. The error is for one that cannot
// be left, or that would come to lie out of the lektor-dir by way of a link.
func Mark(d *lektordir.Dir, hash string) error {
	if err := d.Inside("etc/fetch", "etc/fetch/due"); err != nil {
		return err
	}
	path := d.Join("etc/fetch/due", hash)
	// Exclusively: through no link, and waiting for no reader of a pipe.
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		f, err = os.OpenFile(path, flags, 0o666)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}
