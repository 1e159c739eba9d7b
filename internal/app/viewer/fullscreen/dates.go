package fullscreen

import (
	"context"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// Learn reads the dates of entries that are not known. If these are many, or most of the entries, it
// first updates the index, and takes dates from it. It makes an index if there is none and the
// lektor-dir is large.
func (l *entries) Learn(ctx context.Context, entries []catalog.Entry,
	progress func(what string, done, total int)) error {
	missing := l.undated(entries)
	if len(missing) > min(datesSoon, len(entries)/2) {
		x := l.index()
		l.mu.Lock()
		total := l.total
		l.mu.Unlock()
		if x.Missed(total); x.Exists() {
			// If building fails, the entries are read instead.
			_ = x.Build(ctx, func(done, total int) { progress("indexing", done, total) })
		}
		if err := l.learnIndexed(ctx); err != nil {
			return err
		}
		missing = l.undated(entries)
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

// TakeDates takes all dates from the index as that is. Learn reads those that are missing then.
func (l *feeds) TakeDates(ctx context.Context) { _ = l.learnIndexed(ctx) }

// learnIndexed takes all dates from the index.
func (l *access) learnIndexed(ctx context.Context) error {
	_, err := l.indexed().Dates(ctx, func(feed, unique string, when time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dates[catalog.IDOf(lektordir.Ref{Feed: feed, Unique: unique})] = list.DateOf(when)
	})
	return err
}

// undated returns the entries whose dates are not known.
func (l *access) undated(entries []catalog.Entry) []catalog.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(entries), func(e catalog.Entry) bool {
		_, ok := l.dates[e.ID()]
		return ok
	})
}

// datesSoon is the number of entries whose dates can be read while a person waits.
const datesSoon = 10_000

// datesAtOnce is the number of entries that are read between two checks of the context.
const datesAtOnce = 256

// readDates reads the dates of entries into the cache. The error is that of ctx.
func (l *access) readDates(ctx context.Context, s *entrystore.Store, entries []catalog.Entry) ([]list.Date,
	error) {
	dates := make([]list.Date, len(entries))
	if err := workers.ForEach(ctx, len(entries), func(i int) {
		dates[i] = list.DateOf(s.Record(entries[i].Ref()).Date())
	}); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range entries {
		l.dates[e.ID()] = dates[i]
	}
	return dates, nil
}

func (l *entries) Dates(ctx context.Context, entries []catalog.Entry) (dates []list.Date, whole bool) {
	dates = make([]list.Date, len(entries))
	var missing []int
	l.mu.Lock()
	for i, e := range entries {
		if d, ok := l.dates[e.ID()]; ok {
			dates[i] = d
		} else {
			missing = append(missing, i)
		}
	}
	l.mu.Unlock()
	s := l.store()
	whole = true
	for part := range slices.Chunk(missing, datesAtOnce) {
		// Learn reads the dates of more entries later.
		if len(missing) <= datesSoon && ctx.Err() == nil {
			some := make([]catalog.Entry, len(part))
			for i, at := range part {
				some[i] = entries[at]
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
			dates[at] = list.DateOf(entries[at].Ref().Delivered())
		}
	}
	return dates, whole
}
