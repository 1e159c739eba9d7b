package fullscreen

import (
	"context"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// sortBytes is the number of bytes of a text that count for the order. They are in memory for each
// entry of the list.
const sortBytes = 80

// SortTexts takes the texts from the index if the list has a tenth of all entries, since the index
// reports all in the time in which about a tenth of them can be read. Entries that it lacks are
// read.
func (l *entries) SortTexts(ctx context.Context, entries []catalog.Entry, by string,
	progress func(done, total int)) []string {
	text := func(r *entrystore.Record) string {
		t := r.OwnTitle()
		if by == "author" {
			t = r.Author()
		}
		t = query.Fold(strings.TrimSpace(t))
		return strings.Clone(t[:min(len(t), sortBytes)])
	}
	s := l.indexed()
	known := map[catalog.ID]string{}
	l.mu.Lock()
	total := l.total
	l.mu.Unlock()
	if len(entries) > total/10 {
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
	done := 0
	for part := range slices.Chunk(missing, datesAtOnce) {
		if workers.ForEach(ctx, len(part), func(i int) {
			texts[part[i]] = text(s.Record(entries[part[i]].Ref()))
		}) != nil {
			break
		}
		if done += len(part); len(missing) > datesSoon {
			progress(done, len(missing))
		}
	}
	return texts
}
