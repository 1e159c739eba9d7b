package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/lektordir"
)

// paged is a disk whose entries have this page.
type paged struct {
	*memory
	page page.Entry
}

func (d *paged) Page(context.Context, lektordir.Ref, int, bool) (*page.Entry, error) {
	return &d.page, nil
}

// openPage opens an entry with this page.
func openPage(t *testing.T, d Disk, columns, lines int) *desk {
	t.Helper()
	k := newDesk(t, d, columns, lines)
	k.until("the list", func() bool { return len(k.browser.list.Items) == 3 })
	k.press("l", "enter")
	k.until("the page", func() bool { return k.browser.page.Entry != nil })
	return k
}

func newPaged(entry page.Entry) *paged {
	d := &paged{newMemory(3), entry}
	close(d.gate)
	return d
}

// A search in an entry moves between its matches. Esc ends it, and n moves to unread entries again.
func TestFind(t *testing.T) {
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "line %d\n", i)
		if i%20 == 3 {
			text.WriteString("a STRASSE and a Straße\n")
		}
	}
	k := openPage(t, newPaged(page.Entry{Header: []string{"Title: x"}, Text: text.String()}), 80, 12)
	first := k.browser.page.Ref
	type step struct{ key, says, seen string }
	for _, s := range []step{
		{"enter", "match 1 of 6", "\x1b[1;7mSTRASSE\x1b[m and a \x1b[7mStraße\x1b[m"},
		{"n", "match 2 of 6", "\x1b[7mSTRASSE\x1b[m and a \x1b[1;7mStraße\x1b[m"},
		{"n", "match 3 of 6", "line 24"},
		{"N", "match 2 of 6", "line 4"},
		{"N", "match 1 of 6", ""},
		{"N", "match 6 of 6, around the end of the text", "line 44"},
		{"n", "match 1 of 6, around the end of the text", "line 4"},
	} {
		if s.key == "enter" {
			k.press("/", "s", "t", "r", "a", "S", "S", "e")
		}
		k.press(s.key)
		if v := k.View().Content; !strings.Contains(v, s.says) || !strings.Contains(v, s.seen) {
			t.Fatalf("%s: no %q and %q in\n%s", s.key, s.says, s.seen, v)
		}
	}
	k.press("esc")
	if v := k.View().Content; strings.Contains(v, "\x1b[7mSTRASSE") || k.browser.Focus != keys.PagePane {
		t.Fatalf("not ended:\n%s", v)
	}
	k.press("n")
	if k.browser.page.Ref == first {
		t.Error("n did not move to the next unread entry")
	}
	k.until("the page", func() bool { return k.browser.page.Entry != nil })
	k.press("/", "z", "enter")
	if s := k.shows(); !strings.Contains(s, "z is not in the text") {
		t.Errorf("%s", s)
	}
}
