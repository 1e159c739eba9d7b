package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// listing measures how long it takes to list the newest entries of many, and
// mlist and mscan of mblaze to list as many messages.
func (o options) listing(dir string, t *table) error {
	if o.listed < 1 {
		return nil
	}
	view := filepath.Join(o.bin, "lektor-view")
	if _, err := os.Stat(view); err != nil {
		return fmt.Errorf("%w (run make first)", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	feeds, mail := filepath.Join(dir, "feeds"), filepath.Join(dir, "mail")
	if err := o.unread(feeds); err != nil {
		return err
	}
	exec.Command("sync").Run()
	g := t.group(fmt.Sprintf("the newest 50 of %d", o.listed), "entries")
	best := func(name string, lines int, argv ...string) error {
		var best measurement
		// The first one warms the cache, and does not count.
		for round := range o.rounds + 1 {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env = environment(dir)
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			var m measurement
			if err := m.take(cmd); err != nil {
				return fmt.Errorf("%s: %w\n%s", name, err, said.String())
			}
			if n := bytes.Count(out.Bytes(), []byte("\n")); n != lines {
				return fmt.Errorf("%s lists %d, not %d", name, n, lines)
			}
			if round > 0 {
				best.keep(m)
			}
		}
		g.add(&contestant{name: name, family: !strings.HasPrefix(name, "lektor-view")}, float64(o.listed), best)
		return nil
	}
	if err := best("lektor-view ls -n 50", min(50, o.listed), view, "--dir", feeds, "ls", "-n", "50"); err != nil {
		return err
	}
	if installed("mlist") == "" || installed("mscan") == "" {
		return nil
	}
	if err := o.maildir(mail); err != nil {
		return err
	}
	exec.Command("sync").Run()
	return best("mlist | mscan", o.listed, "sh", "-c", `mlist "$1" | mscan`, "sh", mail)
}

// unread makes a lektor-dir of unread entries, a hundred to a feed.
func (o options) unread(dir string) error {
	const each = 100
	feeds := (o.listed + each - 1) / each
	return library(dir, feeds, func(i int) (*lektordir.Feed, []lektordir.Item) {
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
func (o options) maildir(dir string) error {
	for _, d := range []string{"tmp", "new", "cur"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	return parallel(o.listed, func(i int) error {
		date := modified.Add(-time.Duration(i) * time.Minute)
		text := fmt.Sprintf("From: A. Writer <writer@example.com>\nTo: reader@example.com\nSubject: Entry %d\nDate: %s\nMessage-ID: <%d@example.com>\nContent-Type: text/html; charset=utf-8\n\n<p>%s</p>\n",
			i, date.Format(time.RFC1123Z), i, strings.Repeat("text of an entry ", 10))
		return os.WriteFile(filepath.Join(dir, "new", fmt.Sprintf("%d.M%dP1.example", date.Unix(), i)), []byte(text), 0o600)
	})
}
