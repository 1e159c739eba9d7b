package viewer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

// on runs List on a terminal of this size, and returns the output.
func (f *fixture) on(columns, lines int, o ListOptions) string {
	f.T.Helper()
	tty := terminal.Open(f.T, columns, lines)
	s := cmdline.NewStreams("lektor-view", strings.NewReader(""), tty.TTY, &f.Err)
	o.Common, o.Screen, o.Number = f.Common(), s.Screen(), true
	o.Pager = PagerOf(o.Screen)
	if err := List(context.Background(), o, s); err != nil {
		f.T.Fatal(err)
	}
	return tty.Output()
}

// environment sets the variables that programs on a terminal use; "-" unsets one.
func environment(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{"TERM", "NO_COLOR", "LESS", "PAGER", "LEKTOR_PAGER", "LEKTOR_WIDTH"} {
		v, set := env[name]
		t.Setenv(name, v) // restores the variable after the test
		if !set {
			os.Unsetenv(name)
		}
	}
}

// TestReadable: dates are readable, also those in the future.
func TestReadable(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for _, tc := range []struct{ now, at, want string }{
		{"2026-03-15T23:00:00Z", "2026-03-15T23:00:00Z", "00:00"}, // in Berlin it is Monday the 16th
		{"2026-03-15T23:00:00Z", "2026-03-15T22:59:00Z", "Sun 23:59"},
		{"2026-03-15T23:00:00Z", "2026-03-16T09:05:00Z", "10:05"},
		{"2026-03-15T23:00:00Z", "2026-03-10T09:05:00Z", "Tue 10:05"}, // six days ago
		{"2026-03-15T23:00:00Z", "2026-03-09T09:05:00Z", "9 Mar"},     // a week, also a Monday
		{"2026-03-15T23:00:00Z", "2026-01-03T09:05:00Z", "3 Jan"},
		{"2026-03-15T23:00:00Z", "2025-12-31T23:00:00Z", "1 Jan"},
		{"2026-03-15T23:00:00Z", "2025-12-31T22:59:00Z", "Dec 2025"},
		{"2026-03-15T23:00:00Z", "2024-03-16T09:05:00Z", "Mar 2024"},
		{"2026-03-15T23:00:00Z", "2026-03-17T09:05:00Z", "17 Mar"}, // tomorrow
		{"2026-03-15T23:00:00Z", "2026-12-24T09:05:00Z", "24 Dec"},
		{"2026-03-15T23:00:00Z", "2027-01-01T09:05:00Z", "Jan 2027"},
		{"2026-01-02T09:00:00Z", "2025-12-30T09:05:00Z", "Tue 10:05"}, // this week, but last year
		{"2026-03-30T22:30:00Z", "2026-03-28T22:30:00Z", "Sat 23:30"}, // with a day of 23 hours between
		{"2026-10-26T08:00:00Z", "2026-10-24T22:05:00Z", "Sun 00:05"}, // with a day of 25 hours between
		{"2026-10-26T08:00:00Z", "2026-10-19T22:05:00Z", "Tue 00:05"}, // six days ago
		{"2026-10-26T08:00:00Z", "2026-10-19T21:59:00Z", "19 Oct"},    // seven
		{"2026-03-15T23:00:00Z", "1969-07-20T20:17:00Z", "Jul 1969"},  // before the clocks of Unix
		{"1970-01-02T12:00:00Z", "1969-12-31T12:00:00Z", "Wed 13:00"}, //
		{"2026-03-15T23:00:00Z", "9999-12-31T12:00:00Z", "Dec 9999"},  //
		{"2026-03-15T23:00:00Z", "2026-03-09T23:00:00Z", "Tue 00:00"}, //
		{"2026-03-15T23:00:00Z", "2026-03-09T22:59:59Z", "9 Mar"},     //
		{"2024-02-29T12:00:00Z", "2024-02-28T12:00:00Z", "Wed 13:00"}, //
		{"2024-03-01T12:00:00Z", "2024-02-24T12:00:00Z", "Sat 13:00"}, //
		{"2024-12-31T23:30:00Z", "2024-12-31T22:30:00Z", "Tue 23:30"}, //
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		got := Readable(at, now.In(berlin))
		if got != tc.want {
			t.Errorf("%s at %s: %q, not %q", tc.at, tc.now, got, tc.want)
		}
		if len(got) > dateWidth {
			t.Errorf("%q is longer than the column", got)
		}
	}
}

// TestScreens: a list on a terminal has each kind of line.
func TestScreens(t *testing.T) {
	environment(t, nil)
	f := newFixture(t)
	f.Add("new", "1773612000.1.h", "title=today", "pubdate=2026-03-15T22:05:00Z")
	f.Add("cur", "1773500000.1.h;2,F", "title=taken, and flagged", "pubdate=2026-03-14T10:05:00Z")
	f.Add("cur", "1773500001.1.h;2,S", "title=read", "pubdate=2026-01-03T10:05:00Z")
	f.Add("new", "1773500002.1.h", "title=old", "pubdate=2020-01-01T00:00:00Z")
	if err := Show(t.Context(), ShowOptions{Common: f.Common(), Names: session.Names{Args: []string{"1773500001.1.h"}}}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	want := ` 1 N      00:05  Alpha  today
 2 UF Sat 12:05  Alpha  taken, and flagged
>3        3 Jan  Alpha  read
 4 N   Jan 2020  Alpha  old
`
	if got := f.on(80, 24, ListOptions{All: true}); got != want {
		t.Errorf("got\n%s\nnot\n%s", got, want)
	}
	// Below 50 columns lines have no feed names.
	if got := f.on(50, 24, ListOptions{All: true}); !strings.Contains(got, "Alpha") {
		t.Errorf("at 50 columns\n%s", got)
	}
	want = ` 1 N      00:05  today
 2 UF Sat 12:05  taken, and flagged
>3        3 Jan  read
 4 N   Jan 2020  old
`
	for _, columns := range []int{49, 40} {
		if got := f.on(columns, 24, ListOptions{All: true}); got != want {
			t.Errorf("at %d columns\n%s\nnot\n%s", columns, got, want)
		}
	}
	// Output to a pipe, and of -o on a terminal, stays the same.
	if err := List(t.Context(), ListOptions{Common: f.Common(), Query: []string{"read"}, All: true}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	f.Want(nil, "  2026-01-03 12:05  Alpha  read\n")
	if got := f.on(40, 24, ListOptions{Query: []string{"title:read", "is:read"}, Print: cmdline.PrinterOptions{Format: "title,date"}}); got != "read\t2026-01-03T10:05:00Z\n" {
		t.Errorf("-o on a terminal: %q", got)
	}
}

// TestWidths: lines with any text fit the terminal, coloured or not, and have no escape sequences
// but colours.
func TestWidths(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Feed(viewdir.FeedID, "日本語のとても長い名前のフィード\x1b[5m feed"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Feed("http://b.example/", "e\u0301\u0302cole ｆｕｌｌ"); err != nil {
		t.Fatal(err)
	}
	f.Add("new", "1773500000.1.h", "title="+strings.Repeat("長い題 ", 40))
	f.Add("new", "1773500001.1.h", "title="+strings.Repeat("e\u0301\u0302", 300))
	f.Add("cur", "1773500002.1.h;2,Fabc", "title=\x1b]0;owned\x07short\x1b[31m\u009b2J\r\b\u202eright\nto left\t")
	f.Add("cur", "1773500003.1.h;2,S", "title="+strings.Repeat("ｗｉｄｅ", 60))
	f.Add("new", "1773500004.1.h", "title=", "content=")
	f.Add("new", "1773500005.1.h", "title=한국어 "+strings.Repeat("x", 300))
	if _, err := f.Entry("http://b.example/", "new", "1773500006.1.h", "title=a\u0301"+strings.Repeat(" b", 200)); err != nil {
		t.Fatal(err)
	}
	if err := Show(t.Context(), ShowOptions{Common: f.Common(), Names: session.Names{Args: []string{"1773500003.1.h"}}}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	for _, env := range []map[string]string{{}, {"TERM": "xterm"}} {
		environment(t, env)
		for _, columns := range []int{1, 10, 20, 39, 40, 41, 50, 80, 200} {
			got := f.on(columns, 24, ListOptions{All: true})
			if colored := strings.Contains(got, "\x1b["); colored != (env["TERM"] != "") && columns > 15 {
				t.Errorf("coloured: %v at %d columns with %v", colored, columns, env)
			}
			plain := terminal.Plain(got)
			if i := strings.IndexFunc(plain, func(r rune) bool {
				return r < ' ' && r != '\n' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e
			}); i >= 0 {
				t.Errorf("%q is drawn", plain[i:min(i+20, len(plain))])
			}
			lines := strings.SplitAfter(plain, "\n")
			if len(lines) != 8 || lines[7] != "" {
				t.Fatalf("%d lines:\n%s", len(lines), got)
			}
			for _, line := range lines[:7] {
				line = strings.TrimSuffix(line, "\n")
				if n := terminal.Columns(line); n > columns {
					t.Errorf("%d columns of %d: %s", n, columns, line)
				} else if long := strings.HasSuffix(line, "…"); long && n < columns-2 {
					t.Errorf("cut to %d columns of %d: %s", n, columns, line)
				}
			}
			// Every style ends on its line, because less may begin to draw at any line.
			for line := range strings.Lines(got) {
				if strings.Count(line, "\x1b[m")*2 != strings.Count(line, "\x1b[") {
					t.Errorf("a style goes on: %q", line)
				}
			}
			if columns < 40 {
				continue
			}
			for i, line := range lines[:7] {
				if strings.HasPrefix(line, ">") != strings.Contains(line, "ｗｉｄｅ") {
					t.Errorf("the mark is not at the start of the line: %s", line)
				}
				if columns >= 80 && i < 6 && !strings.Contains(line, "日本語") && !strings.Contains(line, "cole") {
					t.Errorf("no feed at %d columns: %s", columns, line)
				}
			}
		}
	}
}

// TestColors: lines have colours only on a terminal that shows them, and if NO_COLOR is not set.
func TestColors(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=unread")
	f.Add("cur", "1773500001.1.h;2,S", "title=read")
	if err := Show(t.Context(), ShowOptions{Common: f.Common(), Names: session.Names{Args: []string{"1773500001.1.h"}}}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	environment(t, map[string]string{"TERM": "xterm", "NO_COLOR": ""})
	want := "\x1b[1;34m>\x1b[m1   Sat 16:53  \x1b[36mAlpha\x1b[m  read\n" +
		" 2 N Sat 16:53  \x1b[36mAlpha\x1b[m  \x1b[1munread\x1b[m\n"
	if got := f.on(80, 24, ListOptions{All: true}); got != want {
		t.Errorf("%q", got)
	}
	for _, env := range []map[string]string{
		{"TERM": "dumb"}, {"TERM": ""}, {}, {"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "xterm", "NO_COLOR": "0"},
	} {
		environment(t, env)
		if got := f.on(80, 24, ListOptions{All: true}); got != terminal.Plain(want) {
			t.Errorf("with %v: %q", env, got)
		}
	}
	environment(t, map[string]string{"TERM": "xterm"})
	for _, o := range []ListOptions{{Print: cmdline.PrinterOptions{Format: "title"}}, {Print: cmdline.PrinterOptions{Raw: true}}} {
		if got := f.on(80, 24, o); strings.Contains(got, "\x1b") {
			t.Errorf("%+v: %q", o.Print, got)
		}
	}
}

// TestListPager: the pager is started only for a list longer than the screen.
func TestListPager(t *testing.T) {
	f := newFixture(t)
	for i := range 10 {
		f.Add("new", fmt.Sprintf("177350000%d.1.h", i), fmt.Sprintf("title=Entry %d", i))
	}
	paged := filepath.Join(t.TempDir(), "paged")
	seen := func(env map[string]string, columns, lines int, o ListOptions) (screen, pager string) {
		os.Remove(paged)
		environment(t, env)
		screen = f.on(columns, lines, o)
		data, _ := os.ReadFile(paged)
		return screen, string(data)
	}
	tee := map[string]string{"TERM": "xterm", "PAGER": "printf '%s\\n' \"$LESS\" >" + paged + "; cat >>" + paged}
	if screen, pager := seen(tee, 80, 11, ListOptions{}); pager != "" || strings.Count(screen, "\n") != 10 {
		t.Errorf("a list that fits: %q, %q", screen, pager)
	}
	screen, pager := seen(tee, 80, 10, ListOptions{})
	if screen != "" || !strings.HasPrefix(pager, "FRX\n") || strings.Count(pager, "\n") != 11 || !strings.Contains(pager, "\x1b[36mAlpha\x1b[m") {
		t.Errorf("a list that does not fit: %q, %q", screen, pager)
	}
	for _, o := range []ListOptions{{Print: cmdline.PrinterOptions{Format: "title"}}, {Print: cmdline.PrinterOptions{Raw: true}}} {
		if screen, pager := seen(tee, 80, 10, o); pager != "" || strings.Count(screen, "\n") != 10 {
			t.Errorf("%+v: %q, %q", o.Print, screen, pager)
		}
	}
	// A terminal of unknown size gets no pager.
	if screen, pager := seen(tee, 0, 0, ListOptions{}); pager != "" || strings.Count(screen, "\n") != 10 {
		t.Errorf("an unknown size: %q, %q", screen, pager)
	}
	// A LESS that is set stays. LEKTOR_PAGER precedes PAGER, and an empty value means no pager.
	tee["LESS"] = ""
	if _, pager := seen(tee, 80, 10, ListOptions{}); !strings.HasPrefix(pager, "\n") {
		t.Errorf("LESS that is set: %q", pager)
	}
	tee["LEKTOR_PAGER"] = ""
	if screen, pager := seen(tee, 80, 10, ListOptions{}); pager != "" || strings.Count(screen, "\n") != 10 {
		t.Errorf("LEKTOR_PAGER that is empty: %q, %q", screen, pager)
	}
	// If the pager does not exist, the list is printed with a warning.
	for _, name := range []string{"/nonexistent/pager", "/", "nonexistent-pager --flag"} {
		f.Err.Reset()
		screen, _ := seen(map[string]string{"PAGER": name + " 2>/dev/null"}, 80, 10, ListOptions{})
		if strings.Count(screen, "\n") != 10 || !regexp.MustCompile(`^lektor-view: warning: pager: .*LEKTOR_PAGER.*\n$`).MatchString(f.Err.String()) {
			t.Errorf("%s: %q, %s", name, screen, &f.Err)
		}
	}
	// If the pager ends early, the rest of the list is discarded.
	f.Err.Reset()
	for _, name := range []string{"head -n 1 >" + paged, "true", "exec <&-"} {
		if screen, _ := seen(map[string]string{"PAGER": name}, 80, 10, ListOptions{}); screen != "" || f.Err.Len() > 0 {
			t.Errorf("%s: %q, %s", name, screen, &f.Err)
		}
	}
}

// TestNoPager: if the pager does not exist, a text larger than the buffer of a pipe is printed
// whole.
func TestNoPager(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=one", "content="+strings.Repeat("word ", 1<<18))
	o := ShowOptions{Common: f.Common(), Names: session.Names{Args: []string{"1773500000.1.h"}}}
	if err := Show(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	want := f.Out.String()
	o.Pager.Command = "/nonexistent/pager 2>/dev/null"
	s := f.Streams("")
	f.Want(Show(t.Context(), o, s), want)
	if s.Report.Warnings() != 1 || s.Report.Errors() != 0 {
		t.Errorf("%s", &f.Err)
	}
}

// TestPagerColors: a list in less has colours only if less or LESS has the option -R or -r.
func TestPagerColors(t *testing.T) {
	for _, tc := range []struct {
		command, less string
		want          bool
	}{
		{"less", "-", true}, {"less", "", false}, {"less", "iMX", false}, {"less", "-FRX", true}, {"less -R", "iMX", true},
		{"less -FRX", "", true}, {"/usr/bin/less --RAW-CONTROL-CHARS", "", true}, {"less --prompt=r", "", false},
		{"more", "", true}, {"most", "i", true}, {"", "", true},
	} {
		environment(t, nil)
		if tc.less != "-" {
			t.Setenv("LESS", tc.less)
		}
		if got := (Pager{Command: tc.command}).colors(); got != tc.want {
			t.Errorf("%q with LESS=%s: %v", tc.command, tc.less, got)
		}
	}
}

// TestTextWidth: text is wrapped to 80 or LEKTOR_WIDTH columns, and at most to those of the
// terminal.
func TestTextWidth(t *testing.T) {
	for _, tc := range []struct {
		variable string
		columns  int // of the terminal; -1 for none
		want     int
		warned   bool
	}{
		{"", 200, 80, false}, {"", 80, 80, false}, {"", 40, 40, false}, {"", 0, 80, false}, {"", -1, 80, false},
		{"100", 200, 100, false}, {"100", 90, 90, false}, {"100", -1, 100, false}, {"50", 200, 50, false}, {"50", 40, 40, false},
		{"19", 200, 80, true}, {"wide", 200, 80, true}, {"-1", 60, 60, true}, {"0", -1, 80, true}, {"20", -1, 20, false},
	} {
		environment(t, map[string]string{"LEKTOR_WIDTH": tc.variable})
		var errs strings.Builder
		s := cmdline.NewStreams("x", nil, &errs, &errs)
		if tc.columns >= 0 {
			s = cmdline.NewStreams("x", nil, terminal.Open(t, tc.columns, 24).TTY, &errs)
		}
		if got := TextWidth(s); got != tc.want || (errs.Len() > 0) != tc.warned {
			t.Errorf("LEKTOR_WIDTH=%s on %d columns: %d; %s", tc.variable, tc.columns, got, &errs)
		}
	}
}

// TestShowFits: text that fits the screen is printed without a pager.
func TestShowFits(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=one", "content="+strings.Repeat("x", 100))
	o := ShowOptions{Common: f.Common(), Names: session.Names{Args: []string{"1773500000.1.h"}}, Width: 200}
	if err := Show(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	text := f.Out.String()
	lines := strings.Count(text, "\n")
	o.Pager.Command = "printf 'paged\n'; cat"
	for _, tc := range []struct {
		screen cmdline.Screen
		paged  bool
	}{
		{cmdline.Screen{}, true}, {cmdline.Screen{Width: 200, Height: lines + 1}, false}, {cmdline.Screen{Width: 200, Height: lines}, true},
		{cmdline.Screen{Width: 50, Height: lines + 1}, true}, // a line of 100 columns takes two
		{cmdline.Screen{Width: 50, Height: lines + 2}, false},
	} {
		o.Pager.Screen = tc.screen
		want := text
		if tc.paged {
			want = "paged\n" + text
		}
		f.Want(Show(t.Context(), o, f.Streams("")), want)
	}
}
