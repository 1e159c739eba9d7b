package index

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeds/feedstate"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/lektordir"
)

// feed is a feed of the lektor-dir as the index knows it.
type feed struct {
	id   int64 // 0 for one that the index does not have yet
	hash string
	// stamps are those of new/$feed, cur/$feed and of the list of the document, when
	// they were read; now is what they are now.
	stamps, now [3]stamp.Stamp
	ctime       int64 // ctime of the later of the two directories, in nanoseconds
}

// The places of a feed that have stamps; the first two are also those of entries, and
// of a lektordir.Place.
const (
	inNew = iota
	inCur
	ofList
)

// dirty reports whether a part of a feed must be read again.
func (s *session) dirty(f *feed, place int) bool {
	return s.x.rule.Shared || f.now[place] == "" || f.now[place] != f.stamps[place]
}

// gone reports whether the feed has neither directory any more.
func (f *feed) gone() bool { return f.now[inNew] == stamp.Absent && f.now[inCur] == stamp.Absent }

// dirID is the directory of a feed in the table of entries.
func dirID(f *feed, place int) int64 { return f.id*2 + int64(place) }

// dirError is a failure to read the lektor-dir, not the index. Listing the lektor-dir reports the
// failure.
type dirError struct{ err error }

func (e *dirError) Error() string { return e.err.Error() }
func (e *dirError) Unwrap() error { return e.err }

// mostFeeds bounds the memory that is allocated in advance: in a damaged file, the number of feeds
// can be anything.
const mostFeeds = 1 << 16

// load reads the feeds from the file.
func (s *session) load() {
	n := 0
	if r, ok := s.c.one("SELECT max(id) FROM feed"); ok {
		n = int(min(max(r.int(0), 0), mostFeeds))
	}
	s.feeds, s.byID = make(map[string]*feed, n), make(map[int64]*feed, n)
	r := s.c.query("SELECT id, hash, new, cur, complete FROM feed")
	for r.next() {
		f := &feed{id: r.int(0), hash: string(r.blob(1))}
		for i := range f.stamps {
			f.stamps[i] = stamp.Stamp(r.blob(2 + i))
		}
		s.feeds[f.hash], s.byID[f.id] = f, f
	}
	s.loadNext()
}

func (s *session) loadNext() {
	s.next = 1
	if n, ok := s.c.meta("next"); ok {
		s.next = max(n.int(0), 1)
	}
}

// tops are new/ and cur/ while they are open.
type tops struct {
	fds     [2]int
	known   [2]stamp.Stamp // known to the index
	reading *stamp.Reading
}

// openTops opens new/ and cur/ and begins to read them. The caller must close them, also
// after an error.
func (s *session) openTops() (*tops, error) {
	t := &tops{fds: [2]int{-1, -1}}
	for i, key := range []string{"new", "cur"} {
		if r, ok := s.c.meta("top " + key); ok {
			t.known[i] = stamp.Stamp(r.blob(0))
		}
		fd, err := unix.Open(s.x.dir.Join(key), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return t, &dirError{&fs.PathError{Op: "open", Path: s.x.dir.Join(key), Err: err}}
		}
		t.fds[i] = fd
	}
	t.reading = s.x.rule.Begin(unix.AT_FDCWD, t.known[:], s.x.dir.Join("new"), s.x.dir.Join("cur"))
	return t, nil
}

func (t *tops) close() {
	for _, fd := range t.fds {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// survey compares the stamp of every directory. It reads only new/ and cur/, if a feed may have
// been added, and adds the feed to s.feeds. It reports whether anything has to be read.
func (s *session) survey(ctx context.Context) (dirty bool, err error) {
	t, err := s.openTops()
	defer t.close()
	if err != nil {
		return false, err
	}
	if t.reading.Needed(t.known[:]) {
		if err := s.newFeeds(t); err != nil {
			return false, err
		}
		if now := [2]stamp.Stamp(t.reading.End()); now != t.known && now != [2]stamp.Stamp{} {
			s.tops = &now
		}
	}
	feeds := slices.Collect(maps.Values(s.feeds))
	err = workers.ForEach(ctx, len(feeds), func(n int) {
		f := feeds[n]
		f.ctime = 0
		for i, fd := range t.fds {
			var t stamp.Times
			f.now[i], t = stamp.LookAgain(fd, f.hash, f.stamps[i])
			f.ctime = max(f.ctime, unix.TimespecToNsec(t.Ctime))
		}
		f.now[ofList], _ = stamp.LookAgain(s.src, feedstate.CompletePath(f.hash), f.stamps[ofList])
	})
	if err != nil {
		return false, err
	}
	s.latest = 0
	for _, f := range feeds {
		s.latest = max(s.latest, f.ctime)
		dirty = dirty || s.dirty(f, inNew) || s.dirty(f, inCur) || s.dirty(f, ofList)
	}
	return dirty || s.tops != nil, s.c.err
}

// newFeeds reads new/ and cur/.
func (s *session) newFeeds(t *tops) error {
	for i, fd := range t.fds {
		names, err := readNames(fd, s.x.dir.Join(lektordir.Place(i).String()))
		if err != nil {
			return &dirError{err}
		}
		for _, n := range names {
			if n.kind != kindFile && s.feeds[n.name] == nil {
				s.feeds[n.name] = &feed{hash: n.name}
			}
		}
	}
	return nil
}

// listing is the content of a directory of a feed.
type listing struct {
	stamp stamp.Stamp // empty if it cannot be relied on
	names []name
}

// readings is the maximum number of times that listFeed reads the directories of a feed.
const readings = 4

// listFeed reads the directories of a feed that have changed; the others are nil.
//
// readdir(3) skips an entry that is renamed meanwhile, and an entry may move from a
// directory that is not yet read to one that was. So unless the stamps of both show that nothing
// changed, they are read until two readings have the same entries. sure is
// false if none have.
func (s *session) listFeed(f *feed) (found [2]*listing, sure bool, err error) {
	var last []string
	for n := 0; n < readings && !sure; n++ {
		var names []string
		reading := s.x.rule.Begin(unix.AT_FDCWD, f.now[:], s.x.dir.Join("new", f.hash), s.x.dir.Join("cur", f.hash))
		copy(f.now[:], reading.Before)
		for place := range found {
			if !s.dirty(f, place) {
				continue
			}
			if found[place], err = s.list(f, place); err != nil {
				return found, false, err
			}
			for _, n := range found[place].names {
				unique, _, _ := strings.Cut(n.name, ";")
				names = append(names, unique)
			}
		}
		kept := reading.End()
		for place, l := range found {
			if l != nil {
				l.stamp = kept[place]
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		sure = stamp.Whole(kept) || n > 0 && slices.Equal(names, last)
		last = names
	}
	return found, sure, nil
}

// list reads new/$feed or cur/$feed.
func (s *session) list(f *feed, place int) (*listing, error) {
	rel := path.Join(lektordir.Place(place).String(), f.hash)
	abs := s.x.dir.Join(rel)
	fd, err := unix.Open(abs, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return &listing{}, nil
	}
	if err != nil {
		return nil, &dirError{&fs.PathError{Op: "open", Path: abs, Err: err}}
	}
	defer unix.Close(fd)
	names, err := readNames(fd, abs)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // removed while it was read
	}
	if err != nil {
		return nil, &dirError{err}
	}
	return &listing{names: names}, nil
}

// parse returns the entry of a name, or the error that listing the lektor-dir reports.
func (s *session) parse(f *feed, place int, n name) (lektordir.Ref, error) {
	rel := lektordir.Place(place).String() + "/" + f.hash + "/" + n.name
	if n.kind == kindFile {
		return lektordir.Ref{}, &lektordir.MalformedError{Path: rel, Reason: "it is a file, not a directory",
			NoEntry: true}
	}
	ref, err := lektordir.ParsePath(rel)
	return s.x.dir.Timed(ref), err
}

// compare looks at the entries that were perhaps still being written when they were read,
// and if it is to be thorough at all. It returns those whose directories have changed
// since, or were renamed, and those that are now known to be whole.
func (s *session) compare(ctx context.Context) (changed []int64, grown span) {
	type entry struct {
		id, ctime, now int64
		young          bool
	}
	var all []entry
	var refs []lektordir.Ref
	now := s.x.o.Clock()
	compare := func() {
		_ = workers.ForEach(ctx, len(all), func(i int) {
			var st unix.Stat_t
			if unix.Lstat(s.x.dir.Path()+"/"+refs[i].Path(), &st) == nil {
				all[i].now = unix.TimespecToNsec(st.Ctim)
			}
		})
		for _, e := range all {
			switch {
			case e.now == 0: // it is gone, which its directory shows; or ctx has ended
			case e.now != e.ctime:
				changed = append(changed, e.id)
			case !e.young:
			case s.whole(e.ctime), s.rested(now.Sub(time.Unix(0, e.ctime))):
				if grown.last = e.id; grown.first == 0 {
					grown.first = grown.last
				}
				grown.ctime = max(grown.ctime, e.ctime)
			}
		}
		all, refs = all[:0], refs[:0]
	}
	from := "entry INDEXED BY entry_young WHERE young = 1"
	if s.thorough {
		from = "entry"
	}
	r := s.c.query("SELECT id, dir, name, info, ctime, young FROM " + from + " ORDER BY id")
	defer r.close()
	for r.next() && ctx.Err() == nil {
		if ref, ok := s.ref(r.int(1), r.blob(2), r.blob(3), r.null(3)); ok {
			all, refs = append(all, entry{id: r.int(0), ctime: r.int(4), young: r.int(5) == 1}), append(refs, ref)
		}
		if len(all) == batch {
			compare()
		}
	}
	compare()
	return changed, grown
}

// span is a range of ids, both 0 if it is empty, and the latest ctime of its entries.
type span struct{ first, last, ctime int64 }

// whole reports whether nothing is written any more to an entry that has such a ctime
// when it is read: something was changed in the lektor-dir long after it, and the clock
// says so, too. One of them alone may be wrong.
func (s *session) whole(ctime int64) bool {
	return time.Duration(s.latest-ctime) > youth && s.x.o.Clock().Sub(time.Unix(0, ctime)) > youth
}

// rested reports whether nothing is written any more to an entry that was written to so
// long ago by the clock, where nothing else has changed since: the last that looked as if
// it were still being written was read as long ago, by a clock that nobody sets.
func (s *session) rested(ago time.Duration) bool {
	if ago <= youth {
		return false
	}
	then, ok := s.c.meta("young")
	now, has := upTime()
	if !ok || !has {
		return ago > longYouth
	}
	was := time.Duration(then.int(0))
	return now < was || now-was > youth // it begins anew with the machine
}

// youth is how long nothing was written to an entry before it is taken to be whole, and
// longYouth how long where there is no clock but one that is set: by an hour or two, but
// rarely by a day while somebody copies an entry.
const (
	youth     = time.Minute
	longYouth = 24 * time.Hour
)

// ref returns the entry of a row; ok is false for a row that fits no feed. unique is nil if
// only the flags are needed.
func (s *session) ref(dir int64, unique, info []byte, bare bool) (lektordir.Ref, bool) {
	f := s.byID[dir>>1]
	if f == nil {
		return lektordir.Ref{}, false
	}
	r := lektordir.Ref{Feed: f.hash, Unique: string(unique), Place: lektordir.Place(dir & 1)}
	if r.Place == lektordir.Cur {
		r.Info, r.Bare = string(info), bare
	}
	if unique != nil {
		r = s.x.dir.Timed(r)
	}
	return r, true
}

var errInconsistent = errors.New("its tables do not fit each other")
