package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/scene"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// drawn returns the names of the visible panes with their sizes, and fails if a line of the screen
// is not as wide as the screen, or the pane with the focus is not visible.
func drawn(t *testing.T, k *desk) string {
	t.Helper()
	b := &k.browser
	lines := strings.Split(k.shows(), "\n")
	for _, l := range lines {
		if n := termsafe.Width(l); n != b.Width || len(lines) != b.Height {
			t.Fatalf("%dx%d, %s, focus %d: %d lines, %d columns: %q", b.Width, b.Height, b.Arrangement(), b.Focus, len(lines), n, l)
		}
	}
	var names []string
	focus := false
	for _, p := range b.Panes() {
		names = append(names, fmt.Sprintf("%s %dx%d", keys.Panes[p.Kind], p.Width, p.Height))
		focus = focus || p.Kind == b.Focus
	}
	if !focus {
		t.Fatalf("%dx%d, %s: pane %d is not in %q", b.Width, b.Height, b.Arrangement(), b.Focus, names)
	}
	return strings.Join(names, ", ")
}

// Each layout at each size, with an entry open that has the focus.
func TestLayouts(t *testing.T) {
	d := newMemory(30)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 29")
	k.press("l", "enter")
	k.await("word")
	for _, c := range []struct {
		width, height int
		want          [4]string // by layout
	}{
		{40, 15, [4]string{"entry 40x13", "entry 40x13", "entry 40x13", "entry 40x13"}},
		{40, 30, [4]string{"entry 40x28", "entry 40x28", "entry 40x28", "list 40x10, entry 40x17"}},
		{80, 24, [4]string{"entry 80x22", "list 30x22, entry 49x22", "feeds 18x22, list 20x22, entry 40x22", "feeds 20x22, list 59x8, entry 59x13"}},
		{200, 50, [4]string{"feeds 34x48, list 66x48, entry 98x48", "list 30x48, entry 169x48", "feeds 34x48, list 66x48, entry 98x48", "feeds 34x48, list 165x18, entry 165x29"}},
	} {
		k.update(tea.WindowSizeMsg{Width: c.width, Height: c.height})
		for i := range cells.Layouts {
			if got := drawn(t, k); k.browser.Arrangement() != cells.Layouts[i] || got != c.want[i] {
				t.Errorf("%dx%d, %s: %s, not %s", c.width, c.height, k.browser.Arrangement(), got, c.want[i])
			}
			for _, focus := range []keys.Pane{keys.FeedsPane, keys.ListPane, keys.PagePane} {
				k.browser.Focus = focus
				for _, key := range []string{">", "<"} {
					k.press("9", "9", key)
					drawn(t, k)
				}
				for _, name := range scene.SizeSettings {
					k.o.Screen.Set(name, "")
				}
			}
			k.press("v")
		}
	}
}

// Sizes and the layout are remembered, and used at the next start. The keys page by the height of
// the pane, and the mouse finds it.
func TestLayoutRemembered(t *testing.T) {
	d := newMemory(60)
	d.screen = values.New('=')
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 59")
	k.press("v", "v", "v", ">", ">", "l", ">", "3", ">")
	if got, want := drawn(t, k), "feeds 24x22, list 55x12, entry 55x9"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	k.until("saving", func() bool { return k.browser.marks.Len() == 0 })
	if got, want := string(d.screen.Text()), "feeds-width=24\nlayout=stacked\nlist-height=12\n"; strings.Join(slices.Sorted(strings.Lines(got)), "") != want {
		t.Errorf("%q", got)
	}
	if b := (scene.Layout{Screen: d.screen}); b.Arrangement() != "stacked" || b.Size(0) != 24 || b.Size(1) != 0 || b.Size(2) != 12 {
		t.Errorf("%+v", b)
	}
	k.press("J", "enter")
	k.await("word")
	k.update(tea.MouseClickMsg{X: 30, Y: 5, Button: tea.MouseLeft})
	k.await("word")
	if b := &k.browser; b.Focus != keys.ListPane || b.list.At != 4 {
		t.Errorf("focus %d, line %d", b.Focus, b.list.At)
	}
	k.update(tea.MouseWheelMsg{X: 30, Y: 15, Button: tea.MouseWheelDown})
	if got := k.browser.page.Y; got != 3 {
		t.Errorf("text at %d", got)
	}
	k.browser.Focus = keys.PagePane
	k.press("space")
	if got := k.browser.page.Y; got != 11 {
		t.Errorf("text at %d", got)
	}
	d.screen = values.Parse([]byte("layout=sideways\nlist-width=-3\nfeeds-width=x\n"), '=')
	if b := (scene.Layout{Screen: d.screen}); b.Arrangement() != cells.AutoLayout || b.Size(0) != 0 || b.Size(1) != 0 {
		t.Errorf("%+v", b)
	}
}

// The style of a line ends with the line, also if the cursor has none.
func TestCursorWithoutStyle(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	k.o.Look = cells.ParseLook("look", []byte("color cursor-away none\n"))
	k.o.Look.Use("default", false)
	text := k.scene().Paint()
	if begun, ended := strings.Count(text, "\x1b["), strings.Count(text, "\x1b[m"); ended == 0 || begun != 2*ended {
		t.Errorf("%d styles begin or end, and %d end", begun, ended)
	}
}
