package fullscreen

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
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

// Learn reads the dates of entries that are not known. If these are many, or most of the entries, it
// first updates the index, and takes dates from it. It makes an index if there is none and the
// lektor-dir is large. Without entries it takes all dates from the index as that is.
func (l *diskAdapter) Learn(ctx context.Context, refs []*lektordir.Ref,
	progress func(what string, done, total int)) error {
	if len(refs) == 0 {
		return learnIndexed(ctx, l)
	}
	missing := undated(l, refs)
	if len(missing) > min(datesSoon, len(refs)/2) {
		x := l.index()
		l.mu.Lock()
		total := l.total
		l.mu.Unlock()
		if x.Missed(total); x.Exists() {
			// If building fails, the entries are read instead.
			_ = x.Build(ctx, func(done, total int) { progress("indexing", done, total) })
		}
		if err := learnIndexed(ctx, l); err != nil {
			return err
		}
		missing = undated(l, refs)
	}
	s := l.store()
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

// learnIndexed takes all dates from the index.
func learnIndexed(ctx context.Context, l *diskAdapter) error {
	_, err := l.indexed().Dates(ctx, func(feed, unique string, when time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dates.put(feed, unique, when)
	})
	return err
}

// undated returns the entries whose dates are not known.
func undated(l *diskAdapter, refs []*lektordir.Ref) []*lektordir.Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(refs), func(r *lektordir.Ref) bool {
		_, ok := l.dates.get(*r)
		return ok
	})
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
