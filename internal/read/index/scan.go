package index

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeds/history"
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

// openDir opens a directory of the lektor-dir. The error is a *dirError.
func openDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &dirError{err}
	}
	return f, nil
}

// load reads the feeds from the file.
func (s *session) load() {
	s.feeds, s.byID = map[string]*feed{}, map[int64]*feed{}
	r := s.c.query("SELECT id, hash, new, cur, complete FROM feed")
	for r.next() {
		f := &feed{id: r.int(0), hash: string(r.blob(1))}
		for i := range f.stamps {
			f.stamps[i] = stamp.Stamp(r.blob(2 + i))
		}
		s.feeds[f.hash], s.byID[f.id] = f, f
	}
}

// scan is a comparison of the lektor-dir with the index.
type scan struct {
	*session
	thorough bool  // find entries of which a file was changed in place, too
	latest   int64 // the latest ctime of a feed's directory, in nanoseconds

	dirty   bool          // some directory has to be read
	tops    []stamp.Stamp // stamps of new/ and cur/ to store; nil if unchanged or too recent
	changed []int64       // entries to read again
}

// scan compares the stamp of every directory with that in the index, and looks at the entries that were perhaps still
// being written when they were read, or at all of them.
func (s *session) scan(ctx context.Context, thorough bool) (*scan, error) {
	s.load()
	c := &scan{session: s, thorough: thorough}
	tops, err := c.topDirs()
	defer func() {
		for _, top := range tops {
			_ = top.Close() // of nil, too
		}
	}()
	if err != nil {
		return nil, err
	}
	feeds := slices.Collect(maps.Values(s.feeds))
	err = workers.ForEach(ctx, len(feeds), func(n int) {
		f := feeds[n]
		f.ctime = 0
		for i, top := range tops {
			var t stamp.Times
			f.now[i], t = stamp.LookAgain(int(top.Fd()), f.hash, f.stamps[i])
			f.ctime = max(f.ctime, unix.TimespecToNsec(t.Ctime))
		}
		f.now[ofList], _ = stamp.LookAgain(int(s.src.Fd()), history.CompletePath(f.hash), f.stamps[ofList])
	})
	if err != nil {
		return nil, err
	}
	c.dirty = c.tops != nil
	for _, f := range feeds {
		c.latest = max(c.latest, f.ctime)
		c.dirty = c.dirty || s.dirty(f, inNew) || s.dirty(f, inCur) || s.dirty(f, ofList)
	}
	c.entries(ctx)
	return c, s.c.err
}

// topDirs opens new/ and cur/. It reads them if a feed may have been added, and adds the feed to c.feeds. The caller
// must close them, also after an error.
func (c *scan) topDirs() (tops [2]*os.File, err error) {
	known := make([]stamp.Stamp, len(tops))
	for place := range tops {
		name := lektordir.Place(place).String()
		if r, ok := c.c.meta("top " + name); ok {
			known[place] = stamp.Stamp(r.blob(0))
		}
		if tops[place], err = openDir(c.x.dir.Join(name)); err != nil {
			return tops, err
		}
	}
	reading := c.x.rule.Begin(unix.AT_FDCWD, known, tops[inNew].Name(), tops[inCur].Name())
	if !reading.Needed(known) {
		return tops, nil
	}
	for _, top := range tops {
		names, err := readNames(top)
		if err != nil {
			return tops, &dirError{err}
		}
		for _, n := range names {
			if n.kind != unix.S_IFREG && c.feeds[n.name] == nil {
				c.feeds[n.name] = &feed{hash: n.name}
			}
		}
	}
	if now := reading.End(); stamp.Whole(now) && !slices.Equal(now, known) {
		c.tops = now
	}
	return tops, nil
}

// name is a name in a directory.
type name struct {
	name string
	ino  uint64
	kind uint32 // unix.S_IFDIR and so on
}

// readNames returns the names in a directory, except those that begin with a dot.
func readNames(dir *os.File) ([]name, error) {
	ents, err := dir.ReadDir(-1)
	var list []name
	for _, e := range ents {
		var st unix.Stat_t
		if e.Name()[0] != '.' && unix.Fstatat(int(dir.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			list = append(list, name{e.Name(), uint64(st.Ino), uint32(st.Mode) & unix.S_IFMT})
		}
	}
	return list, err
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
	dir, err := openDir(s.x.dir.Join(lektordir.Place(place).String(), f.hash))
	if errors.Is(err, fs.ErrNotExist) {
		return &listing{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := readNames(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed while it was read
		return nil, &dirError{err}
	}
	return &listing{names: names}, nil
}

// parse returns the entry of a name, or the error that listing the lektor-dir reports.
func (s *session) parse(f *feed, place int, n name) (lektordir.Ref, error) {
	rel := lektordir.Place(place).String() + "/" + f.hash + "/" + n.name
	if n.kind == unix.S_IFREG {
		return lektordir.Ref{}, &lektordir.MalformedError{Path: rel, Reason: "it is a file, not a directory",
			NoEntry: true}
	}
	ref, err := lektordir.ParsePath(rel)
	return s.x.dir.Timed(ref), err
}

// entries looks at the entries that were perhaps still being written when they were read, or if thorough is set, at
// all of them. It finds those whose directories have changed since, or were renamed.
func (s *scan) entries(ctx context.Context) {
	type entry struct {
		id, ctime, now int64
	}
	var all []entry
	var refs []lektordir.Ref
	look := func() {
		_ = workers.ForEach(ctx, len(all), func(i int) {
			var st unix.Stat_t
			if unix.Lstat(s.x.dir.Path()+"/"+refs[i].Path(), &st) == nil {
				all[i].now = unix.TimespecToNsec(st.Ctim)
			}
		})
		for _, e := range all {
			if e.now != 0 && e.now != e.ctime { // 0: it is gone, which its directory shows; or ctx has ended
				s.changed = append(s.changed, e.id)
			}
		}
		all, refs = all[:0], refs[:0]
	}
	from := "entry INDEXED BY entry_young WHERE young = 1"
	if s.thorough {
		from = "entry"
	}
	r := s.c.query("SELECT id, dir, name, info, ctime FROM " + from + " ORDER BY id")
	defer r.close()
	for r.next() && ctx.Err() == nil {
		if ref, ok := s.ref(r.int(1), r.blob(2), r.blob(3), r.null(3)); ok {
			all, refs = append(all, entry{id: r.int(0), ctime: r.int(4)}), append(refs, ref)
		}
		if len(all) == batchSize {
			look()
		}
	}
	look()
}

// settled returns the ctime, in nanoseconds, until which nothing is written any more to an entry when it is read:
// something was changed in the lektor-dir long after it, and the clock says so, too. One of them alone may be wrong.
func (s *scan) settled() int64 { return min(s.latest, s.x.o.Clock().UnixNano()) - int64(youth) }

// youth is how long nothing was written to an entry before it is taken to be whole.
const youth = time.Minute

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
