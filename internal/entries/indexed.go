package entries

import (
	"context"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// Overview is what a list begins with.
type Overview struct {
	Newest []*Record // unread ones, the newest first
	Feeds  map[string]Tally
}

// Overview returns the newest of the unread entries, at most newest, and how many
// entries each feed has; nil if the index cannot tell. The error is the context's.
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

// Tallies counts the entries that a list shows, read ones too, by the hashes of the
// feeds. The error is the context's.
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

// Dates calls f with the dates of the entries that the index knows, see [Record.Date];
// feed is a hash. It reports false if there is no index. The error is the context's.
func (s *Store) Dates(ctx context.Context, f func(feed, unique string, when time.Time)) (ok bool, err error) {
	return s.look(ctx, func(v View) error {
		return v.Dates(ctx, func(feed, unique string, pubdate time.Time) {
			f(feed, unique, query.Date(lektordir.Ref{Feed: feed, Unique: unique}, &lektordir.Entry{PubDate: pubdate}, s.Now))
		})
	})
}
