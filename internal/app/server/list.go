package server

import (
	"context"
	"io"
	"slices"

	"github.com/lektordir/lektor/internal/greader"
)

// Maximum numbers of items in one answer. Clients get a continuation for the rest.
const (
	maxIDs   = 1_000_000
	maxItems = 10_000
	maxAtom  = 1000
)

// page is a part of a list.
type page struct {
	entries []entry
	next    greader.ID // continuation; 0 on the last page
}

// list reads the parameters of a list, and returns its entries.
func (c *call) list(stream string, most int) (*view, greader.List, page, error) {
	l, err := greader.ParseList(stream, c.values, most)
	if err != nil {
		return nil, l, page{}, bad("%v", err)
	}
	v, err := c.look()
	if err != nil {
		return nil, l, page{}, err
	}
	return v, l, v.pick(l), nil
}

// ids implements stream/items/ids.
func (c *call) ids() error {
	_, _, p, err := c.list(c.values.Get("s"), maxIDs)
	if err != nil {
		return err
	}
	return c.answer(func(w io.Writer) error {
		refs := greader.NewRefs(w)
		refs.Streams = c.values.Get("includeAllDirectStreamIds") == "true"
		for _, e := range p.entries {
			refs.Add(e.id, e.ref.Feed, e.ref.Delivered().UnixMicro())
		}
		return refs.End(p.next)
	})
}

// contents implements stream/contents.
func (c *call) contents() error {
	stream := c.stream
	if stream == "" {
		stream = c.values.Get("s")
	}
	v, l, p, err := c.list(stream, maxItems)
	if err != nil {
		return err
	}
	return c.writeItems(v, l.Stream, p)
}

// items implements stream/items/contents. Unknown ids are left out.
func (c *call) items() error {
	v, err := c.look()
	if err != nil {
		return err
	}
	ids := greader.ParseIDs(c.values["i"])
	if len(ids) > maxItems {
		return bad("more than %d ids", maxItems)
	}
	var p page
	for _, id := range ids {
		if e, ok := v.find(id); ok {
			p.entries = append(p.entries, e)
		}
	}
	return c.writeItems(v, greader.Stream{Kind: greader.State, Name: greader.ReadingList}, p)
}

// atom implements the feeds of reader/atom.
func (c *call) atom() error {
	v, l, p, err := c.list(c.stream, maxAtom)
	if err != nil {
		return err
	}
	var items []greader.Item
	if err := v.eachItem(c.r.Context(), p.entries, func(i greader.Item) error {
		items = append(items, i)
		return nil
	}); err != nil {
		return err
	}
	return c.tagged(typeAtom, func(w io.Writer) error {
		return greader.Atom(w, v.head(l.Stream, p), items, p.next)
	})
}

// writeItems answers with entries.
func (c *call) writeItems(v *view, s greader.Stream, p page) error {
	// A client must not take an answer for whole if an entry could not be read, so the first
	// batch is read before the answer begins.
	first, rest := p.entries, []entry(nil)
	if len(first) > batch {
		first, rest = first[:batch], first[batch:]
	}
	begun, err := v.itemsOf(c.r.Context(), first)
	if err != nil {
		return err
	}
	return c.answer(func(w io.Writer) error {
		out, err := greader.NewItems(w, v.head(s, p))
		if err != nil {
			return err
		}
		add := func(i greader.Item) error {
			data, err := greader.JSON(i)
			if err == nil {
				out.Add(data)
			}
			return err
		}
		for _, i := range begun {
			if err := add(i); err != nil {
				return err
			}
		}
		if err := v.eachItem(c.r.Context(), rest, add); err != nil {
			return err
		}
		return out.End(p.next)
	})
}

// batch is the number of entries that are read at once. Their contents are in memory together.
const batch = 32

// eachItem calls f for each entry that can be read.
func (v *view) eachItem(ctx context.Context, entries []entry, f func(greader.Item) error) error {
	for part := range slices.Chunk(entries, batch) {
		items, err := v.itemsOf(ctx, part)
		if err != nil {
			return err
		}
		for _, i := range items {
			if err := f(i); err != nil {
				return err
			}
		}
	}
	return nil
}
