package schedule

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// The directories of markers. A marker is an empty file with the hash of a feed as its name. A marker in
// due asks for a fetch at once. The fetcher moves it to taken, and removes it after the request. If the
// fetcher was killed, a marker in taken is treated like one in due.
const (
	dueDir   = feedfiles.FetchDir + "/due"
	takenDir = feedfiles.FetchDir + "/taken"
)

// DueDir returns the directory of the due markers, for callers that watch it.
func DueDir(d *lektordir.Dir) string { return d.Join(dueDir) }

// CheckMarkers returns an error if a directory of markers is behind a symbolic link, because markers are
// moved and removed without further checks.
func CheckMarkers(d *lektordir.Dir) error {
	return atomicfile.NoLinks(d.Path(), feedfiles.FetchDir, dueDir, takenDir)
}

// AddMarker creates a due marker for a feed, etc/fetch/due/$feed, so that a fetcher fetches it at once.
// It returns nil if there is one, and an error if the marker cannot be created, or would be outside
// the lektor-dir because of a link.
func AddMarker(d *lektordir.Dir, hash string) error {
	if err := atomicfile.NoLinks(d.Path(), feedfiles.FetchDir, dueDir); err != nil {
		return err
	}
	path := d.Join(dueDir, hash)
	if atomicfile.Exists(path) {
		return nil
	}
	return atomicfile.InDir(path, func() error { return atomicfile.CreateUnsynced(path, nil) })
}

// Marked returns the hashes of the feeds that have a due marker, or a taken marker of a run that was
// killed. It removes markers of feeds that do not exist. It calls warn, printf style, for these and
// for errors.
func Marked(d *lektordir.Dir, warn func(format string, args ...any)) map[string]bool {
	marked := map[string]bool{}
	for _, place := range []string{dueDir, takenDir} {
		// Checked each time, because a program that watches may run for months.
		if err := atomicfile.NoLinks(d.Path(), feedfiles.FetchDir, place); err != nil {
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
			marked[h] = true
		}
	}
	return marked
}

// TakeMarker moves the due marker of a feed to taken. It reports whether the feed had a due marker, or a
// taken marker that was not cleared. The result is valid even with an error.
func TakeMarker(d *lektordir.Dir, hash string) (bool, error) {
	due, taken := d.Join(dueDir, hash), d.Join(takenDir, hash)
	var bad error
	if _, err := os.Lstat(due); !errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.InDir(taken, func() error { return os.Rename(due, taken) })
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			bad = err
		}
	}
	dirfs.Revalidate(d.Path(), taken)
	_, err := os.Lstat(taken)
	return err == nil, bad
}

// ClearMarker removes the marker that [TakeMarker] took. Call it after the request.
func ClearMarker(d *lektordir.Dir, hash string) error {
	return atomicfile.RemoveUnsynced(d.Join(takenDir, hash))
}

// RemoveMarkers removes the markers of a feed.
func RemoveMarkers(d *lektordir.Dir, hash string) {
	for _, place := range []string{dueDir, takenDir} {
		os.Remove(d.Join(place, hash))
	}
}
