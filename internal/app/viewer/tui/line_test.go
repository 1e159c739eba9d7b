package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// fakeCommands has the command mark, which takes entries.
type fakeCommands struct{}

func (fakeCommands) Complete(line string) []cmdline.Candidate {
	if strings.HasPrefix("mark", line) {
		return []cmdline.Candidate{{Word: "mark ", About: "set flags"}}
	}
	return nil
}

func (fakeCommands) Arguments(words []string) (args []int, next string, ok bool) {
	return nil, "ENTRY…", words[0] == "mark"
}

// line presses : and types a line.
func (k *desk) line(text string) {
	k.t.Helper()
	k.press(":")
	for _, r := range text {
		k.press(string(r))
	}
}

// The command line does actions, moves to a line, completes, and runs commands for the chosen entry.
func TestCommandLine(t *testing.T) {
	d := newMemory(20)
	close(d.gate)
	k := newDesk(t, d, 100, 24)
	k.o.Commands, k.o.Self = fakeCommands{}, []string{"echo", "called"}
	k.await("Title 19")
	k.press("l")
	on := func(want string) {
		t.Helper()
		if it, _ := k.browser.list.Current(); it.Unique[8:10] != want {
			t.Errorf("the cursor is on %s, not %s", it.Unique, want)
		}
	}
	k.line("3")
	k.press("enter")
	on("17")
	k.line("down ; down")
	k.press("enter")
	on("15")
	k.press(":", "up", "up", "enter") // the line before the last
	on("17")
	k.line("m")
	k.press("tab")
	k.until("completed", func() bool { return k.prompt.Line != nil && string(k.prompt.Line.Text) == "mark " })
	k.press("enter")
	k.await("called mark") // the last line shows a line of output
	k.o.Self = []string{"false"}
	k.line("mark ; down")
	k.press("enter")
	on("17") // the action waits for the command
	k.until("the action", func() bool { return k.browser.list.At == 3 })
	k.press("k")
	k.o.Self = []string{"echo", "called"}
	k.line("mx")
	k.press("left", "tab") // the text after the cursor stays
	k.until("completed", func() bool { return string(k.prompt.Line.Text) == "mark x" && k.prompt.Line.At == 5 })
	k.press("esc")
	k.line("toggle-")
	k.press("tab")
	k.await("toggle-read")
	k.press("tab")
	if s := string(k.prompt.Line.Text); s != "toggle-read" {
		t.Errorf("%q", s)
	}
	k.press("esc")
	for line, want := range map[string]string{"srot": "no action or command srot", "sort title author": "takes one word", "sort 'title": "is not closed"} {
		k.line(line)
		k.press("enter")
		if s := k.shows(); !strings.Contains(s, want) {
			t.Errorf("%s:\n%s", line, s)
		}
	}
	k.line("sort title")
	k.press("enter")
	k.until("sorted", func() bool { return k.browser.list.Complete && strings.HasPrefix(k.titles(), "00 10 01") })
}

// Many entries are marked as one command; those that take a question are not marked without it.
func TestManyEntries(t *testing.T) {
	d := newMemory(8)
	close(d.gate)
	k := newDesk(t, d, 100, 24)
	k.await("Title 07")
	made := func(want ...string) {
		t.Helper()
		k.until("the jobs", func() bool { return k.browser.marks.Len() == 0 })
		d.mu.Lock()
		defer d.mu.Unlock()
		slices.Sort(d.marks)
		if !slices.Equal(d.marks, want) {
			t.Errorf("made %v, not %v", d.marks, want)
		}
		d.marks = nil
	}
	k.press("l", "g", "a")
	k.await("there are no entries above the cursor")
	k.press("j", "j", "g", "a")
	made("06+S-", "07+S-")
	k.press("x")
	if it, _ := k.browser.list.Current(); !it.Unread() || it.Unique[8:10] == "05" {
		t.Errorf("%v", it)
	}
	k.press("O")
	if s := k.shows(); !strings.Contains(s, "open 6 entries in the browser?") {
		t.Fatalf("%s", s)
	}
	k.press("y")
	k.await("6 entries opened")
	k.press("h", "j", "j", "j", "C")
	if s := k.shows(); !strings.Contains(s, "mark 6 entries of Inner as read?") && !strings.Contains(s, "of Feed as read?") {
		t.Fatalf("%s", s)
	}
	k.press("n")
	made()
	k.press("C", "y")
	made("00+S-", "01+S-", "02+S-", "03+S-", "04+S-", "05+S-")
}

// spaced completes names with spaces.
type spaced struct{ fakeCommands }

func (spaced) Complete(line string) []cmdline.Candidate {
	return []cmdline.Candidate{{Word: `ls feed:"Daring Fireball" `}, {Word: `ls feed:"Two Words" `}}
}
