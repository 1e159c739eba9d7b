package server

import (
	"context"
	"io"
	"slices"

	"github.com/lektordir/lektor/internal/greader"
	"github.com/lektordir/lektor/lektordir"
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

// pick returns the entries of a list.
func (c *call) pick(s *snapshot, l greader.List) (page, error) {
	wanted, err := c.selects(l)
	if err != nil {
		return page{}, err
	}
	from, before := s.position(l.From), len(s.entries)
	if l.Before != 0 {
		before = s.position(l.Before)
	}
	var p page
	if from >= before {
		return p, nil
	}
	within := s.entries[from:before]
	for i := range within {
		e := &within[i]
		if !l.Oldest {
			e = &within[len(within)-1-i]
		}
		if e.ref.Trashed() || !wanted(e.ref) {
			continue
		}
		if len(p.entries) == l.Count {
			p.next = p.entries[len(p.entries)-1].id
			break
		}
		p.entries = append(p.entries, *e)
	}
	return p, nil
}

// selects returns a function that reports whether a list has an entry.
func (c *call) selects(l greader.List) (func(*lektordir.Ref) bool, error) {
	in, err := c.has(l.Stream)
	if err != nil {
		return nil, err
	}
	some, err := c.hasAny(l.Include)
	if err != nil {
		return nil, err
	}
	none, err := c.hasAny(l.Exclude)
	if err != nil {
		return nil, err
	}
	return func(r *lektordir.Ref) bool {
		return in(r) && (len(l.Include) == 0 || some(r)) && !none(r)
	}, nil
}

// hasAny returns a function that reports whether an entry is in one of several streams.
func (c *call) hasAny(list []greader.Stream) (func(*lektordir.Ref) bool, error) {
	var all []func(*lektordir.Ref) bool
	for _, s := range list {
		f, err := c.has(s)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return func(r *lektordir.Ref) bool {
		return slices.ContainsFunc(all, func(f func(*lektordir.Ref) bool) bool { return f(r) })
	}, nil
}

// has returns a function that reports whether an entry is in a stream. A stream that the server
// does not know is empty.
func (c *call) has(s greader.Stream) (func(*lektordir.Ref) bool, error) {
	switch s.Kind {
	case greader.Feed:
		hash := c.feedOf(s.Name)
		return func(r *lektordir.Ref) bool { return r.Feed == hash }, nil
	case greader.Label:
		hashes, err := c.feedsIn(s.Name)
		if err != nil {
			return nil, err
		}
		if flag := greader.FlagOf(s.Name); flag != 0 && len(hashes) == 0 {
			return func(r *lektordir.Ref) bool { return r.HasFlag(flag) }, nil
		}
		return func(r *lektordir.Ref) bool { return hashes[r.Feed] }, nil
	}
	switch s.Name {
	case greader.ReadingList:
		return func(*lektordir.Ref) bool { return true }, nil
	case greader.Read:
		return func(r *lektordir.Ref) bool { return !r.Unread() }, nil
	case greader.KeptUnread:
		return func(r *lektordir.Ref) bool { return r.Unread() }, nil
	case greader.Starred:
		return func(r *lektordir.Ref) bool { return r.HasFlag('F') }, nil
	}
	return func(*lektordir.Ref) bool { return false }, nil
}

// list reads the parameters of a list, and returns its entries.
func (c *call) list(stream string, most int) (greader.List, page, error) {
	l, err := greader.ParseList(stream, c.values, most)
	if err != nil {
		return l, page{}, bad("%v", err)
	}
	s, err := c.lib.snapshot(c.r.Context())
	if err != nil {
		return l, page{}, err
	}
	p, err := c.pick(s, l)
	return l, p, err
}

// ids implements stream/items/ids.
func (c *call) ids() error {
	_, p, err := c.list(c.values.Get("s"), maxIDs)
	if err != nil {
		return err
	}
	return c.answer(func(w io.Writer) error {
		refs := greader.NewRefs(w)
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
	l, p, err := c.list(stream, maxItems)
	if err != nil {
		return err
	}
	return c.writeItems(l.Stream, p)
}

// items implements stream/items/contents. Unknown ids are left out.
func (c *call) items() error {
	s, err := c.lib.snapshot(c.r.Context())
	if err != nil {
		return err
	}
	ids := greader.ParseIDs(c.values["i"])
	if len(ids) > maxItems {
		return bad("more than %d ids", maxItems)
	}
	var p page
	for _, id := range ids {
		if e, ok := s.find(id); ok {
			p.entries = append(p.entries, e)
		}
	}
	return c.writeItems(greader.Stream{Kind: greader.State, Name: greader.ReadingList}, p)
}

// atom implements the feeds of reader/atom.
func (c *call) atom() error {
	l, p, err := c.list(c.stream, maxAtom)
	if err != nil {
		return err
	}
	var items []greader.Item
	if err := c.eachItem(c.r.Context(), p.entries, func(i greader.Item) error {
		items = append(items, i)
		return nil
	}); err != nil {
		return err
	}
	return c.tagged("application/atom+xml; charset=utf-8", func(w io.Writer) error {
		return greader.Atom(w, c.head(l.Stream, p), items, p.next)
	})
}

// writeItems answers with entries.
func (c *call) writeItems(s greader.Stream, p page) error {
	// A client must not take an answer for whole if an entry could not be read, so the first
	// batch is read before the answer begins.
	first, rest := p.entries, []entry(nil)
	if len(first) > batch {
		first, rest = first[:batch], first[batch:]
	}
	begun, err := c.itemsOf(c.r.Context(), first)
	if err != nil {
		return err
	}
	return c.answer(func(w io.Writer) error {
		out, err := greader.NewItems(w, c.head(s, p))
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
		if err := c.eachItem(c.r.Context(), rest, add); err != nil {
			return err
		}
		return out.End(p.next)
	})
}

// batch is the number of entries that are read at once.
const batch = 256

// eachItem calls f for each entry that can be read.
func (c *call) eachItem(ctx context.Context, entries []entry, f func(greader.Item) error) error {
	for part := range slices.Chunk(entries, batch) {
		items, err := c.itemsOf(ctx, part)
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
