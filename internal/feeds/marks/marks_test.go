package marks

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const marksFeed = "https://a.example/feed"

// awaiting is a lektor-dir with a feed that has waiting marks.
type awaiting struct {
	*testing.T
	d    *lektordir.Dir
	made *testdir.Dir
	hash string
}

func newAwaiting(t *testing.T, marks ...Mark) *awaiting {
	made := testdir.New(t)
	hash, err := made.Feed(marksFeed, "A")
	if err != nil {
		t.Fatal(err)
	}
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(d, hash, marks); err != nil {
		t.Fatal(err)
	}
	return &awaiting{t, d, made, hash}
}

// entry delivers an entry. files have the form "title=…".
func (a *awaiting) entry(n int, at time.Time, files ...string) {
	a.Helper()
	if _, err := a.made.Entry(marksFeed, "new", testdir.Unique(at.Unix(), n), append([]string{"content=c"}, files...)...); err != nil {
		a.Fatal(err)
	}
}

// arrived calls MarkArrived, and returns the number of moved entries.
func (a *awaiting) arrived(now time.Time) int {
	a.Helper()
	moved, err := SetArrived(a.d, a.hash, now)
	if err != nil {
		a.Fatal(err)
	}
	for from, to := range moved {
		if _, err := os.Stat(a.d.Join(to.Path())); err != nil || from == to {
			a.Errorf("%v is not at %v: %v", from, to, err)
		}
	}
	return len(moved)
}

// state returns the titles of the entries with their flags, or with "new" if they are in new/.
func (a *awaiting) state() string {
	a.Helper()
	refs, err := a.d.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		a.Fatal(err)
	}
	var all []string
	for _, r := range refs {
		e, err := a.d.ReadEntry(r, lektordir.FieldTitle)
		if err != nil {
			a.Fatal(err)
		}
		flags := r.Flags()
		if r.Place == lektordir.New {
			flags = "new"
		}
		all = append(all, e.Title+":"+flags)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// waiting returns the number of marks that wait.
func (a *awaiting) waiting() int {
	marks, _ := readMarks(marksPath(a.d, a.hash))
	return len(marks)
}

func (a *awaiting) want(state string, waiting int) {
	a.Helper()
	if got := a.state(); got != state {
		a.Errorf("%s, want %s", got, state)
	}
	if n := a.waiting(); n != waiting {
		a.Errorf("%d marks wait, want %d", n, waiting)
	}
}

// Marks find their entries by id, by URL or by title.
func TestMarkArrived(t *testing.T) {
	day := func(n int) time.Time { return noon.AddDate(0, 0, n) }
	a := newAwaiting(t,
		Mark{Flags: "S", ID: "urn:1"},
		Mark{Flags: "FSk", ID: " urn:2 ", URL: "https://elsewhere.example/"},
		Mark{Flags: "S", ID: "https://a.example/3Mon, 02 Mar 2026", URL: "https://a.example/3"}, // newsboat's id of an entry without a guid
		Mark{Flags: "S", ID: "Four", Title: "Four"},
		Mark{Flags: "S", ID: "gone", URL: "https://a.example/gone"},
		Mark{Flags: "F", ID: "urn:6"}, // flagged and unread
		Mark{Flags: "S", ID: "x", URL: "https://a.example/", Date: day(0)},
		Mark{Flags: "S", ID: "shared", URL: "https://a.example/9"},
		Mark{Flags: "S", ID: "several"},
		Mark{Flags: "S", ID: "y", URL: "https://a.example/twice"},
		Mark{Flags: "ST", ID: "urn:trash"},
	)
	a.entry(1, noon, "title=1", "id=urn:1")
	a.entry(2, noon, "title=2", "id=urn:2", "+link=https://a.example/2")
	a.entry(3, noon, "title=3", "id=https://a.example/3")
	a.entry(4, noon, "title=Four", "id=urn:sha256:00")
	a.entry(5, noon, "title=5", "id=urn:5", "+link=https://a.example/5")
	a.entry(6, noon, "title=6", "id=urn:6")
	a.entry(7, noon, "title=newer", "id=urn:7", "+link=https://a.example/", "pubdate=2026-03-09T12:00:00Z")
	a.entry(8, noon, "title=8", "id=shared", "+link=https://a.example/8")
	a.entry(9, noon, "title=9", "id=shared", "+link=https://a.example/9")
	a.entry(10, noon, "title=10", "id=several", "+link=https://a.example/10")
	a.entry(11, noon, "title=11", "id=several", "+link=https://a.example/11")
	a.entry(12, noon, "title=12", "id=urn:12", "+link=https://a.example/twice")
	a.entry(13, noon, "title=13", "id=urn:13", "+link=https://a.example/twice")
	a.entry(14, noon, "title=14", "id=urn:trash")
	if n := a.arrived(noon); n != 7 {
		t.Errorf("%d were moved", n)
	}
	a.want("10:new 11:new 12:new 13:new 14:ST 1:S 2:FSk 3:S 5:new 6:F 8:new 9:S Four:S newer:new", 4)
}

// Marks wait until their entry arrives. They do not undo a flag that the user changed.
func TestMarksWait(t *testing.T) {
	a := newAwaiting(t, Mark{Flags: "S", ID: "urn:1"}, Mark{Flags: "S", ID: "urn:2"}, Mark{Flags: "S", ID: "urn:3"})
	if fi, err := os.Stat(marksPath(a.d, a.hash)); err != nil || !fi.ModTime().Equal(neverCompared) {
		t.Fatal(fi, err)
	}
	a.arrived(noon)
	a.want("", 3)
	a.entry(1, noon.Add(time.Hour), "title=1", "id=urn:1")
	a.arrived(noon.Add(time.Hour))
	a.want("1:S", 2)
	// The user marks the entry as unread. The old mark does not mark it as read again.
	refs, err := a.d.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.d.SetFlags(refs[0], "", "S"); err != nil {
		t.Fatal(err)
	}
	a.entry(2, noon.Add(-24*time.Hour), "title=2", "id=urn:2") // delivered before the last call, so not compared
	a.arrived(noon.Add(2 * time.Hour))
	a.want("1: 2:new", 2)
	// Another import of a mark applies it again.
	if err := Add(a.d, a.hash, []Mark{{Flags: "FS", ID: "urn:2"}, {Flags: "S", ID: "urn:1"}}); err != nil {
		t.Fatal(err)
	}
	if n := a.waiting(); n != 3 {
		t.Errorf("%d wait", n)
	}
	a.arrived(noon.Add(3 * time.Hour))
	a.want("1:S 2:FS", 1)
	a.entry(3, noon.Add(4*time.Hour), "title=3", "id=urn:3")
	a.arrived(noon.Add(4 * time.Hour))
	a.want("1:S 2:FS 3:S", 0)
	if _, err := os.Stat(marksPath(a.d, a.hash)); !os.IsNotExist(err) {
		t.Errorf("the file of marks still exists: %v", err)
	}
}

// If MarkArrived is killed after it set flags, the next call sets them again.
func TestMarksKilled(t *testing.T) {
	a := newAwaiting(t, Mark{Flags: "S", ID: "urn:1"}, Mark{Flags: "S", ID: "urn:2"}, Mark{Flags: "S", ID: "urn:later"})
	a.entry(1, noon, "title=1", "id=urn:1")
	a.entry(2, noon, "title=2", "id=urn:2")
	before, err := os.ReadFile(marksPath(a.d, a.hash))
	if err != nil {
		t.Fatal(err)
	}
	a.arrived(noon)
	if err := os.WriteFile(marksPath(a.d, a.hash), before, 0o666); err != nil { // as it was
		t.Fatal(err)
	}
	a.arrived(noon)
	a.want("1:S 2:S", 3) // the two marks stay, though no entry needs them
}

func TestMarksOdd(t *testing.T) {
	a := newAwaiting(t)
	path := marksPath(a.d, a.hash)
	for _, text := range []string{"", "\n", "S\turn:1\n", "X\turn:1\t\t\t\n", "\turn:1\t\t\t\n", "S\t\t\t\t\n", "S\turn:1\t\t\tsoon\tand more\n", "s;rm -rf\turn:1\t\t\t\n"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := SetArrived(a.d, a.hash, noon); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := Add(a.d, a.hash, []Mark{{Flags: "S../../x", ID: "1"}}); err == nil {
		t.Error("invalid flags are accepted")
	}
	long := strings.Repeat("x", maxMarkField+1)
	if err := Add(a.d, a.hash, []Mark{{Flags: "S", ID: long}, {Flags: "S", ID: "a\tb\nc", Title: "\\"}}); err != nil {
		t.Fatal(err)
	}
	marks, err := readMarks(path)
	if err != nil || !slices.Contains(marks, Mark{Flags: "S", ID: "a\tb\nc", Title: "\\"}) {
		t.Errorf("%v, %v", marks, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := SetArrived(a.d, a.hash, noon); err == nil {
		t.Error("MarkArrived succeeds, though the file of marks is a directory")
	}
}

// FuzzMarks parses and pairs arbitrary marks. Formatting adds no marks, and no pair is found twice.
func FuzzMarks(f *testing.F) {
	f.Add([]byte("S\turn:1\t\t\t\nFSk\tx\thttps://a.example/2\tT\t1700000000\n"))
	f.Add([]byte("S\t\\t\\\\\t\t\t\n\x00\t\t\t\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		marks := parseMarks(data)
		text, err := formatMarks(marks)
		if err != nil {
			t.Fatal(err)
		}
		if again := parseMarks(text); len(again) > len(marks) {
			t.Fatalf("%v", again)
		}
		seen := map[string]bool{}
		for _, p := range pairs(marks, []arrival{{id: "urn:1"}, {id: "x", url: "https://a.example/2", title: "T"}}) {
			if key := fmt.Sprint(p); seen[key] {
				t.Errorf("twice: %v", p)
			} else {
				seen[key] = true
			}
		}
	})
}
