package scene

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/files/values"
)

// listLines is the size of the list in the stacked layout. The others are columns of a pane.
const listLines = 2

// SizeSettings are the names of the sizes in the settings of the screen.
var SizeSettings = [...]string{keys.FeedsPane: "feeds-width", keys.ListPane: "list-width", listLines: "list-height"}

// LayoutSetting is the name of the layout in the settings of the screen.
const LayoutSetting = "layout"

// LeastWidth and LeastHeight are the smallest screen on which panes are shown.
const LeastWidth, LeastHeight = 20, 5

// wantText and wantList are the minimum columns of the text and the list beside another pane, if
// the user chose no layout.
const wantText, wantList = 64, 30

// leastColumns are the minimum columns of panes beside others, and leastLines the minimum lines of
// the list and of the text in the stacked layout.
var leastColumns = [...]int{keys.FeedsPane: 8, keys.ListPane: 20, keys.PagePane: 40}

const leastLines = 3

// OneColumn is the width from which panes stand side by side. On a narrower screen, panes are
// stacked if it has narrowLines.
const OneColumn, narrowLines = 60, 20

// Layout is where the panes are.
type Layout struct {
	Focus         keys.Pane
	Zoom          bool
	Screen        *values.Values // has the layout and the sizes that the user chose
	Usual         string         // the layout, if the user chose none
	Width, Height int            // size of the screen in cells
	TextMost      int            // maximum columns of the text of an entry
	Single        bool           // only the pane that has the focus is shown
	Reading       func() bool    // an entry is open
}

// Arrangement returns the name of the layout.
func (y *Layout) Arrangement() string {
	if name := y.Screen.Get(LayoutSetting); slices.Contains(cells.Layouts, name) {
		return name
	}
	return cmp.Or(y.Usual, cells.AutoLayout)
}

// Size returns a size that the user chose, 0 for the usual one.
func (y *Layout) Size(i int) int { return max(0, y.Screen.Int(SizeSettings[i])) }

// PaneAt is a pane on the screen. Its title is on line y, and its lines are below the title.
type PaneAt struct {
	Kind                keys.Pane
	X, Y, Width, Height int
}

// usualFeeds returns the columns of the feeds if the user chose none.
func usualFeeds(width int) int { return max(16, min(width/4, 34)) }

// Visible returns the visible panes from left to right, and whether the last two are stacked. The
// pane that has the focus is always visible.
func (y *Layout) Visible() (kinds []keys.Pane, stacked bool) {
	w, feeds, zoom := y.Width, usualFeeds(y.Width), y.Zoom || y.Single
	three := []keys.Pane{keys.FeedsPane, keys.ListPane, keys.PagePane}
	switch layout := y.Arrangement(); {
	case !zoom && layout == cells.StackedLayout && w < OneColumn && y.Lines() >= narrowLines &&
		y.Focus != keys.FeedsPane:
		return three[1:], true
	case zoom || w < OneColumn:
		return []keys.Pane{y.Focus}, false
	case layout == cells.StackedLayout && y.Lines() > 3*leastLines:
		return three, true
	case layout == "three" &&
		w >= leastColumns[keys.FeedsPane]+leastColumns[keys.ListPane]+leastColumns[keys.PagePane]+2:
		return three, false
	case layout != cells.AutoLayout:
		// the entry is beside the list, if it has its least columns
		feeds, w = w, w+wantText-leastColumns[keys.PagePane]
	}
	switch {
	case y.Focus != keys.PagePane && (!y.Reading() || w < feeds+wantList+wantText+2):
		return three[:2], false
	case w >= feeds+wantList+wantText+2:
		return three, false
	case w >= wantList+wantText+1:
		return three[1:], false
	}
	return []keys.Pane{y.Focus}, false
}

// Panes returns the visible panes from left to right, with one column between two of them.
func (y *Layout) Panes() []PaneAt {
	kinds, stacked := y.Visible()
	columns := kinds
	if stacked {
		columns = kinds[:len(kinds)-1]
	}
	var panes []PaneAt
	x := 0
	for i, kind := range columns {
		width := y.Width - x
		rest := width // without the least columns of the panes to the right
		for _, right := range columns[i+1:] {
			rest -= leastColumns[right] + 1
		}
		usual := [...]int{usualFeeds(y.Width), wantList, 0}[kind]
		if i == 1 && len(columns) == 3 {
			usual = max(wantList, min((y.Width-panes[0].Width)*2/5, 70))
		}
		if i < len(columns)-1 {
			width = fitInto(cmp.Or(y.Size(int(kind)), usual), leastColumns[kind], rest)
		}
		panes = append(panes, PaneAt{kind, x, 0, width, y.Lines()})
		x += width + 1
	}
	if stacked {
		list := &panes[len(panes)-1]
		lines := list.Height - 1 // without the title of the entry
		list.Height = fitInto(cmp.Or(y.Size(listLines), lines*2/5), leastLines, lines-leastLines)
		panes = append(panes, PaneAt{keys.PagePane, list.X, list.Height + 1, list.Width, lines - list.Height})
	}
	return panes
}

func fitInto(n, least, most int) int { return max(least, min(n, most)) }

// Lines returns the number of lines between the first and the last one of the screen.
func (y *Layout) Lines() int { return max(1, y.Height-2) }

// LinesOf returns the number of lines of a pane.
func (y *Layout) LinesOf(kind keys.Pane) int {
	for _, p := range y.Panes() {
		if p.Kind == kind {
			return max(1, p.Height)
		}
	}
	return y.Lines()
}

// TextWidth returns the columns of the text of an entry, 0 if its pane is not visible.
func (y *Layout) TextWidth() int {
	for _, p := range y.Panes() {
		if p.Kind == keys.PagePane {
			return max(10, min(p.Width-2, y.TextMost))
		}
	}
	return 0
}

// Resize makes the pane with the focus n steps larger, at the cost of its neighbour. It returns the name of the
// size that it changed, and whether there was room.
func (y *Layout) Resize(n int) (name string, ok bool) {
	kinds, stacked := y.Visible()
	if len(kinds) == 1 {
		return "", false
	}
	of, sign, step := y.Focus, 1, 2
	if of == kinds[len(kinds)-1] {
		of, sign = kinds[len(kinds)-2], -1
	}
	size := int(of)
	if stacked && of == keys.ListPane {
		size, step = listLines, 1
	}
	measure := func() int {
		at := y.Panes()[slices.Index(kinds, of)]
		if size == listLines {
			return at.Height
		}
		return at.Width
	}
	before := measure()
	name = SizeSettings[size]
	set := func(n int) { y.Screen.Set(name, strconv.Itoa(max(1, n))) }
	set(before + sign*n*step)
	set(measure())
	return name, measure() != before
}
