//go:build linux

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
)

// queries are asked of the index and of notmuch.
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

// index measures indexing and queries, against notmuch with the same texts as mail. As
// that takes minutes for each ten thousand, it may have the newest ones alone, and a
// second lektor-dir has just these.
func (b *bench) index() {
	n, mailed := sizes["indexed"], min(sizes["mailed"], sizes["indexed"])
	if n == 0 {
		return
	}
	feeds := max(20, n/500)
	dir, mail, few := filepath.Join(b.dir, "indexed"), filepath.Join(b.dir, "mail"), filepath.Join(b.dir, "few")
	theirs := b.other("notmuch search", "notmuch")
	l := library{
		feeds: feeds, entries: n, size: sizes["bytes"],
		age:  func(i int) time.Duration { return time.Duration(i) * time.Minute * time.Duration(max(1, 500_000/n)) },
		read: func(i int) bool { return i%50 != 0 },
	}
	if theirs != nil && mailed > 0 {
		l.mail, l.mailed = mail, mailed
	} else {
		theirs, mailed = nil, n/10
	}
	texts, mailTexts := l.make(dir)
	l.entries, l.mail = mailed, ""
	fewTexts, _ := l.make(few)

	all, some := b.ours("lektor-view index"), b.ours(fmt.Sprintf("lektor-view index (of %d)", mailed))
	for _, w := range some {
		w.n = mailed
	}
	builders := append(append([]*way{}, all...), some...)
	for _, w := range theirs {
		builder := &way{name: fmt.Sprintf("notmuch new (of %d)", mailed), n: mailed, dir: w.dir}
		builders = append(builders, builder)
		config := fmt.Sprintf("[database]\npath=%s\n[user]\nname=x\nprimary_email=x@example.com\n[new]\ntags=\n[maildir]\nsynchronize_flags=true\n", mail)
		must.Do(os.WriteFile(filepath.Join(w.dir, "notmuch-config"), []byte(config), 0o600))
	}
	b.compare(group{what: fmt.Sprintf("indexing of %d × %.1f kB", n, float64(sizes["bytes"])/1000), unit: "entries", n: n, rounds: 1}, builders, func(w *way, _ int) measurement {
		switch {
		case w.bin == "":
			m, _ := take(command(w.dir, "notmuch", "new", "--quiet"))
			return m.part(filepath.Join(mail, ".notmuch/xapian/*"), mailTexts)
		case w.n == mailed:
			m, _ := take(w.lektor(few, "lektor-view", "index"))
			return m.part(filepath.Join(w.dir, "cache/lektor/index-*"), fewTexts)
		}
		m, _ := take(w.lektor(dir, "lektor-view", "index"))
		return m.part(filepath.Join(w.dir, "cache/lektor/index-*"), texts)
	})

	// ask asks our ways, which have their indexes, and notmuch.
	ask := func(ways []*way, command func(w *way) *exec.Cmd) {
		for _, w := range ways {
			w.once = func(w *way, _ int) measurement {
				m, out := take(command(w))
				m.note = fmt.Sprintf("%d lines", bytes.Count(out, []byte("\n")))
				return m
			}
		}
	}
	for _, w := range builders {
		w.name, w.n = strings.Replace(w.name, "index", "ls -n 50", 1), 0
	}
	for _, q := range queries() {
		ask(all, func(w *way) *exec.Cmd { return w.lektor(dir, "lektor-view", "ls", "-n", "50", "-a", q.lektor) })
		ask(some, func(w *way) *exec.Cmd { return w.lektor(few, "lektor-view", "ls", "-n", "50", "-a", q.lektor) })
		ways := append(append([]*way{}, all...), some...)
		for _, w := range theirs {
			// Mail that other programs have moved counts with new, as it does for lektor-view.
			after := &way{name: "notmuch new, search", dir: w.dir}
			ask([]*way{w}, func(w *way) *exec.Cmd { return command(w.dir, "notmuch", "search", "--limit=50", q.notmuch) })
			ask([]*way{after}, func(w *way) *exec.Cmd {
				return command(w.dir, "sh", "-c", `notmuch new --quiet && exec notmuch search --limit=50 "$1"`, "sh", q.notmuch)
			})
			ways = append(ways, w, after)
		}
		b.compare(group{what: fmt.Sprintf("%s of %d", q.name, n), unit: "queries", n: 1, rounds: 2 * b.rounds, warm: true}, ways, nil)
	}
	unread := func(w *way) *exec.Cmd { return w.lektor(dir, "lektor-view", "ls", "-n", "50", "is:unread") }
	ask(all, unread)
	b.compare(group{what: "the newest unread, and 100 arrived", unit: "queries", n: 1, warm: true, before: func(int) {
		arrive(dir, min(feeds, 100), sizes["bytes"])
		// An entry of the same tick of the clock would be looked at again.
		time.Sleep(200 * time.Millisecond)
	}}, all, nil)
	// As many feeds with fewer entries.
	ask(some, func(w *way) *exec.Cmd { return w.lektor(few, "lektor-view", "ls", "-n", "50", "is:unread") })
	b.compare(group{what: fmt.Sprintf("the newest unread of %d", mailed), unit: "queries", n: 1, warm: true}, some, nil)
}

// part notes how large an index is.
func (m measurement) part(glob string, texts int64) measurement {
	var size int64
	for _, f := range must.Get(filepath.Glob(glob)) {
		size += must.Get(os.Stat(f)).Size()
	}
	m.note = fmt.Sprintf("%d %% of the texts", 100*size/texts)
	return m
}
