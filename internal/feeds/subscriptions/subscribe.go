// Package subscriptions adds, finds, lists, changes and removes the subscriptions of a lektor-dir.
package subscriptions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Subscription is a feed that is subscribed to.
type Subscription struct {
	Hash       string
	ID         string // the id, which never changes
	URL        string // the URL from which the feed is fetched
	Name       string // the feed's own title
	Alias      string // the user's name for the feed
	Generator  string // the program that made the feed
	Link       string
	About      string   // the feed's description
	Categories []string // paths of folders, "a/b"
	Interval   string   // in the form that the user wrote
	Error      string   // error of the last fetch; empty if it succeeded
	Origin     string   // URL of the document that named URL, or "" if the user did; see [httpmsg.Request]
	Private    bool     // not included in published documents, see [settings.Withheld]
	Paused     bool     // see [settings.Paused]
	// Discover is set by [Add] if URL may be that of a page: then the first visit looks for its feed, and
	// the subscription becomes that feed, see [Replace].
	Discover bool
}

// Title returns the title to display: the alias, the name or the id.
func (s *Subscription) Title() string {
	return cmp.Or(strings.TrimSpace(s.Alias), strings.TrimSpace(s.Name), s.ID)
}

// Compare orders subscriptions by title, without case, and then by URL.
func (s *Subscription) Compare(t *Subscription) int {
	return cmp.Or(strings.Compare(strings.ToLower(s.Title()), strings.ToLower(t.Title())),
		strings.Compare(s.URL, t.URL))
}

// AddOptions are the options of [Add].
type AddOptions struct {
	// Unsynced leaves the feed pending until the caller calls [Finish], once for many feeds.
	Unsynced bool
	// Headers is the value of the setting headers, so that the first request has them, too.
	Headers string
	// Record records the new subscription.
	Record Recorder
}

// Add subscribes to a feed. It sets Hash to the hash of ID. If URL is empty, it is ID; if Name is empty,
// it is the host of ID. If the feed with this ID is subscribed to already, Add returns false and changes
// nothing. The caller must look for subscriptions with the same URL (see [ByURL]). The error may be a
// [*commit.BusyError].
//
// If Add fails, it removes a feed that did not exist before.
func Add(w *commit.Writer, d *lektordir.Dir, s *Subscription, o AddOptions) (added bool, err error) {
	s.ID = lektordir.NormalizeID(s.ID)
	if s.ID == "" || strings.ContainsAny(s.ID, "\n\x00") {
		return false, fmt.Errorf("%q is not a valid id of a feed", termsafe.Brief(s.ID))
	}
	s.URL = cmp.Or(s.URL, s.ID)
	if max(len(s.ID), len(s.URL)) >= feedfiles.MaxSize {
		return false, fmt.Errorf("%s: the URL is longer than %d bytes", feedurl.Brief(feedurl.Public(s.URL)),
			feedfiles.MaxSize-1)
	}
	s.Hash = lektordir.FeedHash(s.ID)
	if feedfiles.Subscribed(d, s.Hash) {
		return false, nil
	}
	t, err := w.Begin(s.Hash)
	if err != nil {
		return false, err
	}
	defer t.Close()
	if feedfiles.Subscribed(d, s.Hash) {
		return false, nil
	}
	if err := errors.Join(feedfiles.Guard(d, s.Hash, "fetch"), feedfiles.Guard(d, s.Hash, "view")); err != nil {
		return false, err
	}
	if _, unfinished := endOf(d, s.Hash); unfinished {
		if err := removeSettings(d, s.Hash); err != nil {
			return false, err
		}
	}
	n := newFeed{d: d, s: s, base: d.Join("src", s.Hash), unsynced: o.Unsynced}
	if _, lerr := os.Lstat(n.base); errors.Is(lerr, fs.ErrNotExist) {
		// Otherwise a full disk would leave a feed without a name. Only this call has written to
		// src/$feed, because it holds the feed's lock.
		defer func() {
			if err != nil {
				_ = os.RemoveAll(n.base)
			}
		}()
	}
	why, err := settings.Withheld(d, s.Hash) // because of settings that exist already
	n.withheld = err != nil || why != "" || s.Private || o.Headers != "" || feedfiles.IsPrivateURL(s.URL) ||
		feedfiles.IsPrivateURL(s.ID)
	o.Record.note(d, begun(d, s)...)
	if err := n.removeLeft(); err != nil {
		return false, err
	}
	if err := n.describe(o.Headers); err != nil {
		return false, err
	}
	// The url is last, because it makes the feed a subscription. It is written as a pending file and renamed,
	// so that other users can never read a private URL, and no program sees an empty file.
	if err := n.putLine(pending(feedfiles.PathURL), s.URL); err != nil || o.Unsynced {
		return err == nil, err
	}
	return true, n.subscribe()
}

// Ended reports whether a subscription of a feed was ended, and not begun again. A feed that is not
// subscribed to and was never left belongs to the user or another fetcher, who delivers to it.
func Ended(d *lektordir.Dir, hash string) bool {
	_, err := os.Lstat(d.Join("src", hash, feedfiles.PathEnded))
	return err == nil && !feedfiles.Subscribed(d, hash)
}

// Successor returns the hash of the feed that a subscription has become, see [Replace]; "" if the
// subscription was not ended so.
func Successor(d *lektordir.Dir, hash string) string {
	if !entryname.IsFeedHash(hash) || !Ended(d, hash) {
		return ""
	}
	by, _ := endOf(d, hash)
	if !entryname.IsFeedHash(by) || !feedfiles.Subscribed(d, by) {
		return ""
	}
	return by
}

// ending is in the file of the end of a subscription until all of its settings are removed. The hash of the
// feed that the subscription has become follows it, see [Replace].
const ending = "unfinished"

// endOf reads the record of the end of a subscription: the hash of the feed that it has become, or "", and
// whether some settings may be left.
func endOf(d *lektordir.Dir, hash string) (by string, unfinished bool) {
	line, _ := atomicfile.Line(d.Join("src", hash, feedfiles.PathEnded))
	by, unfinished = strings.CutPrefix(line, ending)
	return strings.TrimSpace(by), unfinished
}

// leave records that a subscription is ended.
func leave(d *lektordir.Dir, hash, text string) error {
	if err := feedfiles.Guard(d, hash, "view"); err != nil {
		return err
	}
	path := d.Join("src", hash, feedfiles.PathEnded)
	if _, err := os.Lstat(d.Join("src", hash)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return atomicfile.InDir(path, func() error { return atomicfile.Write(path, []byte(text)) })
}

// newFeed is a feed that is being added.
type newFeed struct {
	d    *lektordir.Dir
	s    *Subscription
	base string
	// unsynced is [AddOptions.Unsynced].
	unsynced bool
	// withheld is set if only the user may read the URLs.
	withheld bool
}

// putMissing writes a file of one line that a document can replace later, unless the file has
// content.
func (n *newFeed) putMissing(name, value string) error {
	// A power cut may leave an unsynced file empty.
	if fi, err := os.Lstat(filepath.Join(n.base, name)); err == nil && fi.Size() > 0 {
		return nil
	}
	return n.putLine(name, value)
}

// putID writes the id, unless it is there and whole.
func (n *newFeed) putID() error {
	if id, err := atomicfile.Line(filepath.Join(n.base, "id")); err == nil && id == n.s.ID {
		return nil
	}
	return n.putLine("id", n.s.ID)
}

func (n *newFeed) putLine(name, value string) error {
	value = feedfiles.OneLine(value)
	path := filepath.Join(n.base, name)
	if value == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if n.withheld && (name == "id" || name == pending(feedfiles.PathURL) ||
		value == feedfiles.OneLine(n.s.ID)) { // the name may be the id
		if err := feedfiles.Hide(path); err != nil {
			return err
		}
	}
	return n.write(path, []byte(value+"\n"))
}

func (n *newFeed) write(path string, data []byte) error {
	if n.unsynced {
		return atomicfile.WriteUnsynced(path, data)
	}
	return atomicfile.Write(path, data)
}

// describe writes everything except the url.
func (n *newFeed) describe(headers string) error {
	// The id is first: without it, nobody could tell whose a killed program's settings are.
	if err := n.putID(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(n.base, "etc/fetch"), 0o777); err != nil {
		return err
	}
	yes, on := map[bool]string{true: "yes"}, map[bool]string{true: "on"}
	if err := errors.Join(
		n.putMissing("name", cmp.Or(feedfiles.OneLine(n.s.Name), DefaultName(n.s.ID))),
		n.putMissing("description", n.s.About),
		n.putMissing("etc/link", n.s.Link),
		n.putLine(feedfiles.PathAlias, n.s.Alias),
		n.putLine(feedfiles.PathInterval, n.s.Interval),
		n.putLine(feedfiles.PathPrivate, yes[n.s.Private]),
		n.putLine(feedfiles.PathPaused, on[n.s.Paused]),
		n.putLine(feedfiles.PathOrigin, n.s.Origin),
		n.putLine(feedfiles.PathDiscover, yes[n.s.Discover]),
		settings.SetCategories(n.d, n.s.Hash, n.s.Categories, n.write),
	); err != nil || headers == "" {
		return err
	}
	if err := settings.Check(feedfiles.FileHeaders, headers); err != nil {
		return err
	}
	st, err := schedule.Load(n.d, n.s.Hash)
	if err != nil {
		return err
	}
	return st.Change(feedfiles.FileHeaders, strings.TrimSuffix(headers, "\n"))
}

// removeLeft removes settings of requests that a killed program has left: they belong to a url that it did not
// write.
func (n *newFeed) removeLeft() (bad error) {
	for _, name := range []string{feedfiles.PathOrigin, feedfiles.PathDiscover, feedfiles.PathInterval,
		feedfiles.PathPaused} {
		bad = errors.Join(bad, atomicfile.RemoveUnsynced(filepath.Join(n.base, name)))
	}
	return bad
}

// sync syncs the directories of what was written.
func (n *newFeed) sync() error {
	return errors.Join(atomicfile.SyncDir(n.d.Join("src")), atomicfile.SyncDir(n.base),
		atomicfile.SyncDir(filepath.Join(n.base, "etc")))
}

// subscribe renames the url, after what was written before is synced.
func (n *newFeed) subscribe() error {
	if err := n.sync(); err != nil {
		return err
	}
	path := filepath.Join(n.base, feedfiles.PathURL)
	if err := os.Rename(pending(path), path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// pending returns the path of a url until the files of its feed are synced. The path has the form of a temporary
// file's.
func pending(path string) string {
	dir, base := filepath.Split(path)
	return dir + "." + base + "000000000000000"
}

// Finish completes feeds that were added unsynced. It syncs their files before it renames the urls, because
// otherwise a power cut may leave a subscription with empty files. If some feeds fail, it completes the others and
// returns the joined errors.
func Finish(w *commit.Writer, d *lektordir.Dir, subs []*Subscription) error {
	return FinishEach(w, d, subs, func(_ *Subscription, finish func() error) error { return finish() })
}

// FinishEach is like [Finish], but calls step for each feed. step must call finish, which renames the url
// and so subscribes to the feed.
func FinishEach(w *commit.Writer, d *lektordir.Dir, subs []*Subscription,
	step func(s *Subscription, finish func() error) error) error {
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

// PendingPath returns the path of the pending url of a feed, relative to the lektor-dir. [Finish]
// renames it to [feedfiles.URLPath].
func PendingPath(hash string) string { return "src/" + hash + "/" + pending(feedfiles.PathURL) }

// finish renames the pending url. If another process has subscribed to the feed, it removes the pending url
// instead.
func finish(w *commit.Writer, d *lektordir.Dir, hash string) error {
	t, err := w.Begin(hash)
	if err != nil {
		return err
	}
	defer t.Close()
	base := d.Join("src", hash)
	path := filepath.Join(base, feedfiles.PathURL)
	if fi, err := os.Lstat(path); err == nil && fi.Size() > 0 {
		return atomicfile.RemoveUnsynced(pending(path))
	}
	return os.Rename(pending(path), path)
}

// DefaultName returns the name of a feed before its first document was fetched: the host in its id,
// or the whole id.
func DefaultName(id string) string {
	if u, err := url.Parse(id); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return feedfiles.OneLine(id)
}

// Read reads a subscription. The error is fs.ErrNotExist if the feed is not subscribed to. If the name is
// missing, it is [DefaultName]; a missing id or empty url is replaced by the other.
func Read(d *lektordir.Dir, hash string) (*Subscription, error) {
	url, err := atomicfile.Line(d.Join("src", hash, feedfiles.PathURL))
	if err != nil {
		return nil, err
	}
	s, err := ReadAny(d, hash)
	if s == nil {
		return nil, err
	}
	if s.ID == "" {
		// Without an id nothing can be delivered under this hash, unless the URL is the id.
		if lektordir.FeedHash(url) != hash {
			return nil, err
		}
		s.ID, s.Name = url, cmp.Or(s.Name, DefaultName(url))
	}
	s.URL = cmp.Or(strings.TrimSpace(url), s.ID)
	return s, nil
}

// ReadAny reads a feed as [Read] does, whether or not it is subscribed to. The URL is empty, and the id if
// it is missing.
func ReadAny(d *lektordir.Dir, hash string) (*Subscription, error) {
	base := d.Join("src", hash)
	f, err := d.ReadFeed(hash)
	if f == nil {
		return nil, err
	}
	s := &Subscription{
		Hash: hash, ID: f.ID, Name: cmp.Or(f.Name, DefaultName(f.ID)),
		Alias: f.Alias, Link: f.Link, Generator: f.Generator, About: f.Description, Categories: settings.Categories(d,
			hash),
		Private: settings.IsPrivate(d, hash), Paused: settings.Paused(d, hash),
	}
	s.Interval, _ = atomicfile.Line(filepath.Join(base, feedfiles.PathInterval))
	s.Error, _ = atomicfile.Line(filepath.Join(base, feedfiles.PathError))
	return s, err
}

// ReadWhole is like [Read], but fails if the name, alias, link or categories of a feed exist and cannot be
// read. It is for callers that take an empty value as deleted.
func ReadWhole(d *lektordir.Dir, hash string) (*Subscription, error) {
	s, err := Read(d, hash)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		path    string
		to      *string
		without string // value if the file was not read
	}{{"name", &s.Name, DefaultName(s.ID)}, {feedfiles.PathAlias, &s.Alias, ""}, {"etc/link", &s.Link, ""}} {
		line, err := atomicfile.Line(d.Join("src", hash, f.path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && line != "" && *f.to == f.without {
			*f.to = line
		}
	}
	s.Categories, err = settings.ReadCategories(d, hash)
	return s, err
}

// List reads all subscriptions, sorted by hash. If some cannot be read, it returns the others and the joined
// errors.
func List(d *lektordir.Dir) ([]*Subscription, error) { return list(d, Read) }

// ListAll is [List] with the feeds that are not subscribed to, read by [ReadAny] and without a URL: those
// that other programs deliver, and those that the user has left.
func ListAll(d *lektordir.Dir) ([]*Subscription, error) {
	return list(d, func(d *lektordir.Dir, hash string) (*Subscription, error) {
		if feedfiles.Subscribed(d, hash) {
			return Read(d, hash)
		}
		return ReadAny(d, hash)
	})
}

func list(d *lektordir.Dir, read func(*lektordir.Dir, string) (*Subscription, error)) ([]*Subscription, error) {
	hashes, err := d.FeedHashes()
	if err != nil {
		return nil, err
	}
	var subs []*Subscription
	var bad error
	for _, h := range hashes {
		s, err := read(d, h)
		switch {
		case err == nil:
			subs = append(subs, s)
		case !errors.Is(err, fs.ErrNotExist):
			bad = errors.Join(bad, err)
		}
	}
	return subs, bad
}

// Remove ends a subscription, see [Ended]. The feed, its entries, the journal of delivered entries and
// the waiting marks stay: if it is added again, nothing is delivered twice, and nothing that was read
// is unread. A feed that is not subscribed to is left, too. The error may be a [*commit.BusyError].
func Remove(w *commit.Writer, d *lektordir.Dir, hash string, record Recorder) error {
	return end(w, d, hash, "", record)
}

// Replace is [Remove] for a subscription that has become another feed, whose hash is by.
func Replace(w *commit.Writer, d *lektordir.Dir, hash, by string) error {
	return end(w, d, hash, by, nil)
}

func end(w *commit.Writer, d *lektordir.Dir, hash, by string, record Recorder) error {
	t, err := w.Begin(hash)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := errors.Join(feedfiles.Guard(d, hash, "fetch"), schedule.CheckMarkers(d)); err != nil {
		return err
	}
	if record != nil {
		record.note(d, ended(d, hash, false)...)
	}
	return leaveFeed(d, hash, by)
}

// leaveFeed ends a subscription, whose lock the caller must hold.
func leaveFeed(d *lektordir.Dir, hash, by string) error {
	dir := feedfiles.FetchArea(d, hash)
	if _, err := atomicfile.Names(dir); errors.Is(err, fs.ErrNotExist) {
		return leave(d, hash, "")
	} else if err != nil {
		return err
	}
	// The record counts only once there is no url. If it cannot be written, the subscription stays,
	// so that the caller can try again.
	if err := leave(d, hash, strings.TrimSpace(ending+" "+by)+"\n"); err != nil {
		return err
	}
	// The url is removed first, because it makes the feed a subscription, even after an interruption.
	// It is synced, since a power cut that keeps the url and loses its origin would make it the user's own.
	if err := atomicfile.Remove(filepath.Join(dir, feedfiles.FileURL)); err != nil {
		return err
	}
	return removeSettings(d, hash)
}

// removeSettings removes the files of a subscription that is ended, and records that. If it is interrupted,
// [Add] calls it again.
func removeSettings(d *lektordir.Dir, hash string) error {
	dir := feedfiles.FetchArea(d, hash)
	names, bad := atomicfile.Names(dir)
	for _, n := range names {
		if n != "seen" && n != feedfiles.FileMarks {
			bad = errors.Join(bad, os.RemoveAll(filepath.Join(dir, n)))
		}
	}
	schedule.RemoveMarkers(d, hash)
	bad = errors.Join(bad, history.Of(d, hash).Forget(), removeSpool(d, hash),
		atomicfile.RemoveUnsynced(d.Join("src", hash, feedfiles.PathFullText)), atomicfile.SyncDir(dir))
	if bad != nil {
		return bad
	}
	by, _ := endOf(d, hash)
	return atomicfile.WriteUnsynced(d.Join("src", hash, feedfiles.PathEnded), []byte(by))
}

// Purge removes a feed with all its entries, read and unread, and its journal; see [commit.Writer.Purge].
func Purge(ctx context.Context, w *commit.Writer, d *lektordir.Dir, hash string, record Recorder) error {
	if record != nil {
		record.note(d, ended(d, hash, true)...)
	}
	if err := w.Purge(ctx, hash); err != nil {
		return err
	}
	schedule.RemoveMarkers(d, hash)
	return removeSpool(d, hash)
}

func removeSpool(d *lektordir.Dir, hash string) error {
	s, err := spool.Of(d, hash)
	if err != nil {
		return err
	}
	return errors.Join(s.Clear(), spool.RemovePages(d, hash))
}

// FeedURL returns the id of a feed, given its URL in a list or page. It removes the prefix feed: and
// normalizes the URL.
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

// Readable returns the I/O error of reading the title, alias and categories of a feed, if there is
// one. A malformed or missing feed is not an error.
func Readable(d *lektordir.Dir, hash string) error {
	_, err := d.ReadFeed(hash)
	bad := []error{err}
	for _, path := range []string{feedfiles.PathAlias, feedfiles.PathCategories} {
		_, err := atomicfile.Line(d.Join("src", hash, path))
		bad = append(bad, err)
	}
	for _, err := range humanize.Errors(errors.Join(bad...)) {
		if _, ok := errors.AsType[syscall.Errno](err); ok && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// SameAlias removes the alias of a feed if it equals the feed's own name. The removal is not synced. If
// another process holds the feed's lock, the alias stays.
func SameAlias(w *commit.Writer, d *lektordir.Dir, hash string) error {
	if f, _ := d.ReadFeed(hash); f == nil || f.Alias == "" || feedfiles.OneLine(f.Name) != feedfiles.OneLine(f.Alias) {
		return nil
	}
	err := change(w, d, hash, func(*schedule.State) error {
		if f, _ := d.ReadFeed(hash); f == nil || feedfiles.OneLine(f.Name) != feedfiles.OneLine(f.Alias) {
			return nil
		}
		return atomicfile.RemoveUnsynced(filepath.Join(d.Join("src", hash), feedfiles.PathAlias))
	})
	if commit.IsBusy(err) {
		return nil
	}
	return err
}
