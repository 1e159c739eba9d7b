package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

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

// nameOf returns the word of an action, or the name after the present one. If there is no such name, it returns the
// message about that.
func (a *appearance) nameOf(g part.Given, names []string, now string) (name string, refusal part.Effects) {
	name = names[cells.Wrap(slices.Index(names, now)+1, len(names))]
	if len(g.Words) > 0 {
		name = g.Words[0]
	}
	if !slices.Contains(names, name) {
		return "", a.Say("there is no %s %s; there are %s", g.Action, name, strings.Join(names, ", "))
	}
	return name, nil
}

// wider makes the pane with the focus larger.
func (a *appearance) wider(g part.Given) part.Effects { return a.resize(max(g.Count, 1)) }

// narrower makes the pane with the focus smaller.
func (a *appearance) narrower(g part.Given) part.Effects { return a.resize(-max(g.Count, 1)) }

func (a *appearance) resize(steps int) part.Effects {
	size, ok := a.layout.resize(steps)
	if !ok {
		return a.Say("there is no room for that")
	}
	return part.Effects{part.Remember{Name: sizeSettings[size], Value: strconv.Itoa(a.layout.shape.size[size])}}
}

// nextLayout changes to the layout that the word of the action names, or to the next.
func (a *appearance) nextLayout(g part.Given) part.Effects {
	y := a.layout
	name, refusal := a.nameOf(g, cells.Layouts, y.shape.layout)
	if refusal != nil {
		return refusal
	}
	y.shape.layout, y.zoom = name, false
	said := a.Say("layout: %s", name)
	if kinds, _ := y.visible(); len(kinds) == 1 && y.width < oneColumn {
		said = a.Say("layout: %s; this screen has room for one pane", name)
	}
	return append(said, part.Remember{Name: layoutSetting, Value: name})
}

// nextTheme changes to the theme that the word of the action names, or to the next.
func (a *appearance) nextTheme(g part.Given) part.Effects {
	if a.o.NoColor {
		return a.Say("there are no themes without colours")
	}
	name, refusal := a.nameOf(g, cells.Themes, a.o.Look.Theme)
	if refusal != nil {
		return refusal
	}
	a.o.Look.Use(name, false)
	return append(a.Say("theme: %s", name), part.Remember{Name: themeSetting, Value: name})
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
	a.layout.shape = newShape(a.o.Screen, look.Layout)
}
