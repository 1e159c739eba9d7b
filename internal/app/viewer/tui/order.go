package tui

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
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

// compareItems compares by the text to sort by, then by date, then by name.
func compareItems(a, b *item, o order) int {
	c := strings.Compare(a.text, b.text)
	if o.down {
		c = -c
	}
	if c != 0 {
		return c
	}
	// The names of most entries need no comparison.
	if c = a.date.Compare(b.date); c == 0 {
		c = cmp.Or(strings.Compare(a.Ref().Unique, b.Ref().Unique), strings.Compare(a.Feed.Hash, b.Feed.Hash))
	}
	if o.down || o.by != "date" {
		c = -c
	}
	return c
}

// texts returns for each entry the text to sort by; nil if the order is by date only.
func (w *listWork) texts(ctx context.Context, entries []catalog.Entry) []string {
	var of func(e catalog.Entry) string
	switch w.by {
	case "title", "author":
		return w.disk.SortTexts(ctx, entries, w.by, w.progress)
	case "feed":
		of = func(e catalog.Entry) string { return w.snapshot.feeds[e.Feed.Hash].place }
	case "flags":
		of = func(e catalog.Entry) string { return entrystore.FlagOrder(e.Ref()) }
	case "random":
		of = func(e catalog.Entry) string { return chance(e.Ref(), w.seed) }
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

// settings are the choices of the user for nodes of the tree, which the disk remembers, and the
// seed of random orders.
type settings struct {
	*values.Values
	seed uint64
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

// showSnapshot shows a snapshot in the tree.
func (b *browser) showSnapshot(s *snapshot) {
	sorted := *s
	b.snapshot = &sorted
	b.snapshot.nodes = b.settings.sortFeeds(s)
	b.arrangeTree()
	b.page.rename(s)
}

// orderActions returns the actions that sort and hide.
func orderActions() []action {
	return []action{
		{"sort", 1, "choose the order of the list, in the feeds that of the feeds; the present one again: reversed",
			"ls --sort title, ls --sort -date", sortBy},
		{"hide-read", 0, "hide feeds and folders with nothing unread, or show them, in the folder of the cursor",
			"count --by feed", hideRead},
	}
}

// remember sets a setting of a node, see [saveSetting].
func remember(m *model, setting string, of id, value string) {
	saveSetting(m, nodeSetting(setting, of), value)
}

// describe returns the description of an order for the menu.
func (w *world) describe(by string) string {
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

// sortBy sorts the list, or the feeds of a folder, in the order that the word of c names. Without
// a word it shows a menu of orders. With the word "-", the orders of the menu are reversed.
func sortBy(m *model, c keys.Call) tea.Cmd {
	b := &m.browser
	word := strings.Join(c.Words, "")
	if b.snapshot == nil {
		m.say("the entries are not read yet")
	} else if o, ok := parseOrder(word, entryOrders); ok {
		sortEntries(m, o)
	} else if o, ok := parseOrder(word, feedOrders); ok {
		sortFeeds(m, o)
	} else if word != "" && word != "-" {
		m.say("there is no order %s; lists have %s, and the feeds %s", word, strings.Join(entryOrders, ", "),
			strings.Join(feedOrders, ", "))
	} else if b.focus == keys.FeedsPane {
		now, _ := parseOrder(cmp.Or(b.settings.of("feeds", container(b.list.of)), "name"), feedOrders)
		orderMenu(m, m.Tr("sort the feeds by"), feedOrders, now, word == "-", sortFeeds)
	} else {
		orderMenu(m, m.Tr("sort the list by"), entryOrders, b.list.order, word == "-", sortEntries)
	}
	return nil
}

// orderMenu shows a menu of orders, with the cursor on the present one, which is reversed if it is
// chosen. The others are reversed if the argument is set.
func orderMenu(m *model, title string, kinds []string, now order, reversed bool, sort func(*model, order)) {
	n := &menu{title: title, hint: "the present order is reversed if you choose it again",
		at: max(0, slices.Index(kinds, now.by))}
	for _, by := range kinds {
		n.lines = append(n.lines, termsafe.Pad(by, 8)+" "+m.describe(by))
	}
	n.choose = onOpen(func(m *model, at int) tea.Cmd {
		o := usual(kinds[at])
		switch {
		case reversed:
			o.down = !o.down
		case o.by == now.by:
			o.down = !now.down
		}
		sort(m, o)
		return nil
	})
	m.input.menu = n
}

// sortEntries sorts the list, and later lists of its node.
func sortEntries(m *model, o order) {
	b := &m.browser
	if o.by == "random" {
		o.down = false
		b.settings.seed = m.o.Random() // shuffled anew each time
	}
	remember(m, "sort", b.list.of, o.String())
	b.list.order = b.settings.orderOf(b.list.of)
	m.apply(effects{list: true, say: m.sorted(o)})
}

// sortFeeds sorts the feeds of the folder of the cursor, and of the folders in it.
func sortFeeds(m *model, o order) {
	b := &m.browser
	remember(m, "feeds", container(b.list.of), o.String())
	b.showSnapshot(b.snapshot)
	m.say("%s", m.sorted(o))
}

// sorted returns the message about an order.
func (w *world) sorted(o order) string {
	switch {
	case o == usual(o.by):
		return w.Trf("sorted by %s: %s", o.by, w.describe(o.by))
	case o.by == byDate.by:
		return w.Trf("sorted by %s: %s", o.by, w.Tr("oldest first"))
	}
	return w.Trf("sorted by %s, reversed", o.by)
}

// hideRead hides the feeds and folders in a folder that have nothing unread, or shows them.
func hideRead(m *model, _ keys.Call) tea.Cmd {
	b := &m.browser
	if b.snapshot == nil {
		m.say("the entries are not read yet")
		return nil
	}
	in := container(b.list.of)
	name := m.Tr("all feeds")
	if in.kind == folderNode {
		name = nodeName(m, in)
	}
	if b.settings.of("hide", in) == "yes" {
		remember(m, "hide", in, "no")
		m.say("%s: what has nothing unread is shown", name)
	} else {
		remember(m, "hide", in, "yes")
		m.say("%s: what has nothing unread is hidden", name)
	}
	b.arrangeTree()
	return nil
}
