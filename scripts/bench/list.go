package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// listing measures how long it takes to list the newest entries of many, and
// mlist and mscan of mblaze to list as many messages.
func (o options) listing(dir string, t *table) {
	if o.listed < 1 {
		return
	}
	view := o.built("lektor-view")
	must.Do(os.MkdirAll(dir, 0o700))
	feeds, mail := filepath.Join(dir, "feeds"), filepath.Join(dir, "mail")
	o.unread(feeds)
	exec.Command("sync").Run()
	g := t.group(fmt.Sprintf("the newest 50 of %d", o.listed), "entries")
	best := func(name string, lines int, argv ...string) {
		var best measurement
		// The first one warms the cache, and does not count.
		for round := range o.rounds + 1 {
			cmd := command(dir, argv[0], argv[1:]...)
			cmd.Env = append(cmd.Env, "XDG_CACHE_HOME=/dev/null") // the index is measured elsewhere
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			var m measurement
			m.take(name, cmd, &said)
			if n := bytes.Count(out.Bytes(), []byte("\n")); n != lines {
				must.Fail("%s lists %d, not %d", name, n, lines)
			}
			if round > 0 {
				best.keep(m)
			}
		}
		g.add(&contestant{name: name, family: !strings.HasPrefix(name, "lektor-view")}, float64(o.listed), best)
	}
	best("lektor-view ls -n 50", min(50, o.listed), view, "--dir", feeds, "ls", "-n", "50")
	if installed("mlist") == "" || installed("mscan") == "" {
		return
	}
	o.maildir(mail)
	exec.Command("sync").Run()
	best("mlist | mscan", o.listed, "sh", "-c", `mlist "$1" | mscan`, "sh", mail)
}

// unread makes a lektor-dir of unread entries, a hundred to a feed.
func (o options) unread(dir string) {
	const each = 100
	feeds := (o.listed + each - 1) / each
	library(dir, feeds, func(i int) (*lektordir.Feed, []lektordir.Item) {
		id := fmt.Sprintf("http://feed%d.example/", i)
		var items []lektordir.Item
		for k := range min(each, o.listed-i*each) {
			e := lektordir.Entry{
				ID: fmt.Sprintf("%s%d", id, k), Title: fmt.Sprintf("Entry %d of feed %d", k, i), Author: "A. Writer",
				Content: []byte("<p>" + strings.Repeat("text of an entry ", 10) + "</p>\n"), Type: "text/html",
				PubDate: modified.Add(-time.Duration(k*feeds+i) * time.Minute),
			}
			items = append(items, lektordir.Item{Entry: e, GUID: e.ID, Text: string(e.Content)})
		}
		return &lektordir.Feed{ID: id, Name: fmt.Sprintf("Feed %d", i)}, items
	})
}

// maildir makes a maildir of as many messages, with the same in them.
func (o options) maildir(dir string) {
	for _, d := range []string{"tmp", "new", "cur"} {
		must.Do(os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	parallel(o.listed, func(i int) {
		date := modified.Add(-time.Duration(i) * time.Minute)
		text := fmt.Sprintf("From: A. Writer <writer@example.com>\nTo: reader@example.com\nSubject: Entry %d\nDate: %s\nMessage-ID: <%d@example.com>\nContent-Type: text/html; charset=utf-8\n\n<p>%s</p>\n",
			i, date.Format(time.RFC1123Z), i, strings.Repeat("text of an entry ", 10))
		must.Do(os.WriteFile(filepath.Join(dir, "new", fmt.Sprintf("%d.M%dP1.example", date.Unix(), i)), []byte(text), 0o600))
	})
}
