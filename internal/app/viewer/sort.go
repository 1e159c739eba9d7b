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
	newest bool // equal entries are newest first
	thread bool // sort by [byThread]
	best   bool // Newest keeps the first entries, not the newest
}

func (o order) compare(a, b *entrystore.Record) int {
	c := o.by(a, b)
	if o.down {
		c = -c
	}
	if c != 0 {
		return c
	}
	if o.fields&lektordir.FieldPubDate == 0 {
		return 0
	}
	if c = entrystore.ByDate(a, b); o.newest || o.down {
		c = -c
	}
	return c
}

// textual compares texts without regard to case.
func textual(text func(*entrystore.Record) string) func(a, b *entrystore.Record) int {
	folded := map[*entrystore.Record]string{}
	fold := func(r *entrystore.Record) string {
		s, ok := folded[r]
		if !ok {
			s = query.Fold(text(r))
			folded[r] = s
		}
		return s
	}
	return func(a, b *entrystore.Record) int { return cmp.Compare(fold(a), fold(b)) }
}

// sortOrder parses a sort key. random returns random numbers, see [ListOptions].
func sortOrder(by string, random func() uint64) (order, error) {
	key, down := strings.CutPrefix(by, "-")
	o := order{down: down}
	switch key {
	case "date":
		o.fields, o.by = lektordir.FieldPubDate, func(a, b *entrystore.Record) int { return 0 }
	case "delivered":
		o.by = func(a, b *entrystore.Record) int {
			return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()), cmp.Compare(a.Ref.Unique, b.Ref.Unique))
		}
	case "feed":
		o.fields, o.newest = lektordir.FieldPubDate, true
		o.by = textual(func(r *entrystore.Record) string { return r.Feed().Title() })
	case "title":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldTitle, true
		o.by = textual(func(r *entrystore.Record) string { return strings.TrimSpace(r.OwnTitle()) })
	case "author":
		o.fields, o.newest = lektordir.FieldPubDate|lektordir.FieldAuthor, true
		o.by = textual((*entrystore.Record).Author)
	case "thread":
		o.fields, o.thread = lektordir.FieldPubDate|lektordir.FieldInReplyTo, true
	case "flags":
		o.fields, o.newest, o.by = lektordir.FieldPubDate, true, byFlags
	case "relevance":
		o.fields, o.newest, o.best = lektordir.FieldPubDate|lektordir.FieldTitle|lektordir.FieldAuthor, true, true
	case "random":
		o.best, o.by = true, byChance(random)
	case "rank":
		o.fields, o.newest, o.by = lektordir.FieldPubDate, true, byRank
	default:
		return o, &cmdline.UsageError{
			Message: fmt.Sprintf("--sort %s: there is no such key", by),
			Hint:    "keys are " + strings.Join(Sorts, ", ") + "; put - in front for the reverse order",
		}
	}
	return o, nil
}

// byRelevance compares entries by the words that they have, best first. A whole word in the
// title counts 100, a part of a word in the title 10, and a match in the author or the feed's
// title 1. Matches in the text do not count.
func byRelevance(words []string) func(a, b *entrystore.Record) int {
	scores := map[*entrystore.Record]int{}
	score := func(r *entrystore.Record) int {
		s, ok := scores[r]
		if !ok {
			title, who := query.Fold(r.OwnTitle()), query.Fold(r.Author()+"\n"+r.Feed().Title())
			for _, w := range words {
				switch {
				case query.StandsAlone(title, w):
					s += 100
				case strings.Contains(title, w):
					s += 10
				case strings.Contains(who, w):
					s++
				}
			}
			scores[r] = s
		}
		return s
	}
	return func(a, b *entrystore.Record) int { return cmp.Compare(score(b), score(a)) }
}

// byChance compares entries by random numbers, one for each entry.
func byChance(random func() uint64) func(a, b *entrystore.Record) int {
	if random == nil {
		random = rand.Uint64
	}
	drawn := map[*entrystore.Record]uint64{}
	draw := func(r *entrystore.Record) uint64 {
		n, ok := drawn[r]
		if !ok {
			n = random()
			drawn[r] = n
		}
		return n
	}
	return func(a, b *entrystore.Record) int { return cmp.Compare(draw(a), draw(b)) }
}

// byFlags compares entries by their flags, see [entrystore.FlagOrder].
func byFlags(a, b *entrystore.Record) int {
	return cmp.Compare(entrystore.FlagOrder(a.Ref), entrystore.FlagOrder(b.Ref))
}

// byRank compares entries by their position in the document of a complete feed (RFC 5005,
// section 2). Entries without a rank come last.
func byRank(a, b *entrystore.Record) int {
	place := func(r *entrystore.Record) int { return cmp.Or(r.Rank(), math.MaxInt) }
	return cmp.Compare(place(a), place(b))
}
