package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// order is an order of entries. It is comparable.
type order struct {
	by   string // one of entryOrders
	down bool   // reversed; for dates: newest first
	seed uint64 // for random; else 0
}

// entryOrders are the orders of entries, and feedOrders those of the feeds of a folder.
var (
	entryOrders = []string{"date", "title", "author", "feed", "flags", "random"}
	feedOrders  = []string{"name", "unread", "news"}
)

// byDate is the order of a list for which the user has chosen none: newest first.
var byDate = order{by: "date", down: true}

func (o order) String() string {
	if o.down {
		return "-" + o.by
	}
	return o.by
}

// parseOrder parses an order of one of these kinds; "-" before it reverses it.
func parseOrder(text string, kinds []string) (o order, ok bool) {
	o.by, o.down = strings.CutPrefix(text, "-")
	return o, slices.Contains(kinds, o.by)
}

// settings are the choices of the user for nodes of the tree, which the disk remembers, and the
// seed of random orders.
type settings struct {
	*values.Values
	seed   uint64
	random func() uint64
}

// inSetting escapes names of nodes in names of settings.
var inSetting = strings.NewReplacer("%", "%25", "=", "%3D", "\n", "%0A", "\r", "%0D", "\x00", "%00")

// nodeSetting returns the name of a setting of a node. A feed is named by its hash, a folder by
// its path in lower case.
func nodeSetting(setting string, of id) string {
	kind := [...]string{allNode: "all", flaggedNode: "flagged", savedNode: "query ", folderNode: "folder ",
		feedNode: "feed "}[of.kind]
	return setting + " " + kind + inSetting.Replace(of.name)
}

// of returns the setting of a node: its own, else that of the nearest folder that has one, else
// that of all entries.
func (s *settings) of(setting string, of id) string {
	for {
		value := s.Get(nodeSetting(setting, of))
		if value != "" || of.kind == allNode {
			return value
		}
		of = parent(of)
	}
}

// parent returns the folder of a node, or the node of all entries.
func parent(of id) id {
	up := of.in
	if of.kind == folderNode {
		up = of.name[:max(0, strings.LastIndexByte(of.name, '/'))]
	}
	if up == "" {
		return id{kind: allNode}
	}
	return id{kind: folderNode, name: up}
}

// container returns the node whose settings hold for the feeds beside a feed or in a folder.
func container(of id) id {
	if of.kind == folderNode {
		return of
	}
	return parent(of)
}

// orderOf returns the order of a node's list.
func (s *settings) orderOf(of id) order {
	o, ok := parseOrder(s.of("sort", of), entryOrders)
	if !ok {
		return byDate
	}
	if o.by == "random" {
		o.seed = s.seed
	}
	return o
}

// hidden returns a function that reports whether a node is hidden because it has nothing unread.
// The node of the cursor, and the folders above it, are never hidden.
func (s *settings) hidden(shown *snapshot, cursor id) func(n node) bool {
	hides := map[id]bool{} // by folder
	above := cursor.in + "/"
	if cursor.kind == folderNode {
		above = cursor.name + "/"
	}
	return func(n node) bool {
		if n.kind < folderNode || n.unread > 0 || shown.uncounted || n.id == cursor || n.kind == folderNode &&
			strings.HasPrefix(above, n.name+"/") {
			return false
		}
		in := parent(n.id)
		yes, ok := hides[in]
		if !ok {
			yes = s.of("hide", in) == "yes"
			hides[in] = yes
		}
		return yes
	}
}

// sortFeeds returns the nodes of a snapshot, with the feeds of each folder in the order that the
// user has chosen.
func (s *settings) sortFeeds(of *snapshot) []node {
	nodes := slices.Clone(of.nodes)
	for from := 0; from < len(nodes); from++ {
		to := from
		for to < len(nodes) && nodes[to].kind == feedNode && nodes[to].in == nodes[from].in {
			to++
		}
		if to > from {
			o, _ := parseOrder(s.of("feeds", parent(nodes[from].id)), feedOrders)
			slices.SortStableFunc(nodes[from:to], func(x, y node) int {
				c := of.compareFeeds(x, y, o.by)
				if o.down {
					c = -c
				}
				return c
			})
			from = to - 1
		}
	}
	return nodes
}

// compareFeeds compares two nodes of feeds: most unread entries, or latest delivery, first.
func (s *snapshot) compareFeeds(x, y node, by string) int {
	f, g := s.feeds[x.name], s.feeds[y.name]
	switch by {
	case "unread":
		return cmp.Compare(y.unread, x.unread)
	case "news":
		return g.names.Newest().Compare(f.names.Newest())
	}
	return cmp.Or(cmp.Compare(f.place, g.place), cmp.Compare(f.Hash, g.Hash))
}

// describe returns the description of an order for the menu.
func describe(w *texts.Printer, by string) string {
	switch by {
	case "date":
		return w.Tr("newest first")
	case "flags":
		return w.Tr("flagged entries first")
	case "random":
		return w.Tr("in no order")
	case "unread":
		return w.Tr("most unread entries first")
	case "news":
		return w.Tr("latest delivery first")
	}
	return w.Tr("from A to Z")
}

// usual returns an order by its name in its usual direction.
func usual(by string) order { return order{by: by, down: by == byDate.by} }

// sortedBy returns the message about an order.
func sortedBy(w *texts.Printer, o order) string {
	switch {
	case o == usual(o.by):
		return w.Trf("sorted by %s: %s", o.by, describe(w, o.by))
	case o.by == byDate.by:
		return w.Trf("sorted by %s: %s", o.by, w.Tr("oldest first"))
	}
	return w.Trf("sorted by %s, reversed", o.by)
}

// orderMenu returns a menu of orders, with the cursor on the present one, which is reversed if it is
// chosen. The others are reversed if the argument is set.
func orderMenu(w *texts.Printer, title string, kinds []string, now order, reversed bool,
	sort func(order) part.Effects) part.Effects {
	n := &part.Lines{Title: title, Hint: "the present order is reversed if you choose it again",
		At: max(0, slices.Index(kinds, now.by))}
	for _, by := range kinds {
		n.Text = append(n.Text, termsafe.Pad(by, 8)+" "+describe(w, by))
	}
	n.Choose = part.OnOpen(func(at int) part.Effects {
		o := usual(kinds[at])
		switch {
		case reversed:
			o.down = !o.down
		case o.by == now.by:
			o.down = !now.down
		}
		return sort(o)
	})
	return part.Effects{part.Menu{Lines: n}}
}
