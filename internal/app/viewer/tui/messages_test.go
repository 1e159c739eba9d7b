package tui

import (
	"errors"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// A failure keeps its cause on a narrow screen, and a key shows every message whole: of a
// subscription, of a fetch and of a key, newest first.
func TestMessages(t *testing.T) {
	d := &fetches{newMemory(3), make(chan *fetcherRun)}
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	k.press("g", "e")
	k.await("there were no messages")
	k.press("+")
	k.press(strings.Split("http://127.0.0.1:18473/feeds/of/a/site.xml", "")...)
	k.press("enter", "enter")
	r := d.run(k, "add --progress -", "http://127.0.0.1:18473/feeds/of/a/site.xml\n")
	r.messages = []string{"http://127.0.0.1:18473/feeds/of/a/site.xml: the server answered 404 Not Found", "hint: check the address, or give that of a page that links to the feed"}
	r.ended <- errors.New("exit status 1")
	k.until("the failure", func() bool { return k.status.Bad })
	if s := k.shows(); !strings.Contains(s, "404 Not Found") || !strings.Contains(s, "http://127.0.0.1:18473/") {
		t.Errorf("the cause is cut off:\n%s", s)
	}
	whole := func(want ...string) {
		t.Helper()
		k.press("g", "e")
		s := strings.ReplaceAll(strings.Join(strings.Fields(k.shows()), " "), "\n", "")
		last := -1
		for _, w := range want {
			at := strings.Index(s, w)
			if at <= last {
				t.Errorf("%q is missing, or not in order:\n%s", w, k.shows())
			}
			last = at
		}
		k.press("q")
	}
	whole("site.xml: the server answered 404 Not Found; hint: check the address, or give that of a page that links to the feed")
	k.fail(cmdline.Hint(errors.New(strings.Repeat("long ", 15)+"cause"), "set the variable"))
	if s := k.shows(); !strings.Contains(s, "cause") || strings.Contains(s, "variable") {
		t.Errorf("%s", s)
	}
	k.press("U")
	r = d.run(k, "update --progress -a", "")
	r.line("done\t7 feeds: 5 fetched, 2 failed; 1 new entry")
	r.messages = []string{"http://a.example/" + strings.Repeat("long/", 9) + ": the server answered 404 Not Found", "http://b.example/: refused"}
	r.ended <- errors.New("exit status 1")
	k.await("404 Not Found")
	k.press("l", "M")
	k.press(strings.Split(strings.Repeat("?", 90), "")...)
	k.press("enter")
	whole(strings.Repeat("?", 9), "long/: the server answered 404", "b.example/: refused", "check the address")
}
