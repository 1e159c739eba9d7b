// Package feedstate reads and writes src/$feed with its etc, and the markers of feeds that are due. It
// manages the subscriptions of a lektor-dir. A feed is subscribed to as long as
// src/$feed/etc/fetch/url exists. A feed without that file belongs to another fetcher and is not
// changed.
//
// Start reading with drawer.go. The other files are:
//
//   - subscribe.go adds and removes subscriptions, many.go adds many, and find.go finds them by name;
//   - set.go changes settings;
//   - state.go is the state between fetches: settings.go, learned.go and schedule.go, which area.go
//     stores; visit.go combines it with a request;
//   - history.go and spool.go are for archives, pages.go is for full text, and marks.go for flags of
//     entries that are not delivered yet;
//   - push.go is for notifications, ess.go for ESS, markers.go for feeds that are due at once, and
//     private.go for private feeds.
package feedstate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// MaxClockGap is how far the clock may be ahead of the latest known time, for example [ServerTime], before
// the user must confirm it.
const MaxClockGap = commit.MaxClockGap

// RecordDate is like [commit.RecordServerTime], but fails if a link may lead out of the lektor-dir.
func RecordDate(d *lektordir.Dir, date, now time.Time) error {
	if err := atomicfile.NoLinks(d.Path(), "etc", "etc/fetch"); err != nil {
		return err
	}
	return commit.RecordServerTime(d.Path(), date, now)
}

// ServerTime returns the greatest Date that [RecordDate] has recorded, or the zero time.
func ServerTime(d *lektordir.Dir) time.Time { return commit.ServerTime(d.Path()) }

// ListFile returns the path of the OPML list into which all imported lists were merged. An export
// starts from it to preserve unknown elements.
func ListFile(d *lektordir.Dir) string { return d.Join("etc/fetch/opml") }

// WriteList durably replaces the file of [ListFile]. Only the user can read it, because URLs in it may
// have passwords.
func WriteList(d *lektordir.Dir, data []byte) error {
	path := ListFile(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := guard(path); err != nil {
		return err
	}
	return atomicfile.Write(path, data)
}

// sweepFile is a file whose modification time is the time of the last [Sweep].
const sweepFile = markersDir + "/swept"

// sweepEvery is the time between two sweeps.
const sweepEvery = time.Hour

// Sweep removes the temporary files of killed programs from etc/ and src/ of the lektor-dir, and feeds
// that a killed program began an hour ago (see [commit.Unfinished]), at most once an hour.
func Sweep(w *commit.Writer, d *lektordir.Dir, now time.Time) {
	path := d.Join(sweepFile)
	if last, ok := mtime(path); ok && !last.After(now) && now.Sub(last) < sweepEvery {
		return
	}
	if err := atomicfile.NoLinks(d.Path(), markersDir); err != nil {
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
		if at, _ := mtime(d.Join("src", hash)); err == nil && id.Size() > 0 || now.Sub(at) < sweepEvery {
			continue
		}
		if t, err := w.Begin(hash); err == nil {
			_ = commit.RemoveUnfinished(t.Dir(), hash) // it stays, and lektor-fetch check says why
			t.Close()
		}
	}
}

// stateDir returns the directory of the feed's [State].
func stateDir(d *lektordir.Dir, hash string) string { return areaDir(d, hash, "fetch") }

// OnUpdateOf returns the setting on-update of a feed. It fails if the setting cannot be read.
func OnUpdateOf(d *lektordir.Dir, hash string) (lektordir.Policy, error) {
	a, err := LoadValues(stateDir(d, hash))
	if err != nil {
		return "", err
	}
	v := readSettings(a).OnUpdate()
	return v, a.ReadError(fileOnUpdate)
}

// Load loads the state of a feed. If the feed has none, the state is empty. Load fails if etc/fetch,
// etc or src/$feed is a symbolic link, because saving might write outside the lektor-dir.
func Load(d *lektordir.Dir, hash string) (*State, error) { return loadState(stateDir(d, hash)) }

// URL returns the URL from which a feed is fetched. It may contain a password. The error is
// fs.ErrNotExist if the feed is not subscribed to.
func URL(d *lektordir.Dir, hash string) (string, error) {
	return atomicfile.Line(filepath.Join(stateDir(d, hash), fileURL))
}

// Checked returns the time of the last request for a feed, zero if there was none.
func Checked(d *lektordir.Dir, hash string) time.Time {
	t, _ := mtime(filepath.Join(stateDir(d, hash), fileChecked))
	return t
}

// Next returns when a feed is due, zero for at once.
func Next(d *lektordir.Dir, hash string) time.Time {
	t, _ := mtime(filepath.Join(stateDir(d, hash), fileNext))
	return t
}

// LastError returns the error of a feed's last fetch in one line, "" if it succeeded.
func LastError(d *lektordir.Dir, hash string) string {
	line, _ := atomicfile.Line(filepath.Join(stateDir(d, hash), fileError))
	return termsafe.Brief(line)
}

// Due is like [State.Due], but only reads modification times. next is the time at which the feed is due.
func Due(d *lektordir.Dir, hash string, now time.Time) (due bool, next time.Time) {
	dir := stateDir(d, hash)
	return isDue(func(name string) (time.Time, bool) { return mtime(filepath.Join(dir, name)) }, now)
}

func isDue(mtime func(name string) (time.Time, bool), now time.Time) (due bool, next time.Time) {
	next, ok := mtime(fileNext)
	if !ok || !next.After(now) {
		return true, next
	}
	checked, ok := mtime(fileChecked)
	return ok && checked.After(now.Add(clockSkew)), next
}

// Revalidate calls [dirfs.Revalidate] for the files that [State.Due] uses, because another machine may
// have changed them. The caller must hold the feed's lock, and must not have loaded the state.
func Revalidate(d *lektordir.Dir, hash string) {
	for _, name := range []string{fileNext, fileChecked} {
		dirfs.Revalidate(d.Path(), filepath.Join(stateDir(d, hash), name))
	}
}

// IntervalChanged reports whether the interval of a feed was written since the last request, for
// example by an editor. If so, call [State.Reschedule].
func IntervalChanged(d *lektordir.Dir, hash string) bool {
	interval, ok := mtime(filepath.Join(stateDir(d, hash), fileInterval))
	if !ok {
		return false
	}
	checked, ok := mtime(filepath.Join(stateDir(d, hash), fileChecked))
	return ok && interval.After(checked)
}

// Trusted returns an error if a command of a feed (an exec: URL, a filter) must not be run, because
// another user may have written it: the lektor-dir and everything on the path to the file of the
// setting must belong to the user of this process, and nobody else may have write permission; see
// [atomicfile.Trusted]. If setting is empty, Trusted checks the directory of the settings; if
// hash is empty, it checks src. The error has the reason and the remedy.
func Trusted(d *lektordir.Dir, hash, setting string) error {
	parts := []string{"src"}
	if hash != "" {
		parts = slices.DeleteFunc([]string{"src", hash, "etc", "fetch", setting},
			func(s string) bool { return s == "" })
	}
	return TrustedFile(d, parts...)
}

// TrustedFile is [Trusted] for any file of the lektor-dir that contains commands. parts are the
// directories on the path, and the file.
func TrustedFile(d *lektordir.Dir, parts ...string) error {
	path := d.Path()
	for _, part := range append([]string{""}, parts...) {
		path = filepath.Join(path, part)
		if err := atomicfile.Trusted(path, "commands from it are not run"); err != nil {
			return err
		}
	}
	return nil
}

// record writes text to a file below src/$feed/etc/area, unless the file has it already. An empty
// text removes the file.
func record(d *lektordir.Dir, hash, area, name, text string) error {
	return recordBy(atomicfile.WriteUnsynced, remove, d, hash, area, name, text)
}

// recordDurably is like record, but makes the change durable.
func recordDurably(d *lektordir.Dir, hash, area, name, text string) error {
	return recordBy(atomicfile.Write, atomicfile.Remove, d, hash, area, name, text)
}

func recordBy(write func(path string, data []byte) error, remove func(path string) error, d *lektordir.Dir, hash, area,
	name, text string) error {
	path := filepath.Join(areaDir(d, hash, area), name)
	old, err := atomicfile.Read(path, max(maxFile, int64(len(text))))
	if text == "" && errors.Is(err, fs.ErrNotExist) || text != "" && err == nil && string(old) == text {
		return nil
	}
	if err := Guard(d, hash, area); err != nil {
		return err
	}
	if text == "" {
		return remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return write(path, []byte(text))
}

// asLines returns the text of a file of lines.
func asLines(lines ...string) string {
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// areaDir returns the directory src/$feed/etc/AREA, in which a program keeps its files. It need not
// exist.
func areaDir(d *lektordir.Dir, hash, area string) string { return d.Join("src", hash, "etc", area) }

// Guard returns an error if a directory on the path to a feed's area is a symbolic link, because a
// write would follow it. An empty area means src/$feed/etc.
func Guard(d *lektordir.Dir, hash, area string) error {
	etc := "src/" + hash + "/etc"
	if err := atomicfile.NoLinks(d.Path(), "src/"+hash, etc); err != nil || area == "" {
		return err
	}
	return atomicfile.NoLinks(d.Path(), etc+"/"+area)
}

// NewWriter returns a writer that delivers to a lektor-dir, see [commit.NewWriter].
func NewWriter(d *lektordir.Dir, o commit.Options) (*commit.Writer, error) {
	return commit.NewWriter(dirfs.New(d.Path(), dirfs.Options(d.Options())), o)
}
