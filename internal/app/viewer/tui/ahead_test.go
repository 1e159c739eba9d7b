package tui

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
)

// overlays opens each overlay of the reader. An entry is open, with links.
var overlays = map[string]func(k *desk){
	"help":         func(k *desk) { k.press("?") },
	"folders":      func(k *desk) { k.press("g", "d") },
	"order":        func(k *desk) { k.press("s") },
	"links":        func(k *desk) { k.press("b") },
	"downloads":    func(k *desk) { k.work.Downloads.List = []*work.Download{{URL: "http://e.example/1"}}; k.press("B") },
	"messages":     func(k *desk) { k.prompt.Keep("a", "b"); k.press("g", "e") },
	"settings":     func(k *desk) { k.press("e"); k.await("the settings of the feed") },
	"feeds":        func(k *desk) { k.press("+", "x", "enter", "enter"); k.await("the page has several feeds") },
	"output":       func(k *desk) { k.line("mark"); k.press("enter"); k.await("second line") },
	"read-node":    func(k *desk) { k.press("C") },
	"open-all":     func(k *desk) { k.press("O") },
	"end":          func(k *desk) { k.work.Downloads.List = []*work.Download{{URL: "http://e.example/1"}}; k.press("Q") },
	"unsubscribe":  func(k *desk) { k.press("e"); k.await("the settings of the feed"); k.press("G", "enter") },
	"picture":      func(k *desk) { k.pictures.On = true },
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
			d.fetcher = func(args []string, line func(string)) error {
				if args[0] == "set" {
					line("alias\tx")
					return nil
				}
				line("feed\thttp://a.example/\tA")
				line("feed\thttp://b.example/\tB")
				return errors.New("several feeds")
			}
			k := openPage(t, d, 80, 24)
			k.o.Commands, k.o.Self = fakeCommands{}, []string{"printf", "first line\nsecond line\n"}
			k.until("the mark", func() bool { return k.browser.marks.Len() == 0 })
			open(k)
			covered := func() bool { return k.prompt.Open() || k.pictures.On }
			if !covered() {
				t.Fatalf("no overlay:\n%s", k.shows())
			}
			k.burst(":mark --set d")
			if p := k.prompt.Line; p == nil || string(p.Text) != "mark --set d" || k.prompt.Menu != nil || k.prompt.Question != nil || k.pictures.On {
				t.Fatalf("no command line:\n%s", k.shows())
			}
			k.press("esc")
			open(k)
			page := k.browser.page.Key
			k.burst("zmdhjr A|")
			if k.browser.marks.Len() > 0 || k.browser.page.Key != page || k.browser.Focus != keys.PagePane || k.browser.Zoom || covered() {
				t.Fatalf("keys of the burst acted: %d changes, and\n%s", k.browser.marks.Len(), k.shows())
			}
			k.burst(":3")
			if p := k.prompt.Line; p == nil || string(p.Text) != "3" {
				t.Fatalf("no command line in the burst:\n%s", k.shows())
			}
			k.press("esc")
			open(k)
			k.burst("z")
			k.until("the pause", func() bool { return !k.prompt.IsQuiet() })
			k.burst("m")
			if k.browser.marks.Len() != 1 {
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
	k.until("the mark", func() bool { return k.browser.marks.Len() == 0 })
	keys := ParseKeys("test", []byte("x read ; trash\n"))
	keys.Pane, k.o.Keys = k.o.Keys.Pane, keys
	k.press("?", "x")
	if k.prompt.Menu != nil || k.browser.marks.Len() > 0 {
		t.Errorf("%d changes, and\n%s", k.browser.marks.Len(), k.shows())
	}
}
