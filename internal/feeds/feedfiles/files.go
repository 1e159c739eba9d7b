// Package feedfiles names, reads and writes the files below src/$feed and its etc, each with one value, and
// decides which of them only the user may read. It says what a file is called; the packages beside it say
// what is in it. A feed is subscribed to as long as src/$feed/etc/fetch/url exists. A feed without that file
// belongs to another fetcher and is not changed.
package feedfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// Files in etc/fetch. Each value is one line, except headers.
const (
	FileURL      = "url"       // set by the user, or saved after a permanent redirect
	FileInterval = "interval"  // set by the user: minimum time between two fetches: "30m", "1d", or seconds
	FileOnUpdate = "on-update" // set by the user: unread, deliver or ignore
	FileHeaders  = "headers"   // set by the user: lines "Name: value"
	FileFilter   = "filter"    // set by the user: a command for /bin/sh
	FilePrivate  = "private"   // set by the user: yes or no; any other content means yes
	FilePaused   = "paused"    // set by the user: on or off; any other content means on
	FileOrigin   = "origin"    // URL of the document that named url
	// the URL that the validators are from, after redirects from url; absent without redirects
	FileFinal = "final"
	FileFrom  = "from"  // the url, a digest of the filter, and Limits, that validators and body belong to
	FileMoved = "moved" // count of the redirect, tab, its target
)

// MaxSize is the maximum size of a state file, in bytes.
const MaxSize = atomicfile.MaxLine

// FetchDir is the directory of the lektor-dir with the files of fetchers that belong to no single feed.
const FetchDir = "etc/fetch"

// Areas of a feed for notifications.
const (
	AreaPush   = "push"
	AreaCloudd = "cloudd"
)

// AreaHistory is the area with the state of a feed's history, that is its documents besides the
// current one (RFC 5005).
const AreaHistory = "history"

// Files of a subscription, relative to src/$feed.
const (
	PathURL        = "etc/fetch/url"
	PathAlias      = "etc/view/alias"
	PathKeep       = "etc/view/keep"
	PathInterval   = "etc/fetch/interval"
	PathOrigin     = "etc/fetch/origin"
	PathDiscover   = "etc/fetch/discover"
	PathError      = "etc/fetch/error"
	PathCategories = "etc/categories"
	PathPrivate    = "etc/fetch/private"
	PathPaused     = "etc/fetch/paused"
	PathFullText   = "etc/fulltext"
	PathNever      = "etc/share/never"    // keeps a feed from being shared with the user's other machines
	PathHistory    = "etc/history/follow" // set by the user: on or off
	// PathEnded exists if a subscription was ended. It is not removed when another one begins.
	PathEnded = "etc/view/left"
)

// FileMarks holds the marks that wait for entries, see package marks.
const FileMarks = "marks"

// FetchArea returns the directory of the feed's [schedule.State].
func FetchArea(d *lektordir.Dir, hash string) string { return Area(d, hash, "fetch") }

// Area returns the directory src/$feed/etc/AREA, in which a program keeps its files. It need not
// exist.
func Area(d *lektordir.Dir, hash, area string) string { return d.Join("src", hash, "etc", area) }

// URL returns the URL from which a feed is fetched. It may contain a password. The error is
// fs.ErrNotExist if the feed is not subscribed to.
func URL(d *lektordir.Dir, hash string) (string, error) {
	return atomicfile.Line(filepath.Join(FetchArea(d, hash), FileURL))
}

// Subscribed reports whether a feed is subscribed to.
func Subscribed(d *lektordir.Dir, hash string) bool {
	_, err := os.Stat(filepath.Join(d.Join("src", hash), PathURL))
	return err == nil
}

// Dir is a directory src/$feed/etc/AREA, see [Area].
type Dir struct {
	d          *lektordir.Dir
	hash, area string
}

// In returns the directory of an area; an empty area means src/$feed/etc.
func In(d *lektordir.Dir, hash, area string) Dir { return Dir{d, hash, area} }

// Path returns the path of a file, or with "" that of the directory.
func (a Dir) Path(name string) string { return filepath.Join(Area(a.d, a.hash, a.area), name) }

// Line returns the first line of a file, "" if it cannot be read.
func (a Dir) Line(name string) string {
	line, _ := atomicfile.Line(a.Path(name))
	return line
}

// Exists reports whether the directory exists.
func (a Dir) Exists() bool { return atomicfile.Exists(a.Path("")) }

// Make creates the directory if it does not exist.
func (a Dir) Make() error {
	if err := Guard(a.d, a.hash, a.area); err != nil {
		return err
	}
	return os.MkdirAll(a.Path(""), 0o777)
}

// Record writes lines to a file, unless the file has them already. No line, or an empty one, removes the
// file.
func (a Dir) Record(name string, lines ...string) error {
	return a.RecordBy(atomicfile.WriteUnsynced, atomicfile.RemoveUnsynced, name, lines...)
}

// RecordDurably is like Record, but makes the change durable.
func (a Dir) RecordDurably(name string, lines ...string) error {
	return a.RecordBy(atomicfile.Write, atomicfile.Remove, name, lines...)
}

// RecordBy is Record with other functions to write and to remove a file.
func (a Dir) RecordBy(write func(path string, data []byte) error, remove func(path string) error, name string,
	lines ...string) error {
	path, text := a.Path(name), strings.Join(lines, "\n")
	if text != "" {
		text += "\n"
	}
	old, err := atomicfile.Read(path, max(MaxSize, int64(len(text))))
	if text == "" && errors.Is(err, fs.ErrNotExist) || text != "" && err == nil && string(old) == text {
		return nil
	}
	if err := Guard(a.d, a.hash, a.area); err != nil {
		return err
	}
	if text == "" {
		return remove(path)
	}
	return atomicfile.InDir(path, func() error { return write(path, []byte(text)) })
}

// OneLine is [textfile.OneLine] without space at the ends.
func OneLine(s string) string { return strings.TrimSpace(textfile.OneLine(s)) }

// OneField returns s as a single line without tabs and NUL.
func OneField(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
}

// ModTime returns the modification time of the file or link at path; ok is false if it does not exist.
func ModTime(path string) (time.Time, bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, false
	}
	return fi.ModTime(), true
}

// TimeOf is [ModTime], or the zero time if the file does not exist.
func TimeOf(path string) time.Time { t, _ := ModTime(path); return t }

// Guard returns an error if a directory on the path to a feed's area is a symbolic link, because a
// write would follow it. An empty area means src/$feed/etc.
func Guard(d *lektordir.Dir, hash, area string) error {
	src := "src/" + hash
	return atomicfile.NoLinks(d.Path(), src, src+"/etc", src+"/etc/"+area)
}

// NewWriter returns a writer that delivers to a lektor-dir, see [commit.NewWriter].
func NewWriter(d *lektordir.Dir, o commit.Options) (*commit.Writer, error) {
	return commit.NewWriter(dirfs.New(d.Path(), dirfs.Options(d.Options())), o)
}

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

// URLPath returns the path of the file that makes a feed a subscription, relative to the
// lektor-dir.
func URLPath(hash string) string { return "src/" + hash + "/" + PathURL }

// JournalPath returns the path of the journal of a feed's delivered entries, relative to the
// lektor-dir.
func JournalPath(hash string) string { return "src/" + hash + "/etc/fetch/seen" }

// CategoriesPath returns the path of a feed's categories, relative to the lektor-dir.
func CategoriesPath(hash string) string { return "src/" + hash + "/" + PathCategories }

// AliasPath returns the path of the file with the user's name for a feed, below src/.
func AliasPath(hash string) string { return hash + "/" + PathAlias }

// SettingsPath returns the directory of the settings and state of a feed, below src/.
func SettingsPath(hash string) string { return hash + "/etc" }

// ClockSkew is the tolerated difference between the clocks of machines that fetch into one
// lektor-dir. Without it, one machine would take a request of the other for one in the future, and
// repeat it.
const ClockSkew = 5 * time.Minute
