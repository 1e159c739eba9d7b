// Pictures makes the pictures of the README, docs/pictures/tui.svg and pages.png: the
// screen of lektor-view tui as tmux has it, and a page of lektor-pages html as Chromium
// shows it, both of feeds that are written here. What is not installed is left out.
//
//	make && go run ./scripts/pictures
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// The screen has three panes at this size, and can be read in a README.
const columns, lines = 132, 32

// largest is what a picture may have, in bytes.
const largest = 100_000

func main() {
	bin := flag.String("bin", "bin", "`directory` of lektor's programs")
	out := flag.String("out", "docs/pictures", "`directory` of the pictures")
	flag.Parse()
	if err := must.Run(func() { draw(*bin, *out) }); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func draw(bin, out string) {
	bin = must.Get(filepath.Abs(bin))
	must.Do(os.MkdirAll(out, 0o777))
	tmp := must.Get(os.MkdirTemp("", "lektor-pictures."))
	defer os.RemoveAll(tmp)
	library := filepath.Join(tmp, "feeds")
	deliver(library, time.Now())
	if path, err := exec.LookPath("tmux"); err != nil {
		fmt.Fprintln(os.Stderr, "pictures: no picture of the screen: tmux is not installed")
	} else {
		screen := photograph(path, tmp, bin, library)
		save(filepath.Join(out, "tui.svg"), []byte(svg(parse(screen, columns, lines), "lektor-view tui: folders and feeds, entries, and the entry")))
	}
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		fmt.Fprintln(os.Stderr, "pictures: no picture of a page: Chromium is not installed")
		return
	}
	run(tmp, filepath.Join(bin, "lektor-pages"), "--dir", library, "html", "--title", "Morning paper", filepath.Join(tmp, "site"))
	page := filepath.Join(tmp, "page.png")
	run(tmp, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+filepath.Join(tmp, "browser"),
		"--window-size=960,600", "--screenshot="+page, "file://"+filepath.Join(tmp, "site", "index.html"))
	save(filepath.Join(out, "pages.png"), must.Get(os.ReadFile(page)))
}

// save writes a picture.
func save(path string, data []byte) {
	if len(data) > largest {
		must.Fail("%s: %d bytes are more than %d", path, len(data), largest)
	}
	must.Do(atomicfile.Write(path, data))
	fmt.Printf("%s: %d bytes\n", path, len(data))
}

// run runs a program that knows nothing of the user's.
func run(home, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=xterm-256color", "TMPDIR=" + home}
	said, err := cmd.CombinedOutput()
	if err != nil {
		must.Fail("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said)
	}
	return string(said)
}

// photograph reads for a while, and gives the screen with its styles.
func photograph(tmux, tmp, bin, library string) string {
	socket := filepath.Join(tmp, "tmux")
	do := func(args ...string) string {
		return run(tmp, tmux, append([]string{"-S", socket, "-f", os.DevNull}, args...)...)
	}
	do("new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines), "-s", "reader", filepath.Join(bin, "lektor-view"), "--dir", library, "tui")
	defer do("kill-server")
	do("set", "-g", "status", "off")
	do("resize-window", "-t", "reader", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines))
	see := func(text string) string {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if strings.Contains(do("capture-pane", "-p", "-t", "reader"), text) {
				return do("capture-pane", "-e", "-N", "-p", "-t", "reader")
			}
		}
		must.Fail("%q is not to be seen, but\n%s", text, do("capture-pane", "-p", "-t", "reader"))
		return ""
	}
	see("How the light")
	do("send-keys", "-t", "reader", "l", "j", "m", "j", "j", "r", "k", "k", "k", "Enter")
	see("https://keeper.example/lamp")
	time.Sleep(time.Second) // the screen is drawn once more after it got its size
	return see("https://keeper.example/lamp")
}

// deliver writes the feeds into a lektor-dir, as if they had come in the last days.
func deliver(dir string, now time.Time) {
	d := must.Get(lektordir.Create(dir, nil))
	w := must.Get(d.NewWriter(lektordir.WriterOptions{}))
	committed := make(chan error, len(feeds))
	for _, f := range feeds {
		id := "https://" + f.host + "/feed"
		hash := lektordir.FeedHash(id)
		t := must.Get(w.Begin(hash))
		must.Do(t.PutFeed(&lektordir.Feed{ID: id, Name: f.name, Link: "https://" + f.host + "/"}))
		var items []lektordir.Item
		for i, e := range f.entries {
			entry := lektordir.Entry{
				ID: fmt.Sprintf("https://%s/%d", f.host, i), Link: fmt.Sprintf("https://%s/%d", f.host, i), Title: e.title, Author: f.author,
				Content: []byte(e.html), Type: "text/html", PubDate: now.Add(-e.age),
			}
			items = append(items, lektordir.Item{Entry: entry, GUID: entry.ID, Text: e.html})
		}
		must.Get(t.Stage(context.Background(), lektordir.Document{Items: items}))
		t.Commit(func(err error) {
			t.Close()
			committed <- err
		})
		w.Flush()
		must.Do(<-committed)
		must.Do(feeddir.SetCategories(d, hash, []string{f.folder}, atomicfile.Write))
	}
	must.Do(w.Close())
}
