//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// share measures lektor-share: the first synchronisation of so many marks, one without
// news, one after a single change, and a peer that reads them.
func (b *bench) share() {
	n := sizes["marks"]
	if n == 0 {
		return
	}
	ways := b.ours("lektor-share sync")
	dir := func(w *way, who string) string { return filepath.Join(w.dir, who) }
	for _, w := range ways {
		for _, who := range []string{"mine", "theirs"} {
			library{
				feeds: max(1, n/1000), entries: n, size: 100,
				age:  func(i int) time.Duration { return time.Duration(i) * time.Minute },
				read: func(int) bool { return who == "mine" },
			}.make(dir(w, who))
			for f := range max(1, n/1000) { // feeds that are not subscribed to are not shared
				src := must.Get(filepath.Glob(filepath.Join(dir(w, who), "src/*")))[f]
				must.Do(os.WriteFile(filepath.Join(src, "etc/fetch/url"), must.Get(os.ReadFile(filepath.Join(src, "id"))), 0o666))
			}
			take(w.lektor(dir(w, who), "lektor-share", "init", "--name", who, filepath.Join(w.dir, "sync")))
		}
	}
	sync := func(what, who string, rounds int, change bool) {
		g := group{what: fmt.Sprintf("%s, %d marks", what, n), unit: "syncs", n: 1, rounds: rounds}
		b.compare(g, ways, func(w *way, _ int) measurement {
			if change {
				flagOne(dir(w, "mine"))
				if who == "theirs" {
					take(w.lektor(dir(w, "mine"), "lektor-share", "sync", "-q"))
				}
			}
			m, _ := take(w.lektor(dir(w, who), "lektor-share", "sync", "-q"))
			return m
		})
	}
	sync("first sync", "mine", 1, false)
	sync("nothing new", "mine", 0, false)
	sync("one change", "mine", 0, true)
	sync("a peer that reads all", "theirs", 1, false)
	sync("a peer that reads one change", "theirs", 0, true)
}

// flagOne flags an entry that is not flagged.
func flagOne(dir string) {
	found := must.Get(filepath.Glob(filepath.Join(dir, "cur/*/*;2,S")))
	if len(found) == 0 {
		must.Fail("no entry is left")
	}
	must.Do(os.Rename(found[0], strings.TrimSuffix(found[0], "S")+"FS"))
}
