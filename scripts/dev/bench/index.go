//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// queries returns the queries for the index and for notmuch.
func queries() []struct{ name, lektor, notmuch string } {
	since := newest.Add(-30 * 24 * time.Hour).Format("2006-01-02")
	return []struct{ name, lektor, notmuch string }{
		{"the newest unread", "is:unread", "tag:unread"},
		{"a rare word", rareWord, rareWord},
		{"a frequent word", frequentWord, frequentWord},
		{"a phrase", `"` + phraseWords + `"`, `"` + phraseWords + `"`},
		{"folder: since:", "folder:topic3 since:" + since, "path:topic3/** date:" + since + ".."},
	}
}

// index measures indexing and queries, and notmuch with the same texts as mail. Since notmuch
// takes minutes for each ten thousand, it may get only the newest ones.
func (b *bench) index() {
	n, mailed := sizes["indexed"], min(sizes["mailed"], sizes["indexed"])
	if n == 0 {
		return
	}
	feeds := max(20, n/500)
	dir, mail := filepath.Join(b.dir, "indexed"), filepath.Join(b.dir, "mail")
	l := library{
		feeds: feeds, entries: n, size: sizes["bytes"],
		age:  func(i int) time.Duration { return time.Duration(i) * time.Minute * time.Duration(max(1, 500_000/n)) },
		read: func(i int) bool { return i%50 != 0 },
	}
	ours := b.ours("lektor-view index")
	var theirs []*way
	if mailed > 0 {
		theirs = b.other(fmt.Sprintf("notmuch new (of %d)", mailed), "notmuch")
	}
	for _, w := range theirs {
		l.mail, l.mailed, w.n = mail, mailed, mailed
		config := fmt.Sprintf("[database]\npath=%s\n[user]\nname=x\nprimary_email=x@example.com\n[new]\ntags=\n[maildir]\nsynchronize_flags=true\n", mail)
		must.Do(os.WriteFile(filepath.Join(w.dir, "notmuch-config"), []byte(config), 0o600))
	}
	texts, mailTexts := l.make(dir)
	b.compare(group{what: fmt.Sprintf("indexing of %d × %.1f kB", n, float64(sizes["bytes"])/1000), unit: "entries",
		n: n, rounds: 1}, slices.Concat(ours, theirs), func(w *way, _ int) measurement {
		if w.bin == "" {
			m, _ := take(command(w.dir, "notmuch", "new", "--quiet"))
			return m.part(filepath.Join(mail, ".notmuch/xapian/*"), mailTexts)
		}
		m, _ := take(w.lektor(dir, "lektor-view", "index"))
		return m.part(filepath.Join(w.dir, "cache/lektor/index-*"), texts)
	})

	// asking returns the ways to query an index of lektor.
	asking := func(query ...string) (ways []*way) {
		for _, w := range ours {
			ways = append(ways, w.asks(strings.Replace(w.name, "index", "ls -n 50", 1),
				w.lektor(dir, "lektor-view", append([]string{"ls", "-n", "50"}, query...)...)))
		}
		return ways
	}
	for _, q := range queries() {
		ways := asking("-a", q.lektor)
		for _, w := range theirs {
			// With new, notmuch finds mail that other programs have moved, like lektor-view.
			ways = append(ways, w.asks(fmt.Sprintf("notmuch search (of %d)", mailed),
				command(w.dir, "notmuch", "search", "--limit=50", q.notmuch)),
				w.asks("notmuch new, search", command(w.dir, "sh", "-c",
					`notmuch new --quiet && exec notmuch search --limit=50 "$1"`, "sh", q.notmuch)))
		}
		b.compare(group{what: fmt.Sprintf("%s of %d", q.name, n), unit: "queries", n: 1, rounds: 2 * b.rounds,
			warm: true}, ways, nil)
	}
	b.compare(group{what: "the newest unread, and 100 arrived", unit: "queries", n: 1, warm: true, before: func(int) {
		arrive(dir, 0, min(feeds, 100), sizes["bytes"])
		// An entry of the same clock tick would be read again.
		time.Sleep(200 * time.Millisecond)
	}}, asking("is:unread"), nil)
}

// asks returns a way that runs a command each time, with the index of another way.
func (w *way) asks(name string, cmd *exec.Cmd) *way {
	return &way{name: name, bin: w.bin, dir: w.dir, once: func(*way, int) measurement {
		repeat := exec.Command(cmd.Path, cmd.Args[1:]...)
		repeat.Env, repeat.Dir = cmd.Env, cmd.Dir
		m, out := take(repeat)
		m.note = fmt.Sprintf("%d lines", bytes.Count(out, []byte("\n")))
		return m
	}}
}

// part adds the size of an index to the note.
func (m measurement) part(glob string, texts int64) measurement {
	var size int64
	for _, f := range must.Get(filepath.Glob(glob)) {
		size += must.Get(os.Stat(f)).Size()
	}
	m.note = fmt.Sprintf("%d %% of the texts", 100*size/texts)
	return m
}
