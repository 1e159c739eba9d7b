package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/browser"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// atPage waits until the browser is at a page, whose title has a beginning.
func atPage(b *browser.Tab, title string) {
	b.Await(fmt.Sprintf("document.readyState == 'complete' && document.title.startsWith(%q)", title))
}

// logIn logs in as ann, at the page of that.
func logIn(b *browser.Tab) {
	b.Eval("(document.querySelector('[name=name]').value = 'ann', document.querySelector('[name=password]').value = 'right')")
	b.Loads(func() { b.Click(".login button") })
}

// waitFor waits until the entries have these places.
func (f *fixture) waitFor(want string) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); f.flags() != want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("got %s, want %s", f.flags(), want)
		}
	}
}

// A day of a reader in Chromium, at the widths of a phone, a tablet and a desktop, with and without scripts, light
// and dark: log in, add a page, read, star, search, tick, mark above, undo, log out.
func TestInABrowser(t *testing.T) {
	for _, tc := range []struct {
		width         int
		dark, scripts bool
	}{{320, false, false}, {320, true, true}, {768, false, true}, {1280, true, false}, {1280, false, true}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			f := newFixture(t)
			for i := range 6 {
				f.add(feedA, int64(100+i), "-", fmt.Sprintf("title=Entry %d", i), "content=<p>Text about tea.</p>",
					"type=text/html")
			}
			b := browser.Start(t)
			b.Window(tc.width, 700, tc.dark, tc.scripts)
			b.Open(f.base)
			atPage(b, "Log in")
			logIn(b)
			atPage(b, "Unread (6)")
			if tc.scripts {
				f.readByKeys(b)
			} else {
				f.readByLinks(b)
			}
			f.waitFor("100:new 101:new 102:new 103:S 104:FS 105:S")

			b.Open(f.base + "search?q=tea+is:unread")
			ticks := "[...document.querySelectorAll('.entries input')]"
			b.Eval("(" + ticks + "[0].click(), " + ticks + "[2].dispatchEvent(new MouseEvent('click', {shiftKey: true, bubbles: true})))")
			if got, want := b.Eval(ticks+".filter(e => e.checked).length"), map[bool]string{true: "3", false: "2"}; got != want[tc.scripts] {
				t.Errorf("%s are ticked by a click with shift", got)
			}
			b.Loads(func() { b.Click("[value=range]") })
			f.waitFor("100:S 101:S 102:S 103:S 104:FS 105:S")
			b.Await("document.querySelector('#said').textContent.includes('Marked 3 entries as read.')")
			b.Loads(func() { b.Click("#said button") })
			f.waitFor("100: 101: 102: 103:S 104:FS 105:S")

			// Marks that other programs make appear.
			if err := os.Rename(filepath.Join(f.Path, "cur", f.a, testdir.Unique(102, 102)+";2,"),
				filepath.Join(f.Path, "cur", f.a, testdir.Unique(102, 102)+";2,S")); err != nil {
				t.Fatal(err)
			}
			b.Open(f.base + "unread")
			atPage(b, "Unread (2)")
			b.Loads(func() { b.Click("[value=above]") })
			f.waitFor("100:S 101:S 102:S 103:S 104:FS 105:S")
			b.Open(f.base + "add")
			b.Eval("document.querySelector('[name=url]').value = 'c.example/blog'")
			b.Loads(func() { b.Click(".find button") })
			b.Await("document.body.textContent.includes('c.example')")
			for _, path := range []string{"feeds", "all", "help", "search?q=x:", "starred"} {
				b.Open(f.base + path)
				if got := b.Eval("document.documentElement.scrollWidth"); got != fmt.Sprint(tc.width) {
					t.Errorf("%s scrolls: %s pixels of %d", path, got, tc.width)
				}
				small := b.Eval("[...document.querySelectorAll('button, nav a, .entries label, .entries a, input:not([type=hidden]):not([type=checkbox])')]." +
					"filter(e => e.offsetHeight > 0 && e.offsetHeight < 44).map(e => e.outerHTML)")
				if small != "" {
					t.Errorf("%s: less than 44 pixels: %s", path, small)
				}
			}
			b.Open(f.base + "feeds")
			b.Loads(func() { b.Click("[action=logout] button") })
			atPage(b, "Log in")
			if b.Console() != "" {
				t.Errorf("console: %s", b.Console())
			}
			for _, url := range b.Requests() {
				if !strings.HasPrefix(url, f.base) && !strings.HasPrefix(url, "data:") {
					t.Errorf("a request for %s", url)
				}
			}
		})
	}
}

// readByKeys reads the newest three entries by keys, and stars the second.
func (f *fixture) readByKeys(b *browser.Tab) {
	b.Press("j")
	b.Loads(func() { b.Press("o") })
	atPage(b, "Entry 5")
	f.waitFor("100:new 101:new 102:new 103:new 104:new 105:S")
	b.Await("document.querySelector('#m').value == 'unread' && document.querySelector('header b').textContent == '5'")
	b.Loads(func() { b.Press("j") })
	atPage(b, "Entry 4")
	f.waitFor("100:new 101:new 102:new 103:new 104:S 105:S")
	b.Press("s")
	f.waitFor("100:new 101:new 102:new 103:new 104:FS 105:S")
	b.Loads(func() { b.Press("n") })
	atPage(b, "Entry 3")
	f.waitFor("100:new 101:new 102:new 103:S 104:FS 105:S")
	b.Await("document.querySelector('#m').value == 'unread'")
	b.Press("m")
	f.waitFor("100:new 101:new 102:new 103: 104:FS 105:S")
	b.Await("document.querySelector('#said').textContent.includes('Marked 1 entry as unread.')")
	b.Press("m")
	f.waitFor("100:new 101:new 102:new 103:S 104:FS 105:S")
	b.Loads(func() { b.Press("u") })
	atPage(b, "Unread (3)")
	if got := b.Eval("[...document.querySelectorAll('.read span')].map(e => e.textContent)"); got != "Entry 5,Entry 4,Entry 3" {
		f.t.Errorf("greyed: %s", got)
	}
	b.Press("?")
	b.Await("document.querySelector('dialog[open]')?.textContent.includes('next entry')")
	b.Click("dialog button")
	b.Await("!document.querySelector('dialog')")
	for _, step := range [][2]string{{"gs", "Starred"}, {"gf", "Feeds"}, {"gu", "Unread"}, {"/", "Search"}} {
		b.Loads(func() { b.Press(strings.Split(step[0], "")...) })
		atPage(b, step[1])
	}
	b.Await("document.activeElement.type == 'search'")
	b.Press("m", "u", "?") // typed into the search
	b.Await("document.querySelector('[type=search]').value == 'mu?'")
	b.Open(f.base + "unread")
}

// readByLinks reads the same entries by links and buttons.
func (f *fixture) readByLinks(b *browser.Tab) {
	b.Loads(func() { b.Click(".entries a") })
	atPage(b, "Entry 5")
	b.Loads(func() { b.Click(".bar button") })
	atPage(b, "Entry 4")
	f.waitFor("100:new 101:new 102:new 103:new 104:new 105:S")
	b.Loads(func() { b.Click("#s") })
	f.waitFor("100:new 101:new 102:new 103:new 104:F 105:S")
	b.Loads(func() { b.Click(".bar button") })
	atPage(b, "Entry 3")
	b.Loads(func() { b.Click("#m") })
	f.waitFor("100:new 101:new 102:new 103:S 104:FS 105:S")
}

// A page of another site cannot mark, also if it sends the form in the window of the user.
func TestOtherSiteInABrowser(t *testing.T) {
	f := newFixture(t)
	key := f.add(feedA, 100, "-")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><title>evil</title><form method="post" action="%smark"><input name="do" value="read"><input name="e" value="%s"></form><iframe src="%[1]sunread"></iframe>`, f.base, key)
	}))
	defer evil.Close()
	b := browser.Start(t)
	b.Open(f.base + "login")
	logIn(b)
	// Another host, so that the browser takes it for another site.
	b.Open(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1))
	b.Loads(func() { b.Eval("document.forms[0].submit()") })
	b.Await("document.readyState == 'complete'")
	if f.flags() != "100:new" {
		t.Errorf("another site marks: %s", f.flags())
	}
	if !strings.Contains(b.Console(), "frame-ancestors") {
		t.Errorf("the page can be in a frame; console: %s", b.Console())
	}
	b.Open(f.base + "unread")
	atPage(b, "Unread (1)")
}
