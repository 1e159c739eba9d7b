package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
)

// overlays opens each overlay of the reader. An entry is open, with links.
var overlays = map[string]func(k *desk){
	"help":         func(k *desk) { k.press("?") },
	"folders":      func(k *desk) { k.press("g", "d") },
	"order":        func(k *desk) { k.press("s") },
	"links":        func(k *desk) { k.press("b") },
	"downloads":    func(k *desk) { k.downloads.list = []*download{{url: "http://e.example/1"}}; k.press("B") },
	"messages":     func(k *desk) { k.input.keep("a", "b"); k.press("g", "e") },
	"settings":     func(k *desk) { settingsOf("f", []string{"alias\tx"}).show(k.model) },
	"feeds":        func(k *desk) { chooseFeed(k.model, []string{"http://a.example/", "http://b.example/"}, nil) },
	"output":       func(k *desk) { k.line("mark"); k.press("enter"); k.await("second line") },
	"read-node":    func(k *desk) { k.press("C") },
	"open-all":     func(k *desk) { k.press("O") },
	"end":          func(k *desk) { k.downloads.list = []*download{{url: "http://e.example/1"}}; k.press("Q") },
	"unsubscribe":  func(k *desk) { settingsOf("f", nil).unsubscribe(k.model) },
	"picture":      func(k *desk) { k.shown.on = true },
	"half a key":   func(k *desk) { k.press("?", "g") },
	"half a count": func(k *desk) { k.press("b", "3") },
}

// burst presses keys that come in one write.
func (k *desk) burst(text string) {
	k.t.Helper()
	for _, key := range strings.Split(text, "") {
		k.update(tea.KeyPressMsg{Code: []rune(key)[0], Text: key})
	}
}

// With every overlay, a colon opens the command line. Another key closes the overlay, and the rest of
// what was typed ahead does nothing, but a key after a pause does.
func TestTypedAhead(t *testing.T) {
	for name, open := range overlays {
		t.Run(name, func(t *testing.T) {
			d := newPaged(manyLinks())
			k := openPage(t, d, 80, 24)
			k.o.Commands, k.o.Self = fakeCommands{}, []string{"printf", "first line\nsecond line\n"}
			k.until("the mark", func() bool { return k.marks.Len() == 0 })
			open(k)
			covered := func() bool { return k.input.open() || k.shown.on }
			if !covered() {
				t.Fatalf("no overlay:\n%s", k.shows())
			}
			k.burst(":mark --set d")
			if p := k.input.prompt; p == nil || string(p.text) != "mark --set d" || k.input.menu != nil || k.input.question != nil || k.shown.on {
				t.Fatalf("no command line:\n%s", k.shows())
			}
			k.press("esc")
			open(k)
			page := k.browser.page.key
			k.burst("zmdhjr A|")
			if k.marks.Len() > 0 || k.browser.page.key != page || k.browser.focus != keys.PagePane || k.browser.zoom || covered() {
				t.Fatalf("keys of the burst acted: %d changes, and\n%s", k.marks.Len(), k.shows())
			}
			k.burst(":3")
			if p := k.input.prompt; p == nil || string(p.text) != "3" {
				t.Fatalf("no command line in the burst:\n%s", k.shows())
			}
			k.press("esc")
			open(k)
			k.burst("z")
			k.until("the pause", func() bool { return k.input.burst == nil })
			k.burst("m")
			if k.marks.Len() != 1 {
				t.Errorf("a key after the pause does nothing:\n%s", k.shows())
			}
			open(k)
			k.press("esc")
			if strings.HasPrefix(name, "half") {
				k.press("esc")
			}
			k.burst("m")
			k.until("a second mark", func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return len(d.marks) == 3 // with that of the opened entry
			})
		})
	}
}

// A key with several actions that closes an overlay does the first of them only.
func TestSeveralActionsOnOverlay(t *testing.T) {
	d := newPaged(manyLinks())
	k := openPage(t, d, 80, 24)
	k.until("the mark", func() bool { return k.marks.Len() == 0 })
	keys := ParseKeys("test", []byte("x read ; trash\n"))
	keys.Pane, k.o.Keys = k.o.Keys.Pane, keys
	k.press("?", "x")
	if k.input.menu != nil || k.marks.Len() > 0 {
		t.Errorf("%d changes, and\n%s", k.marks.Len(), k.shows())
	}
}
