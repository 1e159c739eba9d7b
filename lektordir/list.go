package lektordir

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// ListOptions selects the entries that [Dir.List] returns. The zero value selects the newest
// version of every entry that is not withdrawn.
type ListOptions struct {
	// Feeds holds the hashes of the feeds to list; empty means all feeds.
	Feeds []string
	// Places holds the places to list; empty means new/ and cur/.
	Places []Place
	// AllVersions lists every version of an entry. Otherwise only the newest one is listed,
	// and only if it is in Places.
	AllVersions bool
	// Withdrawn also lists entries that are not in the document of a complete feed; see
	// [Dir.Complete].
	Withdrawn bool
	// SkipTrashed omits entries with the flag T. Without AllVersions, it omits an entry if its
	// newest version has that flag.
	SkipTrashed bool
	// Strict reads the directories of each feed until successive readings agree. Set it if you
	// act on the absence of an entry, for example if you delete its page. If the readings of a
	// feed do not agree within about ten seconds, List returns the entries of all of them, and
	// an error.
	Strict bool
}

// List lists entries. It reads only directories, and opens no entry. The entries are sorted by
// the hash of the feed, then by time of delivery. If a unique name is in new/ and in cur/, List
// returns only the entry in cur/. If the document of a feed is complete (see [Dir.Complete]),
// List omits entries that are not in it.
//
// The error joins the errors of directories that cannot be read and of malformed names; the
// returned entries are valid even then. If new or cur itself is missing, that is an error; a feed
// need not have a directory in either.
func (d *Dir) List(ctx context.Context, o ListOptions) ([]Ref, error) {
	var bad []error
	var refs []Ref
	for found, err := range d.ListFeeds(ctx, o) {
		bad = append(bad, err)
		if refs == nil {
			refs = found // mostly one feed is listed
		} else {
			refs = append(refs, found...)
		}
	}
	return refs, errors.Join(bad...)
}

// ListFeeds is like [Dir.List], but yields the entries of one feed at a time, so that the caller
// need not hold all entries in memory. It may yield entries, an error, or both. When ctx is done,
// ListFeeds yields its cause and ends.
func (d *Dir) ListFeeds(ctx context.Context, o ListOptions) iter.Seq2[[]Ref, error] {
	return func(yield func([]Ref, error) bool) {
		feeds := slices.Compact(slices.Sorted(slices.Values(o.Feeds)))
		if len(feeds) == 0 {
			var err error
			if feeds, err = d.listedFeeds(); err != nil && !yield(nil, err) {
				return
			}
		}
		for _, feed := range feeds {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			if found, err := d.listed(ctx, feed, o); (len(found) > 0 || err != nil) && !yield(found, err) {
				return
			}
		}
	}
}

// listedFeeds returns the hashes of the feeds that have a directory in new/ or cur/, sorted.
func (d *Dir) listedFeeds() (feeds []string, err error) {
	var bad []error
	for _, place := range []Place{New, Cur} {
		names, err := d.fs.Feeds(place.String())
		bad = append(bad, err)
		feeds = append(feeds, names...)
	}
	slices.Sort(feeds)
	return slices.Compact(feeds), errors.Join(bad...)
}

// listed returns the entries of a feed that the options select.
func (d *Dir) listed(ctx context.Context, feed string, o ListOptions) ([]Ref, error) {
	l, err := d.fs.List(ctx, feed, o.Strict)
	found := make([]Ref, len(l.Names))
	for i, n := range l.Names {
		found[i] = refOf(feed, n)
	}
	bad := []error{err} // joined once: the text of errors joined one by one takes quadratic time
	for _, b := range l.Bad {
		bad = append(bad, &MalformedError{Path: b.Path, Reason: b.Reason, NoEntry: true})
	}
	if !o.AllVersions {
		found = newestVersions(found)
	}
	if !o.Withdrawn && len(found) > 0 {
		found, err = d.present(feed, found)
		bad = append(bad, err)
	}
	return slices.DeleteFunc(found, func(r Ref) bool {
		return len(o.Places) > 0 && !slices.Contains(o.Places, r.Place) || o.SkipTrashed && r.Trashed()
	}), errors.Join(bad...)
}

// newestVersions keeps the newest of the entries with one identity. refs are the entries of one
// feed, sorted by time of delivery.
func newestVersions(refs []Ref) []Ref {
	last := make(map[string]int, len(refs))
	for i, r := range refs {
		if id := r.Identity(); id != "" {
			last[id] = i
		}
	}
	if len(last) == len(refs) {
		return refs
	}
	out := refs[:0]
	for i, r := range refs {
		if id := r.Identity(); id == "" || last[id] == i {
			out = append(out, r)
		}
	}
	return out
}

// Resolve finds the entry that a user has named: by a path, absolute or relative to the
// lektor-dir or the working directory, or by its unique name, with or without info. If the entry
// has moved, Resolve returns its present place. It returns a [*NotFoundError] if there is no
// such entry, or if the path is outside the lektor-dir.
func (d *Dir) Resolve(name string) (Ref, error) {
	clean := strings.TrimRight(name, "/")
	feed, base := "", clean
	if strings.ContainsRune(clean, '/') {
		base = filepath.Base(clean)
		parent := filepath.Dir(clean)
		place := filepath.Base(filepath.Dir(parent))
		if place != "new" && place != "cur" || !d.holds(filepath.Dir(filepath.Dir(parent)), clean) {
			return Ref{}, &NotFoundError{Name: name, NoPath: true}
		}
		feed = filepath.Base(parent)
		if r, err := ParsePath(place + "/" + feed + "/" + base); err == nil {
			if _, err := dirfs.Lstat(d.abs(r)); err == nil {
				return d.Timed(r), nil
			}
		}
	}
	unique, _, _ := strings.Cut(base, ";")
	feeds := []string{feed}
	if feed == "" {
		var err error
		if feeds, err = d.listedFeeds(); err != nil {
			return Ref{}, err
		}
	}
	want := Ref{Unique: unique}.Identity()
	var newer *Ref
	var bad error
	for _, feed := range feeds {
		l, err := d.fs.List(context.Background(), feed, false)
		bad = errors.Join(bad, err)
		for _, n := range l.Names {
			r := refOf(feed, n)
			if r.Unique == unique {
				return r, nil
			}
			if want != "" && r.Identity() == want && r.Compare(Ref{Unique: unique}) > 0 {
				newer = &r
			}
		}
	}
	if bad != nil {
		return Ref{}, bad // the entry may be in a directory that could not be read
	}
	return Ref{}, &NotFoundError{Name: name, Newer: newer}
}

// Timed returns the Ref with [Ref.Mtime] read from the disk, for one that was not listed.
func (d *Dir) Timed(r Ref) Ref {
	r.Mtime = dirfs.Mtime(d.abs(r), r.Unique)
	return r
}
