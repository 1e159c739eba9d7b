package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/read/catalog"
)

// empty is a lektor-dir without feeds.
type empty struct{ *memory }

func (empty) Now(context.Context, catalog.Part) (*catalog.Snapshot, error) {
	return &catalog.Snapshot{}, nil
}

// titled is a lektor-dir with feeds of these titles in these folders, without entries.
type titled struct {
	*memory
	feeds []tree.Feed
}

func (d titled) Now(ctx context.Context, _ catalog.Part) (*catalog.Snapshot, error) {
	return d.names.now(ctx, d)
}

func (d titled) Feeds(context.Context) ([]tree.Feed, error) { return d.feeds, nil }

// An empty screen says which key goes on: to subscribe, or to show read entries.
func TestEmptyLists(t *testing.T) {
	d := newMemory(0)
	close(d.gate)
	k := newDesk(t, empty{d}, 80, 24)
	k.await("no feeds: + subscribes to one")
	k.o.NoFetcher = errors.New("there is no lektor-fetch")
	if s := k.shows(); strings.Contains(s, "no feeds") || !strings.Contains(s, "nothing unread: a shows read entries") {
		t.Errorf("%s", s)
	}
	d = newMemory(2)
	close(d.gate)
	k = newDesk(t, d, 80, 24)
	k.await("Title 01")
	if s := k.shows(); !strings.Contains(s, "a all") {
		t.Errorf("%s", s)
	}
	k.press("a")
	k.await("read and unread entries")
	if s := k.shows(); strings.Contains(s, "  a all") {
		t.Errorf("%s", s)
	}
}

// All entries of several feeds are marked as read only after a question.
func TestReadAllAsks(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	k.press("l", "A")
	if s := k.shows(); !strings.Contains(s, "mark 3 entries of All as read? (y/n)") {
		t.Fatalf("%s", s)
	}
	k.press("n", "h", "j", "j", "l") // a folder
	k.until("the folder", func() bool { return k.browser.list.Complete && k.browser.list.Spec.Of.Kind == tree.FolderNode })
	k.press("A")
	if s := k.shows(); !strings.Contains(s, "mark 3 entries of News as read? (y/n)") || k.browser.marks.Len() > 0 {
		t.Fatalf("%s", s)
	}
	k.press("y")
	k.await("3 entries marked as read")
}

// Names sort by the values of their numbers, and folders complete by Tab where folders are asked for.
func TestNames(t *testing.T) {
	d := newMemory(0)
	close(d.gate)
	folders := func(names ...string) []string { return names }
	k := newDesk(t, titled{d, []tree.Feed{
		{Hash: "a", Title: "1016 Things"}, {Hash: "b", Title: "999 Ways"}, {Hash: "c", Title: "Part 10"}, {Hash: "d", Title: "part 9 b"}, {Hash: "e", Title: "Part 009 a"},
		{Hash: "g", Title: "x", Folders: folders("Week 10", "Week 9", "a|b / c")},
	}}, 80, 24)
	k.await("1016 Things")
	var got []string
	for _, n := range k.browser.tree.Snapshot.Nodes {
		if n.Kind >= tree.FolderNode && n.Title != "x" && n.Title != "f" {
			got = append(got, n.Title)
		}
	}
	if want := []string{"a|b", "c", "Week 9", "Week 10", "999 Ways", "1016 Things", "Part 009 a", "part 9 b", "Part 10"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	prompt := func(want string) {
		t.Helper()
		k.until(want, func() bool { return string(k.prompt.Line.Text) == want })
	}
	k.press("+")
	k.press(strings.Split("http://x.example", "")...)
	k.press("enter")
	k.press(strings.Split("Other | We", "")...)
	k.press("tab")
	prompt("Other | Week 10")
	if s := k.shows(); !strings.Contains(s, "Week 9") {
		t.Errorf("%s", s)
	}
	k.press("tab")
	prompt("Other | Week 9")
	k.press("|", "a", "tab")
	prompt(`Other | Week 9|a\|b / c`)
	k.press("up") // is no line of the command line
	prompt(`Other | Week 9|a\|b / c`)
	k.press("esc")
	d.fetcher = func([]string, func(string)) error { return nil }
	k.start(k.apply(k.work.EditFeed(part.Given{Feed: "g"})))
	k.update(nil)
	k.await("the settings of the feed")
	k.press("j", "enter", "W", "tab")
	prompt("Week 10")
}

// The words of etc/view/look work on the command line, and a word of newsboat says what is meant.
func TestLookLine(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	run := func(text string) {
		t.Helper()
		k.line(text)
		k.press("enter")
	}
	k.o.Commands = fakeCommands{}
	run("theme dark")
	k.await("theme: dark")
	run("layout stacked")
	k.await("layout: stacked")
	if k.o.Look.Theme != "dark" || k.browser.Arrangement() != "stacked" || k.o.Screen.Get(themeSetting) != "dark" {
		t.Errorf("%s %s", k.o.Look.Theme, k.browser.Arrangement())
	}
	run("color unread underline red")
	k.until("the color", func() bool { return k.o.Look.Sgr[cells.UnreadText] == "4;31" })
	for line, want := range map[string]string{
		"theme pink": "there is no theme pink; there are default, dark, light", "layout x": "there is no layout x", "color unread pinkish": "neither a color", "format elm x": "there is no action or command format",
		"set x y": "here: type a line of etc/view/look", "source x": "reload reads", "tag x": "folders chooses", "goto x": "search feed:NAME", "exec x": "type the action without it", "color": "takes a command",
	} {
		run(line)
		if s := k.shows(); !strings.Contains(s, want) {
			t.Errorf("%s:\n%s", line, s)
		}
	}
	k.o.Commands = spaced{}
	k.line("ls feed:")
	k.press("tab")
	k.await(`ls feed:"Daring Fireball"    feed:"Two Words"`)
}

// The help begins with a group of keys for reading.
func TestHelpGroups(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := newDesk(t, d, 80, 60)
	k.press("?")
	s := k.shows()
	last := 0
	for _, want := range []string{"the keys", "reading:", "<enter>", "<space>", "moving:", "j ", "the entry:", "m "} {
		at := strings.Index(s, "\n "+want)
		if want == "the keys" {
			at = strings.Index(s, want)
		}
		if at < last {
			t.Fatalf("%s is missing or late:\n%s", want, s)
		}
		last = at
	}
}
