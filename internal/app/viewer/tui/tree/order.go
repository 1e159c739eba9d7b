package tree

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Order is an order of entries. It is comparable.
type Order struct {
	By   string // one of entryOrders
	Down bool   // reversed; for dates: newest first
	Seed uint64 // for random; else 0
}

// EntryOrders are the orders of entries, and feedOrders those of the feeds of a folder.
var (
	EntryOrders = []string{"date", "title", "author", "feed", "flags", "random"}
	FeedOrders  = []string{"name", "unread", "news"}
)

// ByDate is the order of a list for which the user has chosen none: newest first.
var ByDate = Order{By: "date", Down: true}

func (o Order) String() string {
	if o.Down {
		return "-" + o.By
	}
	return o.By
}

// ParseOrder parses an order of one of these kinds; "-" before it reverses it.
func ParseOrder(text string, kinds []string) (o Order, ok bool) {
	o.By, o.Down = strings.CutPrefix(text, "-")
	return o, slices.Contains(kinds, o.By)
}

// Settings are the choices of the user for nodes of the tree, which the disk remembers, and the
// seed of random orders.
type Settings struct {
	*values.Values
	Seed   uint64
	Random func() uint64
}

// inSetting escapes names of nodes in names of settings.
var inSetting = strings.NewReplacer("%", "%25", "=", "%3D", "\n", "%0A", "\r", "%0D", "\x00", "%00")

// nodeSetting returns the name of a setting of a node. A feed is named by its hash, a folder by
// its path in lower case.
func nodeSetting(setting string, of ID) string {
	kind := [...]string{AllNode: "all", FlaggedNode: "flagged", SavedNode: "query ", FolderNode: "folder ",
		FeedNode: "feed "}[of.Kind]
	return setting + " " + kind + inSetting.Replace(of.Name)
}

// of returns the setting of a node: its own, else that of the nearest folder that has one, else
// that of all entries.
func (s *Settings) of(setting string, of ID) string {
	for {
		value := s.Get(nodeSetting(setting, of))
		if value != "" || of.Kind == AllNode {
			return value
		}
		of = parent(of)
	}
}

// parent returns the folder of a node, or the node of all entries.
func parent(of ID) ID {
	up := of.In
	if of.Kind == FolderNode {
		up = of.Name[:max(0, strings.LastIndexByte(of.Name, '/'))]
	}
	if up == "" {
		return ID{Kind: AllNode}
	}
	return ID{Kind: FolderNode, Name: up}
}

// container returns the node whose settings hold for the feeds beside a feed or in a folder.
func container(of ID) ID {
	if of.Kind == FolderNode {
		return of
	}
	return parent(of)
}

// OrderOf returns the order of a node's list.
func (s *Settings) OrderOf(of ID) Order {
	o, ok := ParseOrder(s.of("sort", of), EntryOrders)
	if !ok {
		return ByDate
	}
	if o.By == "random" {
		o.Seed = s.Seed
	}
	return o
}

// hidden returns a function that reports whether a node is hidden because it has nothing unread.
// The node of the cursor, and the folders above it, are never hidden.
func (s *Settings) hidden(shown *Snapshot, cursor ID) func(n Node) bool {
	above := container(cursor).Name + "/"
	return func(n Node) bool {
		if n.Kind < FolderNode || n.Unread > 0 || shown.Uncounted || n.ID == cursor || n.Kind == FolderNode &&
			strings.HasPrefix(above, n.Name+"/") {
			return false
		}
		return s.of("hide", parent(n.ID)) == "yes"
	}
}

// sortFeeds sorts the feeds of a folder in the order that the user has chosen.
func (s *Settings) sortFeeds(nodes []Node, feeds map[string]*Feed) {
	o, _ := ParseOrder(s.of("feeds", parent(nodes[0].ID)), FeedOrders)
	slices.SortFunc(nodes, func(x, y Node) int { return compareFeeds(feeds[x.Name], feeds[y.Name], o) })
}

// compareFeeds compares two feeds: most unread entries, or latest delivery, first, and then by name.
func compareFeeds(f, g *Feed, o Order) int {
	c := cmp.Compare(f.Place, g.Place)
	switch o.By {
	case "unread":
		c = cmp.Compare(g.Unread, f.Unread)
	case "news":
		c = g.names.Newest().Compare(f.names.Newest())
	}
	if o.Down {
		c = -c
	}
	return cmp.Or(c, cmp.Compare(f.Place, g.Place), cmp.Compare(f.Hash, g.Hash))
}

// describe returns the description of an order for the menu.
func describe(w *texts.Printer, by string) string {
	return cmp.Or(map[string]string{"date": w.Tr("newest first"), "flags": w.Tr("flagged entries first"),
		"random": w.Tr("in no order"), "unread": w.Tr("most unread entries first"),
		"news": w.Tr("latest delivery first")}[by], w.Tr("from A to Z"))
}

// usual returns an order by its name in its usual direction.
func usual(by string) Order { return Order{By: by, Down: by == ByDate.By} }

// SortedBy returns the message about an order.
func SortedBy(w *texts.Printer, o Order) string {
	switch {
	case o == usual(o.By):
		return w.Trf("sorted by %s: %s", o.By, describe(w, o.By))
	case o.By == ByDate.By:
		return w.Trf("sorted by %s: %s", o.By, w.Tr("oldest first"))
	}
	return w.Trf("sorted by %s, reversed", o.By)
}

// OrderMenu returns a menu of orders, with the cursor on the present one, which is reversed if it is
// chosen. The others are reversed if the argument is set.
func OrderMenu(w *texts.Printer, title string, kinds []string, now Order, reversed bool,
	sort func(Order) part.Effects) part.Effects {
	var lines []string
	for _, by := range kinds {
		lines = append(lines, termsafe.Pad(by, 8)+" "+describe(w, by))
	}
	n := part.Choice(title, "the present order is reversed if you choose it again", lines, func(at int) part.Effects {
		o := usual(kinds[at])
		switch {
		case reversed:
			o.Down = !o.Down
		case o.By == now.By:
			o.Down = !now.Down
		}
		return sort(o)
	})
	n.At = max(0, slices.Index(kinds, now.By))
	return part.Effects{part.Menu{Lines: n}}
}
