// Share measures lektor-share: the first synchronisation of so many marks, one without
// news, one after a single change, and a peer that reads them.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/internal/testkit/must"
)

func main() {
	n := flag.Int("n", 100_000, "marks")
	flag.Parse()
	must.Main("bench", func() { run(*n) })
}

func run(n int) {
	work := must.Get(os.MkdirTemp("", "lektor-share-bench-"))
	defer os.RemoveAll(work)
	mine, theirs := filepath.Join(work, "mine"), filepath.Join(work, "theirs")
	for i, dir := range []string{mine, theirs} {
		fill(dir, n, i == 0)
		share(dir, "", "init", filepath.Join(work, "sync"))
	}
	fmt.Printf("%d marks of entries\n", n)
	for _, s := range []struct {
		dir, what string
		change    bool // before it
	}{
		{mine, "first sync", false},
		{mine, "nothing new", false},
		{mine, "one change", true},
		{theirs, "a peer that reads all", false},
		{mine, "one change more", true},
		{theirs, "a peer that reads it", false},
	} {
		if s.change {
			flagOne(s.dir)
		}
		share(s.dir, s.what, "sync", "-q")
	}
	for _, path := range must.Get(filepath.Glob(filepath.Join(work, "sync/*/*.rss"))) {
		if fi, err := os.Stat(path); err == nil {
			fmt.Printf("%-24s %12d bytes\n", filepath.Base(path), fi.Size())
		}
	}
}

// share runs lektor-share, and tells what it took.
func share(dir, what string, args ...string) {
	cmd := exec.Command("bin/lektor-share", args...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		must.Fail("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && what != "" {
		fmt.Printf("%-24s %8.2f s %8.2f s of processor %6d MiB\n", what, time.Since(begin).Seconds(),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), usage.Maxrss>>10)
	}
}

const perFeed = 1000

// fill makes a lektor-dir of n entries, read or not.
func fill(path string, n int, read bool) {
	d := &dir.Dir{Path: path}
	must.Do(d.Create())
	for i := range n {
		id := fmt.Sprintf("http://feed%d.example/", i/perFeed)
		if i%perFeed == 0 {
			must.Get(d.Feed(id, "A feed", "etc/fetch/url="+id))
		}
		name := fmt.Sprintf("1503674340.M%dP1Q%dI%016x.host", i%1_000_000, i, i)
		place := "new"
		if read {
			place, name = "cur", name+";2,S"
		}
		must.Get(d.Entry(id, place, name, fmt.Sprintf("title=Entry %d, with a title of usual length", i), fmt.Sprintf("id=%sentries/%d.html", id, i)))
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
