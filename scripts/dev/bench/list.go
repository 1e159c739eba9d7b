//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// listed makes the lektor-dir of the rows list and tui once: short unread entries, a hundred to a
// feed, and as many messages in maildirs.
func (b *bench) listed() (dir, mail string) {
	dir, mail = filepath.Join(b.dir, "listed"), filepath.Join(b.dir, "listed-mail")
	if found, _ := filepath.Glob(dir); found == nil {
		n := sizes["listed"]
		library{
			feeds: max(1, n/100), entries: n, size: 160, mail: mail, mailed: n,
			age:  func(i int) time.Duration { return time.Duration(i) * time.Minute },
			read: func(int) bool { return false },
		}.make(dir)
	}
	return dir, mail
}

// list measures a list of the newest entries of many without the index, and mblaze with as many
// messages.
func (b *bench) list() {
	if sizes["listed"] == 0 {
		return
	}
	dir, mail := b.listed()
	ours := b.ours("lektor-view ls -n 50")
	ways := append(ours, b.other("mlist | mscan", "mlist", "mscan")...)
	b.compare(group{what: fmt.Sprintf("the newest 50 of %d", sizes["listed"]), unit: "entries", n: sizes["listed"],
		warm: true}, ways, func(w *way, _ int) measurement {
		lines, cmd := min(50, sizes["listed"]), w.lektor(dir, "lektor-view", "ls", "-n", "50")
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME=/dev/null")
		if w.bin == "" {
			lines, cmd = sizes["listed"], command(w.dir, "sh", "-c", `mlist "$1"/*/* | mscan`, "sh", mail)
		}
		m, out := take(cmd)
		if n := bytes.Count(out, []byte("\n")); n != lines {
			must.Fail("%s lists %d, want %d", w.name, n, lines)
		}
		if w.bin == "" {
			m.memory = 0 // the measured memory is the shell's
		}
		return m
	})
}
