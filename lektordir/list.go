package lektordir

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/errlist"
)

// ListOptions narrow what [Dir.List] lists. The zero value lists every entry.
type ListOptions struct {
	// Feeds are hashes; empty means all feeds.
	Feeds []string
	// Places are the places to list; empty means new/ and cur/.
	Places []Place
	// AllVersions lists every version of an entry. Otherwise only the newest
	// stands for all, whether it is read or not.
	AllVersions bool
	// Withdrawn also lists entries that are no longer in the document of a feed, if
	// that is complete, see [Dir.Complete].
	Withdrawn bool
	// SkipTrashed leaves out entries with the flag T and, without AllVersions, their
	// older versions.
	SkipTrashed bool
	// Strict reads the directories of each feed until two readings in a row have the
	// same entries. Set it if you act on the absence of an entry: if you forget, delete
	// or unpublish what is not listed. If the readings of a feed never agree, the list
	// has what any of them had, and the error says so.
	Strict bool
}

// List lists entries by reading directories only: no entry is opened. The entries
// are grouped by feed, feeds by hash, and within a feed by name, which is by
// time of delivery. A unique name in two places is one entry, the one in cur/.
// The error joins the errors of files that cannot be read or are malformed; the
// returned entries are valid even then. A missing directory of the lektor-dir is an error; a feed that
// has none in new/ or cur/ is not. If a feed's document is complete (see
// [Dir.Complete]), entries that are not in it are left out, read or not.
func (d *Dir) List(ctx context.Context, o ListOptions) ([]Ref, error) {
	var bad []error
	var refs []Ref
	for found, err := range d.ListFeeds(ctx, o) {
		bad = append(bad, err)
		refs = append(refs, found...)
	}
	return refs, errors.Join(bad...)
}

// ListFeeds is [Dir.List] feed by feed, for who need not have all entries in memory. An
// error may come without entries, or with some. It ends when ctx does, with the cause.
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

// listedFeeds returns the names of the directories in new/ and cur/, sorted.
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
	found, bad := d.listFeed(ctx, feed, o.Strict)
	if !o.AllVersions {
		found = newestVersions(found)
	}
	if !o.Withdrawn && len(found) > 0 {
		var err error
		found, err = d.present(feed, found)
		bad = errors.Join(bad, err)
	}
	return slices.DeleteFunc(found, func(r Ref) bool {
		return len(o.Places) > 0 && !slices.Contains(o.Places, r.Place) || o.SkipTrashed && r.Trashed()
	}), bad
}

// listFeed lists a feed's entries in new/ and cur/, sorted by unique name. strict is
// [ListOptions.Strict].
func (d *Dir) listFeed(ctx context.Context, feed string, strict bool) ([]Ref, error) {
	l, err := d.fs.List(ctx, feed, strict)
	return refsOf(feed, l, err)
}

// refsOf returns a listing as Refs, and an error that joins its malformed names to err.
func refsOf(feed string, l dirfs.Listing, err error) ([]Ref, error) {
	refs := make([]Ref, len(l.Names))
	for i, n := range l.Names {
		refs[i] = refOf(feed, n)
	}
	bad := []error{err} // joined once: text of errors joined one by one takes quadratic time
	for _, b := range l.Bad {
		bad = append(bad, &MalformedError{Path: b.Path, Reason: b.Reason, NoEntry: true})
	}
	return refs, errors.Join(bad...)
}

// newestVersions keeps of the entries with the same identity the newest. refs
// are one feed's, sorted by unique name.
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

// unlessNames leaves out of an error of readPlace what is only about names that
// are no entries'.
func unlessNames(err error) error {
	return errors.Join(slices.DeleteFunc(errlist.Errors(err), isNoEntry)...)
}

// Resolve finds the entry that the user names: by a path, absolute or relative
// to the lektor-dir or the working directory, or by its unique name with or
// without info. A path at which the entry no longer is finds it where it is
// now. A path outside the lektor-dir is refused. The error is a
// [*NotFoundError] when there is no such entry.
func (d *Dir) Resolve(name string) (Ref, error) {
	clean := strings.TrimRight(name, "/")
	feed, base := "", clean
	if strings.ContainsRune(clean, '/') {
		base = filepath.Base(clean)
		parent := filepath.Dir(clean)
		place := filepath.Base(filepath.Dir(parent))
		if place != "new" && place != "cur" || !d.holds(filepath.Dir(filepath.Dir(parent)), clean) {
			return Ref{}, &NotFoundError{Name: name}
		}
		feed = filepath.Base(parent)
		p := New
		if place == "cur" {
			p = Cur
		}
		if r, err := parseRef(p, feed, base); err == nil {
			if _, err := dirfs.Lstat(d.abs(r)); err == nil {
				return r, nil
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
		refs, err := d.listFeed(context.Background(), feed, false)
		bad = errors.Join(bad, unlessNames(err))
		for _, r := range refs {
			if r.Unique == unique {
				return r, nil
			}
			if want != "" && r.Identity() == want && entryname.Compare(r.Unique, unique) > 0 {
				newer = &r
			}
		}
	}
	if bad != nil {
		return Ref{}, bad // it may be there
	}
	return Ref{}, &NotFoundError{Name: name, Newer: newer}
}
