package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/terminal"
)

// mouse sends a click at a column and a line, from 1. The buttons 64 and 65 are the wheel, up and
// down.
func (r *reader) mouse(button, column, line int) {
	var bytes []string
	for _, end := range []string{"M", "m"} {
		if button >= 64 && end == "m" {
			break
		}
		for _, b := range []byte(fmt.Sprintf("\x1b[<%d;%d;%d%s", button, column, line, end)) {
			bytes = append(bytes, fmt.Sprintf("%02x", b))
		}
	}
	r.Keys(append([]string{"-H"}, bytes...)...)
}

// TestTUIMouse: a click chooses or opens the line under it, and the wheel moves the pane. Without
// --mouse the reader does not use the mouse.
func TestTUIMouse(t *testing.T) {
	d := readerDir(t, true)
	r := read(t, d, 100, 24, "--mouse")
	r.see(t, `35 unread`)
	if got := r.Tell("#{mouse_any_flag} #{mouse_sgr_flag}"); got != "1 1" {
		t.Fatalf("the mouse mode of the terminal is %q", got)
	}
	feeds := r.see(t, `Gamma\s+3`)
	for i, l := range feeds {
		if strings.Contains(l, "Gamma") {
			r.mouse(0, 3, i+1)
		}
	}
	for i, l := range r.see(t, `│ Gamma +1/3`) {
		if strings.Contains(l, "three 1") {
			column := strings.Index(l, "three 1")
			r.mouse(0, column, i+1) // chooses
			r.see(t, `>N\s.*three 1`)
			r.mouse(0, column, i+1) // opens
		}
	}
	r.see(t, `Text of 8, a link\[1\]`)
	r.place(t, 8, "cur;2,S")
	r.mouse(0, 500, 500) // outside of the screen
	r.mouse(2, 1, 1)
	r.mouse(0, 1, 1)
	r.Keys("h")
	r.mouse(65, 50, 10)
	r.see(t, `>N?\s.*three 0`)
	r.mouse(64, 50, 10)
	r.see(t, `>N?\s.*three 2`)
	r.mouse(65, 3, 3)
	r.drawn(t, "a whole screen", func([]string) bool { return true })
	r.Keys("Q")
	r.ended(t, 0)
	if got := r.Tell("#{mouse_any_flag}"); got != "0" {
		t.Errorf("mouse reports are still on: %q", got)
	}
	r = read(t, d, 100, 24, "")
	r.see(t, `34 unread`)
	if got := r.Tell("#{mouse_any_flag}"); got != "0" {
		t.Errorf("mouse reports are on without --mouse: %q", got)
	}
	r.Keys("Q")
	r.ended(t, 0)
}

// onSizes runs a test on a small, a usual and a large terminal.
func onSizes(t *testing.T, test func(t *testing.T, columns, lines int)) {
	for _, size := range [][2]int{{40, 15}, {80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			test(t, size[0], size[1])
		})
	}
}

// TestTUIFeedText: if the content is the article of the page, a key shows the feed's own text,
// and again the article. Another entry begins with its article.
func TestTUIFeedText(t *testing.T) {
	onSizes(t, func(t *testing.T, columns, lines int) {
		set := struct{ name, key string }{"default", "f"}
		if columns == 80 {
			set.name, set.key = "newsboat", "C-u"
		}
		d := readerDir(t, false)
		for i := range 2 {
			if _, err := d.Entry("http://c.example/", "new", fmt.Sprintf("180000000%d.1.h", i), fmt.Sprintf("title=full %d", i), "type=text/html",
				"content=<p>The whole <a href=http://c.example/x>article</a>.</p>", "feed-content=Its beginning, see https://feed.example/.", "+fulltext=http://c.example/1/\t"); err != nil {
				t.Fatal(err)
			}
		}
		r := read(t, d, columns, lines, "--keys "+set.name)
		r.see(t, `11 unread`)
		r.Keys("Enter")
		r.see(t, `>N .*full 1`)
		r.Keys("Enter")
		r.see(t, `The whole article\[1\]\.`)
		r.Keys(set.key)
		r.see(t, `Its beginning`)
		r.gone(t, `The whole`)
		r.Keys(set.key)
		r.see(t, `The whole article`)
		r.Keys(set.key)
		r.see(t, `Its beginning`)
		r.Keys("J")
		r.see(t, `full 0`)
		r.see(t, `The whole article`)
		r.Keys("J", set.key)
		r.see(t, `only the text of its feed`)
		r.Keys("Q")
		r.ended(t, 0)
	})
}

// TestTUIPlay: the player gets the enclosure with the typed number, and the browser the link. No
// shell sees their URLs.
func TestTUIPlay(t *testing.T) { onSizes(t, playing) }

func playing(t *testing.T, columns, lines int) {
	d := readerDir(t, false)
	played := filepath.Join(t.TempDir(), "played")
	if _, err := d.Entry("http://c.example/", "new", "1800000000.1.h", "title=pod", "type=text/html",
		`content=<a href="https://x.example/one">one</a> <a href="https://x.example/$(touch%20x);two">two</a> <a href="javascript:alert(1)">three</a>`,
		"+enclosure=https://x.example/a.mp3\taudio/mpeg\t1", "+enclosure=https://x.example/b';id.mp3\taudio/mpeg\t1", "+enclosure=file:///etc/passwd\taudio/mpeg\t1"); err != nil {
		t.Fatal(err)
	}
	script := func(word string) string { return `sh -c 'echo ` + word + ` "$0" >>` + played + `'` }
	r := read(t, d, columns, lines, "", "LEKTOR_PLAYER="+script("play"), "LEKTOR_BROWSER="+script("browse"))
	r.see(t, `10 unread`)
	r.Keys("l")
	r.see(t, `>N .*pod`)
	r.Keys("Enter")
	r.see(t, `one\[1\]`)
	has := func(want string) {
		t.Helper()
		r.Until(want, func([]string) bool {
			data, _ := os.ReadFile(played)
			return strings.HasSuffix(strings.TrimSpace(string(data)), want)
		})
	}
	r.Keys("p")
	has("play https://x.example/a.mp3")
	r.see(t, `one\[1\]`)
	r.Keys("2", "p")
	has("play https://x.example/b%27;id.mp3")
	r.see(t, `one\[1\]`)
	r.Keys("2", "o")
	has("browse https://x.example/$(touch%20x);two")
	r.see(t, `^opened `) // else this may replace the next message
	for _, keys := range []string{"3p", "9p", "9o"} {
		before := r.read(t, played)
		r.Type(keys)
		r.Until("a message after "+keys, func(lines []string) bool {
			return regexp.MustCompile(`not allowed|no link|has 3 enclosures`).MatchString(lines[len(lines)-1])
		})
		if got := r.read(t, played); got != before {
			t.Errorf("got %s: %s; want got == before", keys, got)
		}
		r.Keys("Escape", "Enter")
		r.see(t, `one\[1\]`)
	}
	r.drawn(t, "a whole screen", func([]string) bool { return true })
	r.Keys("Q")
	r.ended(t, 0)
}

// TestTUIColours: only the sixteen colours of every terminal are used, and none if the user wants
// none.
func TestTUIColours(t *testing.T) {
	sgr := regexp.MustCompile(`\x1b\[([0-9;:]*)m`)
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR="}, "36"},
		{[]string{"TERM=xterm-16color", "COLORTERM=", "NO_COLOR="}, "36"},
		{[]string{"TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR=1"}, ""},
	} {
		d := readerDir(t, false)
		tty := terminal.Open(t, 100, 24)
		cmd := tty.Command(append([]string{"LEKTORDIR=" + d.Path, "HOME=" + t.TempDir(), "TZ=UTC"}, c.env...), "lektor-view", "tui")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Await("three 2")
		tty.Type("l")
		tty.Type("\r")
		tty.Await("a link")
		tty.Type("Q")
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
		}
		out := tty.Output()
		colours := map[string]bool{}
		for _, m := range sgr.FindAllStringSubmatch(out, -1) {
			if strings.Contains(m[1], "38") || strings.Contains(m[1], "48") || strings.Contains(m[1], ":") {
				t.Errorf("%v: more than sixteen colours: %q", c.env, m[0])
			}
			for _, n := range strings.Split(m[1], ";") {
				if len(n) == 2 && (n[0] == '3' || n[0] == '4' || n[0] == '9') && n != "39" && n != "49" {
					colours[n] = true
				}
			}
		}
		if c.want == "" && len(colours) > 0 || c.want != "" && !colours[c.want] {
			t.Errorf("%v: colours %v", c.env, colours)
		}
	}
}
