package tui

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/files/values"
)

// listLines is the size of the list in the stacked layout. The others are columns of a pane.
const listLines = 2

// sizeSettings are the names of the sizes in the settings of the screen.
var sizeSettings = [...]string{keys.FeedsPane: "feeds-width", keys.ListPane: "list-width", listLines: "list-height"}

// layoutSetting is the name of the layout in the settings of the screen.
const layoutSetting = "layout"

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

// layout is where the panes are.
type layout struct {
	focus         keys.Pane
	zoom          bool
	screen        *values.Values // has the layout and the sizes that the user chose
	usual         string         // the layout, if the user chose none
	width, height int            // size of the screen in cells
	textMost      int            // maximum columns of the text of an entry
	single        bool           // only the pane that has the focus is shown
	reading       func() bool    // an entry is open
}

// arrangement returns the name of the layout.
func (y *layout) arrangement() string {
	if name := y.screen.Get(layoutSetting); slices.Contains(cells.Layouts, name) {
		return name
	}
	return cmp.Or(y.usual, cells.AutoLayout)
}

// size returns a size that the user chose, 0 for the usual one.
func (y *layout) size(i int) int { return max(0, y.screen.Int(sizeSettings[i])) }

// paneAt is a pane on the screen. Its title is on line y, and its lines are below the title.
type paneAt struct {
	kind                keys.Pane
	x, y, width, height int
}

// usualFeeds returns the columns of the feeds if the user chose none.
func usualFeeds(width int) int { return max(16, min(width/4, 34)) }

// visible returns the visible panes from left to right, and whether the last two are stacked. The
// pane that has the focus is always visible.
func (y *layout) visible() (kinds []keys.Pane, stacked bool) {
	w, feeds, zoom := y.width, usualFeeds(y.width), y.zoom || y.single
	three := []keys.Pane{keys.FeedsPane, keys.ListPane, keys.PagePane}
	switch layout := y.arrangement(); {
	case !zoom && layout == cells.StackedLayout && w < oneColumn && y.lines() >= narrowLines &&
		y.focus != keys.FeedsPane:
		return three[1:], true
	case zoom || w < oneColumn:
		return []keys.Pane{y.focus}, false
	case layout == cells.StackedLayout && y.lines() > 3*leastLines:
		return three, true
	case layout == "three" &&
		w >= leastColumns[keys.FeedsPane]+leastColumns[keys.ListPane]+leastColumns[keys.PagePane]+2:
		return three, false
	case layout != cells.AutoLayout:
		// the entry is beside the list, if it has its least columns
		feeds, w = w, w+wantText-leastColumns[keys.PagePane]
	}
	switch {
	case y.focus != keys.PagePane && (!y.reading() || w < feeds+wantList+wantText+2):
		return three[:2], false
	case w >= feeds+wantList+wantText+2:
		return three, false
	case w >= wantList+wantText+1:
		return three[1:], false
	}
	return []keys.Pane{y.focus}, false
}

// panes returns the visible panes from left to right, with one column between two of them.
func (y *layout) panes() []paneAt {
	kinds, stacked := y.visible()
	columns := kinds
	if stacked {
		columns = kinds[:len(kinds)-1]
	}
	var panes []paneAt
	x := 0
	for i, kind := range columns {
		width := y.width - x
		rest := width // without the least columns of the panes to the right
		for _, right := range columns[i+1:] {
			rest -= leastColumns[right] + 1
		}
		usual := [...]int{usualFeeds(y.width), wantList, 0}[kind]
		if i == 1 && len(columns) == 3 {
			usual = max(wantList, min((y.width-panes[0].width)*2/5, 70))
		}
		if i < len(columns)-1 {
			width = fitInto(cmp.Or(y.size(int(kind)), usual), leastColumns[kind], rest)
		}
		panes = append(panes, paneAt{kind, x, 0, width, y.lines()})
		x += width + 1
	}
	if stacked {
		list := &panes[len(panes)-1]
		lines := list.height - 1 // without the title of the entry
		list.height = fitInto(cmp.Or(y.size(listLines), lines*2/5), leastLines, lines-leastLines)
		panes = append(panes, paneAt{keys.PagePane, list.x, list.height + 1, list.width, lines - list.height})
	}
	return panes
}

func fitInto(n, least, most int) int { return max(least, min(n, most)) }

// lines returns the number of lines between the first and the last one of the screen.
func (y *layout) lines() int { return max(1, y.height-2) }

// linesOf returns the number of lines of a pane.
func (y *layout) linesOf(kind keys.Pane) int {
	for _, p := range y.panes() {
		if p.kind == kind {
			return max(1, p.height)
		}
	}
	return y.lines()
}

// textWidth returns the columns of the text of an entry, 0 if its pane is not visible.
func (y *layout) textWidth() int {
	for _, p := range y.panes() {
		if p.kind == keys.PagePane {
			return max(10, min(p.width-2, y.textMost))
		}
	}
	return 0
}

// resize makes the pane with the focus n steps larger, at the cost of its neighbour. It returns the name of the
// size that it changed, and whether there was room.
func (y *layout) resize(n int) (name string, ok bool) {
	kinds, stacked := y.visible()
	if len(kinds) == 1 {
		return "", false
	}
	of, sign, step := y.focus, 1, 2
	if of == kinds[len(kinds)-1] {
		of, sign = kinds[len(kinds)-2], -1
	}
	size := int(of)
	if stacked && of == keys.ListPane {
		size, step = listLines, 1
	}
	measure := func() int {
		at := y.panes()[slices.Index(kinds, of)]
		if size == listLines {
			return at.height
		}
		return at.width
	}
	before := measure()
	name = sizeSettings[size]
	set := func(n int) { y.screen.Set(name, strconv.Itoa(max(1, n))) }
	set(before + sign*n*step)
	set(measure())
	return name, measure() != before
}

// appearance changes the look of the screen, and the layout.
type appearance struct {
	*part.Env
	o      *Options
	layout *layout
	read   func(ctx context.Context, typed string) (*cells.Look, error)
	typed  string // lines that the user typed to change the look
}

// themeSetting is the name of the theme in the settings of the screen.
const themeSetting = "theme"

// next uses and remembers the name in the word of an action, or the name after the present one.
func (a *appearance) next(g part.Given, names []string, now string, use func(name string) part.Effects) part.Effects {
	name := names[cells.Wrap(slices.Index(names, now)+1, len(names))]
	if len(g.Words) > 0 {
		name = g.Words[0]
	}
	if !slices.Contains(names, name) {
		return a.Say("there is no %s %s; there are %s", g.Action, name, strings.Join(names, ", "))
	}
	return append(use(name), part.Remember{Name: g.Action, Value: name})
}

// resize makes the pane with the focus larger by steps.
func (a *appearance) resize(steps int) part.Effects {
	size, ok := a.layout.resize(steps)
	if !ok {
		return a.Say("there is no room for that")
	}
	return part.Effects{part.Remember{Name: size, Value: a.o.Screen.Get(size)}}
}

// nextLayout changes to the layout that the word of the action names, or to the next.
func (a *appearance) nextLayout(g part.Given) part.Effects {
	y := a.layout
	return a.next(g, cells.Layouts, y.arrangement(), func(name string) part.Effects {
		y.screen.Set(layoutSetting, name)
		y.zoom = false
		if kinds, _ := y.visible(); len(kinds) == 1 && y.width < oneColumn {
			return a.Say("layout: %s; this screen has room for one pane", name)
		}
		return a.Say("layout: %s", name)
	})
}

// nextTheme changes to the theme that the word of the action names, or to the next.
func (a *appearance) nextTheme(g part.Given) part.Effects {
	if a.o.NoColor {
		return a.Say("there are no themes without colours")
	}
	return a.next(g, cells.Themes, a.o.Look.Theme, func(name string) part.Effects {
		a.o.Look.Use(name, false)
		return a.Say("theme: %s", name)
	})
}

// typeLine adds a line to that of the look, until the reader ends.
func (a *appearance) typeLine(g part.Given) part.Effects {
	line := g.Action + " " + strings.Join(g.Words, " ")
	if err := new(cells.Look).Line(line); err != nil {
		return a.Fail(err)
	}
	a.typed += "\n" + line
	return a.reload()
}

// reload reads the file of the look again.
func (a *appearance) reload() part.Effects {
	typed := a.typed
	return part.Background(func() part.Effects {
		look, err := a.read(a.Ctx, typed)
		return part.Effects{part.Then(func() part.Effects {
			if err != nil {
				return a.Fail(err)
			}
			a.use(look)
			if len(look.Errs) > 0 {
				return a.Fail(look.Errs[0])
			}
			return nil
		})}
	})
}

// use shows a look.
func (a *appearance) use(look *cells.Look) {
	a.o.Look = look
	look.Use(a.o.Screen.Get(themeSetting), a.o.NoColor)
	a.layout.usual = look.Layout
}
