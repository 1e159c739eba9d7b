package tui

import (
	"errors"
	"strings"
	"testing"
)

// Subscriptions are changed by lektor-fetch, with secrets on its standard input, and undone in the order of the
// changes, as marks are.
func TestSubscriptions(t *testing.T) {
	d := &fetches{newMemory(3), make(chan *fetcherRun)}
	close(d.gate)
	k := newDesk(t, d, 120, 24)
	k.await("Title 02")
	typed := func(text string) {
		t.Helper()
		k.press(append(strings.Split(text, ""), "enter")...)
	}

	// A page with several feeds.
	k.press("+")
	typed("http://x.example")
	typed("Tech|My/News")
	args := "add --progress --category=Tech --category=My/News -"
	r := d.run(k, args, "http://x.example\n")
	r.line("feed\thttp://x.example/a\tA")
	r.line("feed\thttp://x.example/b\tB")
	r.messages = []string{"http://x.example/: links to several feeds:", "http://x.example/a (A)", "http://x.example/b (B)", "hint: add the one you want"}
	r.ended <- errors.New("exit status 1")
	k.await("the page has several feeds")
	k.press("j", "enter")
	r = d.run(k, args, "http://x.example/b\n")
	r.line("subscribed\tb00b")
	r.line("done\thttp://x.example/b: subscribed (B), 2 entries")
	r.messages = []string{"warning: line 1"}
	r.ended <- nil
	k.await("http://x.example/b: subscribed (B), 2 entries; warning: line 1")

	// lektor-fetch is asked for the settings of the feed, and prints them.
	asked := func(lines ...string) {
		t.Helper()
		r := d.run(k, "set --raw f", "")
		for _, line := range lines {
			r.line(line)
		}
		r.ended <- nil
	}
	// The menu of the settings opens.
	menu := func(lines ...string) {
		t.Helper()
		k.press("e")
		asked(lines...)
		k.await("the settings of the feed")
	}
	changed := func(in string) {
		t.Helper()
		d.run(k, "set f -", in).ended <- nil
		k.await("changed; u undoes it")
	}
	undone := func(n int) {
		t.Helper()
		k.press("u")
		k.until("undo", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.marks) == n && d.marks[n-1] == "undo"
		})
		k.await("taken back")
	}

	// A mark, and then a setting with a secret.
	k.press("l", "m")
	k.until("the mark", k.settled)
	menu("url\thttp://f.example/", "alias\tMine", "headers\tX: secret")
	if s := k.shows(); strings.Contains(s, "secret") || !strings.Contains(s, "alias  Mine") {
		t.Errorf("%s", s)
	}
	k.press("enter")
	typed("!")
	changed("alias\tMine!\n")
	undone(2)

	// Unset.
	menu("url\thttp://f.example/", "interval\t4h")
	k.press("j", "j", "enter", "ctrl+u", "enter")
	d.run(k, "set --unset f interval", "").ended <- nil
	k.await("changed; u undoes it")

	// Unsubscribe.
	menu("url\thttp://f.example/", "headers\tX: secret")
	k.press("G", "enter", "y")
	d.run(k, "rm f", "").ended <- nil
	k.await("unsubscribed; u undoes it")
	undone(3)
	undone(4)
}
