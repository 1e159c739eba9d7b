package tree

import (
	"cmp"
	"fmt"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Scene is the first pane.
type Scene struct {
	Known          bool
	At, Top, Total int // the cursor, the first line on the screen, and the number of lines
	Nodes          []NodeScene
	Cursor         NodeScene // that of the cursor, if total is not 0
	Unread         int       // in all feeds
}

// NodeScene is a line of the first pane.
type NodeScene struct {
	Node
	Label  string
	Closed bool
}

// Scene returns the pane with the lines that a height has room for.
func (t *Tree) Scene(height int) Scene {
	s := Scene{Known: t.Snapshot != nil, At: t.At, Total: len(t.Nodes),
		Unread: cmp.Or(t.Snapshot, &Snapshot{}).All.Unread}
	t.Y = cells.Window(t.Y, t.At, len(t.Nodes), height)
	s.Top = t.Y
	line := func(n Node) NodeScene { return NodeScene{n, n.label(t.Printer), t.Closed[n.ID]} }
	for _, n := range t.Nodes[t.Y:min(len(t.Nodes), t.Y+height)] {
		s.Nodes = append(s.Nodes, line(n))
	}
	if t.At < len(t.Nodes) {
		s.Cursor = line(t.Nodes[max(0, t.At)])
	}
	return s
}

// Sign returns the character before the label of the node.
func (n NodeScene) Sign() string {
	switch {
	case n.Kind == FolderNode && n.Closed:
		return "+"
	case n.Kind == FolderNode:
		return "-"
	case n.Kind == SavedNode:
		return "?"
	case n.Paused:
		return "="
	}
	return " "
}

// Text returns the label of the node with the number of its entries.
func (n NodeScene) Text(width int) string {
	count := ""
	switch {
	case n.Err != "":
		count = "!"
	case n.Flagged > 0:
		count = fmt.Sprint(n.Flagged)
	case n.Unread > 0:
		count = fmt.Sprint(n.Unread)
	}
	free := width - len(count) - 1
	title := cells.Plain(n.Label)
	if n.Site != "" && free > 8 {
		site := cells.Plain(termsafe.Brief(n.Site))
		most := min(termsafe.Width(site), free/2)
		return cells.Fit(title, free-most-1) + " " + cells.Fit(cells.Ends(site, most), most) + " " + count
	}
	return cells.Fit(title, free) + " " + count
}
