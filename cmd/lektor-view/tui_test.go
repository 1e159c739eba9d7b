package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/internal/testkit/terminal"
)

// hostile are titles that a stranger may write. Behind each stands a name by which a
// test knows it.
var hostile = []string{
	"\x1b[2J\x1b[H\x1b[31mred", "\x1b]0;owned\x07title", "\u009b2Jcsi", "\x1bPq#0;2;0;0;0\x1b\\sixel", "\x1b_Ga=d\x1b\\\x1b[?1049lout",
	"a\rb\tc\vd\be\x00f\x7f", "\u202eright to left\u202c \u2067iso", "שלום עולם, مرحبا بالعالم", strings.Repeat("\u0300\u0489", 400) + "heap", "e" + strings.Repeat("\u0301", 300),
	"日本語の長い題名がここにある、とても長い題名", "👩‍👩‍👧‍👦 family 🇩🇪🇫🇷 flag ❤️ heart 👍🏽 thumb 1️⃣ key", "각" + "\u1100\u1161\u11a8", "नमस्ते क्षत्रिय தமிழ் ไทยภาษา", "ﷺ ︻ ﹏ 𝔘𝔫𝔦", "\ufeff\u200b\u200d\u2060\u00ad nothing",
	"<b>bold</b> &amp; <script>alert(1)</script>", strings.Repeat("long ", 200_000), strings.Repeat("界", 350_000), "\xff\xfe\xc3 bytes", "\U000e0041\U000e007f tags \ue000 own \ufffe",
	"｡ﾊﾝｶｸ halfwidth", "\t\n", "- -- --help", "%s%n %d", "│ bar │ bar │",
}

// bad is a content of HTML that would do harm in a browser.
const bad = `<p onclick="x()">para</p><script>alert(1)</script><a href="javascript:alert(1)">js</a> <a href="data:text/html,x">data</a>
<svg onload=alert(1)><text>svg</text></svg><meta http-equiv=refresh content="0;url=http://evil.example/"><style>* { display: none }</style>
<img src="http://t.example/pixel.gif" onerror="alert(1)" alt="pic"><iframe src="http://evil.example/"></iframe><a href="https://good.example/">good</a>` + "\x1b[2J\x1b]0;owned\x07"

// reader is a lektor-dir with folders and feeds for the full-screen reader, and what
// runs it.
type reader struct {
	*terminal.Tmux
	d    *dir.Dir
	home string
}

// readerDir makes the lektor-dir: in two folders, and one feed of its own, each with
// entries whose titles say where they are; with what is hostile beside them.
func readerDir(t *testing.T, nasty bool) *dir.Dir {
	t.Helper()
	d := dir.New(t)
	try := func(_ string, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	name := "Alpha"
	if nasty {
		name = "Alpha \x1b[2J\u202e\x1b]0;owned\x07 界"
	}
	try(d.Feed("http://a.example/", name, "etc/categories=News"))
	try(d.Feed("http://b.example/", "Beta", "etc/categories=News/Inner"))
	try(d.Feed("http://c.example/", "Gamma"))
	number := 0
	for i, id := range []string{"http://a.example/", "http://b.example/", "http://c.example/"} {
		for j := range 3 {
			number++
			text := "content=<h1>Heading</h1><p>Text of " + fmt.Sprint(number) + ", <a href=\"https://x.example/" + fmt.Sprint(number) + "\">a link</a>.</p>"
			try(d.Entry(id, "new", fmt.Sprintf("17000000%02d.1.h", number), fmt.Sprintf("title=%s %d", []string{"one", "two", "three"}[i], j), "type=text/html", text))
		}
	}
	if nasty {
		for i, title := range hostile {
			text := "content=" + bad + strings.Repeat("<div><blockquote><ul><li>", 20_000) + "deep"
			try(d.Entry("http://a.example/", "new", fmt.Sprintf("16000000%02d.1.h", i), "title="+title, "type=text/html", text, "author="+title[:min(len(title), 3000)],
				"+link=http://h.example/"+fmt.Sprint(i)))
		}
	}
	return d
}

// read starts the reader on a screen.
func read(t *testing.T, d *dir.Dir, columns, lines int, args string, env ...string) *reader {
	t.Helper()
	r := &reader{d: d, home: t.TempDir()}
	bin, err := exec.LookPath("lektor-view")
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "LEKTORDIR="+d.Path, "TZ=UTC", "HOME="+r.home, "GORACE=atexit_sleep_ms=0", "BROWSER=", "LEKTOR_BROWSER=", "NO_COLOR=")
	r.Tmux = terminal.NewTmux(t, columns, lines, env, `stty -g >"$HOME/before"
`+bin+` tui `+args+` 2>"$HOME/err"
status=$?
stty -g >"$HOME/after"
printf 'END %s\n' "$status"`)
	return r
}

// whole makes sure that nothing is where it does not belong: as many lines as there are,
// none too long, and what stands between panes in one column.
func (r *reader) whole(t *testing.T, lines []string) {
	t.Helper()
	bad := ""
	bars := map[int]int{}
	for i, l := range lines {
		if n := terminal.Columns(l); n > r.Width {
			bad = fmt.Sprintf("line %d has %d columns", i, n)
		}
		at := 0
		for _, c := range l {
			if c == '│' {
				bars[at]++
			}
			at += terminal.Columns(string(c))
		}
	}
	if len(lines) != r.Height {
		bad = fmt.Sprintf("%d lines, not %d", len(lines), r.Height)
	}
	// A title may have such bars, too; those of panes stand in every line but the last.
	if r.Width >= 60 && !slices.Contains(lines, "") {
		full := 0
		for _, n := range bars {
			if n == r.Height-1 {
				full++
			}
		}
		if full == 0 && len(bars) > 0 {
			bad = fmt.Sprintf("panes are not in columns: %v", bars)
		}
	}
	if title := r.Tell("#{pane_title}"); strings.Contains(title, "owned") {
		bad = "the title of the window is a stranger's: " + title
	}
	if bad != "" {
		t.Fatalf("%s:\n%s", bad, strings.Join(lines, "\n"))
	}
}

// see waits for a line that matches, and makes sure that the screen is whole.
func (r *reader) see(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	lines := r.Until(pattern, func(lines []string) bool { return slices.ContainsFunc(lines, re.MatchString) })
	r.whole(t, lines)
	return lines
}

// gone waits until no line matches.
func (r *reader) gone(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	r.whole(t, r.Until("no "+pattern, func(lines []string) bool { return !slices.ContainsFunc(lines, re.MatchString) }))
}

// place waits until the entry of a number is in a place with flags.
func (r *reader) place(t *testing.T, number int, want string) {
	t.Helper()
	r.Until("entry "+fmt.Sprint(number)+" in "+want, func([]string) bool {
		found, _ := filepath.Glob(filepath.Join(r.d.Path, "*", "*", fmt.Sprintf("17000000%02d.1.h*", number)))
		if len(found) != 1 {
			return false
		}
		place := filepath.Base(filepath.Dir(filepath.Dir(found[0])))
		_, info, _ := strings.Cut(filepath.Base(found[0]), ";")
		return strings.TrimSuffix(place+";"+info, ";") == want
	})
}

// ended waits for the end of the reader, and makes sure that the terminal is as it was.
func (r *reader) ended(t *testing.T, status int) {
	t.Helper()
	r.Await(fmt.Sprintf("END %d", status))
	before, _ := os.ReadFile(filepath.Join(r.home, "before"))
	after, _ := os.ReadFile(filepath.Join(r.home, "after"))
	if len(before) == 0 || string(before) != string(after) {
		t.Errorf("the terminal was %q and is %q", before, after)
	}
	for format, want := range map[string]string{"#{alternate_on}": "0", "#{cursor_flag}": "1", "#{mouse_any_flag}": "0", "#{keypad_flag}": "0"} {
		if got := r.Tell(format); got != want {
			t.Errorf("%s is %s", format, got)
		}
	}
}

// TestTUI reads with the keys of a person, on screens of several sizes, what is plain and
// what is hostile.
func TestTUI(t *testing.T) {
	for _, size := range [][2]int{{40, 15}, {80, 24}, {200, 50}} {
		for _, nasty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%dx%d hostile %v", size[0], size[1], nasty), func(t *testing.T) {
				t.Parallel()
				aDay(t, read(t, readerDir(t, nasty), size[0], size[1], ""), nasty)
			})
		}
	}
}

// aDay is what somebody does with the reader.
func aDay(t *testing.T, r *reader, nasty bool) {
	unread := 9
	if nasty {
		unread += len(hostile)
	}
	r.see(t, fmt.Sprintf(`feeds +%d unread`, unread))
	r.see(t, `Gamma +3`)

	// Into the list, down, up, and into an entry, which is marked.
	r.Keys("l")
	r.see(t, `>N .*three 2`)
	r.Keys("j", "j", "k")
	r.see(t, `>N .*three 1`)
	r.Keys("Enter")
	r.see(t, `Text of 8, a link\[1\]`)
	r.see(t, `\[1\] https://x.example/8`)
	r.place(t, 8, "cur;2,S")

	// Flagged, and that undone; the entry read stays.
	r.Keys("m")
	r.place(t, 8, "cur;2,FS")
	r.Keys("u")
	r.see(t, `taken`)
	r.place(t, 8, "cur;2,S")
	r.Keys("r")
	r.place(t, 8, "cur;2,")
	r.Keys("r")
	r.place(t, 8, "cur;2,S")

	// The next unread one, and back to the list.
	r.Keys("n")
	r.see(t, `Text of 7`)
	r.place(t, 7, "cur;2,S")
	r.Keys("q")
	r.see(t, `> .*three 0`)

	// A search while it is typed, and out of it.
	r.Keys("/")
	r.Type("title:two")
	r.see(t, `>N .*two 2`)
	r.gone(t, `N [^│]*three`)
	r.Keys("Enter", "j", "Enter")
	r.see(t, `Text of 5`)
	r.place(t, 5, "cur;2,S")
	r.Keys("q", "Escape")
	r.see(t, `> .*two 1`)
	r.see(t, `  one 1`)

	// A folder: what is in it, and in those below.
	r.Keys("q")
	r.see(t, `^> ?All`)
	r.Keys("j", "j")
	r.see(t, `^> ?-News +`+fmt.Sprint(unread-4))
	r.Keys("l")
	r.see(t, `>N .*two 2`)
	r.gone(t, `N [^│]*three`)

	// An entry arrives, and another viewer marks one.
	arrive(t, r.d, "http://b.example/", 10, "brand new")
	r.see(t, `brand new`)
	if out, err := exec.Command("lektor-view", "--dir", r.d.Path, "mark", "--set", "F", "1700000004.1.h").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.see(t, `N ?F.*two 0`)

	// Another size, and back.
	w, h := r.Width, r.Height
	r.Resize(h+50, w/3+8)
	r.see(t, `>N .*two 2`)
	r.Resize(15, 4)
	r.Await("too small")
	r.Resize(w, h)
	r.see(t, `>N .*two 2`)

	if nasty {
		r.throughHostile(t)
	}
	r.Keys("Q")
	r.ended(t, 0)
}

// throughHostile opens every hostile entry of the feed Alpha and looks at each screen.
func (r *reader) throughHostile(t *testing.T) {
	r.Keys("q", "j", "l")
	r.see(t, `> ?N .*one 2`)
	r.Keys("G", "Enter")
	for i := range hostile {
		// By the link: titles say anything.
		lines := r.see(t, fmt.Sprintf(`Link: http://h.example/%d$`, i))
		if text := strings.Join(lines, "\n"); strings.Contains(text, "alert") && !strings.Contains(text, "<script>") || strings.Contains(text, "javascript:") {
			t.Fatalf("hostile %d:\n%s", i, text)
		}
		r.Keys("C-f", "C-d", "G")
		r.see(t, `100%|all`)
		r.Keys("K")
	}
	r.see(t, `Text of 1`)
	r.Keys("q")
}

// arrive delivers an entry as a fetcher does.
func arrive(t *testing.T, d *dir.Dir, feed string, number int, title string) {
	t.Helper()
	name := fmt.Sprintf("17000000%02d.1.h", number)
	path, err := d.Entry(feed, "tmp", name, "title="+title)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(d.Path, "new", dir.Hash(feed))
	if err := os.MkdirAll(to, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(to, name)); err != nil {
		t.Fatal(err)
	}
}
