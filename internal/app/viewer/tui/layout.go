package tui

import (
	"cmp"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/files/values"
)

// shape is the arrangement of panes that the user chose.
type shape struct {
	layout string
	size   [len(sizeSettings)]int // 0 for the usual size
}

// The sizes of a shape.
const (
	feedsColumns = iota
	listColumns
	listLines // in the stacked layout
)

// sizeSettings are the names of the sizes in the settings of the screen.
var sizeSettings = [...]string{feedsColumns: "feeds-width", listColumns: "list-width", listLines: "list-height"}

// layoutSetting is the name of the layout in the settings of the screen.
const layoutSetting = "layout"

// newShape returns the remembered shape; layout is the one that holds if none is remembered.
func newShape(screen *values.Values, layout string) shape {
	s := shape{layout: screen.Get(layoutSetting)}
	if !slices.Contains(cells.Layouts, s.layout) {
		s.layout = cmp.Or(layout, cells.AutoLayout)
	}
	for i, name := range sizeSettings {
		s.size[i] = max(0, screen.Int(name))
	}
	return s
}

// leastWidth and leastHeight are the smallest screen on which panes are shown.
const leastWidth, leastHeight = 20, 5

// wantText and wantList are the minimum columns of the text and the list beside another pane, if
// the user chose no layout.
const wantText, wantList = 64, 30

// leastColumns are the minimum columns of panes beside others, and leastLines the minimum lines of
// the list and of the text in the stacked layout.
var leastColumns = [...]int{keys.FeedsPane: 8, keys.ListPane: 20, keys.PagePane: 40}

const leastLines = 3

// oneColumn is the width from which panes stand side by side. On a narrower screen, panes are
// stacked if it has narrowLines.
const oneColumn, narrowLines = 60, 20

// paneAt is a pane on the screen. Its title is on line y, and its lines are below the title.
type paneAt struct {
	kind                keys.Pane
	x, y, width, height int
}

// usualFeeds returns the columns of the feeds if the user chose none.
func usualFeeds(width int) int { return max(16, min(width/4, 34)) }

// visible returns the visible panes from left to right, and whether the last two are stacked. The
// pane that has the focus is always visible.
func visible(b *browser) (kinds []keys.Pane, stacked bool) {
	w, feeds, reading := b.width, usualFeeds(b.width), b.focus == keys.PagePane
	three := []keys.Pane{keys.FeedsPane, keys.ListPane, keys.PagePane}
	switch layout := b.shape.layout; {
	case b.single:
		return []keys.Pane{b.focus}, false
	case !b.zoom && layout == cells.StackedLayout && w < oneColumn && b.lines() >= narrowLines &&
		b.focus != keys.FeedsPane:
		return three[1:], true
	case b.zoom || w < oneColumn:
		return []keys.Pane{b.focus}, false
	case layout == cells.StackedLayout && b.lines() > 3*leastLines:
		return three, true
	case layout == "three" &&
		w >= leastColumns[keys.FeedsPane]+leastColumns[keys.ListPane]+leastColumns[keys.PagePane]+2:
		return three, false
	case layout != cells.AutoLayout:
		// the entry is beside the list, if it has its least columns
		feeds, w = w, w+wantText-leastColumns[keys.PagePane]
	}
	switch {
	case !reading && (!b.page.open() || w < feeds+wantList+wantText+2):
		return three[:2], false
	case w >= feeds+wantList+wantText+2:
		return three, false
	case w >= wantList+wantText+1:
		return three[1:], false
	}
	return []keys.Pane{b.focus}, false
}

// layout returns the visible panes from left to right, with one column between two of them.
func (b *browser) layout() []paneAt {
	kinds, stacked := visible(b)
	columns := kinds
	if stacked {
		columns = kinds[:len(kinds)-1]
	}
	var panes []paneAt
	x := 0
	for i, kind := range columns {
		width := b.width - x
		rest := width // without the least columns of the panes to the right
		for _, right := range columns[i+1:] {
			rest -= leastColumns[right] + 1
		}
		switch {
		case i == len(columns)-1:
		case kind == keys.FeedsPane:
			width = fitInto(cmp.Or(b.shape.size[feedsColumns], usualFeeds(b.width)), leastColumns[kind], rest)
		default:
			usual := wantList
			if len(columns) == 3 {
				usual = max(wantList, min((width+x-panes[0].width)*2/5, 70))
			}
			width = fitInto(cmp.Or(b.shape.size[listColumns], usual), leastColumns[kind], rest)
		}
		panes = append(panes, paneAt{kind, x, 0, width, b.lines()})
		x += width + 1
	}
	if stacked {
		list := &panes[len(panes)-1]
		lines := list.height - 1 // without the title of the entry
		list.height = fitInto(cmp.Or(b.shape.size[listLines], lines*2/5), leastLines, lines-leastLines)
		panes = append(panes, paneAt{keys.PagePane, list.x, list.height + 1, list.width, lines - list.height})
	}
	return panes
}

func fitInto(n, least, most int) int { return max(least, min(n, most)) }

// lines returns the number of lines between the first and the last one of the screen.
func (b *browser) lines() int { return max(1, b.height-2) }

// linesOf returns the number of lines of a pane.
func linesOf(b *browser, kind keys.Pane) int {
	for _, p := range b.layout() {
		if p.kind == kind {
			return max(1, p.height)
		}
	}
	return b.lines()
}

func (b *browser) halfPage() int { return max(1, linesOf(b, b.focus)/2) }
func (b *browser) fullPage() int { return max(1, linesOf(b, b.focus)-1) }

// textWidth returns the columns of the text of an entry, 0 if its pane is not visible.
func (b *browser) textWidth() int {
	for _, p := range b.layout() {
		if p.kind == keys.PagePane {
			return max(10, min(p.width-2, b.textMost))
		}
	}
	return 0
}

// resize makes the pane with the focus n steps larger, at the cost of its neighbour. It returns the
// size that it changed, and whether there was room.
func resize(b *browser, n int) (size int, ok bool) {
	kinds, stacked := visible(b)
	if len(kinds) == 1 {
		return 0, false
	}
	of, sign := keys.ListPane, 1
	switch {
	case stacked && b.focus != keys.FeedsPane:
		size = listLines
		if b.focus == keys.PagePane {
			sign = -1
		}
	case b.focus != kinds[len(kinds)-1]:
		of = b.focus
	default:
		of, sign = kinds[len(kinds)-2], -1
	}
	if of == keys.ListPane && size != listLines {
		size = listColumns
	}
	measure := func() int {
		at := b.layout()[slices.Index(kinds, of)]
		if size == listLines {
			return at.height
		}
		return at.width
	}
	step := 2
	if size == listLines {
		step = 1
	}
	before := measure()
	b.shape.size[size] = max(1, before+sign*n*step)
	b.shape.size[size] = measure()
	return size, b.shape.size[size] != before
}

// resizePane returns the action that makes the pane with the focus larger (by 1) or smaller (by -1).
func resizePane(by int) func(*model, keys.Call) tea.Cmd {
	return func(m *model, c keys.Call) tea.Cmd {
		b := &m.browser
		if size, ok := resize(b, by*max(c.Count, 1)); ok {
			saveSetting(m, sizeSettings[size], strconv.Itoa(b.shape.size[size]))
		} else {
			m.say("there is no room for that")
		}
		return nil
	}
}

// nextLayout changes to the layout that the word of c names, or to the next.
func nextLayout(m *model, c keys.Call) tea.Cmd {
	b := &m.browser
	name, ok := nameOf(m, c, cells.Layouts, b.shape.layout)
	if !ok {
		return nil
	}
	b.shape.layout, b.zoom = name, false
	m.say("layout: %s", b.shape.layout)
	if kinds, _ := visible(b); len(kinds) == 1 && b.width < oneColumn {
		m.say("layout: %s; this screen has room for one pane", b.shape.layout)
	}
	saveSetting(m, layoutSetting, b.shape.layout)
	return nil
}

// saveSetting sets a setting of the screen, at once, and on the disk in the order of the keys.
func saveSetting(m *model, name, value string) {
	m.o.Screen.Set(name, value)
	m.marks.Remember(name, value)
}
