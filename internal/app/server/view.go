package server

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// View is the lektor-dir of a user during one request.
type View struct {
	*catalog.Snapshot // of the feeds that clients see
	dir               *lektordir.Dir
	Store             *entrystore.Store
	all               bool // [Options].AllCategories
	request           *request
	// ownLabels are the names of flags, and folders that may have no feeds.
	ownLabels []entrystore.Label
}

// currentView returns the lektor-dir of the user as it is now.
func (c *request) currentView() (*View, error) {
	s, err := c.lib.names.Now(c.r.Context())
	if err != nil {
		return nil, err
	}
	c.lib.last.Store(s)
	labels, err := entrystore.Labels(c.lib.dir.Path())
	if err != nil {
		return nil, err
	}
	store := entrystore.New(c.lib.dir, c.opts.Now(), c.s)
	return &View{s.Only(shown), c.lib.dir, store, c.opts.AllCategories, c, labels}, nil
}

// each calls f for the entries of a list. It returns the continuation, 0 if there are no more.
func (v *View) each(l greader.List, f func(Entry)) (next greader.ID) {
	some, none := v.hasAny(l.Include), v.hasAny(l.Exclude)
	n := 0
	for e := range v.In(l.Stream, l.From, l.Before, l.Oldest) {
		if len(l.Include) > 0 && !some(e.Entry) || none(e.Entry) {
			continue
		}
		if n == l.Count {
			return next
		}
		f(e)
		n, next = n+1, e.Key
	}
	return 0
}

// In yields the entries of a stream with keys from a first one on and less than another, 0 for no limit: the last
// one first, or the other way around if rising is set.
func (v *View) In(s greader.Stream, from, before greader.ID, rising bool) iter.Seq[Entry] {
	in, some := v.has(s), v.Only(v.mayHave(s))
	if before == 0 {
		before = math.MaxInt64
	}
	return func(yield func(Entry) bool) {
		for id, e := range some.Between(uint64(from), uint64(before), rising) {
			if !e.Trashed() && in(e) && !yield(Entry{greader.ID(id), e}) {
				return
			}
		}
	}
}

// hasAny returns a function that reports whether an entry is in one of several streams.
func (v *View) hasAny(list []greader.Stream) func(catalog.Entry) bool {
	var all []func(catalog.Entry) bool
	for _, s := range list {
		all = append(all, v.has(s))
	}
	return func(e catalog.Entry) bool {
		return slices.ContainsFunc(all, func(f func(catalog.Entry) bool) bool { return f(e) })
	}
}

// has returns a function that reports whether an entry is in a stream. A stream that the server
// does not know is empty.
func (v *View) has(s greader.Stream) func(catalog.Entry) bool {
	switch s.Kind {
	case greader.Feed:
		feed := v.Feed(v.feedOf(s.Name))
		return func(e catalog.Entry) bool { return e.Feed == feed }
	case greader.Label:
		feeds := v.feedsIn(s.Name, v.folders)
		if flag := catalog.FlagsOf(v.flag(s.Name)); flag != 0 && len(feeds) == 0 {
			return func(e catalog.Entry) bool { return e.Has(flag) }
		}
		return func(e catalog.Entry) bool { return feeds[e.Feed] }
	}
	switch s.Name {
	case greader.ReadingList:
		return func(catalog.Entry) bool { return true }
	case greader.Read:
		return func(e catalog.Entry) bool { return !e.Unread() }
	case greader.KeptUnread:
		return func(e catalog.Entry) bool { return e.Unread() }
	case greader.Starred:
		starred := catalog.FlagsOf("F")
		return func(e catalog.Entry) bool { return e.Has(starred) }
	}
	return func(catalog.Entry) bool { return false }
}

// mayHave returns a function that reports whether a feed may have entries of a stream, by the counts of the feed.
func (v *View) mayHave(s greader.Stream) func(*catalog.Feed) bool {
	switch {
	case s.Kind == greader.Feed:
		feed := v.Feed(v.feedOf(s.Name))
		return func(f *catalog.Feed) bool { return f == feed }
	case s.Kind == greader.State && s.Name == greader.Starred:
		starred := catalog.FlagsOf("F")
		return func(f *catalog.Feed) bool { return f.Flags&starred != 0 }
	}
	return func(*catalog.Feed) bool { return true }
}

// named returns the label of a name, a folder or a flag.
func (v *View) named(name string, folder bool) (l entrystore.Label, ok bool) {
	for _, l := range v.ownLabels {
		if (l.Flag == "") == folder && folderKey(l.Name) == folderKey(name) {
			return l, true
		}
	}
	return l, false
}

// flag returns the flag of the user that a client names by its label or as "flag-x", "" if there is none.
func (v *View) flag(name string) string {
	l, ok := v.named(name, false)
	if c := greader.FlagOf(name); !ok && c != 0 {
		return string(rune(c))
	}
	return l.Flag
}

// flagLabel returns the label of a flag of the user.
func (v *View) flagLabel(flag string) string {
	for _, l := range v.ownLabels {
		if l.Flag == flag {
			return termsafe.Line(l.Name)
		}
	}
	return greader.FlagLabel(flag[0])
}

// feedOf returns the hash of a feed that a client names by its hash or a URL, "" if there is none.
func (v *View) feedOf(name string) string {
	name = strings.TrimPrefix(name, hashURN)
	hashes := []string{name, lektordir.FeedHash(lektordir.NormalizeID(name))}
	for _, hash := range hashes {
		if v.Feed(hash) != nil {
			return hash
		}
	}
	for _, hash := range hashes { // a client may know the page of which the subscription became the feed
		if by := subscriptions.Successor(v.dir, hash); by != "" {
			return by
		}
	}
	public := ""
	for _, f := range v.Feeds {
		url := f.About.URL
		if url = lektordir.NormalizeID(url); url != "" && url == name {
			return f.Hash
		}
		if url != "" && feedurl.Public(url) == name { // clients know it without the password
			public = f.Hash
		}
	}
	return public
}

// folders returns the names of a feed's folders that clients see, made safe as titles are.
func (v *View) folders(f *catalog.Feed) (list []string) {
	for _, folder := range allFolders(f) {
		list = append(list, termsafe.Line(folder))
		if !v.all {
			break // Readrops fails to read a second one, and Capy refuses to edit the feed
		}
	}
	return list
}

// allFolders returns the names of a feed's folders, none for a feed that came after the view was made.
func allFolders(f *catalog.Feed) []string {
	if f == nil || f.About == nil {
		return nil
	}
	return f.About.Folders
}

// feedsIn returns the feeds in a folder, by a function that returns the folders of a
// feed. Feeds in the folders below are not among them, because clients show these as folders of their
// own.
func (v *View) feedsIn(folder string, folders func(*catalog.Feed) []string) map[*catalog.Feed]bool {
	is, found := sameFolder(folder), map[*catalog.Feed]bool{}
	for _, f := range v.Feeds {
		if slices.ContainsFunc(folders(f), is) {
			found[f] = true
		}
	}
	return found
}

// sameFolder returns a function that reports whether a folder is one of names.
func sameFolder(names ...string) func(string) bool {
	return func(f string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return folderKey(name) == folderKey(f) })
	}
}

// folderKey returns a text that is equal for all spellings of a folder, and for the one that clients see.
func folderKey(folder string) string {
	path := entrystore.FolderPath(termsafe.Line(folder))
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1].Key
}

// Folders returns the names of all folders that clients see by key: of several spellings the first one.
func (v *View) Folders() map[string]string {
	names := map[string]string{}
	for _, f := range v.Feeds {
		for _, folder := range v.folders(f) {
			key := folderKey(folder)
			if old, ok := names[key]; key != "" && (!ok || folder < old) {
				names[key] = folder
			}
		}
	}
	for _, l := range v.ownLabels {
		if key := folderKey(l.Name); l.Flag == "" && key != "" && names[key] == "" {
			names[key] = termsafe.Line(l.Name)
		}
	}
	return names
}
