package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/scene"
	"github.com/lektordir/lektor/lektordir"
)

// newVoice returns a desk without a screen, and what it says. If late is false, the user never
// stops typing, so what waits for that is not said.
func newVoice(t *testing.T, d Disk, late bool) (*desk, *strings.Builder) {
	t.Helper()
	k, out := newDesk(t, d, 80, 12), &strings.Builder{}
	k.voice, k.browser.Single = &scene.Voice{Out: out, Hold: time.Millisecond}, true
	k.After = func(after time.Duration, msg tea.Msg) tea.Cmd {
		if msg == (scene.SpeakMsg{}) && !late {
			return nil
		}
		return sendLater(after, msg)
	}
	k.says(out, "feeds\n1 of 6, All")
	k.until("the list", k.settled)
	return k, out
}

// settled reports whether no job is running or requested.
func (k *desk) settled() bool {
	return !k.browser.page.Job.Runs && !k.browser.tree.Scans.Runs && k.browser.list.Complete && k.browser.marks.Len() == 0
}

// says handles messages until text is said, and returns all lines that were said up to then.
func (k *desk) says(out *strings.Builder, text string) string {
	k.t.Helper()
	said := func() string { return strings.ReplaceAll(out.String(), "\r\n", "\n") }
	k.until(text, func() bool { return strings.Contains(said(), text) })
	defer out.Reset()
	return said()
}

// After each key the lines say what has changed, and nothing else.
func TestVoice(t *testing.T) {
	text := ""
	for i := range 30 {
		text += fmt.Sprintf("line %d\n", i)
	}
	k, out := newVoice(t, newPaged(page.Entry{Header: []string{"Title: x"}, Text: text}), false)
	for _, step := range []struct{ keys, says string }{
		{"j", "2 of 6, Flagged\n"},
		{"j", "3 of 6, folder News, 3 unread\n"},
		{"c", "3 of 4, closed folder News, 3 unread\n"},
		{"c", "3 of 6, folder News, 3 unread\n"},
		{"5", "5\n"},
		{"k", "1 of 6, All, 3 unread\n"},
		{"k", ""},
		{"l", "entries of All\n1 of 3, unread, 2023-11-14, Title 02, Feed\n"},
		{"m", "1 of 3, unread, flagged, 2023-11-14, Title 02, Feed\n"},
		{"r", "1 of 3, read, flagged, 2023-11-14, Title 02, Feed\n"},
		{"u", "taken back\n"},
		{"u", "taken back\n"}, // the same message is said again
		{"z", ""},
		{".", "entries of All\n1 of 3, read, flagged, 2023-11-14, Title 02, Feed\n"},
		{"M", "flags, as +Fa-S: "},
		{"+ a b backspace F left left", "+ab\b \bF\b\b"},
		{"x right", "xaF\b\ba"},
		{"left backspace backspace", "\b\baF \b\b\b\baF \b\b\b"},
		{"esc", "\n"},
		{"j", "2 of 3, unread, 2023-11-14, Title 01, Feed\n"},
		{"enter", "entry\nTitle: x\nline 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\n"},
		{"space", "line 8\nline 9\nline 10\nline 11\nline 12\nline 13\nline 14\nline 15\nline 16\n"},
		{"k", "line 6\n"},
		{"/ 2 8 enter", "/28\nmatch 1 of 1\nline 28\n"},
		{"?", "the keys\nkeys that move scroll, any other key closes this\nreading:\n<enter>      open the line of the cursor; an entry is marked as read (show\n             --mark)\nl            open the line of the cursor; an entry is marked as read (show\n" +
			"             --mark)\n<right>      open the line of the cursor; an entry is marked as read (show\n             --mark)\nh            leave a search, an entry or the list\n<left>       leave a search, an entry or the list\n<esc>        leave a search, an entry or the list\n"},
		{"j", "q            leave an entry or the list; in the feeds: end\n"},
		{"x", "entry\n"},
		{"q", "entries of All\n2 of 3, read, 2023-11-14, Title 01, Feed\n"},
		{"d", "2 of 2, unread, 2023-11-14, Title 00, Feed\ntrashed; u undoes it\n"},
		{"f13", "<f13> does nothing; ? shows the keys\n"}, // no set can have this key
	} {
		k.press(strings.Fields(step.keys)...)
		k.until("an answer", k.settled)
		if said := strings.ReplaceAll(out.String(), "\r\n", "\n"); said != step.says {
			t.Errorf("after %s:\n%q, want\n%q", step.keys, said, step.says)
		}
		out.Reset()
	}
}

// Menus, questions and the end of tasks are said at once. Arrivals and progress are said when the
// user has stopped typing.
func TestVoiceWaits(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k, out := newVoice(t, d, true)
	menu := &part.Lines{Title: "links", Hint: "open opens", Text: []string{"first", "second"}, Choose: func(keys.Call, int) (part.Effects, bool) { return nil, false }}
	k.prompt.Menu = menu
	k.update(redrawMsg{})
	k.says(out, "links\nopen opens\n1 of 2, first\n")
	k.press("j")
	if got := k.says(out, "second"); got != "2 of 2, second\n" {
		t.Errorf("%q", got)
	}
	k.press("q")
	k.says(out, "feeds\n1 of 6, All, 3 unread\n")
	k.prompt.Confirm(part.Confirm{Text: "mark all as read?", Yes: func() part.Effects { return k.Say("done") }})
	k.update(redrawMsg{})
	k.says(out, "mark all as read? (y/n)\n")

	release := make(chan struct{})
	k.start(k.apply(part.Effects{part.Task{Name: "saving", Do: func(_ context.Context, progress func(string)) (string, error) {
		progress("1 of 2")
		<-release
		return "saved", nil
	}}}))
	d.mu.Lock()
	d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: "1700000050.1.h", Place: lektordir.New}, lektordir.Ref{Feed: "f", Unique: "1700000051.1.h", Place: lektordir.New})
	d.mu.Unlock()
	k.update(part.Then(k.browser.tree.Noticed))
	k.until("the scan", func() bool { return k.browser.tree.Snapshot.All.Unread == 5 })
	if got := out.String(); got != "" {
		t.Errorf("said before the answer: %q", got)
	}
	k.press("y")
	k.says(out, "done")
	for _, want := range []string{"saving 1 of 2\n", "2 new entries\n"} { // the arrivals when no more have come
		if got := k.says(out, want); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	close(release)
	if got := k.says(out, "saved"); got != "saved\n" {
		t.Errorf("%q", got)
	}
}

// The list of downloads is said, with the progress of the line of the cursor, if the cursor moves.
func TestVoiceDownloads(t *testing.T) {
	d := newPaged(page.Entry{Text: "text", Enclosures: []string{"http://a.example/1.mp3", "http://a.example/2.mp3"}})
	k, out := newVoice(t, d, false)
	k.press("l", "enter")
	k.says(out, "text\n")
	k.until("the mark", k.settled)
	d.hold() // no download ends
	k.press("D")
	k.says(out, "download to: ")
	k.press("enter")
	k.says(out, "2 downloads added; B lists them\n")
	k.press("B")
	k.says(out, "downloads\n<enter> plays, d cancels or removes\n1 of 2, ")
	k.press("j")
	if got := k.says(out, "2.mp3\n"); got != "2 of 2, waiting  Title 02  http://a.example/2.mp3\n" {
		t.Errorf("%q", got)
	}
	k.press("d")
	k.says(out, "1 of 1, ")
	close(d.gate)
}
