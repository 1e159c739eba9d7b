package feedsync

import (
	"maps"
	"slices"
)

// Parents returns the effective parent of each item: its parent, or "" if that is missing
// or the item would be inside itself (section 4.4.2). In a cycle, the item with the lowest
// id moves to the root; cycle lists these items. The effective parents are never stored.
func Parents(parent map[string]string) (effective map[string]string, cycle []string) {
	effective = maps.Clone(parent)
	for id, p := range effective {
		if _, ok := effective[p]; !ok {
			effective[id] = ""
		}
	}
	// Section 4.4.2: from the lowest id to the highest, up to the root.
	good := make(map[string]bool, len(parent)) // no cycle is above it
	for _, id := range slices.Sorted(maps.Keys(effective)) {
		var path []string
		visited := map[string]bool{}
		for at := id; at != "" && !good[at]; at = effective[at] {
			if visited[at] {
				if at == id {
					cycle = append(cycle, id)
					effective[id] = ""
				}
				path = nil // id is not in the cycle that is above it
				break
			}
			visited[at] = true
			path = append(path, at)
		}
		if effective[id] == "" {
			good[id] = true
		}
		for _, p := range path {
			good[p] = true
		}
	}
	return effective, cycle
}

// Merge merges the items of an incoming document into this one (section 4.4), and those of
// OPML at their places (section 3.2). It returns the outcomes in the order of the incoming
// document. Items that the incoming document lacks stay. Both documents must be of one
// kind. The incoming document must not be used afterwards.
func (d *Document) Merge(incoming *Document, r Rules) []MergeResult {
	var changes []MergeResult
	moved := map[*Item]bool{}
	for _, in := range incoming.Items() {
		old := d.byID[in.ID]
		if old == nil {
			d.Append(in)
			c := d.byID[in.ID]
			moved[c] = true
			changes = append(changes, MergeResult{Item: c, Incoming: true})
			continue
		}
		out := Merge(old, in, r)
		if out.Item == old {
			continue
		}
		d.replace(old, out.Item)
		if out.Incoming {
			moved[old] = true
		}
		out.Item = old
		changes = append(changes, out)
	}
	if len(moved) > 0 {
		d.placeMoved(incoming.Items(), moved)
	}
	return changes
}

// parents is [Parents] of the items.
func (d *Document) parents() (effective map[string]string, cycle []string) {
	parent := make(map[string]string, len(d.byID))
	for id, it := range d.byID {
		if parent[id] = ""; d.Kind == OPML {
			parent[id] = it.Parent
		}
	}
	return Parents(parent)
}

// around returns the id of the item that an outline is, or is in; "" for the body, which is nil.
func (it *Item) around() string {
	for it != nil && it.inert {
		it = it.within
	}
	if it == nil {
		return ""
	}
	return it.ID
}

// placeMoved puts each moved item after its nearest predecessor in the incoming document that
// has the same parent and exists here (section 3.2). Items there that the incoming document
// lacks came from a third document: these and the moved items are sorted by id.
func (d *Document) placeMoved(incoming []*Item, moved map[*Item]bool) {
	known := make(map[string]bool, len(incoming))
	for _, it := range incoming {
		known[it.ID] = true
	}
	parent, _ := d.parents()
	parentOf := func(it *Item) string {
		if it.inert {
			return it.within.around()
		}
		return parent[it.ID]
	}
	type place struct {
		parent string
		after  *Item // nil is the beginning
	}
	next, last := map[place]*Item{}, map[string]*Item{}
	insert := func(it, after *Item) {
		at := place{parentOf(it), after}
		next[place{at.parent, it}], next[at] = next[at], it
		last[at.parent] = it
	}
	for _, it := range d.items {
		if !moved[it] {
			insert(it, last[parentOf(it)])
		}
	}
	clear(last)
	for _, in := range incoming {
		it := d.byID[in.ID]
		if !moved[it] {
			last[parent[in.ID]] = it
			continue
		}
		after := last[parent[in.ID]]
		for {
			n := next[place{parent[in.ID], after}]
			if n == nil || known[n.ID] || n.ID > in.ID {
				break
			}
			after = n
		}
		insert(it, after)
	}
	var out []*Item
	done := map[string]bool{}
	for _, it := range d.items {
		if at := parentOf(it); !done[at] {
			done[at] = true
			for n := next[place{at, nil}]; n != nil; n = next[place{at, n}] {
				out = append(out, n)
			}
		}
	}
	d.items = out
}

// layout holds the places of the items in a document that is written.
type layout struct {
	parent map[string]string // effective parents
	cycle  []string          // items at the root that would be inside themselves
	inside map[*Item][]*Item // nil is the body
}

// layout returns the places of the items. An item in an outline that is not an item stays there while
// its parent is the same.
func (d *Document) layout() *layout {
	t := &layout{inside: map[*Item][]*Item{}}
	t.parent, t.cycle = d.parents()
	for _, it := range d.items {
		in := it.within
		if !it.inert && (in == nil || !in.inert || in.around() != t.parent[it.ID]) {
			in = d.byID[t.parent[it.ID]]
		}
		t.inside[in] = append(t.inside[in], it)
	}
	return t
}
