package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/lektordir"
)

// opener is a disk that records the URLs that are opened.
type opener struct {
	*paged
	opened chan string
}

func (d opener) Command(ctx context.Context, ref lektordir.Ref, of page.Program, words []string) ([]string, []string, error) {
	if of == page.Browser {
		d.opened <- words[0]
	}
	return d.paged.Command(ctx, ref, of, words)
}

func newOpener(entry page.Entry) opener { return opener{newPaged(entry), make(chan string, 9)} }

// manyLinks returns a page with twelve links, an enclosure and a picture.
func manyLinks() page.Entry {
	p := page.Entry{Text: "text", Enclosures: []string{"http://e.example/1.mp3"}, Pictures: []string{"http://p.example/1.png"}}
	for i := range 12 {
		p.Links = append(p.Links, fmt.Sprintf("http://x.example/%d/%s/end", i+1, strings.Repeat("long", i)))
	}
	return p
}

// The list of links shows whole URLs on a narrow screen, and opens and copies them.
func TestLinks(t *testing.T) {
	d := newOpener(manyLinks())
	k := openPage(t, d, 40, 15)
	k.press("b")
	for i := range 14 {
		// The line of the cursor is whole.
		_, shown, _ := strings.Cut(k.shows(), "\n>")
		whole := strings.ReplaceAll(strings.ReplaceAll(shown, "\n", ""), " ", "")
		list := slices.Concat(d.page.Links, d.page.Enclosures, d.page.Pictures)
		if want := list[i]; !strings.Contains(whole, want) {
			t.Fatalf("line %d: no %s in\n%s", i, want, k.shows())
		}
		k.press("j")
	}
	k.press("g", "g", "j", "enter")
	if got := <-d.opened; got != d.page.Links[1] {
		t.Errorf("opened %s", got)
	}
	k.press("1", "1", "o")
	if got := <-d.opened; got != d.page.Links[10] {
		t.Errorf("opened %s", got)
	}
	k.press("y")
	k.await("URL sent to the terminal's clipboard")
	k.press("9", "9", "o") // opens nothing else
	k.await("there is no line 99")
	k.press("q")
	if k.prompt.Menu != nil {
		t.Error("q does not close the menu")
	}
}

// A number needs no Enter when it can only be one link.
func TestGoto(t *testing.T) {
	d := newOpener(manyLinks())
	k := openPage(t, d, 80, 24)
	for _, tc := range []struct {
		keys []string
		link int
	}{{[]string{"2"}, 2}, {[]string{"1", "2"}, 12}, {[]string{"1", "enter"}, 1}, {[]string{"0", "3"}, 3}} {
		k.press("#")
		k.press(tc.keys...)
		if got := <-d.opened; got != d.page.Links[tc.link-1] || k.prompt.Line != nil {
			t.Errorf("%s: opened %s", tc.keys, got)
		}
	}
	k.press("#", "1", "5")
	if !strings.Contains(k.shows(), "there is no link 15") {
		t.Errorf("%s", k.shows())
	}
	k = openPage(t, newPaged(page.Entry{Text: "text"}), 80, 24)
	k.press("#")
	if k.prompt.Line != nil || !strings.Contains(k.shows(), "the entry has no links") {
		t.Errorf("%s", k.shows())
	}
}

// yank copies by the terminal, or by the program of LEKTOR_CLIPBOARD. A bookmark shows the output
// of its command.
func TestYank(t *testing.T) {
	d := newPaged(manyLinks())
	d.clips = filepath.Join(t.TempDir(), "clips")
	k := openPage(t, d, 80, 24)
	k.press("y", "y")
	k.await("URL sent to the terminal's clipboard")
	k.press("2", "y", "e")
	if !strings.Contains(k.shows(), "the entry has 1 enclosure") {
		t.Errorf("%s", k.shows())
	}
	k.browser.page.Programs.Getenv = func(string) string { return "clip -i" }
	k.press("y", "t")
	k.await("title copied")
	k.press("y", "e")
	k.await("URL of the enclosure copied")
	clips, err := os.ReadFile(d.clips)
	if want := "clip the title\nclip " + d.page.Enclosures[0] + "\n"; err != nil || string(clips) != want {
		t.Errorf("%q %v", clips, err)
	}
	k.update(tea.KeyPressMsg{Code: 'p', Mod: tea.ModCtrl})
	k.await("kept")
}

func TestPipeForm(t *testing.T) {
	for _, tc := range []struct{ words, want string }{
		{"", "text []"}, {"html", "html []"}, {"url xclip -i", "url [xclip -i]"}, {"grep text", "text [grep text]"},
	} {
		form, rest := keys.PipeForm(strings.Fields(tc.words))
		if got := fmt.Sprint(form, " ", rest); got != tc.want {
			t.Errorf("%s: %s", tc.words, got)
		}
	}
	// A command in the file of keys is run only if the file is the user's.
	for line, commands := range map[string]bool{"x pipe": false, "x pipe html": false, "x pipe less": true, "x pipe url less": true} {
		if k := ParseKeys("keys", []byte(line)); RunsCommands(k) != commands || len(k.Errs) > 0 {
			t.Errorf("%s: %t %v", line, RunsCommands(k), k.Errs)
		}
	}
}
