package tui

import (
	"context"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/scene"
)

// appearance changes the look of the screen, and the layout.
type appearance struct {
	*part.Env
	o       *Options
	browser *browser
	read    func(ctx context.Context, typed string) (*cells.Look, error)
	typed   string // lines that the user typed to change the look
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
	a.browser.marks.Remember(g.Action, name)
	return use(name)
}

// resize makes the pane with the focus larger by steps.
func (a *appearance) resize(steps int) part.Effects {
	size, ok := a.browser.Resize(steps)
	if !ok {
		return a.Say("there is no room for that")
	}
	a.browser.marks.Remember(size, a.o.Screen.Get(size))
	return nil
}

// nextLayout changes to the layout that the word of the action names, or to the next.
func (a *appearance) nextLayout(g part.Given) part.Effects {
	y := &a.browser.Layout
	return a.next(g, cells.Layouts, y.Arrangement(), func(name string) part.Effects {
		y.Zoom = false
		if kinds, _ := y.Visible(); len(kinds) == 1 && y.Width < scene.OneColumn {
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
	a.browser.Usual = look.Layout
}
