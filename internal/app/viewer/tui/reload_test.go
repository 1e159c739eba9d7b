package tui

import (
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
)

// A theme from the key stays when the file of the look is read again.
func TestReload(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	k.o.Look = cells.ParseLook("look", []byte("color unread 12\n"))
	k.o.Look.Use("", false)
	k.press("T")
	if k.o.Look.Theme != "dark" || k.o.Screen.Get("theme") != "dark" || k.o.Look.Sgr[cells.UnreadText] != "38;5;12" {
		t.Error(k.o.Look.Theme)
	}
	k.press("R")
	k.until("the file of the look", func() bool { return k.o.Look.Sgr[cells.UnreadText] != "38;5;12" })
	if k.o.Look.Theme != "dark" {
		t.Error(k.o.Look.Theme)
	}
}
