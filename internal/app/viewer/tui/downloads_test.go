package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
)

// Two downloads run at a time, each from another host. The others wait. d cancels one or removes
// it, and the reader asks before it ends.
func TestDownloads(t *testing.T) {
	d := newPaged(page.Entry{Text: "text", Enclosures: []string{
		"http://a.example/1.mp3", "http://A.example/2.mp3", "http://b.example/3.mp3", "http://c.example/4.mp3",
	}})
	k := openPage(t, d, 100, 24)
	k.until("the mark", func() bool { return k.browser.marks.Len() == 0 })
	d.hold() // no download ends
	k.press("D")
	k.await("download to: ~/Podcasts")
	k.press("enter", "B")
	states := func(want string) {
		t.Helper()
		k.until(want, func() bool {
			got := ""
			for _, d := range k.work.Downloads.List {
				got += string("wrsfc"[d.State])
			}
			return got == want
		})
	}
	states("rwrw")
	k.until("the progress", func() bool {
		return strings.Count(k.shows(), "25% of 200 bytes") == 2 && strings.Count(k.shows(), "waiting") == 2
	})
	k.press("j", "j", "d") // cancels the third
	states("rwcr")
	k.press("d")
	states("rwr")
	k.press("esc", "q", "q", "q")
	k.await("3 downloads are not complete; end anyway? (y/n)")
	k.press("n")
	close(d.gate)
	states("sss")
	k.press("B", "enter")
	k.await("would play ~/Podcasts/file")
	for range 5 { // two more than there are downloads, without a draw
		k.start(k.apply(k.prompt.MenuKey(keys.Call{Action: "trash"})))
	}
	if len(k.work.Downloads.List) != 0 || k.prompt.Menu == nil {
		t.Errorf("%v, menu %v", k.work.Downloads.List, k.prompt.Menu)
	}
}

// An entry is saved under the offered name, or another one. Before a file is replaced, the reader
// asks.
func TestSaveEntry(t *testing.T) {
	d := newPaged(page.Entry{Text: "text"})
	k := openPage(t, d, 100, 24)
	k.press("w")
	k.await("save entry as: ~/x.txt")
	k.press("enter")
	k.await("saved as ~/x.txt")
	k.press("w")
	k.await("save entry as: ~/x.txt")
	k.press("enter")
	k.await("~/x.txt exists already; replace it? (y/n)")
	k.press("n")
	if n := strings.Count(strings.Join(d.marks, " "), "save ~/x.txt"); n != 1 {
		t.Fatalf("saved %d times", n)
	}
	k.press("w")
	k.await("save entry as: ~/x.txt")
	k.press("enter")
	k.await("replace it?")
	k.update(tea.WindowSizeMsg{Width: 30, Height: 20})
	k.await("ace it? (y/n)")
	k.press("y")
	k.await("saved as ~/x.txt")
}
