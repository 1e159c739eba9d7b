package feeddir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/lektordir"
)

// The directories of markers, empty files with the name of a feed. One in due
// asks for a fetch at once; whoever fetches moves it to taken, and removes it
// there when the request is over. What a kill leaves in taken is done again.
const (
	markersDir = "etc/fetch"
	dueDir     = markersDir + "/due"
	takenDir   = markersDir + "/taken"
)

// DueDir is the directory of the due markers, for those who watch it.
func DueDir(d *lektordir.Dir) string { return d.Join(dueDir) }

// CheckMarkers is the error for directories of markers that lie elsewhere by way
// of a link: markers are moved and removed without a look at who left them.
func CheckMarkers(d *lektordir.Dir) error {
	return atomicfile.NoLinks(d.Path(), markersDir, dueDir, takenDir)
}

// Leave leaves a due marker for a feed, etc/fetch/due/$feed: whoever fetches does
// so at once. One that is there already will do. The error is for one that cannot
// be left, or that would come to lie out of the lektor-dir by way of a link.
func Leave(d *lektordir.Dir, hash string) error {
	if err := atomicfile.NoLinks(d.Path(), markersDir, dueDir); err != nil {
		return err
	}
	path := d.Join(dueDir, hash)
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

// Left gives the hashes of the feeds that somebody wants fetched at once: a due
// marker lies there, or one that an earlier run had taken and did not live to
// finish. Markers of feeds that are not there are removed. warn is told, printf
// style, of these and of what could not be looked at.
func Left(d *lektordir.Dir, warn func(format string, args ...any)) map[string]bool {
	left := map[string]bool{}
	for _, place := range []string{dueDir, takenDir} {
		// Looked at each time, as a watch may run for months.
		if err := atomicfile.NoLinks(d.Path(), markersDir, place); err != nil {
			warn("%v", err)
			continue
		}
		ents, err := os.ReadDir(d.Join(place))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			warn("%v", err)
		}
		for _, e := range ents {
			h := e.Name()
			if strings.HasPrefix(h, ".") {
				continue
			}
			if _, err := os.Stat(d.Join("src", h)); errors.Is(err, fs.ErrNotExist) {
				warn("%s/%s was removed: there is no such feed", place, h)
				os.RemoveAll(d.Join(place, h))
				continue
			}
			left[h] = true
		}
	}
	return left
}

// Take takes the due marker of a feed. It reports whether there is one, or one
// that was taken before and not cleared; that may be so in spite of an error.
func Take(d *lektordir.Dir, hash string) (bool, error) {
	due, taken := d.Join(dueDir, hash), d.Join(takenDir, hash)
	var bad error
	if _, err := os.Lstat(due); !errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(due, taken)
		if errors.Is(err, fs.ErrNotExist) {
			// There was no directory to move it to.
			if err = os.MkdirAll(filepath.Dir(taken), 0o777); err == nil {
				err = os.Rename(due, taken)
			}
		}
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			bad = err
		}
	}
	dirfs.Fresh(d.Path(), taken)
	_, err := os.Lstat(taken)
	return err == nil, bad
}

// Clear removes the marker that [Take] took, after the request that it asked
// for.
func Clear(d *lektordir.Dir, hash string) error { return remove(d.Join(takenDir, hash)) }
