package entrystore

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// linkFields are the fields that [lektordir.Entry.URL] needs.
const linkFields = lektordir.FieldLink | lektordir.FieldID

// First returns the time of delivery of an entry in microseconds since 1970, but 0 for a version that replaced
// another, whose unique name is replaces: that one may have come before all others, and its news must not be
// hidden.
func First(ref lektordir.Ref, replaces string) int64 {
	if replaces != "" {
		return 0
	}
	return max(ref.Delivered().UnixMicro(), 1)
}

// Repeats finds the repeats among the entries with one link.
type Repeats struct {
	feed  string // of the first entry
	mixed bool   // an entry of another feed came
}

// Next reports whether the next entry is a repeat. Entries must come in the order of [First], and of their feeds.
func (p *Repeats) Next(feed string, first int64) bool {
	p.feed = cmp.Or(p.feed, feed)
	p.mixed = p.mixed || feed != p.feed
	return p.mixed && first != 0
}

// repeats returns the keys of all repeats, by the index or by the links of all entries. The result is cached
// until Now changes.
func (s *Store) repeats(ctx context.Context) map[string]bool {
	c := &s.repeated
	c.Lock()
	defer c.Unlock()
	if c.keys != nil && c.asOf.Equal(s.Now) {
		return c.keys
	}
	c.keys, c.asOf = map[string]bool{}, s.Now
	q, _ := query.Parse("is:repeat")
	found, ok, _ := s.Indexed(ctx, Selection{Query: q, All: true, Hidden: true})
	if !ok {
		found = s.scanRepeats(ctx)
	}
	for _, r := range found {
		c.keys[r.Key()] = true
	}
	return c.keys
}

func (s *Store) scanRepeats(ctx context.Context) (found []*Record) {
	// The caller reports malformed entries.
	quiet := New(s.Dir, s.Now, cmdline.NewStreams("", nil, io.Discard, io.Discard))
	all, _ := quiet.scan(ctx, Selection{Query: &query.Query{}, All: true, Hidden: true,
		Want: linkFields | lektordir.FieldTitle | lektordir.FieldReplaces})
	first := func(r *Record) int64 { return First(r.Ref, r.Get(lektordir.FieldReplaces).Replaces) }
	slices.SortFunc(all, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.Ref.Feed, b.Ref.Feed))
	})
	linked := map[string]Repeats{}
	for _, r := range all {
		link := feedurl.Article(r.URL())
		p := linked[link]
		if link != "" && !r.withdrawn() && p.Next(r.Ref.Feed, first(r)) {
			found = append(found, r)
		}
		linked[link] = p
	}
	return found
}

// Also returns the entries of a query that have the link of one of some entries of other feeds. The error is that
// of ctx.
func (s *Store) Also(ctx context.Context, q *query.Query, of ...*Record) ([]*Record, error) {
	links := map[string]string{}
	for _, r := range of {
		if link := feedurl.Article(r.URL()); link != "" {
			links[link] = r.Ref.Feed
		}
	}
	if len(links) == 0 {
		return nil, nil
	}
	return s.Select(ctx, Selection{Query: q, All: true, Links: links})
}
