package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// update replaces the recorded screens. Read their diff before you commit it.
var update = flag.Bool("update", false, "write the screens that the scripts show to testdata/screens")

// screenScript is a script of keys in testdata/screens. A line of it is
//
//	# a comment
//	args FLAG…      flags of the reader; first, if at all
//	KEYS "TEXT" …   press keys, by their names in a file of keys, and type texts; then compare the screen
//	$ COMMAND…      run lektor-view, and compare its output
//
// The recorded screens are in a file for each size beside it. A key whose effect comes late, for
// example a message of a command, needs another screen than the line before: otherwise the test goes
// on before the effect.
type screenScript struct {
	name, args string
	steps      []string
}

func screenScripts(t *testing.T) []screenScript {
	t.Helper()
	names, err := filepath.Glob("testdata/screens/*.keys")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var all []screenScript
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := screenScript{name: strings.TrimSuffix(name, ".keys")}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if rest, ok := strings.CutPrefix(line, "args "); ok {
				s.args = rest
			} else if line != "" && line[0] != '#' {
				s.steps = append(s.steps, line)
			}
		}
		all = append(all, s)
	}
	return all
}

// stroke is a key, or a text in quotes.
var stroke = regexp.MustCompile(`"[^"]*"|<[^>]+>|\S`)

// tmuxName returns tmux's name of a key.
func tmuxName(key string) string {
	named := map[string]string{
		"space": "Space", "enter": "Enter", "esc": "Escape", "tab": "Tab", "S-tab": "BTab", "backspace": "BSpace", "pageup": "PPage", "pagedown": "NPage",
		"up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End", "insert": "IC", "delete": "DC", "lt": "<", "hash": "#",
	}
	if key[0] != '<' || key == "<" {
		return key
	}
	name := strings.Trim(key, "<>")
	if n, ok := named[name]; ok {
		return n
	}
	return name
}

// minute is the time of a command that undo names.
var minute = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`)

// step types the keys of a line.
func (r *reader) step(line string) {
	for _, s := range stroke.FindAllString(line, -1) {
		if s[0] == '"' && len(s) > 1 {
			r.Type(strings.Trim(s, `"`))
		} else {
			r.Keys(tmuxName(s))
		}
	}
}

// screensDir makes the lektor-dir of the scripts: that of the other tests, and an entry with
// everything that an entry can have.
func screensDir(t *testing.T) *testdir.Dir {
	t.Helper()
	d := readerDir(t, false)
	long := strings.Repeat("<p>A paragraph with the word needle, and a few more words to wrap.</p>", 12)
	if _, err := d.Entry("http://c.example/", "new", "1700000020.1.h", "title=rich", "type=text/html", "author=Kim",
		`content=<h1>Rich</h1><p>See <a href="https://x.example/first">one</a> and <a href="https://x.example/second?a=1&amp;b=2">two</a>.</p>`+long,
		"+link=https://c.example/rich", "+enclosure=http://127.0.0.1:9/pod.mp3\taudio/mpeg\t1000"); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestScreens types the keys of each script at three sizes, and compares each screen with the
// recorded one.
func TestScreens(t *testing.T) {
	for _, s := range screenScripts(t) {
		for _, size := range [][2]int{{40, 15}, {80, 24}, {200, 50}} {
			golden := fmt.Sprintf("%s.%dx%d", s.name, size[0], size[1])
			t.Run(filepath.Base(golden), func(t *testing.T) {
				t.Parallel()
				s.run(t, golden, size[0], size[1])
			})
		}
	}
}

// settled returns what seen returns when it has stayed the same for a while, to record it.
func settled(r *reader, seen func() string) string {
	last, same := "", 0
	r.Until("a screen that stays", func([]string) bool {
		if now := seen(); now == last {
			same++
		} else {
			last, same = now, 0
		}
		return same == 15
	})
	return last
}

// TestScreensHaveAllKeys: a script presses each key of the default set. TestTUISignals presses ^Z,
// and TestNewsboatKeys in internal/e2e/clients those of newsboat's set.
func TestScreensHaveAllKeys(t *testing.T) {
	var steps []string
	for _, s := range screenScripts(t) {
		steps = append(steps, s.steps...)
	}
	text, _ := keys.Set(keys.DefaultSet)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "in" || words[0] == "<C-z>" || strings.HasPrefix(words[0], "#") {
			continue
		}
		keys := strings.Join(stroke.FindAllString(words[0], -1), " ")
		if !slices.ContainsFunc(steps, func(s string) bool { return strings.Contains(" "+s+" ", " "+keys+" ") }) {
			t.Errorf("no script presses %s", words[0])
		}
	}
}

func (s *screenScript) run(t *testing.T, golden string, columns, lines int) {
	recorded, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := strings.Split(string(recorded), "\x0c\n")[1:]
	programs := t.TempDir()
	if err := testdir.Programs(programs, "lektor-fetch"); err != nil {
		t.Fatal(err)
	}
	r := read(t, screensDir(t), columns, lines, s.args, "PATH="+programs+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "LEKTOR_BROWSER=true", "LEKTOR_PLAYER=true", "LEKTOR_BOOKMARK=true", "EDITOR=true")
	r.see(t, `feeds +10 unread`)
	var got strings.Builder
	for i, step := range s.steps {
		head := fmt.Sprintf("==> %s\n", step)
		seen := func() string {
			if command, ok := strings.CutPrefix(step, "$ "); ok {
				cmd := exec.Command("lektor-view", append([]string{"--dir", r.d.Path}, strings.Fields(command)...)...)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v", step, err)
				}
				return head + string(out)
			}
			screen := strings.TrimRight(strings.Join(r.Screen(), "\n"), "\n")
			return head + strings.ReplaceAll(minute.ReplaceAllString(screen, "2001-02-03 04:05"), r.d.Path, "DIR") + "\n"
		}
		if step[0] != '$' {
			r.step(step)
		}
		if *update {
			got.WriteString("\x0c\n" + settled(r, seen))
			continue
		}
		if i >= len(want) {
			t.Fatalf("%s has no screen of step %d, %s; run the test with -update", golden, i+1, step)
		}
		r.Until(fmt.Sprintf("step %d, recorded as\n%s", i+1, want[i]), func([]string) bool { return seen() == want[i] })
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
