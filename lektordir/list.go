package lektordir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/joined"
)

// ListOptions narrow what [Dir.List] lists. The zero value lists every entry.
type ListOptions struct {
	// Feeds are hashes; none means all feeds.
	Feeds []string
	// Skip leaves out new/ or cur/.
	SkipNew, SkipCur bool
	// AllVersions lists every version of an entry. Otherwise only the newest
	// stands for all, whether it is read or not.
	AllVersions bool
	// Withdrawn lists those entries too that a feed no longer has whose document
	// is complete, see [Dir.Complete].
	Withdrawn bool
	// SkipTrashed leaves out what has the flag T, and without AllVersions the older
	// versions that it stands for.
	SkipTrashed bool
	// Strict reads the directories of each feed until two readings in a row have the
	// same entries. Set it if you act on the absence of an entry: if you forget, delete
	// or unpublish what is not listed. If the readings of a feed never agree, the list
	// has what any of them had, and the error has an [UnsettledError].
	Strict bool
}

// List lists entries by reading directories alone: no entry is opened. They
// come grouped by feed, feeds by hash, and within a feed by name, which is by
// time of delivery. A unique name in two places is one entry, the one in cur/.
// The error joins what could not be read or is malformed; the entries are good
// all the same. A missing directory of the lektor-dir is an error; a feed that
// has none in new/ or cur/ is not. Of a feed whose document is complete (see
// [Dir.Complete]), what is not in that document is left out, read or not.
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
		names, err := d.feedNames(place.String())
		bad = append(bad, err)
		feeds = append(feeds, names...)
	}
	slices.Sort(feeds)
	return slices.Compact(feeds), errors.Join(bad...)
}

// listed gives what is listed of a feed.
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
		return r.Place == New && o.SkipNew || r.Place == Cur && o.SkipCur || o.SkipTrashed && r.Trashed()
	}), bad
}

// How often listFeed reads a feed's directories at most. From the fourth reading on a
// strict one waits before each, a millisecond and then twice as long as before, up to
// strictPause: ten seconds in all.
const (
	mostReadings   = 3
	strictReadings = 100
	strictPause    = 100 * time.Millisecond
)

// listFeed lists a feed's entries in new/ and cur/, sorted by unique name.
//
// readdir(3) skips an entry that is renamed within the directory if it passes the new
// name before the rename and the old name after it. So a feed whose directories changed
// is read again. The readings are united: an entry is where the last of them saw it.
// strict is [ListOptions.Strict].
func (d *Dir) listFeed(ctx context.Context, feed string, strict bool) ([]Ref, error) {
	var all, last []Ref
	agreed := 0 // readings in a row that had the entries of the one before
	pause := time.Millisecond
	for n := 0; ; n++ {
		if n >= mostReadings {
			if err := d.opts.Sleep(ctx, pause); err != nil {
				return all, err
			}
			pause = min(2*pause, strictPause)
		}
		refs, change, err := d.readOnce(feed)
		if agreed++; n == 0 || !sameEntries(last, refs) {
			agreed = 0
		}
		all, last = unite(all, refs), refs
		// Two readings skip the same entry only if it is renamed during both.
		settled := agreed == 1 && change != changed || agreed == 2
		switch {
		case unlessNames(err) != nil, !strict && (change == unchanged || settled || n+1 == mostReadings):
			return all, err
		case strict && settled:
			return refs, err
		case n+1 == strictReadings:
			return all, &UnsettledError{feed}
		}
	}
}

// UnsettledError is the error of a strict listing (see [ListOptions.Strict]) if the
// directories of a feed changed during every reading.
type UnsettledError struct{ Feed string }

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("new/%s and cur/%[1]s cannot be listed reliably: other programs keep changing them; try again later", e.Feed)
}

// change says whether directories changed while they were read.
type change uint8

const (
	unchanged      change = iota // so no entry is missing
	maybeUnchanged               // or changed twice within a tick, or by another machine
	changed
)

// readOnce reads new/$feed and cur/$feed once, and sorts the entries by unique name.
func (d *Dir) readOnce(feed string) (refs []Ref, c change, err error) {
	var bad error
	// new/ comes first: an entry that a viewer takes meanwhile is seen twice,
	// which is mended below, rather than not at all.
	var looks [2]look
	for i, place := range []Place{New, Cur} {
		refs, looks[i], err = d.lookInto(place, feed, refs)
		bad = errors.Join(bad, err)
	}
	sortRefs(refs)
	out := refs[:0]
	for i, r := range refs {
		if i+1 < len(refs) && refs[i+1].Unique == r.Unique {
			continue
		}
		out = append(out, r)
	}
	// Both are looked at after both were read, as an entry may go from one to the other.
	if d.shared() {
		c = maybeUnchanged // times come from a cache
	}
	for _, l := range looks {
		c = max(c, l.change())
		l.close()
	}
	return out, c, bad
}

// look is a directory that is being read, with its mtime before that.
type look struct {
	path  string
	f     *os.File // nil for a directory that is not there
	mtime time.Time
	sure  bool // a later change of the directory makes its mtime another one
}

// A file system's clock has ticks: of the kernel, or on old file systems of two seconds.
// Two changes within a tick have one mtime.
const (
	fineTick   = 10 * time.Millisecond
	coarseTick = 2*time.Second + fineTick
)

// begin notes the directory's mtime.
func (l *look) begin() {
	now := time.Now() // the clock that stamps files, whatever that of the lektor-dir says
	fi, err := l.f.Stat()
	if err != nil {
		return
	}
	l.mtime = fi.ModTime()
	tick := fineTick
	if l.mtime.Nanosecond() == 0 {
		tick = coarseTick
	}
	l.sure = now.Sub(l.mtime) > tick
}

// change compares the directory with how it was.
func (l *look) change() change {
	same := false
	if l.f == nil {
		_, err := lstat(l.path)
		same = isNotExist(err)
	} else if fi, err := l.f.Stat(); err == nil {
		same = fi.ModTime().Equal(l.mtime)
	}
	switch {
	case !same:
		return changed
	case !l.sure:
		return maybeUnchanged
	}
	return unchanged
}

func (l *look) close() {
	if l.f != nil {
		l.f.Close()
	}
}

// sameEntries reports whether two readings, sorted by unique name, have the same
// entries, wherever they are.
func sameEntries(a, b []Ref) bool {
	return slices.EqualFunc(a, b, func(x, y Ref) bool { return x.Unique == y.Unique })
}

// unite adds to a reading what only earlier ones had.
func unite(earlier, last []Ref) []Ref {
	if len(earlier) == 0 {
		return last
	}
	in := make(map[string]struct{}, len(last))
	for _, r := range last {
		in[r.Unique] = struct{}{}
	}
	all := slices.Clone(last)
	for _, r := range earlier {
		if _, ok := in[r.Unique]; !ok {
			all = append(all, r)
		}
	}
	sortRefs(all)
	return all
}

// sortRefs sorts entries of one feed by time of delivery; of a unique name in
// two places the one in cur/, the later one, comes last.
func sortRefs(refs []Ref) {
	// Names are read once for each entry rather than in every comparison.
	type keyed struct {
		key orderKey
		ref Ref
	}
	all := make([]keyed, len(refs))
	for i, r := range refs {
		all[i] = keyed{keyOf(r.Unique), r}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		if c := a.key.compare(b.key); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(a.ref.Unique, b.ref.Unique), cmp.Compare(a.ref.Place, b.ref.Place),
			strings.Compare(a.ref.Info, b.ref.Info))
	})
	for i := range all {
		refs[i] = all[i].ref
	}
}

// Compare orders entries of one feed as [Dir.List] does: by time of delivery. Of a
// unique name in two places the one in cur/ is the later one, and of versions of an
// entry that which comes last stands for all.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(compareUnique(r.Unique, other.Unique), cmp.Compare(r.Place, other.Place), strings.Compare(r.Info, other.Info))
}

// orderKey is what of a unique name comes first in the order of names: time, and
// number. Names of another form than ours have no fraction of a second that we
// know, and come first in theirs.
type orderKey struct{ secs, micros, seq int64 }

func keyOf(unique string) orderKey {
	secs, _, _ := strings.Cut(unique, ".")
	// The greatest or 0 for what is no number of seconds, and no entry's.
	n, _ := strconv.ParseInt(secs, 10, 64)
	u, ok := parseUniq(unique)
	if !ok {
		u.micros, u.seq = -1, 0
	}
	return orderKey{n, u.micros, u.seq}
}

func (a orderKey) compare(b orderKey) int {
	if c := cmp.Compare(a.secs, b.secs); c != 0 {
		return c
	}
	if c := cmp.Compare(a.micros, b.micros); c != 0 {
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

// compareUnique orders unique names by their time, then by their number, then
// bytewise.
func compareUnique(a, b string) int {
	if c := keyOf(a).compare(keyOf(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
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

// readPlace appends the entries in new/$feed or cur/$feed, of one reading.
func (d *Dir) readPlace(place Place, feed string, refs []Ref) ([]Ref, error) {
	refs, l, err := d.lookInto(place, feed, refs)
	l.close()
	return refs, err
}

// lookInto is readPlace for a caller that asks whether the directory has changed. It
// closes the look.
func (d *Dir) lookInto(place Place, feed string, refs []Ref) ([]Ref, look, error) {
	l := look{path: d.Join(place.String(), feed)}
	f, err := open(l.path)
	if err != nil {
		if isNotExist(err) {
			l.sure, err = true, nil
		}
		return refs, l, err
	}
	l.f = f
	l.begin()
	ents, err := d.readDir(f)
	if isNotExist(err) {
		l.sure, err = false, nil // removed while it was read
	}
	// Joined once: text of errors joined one by one takes quadratic time.
	bad := []error{err}
	refs = slices.Grow(refs, len(ents))
	for _, e := range ents {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		if e.Type().IsRegular() {
			bad = append(bad, &NameError{Path: place.String() + "/" + feed + "/" + name, Reason: "it is a file, not a directory"})
			continue
		}
		r, err := parseRef(place, feed, name)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		refs = append(refs, r)
	}
	return refs, l, errors.Join(bad...)
}

// readEntries reads the rest of a directory.
func readEntries(f *os.File) ([]os.DirEntry, error) { return f.ReadDir(-1) }

// unlessNames leaves out of an error of readPlace what is only about names that
// are no entries'.
func unlessNames(err error) error {
	return errors.Join(slices.DeleteFunc(joined.Errors(err), func(err error) bool { return errors.As(err, new(*NameError)) })...)
}

// NoEntryError is returned by [Dir.Resolve] for a name that is no entry's.
type NoEntryError struct {
	Name string
	// Newer is set when the entry was replaced by a newer version.
	Newer *Ref
}

func (e *NoEntryError) Error() string {
	if e.Newer != nil {
		return fmt.Sprintf("%s was replaced by a newer version, %s", e.Name, e.Newer.Path())
	}
	if strings.TrimSpace(e.Name) == "" {
		return fmt.Sprintf("no entry %q", e.Name)
	}
	return "no entry " + e.Name
}

// Resolve finds the entry that the user names: by a path, absolute or relative
// to the lektor-dir or the working directory, or by its unique name with or
// without info. A path at which the entry no longer is finds it where it is
// now. A path outside the lektor-dir is refused. The error is a
// [*NoEntryError] when there is no such entry.
func (d *Dir) Resolve(name string) (Ref, error) {
	clean := strings.TrimRight(name, "/")
	feed, base := "", clean
	if strings.ContainsRune(clean, '/') {
		base = filepath.Base(clean)
		parent := filepath.Dir(clean)
		place := filepath.Base(filepath.Dir(parent))
		if place != "new" && place != "cur" || !d.holds(filepath.Dir(filepath.Dir(parent)), clean) {
			return Ref{}, &NoEntryError{Name: name}
		}
		feed = filepath.Base(parent)
		p := New
		if place == "cur" {
			p = Cur
		}
		if r, err := parseRef(p, feed, base); err == nil {
			if _, err := lstat(d.Abs(r)); err == nil {
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
			if want != "" && r.Identity() == want && compareUnique(r.Unique, unique) > 0 {
				newer = &r
			}
		}
	}
	if bad != nil {
		return Ref{}, bad // it may be there
	}
	return Ref{}, &NoEntryError{Name: name, Newer: newer}
}

// holds reports whether root, the part of a path before new/ or cur/, is this
// lektor-dir; relative ones may be relative to it.
func (d *Dir) holds(root, path string) bool {
	if !filepath.IsAbs(path) && root == "." {
		return true
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return false
	}
	return abs == d.path || atomicfile.Same(abs, d.path)
}
