package feeddir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Subscription is a feed that is subscribed to.
type Subscription struct {
	Hash       string
	ID         string // never changes
	URL        string // where the feed is fetched from now
	Name       string // as the feed itself says
	Alias      string // as the user says
	Generator  string // the program that made the feed
	Link       string
	About      string   // the feed's description
	Categories []string // paths of folders, "a/b"
	Interval   string   // as the user wrote it
	Error      string   // of the last fetch, empty when it went well
	Origin     string   // of the document that named URL, "" when the user did; see [fetch.Request]
	Private    bool     // not told of in what leaves the machine, see [Shareable]
}

// Title is what the subscription is shown as.
func (s *Subscription) Title() string {
	return cmp.Or(strings.TrimSpace(s.Alias), strings.TrimSpace(s.Name), s.ID)
}

// Files of a subscription, relative to src/$feed.
const (
	urlFile      = "etc/fetch/url"
	aliasFile    = "etc/view/alias"
	keepFile     = "etc/view/keep"
	intervalFile = "etc/fetch/interval"
	errorFile    = "etc/fetch/error"
	categoryFile = "etc/categories"
	privateFile  = "etc/fetch/private"
	fullTextFile = "etc/fulltext"
)

// Options say how to subscribe.
type Options struct {
	// Unsynced leaves it to the caller to call [Finish] once, after many feeds.
	Unsynced bool
	// Headers are the setting with which the first request is made, or empty.
	Headers string
}

// Add subscribes to a feed; Hash is made from ID, URL defaults to ID and Name
// to the host in it. It reports false, and changes nothing, when the feed is
// subscribed to already; whether that is so under another URL is for the caller
// to find out (see [ByURL]). The error may be a [*commit.BusyError].
//
// Where it fails, nothing is left of a feed that was not there before.
func Add(w *commit.Writer, d *lektordir.Dir, s *Subscription, o Options) (added bool, err error) {
	s.ID = lektordir.NormalizeID(s.ID)
	if s.ID == "" || strings.ContainsAny(s.ID, "\n\x00") {
		return false, fmt.Errorf("%q cannot be the id of a feed", termsafe.Brief(s.ID))
	}
	s.URL = cmp.Or(s.URL, s.ID)
	if max(len(s.ID), len(s.URL)) >= maxFile {
		return false, fmt.Errorf("%s: the URL is longer than %d bytes, and no server takes such a one", fetch.Brief(fetch.Public(s.URL)), maxFile-1)
	}
	s.Hash = lektordir.FeedHash(s.ID)
	if Subscribed(d, s.Hash) {
		return false, nil
	}
	t, err := w.Begin(s.Hash)
	if err != nil {
		return false, err
	}
	defer t.Close()
	if Subscribed(d, s.Hash) {
		return false, nil
	}
	if err := errors.Join(Guard(d, s.Hash, "fetch"), Guard(d, s.Hash, "view")); err != nil {
		return false, err
	}
	n := newcomer{d: d, s: s, base: d.Join("src", s.Hash), write: atomicfile.Write}
	if _, lerr := os.Lstat(n.base); errors.Is(lerr, fs.ErrNotExist) {
		// On a full disk the feed would stay without a name, and be complained of
		// until it is added again. All of it was written here, under its lock.
		defer func() {
			if err != nil {
				_ = os.RemoveAll(n.base)
			}
		}()
	}
	if o.Unsynced {
		n.write = atomicfile.WriteUnsynced
	}
	why, err := Withheld(d, s.Hash) // because of settings that are there already
	n.withheld = err != nil || why != "" || s.Private || o.Headers != "" || ownURL(s.URL) || ownURL(s.ID)
	if err := n.describe(o.Headers); err != nil {
		return false, err
	}
	// The one file that makes it a subscription comes last.
	if o.Unsynced {
		return true, n.put(pendingURLFile, s.URL, false)
	}
	for _, dir := range []string{d.Join("src"), n.base, filepath.Join(n.base, "etc")} {
		if err := atomicfile.SyncDir(dir); err != nil {
			return false, err
		}
	}
	return true, n.subscribe()
}

// newcomer is a feed that is being subscribed to.
type newcomer struct {
	d     *lektordir.Dir
	s     *Subscription
	base  string
	write func(path string, data []byte) error
	// withheld is true if the URLs are for nobody but the user to read.
	withheld bool
}

// put writes a file of one line, unless there is nothing to write, or (missing)
// one is there.
func (n *newcomer) put(name, value string, missing bool) error {
	value = oneLine(value)
	path := filepath.Join(n.base, name)
	if value == "" {
		return nil
	}
	if missing {
		// An empty one is what a power cut leaves of one not synced.
		if fi, err := os.Lstat(path); err == nil && fi.Size() > 0 {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if n.withheld && (name == "id" || name == pendingURLFile || value == oneLine(n.s.ID)) { // a command is its own name
		if err := guard(path); err != nil {
			return err
		}
	}
	return n.write(path, []byte(value+"\n"))
}

// describe writes everything but the url.
func (n *newcomer) describe(headers string) error {
	if err := os.MkdirAll(filepath.Join(n.base, "etc/fetch"), 0o777); err != nil {
		return err
	}
	private := ""
	if n.s.Private {
		private = "yes"
	}
	if err := errors.Join(
		n.put("id", n.s.ID, true),
		n.put("name", cmp.Or(oneLine(n.s.Name), DefaultName(n.s.ID)), true),
		n.put("description", n.s.About, true),
		n.put("etc/link", n.s.Link, true),
		n.put(aliasFile, n.s.Alias, false),
		n.put(intervalFile, n.s.Interval, false),
		n.put(privateFile, private, false),
		n.put("etc/fetch/"+fileOrigin, n.s.Origin, false),
		SetCategories(n.d, n.s.Hash, n.s.Categories, n.write),
	); err != nil || headers == "" {
		return err
	}
	st, err := Load(n.d, n.s.Hash)
	if err != nil {
		return err
	}
	return st.SetUser(fileHeaders, headers)
}

// subscribe writes the url.
func (n *newcomer) subscribe() error {
	if !n.withheld {
		return n.put(urlFile, n.s.URL, false)
	}
	// Nobody else may read it at any time, nor find an empty one.
	if err := n.put(pendingURLFile, n.s.URL, false); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(n.base, pendingURLFile), filepath.Join(n.base, urlFile)); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Join(n.base, "etc/fetch"))
}

// pendingURLFile is the url of a feed that was added unsynced, under a name of
// temporary files.
const pendingURLFile = "etc/fetch/.url000000000000000"

// oldPendingURL is the name that older versions gave to that file. It may hold a URL with a
// password, and so [Sweep] removes it.
const oldPendingURL = ".url0"

// Finish subscribes to feeds that were added unsynced: durably, and with each
// url on the disk before it has its name, as a power cut may leave an empty file
// under it otherwise. Feeds that it could not subscribe to are in the error.
func Finish(w *commit.Writer, d *lektordir.Dir, subs []*Subscription) error {
	return FinishEach(w, d, subs, func(_ *Subscription, finish func() error) error { return finish() })
}

// FinishEach is [Finish] for callers that do something before and after the rename that
// subscribes to a feed: step must call finish.
func FinishEach(w *commit.Writer, d *lektordir.Dir, subs []*Subscription, step func(s *Subscription, finish func() error) error) error {
	var all, urls []string
	for _, s := range subs {
		all, urls = append(all, "src/"+s.Hash), append(urls, "src/"+s.Hash+"/etc/fetch")
	}
	if err := dirfs.Sync(d.Path(), all...); err != nil {
		return err
	}
	var bad error
	for _, s := range subs {
		bad = errors.Join(bad, step(s, func() error { return finish(w, d, s.Hash) }))
	}
	return errors.Join(bad, dirfs.Sync(d.Path(), urls...))
}

// PendingPath is the url of a feed that was added unsynced and is not finished, relative to
// the lektor-dir. [URLPath] is what it is renamed to.
func PendingPath(hash string) string { return "src/" + hash + "/" + pendingURLFile }

// URLPath is the file that makes a feed a subscription, relative to the lektor-dir.
func URLPath(hash string) string { return "src/" + hash + "/" + urlFile }

// JournalPath is the journal of what was delivered of a feed, relative to the lektor-dir.
func JournalPath(hash string) string { return "src/" + hash + "/etc/fetch/seen" }

// CategoriesPath is the file with the categories of a feed, relative to the lektor-dir.
func CategoriesPath(hash string) string { return "src/" + hash + "/" + categoryFile }

// finish gives a pending url its name, unless somebody else has subscribed
// meanwhile: then his is the one that counts.
func finish(w *commit.Writer, d *lektordir.Dir, hash string) error {
	t, err := w.Begin(hash)
	if err != nil {
		return err
	}
	defer t.Close()
	base := d.Join("src", hash)
	pending, path := filepath.Join(base, pendingURLFile), filepath.Join(base, urlFile)
	if fi, err := os.Lstat(path); err == nil && fi.Size() > 0 {
		if err := os.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.Rename(pending, path)
}

// DefaultName is what a feed is called before its first document came: the host
// in its id, or all of it.
func DefaultName(id string) string {
	if u, err := url.Parse(id); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return oneLine(id)
}

// Subscribed reports whether a feed is subscribed to.
func Subscribed(d *lektordir.Dir, hash string) bool {
	_, err := os.Stat(filepath.Join(d.Join("src", hash), urlFile))
	return err == nil
}

// Read reads a subscription; the error is fs.ErrNotExist when the feed is not
// subscribed to. A feed without a name, or an empty url, is mended in what is
// returned.
func Read(d *lektordir.Dir, hash string) (*Subscription, error) {
	base := d.Join("src", hash)
	url, err := atomicfile.Line(filepath.Join(base, urlFile))
	if err != nil {
		return nil, err
	}
	f, err := d.ReadFeed(hash)
	if f == nil {
		return nil, err
	}
	if f.ID == "" {
		// Without an id nothing can be delivered under this hash, unless the
		// URL is the id.
		if lektordir.FeedHash(url) != hash {
			return nil, err
		}
		f.ID = url
	}
	s := &Subscription{
		Hash: hash, ID: f.ID, URL: cmp.Or(strings.TrimSpace(url), f.ID), Name: cmp.Or(f.Name, DefaultName(f.ID)),
		Alias: f.Alias, Link: f.Link, Generator: f.Generator, About: f.Description, Categories: Categories(d, hash),
		Private: isPrivate(d, hash),
	}
	s.Interval, _ = atomicfile.Line(filepath.Join(base, intervalFile))
	s.Error, _ = atomicfile.Line(filepath.Join(base, errorFile))
	return s, nil
}

// ReadWhole is [Read] for those to whom what is missing means something: it fails if
// the name, the alias, the link or the categories of a feed are there and cannot be read.
func ReadWhole(d *lektordir.Dir, hash string) (*Subscription, error) {
	s, err := Read(d, hash)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		path    string
		to      *string
		without string // what it is where the file was not read
	}{{"name", &s.Name, DefaultName(s.ID)}, {aliasFile, &s.Alias, ""}, {"etc/link", &s.Link, ""}} {
		line, err := atomicfile.Line(d.Join("src", hash, f.path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && line != "" && *f.to == f.without {
			*f.to = line
		}
	}
	s.Categories, err = categories(d, hash)
	return s, err
}

// List reads all subscriptions, sorted by hash. The error joins what could not
// be read; the others are good all the same.
func List(d *lektordir.Dir) ([]*Subscription, error) {
	hashes, err := d.FeedHashes()
	if err != nil {
		return nil, err
	}
	var subs []*Subscription
	var bad error
	for _, h := range hashes {
		s, err := Read(d, h)
		switch {
		case err == nil:
			subs = append(subs, s)
		case !errors.Is(err, fs.ErrNotExist):
			bad = errors.Join(bad, err)
		}
	}
	return subs, bad
}

// Remove ends a subscription. The feed and its entries stay, and so does the
// journal of what was delivered: subscribed to again, it delivers nothing
// twice. The error may be a [*commit.BusyError].
func Remove(w *commit.Writer, d *lektordir.Dir, hash string) error {
	t, err := w.Begin(hash)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := errors.Join(Guard(d, hash, "fetch"), CheckMarkers(d)); err != nil {
		return err
	}
	dir := stateDir(d, hash)
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// First what makes it a subscription, in case this is interrupted.
	if err := os.Remove(filepath.Join(dir, "url")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var bad error
	for _, n := range names {
		if n.Name() != "seen" {
			bad = errors.Join(bad, os.RemoveAll(filepath.Join(dir, n.Name())))
		}
	}
	removeMarkers(d, hash)
	return errors.Join(bad, HistoryOf(d, hash).forget(), removeSpool(d, hash), remove(d.Join("src", hash, fullTextFile)), atomicfile.SyncDir(dir))
}

// Purge removes a feed with all its entries, read and unread, and forgets what
// was delivered of it, as [commit.Writer.Purge] does.
func Purge(ctx context.Context, w *commit.Writer, d *lektordir.Dir, hash string) error {
	if err := w.Purge(ctx, hash); err != nil {
		return err
	}
	removeMarkers(d, hash)
	return removeSpool(d, hash)
}

func removeSpool(d *lektordir.Dir, hash string) error {
	s, err := SpoolOf(d, hash)
	if err != nil {
		return err
	}
	return errors.Join(s.Clear(), removePages(d, hash))
}

func removeMarkers(d *lektordir.Dir, hash string) {
	for _, place := range []string{dueDir, takenDir} {
		os.Remove(d.Join(place, hash))
	}
}

// FeedURL gives the id of the feed that a list or a page names by a URL:
// normalised, and with the scheme that feed: stands for.
func FeedURL(url string) string {
	url = strings.TrimSpace(url)
	if len(url) > 5 && strings.EqualFold(url[:5], "feed:") {
		rest := url[5:]
		if strings.HasPrefix(rest, "//") {
			rest = "http:" + rest
		}
		url = rest
	}
	return lektordir.NormalizeID(url)
}

// AliasPath is where the user's own name for a feed is, below src/, for those who want to
// know whether it has changed.
func AliasPath(hash string) string { return hash + "/" + aliasFile }

// Categories reads the categories of a feed, src/$feed/etc/categories.
func Categories(d *lektordir.Dir, hash string) []string {
	list, _ := categories(d, hash)
	return list
}

// Readable returns the error of the system that keeps from being read what is shown of a
// feed: its files, alias and categories. A feed that is malformed or not there is no
// error.
func Readable(d *lektordir.Dir, hash string) error {
	_, err := d.ReadFeed(hash)
	bad := []error{err}
	for _, path := range []string{aliasFile, categoryFile} {
		_, err := atomicfile.Line(d.Join("src", hash, path))
		bad = append(bad, err)
	}
	for _, err := range joined.Errors(errors.Join(bad...)) {
		if _, ok := errors.AsType[syscall.Errno](err); ok && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// categories fails if the file is there and cannot be read.
func categories(d *lektordir.Dir, hash string) (out []string, err error) {
	data, err := atomicfile.Read(filepath.Join(d.Join("src", hash), categoryFile), maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out, nil
}

// SetCategories writes the categories of a feed; none removes the file.
func SetCategories(d *lektordir.Dir, hash string, categories []string, write func(string, []byte) error) error {
	var b strings.Builder
	for _, c := range categories {
		if c = oneLine(c); c != "" {
			b.WriteString(c + "\n")
		}
	}
	return recordBy(write, atomicfile.Remove, d, hash, "", filepath.Base(categoryFile), b.String())
}

// oneLine makes text fit for a file of a single line.
func oneLine(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if strings.ContainsAny(s, "\r\n") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return strings.TrimSpace(s)
}
