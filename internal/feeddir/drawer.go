// Package feeddir is a feed's drawer, src/$feed with its etc, and the markers that
// concern a feed. It keeps the subscriptions of a lektor-dir. A feed is
// subscribed to as long as src/$feed/etc/fetch/url exists; a feed without it
// belongs to another fetcher and is left alone.
//
// A reader begins with drawer.go. subscribe.go adds and removes subscriptions, many.go many at
// once, find.go finds them by what users call them; set.go changes a setting. state.go is what
// is kept between fetches, in an area.go: settings.go, learned.go and schedule.go; visit.go
// joins it with an exchange. history.go and spool.go are for archives, pages.go for full text,
// marks.go for flags that wait for their entries, push.go for notifications, ess.go for ESS,
// markers.go for feeds that are due at once, private.go for what others must not read.
package feeddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/servertime"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// NoteDate is [servertime.Note], which it refuses where a link leads out of the lektor-dir.
func NoteDate(d *lektordir.Dir, date, now time.Time) error {
	if err := atomicfile.NoLinks(d.Path(), "etc", "etc/fetch"); err != nil {
		return err
	}
	return servertime.Note(d.Path(), date, now)
}

// ListFile is the path of the union of the subscription lists (OPML) that were
// imported. An export begins with it, so that it gives back what we do not
// understand of them.
func ListFile(d *lektordir.Dir) string { return d.Join("etc/fetch/opml") }

// WriteList replaces them durably. URLs with passwords may stand in them: they
// are for the user alone.
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

// sweptFile has the time of the last [Sweep].
const sweptFile = markersDir + "/swept"

// sweepEvery is the time between two looks for temporary files.
const sweepEvery = time.Hour

// Sweep removes the temporary files that killed programs left in etc/ and src/ of the
// lektor-dir, unless that was done within the last hour.
func Sweep(d *lektordir.Dir, now time.Time) {
	path := d.Join(sweptFile)
	if last, ok := mtime(path); ok && !last.After(now) && now.Sub(last) < sweepEvery {
		return
	}
	if err := atomicfile.NoLinks(d.Path(), markersDir); err != nil {
		return
	}
	// The next run would merely look again, so a failure is ignored.
	if err := atomicfile.WriteUnsynced(path, nil); err == nil {
		_ = os.Chtimes(path, now, now)
	}
	atomicfile.SweepTree(d.Join("etc"), now)
	atomicfile.SweepTree(d.Join("src"), now, oldPendingURL)
}

// stateDir is the directory of the feed's [State].
func stateDir(d *lektordir.Dir, hash string) string { return drawer(d, hash, "fetch") }

// OnUpdateOf returns what [State.OnUpdate] does of a feed, and an error if the system
// cannot read the setting.
func OnUpdateOf(d *lektordir.Dir, hash string) (lektordir.Policy, error) {
	a, err := loadArea(stateDir(d, hash))
	if err != nil {
		return "", err
	}
	v := loadSettings(a).OnUpdate()
	return v, a.unread[fileOnUpdate]
}

// Load opens the state of a feed. One without any is empty. One behind a link, in
// its own place or in that of etc or of the feed, is an error: what is saved
// might be written out of the lektor-dir.
func Load(d *lektordir.Dir, hash string) (*State, error) { return loadState(stateDir(d, hash)) }

// URL gives where a feed is fetched from, and reads nothing else. It may contain a
// password. The error is fs.ErrNotExist when the feed is not subscribed to.
func URL(d *lektordir.Dir, hash string) (string, error) {
	return atomicfile.Line(filepath.Join(stateDir(d, hash), fileURL))
}

// Checked gives when a feed was last asked for, the zero time for never.
func Checked(d *lektordir.Dir, hash string) time.Time {
	t, _ := mtime(filepath.Join(stateDir(d, hash), fileChecked))
	return t
}

// Next gives when a feed is due, the zero time for at once.
func Next(d *lektordir.Dir, hash string) time.Time {
	t, _ := mtime(filepath.Join(stateDir(d, hash), fileNext))
	return t
}

// LastError gives the message of a feed's last fetch, one line, "" when it went
// well.
func LastError(d *lektordir.Dir, hash string) string {
	line, _ := atomicfile.Line(filepath.Join(stateDir(d, hash), fileError))
	return termsafe.Brief(line)
}

// Due tells, by modification times alone, whether a feed is due, as [State.Due]
// does, and when else.
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

// Fresh makes sure that what [State.Due] goes by is what another machine may have
// left just now ([dirfs.Fresh]). The caller has the feed's lock, and has not
// loaded the state.
func Fresh(d *lektordir.Dir, hash string) {
	for _, name := range []string{fileNext, fileChecked} {
		dirfs.Fresh(d.Path(), filepath.Join(stateDir(d, hash), name))
	}
}

// IntervalChanged tells whether the interval of a feed was written since it was
// last asked for, perhaps by an editor: then [State.Reschedule] sets when the
// feed is due.
func IntervalChanged(d *lektordir.Dir, hash string) bool {
	interval, ok := mtime(filepath.Join(stateDir(d, hash), fileInterval))
	if !ok {
		return false
	}
	checked, ok := mtime(filepath.Join(stateDir(d, hash), fileChecked))
	return ok && interval.After(checked)
}

// Trusted is the error for a command of a feed (an exec: URL, a filter) that must
// not be run, as others may have written it: the lektor-dir and everything on
// the way to the setting that holds the command must belong to the user who runs
// this process, and nobody else may have write permission. Access control lists
// are not looked at. With "" for the setting it is about the directory where
// settings are, with "" for the hash about feeds that are to come. The error
// says what is wrong and how to mend it.
func Trusted(d *lektordir.Dir, hash, setting string) error {
	parts := []string{"src"}
	if hash != "" {
		parts = slices.DeleteFunc([]string{"src", hash, "etc", "fetch", setting}, func(s string) bool { return s == "" })
	}
	return TrustedFile(d, parts...)
}

// TrustedFile is [Trusted] for any file of the lektor-dir that names commands: it, and
// the directories on the way, given one by one.
func TrustedFile(d *lektordir.Dir, parts ...string) error {
	path := d.Path()
	if err := trusted(path); err != nil {
		return err
	}
	for _, part := range parts {
		path = filepath.Join(path, part)
		if err := trusted(path); err != nil {
			return err
		}
	}
	return nil
}

func trusted(path string) error {
	// Of a link both ends count: who owns the link chooses where it leads.
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		fi, err := stat(path)
		if err != nil {
			return err
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: its owner is not known", path)
		}
		if int(st.Uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to another user; commands from it are not run", path)
		}
		// Permissions of a link mean nothing.
		if fi.Mode().Type() != fs.ModeSymlink && fi.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("%s can be written by others; commands from it are not run (mend with: chmod go-w %s)", path, path)
		}
	}
	return nil
}

// record makes a file below src/$feed/etc/area hold text, and touches nothing when
// it does already. Without text there is no file.
func record(d *lektordir.Dir, hash, area, name, text string) error {
	return recordBy(atomicfile.WriteUnsynced, remove, d, hash, area, name, text)
}

// recordDurably is record that returns when the change is durable.
func recordDurably(d *lektordir.Dir, hash, area, name, text string) error {
	return recordBy(atomicfile.Write, atomicfile.Remove, d, hash, area, name, text)
}

func recordBy(write func(path string, data []byte) error, remove func(path string) error, d *lektordir.Dir, hash, area, name, text string) error {
	if err := Guard(d, hash, area); err != nil {
		return err
	}
	path := filepath.Join(drawer(d, hash, area), name)
	old, err := atomicfile.Read(path, max(maxFile, int64(len(text))))
	switch {
	case text == "" && errors.Is(err, fs.ErrNotExist), text != "" && err == nil && string(old) == text:
		return nil
	case text == "":
		return remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return write(path, []byte(text))
}

// asLines gives the text of a file of lines.
func asLines(lines ...string) string {
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// drawer returns the directory of a feed in the area of a program, src/$feed/etc/AREA
// (specification, "A lektor-dir can contain other information"); it need not exist.
func drawer(d *lektordir.Dir, hash, area string) string { return d.Join("src", hash, "etc", area) }

// Guard returns an error if a directory on the way to a feed's area is a link, behind which
// nothing is to be written; an empty area means src/$feed/etc.
func Guard(d *lektordir.Dir, hash, area string) error {
	etc := "src/" + hash + "/etc"
	if err := atomicfile.NoLinks(d.Path(), "src/"+hash, etc); err != nil || area == "" {
		return err
	}
	return atomicfile.NoLinks(d.Path(), etc+"/"+area)
}

// NewWriter prepares delivery to a lektor-dir, see [commit.NewWriter].
func NewWriter(d *lektordir.Dir, o commit.Options) (*commit.Writer, error) {
	return commit.NewWriter(dirfs.New(d.Path(), dirfs.Options(d.Options())), o)
}
