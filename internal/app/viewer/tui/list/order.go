package list

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// compareItems compares by the text to sort by, then by date, then by name.
func compareItems(a, b *Item, o tree.Order) int {
	c := strings.Compare(a.text, b.text)
	if o.Down {
		c = -c
	}
	if c != 0 {
		return c
	}
	// The names of most entries need no comparison.
	if c = cmp.Compare(a.date, b.date); c == 0 {
		c = cmp.Or(strings.Compare(a.Ref().Unique, b.Ref().Unique), strings.Compare(a.Feed.Hash, b.Feed.Hash))
	}
	if o.Down || o.By != "date" {
		c = -c
	}
	return c
}

// texts returns for each entry the text to sort by; nil if the order is by date only.
func (w *Work) texts(ctx context.Context, entries []catalog.Entry) []string {
	var of func(e catalog.Entry) string
	switch w.By {
	case "title", "author":
		return w.Disk.SortTexts(ctx, entries, w.By, w.progress)
	case "feed":
		of = func(e catalog.Entry) string { return w.Snapshot.Feeds[e.Feed.Hash].Place }
	case "flags":
		of = func(e catalog.Entry) string { return entrystore.FlagOrder(e.Ref()) }
	case "random":
		of = func(e catalog.Entry) string { return chance(e.Ref(), w.Seed) }
	default:
		return nil
	}
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = of(e)
	}
	return texts
}

// chance returns a random text for an entry, always the same with the same seed.
func chance(r lektordir.Ref, seed uint64) string {
	h := fnv.New64a()
	h.Write([]byte(r.Feed + "/" + r.Unique))
	return string(binary.BigEndian.AppendUint64(nil, rand.NewPCG(seed, h.Sum64()).Uint64()))
}
