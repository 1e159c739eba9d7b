package entries

import (
	"context"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// What is here but for Tallies is told by the index or not at all, for those who have
// something to show meanwhile.

// Overview is what a list begins with.
type Overview struct {
	Newest []*Record // unread ones, the newest first
	Feeds  map[string]Tally
}

// Overview gives the newest of the unread entries, so many at most, and how
// many entries each feed has. It is nil where only the directory can tell. The error is
// the context's.
func (s *Store) Overview(ctx context.Context, newest int) (*Overview, error) {
	sel := Selection{Query: &query.Query{}, Newest: newest, Want: lektordir.FieldPubDate}
	b := newBest(&sel)
	var o Overview
	ok, err := s.look(ctx, func(v View) error {
		if err := s.find(ctx, v, sel, taker{take: b.add, enough: b.enough}); err != nil {
			return err
		}
		var err error
		o.Feeds, err = v.Tallies()
		return err
	})
	if !ok {
		return nil, err
	}
	o.Newest = b.sorted()
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
	all = map[string]Tally{}
	err = s.scan(ctx, Selection{Query: &query.Query{}, All: true}, func(r *Record) {
		t := all[r.Ref.Feed]
		t.Add(r.Ref)
		all[r.Ref.Feed] = t
	})
	return all, err
}

// Indexed gives take the entries of a selection, as [Store.Select] finds them, and reports
// false where only the directory can tell: then what take was given is void. The error is
// the context's.
func (s *Store) Indexed(ctx context.Context, sel Selection, take func(*Record)) (ok bool, err error) {
	if sel.Newest == 0 {
		return s.look(ctx, func(v View) error { return s.find(ctx, v, sel, taker{take: take}) })
	}
	sel.Want |= lektordir.FieldPubDate
	b := newBest(&sel)
	ok, err = s.look(ctx, func(v View) error { return s.find(ctx, v, sel, taker{take: b.add, enough: b.enough}) })
	if ok {
		for _, r := range b.list {
			take(r)
		}
	}
	return ok, err
}

// Dates calls f with the dates of the entries that the index knows, of the unread ones
// alone if so asked, see [Record.Date]; feed is a hash. It reports false where there is no
// index. The error is the context's.
func (s *Store) Dates(ctx context.Context, unread bool, f func(feed, unique string, when time.Time)) (ok bool, err error) {
	return s.look(ctx, func(v View) error {
		return v.Dates(ctx, unread, func(feed, unique string, pubdate time.Time) {
			f(feed, unique, query.Date(lektordir.Ref{Feed: feed, Unique: unique}, &lektordir.Entry{PubDate: pubdate}, s.Now))
		})
	})
}
