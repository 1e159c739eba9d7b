package fullscreen

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/entrystore"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// dates is a cache of dates of entries, by a hash of feed and unique name. It takes less memory
// than a map with the names, and has no pointers for the garbage collector to follow.
type dates struct {
	seed maphash.Seed
	of   map[uint64]date
}

// date is a time without a pointer.
type date struct {
	secs  int64
	nanos int32
}

func newDates() dates { return dates{maphash.MakeSeed(), map[uint64]date{}} }

func (d *dates) key(feed, unique string) uint64 {
	return maphash.Comparable(d.seed, [2]string{feed, unique})
}

func (d *dates) put(feed, unique string, t time.Time) {
	d.of[d.key(feed, unique)] = date{t.Unix(), int32(t.Nanosecond())}
}

func (d *dates) get(r lektordir.Ref) (time.Time, bool) {
	t, ok := d.of[d.key(r.Feed, r.Unique)]
	return time.Unix(t.secs, int64(t.nanos)).UTC(), ok
}

// Learn takes dates from the index, which it builds first if there are many entries and no index
// yet. It reads the dates that the index does not have.
func (l *diskAdapter) Learn(ctx context.Context, refs []*lektordir.Ref, progress func(what string, done, total int)) error {
	x := l.index()
	l.mu.Lock()
	total := l.total
	l.mu.Unlock()
	x.Missed(total)
	if x.Exists() && len(refs) > 0 {
		// If building fails, the entries are read instead.
		_ = x.Build(ctx, func(done, total int) { progress("indexing", done, total) })
	}
	s := l.indexed()
	if _, err := s.Dates(ctx, func(feed, unique string, when time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dates.put(feed, unique, when)
	}); err != nil {
		return err
	}
	var missing []*lektordir.Ref
	l.mu.Lock()
	for _, r := range refs {
		if _, ok := l.dates.get(*r); !ok {
			missing = append(missing, r)
		}
	}
	l.mu.Unlock()
	done := 0
	for part := range slices.Chunk(missing, datesAtOnce) {
		if _, err := l.readDates(ctx, s, part); err != nil {
			return err
		}
		done += len(part)
		progress("reading dates", done, len(missing))
	}
	return nil
}

// datesSoon is the number of entries whose dates can be read while a person waits.
const datesSoon = 10_000

// datesAtOnce is the number of entries that are read between two checks of the context.
const datesAtOnce = 256

// readDates reads the dates of entries into the cache. The error is that of ctx.
func (l *diskAdapter) readDates(ctx context.Context, s *entrystore.Store, refs []*lektordir.Ref) ([]time.Time, error) {
	dates := make([]time.Time, len(refs))
	if err := workers.ForEach(ctx, len(refs), func(i int) { dates[i] = s.Record(*refs[i]).Date() }); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range refs {
		l.dates.put(r.Feed, r.Unique, dates[i])
	}
	return dates, nil
}

func (l *diskAdapter) Dates(ctx context.Context, refs []*lektordir.Ref) (dates []time.Time, whole bool) {
	dates = make([]time.Time, len(refs))
	var missing []int
	l.mu.Lock()
	for i, r := range refs {
		ok := false
		if dates[i], ok = l.dates.get(*r); !ok {
			missing = append(missing, i)
		}
	}
	l.mu.Unlock()
	s := l.store()
	whole = true
	for part := range slices.Chunk(missing, datesAtOnce) {
		// Learn reads the dates of more entries later.
		if len(missing) <= datesSoon && ctx.Err() == nil {
			some := make([]*lektordir.Ref, len(part))
			for i, at := range part {
				some[i] = refs[at]
			}
			if read, err := l.readDates(ctx, s, some); err == nil {
				for i, at := range part {
					dates[at] = read[i]
				}
				continue
			}
		}
		whole = false
		for _, at := range part {
			dates[at] = refs[at].Delivered()
		}
	}
	return dates, whole
}
