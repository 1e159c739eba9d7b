package entrystore

import (
	"context"
	"time"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/lektordir"
)

// Counted returns the counts that [Store.Tallies] returns if the index has them, else nil. The error is that of ctx.
func (s *Store) Counted(ctx context.Context) (all map[string]Tally, err error) {
	ok, err := s.look(ctx, func(v View) (err error) {
		for _, err := range v.Complaints() {
			s.Report(err)
		}
		all, err = v.Tallies()
		return err
	})
	if !ok {
		return nil, err
	}
	return all, nil
}

// Tallies counts the entries that a list shows, including read ones, by feed hash. The error is that
// of ctx.
func (s *Store) Tallies(ctx context.Context) (map[string]Tally, error) {
	if all, err := s.Counted(ctx); all != nil || err != nil {
		return all, err
	}
	all := map[string]Tally{}
	found, err := s.scan(ctx, Selection{Query: &query.Query{}, All: true})
	for _, r := range found {
		t := all[r.Ref.Feed]
		t.Add(r.Ref)
		all[r.Ref.Feed] = t
	}
	return all, err
}

// Dates calls f with the date of each entry in the index (see [Record.Date]) and the hash of its feed.
// ok is false if the index cannot answer. The error is that of ctx.
func (s *Store) Dates(ctx context.Context, f func(feed, unique string, when time.Time)) (ok bool, err error) {
	return s.look(ctx, func(v View) error {
		return v.Dates(ctx, func(ref lektordir.Ref, pubdate time.Time) {
			f(ref.Feed, ref.Unique, query.Date(ref, &lektordir.Entry{PubDate: pubdate}, s.Now))
		})
	})
}
