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
	var moved []*Item
	for _, in := range incoming.Items() {
		old := d.byID[in.ID]
		if old == nil {
			d.Append(in)
			c := d.byID[in.ID]
			moved = append(moved, c)
			changes = append(changes, MergeResult{Item: c, Incoming: true})
			continue
		}
		out := Merge(old, in, r)
		if out.Item == old {
			continue
		}
		d.replace(old, out.Item)
		if out.Incoming {
			moved = append(moved, old)
		}
		out.Item = old
		changes = append(changes, out)
	}
	if len(changes) > 0 {
		d.arrange(incoming, moved)
	}
	return changes
}

// Arrange moves every item of an OPML document into its Parent.
func (d *Document) Arrange() { d.arrange(nil, nil) }

// arrange moves items below their effective parents. A moved item is placed after its
// predecessor in the incoming document.
func (d *Document) arrange(incoming *Document, moved []*Item) {
	order := d.Items()
	parent := make(map[string]string, len(order))
	for _, it := range order {
		if parent[it.ID] = ""; d.Kind == OPML {
			parent[it.ID] = it.Parent
		}
	}
	parent, cycle := Parents(parent)
	for _, it := range order {
		if it.stands = inParent; d.Kind == OPML && parent[it.ID] != it.Parent {
			it.stands = elsewhere
		}
	}
	for _, id := range cycle {
		d.byID[id].stands = cycleRoot
	}
	if len(moved) > 0 {
		order = d.placeMoved(order, incoming.Items(), moved, parent)
	}
	d.rebuild(order, parent)
}

// placeMoved returns the order of items, with each moved item after its nearest
// predecessor in the incoming document that has the same parent and exists here (section
// 3.2). Items there that the incoming document lacks came from a third document: these and
// the moved items are sorted by id.
func (d *Document) placeMoved(order, incoming, moved []*Item, parent map[string]string) []*Item {
	known := make(map[string]bool, len(incoming))
	for _, it := range incoming {
		known[it.ID] = true
	}
	isMoved := make(map[string]bool, len(moved))
	for _, it := range moved {
		isMoved[it.ID] = true
	}
	type place struct{ parent, after string } // after "" is the beginning
	next, last := map[place]*Item{}, map[string]string{}
	insert := func(it *Item, after string) {
		at := place{parent[it.ID], after}
		next[place{at.parent, it.ID}], next[at] = next[at], it
		last[at.parent] = it.ID
	}
	for _, it := range order {
		if !isMoved[it.ID] {
			insert(it, last[parent[it.ID]])
		}
	}
	clear(last)
	for _, in := range incoming {
		within, here := parent[in.ID]
		after := last[within]
		switch {
		case !here:
		case !isMoved[in.ID]:
			last[within] = in.ID
		default:
			for {
				n := next[place{within, after}]
				if n == nil || known[n.ID] || n.ID > in.ID {
					break
				}
				after = n.ID
			}
			insert(d.byID[in.ID], after)
		}
	}
	var out []*Item
	for _, within := range slices.Compact(slices.Sorted(maps.Values(parent))) {
		for n := next[place{within, ""}]; n != nil; n = next[place{within, n.ID}] {
			out = append(out, n)
		}
	}
	return out
}

// rebuild puts the items into their parents in an order.
func (d *Document) rebuild(order []*Item, parent map[string]string) {
	within := map[string][]*Item{}
	for _, it := range order {
		within[parent[it.ID]] = append(within[parent[it.ID]], it)
	}
	// Items in an outline that is not an item stay there while their parent is the same.
	fixed := map[string]bool{}
	var down func(kids []*Item, id string, inert bool) []*Item
	down = func(kids []*Item, id string, inert bool) []*Item {
		return slices.DeleteFunc(kids, func(it *Item) bool {
			if it.inert {
				it.kids = down(it.kids, id, true)
				return false
			}
			it.kids = down(it.kids, it.ID, false)
			if inert && parent[it.ID] != id {
				return true
			}
			fixed[it.ID] = fixed[it.ID] || inert
			return false
		})
	}
	d.kids = place(down(d.kids, "", false), within[""], fixed)
	for _, it := range order {
		it.kids = place(it.kids, within[it.ID], fixed)
	}
}

// place returns the children of an element with the wanted items in order. Inert items keep
// their places.
func place(kids, want []*Item, stay map[string]bool) []*Item {
	want = slices.DeleteFunc(slices.Clone(want), func(it *Item) bool { return stay[it.ID] })
	var out []*Item
	for _, it := range kids {
		if it.inert {
			out = append(out, it)
		} else if len(want) > 0 {
			out, want = append(out, want[0]), want[1:]
		}
	}
	return append(out, want...)
}
