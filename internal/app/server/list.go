package server

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Maximum numbers of items in one answer. Clients get a continuation for the rest.
const (
	maxIDs   = 1_000_000
	maxItems = 10_000
	// maxHeld is the maximum for Atom and XML, of which the whole answer is in memory.
	maxHeld = 500
)

// most returns the maximum number of items with their contents.
func (c *request) most() int {
	if c.wantsXML() {
		return maxHeld
	}
	return maxItems
}

// page is a part of a list.
type page struct {
	entries []Entry
	next    greader.ID // continuation; 0 on the last page
}

// list reads the parameters of a list, and returns its entries.
func (c *request) list(stream string, most int) (*View, greader.List, page, error) {
	l, err := greader.ParseList(stream, c.values, most)
	if err != nil {
		return nil, l, page{}, bad("%v", err)
	}
	v, err := c.currentView()
	if err != nil {
		return nil, l, page{}, err
	}
	var p page
	p.next = v.each(l, func(e Entry) { p.entries = append(p.entries, e) })
	return v, l, p, nil
}

// ids implements stream/items/ids.
func (c *request) ids() error {
	l, err := greader.ParseList(c.values.Get("s"), c.values, maxIDs)
	if err != nil {
		return bad("%v", err)
	}
	v, err := c.currentView()
	if err != nil {
		return err
	}
	return c.answer(func(w io.Writer) error {
		refs := greader.NewRefs(w)
		refs.Streams = c.values.Get("includeAllDirectStreamIds") == "true"
		return refs.End(v.each(l, func(e Entry) { refs.Add(e.Key, e.Feed.Hash, e.Micros()) }))
	})
}

// contents implements stream/contents.
func (c *request) contents() error {
	stream := c.stream
	if stream == "" {
		stream = c.values.Get("s")
	}
	v, l, p, err := c.list(stream, c.most())
	if err != nil {
		return err
	}
	return c.writeItems(v, l.Stream, p)
}

// items implements stream/items/contents. Unknown ids are left out.
func (c *request) items() error {
	v, err := c.currentView()
	if err != nil {
		return err
	}
	ids := greader.ParseIDs(c.values["i"])
	if len(ids) > c.most() {
		return bad("more than %d ids", c.most())
	}
	return c.writeItems(v, greader.Stream{Kind: greader.State, Name: greader.ReadingList}, page{entries: v.Items(ids)})
}

// atom implements the feeds of reader/atom.
func (c *request) atom() error {
	v, l, p, err := c.list(c.stream, maxHeld)
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
	var b bytes.Buffer
	if err := greader.Atom(&b, v.head(l.Stream, p), items, p.next); err != nil {
		return err
	}
	return c.tagged(typeAtom, termsafe.XML(b.Bytes()))
}

// writeItems answers with entries. If one cannot be read, the answer ends too early for JSON, so
// that no client takes it for whole.
func (c *request) writeItems(v *View, s greader.Stream, p page) error {
	return c.answer(func(w io.Writer) error {
		head, err := encode(v.head(s, p))
		if err != nil {
			return err
		}
		out := greader.NewItems(w, head)
		err = v.eachItem(c.r.Context(), p.entries, func(i greader.Item) error {
			data, err := encode(i)
			out.Add(data)
			return err
		})
		if err != nil {
			return err
		}
		return out.End(p.next)
	})
}

// batch is the number of entries that are read at once. Their contents are in memory together.
const batch = 32

// eachItem calls f for each entry that can be read.
func (v *View) eachItem(ctx context.Context, entries []Entry, f func(greader.Item) error) error {
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
