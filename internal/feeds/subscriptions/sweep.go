package subscriptions

import (
	"os"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// sweepFile is a file whose modification time is the time of the last [Sweep].
const sweepFile = feedfiles.FetchDir + "/swept"

// sweepEvery is the time between two sweeps.
const sweepEvery = time.Hour

// Sweep removes the temporary files of killed programs from etc/ and src/ of the lektor-dir, and feeds
// that a killed program began an hour ago (see [commit.Unfinished]), at most once an hour.
func Sweep(w *commit.Writer, d *lektordir.Dir, now time.Time) {
	path := d.Join(sweepFile)
	if last, ok := feedfiles.ModTime(path); ok && !last.After(now) && now.Sub(last) < sweepEvery {
		return
	}
	if err := atomicfile.NoLinks(d.Path(), feedfiles.FetchDir); err != nil {
		return
	}
	// After a failure, the next run sweeps again.
	if err := atomicfile.WriteUnsynced(path, nil); err == nil {
		_ = os.Chtimes(path, now, now)
	}
	atomicfile.SweepTree(d.Join("etc"), now)
	atomicfile.SweepTree(d.Join("src"), now)
	hashes, _ := d.FeedHashes()
	for _, hash := range hashes {
		id, err := os.Lstat(d.Join("src", hash, "id"))
		if at, _ := feedfiles.ModTime(d.Join("src", hash)); err == nil && id.Size() > 0 || now.Sub(at) < sweepEvery {
			continue
		}
		if t, err := w.Begin(hash); err == nil {
			_ = commit.RemoveUnfinished(t.Dir(), hash) // it stays, and lektor-fetch check says why
			t.Close()
		}
	}
}

// ListFile returns the path of the OPML list into which all imported lists were merged. An export
// starts from it to preserve unknown elements.
func ListFile(d *lektordir.Dir) string { return d.Join("etc/fetch/opml") }

// WriteList durably replaces the file of [ListFile]. Only the user can read it, because URLs in it may
// have passwords.
func WriteList(d *lektordir.Dir, data []byte) error {
	path := ListFile(d)
	return atomicfile.InDir(path, func() error { return atomicfile.WritePrivate(path, data) })
}

// warnedFile exists if the user was warned that others may read the lektor-dir.
const warnedFile = feedfiles.FetchDir + "/told-open"

// RecordOpenWarning records the warning that others may read the lektor-dir, and reports whether it is the
// first.
func RecordOpenWarning(d *lektordir.Dir) bool {
	path := d.Join(warnedFile)
	if _, err := os.Lstat(path); err == nil {
		return false
	}
	if atomicfile.NoLinks(d.Path(), feedfiles.FetchDir) == nil {
		_ = atomicfile.WriteUnsynced(path, nil) // if it fails, the user is warned again
	}
	return true
}
