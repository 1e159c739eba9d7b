package feedstate

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// About is what lists of feeds and of their entries show of a feed.
type About struct {
	*lektordir.Feed
	Err        error    // an error of reading it, for example a [*lektordir.MalformedError]
	Folders    []string // see [Categories]
	URL        string   // of the subscription, with a password that it may have
	Public     string   // see [PublicURL]
	NeverRead  string   // see [NeverRead]
	Subscribed bool
	Left       bool // see [Left]
	Paused     bool // see [Paused]
}

// ReadAbout reads what lists show of a feed. It returns nil if the feed is not in src/.
func ReadAbout(d *lektordir.Dir, hash string) *About {
	f, err := d.ReadFeed(hash)
	if f == nil && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if f == nil {
		f = &lektordir.Feed{Hash: hash}
	}
	a := &About{Feed: f, Err: err, Folders: Categories(d, hash), Subscribed: Subscribed(d, hash)}
	if !a.Subscribed {
		a.Left = Left(d, hash)
		return a
	}
	a.URL, _ = atomicfile.Line(d.Join("src", hash, urlFile))
	a.URL = strings.TrimSpace(a.URL)
	if a.Public = feedurl.Public(a.URL); a.URL != "" && !feedurl.IsHTTP(a.URL) {
		a.Public = PublicURL(d, hash)
	}
	a.NeverRead = NeverRead(d, hash)
	a.Paused = Paused(d, hash)
	return a
}

// AboutPaths returns the files of which [ReadAbout] reads values that lists show, relative to the
// lektor-dir, and the directory that must exist. It also returns the directories that hold them.
func AboutPaths(hash string) (files, dirs []string) {
	src := "src/" + hash
	files = append(files, src)
	for _, name := range []string{
		"id", "name", "image", "author", "etc/link", aliasFile, leftFile, categoryFile,
		urlFile, errorFile, pausedFile, "etc/fetch/" + fileFrom, "etc/" + areaPush + "/self",
	} {
		files = append(files, src+"/"+name)
	}
	for _, area := range []string{"", "/etc", "/etc/fetch", "/etc/view", "/etc/" + areaPush} {
		dirs = append(dirs, src+area)
	}
	return files, dirs
}
