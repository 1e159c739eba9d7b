package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Subscriptions are changed by lektor-fetch, with secrets on its standard input, and the last
// change of flags or of a subscription is taken back first.
func TestSubscriptions(t *testing.T) {
	d := &fetches{newMemory(3), make(chan *fetcherRun)}
	close(d.gate)
	k := newDesk(t, d, 120, 24)
	k.await("Title 02")
	typed := func(text string) {
		t.Helper()
		k.press(append(strings.Split(text, ""), "enter")...)
	}
	k.fetching.timer++ // no timer

	// A page with several feeds.
	k.press("+")
	typed("http://x.example")
	typed("Tech|My/News")
	args := "add --progress --category=Tech --category=My/News -"
	listed := func(hashes ...string) {
		t.Helper()
		r := d.run(k, "ls -o hash", "")
		for _, hash := range hashes {
			r.line(hash)
		}
		r.ended <- nil
	}
	listed()
	r := d.run(k, args, "http://x.example\n")
	r.messages = []string{"http://x.example/: links to several feeds:", "http://x.example/a (A)", "http://x.example/b (B)", "hint: add the one you want"}
	r.ended <- errors.New("exit status 1")
	listed()
	k.await("the page has several feeds")
	k.press("j", "enter")
	listed()
	r = d.run(k, args, "http://x.example/b\n")
	r.line("subscribed\tb00b")
	r.messages = []string{"warning: line 1", "http://x.example/b: subscribed (B), 2 entries"}
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
	changed := func(in string, before ...string) {
		t.Helper()
		asked(before...) // again, as they may have changed
		d.run(k, "set f -", in).ended <- nil
		k.await("changed; u undoes it")
	}
	undone := func(in string) {
		t.Helper()
		k.press("u")
		d.run(k, "set --force f -", in).ended <- nil
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
	changed("alias\tMine!\n", "url\thttp://f.example/", "alias\tMine", "headers\tX: secret")

	// A URL that a document had named comes back with the document.
	menu("url\thttp://f.example/", "origin\thttp://page.example/")
	k.press("j", "j", "j", "j", "j", "j", "j", "j", "enter")
	typed("2")
	changed("url\thttp://f.example/2\n", "url\thttp://f.example/", "origin\thttp://page.example/")
	undone("url\thttp://f.example/\norigin\thttp://page.example/\n")

	// A later command of another program is taken back before a setting.
	menu("url\thttp://f.example/")
	k.press("j", "enter")
	typed("Tech")
	changed("categories\tTech\n", "url\thttp://f.example/")
	if _, err := d.move(d.refs[:1], "F", ""); err != nil {
		t.Fatal(err)
	}
	marks := func(n int) {
		t.Helper()
		k.press("u")
		k.until("undo of a mark", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.marks) == n && d.marks[n-1] == "undo"
		})
	}
	marks(3)
	k.press("u")
	d.run(k, "set --unset f categories", "").ended <- nil
	k.await("the last change of a subscription was taken back")

	// Unsubscribe.
	menu("url\thttp://f.example/", "headers\tX: secret")
	k.press("G", "enter", "y")
	asked("url\thttp://f.example/", "headers\tX: new\tsecret", "interval\t") // again, as they may have changed
	r = d.run(k, "rm f", "")
	r.ended <- nil
	k.await("unsubscribed; u undoes it")

	// Undo, in the reverse order. A failure can be tried again, and after two the next undo passes it.
	in := "url\thttp://f.example/\nheaders\tX: new\tsecret\ninterval\t\n"
	for range 2 {
		k.press("u")
		r = d.run(k, "set --force f -", in)
		r.messages = []string{"another process has locked the feed"}
		r.ended <- errors.New("exit status 1")
		k.await("another process has locked the feed")
	}
	undone("alias\tMine\n")
	undone(in)
	marks(4)
	k.press("u")
	r = d.run(k, "rm b00b", "")
	r.ended <- nil
	k.until("all is taken back", func() bool { return k.marks.undos.last() == nil })
}

// Words with bars stay whole in a line.
func TestWordsWithBars(t *testing.T) {
	for _, words := range [][]string{{"a"}, {"Authorization: Bearer 1|abc", "X: y"}, {`a\|b`, `c\`, "|"}} {
		if got := splitWords(joinWords(words)); !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
	}
	if got := splitWords(" Tech|My/News | "); !slices.Equal(got, []string{"Tech", "My/News"}) {
		t.Errorf("%q", got)
	}
}
