package fullscreen

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// soon is the number of entries that can be read while a person waits.
const soon = 10_000

// atOnce is the number of entries that are read between two calls of progress.
const atOnce = 256

// Learn reads the dates of entries that are not known. If these are many, or most of the entries, it
// first updates the index, and takes dates from it. It makes an index if there is none and the
// lektor-dir is large.
func (l *disk) Learn(ctx context.Context, entries []catalog.Entry,
	progress func(what string, done, total int)) error {
	dates, missing := l.known(entries)
	if len(missing) > min(soon, len(entries)/2) {
		if l.index.Missed(int(l.total.Load())); l.index.Exists() {
			// If building fails, the entries are read instead.
			_ = l.index.Build(ctx, func(done, total int) { progress("indexing", done, total) })
		}
		if err := l.learnIndexed(ctx); err != nil {
			return err
		}
		dates, missing = l.known(entries)
	}
	return l.readDates(ctx, entries, dates, missing,
		func(done, total int) { progress("reading dates", done, total) })
}

// learnIndexed takes all dates from the index.
func (l *disk) learnIndexed(ctx context.Context) error {
	_, err := l.store().Dates(ctx, func(feed, unique string, when time.Time) {
		l.learn(catalog.IDOf(lektordir.Ref{Feed: feed, Unique: unique}), list.DateOf(when))
	})
	return err
}

func (l *disk) learn(id catalog.ID, date list.Date) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dates[id] = date
}

// known returns the dates of entries, and the indexes of those that are not known.
func (l *disk) known(entries []catalog.Entry) (dates []list.Date, missing []int) {
	dates = make([]list.Date, len(entries))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range entries {
		var ok bool
		if dates[i], ok = l.dates[e.ID()]; !ok {
			missing = append(missing, i)
		}
	}
	return dates, missing
}

// readDates reads the missing dates of entries.
func (l *disk) readDates(ctx context.Context, entries []catalog.Entry, dates []list.Date, missing []int,
	progress func(done, total int)) error {
	s, done := l.store(), 0
	for part := range slices.Chunk(missing, atOnce) {
		if err := workers.ForEach(ctx, len(part), func(i int) {
			at := part[i]
			dates[at] = list.DateOf(s.Record(entries[at].Ref()).Date())
			l.learn(entries[at].ID(), dates[at])
		}); err != nil {
			return err
		}
		done += len(part)
		progress(done, len(missing))
	}
	return nil
}

func (l *disk) Dates(ctx context.Context, entries []catalog.Entry) (dates []list.Date, whole bool) {
	dates, missing := l.known(entries)
	if len(missing) <= soon { // Learn reads the dates of more entries later
		if l.readDates(ctx, entries, dates, missing, func(int, int) {}) == nil {
			return dates, true
		}
		dates, missing = l.known(entries)
	}
	for _, at := range missing {
		dates[at] = list.DateOf(entries[at].Ref().Delivered())
	}
	return dates, len(missing) == 0
}

// sortBytes is the number of bytes of a text that count for the order. They are in memory for each
// entry of the list.
const sortBytes = 80

// SortTexts takes the texts from the index if the list has a tenth of all entries, since the index
// reports all in the time in which about a tenth of them can be read. Entries that it lacks are
// read.
func (l *disk) SortTexts(ctx context.Context, entries []catalog.Entry, by string) []string {
	text := func(r *entrystore.Record) string {
		t := r.OwnTitle()
		if by == "author" {
			t = r.Author()
		}
		t = query.Fold(strings.TrimSpace(t))
		return strings.Clone(t[:min(len(t), sortBytes)])
	}
	s := l.store()
	known := map[catalog.ID]string{}
	if len(entries) > int(l.total.Load())/10 {
		found, _, _ := s.Indexed(ctx, entrystore.Selection{Query: &query.Query{}, All: true,
			Want: lektordir.FieldTitle | lektordir.FieldAuthor})
		texts := make([]string, len(found))
		_ = workers.ForEach(ctx, len(found), func(i int) { texts[i] = text(found[i]) })
		for i, r := range found {
			known[catalog.IDOf(r.Ref)] = texts[i]
		}
	}
	texts := make([]string, len(entries))
	var missing []int
	for i, e := range entries {
		t, ok := known[e.ID()]
		if texts[i] = t; !ok {
			missing = append(missing, i)
		}
	}
	_ = workers.ForEach(ctx, len(missing), func(i int) {
		texts[missing[i]] = text(s.Record(entries[missing[i]].Ref()))
	})
	return texts
}
