package schedule

import (
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// OnUpdateOf returns the setting on-update of a feed. It fails if the setting cannot be read.
func OnUpdateOf(d *lektordir.Dir, hash string) (lektordir.Policy, error) {
	a, err := feedfiles.LoadValues(feedfiles.FetchArea(d, hash))
	if err != nil {
		return "", err
	}
	v := readSettings(a).OnUpdate()
	return v, a.ReadError(feedfiles.FileOnUpdate)
}

// Load loads the state of a feed. If the feed has none, the state is empty. Load fails if etc/fetch,
// etc or src/$feed is a symbolic link, because saving might write outside the lektor-dir.
func Load(d *lektordir.Dir, hash string) (*State, error) {
	return LoadFrom(feedfiles.FetchArea(d, hash))
}

// Checked returns the time of the last request for a feed, zero if there was none.
func Checked(d *lektordir.Dir, hash string) time.Time {
	return feedfiles.TimeOf(filepath.Join(feedfiles.FetchArea(d, hash), fileChecked))
}

// Next returns when a feed is due, zero for at once.
func Next(d *lektordir.Dir, hash string) time.Time {
	return feedfiles.TimeOf(filepath.Join(feedfiles.FetchArea(d, hash), fileNext))
}

// LastError returns the error of a feed's last fetch in one line, "" if it succeeded.
func LastError(d *lektordir.Dir, hash string) string {
	line, _ := atomicfile.Line(filepath.Join(feedfiles.FetchArea(d, hash), fileError))
	return termsafe.Brief(line)
}

// Due is like [State.Due], but only reads modification times. next is the time at which the feed is due.
func Due(d *lektordir.Dir, hash string, now time.Time) (due bool, next time.Time) {
	dir := feedfiles.FetchArea(d, hash)
	return isDue(func(name string) (time.Time, bool) { return feedfiles.ModTime(filepath.Join(dir, name)) }, now)
}

func isDue(mtime func(name string) (time.Time, bool), now time.Time) (due bool, next time.Time) {
	next, ok := mtime(fileNext)
	if !ok || !next.After(now) {
		return true, next
	}
	checked, ok := mtime(fileChecked)
	return ok && checked.After(now.Add(feedfiles.ClockSkew)), next
}

// Revalidate calls [dirfs.Revalidate] for the files that [State.Due] uses, because another machine may
// have changed them. The caller must hold the feed's lock, and must not have loaded the state.
func Revalidate(d *lektordir.Dir, hash string) {
	for _, name := range []string{fileNext, fileChecked} {
		dirfs.Revalidate(d.Path(), filepath.Join(feedfiles.FetchArea(d, hash), name))
	}
}

// IntervalChanged reports whether the interval of a feed was written since the last request, for
// example by an editor. If so, call [State.Reschedule].
func IntervalChanged(d *lektordir.Dir, hash string) bool {
	interval, ok := feedfiles.ModTime(filepath.Join(feedfiles.FetchArea(d, hash), feedfiles.FileInterval))
	if !ok {
		return false
	}
	checked, ok := feedfiles.ModTime(filepath.Join(feedfiles.FetchArea(d, hash), fileChecked))
	return ok && interval.After(checked)
}

// Changed returns the time at which a changed document of a feed was last read, or zero if there was
// none.
func Changed(d *lektordir.Dir, hash string) time.Time {
	return feedfiles.TimeOf(filepath.Join(feedfiles.Area(d, hash, "fetch"), fileBody))
}
