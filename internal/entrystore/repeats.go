package entrystore

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// linkFields are the fields that [lektordir.Entry.URL] needs.
const linkFields = lektordir.FieldLink | lektordir.FieldID

// Twin is one of the entries with the same link.
type Twin struct {
	Feed string
	// First is the time of delivery, in microseconds since 1970. It is 0 for a version that replaced an
	// older one: the older one may have come before all others, and its news must not be hidden.
	First int64
}

// TwinOf returns the Twin of an entry that replaced the version of a unique name, or "".
func TwinOf(ref lektordir.Ref, replaces string) Twin {
	if replaces != "" {
		return Twin{Feed: ref.Feed}
	}
	return Twin{ref.Feed, max(ref.Delivered().UnixMicro(), 1)}
}

// Repeats reports which of the entries with the same link are repeats: those before which one of another feed
// was delivered. At equal times, the order of the hashes decides.
func Repeats(all []Twin) []bool {
	again := make([]bool, len(all))
	if len(all) < 2 {
		return again
	}
	order := func(a, b Twin) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Feed, b.Feed)) }
	first := slices.MinFunc(all, order)
	others := slices.DeleteFunc(slices.Clone(all), func(t Twin) bool { return t.Feed == first.Feed })
	if len(others) > 0 {
		other := slices.MinFunc(others, order)
		for i, t := range all {
			again[i] = t.First != 0 && (t.Feed != first.Feed || order(other, t) < 0)
		}
	}
	return again
}

// repeats returns the keys of all repeats, by the index or by the links of all entries. The result is cached
// until Now changes.
func (s *Store) repeats(ctx context.Context) map[string]bool {
	s.repeating.Lock()
	defer s.repeating.Unlock()
	if s.repeated != nil && s.asOf.Equal(s.Now) {
		return s.repeated
	}
	s.repeated, s.asOf = map[string]bool{}, s.Now
	q, _ := query.Parse("is:repeat")
	found, ok, _ := s.Indexed(ctx, Selection{Query: q, All: true, Hidden: true})
	for _, r := range found {
		s.repeated[r.Key()] = true
	}
	if ok {
		return s.repeated
	}
	// The caller reports malformed entries.
	quiet := New(s.Dir, s.Now, cmdline.NewStreams("", nil, io.Discard, io.Discard))
	all, _ := quiet.scan(ctx, Selection{Query: &query.Query{}, All: true, Hidden: true, Want: linkFields | lektordir.FieldTitle | lektordir.FieldReplaces})
	linked := map[string][]*Record{}
	for _, r := range all {
		if link := feedurl.Article(r.URL()); link != "" && !r.withdrawn() {
			linked[link] = append(linked[link], r)
		}
	}
	for _, list := range linked {
		twins := make([]Twin, len(list))
		for i, r := range list {
			twins[i] = TwinOf(r.Ref, r.Get(lektordir.FieldReplaces).Replaces)
		}
		for i, again := range Repeats(twins) {
			if again {
				s.repeated[list[i].Key()] = true
			}
		}
	}
	return s.repeated
}

// Also returns the entries of other feeds that have the link of an entry. The error is that of ctx.
func (s *Store) Also(ctx context.Context, r *Record) ([]*Record, error) {
	link := feedurl.Article(r.URL())
	if link == "" {
		return nil, nil
	}
	found, err := s.Select(ctx, Selection{Query: &query.Query{}, All: true, Link: link})
	return slices.DeleteFunc(found, func(o *Record) bool { return o.Ref.Feed == r.Ref.Feed }), err
}
