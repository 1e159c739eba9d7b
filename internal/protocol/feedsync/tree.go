package feedsync

import (
	"maps"
	"slices"
	"strings"
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
			c := in.clone()
			c.stands = inParent
			d.byID[in.ID] = c
			d.kids = append(d.kids, c)
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
	deleted := 0
	for _, it := range order {
		parent[it.ID] = it.Parent
		if it.Deleted {
			deleted++
		}
	}
	var cycle []string
	if d.Kind == OPML {
		parent, cycle = Parents(parent)
	}
	if incoming != nil {
		order = placeMoved(order, incoming, moved, parent)
	}
	if d.Kind == RSS && incoming == nil {
		return
	}
	for _, it := range order {
		if it.stands = inParent; d.Kind == OPML && parent[it.ID] != it.Parent {
			it.stands = elsewhere
		}
	}
	for _, id := range cycle {
		d.byID[id].stands = cycleRoot
	}
	d.rebuild(order, parent)
}

// placeMoved returns the order of items, with each moved item after its nearest
// predecessor in the incoming document that has the same parent and exists here (section
// 3.2). If items from several documents have one place, the lowest id is first.
func placeMoved(order []*Item, incoming *Document, moved []*Item, parent map[string]string) []*Item {
	if len(moved) == 0 {
		return order
	}
	isMoved := make(map[string]bool, len(moved))
	for _, it := range moved {
		isMoved[it.ID] = true
	}
	// Siblings by parent, in the order of this document and of the incoming one.
	here, there := map[string][]*Item{}, map[string][]*Item{}
	for _, it := range order {
		here[parent[it.ID]] = append(here[parent[it.ID]], it)
	}
	position := map[string]int{}
	for _, it := range incoming.Items() {
		if p, ok := parent[it.ID]; ok {
			position[it.ID] = len(there[p])
			there[p] = append(there[p], it)
		}
	}
	var out []*Item
	for _, p := range slices.Sorted(maps.Keys(here)) {
		out = append(out, placeSiblings(here[p], there[p], isMoved, position)...)
	}
	return out
}

func placeSiblings(here, there []*Item, moved map[string]bool, position map[string]int) []*Item {
	stay := slices.DeleteFunc(slices.Clone(here), func(it *Item) bool { return moved[it.ID] })
	if len(stay) == len(here) {
		return here
	}
	byID := make(map[string]*Item, len(here))
	for _, it := range here {
		byID[it.ID] = it
	}
	// behind maps an item to the items that are placed after it; "" means the beginning.
	behind := map[string][]*Item{}
	anchor := ""
	for _, in := range there {
		it := byID[in.ID]
		switch {
		case it == nil:
		case moved[it.ID]:
			behind[anchor] = append(behind[anchor], it)
		default:
			anchor = it.ID
		}
	}
	var out []*Item
	insert := func(list []*Item, after []*Item) []*Item {
		// Items here that the incoming document lacks came from a third document. Sort these
		// and the incoming items by id. Consecutive items of this document keep their order.
		for len(list) > 0 {
			if len(after) > 0 && strings.Compare(after[0].ID, list[0].ID) < 0 {
				if _, known := position[after[0].ID]; !known {
					out = append(out, after[0])
					after = after[1:]
					continue
				}
			}
			out = append(out, list[0])
			list = list[1:]
		}
		return after
	}
	rest := insert(behind[""], stay)
	for len(rest) > 0 {
		it := rest[0]
		out = append(out, it)
		rest = insert(behind[it.ID], rest[1:])
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
