package entrystore

import (
	"context"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/lektordir"
)

// Overview holds the first entries of a list, and the counts of feeds.
type Overview struct {
	Newest []*Record // unread entries, newest first
	Feeds  map[string]Tally
}

// Overview returns at most newest unread entries, newest first, and the counts of each feed. It
// returns nil if the index cannot answer. The error is that of ctx.
func (s *Store) Overview(ctx context.Context, newest int) (*Overview, error) {
	var o Overview
	ok, err := s.look(ctx, func(v View) (err error) {
		if o.Newest, err = s.find(ctx, v, Selection{Query: &query.Query{}, Newest: newest}); err == nil {
			o.Feeds, err = v.Tallies()
		}
		return err
	})
	if !ok {
		return nil, err
	}
	slices.Reverse(o.Newest)
	return &o, nil
}

// Tallies counts the entries that a list shows, including read ones, by feed hash. The error is that
// of ctx.
func (s *Store) Tallies(ctx context.Context) (map[string]Tally, error) {
	var all map[string]Tally
	ok, err := s.look(ctx, func(v View) (err error) {
		for _, err := range v.Complaints() {
			s.Report(err)
		}
		all, err = v.Tallies()
		return err
	})
	if ok || err != nil {
		return all, err
	}
	found, err := s.scan(ctx, Selection{Query: &query.Query{}, All: true})
	all = map[string]Tally{}
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
