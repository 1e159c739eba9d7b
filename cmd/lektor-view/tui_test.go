package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// hostile are titles that an attacker may write. A test finds each entry by its link.
var hostile = []string{
	"\x1b[2J\x1b[H\x1b[31mred", "\x1b]0;owned\x07title", "\u009b2Jcsi", "\x1bPq#0;2;0;0;0\x1b\\sixel", "\x1b_Ga=d\x1b\\\x1b[?1049lout",
	"a\rb\tc\vd\be\x00f\x7f", "\u202eright to left\u202c \u2067iso", "שלום עולם, مرحبا بالعالم", strings.Repeat("\u0300\u0489", 400) + "heap", "e" + strings.Repeat("\u0301", 300),
	"日本語の長い題名がここにある、とても長い題名", "👩‍👩‍👧‍👦 family 🇩🇪🇫🇷 flag ❤️ heart 👍🏽 thumb 1️⃣ key", "각" + "\u1100\u1161\u11a8", "नमस्ते क्षत्रिय தமிழ் ไทยภาษา", "ﷺ ︻ ﹏ 𝔘𝔫𝔦", "\ufeff\u200b\u200d\u2060\u00ad nothing",
	"<b>bold</b> &amp; <script>alert(1)</script>", strings.Repeat("long ", 200_000), strings.Repeat("界", 350_000), "\xff\xfe\xc3 bytes", "\U000e0041\U000e007f tags \ue000 own \ufffe",
	"｡ﾊﾝｶｸ halfwidth", "\t\n", "- -- --help", "%s%n %d", "│ bar │ bar │",
}

// bad is HTML content that would do harm in a browser.
const bad = `<p onclick="x()">para</p><script>alert(1)</script><a href="javascript:alert(1)">js</a> <a href="data:text/html,x">data</a>
<svg onload=alert(1)><text>svg</text></svg><meta http-equiv=refresh content="0;url=http://evil.example/"><style>* { display: none }</style>
<img src="http://t.example/pixel.gif" onerror="alert(1)" alt="pic"><iframe src="http://evil.example/"></iframe><a href="https://good.example/">good</a>` + "\x1b[2J\x1b]0;owned\x07"

// reader is a full-screen reader on a terminal, with its lektor-dir.
type reader struct {
	*terminal.Tmux
	d    *testdir.Dir
	home string
}

// readerDir makes a lektor-dir with feeds in two folders, and one feed in none. The titles of
// entries begin with the number of their feed, as a word. With nasty, it also has hostile entries.
func readerDir(t *testing.T, nasty bool) *testdir.Dir {
	t.Helper()
	d := testdir.New(t)
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
func read(t *testing.T, d *testdir.Dir, columns, lines int, args string, env ...string) *reader {
	t.Helper()
	r := &reader{d: d, home: t.TempDir()}
	bin, err := exec.LookPath("lektor-view")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if messages, err := os.ReadFile(filepath.Join(r.home, "err")); t.Failed() && err == nil {
			t.Logf("messages: %s", messages)
		}
	})
	env = append([]string{"LEKTORDIR=" + d.Path, "TZ=UTC", "HOME=" + r.home, "GORACE=atexit_sleep_ms=0", "BROWSER=", "LEKTOR_BROWSER=", "NO_COLOR="}, env...)
	r.Tmux = terminal.NewTmux(t, columns, lines, env, `set -m # as a person's shell: who is stopped is a job
stty -g >"$HOME/before"
sh -c 'echo $$ >"$HOME/pid"; exec `+bin+` tui `+args+` 2>"$HOME/err"'
status=$?
stops=0
while [ $status = 147 ] || [ $status = 148 ]; do
	stty -g >"$HOME/after"
	stops=$((stops + 1))
	echo STOPPED $stops
	read job
	if [ "$job" = bg ]; then
		bg >"$HOME/job"
		read typed
		echo "TYPED $typed"
		read _
	fi
	fg >"$HOME/job"
	status=$?
done
stty -g >"$HOME/after"
printf 'END %s\n' "$status"`)
	return r
}

// flaw returns how a screen differs from one that the reader has drawn, or "": each screen has the
// right number of lines, no line is too long, and the bars between panes stand in columns.
func (r *reader) flaw(lines []string) string {
	bars := map[int]int{}
	for i, l := range lines {
		if n := terminal.Columns(l); n > r.Width {
			return fmt.Sprintf("line %d has %d columns", i, n)
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
		return fmt.Sprintf("%d lines, not %d", len(lines), r.Height)
	}
	// A title may contain such bars, too. Bars between panes stand in all lines but the last.
	if r.Width >= 60 && !slices.Contains(lines, "") && len(bars) > 0 {
		for _, n := range bars {
			if n == r.Height-1 {
				return ""
			}
		}
		return fmt.Sprintf("panes are not in columns: %v", bars)
	}
	return ""
}

// drawn waits for a screen without a flaw for which done returns true, and returns it. A terminal
// gets each screen in pieces, so what it shows between two of them is not judged.
func (r *reader) drawn(t *testing.T, what string, done func(lines []string) bool) []string {
	t.Helper()
	flaw := ""
	defer func() {
		if flaw != "" {
			t.Logf("the screen is not whole: %s", flaw)
		}
	}()
	return r.Until(what, func(lines []string) bool {
		if title := r.Tell("#{pane_title}"); strings.Contains(title, "owned") {
			t.Fatalf("the title of the window is untrusted text: %s", title)
		}
		flaw = r.flaw(lines)
		return flaw == "" && done(lines)
	})
}

// see waits for a line that matches.
func (r *reader) see(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	return r.drawn(t, pattern, func(lines []string) bool { return slices.ContainsFunc(lines, re.MatchString) })
}

// gone waits until no line matches.
func (r *reader) gone(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	r.drawn(t, "no "+pattern, func(lines []string) bool { return !slices.ContainsFunc(lines, re.MatchString) })
}

// place waits until an entry, by its number, is in a place with flags.
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

// ended waits for the end of the reader, and checks that the terminal is as before.
func (r *reader) ended(t *testing.T, status int) {
	t.Helper()
	r.Await(fmt.Sprintf("END %d", status))
	if before, after := r.file(t, "before"), r.file(t, "after"); before == "" || before != after {
		t.Errorf("the terminal was %q and is %q", before, after)
	}
	for format, want := range map[string]string{"#{alternate_on}": "0", "#{cursor_flag}": "1", "#{mouse_any_flag}": "0", "#{keypad_flag}": "0"} {
		if got := r.Tell(format); got != want {
			t.Errorf("%s is %s", format, got)
		}
	}
}

// TestTUI reads plain and hostile entries with the keys of a user, on screens of several sizes.
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

// aDay is a session of a user.
func aDay(t *testing.T, r *reader, nasty bool) {
	unread := 9
	if nasty {
		unread += len(hostile)
	}
	r.see(t, fmt.Sprintf(`feeds +%d unread`, unread))
	r.see(t, `Gamma +3`)

	// Open the list, move down and up, and open an entry, which is marked.
	r.Keys("l")
	r.see(t, `>N .*three 2`)
	r.Keys("j", "j", "k")
	r.see(t, `>N .*three 1`)
	r.Keys("Enter")
	r.see(t, `Text of 8, a link\[1\]`)
	r.see(t, `\[1\] https://x.example/8`)
	r.place(t, 8, "cur;2,S")

	// Flag an entry, and undo that. The entry that was read stays in the list.
	r.Keys("m")
	r.place(t, 8, "cur;2,FS")
	r.Keys("u")
	r.see(t, `taken`)
	r.place(t, 8, "cur;2,S")
	r.Keys("r")
	r.place(t, 8, "cur;2,")
	r.Keys("r")
	r.place(t, 8, "cur;2,S")

	// Move to the next unread entry, and back to the list.
	r.Keys("n")
	r.see(t, `Text of 7`)
	r.place(t, 7, "cur;2,S")
	r.Keys("q")
	r.see(t, `> .*three 0`)

	// Search while the query is typed, and leave the search.
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

	// Open a folder, with the entries of the folders below.
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

	// Change the size, and change it back.
	w, h := r.Width, r.Height
	r.Resize(h+50, w/3+8)
	r.see(t, `>N .*two 2`)
	r.Resize(15, 4)
	r.Await("screen too") // the message wraps at this width
	r.Resize(w, h)
	r.see(t, `>N .*two 2`)

	if nasty && r.Width == 80 { // once is enough, since it takes long
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
		// Find the line by the link, since titles are arbitrary.
		link := regexp.MustCompile(fmt.Sprintf(`Link: http://h.example/%d$`, i))
		r.drawn(t, fmt.Sprintf("hostile %d without its scripts", i), func(lines []string) bool {
			text := strings.Join(lines, "\n")
			return slices.ContainsFunc(lines, link.MatchString) && (!strings.Contains(text, "alert") || strings.Contains(text, "<script>")) && !strings.Contains(text, "javascript:")
		})
		r.Keys("C-f", "C-d", "G")
		r.see(t, `100%|all`)
		r.Keys("K")
	}
	r.see(t, `Text of 1`)
	r.Keys("q")
}

// arrive delivers an entry as a fetcher does.
func arrive(t *testing.T, d *testdir.Dir, feed string, number int, title string) {
	t.Helper()
	name := fmt.Sprintf("17000000%02d.1.h", number)
	path, err := d.Entry(feed, "tmp", name, "title="+title)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(d.Path, "new", testdir.Hash(feed))
	if err := os.MkdirAll(to, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(to, name)); err != nil {
		t.Fatal(err)
	}
}

// TestTUISignals: if a signal ends the reader, the terminal is as before. The reader stops and
// continues like any job of a shell.
func TestTUISignals(t *testing.T) {
	for signal, status := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGINT: 130} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			r := read(t, readerDir(t, false), 80, 24, "--mouse")
			r.see(t, `Gamma +3`)
			r.Keys("l", "Enter")
			r.see(t, `Text of 9`)
			if got := r.Tell("#{alternate_on}#{mouse_any_flag}"); got != "11" && got != "10" {
				t.Errorf("the reader does not have the screen: %s", got)
			}
			kill(t, r, signal)
			r.ended(t, status)
		})
	}
}

// kill sends a signal to the reader.
func kill(t *testing.T, r *reader, signal syscall.Signal) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(r.file(t, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// file returns the contents of a file in the reader's home.
func (r *reader) file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.home, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTUISuspended: a key and SIGTSTP stop the reader, and it continues when the shell continues
// it.
func TestTUISuspended(t *testing.T) {
	t.Parallel()
	r := read(t, readerDir(t, false), 80, 24, "")
	for i := range 2 {
		r.see(t, `Gamma +3`)
		if i == 0 {
			r.Keys("C-z")
		} else {
			kill(t, r, syscall.SIGTSTP)
		}
		r.Await(fmt.Sprintf("STOPPED %d", i+1))
		if before, after := r.file(t, "before"), r.file(t, "after"); before != after {
			t.Errorf("the terminal was %q and is %q", before, after)
		}
		if got := r.Tell("#{alternate_on}"); got != "0" {
			t.Errorf("the reader still has the alternate screen")
		}
		if i == 1 {
			r.Resize(100, 30) // a stopped process gets no signal for this
		}
		r.Keys("Enter")
	}
	r.see(t, `Gamma +3`)
	r.see(t, `^.{94}\? help$`)
	r.Keys("Q")
	r.ended(t, 0)
}

// TestTUIKeys reads a user's file of keys. Its commands run for the entry, and get untrusted text
// as one argument.
func TestTUIKeys(t *testing.T) {
	d := testdir.New(t)
	if _, err := d.Feed("http://a.example/", "Alpha"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Entry("http://a.example/", "new", "1700000001.1.h", "title=--rf $(touch pwned); a  b", "content=text"); err != nil {
		t.Fatal(err)
	}
	keys := "use vim\nX run-wait printf '<%s>' {{.title}} {{.path}}\nY spawn sh -c 'echo \"$LEKTOR_FEED said\"'\n,f flags +a ; toggle-flagged\nbad line\n"
	if err := os.MkdirAll(filepath.Join(d.Path, "etc/view"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(d.Path, "etc/view/keys")
	if err := os.WriteFile(file, []byte(keys), 0o644); err != nil {
		t.Fatal(err)
	}
	r := read(t, d, 100, 24, "")
	r.Await("there is no action")
	r.Keys("l")
	r.see(t, `>N .*--rf`)
	r.Keys("X")
	// The path may be longer than the screen is wide.
	r.Until("the arguments", func(lines []string) bool {
		return strings.Contains(strings.Join(lines, ""), "< --rf $(touch pwned); a  b><"+d.Path+"/new/")
	})
	r.Await("[Enter]")
	r.Resize(80, 20) // while a command has the terminal
	r.Keys("Enter")
	r.see(t, `>N .*--rf`)
	r.see(t, `^.{74}\? help$`)
	r.Keys("Y")
	r.see(t, `Alpha said`)
	r.Keys(",", "f")
	r.Until("flags", func([]string) bool {
		found, _ := filepath.Glob(d.Path + "/cur/*/*;2,Fa")
		return len(found) == 1
	})
	r.Keys("Z", "Z")
	r.ended(t, 0)

	// Commands do not run if others can write to the file.
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	r = read(t, d, 100, 24, "")
	r.Await("there is no action")
	r.Keys("l", "Y")
	r.see(t, `can be written by others`)
	r.Keys(":", "q", "Enter")
	r.ended(t, 0)
}

// TestTUICommands presses keys, and runs the commands of docs/tui.md on an equal lektor-dir.
// Afterwards both are equal.
func TestTUICommands(t *testing.T) {
	d, twin := readerDir(t, false), readerDir(t, false)
	opened := filepath.Join(t.TempDir(), "opened")
	browser := "LEKTOR_BROWSER=sh -c 'echo \"$0\" >>" + opened + "'"
	r := read(t, d, 80, 24, "", browser)
	r.see(t, `9 unread`)
	entry := "1700000009.1.h"
	run := func(line string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = twin.Path
		cmd.Env = append(os.Environ(), "LEKTORDIR="+twin.Path, "HOME="+r.home, browser)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	paths := func(d *testdir.Dir) string {
		var names []string
		for _, pattern := range []string{"new/*/*", "cur/*/*", "etc/view/query/*"} {
			found, _ := filepath.Glob(filepath.Join(d.Path, pattern))
			for _, path := range found {
				rel, _ := filepath.Rel(d.Path, path)
				if data, err := os.ReadFile(path); err == nil {
					rel += "=" + string(data)
				}
				names = append(names, rel)
			}
		}
		return strings.Join(names, "\n")
	}
	same := func(keys string) {
		t.Helper()
		r.Until("after "+keys, func([]string) bool { return paths(d) == paths(twin) })
	}
	r.Keys("l")
	r.see(t, `>N .*three 2`)
	for _, c := range []struct{ key, command string }{
		{"m", "lektor-view mark --set F " + entry},
		{"m", "lektor-view mark --clear F " + entry},
		{"r", "lektor-view mark --set S " + entry},
		{"r", "lektor-view mark --clear S " + entry},
		{"u", "lektor-view undo"},
		{"u", "lektor-view undo"},
		{"M", "lektor-view mark --set Fa --clear S " + entry},
		{"Enter", "lektor-view show --mark " + entry},
		{"L", "lektor-view open --keep --link 1 " + entry},
		{"o", "lektor-view open --keep " + entry + " || :"}, // it has no link of its own
		{"d", "lektor-view rm " + entry},
		{"u", "lektor-view undo"},
		{"/", "echo title:two >etc/view/query/second"},
		{"A", "lektor-view ls -o path title:two | lektor-view mark --set S -"},
	} {
		r.Keys(c.key)
		switch c.key {
		case "A":
			r.see(t, `^mark 3 entries of All as read`)
			r.Keys("y")
		case "M":
			r.see(t, `^flags`)
			r.Type("+Fa-S")
			r.Keys("Enter")
		case "Enter":
			r.see(t, `a link\[1\]`)
		case "L":
			r.see(t, `^link number`)
			r.Keys("1") // the only link, so it needs no Enter
			r.see(t, `^opened`)
		case "/":
			r.Type("title:two")
			r.see(t, `/title:two  1/3`)
			r.Keys("Enter", "S")
			r.see(t, `^save as`)
			r.Type("second")
			r.Keys("Enter")
			if err := os.MkdirAll(filepath.Join(twin.Path, "etc/view/query"), 0o755); err != nil {
				t.Fatal(err)
			}
			r.see(t, `\?second`)
		}
		run(c.command)
		same(c.key)
	}
	if got := strings.Join(strings.Fields(r.read(t, opened)), " "); got != "https://x.example/9 https://x.example/9" {
		t.Errorf("opened %q", got)
	}
	r.Keys("Q")
	r.ended(t, 0)
}

func (r *reader) read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
