package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/errlist"
	"github.com/lektordir/lektor/internal/feedcmd"
	"github.com/lektordir/lektor/internal/feedstate"
	"github.com/lektordir/lektor/internal/greader"
	"github.com/lektordir/lektor/internal/stamp"
	"github.com/lektordir/lektor/internal/undo"
	"github.com/lektordir/lektor/lektordir"
)

// library is a lektor-dir, with the names of its entries in memory. Each request compares the
// times of all directories, so it sees each rename that ended before it began.
type library struct {
	dir     *lektordir.Dir
	editing sync.Mutex // held while subscriptions are changed
	marking sync.Mutex // held while entries are marked
	marks   undo.Chain // the journal of the last marks

	unsynced sync.Mutex
	moved    []string // directories with renames that are not synced, see [Server.syncSoon]

	mu    sync.Mutex
	feeds map[string]*listing // by hash
	last  *snapshot
	began time.Time // when the last comparison began
}

// listing is the entries of a feed.
type listing struct {
	stamps []stamp.Stamp // of new/$feed, cur/$feed, and the list of a complete feed
	refs   []lektordir.Ref
	shown  int  // number of entries that are not trashed
	used   bool // in the present comparison
}

// entry is an entry in a snapshot.
type entry struct {
	id     greader.ID
	micros int64 // time of delivery, in microseconds of Unix time
	ref    *lektordir.Ref
}

// snapshot is the entries that clients see, and those that are trashed. It does not change. The
// feeds are those that are subscribed to, and others with entries, which the user or another
// fetcher delivers, but not those that were unsubscribed from.
type snapshot struct {
	feeds   []string // hashes of the feeds that clients see, rising
	entries []entry  // of these feeds, rising by id
}

// library returns the library at a path, which it opens when it is first asked for.
func (s *Server) library(path string) (*library, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.libraries[path]; l != nil {
		return l, nil
	}
	dir, err := feedcmd.OpenDir(path, &lektordir.Options{Now: s.now, Sleep: s.opts.Sleep})
	if err != nil {
		return nil, err
	}
	l := &library{dir: dir, feeds: map[string]*listing{}}
	s.libraries[path] = l
	return l, nil
}

// snapshot returns the entries as they are now, or were while this function ran.
func (l *library) snapshot(ctx context.Context) (*snapshot, error) {
	asked := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && l.began.After(asked) {
		return l.last, nil // another request compared the times after this one came
	}
	began := time.Now()
	hashes, err := l.dir.FeedHashes()
	if err != nil {
		return nil, err
	}
	for _, f := range l.feeds {
		f.used = false
	}
	changed := l.last == nil
	var feeds []string
	for _, hash := range hashes {
		if feedstate.Left(l.dir, hash) {
			continue
		}
		relisted, err := l.look(ctx, hash)
		if err != nil {
			return nil, err
		}
		changed = changed || relisted
		if l.feeds[hash].shown > 0 || feedstate.Subscribed(l.dir, hash) {
			feeds = append(feeds, hash)
		}
	}
	for hash, f := range l.feeds {
		if !f.used {
			delete(l.feeds, hash)
			changed = true
		}
	}
	if changed || !slices.Equal(feeds, l.last.feeds) {
		l.last = l.merge(feeds)
	}
	l.began = began
	return l.last, nil
}

// look lists a feed, unless its directories are as they were. It reports whether it did.
func (l *library) look(ctx context.Context, hash string) (relisted bool, err error) {
	f := l.feeds[hash]
	if f == nil {
		f = &listing{}
	}
	rule := stamp.Rule{Shared: l.dir.Shared()}
	reading := rule.Begin(unix.AT_FDCWD, f.stamps, l.dir.Join("new", hash), l.dir.Join("cur", hash), l.dir.Join("src", feedstate.CompletePath(hash)))
	if !reading.Needed(f.stamps) {
		f.used = true
		return false, nil
	}
	refs, err := l.dir.List(ctx, lektordir.ListOptions{Feeds: []string{hash}})
	if err = failure(err); err != nil {
		return false, err
	}
	l.feeds[hash] = &listing{stamps: reading.End(), refs: refs, used: true}
	for _, r := range refs {
		if !r.Trashed() {
			l.feeds[hash].shown++
		}
	}
	return true, nil
}

// failure returns an error of a listing without those about malformed names.
func failure(err error) error {
	return errors.Join(slices.DeleteFunc(errlist.Errors(err), func(err error) bool {
		return errors.As(err, new(*lektordir.MalformedError))
	})...)
}

// merge returns the entries of all feeds.
func (l *library) merge(feeds []string) *snapshot {
	n := 0
	for _, f := range l.feeds {
		n += len(f.refs)
	}
	s := &snapshot{feeds: feeds, entries: make([]entry, 0, n)}
	for _, f := range l.feeds {
		for i := range f.refs {
			ref := &f.refs[i]
			s.entries = append(s.entries, entry{greader.IDOf(ref.Unique, ref.Delivered()), ref.Delivered().UnixMicro(), ref})
		}
	}
	slices.SortFunc(s.entries, compare)
	s.separate()
	return s
}

// compare orders entries by id, and those with the same one by feed and name.
func compare(a, b entry) int {
	if c := cmp.Compare(a.id, b.id); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.ref.Feed, b.ref.Feed), cmp.Compare(a.ref.Unique, b.ref.Unique))
}

// separate makes ids unique: of several entries with the same one the first keeps it, and each of
// the others has the next id that is no other entry's. The id of these others changes if the first
// is removed. A collision takes two entries of one microsecond, and then happens in 1 of 4 cases.
func (s *snapshot) separate() {
	unique := true
	for i := 1; i < len(s.entries) && unique; i++ {
		unique = s.entries[i-1].id != s.entries[i].id
	}
	if unique {
		return
	}
	all := make([]entry, 0, len(s.entries))
	var waiting []entry
	free := greader.ID(0) // the id after the last one in all
	for i, e := range s.entries {
		if i > 0 && s.entries[i-1].id == e.id {
			waiting = append(waiting, e)
			continue
		}
		for ; len(waiting) > 0 && free < e.id; free++ {
			waiting[0].id = free
			all = append(all, waiting[0])
			waiting = waiting[1:]
		}
		all = append(all, e)
		free = e.id + 1
	}
	for _, e := range waiting {
		e.id = free
		all = append(all, e)
		free++
	}
	s.entries = all
}

// position returns the index of the first entry with an id or a greater one.
func (s *snapshot) position(id greader.ID) int {
	i, _ := slices.BinarySearchFunc(s.entries, id, func(e entry, id greader.ID) int { return cmp.Compare(e.id, id) })
	return i
}

// find returns the entry with an id, unless it is trashed.
func (s *snapshot) find(id greader.ID) (entry, bool) {
	i := s.position(id)
	if i == len(s.entries) || s.entries[i].id != id || s.entries[i].ref.Trashed() {
		return entry{}, false
	}
	return s.entries[i], true
}
