package viewer

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// Sorts are the keys to sort by.
var Sorts = []string{"date", "delivered", "feed", "title", "author", "thread", "flags", "rank", "relevance", "random"}

// DefaultSort is newest first.
const DefaultSort = "-date"

// order is a key to sort by.
type order struct {
	// by compares entries; nil means [byRelevance], which needs the query, or [byThread].
	by     func(a, b *entrystore.Record) int
	fields lektordir.Fields
	down   bool
	thread bool // sort by [byThread]
	best   bool // Newest keeps the first entries, not the newest
}

// compare compares entries. Equal ones are newest first, if the dates are read.
func (o order) compare(a, b *entrystore.Record) int {
	switch c := o.by(a, b); {
	case c != 0 && o.down:
		return -c
	case c != 0 || o.fields&lektordir.FieldPubDate == 0:
		return c
	}
	return entrystore.ByDate(b, a)
}

// by compares entries by a value, which it finds once for each.
func by[V cmp.Ordered](find func(*entrystore.Record) V) func(a, b *entrystore.Record) int {
	known := map[*entrystore.Record]V{}
	value := func(r *entrystore.Record) V {
		v, ok := known[r]
		if !ok {
			v = find(r)
			known[r] = v
		}
		return v
	}
	return func(a, b *entrystore.Record) int { return cmp.Compare(value(a), value(b)) }
}

// sortOrder parses a sort key. random returns random numbers, see [ListOptions].
func sortOrder(name string, random func() uint64) (order, error) {
	if random == nil {
		random = rand.Uint64
	}
	const dated = lektordir.FieldPubDate
	key, down := strings.CutPrefix(name, "-")
	o, ok := map[string]order{
		"date": {fields: dated, by: entrystore.ByDate},
		"delivered": {by: func(a, b *entrystore.Record) int {
			return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()), cmp.Compare(a.Ref.Unique, b.Ref.Unique))
		}},
		"feed": {fields: dated,
			by: by(func(r *entrystore.Record) string { return query.Fold(r.Feed().Title()) })},
		"title": {fields: dated | lektordir.FieldTitle,
			by: by(func(r *entrystore.Record) string { return query.Fold(strings.TrimSpace(r.OwnTitle())) })},
		"author": {fields: dated | lektordir.FieldAuthor,
			by: by(func(r *entrystore.Record) string { return query.Fold(r.Author()) })},
		"thread": {fields: dated | lektordir.FieldInReplyTo, thread: true},
		"flags": {fields: dated,
			by: by(func(r *entrystore.Record) string { return entrystore.FlagOrder(r.Ref) })},
		"relevance": {fields: dated | lektordir.FieldTitle | lektordir.FieldAuthor, best: true},
		"random":    {best: true, by: by(func(*entrystore.Record) uint64 { return random() })},
		// Entries without a rank, see RFC 5005, section 2, come last.
		"rank": {fields: dated,
			by: by(func(r *entrystore.Record) int { return cmp.Or(r.Rank(), math.MaxInt) })},
	}[key]
	if !ok {
		return o, &cmdline.UsageError{
			Message: fmt.Sprintf("--sort %s: there is no such key", name),
			Hint:    "keys are " + strings.Join(Sorts, ", ") + "; put - in front for the reverse order",
		}
	}
	o.down = down
	return o, nil
}

// byRelevance compares entries by the words that they have, best first. A whole word in the
// title counts 100, a part of a word in the title 10, and a match in the author or the feed's
// title 1. Matches in the text do not count.
func byRelevance(words []string) func(a, b *entrystore.Record) int {
	return by(func(r *entrystore.Record) (score int) {
		title, who := query.Fold(r.OwnTitle()), query.Fold(r.Author()+"\n"+r.Feed().Title())
		for _, w := range words {
			switch {
			case query.StandsAlone(title, w):
				score -= 100
			case strings.Contains(title, w):
				score -= 10
			case strings.Contains(who, w):
				score--
			}
		}
		return score
	})
}
