package subscriptions

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// About is what lists of feeds and of their entries show of a feed.
type About struct {
	*lektordir.Feed
	Err        error    // an error of reading it, for example a [*lektordir.MalformedError]
	Folders    []string // see [settings.Categories]
	URL        string   // of the subscription, with a password that it may have
	Public     string   // see [PublicURL]
	NeverRead  string   // see [NeverRead]
	Subscribed bool
	Ended      bool // see [Ended]
	Paused     bool // see [settings.Paused]
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
	a := &About{Feed: f, Err: err, Folders: settings.Categories(d, hash), Subscribed: feedfiles.Subscribed(d, hash)}
	if !a.Subscribed {
		a.Ended = Ended(d, hash)
		return a
	}
	a.URL, _ = atomicfile.Line(d.Join("src", hash, feedfiles.PathURL))
	a.URL = strings.TrimSpace(a.URL)
	if a.Public = feedurl.Public(a.URL); a.URL != "" && !feedurl.IsHTTP(a.URL) {
		a.Public = PublicURL(d, hash)
	}
	a.NeverRead = NeverRead(d, hash)
	a.Paused = settings.Paused(d, hash)
	return a
}

// AboutPaths returns the files of which [ReadAbout] reads values that lists show, relative to the
// lektor-dir, and the directory that must exist. It also returns the directories that hold them.
func AboutPaths(hash string) (files, dirs []string) {
	src := "src/" + hash
	files = append(files, src)
	for _, name := range []string{
		"id", "name", "image", "author", "etc/link", feedfiles.PathAlias, feedfiles.PathEnded, feedfiles.PathCategories,
		feedfiles.PathURL, feedfiles.PathError, feedfiles.PathPaused, "etc/fetch/" + feedfiles.FileFrom, "etc/" +
			feedfiles.AreaPush +
			"/self",
	} {
		files = append(files, src+"/"+name)
	}
	for _, area := range []string{"", "/etc", "/etc/fetch", "/etc/view", "/etc/" + feedfiles.AreaPush} {
		dirs = append(dirs, src+area)
	}
	return files, dirs
}

// PublicURL returns the URL of a subscription without a password. If the feed comes from a file or a
// command and its first self URL is http or https, it returns that. It returns "" if the feed is not
// subscribed to.
func PublicURL(d *lektordir.Dir, hash string) string {
	u, _ := atomicfile.Line(d.Join("src", hash, feedfiles.PathURL))
	if u == "" || feedurl.IsHTTP(u) {
		return feedurl.Public(u)
	}
	if self := feedfiles.In(d, hash, feedfiles.AreaPush).Line("self"); feedurl.IsHTTP(self) {
		return feedurl.Public(self)
	}
	return u
}

// NeverRead returns the error of the last fetch of a feed of which no document was ever read, or "".
func NeverRead(d *lektordir.Dir, hash string) string {
	text, _ := atomicfile.Line(d.Join("src", hash, feedfiles.PathError))
	if text != "" && atomicfile.Exists(filepath.Join(feedfiles.FetchArea(d, hash), feedfiles.FileFrom)) {
		return ""
	}
	return text
}
