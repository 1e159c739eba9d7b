//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// share measures lektor-share: the first sync of all marks, a sync without changes, a sync after
// a single change, and a peer that reads them.
func (b *bench) share() {
	n := sizes["marks"]
	if n == 0 {
		return
	}
	ways, feeds := b.ours("lektor-share sync"), max(1, n/1000)
	dir := func(w *way, who string) string { return filepath.Join(w.dir, who) }
	for _, w := range ways {
		for _, who := range []string{"mine", "theirs"} {
			library{
				feeds: feeds, entries: n, size: 100,
				age:  func(i int) time.Duration { return time.Duration(i) * time.Minute },
				read: func(int) bool { return who == "mine" },
			}.make(dir(w, who))
			subscribe(dir(w, who))
		}
	}
	// Load both lektor-dirs of each way into the cache before the first measurement.
	for _, w := range ways {
		readAll(w.dir)
	}
	sync := func(w *way, who string) measurement {
		m, _ := take(w.lektor(dir(w, who), "lektor-share", "sync", "-q"))
		return m
	}
	unshared := func(int) {
		for _, w := range ways {
			must.Do(os.RemoveAll(filepath.Join(w.dir, "sync")))
			for _, who := range []string{"mine", "theirs"} {
				must.Do(os.RemoveAll(filepath.Join(dir(w, who), "etc/share")))
				take(w.lektor(dir(w, who), "lektor-share", "init", "--name", who, filepath.Join(w.dir, "sync")))
			}
		}
	}
	row := func(what string, before func(int), once func(w *way) measurement) {
		g := group{what: fmt.Sprintf("%s, %d marks", what, n), unit: "syncs", n: 1, before: before}
		b.compare(g, ways, func(w *way, _ int) measurement { return once(w) })
	}
	row("first sync", unshared, func(w *way) measurement { return sync(w, "mine") })
	row("nothing new", nil, func(w *way) measurement { return sync(w, "mine") })
	row("one change", nil, func(w *way) measurement {
		flagOne(dir(w, "mine"))
		return sync(w, "mine")
	})
	row("a peer that reads all", func(r int) {
		unshared(r)
		for _, w := range ways {
			markUnread(dir(w, "theirs"))
			sync(w, "mine")
		}
	}, func(w *way) measurement { return sync(w, "theirs") })
	row("a peer that reads one change", nil, func(w *way) measurement {
		flagOne(dir(w, "mine"))
		sync(w, "mine")
		return sync(w, "theirs")
	})
}

// subscribe makes all feeds of a lektor-dir subscriptions, since others are not shared.
func subscribe(dir string) {
	for _, src := range must.Get(filepath.Glob(filepath.Join(dir, "src/*"))) {
		id := must.Get(os.ReadFile(filepath.Join(src, "id")))
		must.Do(os.WriteFile(filepath.Join(src, "etc/fetch/url"), id, 0o666))
	}
}

// readAll reads all files below a directory.
func readAll(dir string) {
	must.Do(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			_, err = os.ReadFile(path)
		}
		return err
	}))
}

// markUnread moves all entries into new.
func markUnread(dir string) {
	for _, path := range must.Get(filepath.Glob(filepath.Join(dir, "cur/*/*"))) {
		name, _, _ := strings.Cut(filepath.Base(path), ";")
		must.Do(os.Rename(path, filepath.Join(dir, "new", filepath.Base(filepath.Dir(path)), name)))
	}
}

// flagOne flags an entry that is not flagged.
func flagOne(dir string) {
	found := must.Get(filepath.Glob(filepath.Join(dir, "cur/*/*;2,S")))
	if len(found) == 0 {
		must.Fail("no entry is left")
	}
	must.Do(os.Rename(found[0], strings.TrimSuffix(found[0], "S")+"FS"))
}
